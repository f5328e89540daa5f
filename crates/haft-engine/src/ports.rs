//! Everything that the stages need from outside, in one place.

use crate::{
    adaptive::AdaptiveTimeout,
    events::Feeds,
    redaction::{Levels, Redaction, RedactionLevels},
    registry::Registry,
    sandboxes::SandboxTable,
    settings::Settings,
};
use haft_core::{
    ApprovalId, ErrorCode, OutputHandle, ToolError,
    port::{
        Approver, Authoriser, BoxFuture, Clock, FoundLines, Jail, OutputRange, OutputSearch, Policy,
        Registrations, Store, StoredPart, Wants,
    },
};
use haft_sdk::capability::{Capabilities, Outputs};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What the stages stand on.
pub(crate) struct Ports {
    pub(crate) settings: Settings,
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) authoriser: Arc<dyn Authoriser>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) store: Arc<dyn Store>,
    /// What the store makes use of, asked once.
    pub(crate) wants: Wants,
    pub(crate) registrations: Arc<dyn Registrations>,
    pub(crate) jail: Arc<dyn Jail>,
    /// Whether somebody brought it: then callers need a licence for that.
    pub(crate) has_own_jail: bool,
    pub(crate) clock: Arc<dyn Clock>,
    /// For what people and files keep.
    pub(crate) redaction: Redaction,
    /// For what callers get back.
    pub(crate) redaction_levels: RedactionLevels,
    pub(crate) capabilities: Capabilities,
    /// Deadlines from history, where they are wanted.
    pub(crate) adaptive: Option<AdaptiveTimeout>,
    pub(crate) sandboxes: SandboxTable,
    pub(crate) asked_now: AskedNow,
    /// Who listens to everything that happens.
    pub(crate) feeds: Arc<Feeds>,
}

impl Ports {
    /// Both levels of redaction, as they are for every call.
    pub(crate) fn levels(&self) -> Levels<'_> {
        Levels { results: &self.redaction_levels.results, kept: &self.redaction }
    }
}

/// The approvals that calls of this engine wait for now. Another call that is the same gets one of its own: each is
/// answered by itself, and an answer that a person was asked for is not lost to the other.
#[derive(Default)]
pub(crate) struct AskedNow {
    turn: tokio::sync::Mutex<()>,
    ids: Mutex<HashSet<ApprovalId>>,
}

impl AskedNow {
    /// From here on nobody else asks, until this is dropped.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    pub(crate) fn ids(&self) -> MutexGuard<'_, HashSet<ApprovalId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of the system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// Stored outputs, as tools see them.
pub(crate) struct StoredOutputs(pub(crate) Arc<dyn Store>);

impl Outputs for StoredOutputs {
    fn read<'a>(
        &'a self,
        tenant: &'a str,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, ToolError>> {
        Box::pin(async move {
            self.0
                .for_tenant(tenant)
                .output(handle, range)
                .await
                .map_err(|error| ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error))
        })
    }

    fn search<'a>(
        &'a self,
        tenant: &'a str,
        handle: &'a OutputHandle,
        search: OutputSearch,
    ) -> BoxFuture<'a, Result<Option<FoundLines>, ToolError>> {
        Box::pin(async move {
            self.0
                .for_tenant(tenant)
                .search_output(handle, search)
                .await
                .map_err(|error| ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error))
        })
    }
}

//! Everything that the stages need from outside, in one place.

use crate::{
    engine::{Engine, Inner},
    redaction::{Redaction, Strengths},
    registry::{Registry, is_available, within_licence},
    request::Request,
    sandboxes::SandboxTable,
    schedule::start::Around,
    settings::Settings,
};
use haft_core::{
    CallOptions, ErrorCode, ExecutionId, OutputHandle, SearchFilter, Tier, ToolCall, ToolDefinition,
    ToolError, ToolResult,
    port::{
        Approver, Authoriser, BoxFuture, Clock, FoundLines, Jail, OutputRange, OutputSearch, Policy,
        Registrations, Store, StoredPart, Wants,
    },
};
use haft_sdk::capability::{Capabilities, EngineView, Outputs};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};

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
    pub(crate) strengths: Strengths,
    pub(crate) capabilities: Capabilities,
    pub(crate) around: Around,
    pub(crate) sandboxes: SandboxTable,
}

/// The time of the system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// The engine, as tools see it.
pub(crate) struct View {
    pub(crate) registry: Arc<Registry>,
    /// Weak, because the engine owns this.
    pub(crate) engine: Weak<Inner>,
}

impl EngineView for View {
    fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        self.registry.lookup(name).map(|registered| Arc::clone(&registered.definition))
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.registry.all().iter().map(|registered| Arc::clone(&registered.definition)).collect()
    }

    fn metrics(&self, tenant: &str, tool: Option<&str>) -> Value {
        let mut sum = crate::stats::Snapshot::default();
        let mut tools = Map::new();
        let wanted = tool.and_then(|name| self.registry.lookup(name));
        for registered in self.registry.all() {
            if wanted.as_ref().is_some_and(|wanted| !Arc::ptr_eq(wanted, &registered)) {
                continue;
            }
            if let Some(counts) = registered.tenant_counts(tenant) {
                sum.add(&counts);
                tools.insert(registered.name.to_string(), counts.to_json());
            }
        }
        json!({"all": sum.to_json(), "tools": tools})
    }

    fn search(&self, question: &str, most: usize, tier: Tier) -> Result<Vec<Arc<ToolDefinition>>, ToolError> {
        within_licence(SearchFilter::Name, tier)?;
        let ranked = self.registry.rank(question, most, |registered| is_available(registered, tier));
        Ok(ranked.into_iter().map(|(_, registered)| Arc::clone(&registered.definition)).collect())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn call<'a>(
        &'a self,
        outer: ExecutionId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let gone = || ToolError::new(ErrorCode::Cancelled, "the engine is gone");
            let engine = self.engine.upgrade().ok_or_else(gone)?;
            let frame = engine.executions.frame(outer).ok_or_else(gone)?;
            let request = Request {
                call,
                context: Arc::clone(&frame.context),
                // Whoever wants the outer call held to less wants that of what it calls.
                options: Arc::new(CallOptions {
                    model: frame.options.model,
                    limits: frame.options.limits.clone(),
                    ..CallOptions::default()
                }),
                approver: frame.approver.clone(),
            };
            Ok(Engine::from_inner(engine).execute_inside(request, frame).await)
        })
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

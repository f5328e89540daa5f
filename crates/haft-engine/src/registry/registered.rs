//! A tool with everything that can be known about it before it is called.

use super::{RegisterError, settings, terms::Terms};
use crate::{
    schema::{Arguments, Output},
    stats::{self, Stats},
};
use haft_core::{IsolationLevel, Status, ToolDefinition};
use haft_sdk::Tool;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Where a registration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Given when the engine was built: it stays.
    BuiltIn,
    /// Added later, by somebody.
    Custom { by: Arc<str> },
}

/// Whether somebody looked at the schemas of a definition already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schemas {
    /// They are checked when the tool is registered.
    Unknown,
    /// They were checked when the program was tested, or when the tool was first registered. One that cannot be used
    /// for all that is refused when the tool is called.
    CheckedBefore,
}

/// For how many tenants a tool counts by itself. It is some kilobyte each; further ones see no counts, and nobody sees
/// theirs.
const MOST_TENANTS: usize = 256;

/// A tool with everything that can be known about it before it is called.
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn Tool>,
    /// What the tool says about itself, as its settings tighten it.
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) name: Arc<str>,
    pub(crate) arguments: Arguments,
    pub(crate) output: Output,
    pub(crate) origin: Origin,
    pub(crate) registered_at: Timestamp,
    /// Stays the same when the tool is set up otherwise.
    state: Arc<ToolState>,
    pub(super) settings: Arc<Map<String, Value>>,
    /// What it is about, in words: made when somebody searches.
    terms: Arc<OnceLock<Terms>>,
}

/// What becomes of a tool while it is there. Calls that were planned before it was set up otherwise see it, too.
#[derive(Default)]
pub(super) struct ToolState {
    stats: OnceLock<Box<Stats>>,
    /// Counts and times by tenant, for callers who may see only their own.
    of_tenants: Mutex<HashMap<Arc<str>, Box<Stats>>>,
    disabled: AtomicBool,
    /// Where it comes from does not have it now, so nobody is told of it.
    withdrawn: AtomicBool,
}

impl ToolState {
    /// What all calls came to.
    pub(super) fn counts(&self) -> stats::Snapshot {
        self.stats.get().map(|stats| stats.snapshot()).unwrap_or_default()
    }
}

impl Registered {
    pub(super) fn state(&self) -> &Arc<ToolState> {
        &self.state
    }

    pub(super) fn new(
        tool: Arc<dyn Tool>,
        origin: Origin,
        at: Timestamp,
        schemas: Schemas,
    ) -> Result<Self, RegisterError> {
        let definition = Arc::clone(tool.definition());
        let problems = match schemas {
            Schemas::Unknown => haft_definition::check(&definition),
            Schemas::CheckedBefore => definition.check(),
        };
        if !problems.is_empty() {
            return Err(RegisterError::BadDefinition { name: definition.name.clone(), problems });
        }
        Ok(Registered {
            tool,
            name: definition.name.as_str().into(),
            arguments: Arguments::default(),
            output: Output::default(),
            origin,
            registered_at: at,
            state: Arc::default(),
            settings: Arc::default(),
            terms: Arc::default(),
            definition,
        })
    }

    /// The same tool, set up in that way.
    pub(super) fn configured(&self, settings: Map<String, Value>) -> Result<Self, RegisterError> {
        let written = self.tool.definition();
        let tightening = settings::check(&*self.tool, &settings)?;
        Ok(Registered {
            tool: Arc::clone(&self.tool),
            definition: match tightening.is_empty() {
                true => Arc::clone(written),
                false => Arc::new(tightening.of(written)),
            },
            name: Arc::clone(&self.name),
            arguments: Arguments::default(),
            output: Output::default(),
            origin: self.origin.clone(),
            registered_at: self.registered_at,
            state: Arc::clone(&self.state),
            settings: Arc::new(settings),
            terms: Arc::clone(&self.terms),
        })
    }

    /// Whether what it does is done by haft's own code, also where that works in a jail: it is held by what it says, and
    /// its changes are made by haft. All others only start programs.
    pub(crate) fn is_own_code(&self) -> bool {
        self.definition.constraints.required_isolation == IsolationLevel::None || self.tool.works_in_jail()
    }

    pub(super) fn terms(&self) -> &Terms {
        self.terms.get_or_init(|| Terms::of(self.tool.definition()))
    }

    /// Whether it can be set up in that way.
    pub(crate) fn check_settings(&self, settings: &Map<String, Value>) -> Result<(), RegisterError> {
        settings::check(&*self.tool, settings).map(drop)
    }

    /// Whether both are the same tool, however it is set up.
    pub(crate) fn is_same_tool(&self, other: &Registered) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Counts and times. Made with the first call: most of many tools are never called.
    pub(crate) fn stats(&self) -> &Stats {
        self.state.stats.get_or_init(Box::default)
    }

    /// Counts a call that has ended, for its tenant and in all.
    pub(crate) fn count(&self, tenant: &Arc<str>, status: Status, duration: Duration, output_bytes: u64) {
        self.stats().record(status, duration, output_bytes);
        let mut of_tenants = self.state.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stats) = of_tenants.get(tenant) {
            stats.record(status, duration, output_bytes);
        } else if of_tenants.len() < MOST_TENANTS {
            let stats = Box::<Stats>::default();
            stats.record(status, duration, output_bytes);
            of_tenants.insert(Arc::clone(tenant), stats);
        }
    }

    /// What a tenant's calls came to, where it made any.
    pub(crate) fn tenant_counts(&self, tenant: &str) -> Option<stats::Snapshot> {
        let of_tenants = self.state.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
        of_tenants.get(tenant).map(|stats| stats.snapshot())
    }

    pub(crate) fn stats_if_called(&self) -> Option<&Stats> {
        self.state.stats.get().map(|stats| &**stats)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        !self.state.disabled.load(Ordering::Acquire)
    }

    pub(crate) fn set_enabled(&self, enabled: bool) {
        self.state.disabled.store(!enabled, Ordering::Release);
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.state.withdrawn.load(Ordering::Acquire)
    }

    /// Gives what it was before.
    pub(crate) fn set_withdrawn(&self, withdrawn: bool) -> bool {
        self.state.withdrawn.swap(withdrawn, Ordering::AcqRel)
    }

    pub(crate) fn settings(&self) -> Arc<Map<String, Value>> {
        Arc::clone(&self.settings)
    }
}

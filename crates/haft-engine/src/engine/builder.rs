//! Putting an engine together.

use super::Engine;
use crate::{
    adaptive::AdaptiveTimeout,
    inner::Inner,
    live_calls::LiveCalls,
    pipeline::{
        schedule::{
            breaker::{Breaker, Breakers},
            cache::{Cache, ResultCache},
            controls::AdmissionControls,
            lanes::{LaneTable, Lanes},
            quota::{QuotaTable, Quotas},
            rate::Rates,
            repeat::{RepeatGuard, Repeats},
        },
        types::containment::Jailed,
    },
    ports::{AskedNow, Ports, StoredOutputs, SystemClock},
    redaction::{Redaction, RedactionLevels},
    registry::{Origin, RegisterError, Registry, Schemas},
    sandboxes::SandboxTable,
    settings::Settings,
    task_table::TaskTable,
    view::View,
};
use haft_core::port::{
    Approver, Authoriser, Clock, ForgetfulRegistrations, GuestSpec, Jail, NoJail, NobodyToAsk, Policy,
    Redactor, Registrations, Store,
};
use haft_sdk::{Tool, capability::Capabilities};
use std::sync::{Arc, OnceLock, Weak, atomic::AtomicBool};
use tokio::sync::broadcast;

/// Puts an engine together.
pub struct EngineBuilder {
    settings: Settings,
    policy: Arc<dyn Policy>,
    authoriser: Arc<dyn Authoriser>,
    store: Arc<dyn Store>,
    approver: Arc<dyn Approver>,
    jail: Arc<dyn Jail>,
    has_own_jail: bool,
    clock: Arc<dyn Clock>,
    redactor: Option<Arc<dyn Redactor>>,
    result_redactor: Option<Arc<dyn Redactor>>,
    shows_results_as_they_are: bool,
    registrations: Arc<dyn Registrations>,
    capabilities: Capabilities,
    template: Option<GuestSpec>,
    adaptive: Option<AdaptiveTimeout>,
    controls: AdmissionControls,
    tools: Vec<(Box<dyn Tool>, Schemas)>,
}

impl EngineBuilder {
    pub(crate) fn new(
        policy: Arc<dyn Policy>,
        authoriser: Arc<dyn Authoriser>,
        store: Arc<dyn Store>,
    ) -> Self {
        EngineBuilder {
            settings: Settings::default(),
            policy,
            authoriser,
            store,
            approver: Arc::new(NobodyToAsk),
            jail: Arc::new(NoJail),
            has_own_jail: false,
            clock: Arc::new(SystemClock),
            redactor: None,
            result_redactor: None,
            shows_results_as_they_are: false,
            registrations: Arc::new(ForgetfulRegistrations),
            capabilities: Capabilities::default(),
            template: None,
            adaptive: None,
            controls: AdmissionControls::default(),
            tools: Vec::new(),
        }
    }

    /// Other numbers and switches.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Whom to ask. Without one, what needs approval does not run.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// What holds programs in. Without one, what needs containment does not run.
    pub fn jail(mut self, jail: Arc<dyn Jail>) -> Self {
        self.jail = jail;
        self
    }

    /// A jail that did not come with haft: callers need the tier that includes jails of one's own for what it holds.
    pub fn own_jail(mut self, jail: Arc<dyn Jail>) -> Self {
        self.has_own_jail = true;
        self.jail(jail)
    }

    /// What time it is.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where tools that were added, switched or configured are remembered. Without it, nowhere.
    pub fn registrations(mut self, registrations: Arc<dyn Registrations>) -> Self {
        self.registrations = registrations;
        self
    }

    /// What must not be shown: in summaries, events, logs and records, and in results unless there is
    /// [another one](EngineBuilder::result_redactor) for those.
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// What must not be in results, and in outputs that are stored for callers who read on in them. Names and
    /// randomness, by which much is found in what is kept, would take out hashes, images and code there.
    pub fn result_redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.result_redactor = Some(redactor);
        self
    }

    /// Hands results to the caller as they are. What is stored of them is redacted all the same.
    pub fn show_results_as_they_are(mut self) -> Self {
        self.shows_results_as_they_are = true;
        self
    }

    /// Grants programs, in the jail: each gets at most what the template grants.
    pub fn commands(mut self, template: GuestSpec) -> Self {
        self.template = Some(template);
        self
    }

    /// What tools may reach. Outputs and the engine itself are added.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// How many calls run at once. Without it, as many as come.
    pub fn lanes(mut self, lanes: Lanes) -> Self {
        self.controls.lanes = Some(LaneTable::new(lanes));
        self
    }

    /// So many calls in so much time. Without it, as many as come.
    pub fn rate_limits(mut self, limits: impl IntoIterator<Item = haft_core::RateLimit>) -> Self {
        self.controls.rates = Some(Rates::new(limits.into_iter().collect()));
        self
    }

    /// What a tenant may use in a day. Without it, any amount.
    pub fn quotas(mut self, quotas: Quotas) -> Self {
        self.controls.quotas = Some(QuotaTable::new(quotas));
        self
    }

    /// Leaves tools alone that fail most of the time. Without it, never.
    pub fn breaker(mut self, breaker: Breaker) -> Self {
        self.controls.breakers = Some(Breakers::new(breaker));
        self
    }

    /// Stores results of tools that say that they may be stored. Without it, none.
    pub fn cache(mut self, cache: ResultCache) -> Self {
        self.controls.cache = Some(Cache::new(cache));
        self
    }

    /// Shortens deadlines by how long a tool's calls took so far. Without it, they stay as they are planned.
    pub fn adaptive_timeout(mut self, adaptive: AdaptiveTimeout) -> Self {
        self.adaptive = Some(adaptive);
        self
    }

    /// Warns about the same failing call again and again, and then stops it. Without it, never.
    pub fn repeat_guard(mut self, guard: RepeatGuard) -> Self {
        self.controls.repeats = Some(Repeats::new(guard));
        self
    }

    /// One more tool.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.boxed_tool(Box::new(tool))
    }

    /// One more tool, boxed.
    pub fn boxed_tool(mut self, tool: Box<dyn Tool>) -> Self {
        self.tools.push((tool, Schemas::Unknown));
        self
    }

    /// One more tool, whose schemas a test of the program has checked ([`haft_definition::check`]): compiling them takes
    /// longer than a short run of a program. One that cannot be used for all that is refused when the tool is called.
    pub fn checked_tool(mut self, tool: Box<dyn Tool>) -> Self {
        self.tools.push((tool, Schemas::CheckedBefore));
        self
    }

    /// The engine, or the first tool that cannot be registered.
    pub fn build(self) -> Result<Engine, RegisterError> {
        let registry = Arc::new(Registry::default());
        let at = self.clock.now();
        for (tool, schemas) in self.tools {
            match schemas {
                Schemas::Unknown => registry.register(tool, Origin::BuiltIn, at)?,
                Schemas::CheckedBefore => registry.register_checked(tool, Origin::BuiltIn, at)?,
            };
        }
        let inner = Arc::new_cyclic(|engine| Inner {
            live: LiveCalls::new(self.settings.observable_after_end),
            controls: self.controls,
            tasks: TaskTable::default(),
            tools_events: broadcast::channel(1024).0,
            closed: AtomicBool::new(false),
            runtime: OnceLock::new(),
            ports: Arc::new(Ports {
                capabilities: Capabilities {
                    commands: match self.template {
                        Some(template) => Arc::new(Jailed { jail: Arc::clone(&self.jail), template }),
                        None => self.capabilities.commands,
                    },
                    outputs: Arc::new(StoredOutputs(Arc::clone(&self.store))),
                    engine: Arc::new(View { registry: Arc::clone(&registry), engine: Weak::clone(engine) }),
                    ..self.capabilities
                },
                settings: self.settings,
                registry,
                policy: self.policy,
                authoriser: self.authoriser,
                approver: self.approver,
                wants: self.store.wants(),
                store: self.store,
                registrations: self.registrations,
                jail: self.jail,
                has_own_jail: self.has_own_jail,
                clock: self.clock,
                redaction_levels: RedactionLevels::new(
                    self.redactor.as_ref(),
                    self.result_redactor,
                    self.shows_results_as_they_are,
                ),
                redaction: Redaction(self.redactor),
                adaptive: self.adaptive,
                sandboxes: SandboxTable::default(),
                asked_now: AskedNow::default(),
                feeds: Arc::default(),
            }),
        });
        Ok(Engine::from_inner(inner))
    }
}

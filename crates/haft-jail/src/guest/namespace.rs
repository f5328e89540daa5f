//! The `namespace` jail: users, processes, mounts, network, IPC, name and cgroups of its own; a tree that holds nothing
//! but the system and what is granted; Landlock, seccomp and cgroups besides. Needs no privileges and no helper.

use super::{
    host::{Inner, JailHost, STALE},
    plan::{self, JailKind, Refusal},
    process::{of_walls, refusal},
    running, sandbox, staging,
    wire::InitKind,
};
use haft_core::{
    Enforcement, IsolationLevel, Limits, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Sandbox, Unavailable, Unstageable, Writes},
};
use std::sync::Arc;

/// Holds programs in namespaces of their own.
#[derive(Clone)]
pub struct Namespace(Arc<Inner>);

/// How often haft looks at everything again where files are moved meanwhile.
pub(super) const ATTEMPTS: u32 = 5;

impl Namespace {
    /// Such a jail.
    pub fn new(host: &JailHost) -> Self {
        Namespace(Arc::clone(&host.0))
    }
}

impl Jail for Namespace {
    fn name(&self) -> &str {
        "namespace"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        super::probe::checked(&self.0, JailKind::Namespace, level)
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.offers(spec.level)?;
        self.0.check_hosts(&spec.hosts).map_err(|error| of_walls(error.into()))?;
        let planned = plan::plan(spec, JailKind::Namespace, &self.0.facts, None);
        planned.map(|plan| plan.enforcement).map_err(of_walls)
    }

    fn can_stage(&self, spec: &GuestSpec) -> Result<(), Unstageable> {
        let Writes::Staged(stage) = &spec.writes else { return Ok(()) };
        let other = |unavailable: Unavailable| Unstageable {
            path: None,
            reason: unavailable.reason,
            fix: unavailable.fix,
        };
        match plan::plan(spec, JailKind::Namespace, &self.0.facts, None) {
            Ok(_) => staging::probe(stage),
            Err(Refusal::Stage(why)) => Err(why),
            Err(refused) => Err(other(of_walls(refused))),
        }
    }

    fn has_sandbox(&self, id: &str) -> Option<bool> {
        Some(self.0.has_sandbox(id))
    }

    fn open_sandbox(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        sandbox::open(&self.0, limits)
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        Box::pin(async move {
            let host = &self.0;
            host.check_hosts(&spec.hosts)?;
            let mut attempt = 1;
            loop {
                let plan = plan::plan(&spec, JailKind::Namespace, &host.facts, None).map_err(refusal)?;
                let init = host.init(InitKind::Namespace, spec.parent.as_deref(), attempt > 1).await?;
                match running::start(host, init, plan, spec.clone(), None).await {
                    // A path leads elsewhere than for haft: something was mounted there after the init was made, or
                    // files were moved since they were looked at.
                    Err(error) if error.diagnostics.as_deref() == Some(STALE) && attempt < ATTEMPTS => {
                        attempt += 1
                    }
                    done => return Ok(Box::new(done?) as Box<dyn Guest>),
                }
            }
        })
    }
}

//! The `process` jail: rlimits, cgroups, Landlock, seccomp, no new privileges, no capabilities.
//!
//! Works nearly everywhere, inside containers too, and costs next to nothing. It cannot take something out of what it
//! grants (a denied file in a granted folder), does not know hosts, and shows the names of the machine's processes.

use super::{
    host::{Inner, JailHost},
    plan::{self, Refusal, Walls},
    running::{self, Scratch},
    sandbox,
    wire::SeatKind,
};
use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, Limits, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Sandbox, Unavailable},
};
use std::sync::Arc;

/// Holds programs with what a process can do to itself.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

impl Process {
    /// Such a jail.
    pub fn new(host: &JailHost) -> Self {
        Process(Arc::clone(&host.0))
    }
}

/// A refusal, as an error of the call.
pub(super) fn refusal(refusal: Refusal) -> ToolError {
    match refusal {
        Refusal::Call(error) => error,
        Refusal::Walls(unavailable) => {
            ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string())
        }
    }
}

/// A refusal, where only walls are asked about: what is wrong with the call shows when it starts.
pub(super) fn of_walls(refused: Refusal) -> Unavailable {
    match refused {
        Refusal::Walls(unavailable) => unavailable,
        Refusal::Call(error) => Unavailable { reason: error.message, fix: "change the call".into() },
    }
}

impl Jail for Process {
    fn name(&self) -> &str {
        "process"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        super::probe::checked(&self.0, Walls::Process, level)
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.offers(spec.level)?;
        let planned = plan::plan(spec, Walls::Process, &self.0.facts, None);
        planned.map(|plan| plan.enforcement).map_err(of_walls)
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
            let scratch = Scratch::make(host)?;
            let plan = plan::plan(&spec, Walls::Process, &host.facts, Some(&scratch.0)).map_err(refusal)?;
            let seat = host.seat(SeatKind::Process, spec.parent.as_deref(), false).await?;
            let guest = running::start(host, seat, plan, spec, Some(scratch)).await?;
            Ok(Box::new(guest) as Box<dyn Guest>)
        })
    }
}

//! What one stage gives the next one: a planned call, a decided one, how it ended.

use super::{containment::Containment, record::CallRecord};
use crate::panic_guard::PanicGuard;
use haft_core::{ApprovalId, ErrorCode, ExecutionId, Footprint, ToolError, ToolOutput, ToolResult};
use haft_sdk::{Args, Cancel, Prepared};
use std::sync::Arc;

/// A call that passed every check.
pub(crate) struct Ready {
    pub(crate) call: CallRecord,
    pub(crate) prepared: PanicGuard<Box<dyn Prepared>>,
    /// From which it is prepared again where it is tried again.
    pub(crate) arguments: Args,
    /// Ends the present attempt.
    pub(crate) cancel: Arc<Cancel>,
    pub(crate) footprint: Footprint,
    pub(crate) containment: Containment,
    pub(crate) has_side_effects: bool,
    /// The tool itself says that a person must agree to this very call.
    pub(crate) forces_approval: bool,
}

impl Ready {
    /// Makes room for another attempt; false where somebody has cancelled the call.
    pub(crate) fn next_attempt(&mut self) -> bool {
        match self.call.next_switch() {
            Some(cancel) => self.cancel = cancel,
            None => return false,
        }
        true
    }

    /// Whether it changes nothing, by what the tool says of itself and of this very call.
    pub(crate) fn only_reads(&self) -> bool {
        !self.has_side_effects && self.footprint.writes.is_empty()
    }

    /// Whether running it twice does no harm.
    pub(crate) fn may_run_again(&self) -> bool {
        let is_idempotent = self.call.registered.get().is_some_and(|tool| tool.definition.idempotent);
        self.only_reads() || (self.has_side_effects && is_idempotent)
    }

    /// Whether it is a flow.
    pub(crate) fn is_flow(&self) -> bool {
        self.call.registered.get().is_some_and(|tool| tool.definition.source == haft_core::Source::Flow)
            && self.passes_on()
    }

    /// Whether it is not the tool itself that changes anything, but something that it calls.
    pub(crate) fn passes_on(&self) -> bool {
        !self.has_side_effects && !self.footprint.writes.is_empty()
    }
}

/// What planning a call came to.
pub(crate) enum Planned {
    /// It may run.
    Ready(Ready),
    /// It may run if a person agrees.
    NeedsApproval(Box<NeedsApproval>),
    /// Another one with the same idempotency key runs: its result will be this one's.
    Follows(CallRecord, ExecutionId),
    /// Somebody outside supplies the result.
    AwaitingResult(CallRecord),
    /// It is over.
    Resolved(CallRecord, EarlyExit),
}

/// A call that a person has to agree to. Apart, so that those who need nobody are not larger for it.
pub(crate) struct NeedsApproval {
    pub(crate) ready: Ready,
    pub(crate) reason: String,
    /// The question that an earlier call with the same idempotency key asked.
    pub(crate) asked_before: Option<ApprovalId>,
}

/// How a call is over before it ran.
pub(crate) enum EarlyExit {
    /// With an error.
    Error(ToolError),
    /// With the result that the same call had before.
    Replay(Arc<ToolResult>),
}

impl Default for EarlyExit {
    fn default() -> Self {
        EarlyExit::Error(ErrorCode::NotStarted.into())
    }
}

impl From<ToolError> for EarlyExit {
    fn from(error: ToolError) -> Self {
        EarlyExit::Error(error)
    }
}

/// What became of a call after everybody was asked.
pub(crate) enum Decided {
    /// It runs.
    Go(Ready),
    /// Another one with the same idempotency key runs: its result will be this one's.
    Follows(CallRecord, ExecutionId),
    /// Somebody outside supplies the result.
    AwaitingResult(CallRecord),
    /// It is over.
    Resolved(CallRecord, EarlyExit),
}

impl Decided {
    pub(crate) fn call(&self) -> &CallRecord {
        match self {
            Decided::Go(ready) => &ready.call,
            Decided::Follows(call, _) | Decided::AwaitingResult(call) | Decided::Resolved(call, _) => call,
        }
    }

    /// The call, for what is found out about it.
    pub(crate) fn call_mut(&mut self) -> &mut CallRecord {
        match self {
            Decided::Go(ready) => &mut ready.call,
            Decided::Follows(call, _) | Decided::AwaitingResult(call) | Decided::Resolved(call, _) => call,
        }
    }
}

/// What an attempt at a call comes to.
pub(crate) type AttemptOutcome = Result<ToolOutput, ToolError>;

/// What is done with a call whose turn has come. Schedule is given its `run` as one of these, and knows no tool.
pub(crate) trait Start: Send + Sync {
    /// Starts the call, and waits for what comes of it.
    fn start<'a>(&'a self, ready: &'a mut Ready) -> impl Future<Output = AttemptOutcome> + Send;
}

/// How a call ended, before it has the form of a result.
pub(crate) enum RunOutcome {
    /// The tool returned.
    Returned(ToolOutput),
    /// It did not succeed.
    Error(ToolError),
    /// The same call had this result before.
    Replay(Arc<ToolResult>),
    /// It may run, and somebody else runs it.
    HandedOver,
}

impl From<AttemptOutcome> for RunOutcome {
    fn from(outcome: AttemptOutcome) -> Self {
        outcome.map_or_else(RunOutcome::Error, RunOutcome::Returned)
    }
}

impl From<ToolError> for RunOutcome {
    fn from(error: ToolError) -> Self {
        RunOutcome::Error(error)
    }
}

impl From<EarlyExit> for RunOutcome {
    fn from(exit: EarlyExit) -> Self {
        match exit {
            EarlyExit::Error(error) => RunOutcome::Error(error),
            EarlyExit::Replay(result) => RunOutcome::Replay(result),
        }
    }
}

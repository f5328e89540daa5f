//! Calls that another program runs: they are decided about and recorded as all others are, and no tool is started.

use super::{
    approve::approve,
    executor::PendingCalls,
    finish::finish,
    plan::{Purpose, plan},
    types::{Decided, RunOutcome},
};
use crate::telemetry::{Stage, stage, within};
use haft_core::{ErrorCode, ToolError, ToolResult};

/// Decides about calls that somebody else runs: plan, approve and finish. Nothing between starts a tool.
pub(crate) async fn decide(pending: &PendingCalls) -> Vec<ToolResult> {
    let PendingCalls { engine, calls, .. } = pending;
    let planned = within!(stage(Stage::Plan), plan(&engine.ports, None, calls, Purpose::Run));
    let decided = within!(stage(Stage::Approve), approve(&engine.ports, planned));
    let mut results = Vec::with_capacity(decided.len());
    for mut decided in decided {
        let outcome = match &mut decided {
            // Whoever asked would run it with the arguments that it has, and not with those.
            Decided::Go(ready) if ready.call.facts.edited.is_some() => {
                RunOutcome::Error(ToolError::new(ErrorCode::ConfirmationDenied, OTHER_ARGUMENTS))
            }
            Decided::Go(_) => RunOutcome::HandedOver,
            Decided::Resolved(_, exit) => RunOutcome::from(std::mem::take(exit)),
            // Neither was decided by policy: what only another call's result, or a person's, would end does not run.
            Decided::AwaitingResult(_) | Decided::Follows(..) => {
                RunOutcome::Error(ToolError::new(ErrorCode::NotStarted, NOT_TO_HAND_OVER))
            }
        };
        let finishing = finish(&engine.ports, &engine.live, decided.call_mut(), outcome);
        results.push(within!(stage(Stage::Finish), finishing));
    }
    results
}

/// Why a call cannot be left to somebody else.
const NOT_TO_HAND_OVER: &str = "This call gets its result from elsewhere (parse-only mode, or the same idempotency \
     key), so nobody may run it";

/// Why a call that a person agreed to with other arguments does not run.
const OTHER_ARGUMENTS: &str =
    "A person agreed to this call with other arguments only. Send it again with those";

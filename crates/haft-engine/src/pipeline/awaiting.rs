//! Calls whose result comes from elsewhere: from a person in parse-only mode, or from the same call that runs
//! already.

use super::types::{CallRecord, CallState, Decided, RunOutcome, cancelled, unless_cancelled};
use crate::{live_calls::LiveCalls, ports::Ports};
use haft_core::{ErrorCode, ExecutionId, ToolError, ToolOutput, port::Claim};
use std::{sync::Arc, time::Duration};

/// Lists all calls of a batch that wait for a person at once, so that they can be answered in any order.
pub(crate) fn announce(live: &LiveCalls, decided: &[Decided]) {
    for decided in decided {
        if let Decided::AwaitingResult(call) = decided {
            live.awaiting.announce(call);
        }
    }
}

/// Waits until somebody supplies the result.
pub(crate) async fn wait(live: &LiveCalls, call: &CallState) -> Result<ToolOutput, ToolError> {
    unless_cancelled(call, live.awaiting.supplied(call.id)).await.and_then(|supplied| supplied)
}

/// How often a call that another process runs is looked at.
const ELSEWHERE: Duration = Duration::from_millis(50);

/// Waits for the call that has the same idempotency key, and takes its result.
pub(crate) async fn follow(
    ports: &Ports,
    live: &LiveCalls,
    call: &mut CallRecord,
    leader: ExecutionId,
) -> RunOutcome {
    let (state, timeout) = (Arc::clone(call.state()), call.timeout());
    let over = async {
        let mut leader = leader;
        loop {
            match live.executions.call(leader) {
                Some(leader) => leader.log.ended().await,
                // Another process has it, and cannot tell this one: what it leaves is looked at.
                None => tokio::time::sleep(ELSEWHERE).await,
            }
            match look(ports, call).await {
                Looked::Over(outcome) => return outcome,
                Looked::Runs(still) => leader = still,
            }
        }
    };
    tokio::select! {
        biased;
        outcome = over => outcome,
        reason = state.cancel.cancelled() => RunOutcome::Error(cancelled(&state.cancel, reason)),
        () = tokio::time::sleep(timeout) => RunOutcome::Error(still_running()),
    }
}

enum Looked {
    Over(RunOutcome),
    Runs(ExecutionId),
}

/// What the call with the same idempotency key has left, if it has ended.
async fn look(ports: &Ports, call: &mut CallRecord) -> Looked {
    let (Some(key), Some(registered)) = (&call.tool_call.idempotency_key, call.registered.get()) else {
        return Looked::Over(RunOutcome::Error(still_running()));
    };
    let request = call.claim_request(registered, key);
    call.facts.claim = Some(Box::new(request.clone()));
    let claim = ports.store.claim(request).await;
    if !matches!(claim, Ok(Claim::Fresh | Claim::Waiting(_))) {
        call.facts.claim = None;
    }
    Looked::Over(match claim {
        Ok(Claim::InFlight(leader)) => return Looked::Runs(leader),
        Ok(Claim::Settled(result)) => RunOutcome::Replay(result),
        // The leader never started, so there is no result to share; this one gives the key back at its end.
        Ok(Claim::Fresh | Claim::Waiting(_)) => RunOutcome::Error(ToolError::new(
            ErrorCode::NotStarted,
            "Not started, because the call with the same idempotency key did not start. Send it again",
        )),
        Ok(Claim::Conflict) => RunOutcome::Error(ErrorCode::IdempotencyConflict.into()),
        Ok(Claim::OutcomeUnknown(_)) => RunOutcome::Error(ErrorCode::OutcomeUnknown.into()),
        Err(error) => RunOutcome::Error(ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error)),
    })
}

fn still_running() -> ToolError {
    ToolError::new(ErrorCode::Timeout, "The call with the same idempotency key still runs. Ask again later")
}

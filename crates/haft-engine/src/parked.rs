//! Calls whose result comes from elsewhere: from a person in parse-only mode, or from the same call that runs
//! already.

use crate::{engine::Inner, finish::Raw, frame::Frame, plan::claim_request, run::cancelled};
use haft_core::{Arguments, CallContext, ErrorCode, ExecutionId, ToolError, ToolOutput, port::Claim};
use haft_sdk::Host;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// A call that waits for somebody to supply its result.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// By which the result is submitted.
    pub execution_id: ExecutionId,
    /// The caller's own name for it, by which it is submitted, too.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// With what.
    pub arguments: Arguments,
    /// Who called.
    pub context: Arc<CallContext>,
}

/// Why a submitted result was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Nothing waits.
    #[error("Not awaiting tool results")]
    NotAwaiting,
    /// Nothing of that id waits.
    #[error("No pending tool call with ID '{0}'")]
    Unknown(String),
    /// Several calls of that id wait.
    #[error("Several pending tool calls have the ID '{0}'; use the execution id")]
    Ambiguous(String),
}

/// The calls that wait.
#[derive(Default)]
pub(crate) struct Parked(Mutex<BTreeMap<ExecutionId, (PendingCall, oneshot::Sender<Supplied>)>>);

type Supplied = Result<ToolOutput, ToolError>;
type Waiting<'a> = MutexGuard<'a, BTreeMap<ExecutionId, (PendingCall, oneshot::Sender<Supplied>)>>;

impl Parked {
    fn waiting(&self) -> Waiting<'_> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn list(&self) -> Vec<PendingCall> {
        self.waiting().values().map(|(pending, _)| pending.clone()).collect()
    }

    /// Gives a waiting call its result, by execution id or by the caller's own name for it.
    pub(crate) fn supply(&self, id: &str, supplied: Supplied) -> Result<(), SubmitError> {
        let mut waiting = self.waiting();
        if waiting.is_empty() {
            return Err(SubmitError::NotAwaiting);
        }
        let matches =
            |pending: &PendingCall| &*pending.call_id == id || pending.execution_id.to_string() == id;
        let found: Vec<ExecutionId> =
            waiting.iter().filter(|(_, (pending, _))| matches(pending)).map(|(id, _)| *id).collect();
        let [found] = found[..] else {
            return Err(match found.len() {
                0 => SubmitError::Unknown(id.to_owned()),
                _ => SubmitError::Ambiguous(id.to_owned()),
            });
        };
        let unknown = || SubmitError::Unknown(id.to_owned());
        let (_, sender) = waiting.remove(&found).ok_or_else(unknown)?;
        // The one who waited was cancelled at this very moment: its result is known already.
        sender.send(supplied).map_err(|_| unknown())
    }
}

/// Takes a call off the list, however its waiting ends.
struct Place<'a>(&'a Parked, ExecutionId);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
    }
}

/// Waits until somebody supplies the result.
pub(crate) async fn wait(engine: &Inner, frame: &Frame) -> Result<ToolOutput, ToolError> {
    let (sender, receiver) = oneshot::channel();
    let pending = PendingCall {
        execution_id: frame.id,
        call_id: Arc::clone(&frame.call.id),
        tool: Arc::clone(frame.tool_name()),
        arguments: frame.call.arguments.clone(),
        context: Arc::clone(&frame.context),
    };
    engine.parked.waiting().insert(frame.id, (pending, sender));
    let _place = Place(&engine.parked, frame.id);
    tokio::select! {
        biased;
        supplied = receiver => supplied.unwrap_or_else(|_| Err(ToolError::cancelled())),
        reason = frame.cancel.cancelled() => Err(cancelled(&frame.cancel, reason)),
    }
}

/// Waits for the call that has the same idempotency key, and takes its result.
pub(crate) async fn follow(engine: &Inner, frame: &Frame, leader: ExecutionId) -> Raw {
    let ended = async {
        match engine.executions.frame(leader) {
            Some(leader) => leader.log.ended().await,
            // Another process has it: what it left is looked at below.
            None => {}
        }
    };
    tokio::select! {
        biased;
        () = ended => {}
        reason = frame.cancel.cancelled() => return Raw::Error(cancelled(&frame.cancel, reason)),
        () = tokio::time::sleep(frame.timeout()) => return Raw::Error(still_running()),
    }
    let (Some(key), Some(registered)) = (&frame.call.idempotency_key, frame.registered.get()) else {
        return Raw::Error(still_running());
    };
    let request = claim_request(frame, registered, key);
    match engine.ports.store.claim(request.clone()).await {
        Ok(Claim::Settled(result)) => Raw::Replay(result),
        // The leader never started, so there is no result to share; this one gives the key back at its end.
        Ok(Claim::Fresh | Claim::Waiting(_)) => {
            frame.facts().claim = Some(request);
            Raw::Error(ToolError::new(
                ErrorCode::NotStarted,
                "Not started, because the call with the same idempotency key did not start. Send it again",
            ))
        }
        Ok(Claim::InFlight(_)) => Raw::Error(still_running()),
        Ok(Claim::Conflict) => Raw::Error(ErrorCode::IdempotencyConflict.into()),
        Ok(Claim::OutcomeUnknown(_)) => Raw::Error(ErrorCode::OutcomeUnknown.into()),
        Err(error) => Raw::Error(ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error)),
    }
}

fn still_running() -> ToolError {
    ToolError::new(ErrorCode::Timeout, "The call with the same idempotency key still runs. Ask again later")
}

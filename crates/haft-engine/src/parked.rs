//! Calls whose result comes from elsewhere: from a person in parse-only mode, or from the same call that runs
//! already.

use crate::{
    approve::Decided,
    engine::Inner,
    finish::Raw,
    frame::Frame,
    plan::claim_request,
    run::{cancelled, unless_cancelled},
};
use haft_core::{Arguments, CallContext, ErrorCode, ExecutionId, ToolError, ToolOutput, port::Claim};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

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
pub(crate) struct Parked {
    /// In the order in which they came.
    waiting: Mutex<Vec<Place>>,
    changed: Notify,
}

struct Place {
    pending: PendingCall,
    supplied: Option<Supplied>,
}

type Supplied = Result<ToolOutput, ToolError>;

impl Parked {
    fn waiting(&self) -> MutexGuard<'_, Vec<Place>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call on the list.
    fn announce(&self, frame: &Frame) {
        let pending = PendingCall {
            execution_id: frame.id,
            call_id: Arc::clone(&frame.call.id),
            tool: Arc::clone(frame.tool_name()),
            arguments: frame.call.arguments.clone(),
            context: Arc::clone(&frame.context),
        };
        self.waiting().push(Place { pending, supplied: None });
    }

    /// Takes a call off the list, however its waiting ended.
    pub(crate) fn forget(&self, id: ExecutionId) {
        self.waiting().retain(|place| place.pending.execution_id != id);
    }

    /// The calls that nobody has answered yet.
    pub(crate) fn list(&self) -> Vec<PendingCall> {
        let waiting = self.waiting();
        let open = waiting.iter().filter(|place| place.supplied.is_none());
        open.map(|place| place.pending.clone()).collect()
    }

    /// Gives a waiting call its result, by execution id or by the caller's own name for it.
    pub(crate) fn supply(&self, id: &str, supplied: Supplied) -> Result<(), SubmitError> {
        let mut waiting = self.waiting();
        if waiting.iter().all(|place| place.supplied.is_some()) {
            return Err(SubmitError::NotAwaiting);
        }
        let is_meant = |place: &&mut Place| {
            let pending = &place.pending;
            place.supplied.is_none() && (&*pending.call_id == id || pending.execution_id.to_string() == id)
        };
        let mut found = waiting.iter_mut().filter(is_meant);
        match (found.next(), found.next()) {
            (None, _) => Err(SubmitError::Unknown(id.to_owned())),
            (Some(_), Some(_)) => Err(SubmitError::Ambiguous(id.to_owned())),
            (Some(place), None) => {
                place.supplied = Some(supplied);
                drop(waiting);
                self.changed.notify_waiters();
                Ok(())
            }
        }
    }

    fn take_supplied(&self, id: ExecutionId) -> Option<Supplied> {
        let mut waiting = self.waiting();
        waiting.iter_mut().find(|place| place.pending.execution_id == id)?.supplied.take()
    }
}

/// Lists all calls of a batch that wait for a person at once, so that they can be answered in any order.
pub(crate) fn announce(engine: &Inner, decided: &[Decided]) {
    for decided in decided {
        if let Decided::Parked(frame) = decided {
            engine.parked.announce(frame);
        }
    }
}

/// Waits until somebody supplies the result.
pub(crate) async fn wait(engine: &Inner, frame: &Frame) -> Result<ToolOutput, ToolError> {
    let supplied = async {
        loop {
            let mut changed = std::pin::pin!(engine.parked.changed.notified());
            changed.as_mut().enable();
            if let Some(supplied) = engine.parked.take_supplied(frame.id) {
                return supplied;
            }
            changed.await;
        }
    };
    unless_cancelled(frame, supplied).await.and_then(|supplied| supplied)
}

/// How often a call that another process runs is looked at.
const ELSEWHERE: Duration = Duration::from_millis(50);

/// Waits for the call that has the same idempotency key, and takes its result.
pub(crate) async fn follow(engine: &Inner, frame: &Frame, leader: ExecutionId) -> Raw {
    let over = async {
        let mut leader = leader;
        loop {
            match engine.executions.frame(leader) {
                Some(leader) => leader.log.ended().await,
                // Another process has it, and cannot tell this one: what it leaves is looked at.
                None => tokio::time::sleep(ELSEWHERE).await,
            }
            match look(engine, frame).await {
                Looked::Over(raw) => return raw,
                Looked::Runs(still) => leader = still,
            }
        }
    };
    tokio::select! {
        biased;
        raw = over => raw,
        reason = frame.cancel.cancelled() => Raw::Error(cancelled(&frame.cancel, reason)),
        () = tokio::time::sleep(frame.timeout()) => Raw::Error(still_running()),
    }
}

enum Looked {
    Over(Raw),
    Runs(ExecutionId),
}

/// What the call with the same idempotency key has left, if it has ended.
async fn look(engine: &Inner, frame: &Frame) -> Looked {
    let (Some(key), Some(registered)) = (&frame.call.idempotency_key, frame.registered.get()) else {
        return Looked::Over(Raw::Error(still_running()));
    };
    let request = claim_request(frame, registered, key);
    frame.facts().claim = Some(Box::new(request.clone()));
    let claim = engine.ports.store.claim(request).await;
    if !matches!(claim, Ok(Claim::Fresh | Claim::Waiting(_))) {
        frame.facts().claim = None;
    }
    Looked::Over(match claim {
        Ok(Claim::InFlight(leader)) => return Looked::Runs(leader),
        Ok(Claim::Settled(result)) => Raw::Replay(result),
        // The leader never started, so there is no result to share; this one gives the key back at its end.
        Ok(Claim::Fresh | Claim::Waiting(_)) => Raw::Error(ToolError::new(
            ErrorCode::NotStarted,
            "Not started, because the call with the same idempotency key did not start. Send it again",
        )),
        Ok(Claim::Conflict) => Raw::Error(ErrorCode::IdempotencyConflict.into()),
        Ok(Claim::OutcomeUnknown(_)) => Raw::Error(ErrorCode::OutcomeUnknown.into()),
        Err(error) => Raw::Error(ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error)),
    })
}

fn still_running() -> ToolError {
    ToolError::new(ErrorCode::Timeout, "The call with the same idempotency key still runs. Ask again later")
}

//! Calls that wait for somebody to supply their results, in parse-only mode.

use crate::pipeline::types::CallState;
use haft_core::{Arguments, CallContext, ExecutionId, ToolError, ToolOutput};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// The arguments of the call.
    pub arguments: Arguments,
    /// Who made the call.
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
pub(crate) struct AwaitingResults {
    /// In the order in which they came.
    waiting: Mutex<Vec<Place>>,
    changed: Notify,
}

struct Place {
    pending: PendingCall,
    supplied: Option<Supplied>,
}

pub(crate) type Supplied = Result<ToolOutput, ToolError>;

impl AwaitingResults {
    fn waiting(&self) -> MutexGuard<'_, Vec<Place>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call on the list.
    pub(crate) fn announce(&self, call: &CallState) {
        let pending = PendingCall {
            execution_id: call.id,
            call_id: Arc::clone(&call.tool_call.id),
            tool: Arc::clone(call.tool_name()),
            arguments: call.tool_call.arguments.clone(),
            context: Arc::clone(&call.context),
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

    /// Waits until somebody supplies the result of a call.
    pub(crate) async fn supplied(&self, id: ExecutionId) -> Supplied {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(supplied) = self.take_supplied(id) {
                return supplied;
            }
            changed.await;
        }
    }

    fn take_supplied(&self, id: ExecutionId) -> Option<Supplied> {
        let mut waiting = self.waiting();
        waiting.iter_mut().find(|place| place.pending.execution_id == id)?.supplied.take()
    }
}

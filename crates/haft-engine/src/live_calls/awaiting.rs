//! Calls that wait for somebody to supply their results, in parse-only mode.

use crate::pipeline::types::CallState;
use haft_core::{Arguments, CallContext, ExecutionId, ToolError, ToolOutput};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    /// Somebody was faster, and the first result is final.
    #[error("Result for tool call '{0}' already submitted")]
    AlreadySubmitted(String),
    /// Several calls of that id wait.
    #[error("Several pending tool calls have the ID '{0}'; use the execution id")]
    Ambiguous(String),
}

/// The calls that wait.
#[derive(Default)]
pub(crate) struct AwaitingResults {
    table: Mutex<Table>,
    changed: Notify,
}

#[derive(Default)]
struct Table {
    /// In the order in which they came.
    waiting: Vec<Place>,
    /// The last ones that have a result, so that a second one can be told from one for a call that never was.
    submitted: VecDeque<(ExecutionId, Arc<str>)>,
}

/// How many calls with a result are remembered.
const REMEMBERED: usize = 1024;

impl Table {
    fn remember(&mut self, pending: &PendingCall) {
        if self.submitted.len() >= REMEMBERED {
            self.submitted.pop_front();
        }
        self.submitted.push_back((pending.execution_id, Arc::clone(&pending.call_id)));
    }

    fn has_result(&self, id: &str) -> bool {
        self.submitted.iter().any(|(execution, call)| &**call == id || execution.to_string() == id)
    }
}

struct Place {
    pending: PendingCall,
    result: ResultOf,
}

/// The result of a call that waits.
enum ResultOf {
    Missing,
    Supplied(Box<Supplied>),
    /// The call has it, and is about to end.
    Taken,
}

impl Place {
    fn is_open(&self) -> bool {
        matches!(self.result, ResultOf::Missing)
    }

    fn is_named(&self, id: &str) -> bool {
        &*self.pending.call_id == id || self.pending.execution_id.to_string() == id
    }
}

pub(crate) type Supplied = Result<ToolOutput, ToolError>;

impl AwaitingResults {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.table().waiting.push(Place { pending, result: ResultOf::Missing });
    }

    /// Takes a call off the list, however its waiting ended.
    pub(crate) fn forget(&self, id: ExecutionId) {
        self.table().waiting.retain(|place| place.pending.execution_id != id);
    }

    /// The calls that nobody has answered yet.
    pub(crate) fn list(&self) -> Vec<PendingCall> {
        let table = self.table();
        table.waiting.iter().filter(|place| place.is_open()).map(|place| place.pending.clone()).collect()
    }

    /// Gives a waiting call its result, by execution id or by the caller's own name for it.
    pub(crate) fn supply(&self, id: &str, supplied: Supplied) -> Result<(), SubmitError> {
        let mut table = self.table();
        let open = table.waiting.iter().enumerate().filter(|(_, place)| place.is_open());
        let mut found = open.filter(|(_, place)| place.is_named(id)).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (None, _) if table.has_result(id) => Err(SubmitError::AlreadySubmitted(id.to_owned())),
            (None, _) if !table.waiting.iter().any(Place::is_open) => Err(SubmitError::NotAwaiting),
            (None, _) => Err(SubmitError::Unknown(id.to_owned())),
            (Some(_), Some(_)) => Err(SubmitError::Ambiguous(id.to_owned())),
            (Some(at), None) => {
                table.waiting[at].result = ResultOf::Supplied(Box::new(supplied));
                let pending = table.waiting[at].pending.clone();
                table.remember(&pending);
                drop(table);
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
        let mut table = self.table();
        let place = table.waiting.iter_mut().find(|place| place.pending.execution_id == id)?;
        match std::mem::replace(&mut place.result, ResultOf::Taken) {
            ResultOf::Supplied(supplied) => Some(*supplied),
            other => {
                place.result = other;
                None
            }
        }
    }
}

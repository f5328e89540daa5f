//! What an engine is made of, and what every part of it may ask: putting a call on the list, watching, cancelling.

use crate::{
    events::Observer,
    live_calls::LiveCalls,
    pipeline::{
        schedule::controls::AdmissionControls,
        types::{Arrival, CallState, shutting_down},
    },
    ports::Ports,
    registry::ToolsEvent,
    task_table::TaskTable,
    telemetry,
};
use haft_core::{BatchId, ErrorCode, ExecutionId, ToolError};
use haft_sdk::CancelReason;
use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::broadcast;

/// A call or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One call.
    Call(ExecutionId),
    /// A batch with all its calls.
    Batch(BatchId),
}

impl From<ExecutionId> for Target {
    fn from(id: ExecutionId) -> Self {
        Target::Call(id)
    }
}

impl From<BatchId> for Target {
    fn from(id: BatchId) -> Self {
        Target::Batch(id)
    }
}

/// What an engine is made of. Everything that callers hold refers to one.
pub(crate) struct Inner {
    pub(crate) ports: Arc<Ports>,
    pub(crate) live: LiveCalls,
    pub(crate) controls: AdmissionControls,
    pub(crate) tasks: TaskTable,
    pub(crate) tools_events: broadcast::Sender<ToolsEvent>,
    pub(crate) closed: AtomicBool,
    pub(crate) runtime: OnceLock<tokio::runtime::Handle>,
}

impl Inner {
    /// Where work is done that nobody waits for.
    pub(crate) fn runtime(&self) -> Background {
        Background(tokio::runtime::Handle::try_current().ok().or_else(|| self.runtime.get().cloned()))
    }

    /// Notes the runtime that calls are made on.
    pub(crate) fn note_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let _ = self.runtime.set(runtime);
        }
    }

    /// Puts a call on the list; with the reason, if it cannot be taken.
    pub(crate) fn open(&self, arrival: Arrival) -> (Arc<CallState>, Option<Box<ToolError>>) {
        let at = arrival.at;
        let ports = &self.ports;
        let mut refusal = self.closed.load(Ordering::Acquire).then(|| Box::new(shutting_down()));
        let wanted = arrival.options.execution_id;
        let id = match wanted {
            Some(id) if self.live.executions.call(id).is_some() => {
                refusal = Some(id_in_use(&id));
                ExecutionId::at(at)
            }
            Some(id) => id,
            None => ExecutionId::at(at),
        };
        let mut call = CallState::new(ports, id, arrival);
        loop {
            let opened = Arc::new(call);
            if self.live.executions.begin(&opened) {
                return (opened, refusal);
            }
            // Somebody took the wanted id a moment ago. Nobody else has this call yet, so it can get another one.
            refusal = Some(id_in_use(&opened.id));
            let Some(mut again) = Arc::into_inner(opened) else { unreachable!("it was not taken") };
            again.id = ExecutionId::at(at);
            call = again;
        }
    }

    /// Watches a call or a batch; `None` where there is none of that id, or not any more.
    pub(crate) fn observe(&self, target: Target) -> Option<Observer> {
        match target {
            Target::Call(id) => self.live.executions.call(id).map(|call| Observer::new(call as _)),
            Target::Batch(id) => self.live.executions.batch(id).map(|batch| Observer::new(batch as _)),
        }
    }

    /// Whether it is a flow that may still make calls.
    pub(crate) fn goes_on(&self, target: Target) -> bool {
        match target {
            Target::Call(_) => false,
            Target::Batch(id) => {
                self.live.executions.batch(id).is_some_and(|batch| batch.goes_on.load(Ordering::Acquire))
            }
        }
    }

    /// The calls of a target that have no result yet.
    pub(crate) fn unfinished(&self, target: Target) -> Vec<Arc<CallState>> {
        match target {
            Target::Call(id) => {
                let call = self.live.executions.call(id);
                call.into_iter().filter(|call| !call.finished.load(Ordering::Acquire)).collect()
            }
            Target::Batch(id) => {
                let mut calls = self.live.executions.unfinished();
                calls.retain(|call| call.batch_place().is_some_and(|(batch, _)| batch == id));
                calls
            }
        }
    }

    /// Cancels a call, or a batch with all its calls. False where nothing of that id runs.
    pub(crate) fn cancel(&self, target: Target, reason: CancelReason, note: Option<&str>) -> bool {
        let goes_on = self.goes_on(target);
        // First, so that a flow that makes a call just now sees it, or its call is among those below.
        if let Target::Batch(id) = target
            && let Some(batch) = self.live.executions.batch(id)
        {
            batch.cancel.cancel(reason, note);
        }
        let unfinished = self.unfinished(target);
        for call in &unfinished {
            call.stop(reason, note);
        }
        let is_found = goes_on || !unfinished.is_empty();
        if is_found {
            match target {
                Target::Call(id) => telemetry::cancellation_requested(&id),
                Target::Batch(id) => telemetry::cancellation_requested(&id),
            }
        }
        is_found
    }
}

/// A runtime, if any is known.
pub(crate) struct Background(Option<tokio::runtime::Handle>);

impl Background {
    /// Does something that nobody waits for. Without a runtime, here and now, on one of its own.
    pub(crate) fn end_there(self, work: impl Future<Output = ()> + Send + 'static) {
        match self.0 {
            Some(runtime) => drop(runtime.spawn(work)),
            None => {
                if let Ok(own) = tokio::runtime::Builder::new_current_thread().enable_time().build() {
                    own.block_on(work);
                }
            }
        }
    }
}

/// The refusal of a call whose id another one has.
pub(crate) fn id_in_use(id: &dyn std::fmt::Display) -> Box<ToolError> {
    let text = format!("The execution id {id} is in use. Use a new one, or none");
    Box::new(ToolError::new(ErrorCode::DuplicateCallId, text))
}

//! Tasks: calls that go on without their callers.
//!
//! A task is an ordinary call on the ordinary way; what is new is only who waits for it. It is on record before its id
//! is given out, its end is written with the outcome of its execution, and anybody with the id can ask from anywhere.

pub(crate) mod execution;
pub(crate) mod keeper;

use crate::{events::Observer, inner::Inner};
use haft_core::{
    ContentPart, ErrorCode, Status, Task, TaskId, TaskPage, TaskQuery, ToolError, ToolResult,
    port::{StoreError, TaskCancel, TaskStore},
};
use haft_sdk::CancelReason;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// How one task is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOptions {
    /// How long after its end; the engine's setting where absent, thirty days at most.
    pub ttl: Option<Duration>,
    /// What its runner has to know about where it runs.
    pub place: Option<Value>,
}

/// The tasks of one tenant. Errors are TASK_NOT_FOUND, TASK_FINISHED, TASK_CANCEL_FAILED and STORE_UNAVAILABLE.
#[derive(Clone)]
pub struct Tasks {
    pub(crate) engine: Arc<Inner>,
    pub(crate) tenant: Arc<str>,
}

impl Tasks {
    fn store(&self) -> Result<&dyn TaskStore, ToolError> {
        self.engine.ports.store.tasks().map_err(unavailable)
    }

    /// One task as it stands: its state, how far it is, what it has put out, and its result once it has one.
    pub async fn get(&self, id: &TaskId) -> Result<Task, ToolError> {
        let found = self.store()?.find(&self.tenant, id).await.map_err(unavailable)?;
        let mut task = found.ok_or_else(|| not_found(id))?;
        self.engine.tasks.add_what_is_known(&mut task);
        Ok(task)
    }

    /// Its result. `None` where it is not over.
    pub async fn result(&self, id: &TaskId) -> Result<Option<Arc<ToolResult>>, ToolError> {
        Ok(self.get(id).await?.result)
    }

    /// Waits until it is over, or waits for a person, or the time is over, and gives it as it stands then.
    pub async fn wait(&self, id: &TaskId, at_most: Option<Duration>) -> Result<Task, ToolError> {
        let until = at_most.map(|time| tokio::time::Instant::now() + time);
        loop {
            let mut changed = std::pin::pin!(self.engine.tasks.changed());
            changed.as_mut().enable();
            let task = self.get(id).await?;
            let now = tokio::time::Instant::now();
            if task.state.is_over()
                || task.state == haft_core::TaskState::AwaitingApproval
                || until.is_some_and(|until| now >= until)
            {
                return Ok(task);
            }
            // One that another process runs is asked about; that one cannot tell this one.
            let look = now + task.poll_after(self.engine.ports.clock.now()).unwrap_or_default();
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until.map_or(look, |until| until.min(look))) => {}
            }
        }
    }

    /// Tasks, newest first, without their results.
    pub async fn list(&self, query: TaskQuery) -> Result<TaskPage, ToolError> {
        let mut page = self.store()?.list(&self.tenant, query).await.map_err(unavailable)?;
        for task in &mut page.tasks {
            self.engine.tasks.add_what_is_known(task);
            task.result = None;
        }
        Ok(page)
    }

    /// Ends a task, whichever process runs it, and gives it as it stands then: over, or asked to end.
    pub async fn cancel(&self, id: &TaskId, note: Option<&str>) -> Result<Task, ToolError> {
        let failed = |error: StoreError| ToolError::from(ErrorCode::TaskCancelFailed).with_diagnostics(error);
        match self.store()?.cancel(&self.tenant, id).await.map_err(failed)? {
            TaskCancel::Unknown => return Err(not_found(id)),
            TaskCancel::Over => {
                let text = format!("The task {} has ended already", shown(id));
                return Err(ToolError::new(ErrorCode::TaskFinished, text));
            }
            TaskCancel::Ended => self.engine.tasks.forget(id),
            TaskCancel::Asked => {
                if let Some(execution) = self.engine.tasks.execution_of(id) {
                    self.engine.cancel(execution.into(), CancelReason::User, note);
                }
            }
        }
        self.get(id).await
    }

    /// Watches a task that this process executes; `None` for any other.
    pub fn observe(&self, id: &TaskId) -> Option<Observer> {
        let execution = self.engine.tasks.execution_of(id)?;
        let call = self.engine.live.executions.call(execution)?;
        // Another tenant's task is not shown, even to a caller who guesses its id.
        (call.context.tenant == self.tenant).then(|| Observer::new(call as _))
    }

    /// The answer about a task that is not there. A task that the caller may not see is answered with it as well, so
    /// that the two cannot be told apart.
    pub fn not_found(id: &TaskId) -> ToolError {
        not_found(id)
    }
}

fn shown(id: &TaskId) -> String {
    haft_core::text::one_line(id.as_str(), 80)
}

fn not_found(id: &TaskId) -> ToolError {
    let text = format!("There is no task {}, or not any more", shown(id));
    ToolError::new(ErrorCode::TaskNotFound, text)
}

fn unavailable(error: StoreError) -> ToolError {
    let text = "What is known about tasks could not be reached. Try again later";
    ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error)
}

/// What a caller is told in place of a result: a task was taken.
fn taken_parts(task: &Task, now: jiff::Timestamp) -> (Value, Vec<ContentPart>, Status) {
    let poll = task.poll_after(now).unwrap_or_default();
    let output = json!({
        "taskId": task.id,
        "executionId": task.execution_id,
        "state": task.state,
        "pollAfterMs": u64::try_from(poll.as_millis()).unwrap_or(u64::MAX),
    });
    let text = format!("Taken as the task {}: it runs without you. Ask for its result by that id", task.id);
    (output, vec![ContentPart::text(text)], Status::Success)
}

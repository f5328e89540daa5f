//! The seam for calls that go on without their client: the tasks extension of 2026-07-28.
//!
//! What runs such calls and remembers them stands behind [`Tasks`]. Here is only what the protocol says about them.

use super::answer::answer;
use haft_core::{CallContext, ErrorCode, Status, ToolDefinition, ToolError, ToolResult, port::BoxFuture};
use haft_engine::Request;
use jiff::Timestamp;
use rmcp::{
    ErrorData,
    model::{DetailedTask, JsonObject, Task, TaskPayload, TaskStatus},
};
use serde::Serialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Runs calls that go on without their client, and remembers them.
///
/// Errors are those of the table: `TASK_NOT_FOUND` where the caller has no such task, whoever else may have one.
pub trait Tasks: Send + Sync {
    /// Whether calls of that tool may become tasks, for a client that knows tasks, and how long the client waits for the result
    /// before one is made of it.
    fn patience(&self, definition: &ToolDefinition) -> Option<Duration>;

    /// Takes a call. When this returns, it is on record and can be asked about.
    fn submit<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<TaskNow, ToolError>>;

    /// A task as it stands, after it was waited for at most so long.
    fn get<'a>(
        &'a self,
        caller: &'a CallContext,
        id: &'a str,
        at_most: Duration,
    ) -> BoxFuture<'a, Result<TaskNow, ToolError>>;

    /// Asks a task to end. One that has ended already is no error.
    fn cancel<'a>(&'a self, caller: &'a CallContext, id: &'a str) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// A task as it stands at one moment.
#[derive(Clone, Debug)]
pub struct TaskNow {
    /// By which it is asked about. Nobody who was not told can guess it.
    pub id: String,
    /// When it was taken.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
    /// How long it is kept; `None` for ever.
    pub ttl: Option<Duration>,
    /// When to ask again.
    pub poll: Duration,
    /// How far it is, in words.
    pub message: Option<String>,
    /// Its result, once it has one.
    pub result: Option<Arc<ToolResult>>,
}

impl TaskNow {
    /// What a client is told of a task that was just taken.
    pub(super) fn taken(&self) -> Task {
        let mut task = Task::new(
            &self.id,
            TaskStatus::Working,
            self.created_at.to_string(),
            self.updated_at.to_string(),
        )
        .with_poll_interval_ms(millis(self.poll).max(1));
        task.ttl_ms = self.ttl.map(millis);
        task.status_message.clone_from(&self.message);
        task
    }

    /// The same with how it ended, if it has.
    pub(super) fn detailed(&self) -> DetailedTask {
        DetailedTask::new(self.taken(), self.payload())
    }

    fn payload(&self) -> TaskPayload {
        let Some(result) = &self.result else { return TaskPayload::Working };
        if result.status == Status::Cancelled {
            return TaskPayload::Cancelled;
        }
        // What broke inside is no answer of the tool's.
        if let Some(error) = result.error.as_ref().filter(|error| error.code == ErrorCode::Panicked) {
            let error = ErrorData::internal_error(error.message.clone(), None);
            return TaskPayload::Failed { error: object(&error) };
        }
        match answer(ToolResult::clone(result), true) {
            Ok(answer) => TaskPayload::Completed { result: object(&answer) },
            Err(error) => TaskPayload::Failed { error: object(&error) },
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

/// What the protocol says where a task cannot be given.
pub(super) fn refused(error: ToolError) -> ErrorData {
    match error.code {
        ErrorCode::TaskNotFound => ErrorData::invalid_params(error.message, None),
        _ => {
            tracing::warn!(code = %error.code, diagnostics = error.diagnostics, "a task could not be given");
            ErrorData::internal_error(error.message, None)
        }
    }
}

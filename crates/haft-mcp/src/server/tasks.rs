//! The seam for calls that go on without their client: the tasks extension of 2026-07-28.
//!
//! What runs such calls and remembers them stands behind [`Tasks`]. Here is only what the protocol says about them.

use super::{answer::answer, approval, client::Client, relay::relay};
use haft_core::{
    ApprovalId, ApprovalRequest, CallContext, Decision, ErrorCode, ExecutionId, Status, ToolDefinition,
    ToolError, ToolResult, port::BoxFuture,
};
use haft_engine::Request;
use jiff::Timestamp;
use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CreateTaskResult, DetailedTask, InputRequests, InputResponses, JsonObject,
        ProgressToken, Task, TaskPayload, TaskStatus,
    },
};
use serde::Serialize;
use serde_json::Value;
use std::{convert::Infallible, sync::Arc, time::Duration};

/// Runs calls that go on without their client, and remembers them.
///
/// Errors are those of the table: `TASK_NOT_FOUND` where the caller has no such task, even if somebody else has one.
pub trait Tasks: Send + Sync {
    /// Whether calls of that tool may become tasks, for a client that knows tasks, and how long the client waits for
    /// the result before one is made of it.
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

    /// What a person said about the question that a task of theirs [asks](TaskNow::asks). Where somebody else was
    /// faster, that counts. Needed by those whose tasks ask.
    fn answer<'a>(
        &'a self,
        _caller: &'a CallContext,
        _question: &'a ApprovalId,
        _decision: Decision,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Err(ErrorCode::NotSupported.into())))
    }
}

/// Hands a call over, and waits for its result for a while: what is quick is answered as ever. A client that cancels
/// meanwhile has not heard of a task, so there is none to go on.
pub(super) async fn hand_over(
    tasks: &dyn Tasks,
    patience: Duration,
    request: Request,
    client: &Client,
    progress: Option<ProgressToken>,
    cancelled: impl Future<Output = ()>,
) -> Result<CallToolResponse, ErrorData> {
    let caller = Arc::clone(&request.context);
    let walk = request.options.execution_id;
    let task = tasks.submit(request).await.map_err(refused)?;
    let waited = tokio::select! {
        biased;
        waited = tasks.get(&caller, &task.id, patience) => waited.map_err(refused)?,
        () = cancelled => {
            tasks.cancel(&caller, &task.id).await.map_err(refused)?;
            // Nobody reads it: a cancelled request has no answer.
            return Err(ErrorData::internal_error("the call was cancelled", None));
        }
        never = tell(client, walk, progress) => match never {},
    };
    match &waited.result {
        Some(result) => answer(ToolResult::clone(result), true).map(Into::into),
        None => Ok(CreateTaskResult::new(waited.taken()).into()),
    }
}

/// Tells a client how far a task is, until nobody polls this.
async fn tell(client: &Client, walk: Option<ExecutionId>, progress: Option<ProgressToken>) -> Infallible {
    let engine = client.server().engine();
    if progress.is_some() || client.wants_log() {
        // It is on record, and begins a moment later.
        while let Some(walk) = walk {
            if let Some(observer) = engine.observe(walk) {
                relay(client, observer, progress).await;
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    std::future::pending().await
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
    /// What a person has to approve before it goes on.
    pub asks: Option<ApprovalRequest>,
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

    /// The task with how it ended, if it has; and with its question, where the client `asks` its person.
    pub(super) fn detailed(&self, asks: bool) -> DetailedTask {
        let payload = match asks.then(|| self.approval()).flatten() {
            Some(input_requests) => TaskPayload::InputRequired { input_requests },
            None => self.payload(),
        };
        DetailedTask::new(self.taken(), payload)
    }

    fn approval(&self) -> Option<InputRequests> {
        let request = self.asks.as_ref().filter(|_| self.result.is_none())?;
        Some([(approval_name(&request.id), approval::form(request).ok()??)].into())
    }

    /// What a person decided, where an answer to its question is among these.
    pub(super) fn answered(&self, answers: &InputResponses) -> Option<(&ApprovalId, Decision)> {
        let request = self.asks.as_ref()?;
        let question = &request.id;
        match approval::decision(answers.get(&approval_name(question))?.clone()) {
            Decision::Unanswered => None,
            // Nobody was shown it here.
            Decision::Approve if !approval::can_be_shown(request) => None,
            decision => Some((question, decision)),
        }
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

/// The name of a question of a task: no two that it ever asks have the same.
fn approval_name(question: &ApprovalId) -> String {
    format!("haft_approval_{question}")
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

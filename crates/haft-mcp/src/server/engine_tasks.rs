//! Tasks that the engine itself runs and remembers.

use super::{
    approval::CHANNEL,
    tasks::{TaskNow, Tasks},
};
use haft_core::{
    ApprovalId, ApprovalRequest, CallContext, Decision, ErrorCode, Task, TaskId, TaskState, ToolDefinition,
    ToolError,
    port::{ApprovalState, BoxFuture},
};
use haft_engine::{ApprovalError, Engine, Reply, Request, TaskOptions};
use std::time::Duration;

/// A call that may take longer than this can become a task.
const LONG: Duration = Duration::from_secs(30);
/// How long a question may be open that is answered at once.
const MOMENT: Duration = Duration::from_millis(10);
/// How long a client waits for a result before it is given a task instead.
const PATIENCE: Duration = Duration::from_secs(1);

/// The tasks of an engine: calls of tools that may run for more than half a minute, by their own deadline or by the
/// engine's.
///
/// The caller that made a call can ask about its task: the same person through the same agent. For anybody else it is
/// not there.
///
/// ```
/// # use haft_mcp::server::{Callers, EngineTasks, McpServer};
/// # use std::sync::Arc;
/// # fn offer(engine: haft_engine::Engine) -> McpServer {
/// let tasks = Arc::new(EngineTasks::new(engine.clone()));
/// McpServer::builder(engine, Callers::PerRequest).tasks(tasks).build()
/// # }
/// ```
pub struct EngineTasks {
    engine: Engine,
    patience: Duration,
}

impl EngineTasks {
    /// Those of that engine.
    pub fn new(engine: Engine) -> Self {
        EngineTasks { engine, patience: PATIENCE }
    }

    /// How long a client waits for a result before it is given a task instead; a second, unless somebody says
    /// otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The task, where it is the caller's.
    async fn found(&self, caller: &CallContext, id: &TaskId, at_most: Duration) -> Result<Task, ToolError> {
        let tasks = self.engine.tasks(&caller.tenant);
        let until = tokio::time::Instant::now() + at_most;
        let task = loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let task = match left.is_zero() {
                true => tasks.get(id).await?,
                false => tasks.wait(id, Some(left)).await?,
            };
            // A question that its own host answers is open for a moment, while the call runs.
            let is_answered_soon =
                task.state == TaskState::AwaitingApproval && tasks.observe(id).is_some() && !left.is_zero();
            if !is_answered_soon {
                break task;
            }
            tokio::time::sleep(MOMENT).await;
        };
        match task.agent == caller.agent && task.user == caller.user {
            true => Ok(task),
            false => Err(haft_engine::Tasks::not_found(id)),
        }
    }

    /// What it asks a person, while that can be answered.
    async fn approval(&self, caller: &CallContext, id: &ApprovalId) -> Option<ApprovalRequest> {
        let found = self.engine.approvals(&caller.tenant).get(id).await.ok()?;
        (found.state == ApprovalState::Open).then_some(found.request)
    }

    async fn now(&self, caller: &CallContext, task: Task) -> TaskNow {
        let asks = match &task.approval_id {
            Some(id) if !task.state.is_over() => self.approval(caller, id).await,
            _ => None,
        };
        let kept = task.expires_at.map(|until| until.duration_since(task.created_at));
        TaskNow {
            id: task.id.to_string(),
            created_at: task.created_at,
            updated_at: task.updated_at,
            // Counted from its end, which is not known before.
            ttl: kept.and_then(|kept| Duration::try_from(kept).ok()),
            poll: task.poll_after(jiff::Timestamp::now()).unwrap_or_default(),
            message: Some(task.status_message()),
            asks,
            result: task.result,
        }
    }
}

impl Tasks for EngineTasks {
    fn patience(&self, definition: &ToolDefinition) -> Option<Duration> {
        let deadline = definition.constraints.default_timeout;
        let deadline = deadline.unwrap_or(self.engine.settings().default_timeout);
        (deadline > LONG).then_some(self.patience)
    }

    fn submit<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<TaskNow, ToolError>> {
        Box::pin(async move {
            let caller = std::sync::Arc::clone(&request.context);
            let task = self.engine.submit(request, TaskOptions::default()).await?;
            Ok(self.now(&caller, task).await)
        })
    }

    fn get<'a>(
        &'a self,
        caller: &'a CallContext,
        id: &'a str,
        at_most: Duration,
    ) -> BoxFuture<'a, Result<TaskNow, ToolError>> {
        Box::pin(async move {
            let task = self.found(caller, &TaskId::from_text(id), at_most).await?;
            Ok(self.now(caller, task).await)
        })
    }

    fn cancel<'a>(&'a self, caller: &'a CallContext, id: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let id = TaskId::from_text(id);
            self.found(caller, &id, Duration::ZERO).await?;
            match self.engine.tasks(&caller.tenant).cancel(&id, None).await {
                Err(error) if error.code == ErrorCode::TaskFinished => Ok(()),
                done => done.map(drop),
            }
        })
    }

    fn answer<'a>(
        &'a self,
        caller: &'a CallContext,
        question: &'a ApprovalId,
        decision: Decision,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let Some(reply) = Reply::of(decision) else { return Ok(()) };
            let by = caller.user.as_deref().unwrap_or(&caller.agent);
            match self.engine.approvals(&caller.tenant).answer(question, reply, by, CHANNEL).await {
                // Where somebody answered before, that counts.
                Ok(_) | Err(ApprovalError::NotOpen(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }
}

//! Calls that go on without their callers, as an engine is asked for them.

use super::Engine;
use crate::{
    pipeline::{intake, preview::Preview, types::shutting_down},
    request::{BatchRequest, Request},
    tasks::{TaskOptions, Tasks, execution, keeper},
};
use haft_core::{
    BatchOptions, CallOptions, ErrorCode, ExecutionId, LONGEST_TTL, Task, TaskId, ToolError, ToolResult,
    port::{ClaimedTask, NewTask, StoreError},
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

impl Engine {
    /// Takes a call that goes on without its caller. When this returns, the call is on record and runs, or will; asking
    /// about it is [`tasks`](Engine::tasks)' affair. A call that cannot run (an unknown tool, bad arguments, a denial) is
    /// refused here, and there is no task.
    ///
    /// ```no_run
    /// # async fn run(engine: haft_engine::Engine) -> Result<(), haft_core::ToolError> {
    /// use haft_core::ToolCall;
    /// let call = ToolCall::new("build", serde_json::json!({"target": "production"}));
    /// let task = engine.submit(call, Default::default()).await?;
    /// let done = engine.tasks("local").wait(&task.id, None).await?;
    /// println!("{}", done.status_message());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn submit(&self, request: impl Into<Request>, options: TaskOptions) -> Result<Task, ToolError> {
        let request = request.into();
        let engine = self.inner();
        let settings = &engine.ports.settings.tasks;
        let context = &request.context;
        context.check().map_err(|problem| ToolError::new(ErrorCode::PermissionDenied, problem))?;
        if engine.closed.load(Ordering::Acquire) {
            return Err(shutting_down());
        }
        if engine.tasks.count() >= settings.max_open {
            let text =
                format!("{} tasks are under way, and no more are taken. Try again later", settings.max_open);
            return Err(ToolError::new(ErrorCode::ConcurrentLimitExceeded, text));
        }
        if engine.tasks.count_of(&context.tenant) >= settings.max_open_per_tenant {
            let most = settings.max_open_per_tenant;
            let text =
                format!("{most} tasks of this tenant are under way, and no more are taken. Try again later");
            return Err(ToolError::new(ErrorCode::ConcurrentLimitExceeded, text));
        }
        if let Some(refused) = self.refused(&request).await {
            intake::refuse_call(engine, request, refused.clone()).await;
            return Err(refused);
        }
        let at = engine.ports.clock.now();
        let options_of_call = CallOptions { detached: false, ..CallOptions::clone(&request.options) };
        let new = NewTask {
            id: TaskId::random(),
            execution_id: options_of_call.execution_id.unwrap_or_else(|| ExecutionId::at(at)),
            context: Arc::clone(context),
            call: request.call,
            options: CallOptions { execution_id: None, ..options_of_call },
            runner: Arc::clone(&settings.runner),
            is_mine: true,
            place: options.place,
            ttl: options.ttl.unwrap_or(settings.ttl).min(LONGEST_TTL),
            created_at: at,
            start_by: None,
        };
        let task = Task::taken(&new);
        execution::take(engine, new, request.approver).await?;
        Ok(task)
    }

    /// Why a call would not run, as far as that is known before it is begun.
    async fn refused(&self, request: &Request) -> Option<ToolError> {
        let call = CallOptions { detached: false, ..CallOptions::clone(&request.options) };
        let options = BatchOptions { call, ..BatchOptions::default() };
        let batch = BatchRequest {
            calls: vec![request.call.clone()],
            context: Arc::clone(&request.context),
            options,
            approver: request.approver.clone(),
        };
        match self.plan(batch).await.pop() {
            Some(Preview::Refused(error)) => Some(error),
            _ => None,
        }
    }

    /// The tasks of one tenant.
    pub fn tasks(&self, tenant: &str) -> Tasks {
        Tasks { engine: Arc::clone(self.inner()), tenant: tenant.into() }
    }

    /// Goes on with what processes of the same kind left: tasks whose question was answered, and those that nobody has
    /// begun. From now on it looks for such tasks until it is shut down. How many it took over at once.
    pub async fn resume_tasks(&self) -> Result<usize, StoreError> {
        let engine = self.inner();
        engine.tasks.stay();
        keeper::wake(engine);
        keeper::take_over(engine).await
    }

    /// Runs a task that this process has [taken over](haft_core::port::TaskStore::take_over).
    pub fn run_claimed(&self, task: ClaimedTask) {
        execution::run(self.inner(), task, None);
    }

    /// The tasks that are under way in this process.
    pub fn running_tasks(&self) -> usize {
        self.inner().tasks.count()
    }

    /// What `execute` answers to a call that asks to be detached: where to ask about it.
    pub(crate) async fn detach(&self, request: Request) -> ToolResult {
        let call = request.call.clone();
        let arrived = Instant::now();
        let taken = self.submit(request, TaskOptions::default()).await;
        execution::ticket(self.inner(), call, arrived.elapsed(), taken)
    }
}

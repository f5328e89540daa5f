//! Tasks: calls that go on without their callers.
//!
//! A task is an ordinary call on the ordinary walk; what is new is only who waits for it. It is on record before its id
//! is given out, its end is written with the outcome of its walk, and whoever has the id can ask from anywhere.

mod keeper;
mod walk;

pub(crate) use keeper::Keeper;
pub(crate) use walk::OfTask;

use crate::{
    engine::{Engine, Inner},
    event_log::Observer,
    request::Request,
};
use haft_core::{
    CallOptions, ContentPart, ErrorCode, ExecutionId, LONGEST_TTL, Status, Task, TaskId, TaskPage, TaskQuery,
    ToolError, ToolResult,
    port::{ClaimedTask, NewTask, StoreError, TaskCancel, TaskStore},
};
use haft_sdk::CancelReason;
use serde_json::{Value, json};
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// How an engine runs tasks.
///
/// ```
/// let tasks = haft_engine::TaskSettings::default();
/// assert_eq!(tasks.ttl.as_secs(), 24 * 60 * 60);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSettings {
    /// A name for the kind of process that this is. After a restart, a process of the same kind goes on with what waited
    /// for a person; no other does.
    pub runner: Arc<str>,
    /// Whether it takes over tasks by itself: those whose question was answered, and those that wait for a runner.
    pub takes_over: bool,
    /// Tasks that it takes over while so many run.
    pub max_taken: usize,
    /// Tasks that may be under way; one more is refused with `CONCURRENT_LIMIT_EXCEEDED`.
    pub max_open: usize,
    /// Of these, those of one tenant.
    pub max_open_per_tenant: usize,
    /// How long a task is kept after its end, where it does not say.
    pub ttl: Duration,
    /// How often progress is written down, and wishes to cancel are looked for.
    pub tick: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        TaskSettings {
            runner: "engine".into(),
            takes_over: true,
            max_taken: 10,
            max_open: 1000,
            max_open_per_tenant: 500,
            ttl: Duration::from_secs(24 * 60 * 60),
            tick: Duration::from_secs(1),
        }
    }
}

/// How one task is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOptions {
    /// How long after its end; the engine's setting where absent, thirty days at most.
    pub ttl: Option<Duration>,
    /// What its runner has to know about where it runs.
    pub place: Option<Value>,
}

impl Engine {
    /// Takes a call that goes on without its caller. When this returns, the call is on record and runs, or will; asking
    /// about it is [`tasks`](Engine::tasks)' affair. What is wrong with the call is the task's result.
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
            return Err(crate::run::cancelled_with(None, CancelReason::Shutdown));
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
        walk::take(engine, new, request.approver).await?;
        Ok(task)
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

    /// Runs a task that this process has [taken over](TaskStore::take_over).
    pub fn run_claimed(&self, task: ClaimedTask) {
        walk::run(self.inner(), task, None);
    }

    /// The tasks that are under way in this process.
    pub fn running_tasks(&self) -> usize {
        self.inner().tasks.count()
    }

    /// What `execute` answers to a call that asks to be detached: where to ask about it.
    pub(crate) async fn detach(&self, request: Request) -> ToolResult {
        let (call_id, tool) = (Arc::clone(&request.call.id), Arc::clone(&request.call.name));
        let arrived = Instant::now();
        let taken = self.submit(request, TaskOptions::default()).await;
        walk::ticket(self.inner(), call_id, tool, arrived.elapsed(), taken)
    }
}

/// The tasks of one tenant. Errors are TASK_NOT_FOUND, TASK_FINISHED, TASK_CANCEL_FAILED and STORE_UNAVAILABLE.
#[derive(Clone)]
pub struct Tasks {
    engine: Arc<Inner>,
    tenant: Arc<str>,
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
                if let Some(walk) = self.engine.tasks.walk_of(id) {
                    Engine::from_inner(Arc::clone(&self.engine)).cancel(walk, CancelReason::User, note);
                }
            }
        }
        self.get(id).await
    }

    /// Watches a task that is on its walk in this process; `None` for any other.
    pub fn observe(&self, id: &TaskId) -> Option<Observer> {
        let walk = self.engine.tasks.walk_of(id)?;
        let frame = self.engine.executions.frame(walk)?;
        // Whoever guesses another tenant's id must not see it.
        (frame.context.tenant == self.tenant).then(|| Observer::new(frame as _))
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

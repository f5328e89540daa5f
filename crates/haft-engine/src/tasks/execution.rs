//! One task: taken, executed, ended.

use super::{keeper, taken_parts, unavailable};
use crate::{
    events::Observer,
    inner::Inner,
    pipeline::{intake, types::TaskOrigin},
    request::Request,
};
use haft_core::{
    CallOptions, ContentPart, ErrorCode, ErrorInfo, ExecutionId, ResultMetadata, Status, Task, TaskId,
    TaskState, ToolCall, ToolError, ToolResult,
    port::{Approver, ClaimedTask, NewTask, StoreError, TaskStore},
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::oneshot;

/// Takes a task and begins it. In a task of its own, so that a caller that goes away while it is written down leaves
/// nothing that is on record and that nobody runs.
pub(crate) async fn take(
    engine: &Arc<Inner>,
    new: NewTask,
    approver: Option<Arc<dyn Approver>>,
) -> Result<(), ToolError> {
    let nobody = |_| ToolError::new(ErrorCode::ExecutionFailed, "Detached calls need a runtime to run on");
    let runtime = tokio::runtime::Handle::try_current().map_err(nobody)?;
    let (told, heard) = oneshot::channel();
    let engine = Arc::clone(engine);
    runtime.spawn(async move {
        let task = ClaimedTask {
            id: new.id.clone(),
            execution_id: new.execution_id,
            context: Arc::clone(&new.context),
            call: new.call.clone(),
            options: new.options.clone(),
            place: None,
            approval: None,
        };
        // Counted before it is on record, so that no more are taken than may be.
        engine.tasks.begin(&task.id, task.execution_id, Arc::clone(&task.context.tenant));
        let submitted = match engine.ports.store.tasks() {
            Ok(store) => store.submit(new).await,
            Err(error) => Err(error),
        };
        match submitted {
            Ok(()) => {
                let _ = told.send(Ok(()));
                begin(&engine, task, approver).await;
            }
            Err(error) => {
                engine.tasks.end(&task.id, false);
                let _ = told.send(Err(unavailable(error)));
            }
        }
    });
    heard.await.unwrap_or_else(|_| Err(ErrorCode::StoreUnavailable.into()))
}

/// Runs a task that this process has claimed.
pub(crate) fn run(engine: &Arc<Inner>, task: ClaimedTask, approver: Option<Arc<dyn Approver>>) {
    engine.tasks.begin(&task.id, task.execution_id, Arc::clone(&task.context.tenant));
    let inner = Arc::clone(engine);
    engine.runtime().end_there(async move { begin(&inner, task, approver).await });
}

/// How often it is tried to write down that a task begins.
const TRIES: u32 = 5;

async fn begin(engine: &Arc<Inner>, task: ClaimedTask, approver: Option<Arc<dyn Approver>>) {
    keeper::wake(engine);
    let (id, execution) = (task.id.clone(), task.execution_id);
    match began(engine, &id, execution).await {
        Ok(true) => {}
        // Somebody ended it; or it cannot be written down, and then it does not begin: the next one to look after what
        // this process leaves says that it never started.
        Ok(false) | Err(_) => return engine.tasks.end(&id, false),
    }
    let request = Request {
        call: task.call,
        context: task.context,
        options: Arc::new(CallOptions { execution_id: Some(execution), ..task.options }),
        approver,
    };
    let tenant = Arc::clone(&request.context.tenant);
    let of = TaskOrigin { id: id.clone(), asked_before: task.approval };
    let result = follow(engine, request, execution, of).await;
    match ended(engine, &tenant, &id).await {
        Some(state) => engine.tasks.end(&id, state == TaskState::AwaitingApproval),
        None => engine.tasks.end_unrecorded(&id, Arc::new(result)),
    }
}

async fn began(engine: &Arc<Inner>, id: &TaskId, execution: ExecutionId) -> Result<bool, StoreError> {
    let store: &dyn TaskStore = engine.ports.store.tasks()?;
    let mut tries = 0;
    loop {
        // A process that is about to end begins nothing.
        if engine.closed.load(Ordering::Acquire) {
            return Ok(false);
        }
        match store.begin(id, execution).await {
            Err(_) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            began => return began,
        }
    }
}

/// Executes the call, and notes on the way how far it is.
async fn follow(engine: &Arc<Inner>, request: Request, execution: ExecutionId, of: TaskOrigin) -> ToolResult {
    let id = of.id.clone();
    let mut executing = std::pin::pin!(intake::execute(engine, request, None, Some(Box::new(of))));
    let mut observer = engine.observe(execution.into());
    loop {
        let event = async {
            match &mut observer {
                Some(observer) => observer.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = &mut executing => {
                note_last(engine, &id, observer).await;
                return result;
            }
            event = event => match event {
                Some(event) => {
                    if let Some(asks) = engine.tasks.see(&id, &event.payload)
                        && let Ok(store) = engine.ports.store.tasks()
                    {
                        // Should this fail and the process be killed, the task says that it was interrupted. Not waited
                        // for here: the execution goes on.
                        let noting = store.asks(&id, asks);
                        tokio::select! {
                            biased;
                            result = &mut executing => {
                                note_last(engine, &id, observer).await;
                                return result;
                            }
                            _ = noting => {}
                        }
                    }
                }
                None => observer = None,
            },
        }
    }
}

/// Writes down how far a task was when it ended: what it said last may have come after the last look.
async fn note_last(engine: &Arc<Inner>, id: &TaskId, observer: Option<Observer>) {
    if let Some(mut observer) = observer {
        while let Some(event) = observer.next().await {
            engine.tasks.see(id, &event.payload);
        }
    }
    let (Some(note), Ok(store)) = (engine.tasks.to_note_of(id), engine.ports.store.tasks()) else { return };
    let _ = store.note(vec![(id.clone(), note)]).await;
}

/// Where the task stands now that its execution is over; `None` where that could not be written down.
async fn ended(engine: &Arc<Inner>, tenant: &str, id: &TaskId) -> Option<TaskState> {
    let store = engine.ports.store.tasks().ok()?;
    let task = store.find(tenant, id).await.ok()?;
    // One that is gone was kept for no time at all.
    let state = task.map_or(TaskState::Completed, |task| task.state);
    (state.is_over() || state == TaskState::AwaitingApproval).then_some(state)
}

/// What a caller is told at once: that a task was taken, or why not.
pub(crate) fn ticket(
    engine: &Inner,
    call: ToolCall,
    duration: Duration,
    taken: Result<Task, ToolError>,
) -> ToolResult {
    let at = engine.ports.clock.now();
    let execution_id = taken.as_ref().map_or_else(|_| ExecutionId::at(at), |task| task.execution_id);
    let metadata = ResultMetadata { duration, ..ResultMetadata::not_started(execution_id, at) };
    let (output, content, status, error, diagnostics) = match taken {
        Ok(task) => {
            let (output, content, status) = taken_parts(&task, at);
            (Some(output), content, status, None, None)
        }
        Err(error) => {
            let info = ErrorInfo {
                code: error.code,
                number: error.code.e_number().map(str::to_owned),
                message: error.message.clone(),
                retryable: error.code.is_retryable(),
                problems: error.problems,
                data: error.data,
            };
            let status = error.code.status().unwrap_or(Status::Failed);
            (None, vec![ContentPart::text(error.message)], status, Some(Box::new(info)), error.diagnostics)
        }
    };
    let (metadata, diagnostics) = (Arc::new(metadata), diagnostics.map(Into::into));
    let input = Some(engine.ports.redaction.arguments(&call.arguments).within(ToolResult::INPUT_BYTES));
    let (call_id, tool) = (call.id, call.name);
    ToolResult { call_id, tool, status, input, output, content, error, diagnostics, metadata }
}

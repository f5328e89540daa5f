//! `haft call --detach`: a call that a worker runs.

use super::{
    call::preview_help,
    console::{Console, QUIET},
    failure::Failure,
    setup::Setup,
    worker::{self, RUNNER, Starter, Whence},
};
use haft::{
    BatchRequest, CallContext, CallOptions, ExecutionId, Preview, Task, TaskId, ToolCall, port::NewTask,
};
use haft_core::text::people_text;
use jiff::{SignedDuration, Timestamp};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// What is known before the engine is made.
pub(super) struct Detach {
    pub(super) starter: Starter,
    pub(super) whence: Whence,
    pub(super) state: PathBuf,
}

/// Hands a call over, and says under which id it can be asked about.
pub(super) async fn run(
    detach: &Detach,
    setup: &Setup,
    call: ToolCall,
    context: Arc<CallContext>,
    options: CallOptions,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    // What is wrong with it is better heard now than asked for later.
    let batch = haft::BatchOptions { call: options.clone(), ..haft::BatchOptions::default() };
    let request = BatchRequest::from(vec![call.clone()]).options(batch).context(Arc::clone(&context));
    match setup.haft.plan(request).await.first() {
        Some(preview @ Preview::Refused(error)) => {
            let help = preview_help(setup, &call, preview);
            console.error(&people_text(&error.message), help.as_deref());
            return Ok(error.code.exit());
        }
        Some(Preview::Pending { .. }) => return Err(Failure::CannotDetach),
        Some(Preview::Ready { .. } | Preview::NeedsApproval { .. }) | None => {}
    }
    let store = setup.memory_store()?;
    worker::ensure(&detach.starter, Some(store.place()))?;
    let config = &setup.resolved.config.tasks;
    let at = Timestamp::now();
    let within = SignedDuration::from_secs(i64::try_from(config.start_within_seconds).unwrap_or(i64::MAX));
    let new = NewTask {
        id: TaskId::random(),
        execution_id: options.execution_id.unwrap_or_else(|| ExecutionId::at(at)),
        context,
        call,
        options: CallOptions { execution_id: None, ..options },
        runner: RUNNER.into(),
        is_mine: false,
        place: Some(serde_json::to_value(&detach.whence).map_err(Failure::Unwritable)?),
        ttl: Duration::from_secs(config.keep_hours * 60 * 60),
        created_at: at,
        start_by: Some(at.checked_add(within).unwrap_or(Timestamp::MAX)),
    };
    let task = Task::taken(&new);
    haft::port::TaskStore::submit(store, new).await?;
    // It is on record. Should the worker have ended just now, another one takes it.
    if !worker::look(&detach.state)
        && let Err(failure) = worker::ensure(&detach.starter, None)
    {
        console.warn(&format!("{failure}; the task waits for a worker"));
    }
    if json {
        console.print_json(&task)?;
        return Ok(0);
    }
    console.print(format!("{}\n", task.id))?;
    console
        .say(format!("{QUIET}a worker runs it; `haft runs watch {}` waits for the result{QUIET:#}", task.id));
    Ok(0)
}

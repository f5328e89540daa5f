//! Calls that go on without their callers: asked about, cancelled, listed, forgotten, and what a restart leaves of
//! them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test says what it expects, and fails where that is not so"
)]

mod common;

use common::{Count, House, Op, Scripted, Setup, call, call_with, house, tool, until, within};
use haft_core::{
    ApprovalRequest, CallContext, CallOptions, Decision, ErrorCode, ExecutionId, Status, Task, TaskId,
    TaskQuery, TaskState, ToolCall, ToolError,
    port::{Answer, Approver, BoxFuture, GuardError, Store, TaskStore, TenantStore as _},
};
use haft_engine::{BatchRequest, Engine, Request, Settings, TaskOptions, TaskSettings};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{Args, ToolCtx};
use haft_store::{DurableStore, Options};
use serde_json::json;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::Notify;

/// A tool that says how far it is and then waits to be let go.
fn slow(gate: &Arc<Notify>) -> Scripted {
    let gate = Arc::clone(gate);
    tool("slow", move |_: Args, cx: ToolCtx| {
        let gate = Arc::clone(&gate);
        async move {
            cx.progress(40, "half of the files");
            cx.print("first line\n");
            gate.notified().await;
            Ok("done")
        }
    })
}

fn hangs(name: &str) -> Scripted {
    tool(name, |_: Args, cx: ToolCtx| async move {
        cx.progress(1, "");
        std::future::pending::<()>().await;
        Ok("never")
    })
}

async fn submit(house: &House, name: &str) -> Task {
    house.engine.submit(call(name), TaskOptions::default()).await.expect("it is taken")
}

async fn get(engine: &Engine, id: &TaskId) -> Task {
    engine.tasks("local").get(id).await.expect("it is known")
}

async fn reaches(engine: &Engine, id: &TaskId, state: TaskState) -> Task {
    within(state.as_str(), async {
        loop {
            let task = get(engine, id).await;
            if task.state == state {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_task_is_asked_about_on_its_way_and_keeps_its_result() {
    let gate = Arc::new(Notify::new());
    let house = house([slow(&gate)]);
    let task = submit(&house, "slow").await;
    assert_eq!((task.state, &*task.tool), (TaskState::Pending, "slow"));
    assert!(task.id.as_str().starts_with("tsk_"));

    let on_its_way = within("output", async {
        loop {
            let task = get(&house.engine, &task.id).await;
            if !task.progress.output_tail.is_empty() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(on_its_way.state, TaskState::Running);
    assert_eq!(on_its_way.progress.percent, Some(40));
    assert_eq!(on_its_way.progress.message.as_deref(), Some("half of the files"));
    assert_eq!((&*on_its_way.progress.output_tail, on_its_way.progress.output_bytes), ("first line\n", 11));
    assert!(on_its_way.poll_after(on_its_way.created_at).is_some(), "and it says when to ask again");
    assert_eq!(on_its_way.result, None);
    assert_eq!(house.engine.running_tasks(), 1);

    gate.notify_one();
    let done = within("the end", house.engine.tasks("local").wait(&task.id, None)).await.unwrap();
    assert_eq!(done.state, TaskState::Completed);
    let result = done.result.clone().expect("it is over");
    assert_eq!((result.text(), result.metadata.execution_id), ("done", task.execution_id));
    assert_eq!(done.poll_after(done.updated_at), None);
    assert_eq!(done.expires_at, Some(done.finished_at.unwrap() + done.ttl));
    until("it is not under way any more", || house.engine.running_tasks() == 0).await;
    house.ended_once(task.execution_id).await;
}

#[tokio::test]
async fn waiting_ends_with_the_time_that_was_given() {
    let house = house([hangs("hangs")]);
    let task = submit(&house, "hangs").await;
    let tasks = house.engine.tasks("local");
    let waited = within("the time", tasks.wait(&task.id, Some(Duration::from_millis(50)))).await.unwrap();
    assert_eq!(waited.state, TaskState::Running);
}

#[tokio::test]
async fn a_detached_call_that_cannot_run_is_refused_at_once() {
    let needs = tool("needs", |_, _| async { Ok("never") }).define(|definition| {
        definition.parameters =
            haft_core::Parameters::Schema(json!({"type": "object", "required": ["path"]}));
    });
    let house = house([needs]);
    for (name, expected) in
        [("no_such_tool", ErrorCode::ToolNotFound), ("needs", ErrorCode::ValidationFailed)]
    {
        let id = ExecutionId::at(jiff::Timestamp::now());
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        let request = Request::new(call(name)).options(options);
        let refused = house.engine.submit(request, TaskOptions::default()).await.unwrap_err();
        assert_eq!(refused.code, expected);
        assert_eq!(house.audit_of(id).await.len(), 1, "it is on record like every call");
        let detached = CallOptions { detached: true, ..CallOptions::default() };
        let result = house.engine.execute(Request::new(call(name)).options(detached)).await;
        assert_eq!(result.error_code(), Some(expected));
    }
    assert_eq!(house.engine.tasks("local").list(TaskQuery::default()).await.unwrap().tasks, []);
}

#[tokio::test]
async fn a_finished_tasks_progress_is_its_last() {
    let quick = tool("quick", |_: Args, cx: ToolCtx| async move {
        cx.progress(10, "begun");
        cx.print("one line\n");
        cx.progress(90, "nearly there");
        Ok("done")
    });
    let house = house([quick]);
    let task = submit(&house, "quick").await;
    within("the end", house.engine.tasks("local").wait(&task.id, None)).await.unwrap();
    until("it is not under way any more", || house.engine.running_tasks() == 0).await;
    let done = get(&house.engine, &task.id).await;
    assert_eq!(done.state, TaskState::Completed);
    assert_eq!((done.progress.percent, done.progress.message.as_deref()), (Some(90), Some("nearly there")));
    assert_eq!(done.progress.output_tail, "one line\n");
}

#[tokio::test]
async fn a_detached_call_is_answered_at_once_and_goes_on_without_its_caller() {
    let gate = Arc::new(Notify::new());
    let house = house([slow(&gate)]);
    let options = CallOptions { detached: true, ..CallOptions::default() };
    let answer = house.engine.execute(Request::new(call("slow")).options(options.clone())).await;
    assert_eq!(answer.status, Status::Success, "{answer:?}");
    let ticket = answer.output.clone().unwrap();
    assert!(ticket["pollAfterMs"].as_u64().unwrap() > 0);
    let id = TaskId::from_text(ticket["taskId"].as_str().unwrap());
    assert!(answer.text().contains(id.as_str()));

    // One that goes away before it heard of it: it is on record and runs, or it is not.
    drop(house.engine.execute(Request::new(call("slow")).options(options.clone())));
    gate.notify_one();
    reaches(&house.engine, &id, TaskState::Completed).await;
    assert_eq!(house.engine.tasks("local").list(TaskQuery::default()).await.unwrap().tasks.len(), 1);

    let batch = haft_core::BatchOptions { call: options, ..Default::default() };
    let (results, _) =
        house.engine.execute_batch(BatchRequest::from(vec![call("slow")]).options(batch)).await;
    assert_eq!(results[0].error_code(), Some(ErrorCode::ValidationFailed));
}

#[tokio::test]
async fn a_caller_that_goes_away_while_it_submits_leaves_no_task_that_nobody_runs() {
    let runs = Count::default();
    let counted = runs.clone();
    let house = house([tool("quick", move |_, _| {
        counted.up();
        async { Ok("done") }
    })]);
    for _ in 0..50 {
        let mut submitting = Box::pin(house.engine.submit(call("quick"), TaskOptions::default()));
        // Polled once, and given up.
        let _ = futures_poll(&mut submitting).await;
        drop(submitting);
    }
    let listed = within("every task that is on record ends", async {
        loop {
            let query = TaskQuery { limit: 100, ..TaskQuery::default() };
            let tasks = house.engine.tasks("local").list(query).await.unwrap().tasks;
            if !tasks.is_empty() && tasks.iter().all(|task| task.state == TaskState::Completed) {
                return tasks.len();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(runs.get(), listed);
}

async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn cancelling_ends_a_task_and_says_why_it_cannot() {
    let house = house([hangs("hangs"), tool("quick", |_, _| async { Ok("done") })]);
    let tasks = house.engine.tasks("local");
    let task = submit(&house, "hangs").await;
    reaches(&house.engine, &task.id, TaskState::Running).await;
    tasks.cancel(&task.id, Some("the user changed their mind")).await.unwrap();
    let done = within("the end", tasks.wait(&task.id, None)).await.unwrap();
    assert_eq!(done.state, TaskState::Cancelled);
    let result = done.result.unwrap();
    assert_eq!(result.error_code(), Some(ErrorCode::Cancelled));
    assert!(result.text().contains("changed their mind"), "{}", result.text());

    let code = |error: ToolError| (error.code, error.code.e_number());
    let again = tasks.cancel(&task.id, None).await.unwrap_err();
    assert_eq!(code(again), (ErrorCode::TaskFinished, Some("E3151")));
    let unknown = TaskId::from_text("tsk_unknown");
    for error in [
        tasks.cancel(&unknown, None).await.unwrap_err(),
        tasks.get(&unknown).await.unwrap_err(),
        tasks.wait(&unknown, None).await.unwrap_err(),
        house.engine.tasks("another").get(&task.id).await.unwrap_err(),
        house.engine.tasks("another").cancel(&task.id, None).await.unwrap_err(),
    ] {
        assert_eq!(code(error), (ErrorCode::TaskNotFound, Some("E3150")));
    }
    assert_eq!(ErrorCode::TaskCancelFailed.e_number(), Some("E3152"));
}

#[tokio::test]
async fn another_tenant_sees_nothing_of_it() {
    let house = house([hangs("hangs")]);
    let task = submit(&house, "hangs").await;
    reaches(&house.engine, &task.id, TaskState::Running).await;
    let other = house.engine.tasks("another");
    assert!(other.observe(&task.id).is_none());
    assert_eq!(other.list(TaskQuery::default()).await.unwrap().tasks, []);
    assert!(house.engine.tasks("local").observe(&task.id).is_some());
}

#[tokio::test]
async fn nothing_is_taken_that_cannot_be_recorded() {
    let runs = Count::default();
    let counted = runs.clone();
    let house = house([tool("quick", move |_, _| {
        counted.up();
        async { Ok("done") }
    })]);
    house.store.fail(Op::Task);
    let refused = house.engine.submit(call("quick"), TaskOptions::default()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::StoreUnavailable);
    assert!(!refused.message.contains("/var/lib"), "what only an operator should see is apart");
    assert_eq!((runs.get(), house.engine.running_tasks()), (0, 0));
    house.store.mend(Op::Task);
    submit(&house, "quick").await;
}

#[tokio::test]
async fn no_more_are_taken_than_may_be_under_way() {
    let tasks = TaskSettings { max_open: 3, ..TaskSettings::default() };
    let settings = Settings { tasks, ..Settings::default() };
    let house = Setup { settings, ..Setup::default() }.build([hangs("hangs")]);
    for _ in 0..3 {
        submit(&house, "hangs").await;
    }
    let refused = house.engine.submit(call("hangs"), TaskOptions::default()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ConcurrentLimitExceeded);
}

#[tokio::test]
async fn a_tenant_leaves_room_for_others() {
    let tasks = TaskSettings { max_open_per_tenant: 2, ..TaskSettings::default() };
    let settings = Settings { tasks, ..Settings::default() };
    let house = Setup { settings, ..Setup::default() }.build([hangs("hangs")]);
    for _ in 0..2 {
        submit(&house, "hangs").await;
    }
    let refused = house.engine.submit(call("hangs"), TaskOptions::default()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ConcurrentLimitExceeded);
    let owner = haft_core::CallContext::owner();
    let other = haft_core::CallContext { tenant: "other".into(), ..haft_core::CallContext::clone(&owner) };
    house
        .engine
        .submit(haft_engine::Request::new(call("hangs")).context(other), TaskOptions::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_list_is_paged_by_key_and_filtered() {
    let house = house([tool("quick", |_, _| async { Ok("done") }), hangs("hangs")]);
    let mut expected = Vec::new();
    for _ in 0..7 {
        expected.push(submit(&house, "quick").await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let hanging = submit(&house, "hangs").await;
    for task in &expected {
        reaches(&house.engine, &task.id, TaskState::Completed).await;
    }
    let tasks = house.engine.tasks("local");
    let mut seen = Vec::new();
    let mut query = TaskQuery { limit: 3, tool: Some("quick".to_owned()), ..TaskQuery::default() };
    loop {
        let page = tasks.list(query.clone()).await.unwrap();
        seen.extend(page.tasks.iter().map(|task| task.id.clone()));
        assert!(page.tasks.iter().all(|task| task.result.is_none()));
        match page.next {
            // What comes in meanwhile does not shift the pages.
            Some(next) => {
                query.after = Some(next.to_string().parse().unwrap());
                submit(&house, "quick").await;
            }
            None => break,
        }
    }
    expected.reverse();
    assert_eq!(seen, expected.iter().map(|task| task.id.clone()).collect::<Vec<_>>());
    let open =
        tasks.list(TaskQuery { open_only: true, tool: Some("hangs".to_owned()), ..TaskQuery::default() });
    assert_eq!(open.await.unwrap().tasks[0].id, hanging.id);
}

#[tokio::test]
async fn what_was_kept_long_enough_is_forgotten() {
    let house = house([tool("quick", |_, _| async { Ok("done") })]);
    let options = TaskOptions { ttl: Some(Duration::from_millis(30)), ..TaskOptions::default() };
    let short = house.engine.submit(call("quick"), options).await.unwrap();
    let long = submit(&house, "quick").await;
    reaches(&house.engine, &long.id, TaskState::Completed).await;
    until("the time is over", || {
        std::thread::sleep(Duration::from_millis(50));
        true
    })
    .await;
    let error = house.engine.tasks("local").get(&short.id).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TaskNotFound);
    assert_eq!(house.engine.tasks("local").list(TaskQuery::default()).await.unwrap().tasks.len(), 1);
    assert_eq!(house.store.memory.tasks().unwrap().sweep().await.unwrap(), 1);
    assert_eq!(house.audit_of(short.execution_id).await.len(), 1, "the record of its call stays");
    let forever = TaskOptions { ttl: Some(Duration::MAX), ..TaskOptions::default() };
    let task = house.engine.submit(call("quick"), forever).await.unwrap();
    assert_eq!(task.ttl, haft_core::LONGEST_TTL);
}

#[tokio::test]
async fn a_shutdown_ends_tasks_and_takes_no_more() {
    let settings = Settings { drain: Duration::from_millis(20), ..Settings::default() };
    let house = Setup { settings, ..Setup::default() }.build([hangs("hangs")]);
    let task = submit(&house, "hangs").await;
    reaches(&house.engine, &task.id, TaskState::Running).await;
    let shutdown = house.engine.shutdown().await;
    assert_eq!((shutdown.cancelled, shutdown.left), (1, 0));
    let task = reaches(&house.engine, &task.id, TaskState::Cancelled).await;
    assert!(task.status_message().contains("shutting down"), "{}", task.status_message());
    let refused = house.engine.submit(call("hangs"), TaskOptions::default()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ShuttingDown);
}

// --- a store that outlives the process -----------------------------------------------------------------------------

/// Nobody is there to be asked: questions are on the durable list, and answered from elsewhere.
struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move { Ok(requests.iter().map(|_| Decision::Unanswered).collect()) })
    }
}

fn from_elsewhere(decision: Decision) -> Answer {
    Answer { decision, by: "ada".to_owned(), from: haft_core::Channel::CommandLine }
}

struct World {
    engine: Engine,
    store: DurableStore,
    runs: Count,
}

fn world(folder: &Path) -> World {
    let store = DurableStore::open_sqlite(folder, Options::default()).unwrap();
    let runs = Count::default();
    let counted = runs.clone();
    let write = tool("write", move |_, _| {
        counted.up();
        async { Ok("written") }
    })
    .effects();
    let policy = ListPolicy { mode: haft_core::ApprovalMode::Auto, ..ListPolicy::default() };
    let tick = TaskSettings { tick: Duration::from_millis(20), ..TaskSettings::default() };
    let engine = Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::new(store.clone()))
        .settings(Settings { tasks: tick, ..Settings::default() })
        .approver(Arc::new(Nobody))
        .tool(write.clone())
        .tool(write.asks().define(|definition| definition.name = "guarded".to_owned()))
        .tool(hangs("hangs"))
        .tool(hangs("hangs_with_effects").effects())
        .build()
        .unwrap();
    World { engine, store, runs }
}

impl World {
    /// Its process dies: nothing is closed, and others can tell.
    fn crash(self, folder: &Path) {
        let lock = folder.join("instances").join(format!("{}.lock", self.store.instance()));
        std::fs::remove_file(lock).expect("a living process has its file");
        std::mem::forget(self);
    }
}

async fn taken(engine: &Engine, name: &str) -> Task {
    engine.submit(call_with(name, json!({"a": 1})), TaskOptions::default()).await.unwrap()
}

#[tokio::test]
async fn a_finished_task_keeps_its_result_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(folder.path());
    let task = taken(&before.engine, "write").await;
    reaches(&before.engine, &task.id, TaskState::Completed).await;
    before.crash(folder.path());
    let after = world(folder.path());
    let found = get(&after.engine, &task.id).await;
    assert_eq!((found.state, found.result.unwrap().text()), (TaskState::Completed, "written"));
}

#[tokio::test]
async fn an_interrupted_task_says_what_is_known_about_it() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(folder.path());
    let effects = taken(&before.engine, "hangs_with_effects").await;
    let reads = taken(&before.engine, "hangs").await;
    for task in [&effects, &reads] {
        within("it runs", async {
            while get(&before.engine, &task.id).await.progress.percent.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
    before.crash(folder.path());

    let after = world(folder.path());
    assert_eq!(after.engine.resume_tasks().await.unwrap(), 0, "nothing that was begun is run again");
    let unknown = get(&after.engine, &effects.id).await;
    assert_eq!(unknown.result.clone().unwrap().error_code(), Some(ErrorCode::OutcomeUnknown));
    assert_eq!(unknown.state, TaskState::Failed);
    let interrupted = get(&after.engine, &reads.id).await;
    assert_eq!(interrupted.state, TaskState::Cancelled);
    assert_eq!(interrupted.result.clone().unwrap().error_code(), Some(ErrorCode::NotStarted));
    assert!(interrupted.status_message().starts_with("Interrupted: "), "{}", interrupted.status_message());
    for task in [&effects, &reads] {
        let records = after.store.for_tenant("local").audit(100).await.unwrap();
        let of_it = records.iter().filter(|record| record.metadata.execution_id == task.execution_id);
        assert_eq!(of_it.count(), 1, "each call has one end");
    }
}

/// A task that nobody has begun yet, as the command line leaves one for a worker.
async fn left_for_a_runner(store: &DurableStore, runner: &str, start_by: Option<jiff::Timestamp>) -> TaskId {
    let at = jiff::Timestamp::now();
    let new = haft_core::port::NewTask {
        id: TaskId::random(),
        execution_id: ExecutionId::at(at),
        context: CallContext::owner(),
        call: ToolCall::new("write", json!({})),
        options: CallOptions::default(),
        runner: runner.into(),
        is_mine: false,
        place: Some(json!({"folder": "/work"})),
        ttl: Duration::from_secs(60),
        created_at: at,
        start_by,
    };
    let id = new.id.clone();
    store.submit(new).await.unwrap();
    id
}

#[tokio::test]
async fn what_nobody_began_is_begun_by_one_runner_of_its_kind_and_only_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path());
    let late = left_for_a_runner(&world.store, "engine", Some(jiff::Timestamp::now())).await;
    let other = left_for_a_runner(&world.store, "another kind", None).await;
    let mine = left_for_a_runner(&world.store, "engine", None).await;
    let claims = [world.store.take_over("engine", 10), world.store.take_over("engine", 10)];
    let mut claimed = Vec::new();
    for claim in claims {
        claimed.extend(claim.await.unwrap());
    }
    assert_eq!(
        claimed.iter().map(|task| task.id.clone()).collect::<Vec<_>>(),
        std::slice::from_ref(&mine),
        "once"
    );
    assert_eq!(claimed[0].place, Some(json!({"folder": "/work"})));
    world.engine.run_claimed(claimed.remove(0));
    reaches(&world.engine, &mine, TaskState::Completed).await;
    assert_eq!(world.runs.get(), 1);
    let late = get(&world.engine, &late).await;
    assert!(late.status_message().starts_with("Never started: "), "{}", late.status_message());
    assert_eq!(get(&world.engine, &other).await.state, TaskState::Pending);
    // It has no runner, so it is over at once.
    let cancelled = world.engine.tasks("local").cancel(&other, None).await.unwrap();
    assert_eq!(cancelled.state, TaskState::Cancelled);
}

#[tokio::test]
async fn what_was_claimed_and_not_begun_says_that_it_never_started() {
    let folder = tempfile::tempdir().unwrap();
    let before = world(folder.path());
    let id = left_for_a_runner(&before.store, "engine", None).await;
    assert_eq!(before.store.take_over("engine", 1).await.unwrap().len(), 1);
    before.crash(folder.path());
    let after = world(folder.path());
    let task = get(&after.engine, &id).await;
    assert_eq!(task.result.clone().unwrap().error_code(), Some(ErrorCode::NotStarted));
    assert!(task.status_message().starts_with("Never started: "), "{}", task.status_message());
    assert_eq!(after.runs.get(), 0);
}

#[tokio::test]
async fn a_task_that_waits_for_approval_goes_on_when_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path());
    for (answer, state, runs) in [
        (Decision::Approve, TaskState::Completed, 1),
        (Decision::Deny { reason: None }, TaskState::Cancelled, 1),
    ] {
        let task = taken(&world.engine, "guarded").await;
        let waiting = reaches(&world.engine, &task.id, TaskState::AwaitingApproval).await;
        let approval = waiting.approval_id.expect("it says for what it waits");
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert_eq!(get(&world.engine, &task.id).await.state, TaskState::AwaitingApproval);
        assert!(world.store.tenant("local").answer(&approval, from_elsewhere(answer)).await.unwrap());
        reaches(&world.engine, &task.id, state).await;
        assert_eq!(world.runs.get(), runs);
    }
}

#[tokio::test]
async fn a_task_that_waits_for_approval_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    // On a runtime of its own: what it spawned dies with it.
    let dying = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let lived = dying.spawn(async move {
        let before = world(&place);
        let answered_while_away = taken(&before.engine, "guarded").await;
        let other = call_with("guarded", json!({"a": 2}));
        let answered_later = before.engine.submit(other, TaskOptions::default()).await.unwrap();
        let mut approvals = Vec::new();
        for task in [&answered_while_away, &answered_later] {
            let waiting = reaches(&before.engine, &task.id, TaskState::AwaitingApproval).await;
            approvals.push(waiting.approval_id.unwrap());
        }
        until("no walk is left", || before.engine.running_tasks() == 0).await;
        (before, answered_while_away, answered_later, approvals)
    });
    let (before, answered_while_away, answered_later, approvals) = lived.await.unwrap();
    dying.shutdown_background();
    before.crash(folder.path());

    let away = DurableStore::open_sqlite(folder.path(), Options::default()).unwrap();
    assert!(away.tenant("local").answer(&approvals[0], from_elsewhere(Decision::Approve)).await.unwrap());
    drop(away);

    let after = world(folder.path());
    assert_eq!(after.engine.resume_tasks().await.unwrap(), 1);
    reaches(&after.engine, &answered_while_away.id, TaskState::Completed).await;
    assert_eq!(after.runs.get(), 1);
    assert_eq!(get(&after.engine, &answered_later.id).await.state, TaskState::AwaitingApproval);
    after.store.tenant("local").answer(&approvals[1], from_elsewhere(Decision::Approve)).await.unwrap();
    let done = reaches(&after.engine, &answered_later.id, TaskState::Completed).await;
    assert_eq!((after.runs.get(), done.result.unwrap().text()), (2, "written"));
}

#[tokio::test]
async fn a_waiting_task_that_is_cancelled_does_not_run_when_it_is_approved() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path());
    let task = taken(&world.engine, "guarded").await;
    let approval = reaches(&world.engine, &task.id, TaskState::AwaitingApproval).await.approval_id.unwrap();
    until("its walk is over", || world.engine.running_tasks() == 0).await;
    let cancelled = world.engine.tasks("local").cancel(&task.id, None).await.unwrap();
    assert_eq!(cancelled.state, TaskState::Cancelled);
    assert!(!world.store.tenant("local").answer(&approval, from_elsewhere(Decision::Approve)).await.unwrap());
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(world.runs.get(), 0);
}

#[tokio::test]
async fn another_process_can_cancel_it_and_see_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let runner = world(folder.path());
    let task = taken(&runner.engine, "hangs").await;
    let other = world(folder.path());
    let seen = within("progress", async {
        loop {
            let task = get(&other.engine, &task.id).await;
            if task.progress.percent.is_some() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!((seen.state, seen.progress.percent), (TaskState::Running, Some(1)));
    let asked = other.engine.tasks("local").cancel(&task.id, None).await.unwrap();
    assert!(asked.cancel_requested);
    let ended = within("the end", other.engine.tasks("local").wait(&task.id, None)).await.unwrap();
    assert_eq!(ended.state, TaskState::Cancelled);
}

#[tokio::test]
async fn arguments_are_kept_until_the_end_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path());
    let call = call_with("write", json!({"password": "correct horse battery"}));
    let task = world.engine.submit(call, TaskOptions::default()).await.unwrap();
    reaches(&world.engine, &task.id, TaskState::Completed).await;
    let database = rusqlite::Connection::open(folder.path().join("haft.db")).unwrap();
    let kept: Option<String> = database
        .query_row("SELECT call_json FROM tasks WHERE task_id = ?1", [task.id.as_str()], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, None);
}

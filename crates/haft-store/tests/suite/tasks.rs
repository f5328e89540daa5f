//! Calls that go on without their callers: what holds for every store, and for those that outlive the process.

use super::{Home, durable::approval, make::call};
use haft_core::{
    ApprovalId, ApprovalRequest, Asker, CallContext, CallOptions, Decision, ErrorCode, ExecutionId, Status,
    TaskId, TaskProgress, TaskQuery, TaskState, ToolCall, ToolResult,
    port::{Answer, CallEnd, ClaimedTask, NewTask, Store, TaskCancel, TaskStore, TenantStore as _},
};
use jiff::Timestamp;
use serde_json::json;
use std::{sync::Arc, time::Duration};

fn new(tenant: &str, runner: &str) -> NewTask {
    let at = Timestamp::now();
    NewTask {
        id: TaskId::random(),
        execution_id: ExecutionId::at(at),
        context: Arc::new(CallContext { user: Some("ada".into()), ..CallContext::new(tenant, "agent-1") }),
        call: ToolCall::new("write", json!({"password": "hunter2"})).with_id("c1"),
        options: CallOptions { priority: Some(7), ..CallOptions::default() },
        runner: runner.into(),
        is_mine: false,
        place: Some(json!({"folder": "/work"})),
        ttl: Duration::from_secs(60),
        created_at: at,
        start_by: None,
    }
}

/// The end of an execution of that task.
fn end(task: &ClaimedTask, result: ToolResult) -> CallEnd {
    let mut call = call(&task.context.tenant, "write");
    call.id = task.execution_id;
    CallEnd { task: Some((task.id.clone(), Arc::new(result))), ..call.without_effect().outcome() }
}

fn success(task: &ClaimedTask) -> ToolResult {
    let mut call = call(&task.context.tenant, "write");
    call.id = task.execution_id;
    call.result()
}

/// What holds for every store.
pub async fn port(store: &dyn Store) {
    let tasks = store.tasks().unwrap();
    a_task_goes_its_way(store, tasks).await;
    the_wish_to_end_one_is_heard(store, tasks).await;
    lists_are_paged(tasks).await;
    what_is_over_stays_as_it_ended(store, tasks).await;
    a_task_that_nobody_begins_in_time_ends(tasks).await;
}

async fn a_task_goes_its_way(store: &dyn Store, tasks: &dyn TaskStore) {
    let task = new("way", "way");
    tasks.submit(task.clone()).await.unwrap();
    assert!(tasks.take_over("another kind", 10).await.unwrap().is_empty());
    assert!(tasks.take_over("way", 0).await.unwrap().is_empty());
    let claimed = tasks.take_over("way", 10).await.unwrap();
    assert_eq!(claimed.len(), 1);
    let claimed = &claimed[0];
    assert_eq!((&claimed.call, &claimed.options, &claimed.place), (&task.call, &task.options, &task.place));
    assert_eq!((&claimed.context, claimed.execution_id), (&task.context, task.execution_id));
    assert!(tasks.take_over("way", 10).await.unwrap().is_empty(), "once");
    assert!(tasks.begin(&task.id, claimed.execution_id).await.unwrap());
    assert!(!tasks.begin(&task.id, claimed.execution_id).await.unwrap(), "once");
    let progress = TaskProgress {
        percent: Some(30),
        message: Some("at work".to_owned()),
        output_bytes: 4,
        output_tail: "text".to_owned(),
    };
    assert!(tasks.note(vec![(task.id.clone(), progress.clone())]).await.unwrap().is_empty());
    let found = tasks.find("way", &task.id).await.unwrap().unwrap();
    assert_eq!((found.state, &found.progress), (TaskState::Running, &progress));
    assert_eq!((found.user.as_deref(), &*found.call_id, found.ttl), (Some("ada"), "c1", task.ttl));
    assert!(tasks.find("other", &task.id).await.unwrap().is_none());
    store.outcome(end(claimed, success(claimed))).await.unwrap();
    let found = tasks.find("way", &task.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.result.unwrap().status), (TaskState::Completed, Status::Success));
    assert!(found.expires_at.unwrap() > found.finished_at.unwrap());
    assert_eq!(store.for_tenant("way").audit(10).await.unwrap().len(), 1);
}

async fn the_wish_to_end_one_is_heard(store: &dyn Store, tasks: &dyn TaskStore) {
    let (early, running) = (new("wish", "wish"), new("wish", "wish"));
    tasks.submit(running.clone()).await.unwrap();
    let claimed = tasks.take_over("wish", 1).await.unwrap().remove(0);
    tasks.submit(early.clone()).await.unwrap();
    assert_eq!(tasks.cancel("other", &early.id).await.unwrap(), TaskCancel::Unknown);
    assert_eq!(tasks.cancel("wish", &early.id).await.unwrap(), TaskCancel::Ended);
    assert_eq!(tasks.cancel("wish", &early.id).await.unwrap(), TaskCancel::Over);
    assert!(tasks.take_over("wish", 10).await.unwrap().is_empty());
    tasks.begin(&running.id, claimed.execution_id).await.unwrap();
    assert_eq!(tasks.cancel("wish", &running.id).await.unwrap(), TaskCancel::Asked);
    assert_eq!(tasks.note(Vec::new()).await.unwrap(), std::slice::from_ref(&running.id));
    store.outcome(end(&claimed, success(&claimed))).await.unwrap();
    assert!(tasks.note(Vec::new()).await.unwrap().is_empty());
    // One that is cancelled between its taking and its beginning does not begin.
    let late = new("wish", "wish");
    tasks.submit(late.clone()).await.unwrap();
    let claimed = tasks.take_over("wish", 1).await.unwrap().remove(0);
    assert_eq!(tasks.cancel("wish", &late.id).await.unwrap(), TaskCancel::Asked);
    assert!(!tasks.begin(&late.id, claimed.execution_id).await.unwrap());
    let late = tasks.find("wish", &late.id).await.unwrap().unwrap();
    assert_eq!(late.result.unwrap().error_code(), Some(ErrorCode::Cancelled));
}

async fn lists_are_paged(tasks: &dyn TaskStore) {
    for _ in 0..5 {
        tasks.submit(new("pages", "pages")).await.unwrap();
    }
    let mut query = TaskQuery { limit: 2, ..TaskQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = tasks.list("pages", query.clone()).await.unwrap();
        seen.extend(page.tasks.into_iter().map(|task| (task.created_at, task.id)));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once: {seen:?}");
    for query in [
        TaskQuery { state: Some(TaskState::Running), ..TaskQuery::default() },
        TaskQuery { user: Some("eve".to_owned()), ..TaskQuery::default() },
        TaskQuery { session: Some("s".to_owned()), ..TaskQuery::default() },
        TaskQuery {
            tool: Some("read".to_owned()),
            agent: Some("agent-1".to_owned()),
            ..TaskQuery::default()
        },
    ] {
        assert!(tasks.list("pages", query).await.unwrap().tasks.is_empty());
    }
}

async fn what_is_over_stays_as_it_ended(store: &dyn Store, tasks: &dyn TaskStore) {
    let task = new("over", "over");
    tasks.submit(task.clone()).await.unwrap();
    let claimed = tasks.take_over("over", 1).await.unwrap().remove(0);
    tasks.begin(&task.id, claimed.execution_id).await.unwrap();
    let progress =
        |message: &str| TaskProgress { message: Some(message.to_owned()), ..TaskProgress::default() };
    tasks.note(vec![(task.id.clone(), progress("early"))]).await.unwrap();
    store.outcome(end(&claimed, success(&claimed))).await.unwrap();
    // What comes late: a process that did not hear that its task has ended.
    let failed = ToolResult { status: Status::Failed, ..success(&claimed) };
    tasks.finish(&task.id, Arc::new(failed)).await.unwrap();
    tasks.note(vec![(task.id.clone(), progress("last"))]).await.unwrap();
    let found = tasks.find("over", &task.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.result.unwrap().status), (TaskState::Completed, Status::Success));
    // What it said last may be written down after its end, and changes nothing else.
    assert_eq!(found.progress.message.as_deref(), Some("last"));
}

async fn a_task_that_nobody_begins_in_time_ends(tasks: &dyn TaskStore) {
    let start_by = Some(Timestamp::now());
    let (late, in_time) = (NewTask { start_by, ..new("late", "late") }, new("late", "late"));
    for task in [&late, &in_time] {
        tasks.submit(task.clone()).await.unwrap();
    }
    let claimed = tasks.take_over("late", 10).await.unwrap();
    assert_eq!(claimed.iter().map(|task| &task.id).collect::<Vec<_>>(), [&in_time.id]);
    let late = tasks.find("late", &late.id).await.unwrap().unwrap();
    assert_eq!(late.result.unwrap().error_code(), Some(ErrorCode::NotStarted));
}

/// What holds for stores that outlive the process.
pub async fn durable(home: &dyn Home) {
    what_a_crash_leaves_of_tasks(home).await;
    a_question_keeps_its_task(home).await;
    a_changed_call_is_what_its_task_goes_on_with(home).await;
    what_was_kept_long_enough_goes(home).await;
}

async fn taken(store: &DurableTasks<'_>, task: &NewTask) -> ClaimedTask {
    store.submit(task.clone()).await.unwrap();
    store.take_over(&task.runner, 1).await.unwrap().remove(0)
}

type DurableTasks<'a> = dyn TaskStore + 'a;

async fn what_a_crash_leaves_of_tasks(home: &dyn Home) {
    let store = home.open();
    let [effect, reading, claimed, over, unclaimed] =
        std::array::from_fn(|_| new("task_crash", "task_crash"));
    for (task, has_effect) in [(&effect, true), (&reading, false)] {
        let walk = taken(&store, task).await;
        store.begin(&task.id, walk.execution_id).await.unwrap();
        if has_effect {
            let mut call = call("task_crash", "write");
            call.id = walk.execution_id;
            store.intent(call.intent()).await.unwrap();
        }
    }
    taken(&store, &claimed).await;
    let walk = taken(&store, &over).await;
    store.begin(&over.id, walk.execution_id).await.unwrap();
    store.outcome(end(&walk, success(&walk))).await.unwrap();
    store.submit(unclaimed.clone()).await.unwrap();
    home.crash(store);

    let store = home.open();
    let of = async |task: &NewTask| store.find("task_crash", &task.id).await.unwrap().unwrap();
    let code = async |task: &NewTask| of(task).await.result.unwrap().error_code();
    assert_eq!(code(&effect).await, Some(ErrorCode::OutcomeUnknown));
    assert_eq!(code(&reading).await, Some(ErrorCode::NotStarted));
    assert_eq!(code(&claimed).await, Some(ErrorCode::NotStarted));
    assert_eq!(of(&over).await.state, TaskState::Completed);
    assert_eq!(of(&unclaimed).await.state, TaskState::Pending);
    assert_eq!(store.open_tasks("task_crash").await.unwrap(), 1);
    assert_eq!(store.take_over("task_crash", 10).await.unwrap().len(), 1, "only what nobody had begun");
    assert_eq!(Store::for_tenant(&store, "task_crash").audit(10).await.unwrap().len(), 4, "each has one end");
}

async fn a_question_keeps_its_task(home: &dyn Home) {
    let store = home.open();
    let tenant = store.tenant("asks");
    let ask = ApprovalRequest { asker: Asker::of(&CallContext::new("asks", "agent-1")), ..approval("write") };
    tenant.ask(ask.clone(), Vec::new()).await.unwrap();
    let task = new("asks", "asks");
    let walk = taken(&store, &task).await;
    store.begin(&task.id, walk.execution_id).await.unwrap();
    let mut unanswered = success(&walk);
    unanswered.status = Status::RequiresConfirmation;
    unanswered.error = Some(Box::new(haft_core::ErrorInfo {
        code: ErrorCode::ConfirmationRequired,
        number: None,
        message: "ask".to_owned(),
        retryable: false,
        problems: Vec::new(),
        data: Some(Box::new(json!({"approvalId": ask.id}))),
    }));
    store.outcome(end(&walk, unanswered)).await.unwrap();
    // Another is asked about while it runs, and its process is gone before the answer.
    let other = ApprovalRequest { fingerprint: "other".to_owned(), id: ApprovalId::random(), ..ask.clone() };
    tenant.ask(other.clone(), Vec::new()).await.unwrap();
    let asked = new("asks", "asks");
    let walk = taken(&store, &asked).await;
    store.begin(&asked.id, walk.execution_id).await.unwrap();
    store.asks(&asked.id, Some(other.id.clone())).await.unwrap();
    home.crash(store);

    let store = home.open();
    let tenant = store.tenant("asks");
    for (task, question) in [(&task, &ask), (&asked, &other)] {
        let waiting = store.find("asks", &task.id).await.unwrap().unwrap();
        assert_eq!(waiting.state, TaskState::AwaitingApproval);
        assert_eq!(waiting.approval_id.as_ref(), Some(&question.id));
        assert!(store.take_over("asks", 10).await.unwrap().is_empty(), "not before it is answered");
        assert!(
            tenant
                .answer(
                    &question.id,
                    Answer {
                        decision: Decision::Approve,
                        by: "ada".into(),
                        from: haft_core::Channel::Program
                    }
                )
                .await
                .unwrap()
        );
        let again = store.take_over("asks", 10).await.unwrap().remove(0);
        assert_eq!((&again.id, again.approval.as_ref()), (&task.id, Some(&question.id)));
        assert_eq!(again.call, task.call, "with what was sent");
        assert_ne!(again.execution_id, waiting.execution_id, "each walk has an id of its own");
        store.begin(&again.id, again.execution_id).await.unwrap();
        store.outcome(end(&again, success(&again))).await.unwrap();
    }
}

/// A person changed the arguments; the task waits for the question about the changed call, and goes on with that call.
async fn a_changed_call_is_what_its_task_goes_on_with(home: &dyn Home) {
    let store = home.open();
    let tenant = store.tenant("edits");
    let ask = ApprovalRequest {
        id: ApprovalId::random(),
        asker: Asker::of(&CallContext::new("edits", "agent-1")),
        ..approval("write")
    };
    tenant.ask(ask.clone(), Vec::new()).await.unwrap();
    let task = new("edits", "edits");
    let walk = taken(&store, &task).await;
    store.begin(&task.id, walk.execution_id).await.unwrap();
    store.asks(&task.id, Some(ask.id.clone())).await.unwrap();
    let after = haft_core::Arguments::from_text(r#"{"path": "b"}"#);
    let edit = Decision::Edit { arguments: after.clone() };
    let said = |decision| Answer { decision, by: "ada".into(), from: haft_core::Channel::Program };
    assert!(tenant.answer(&ask.id, said(edit)).await.unwrap());
    let changed = ApprovalRequest {
        id: ApprovalId::random(),
        fingerprint: "changed".to_owned(),
        replaces: Some(ask.id.clone()),
        ..ask.clone()
    };
    tenant.ask(changed.clone(), Vec::new()).await.unwrap();
    store.asks(&task.id, Some(changed.id.clone())).await.unwrap();
    home.crash(store);

    let store = home.open();
    assert!(store.take_over("edits", 10).await.unwrap().is_empty(), "not before it is answered");
    assert!(store.tenant("edits").answer(&changed.id, said(Decision::Approve)).await.unwrap());
    let again = store.take_over("edits", 10).await.unwrap().remove(0);
    assert_eq!((&again.id, again.approval.as_ref()), (&task.id, Some(&changed.id)));
    assert_eq!(again.call.arguments, after, "with what was approved");
    assert_ne!(again.call.arguments, task.call.arguments);
}

async fn what_was_kept_long_enough_goes(home: &dyn Home) {
    let store = home.open();
    let mut task = new("old", "old");
    task.ttl = Duration::from_micros(1);
    let walk = taken(&store, &task).await;
    store.begin(&task.id, walk.execution_id).await.unwrap();
    store.outcome(end(&walk, success(&walk))).await.unwrap();
    assert!(store.find("old", &task.id).await.unwrap().is_none());
    assert_eq!(store.cancel("old", &task.id).await.unwrap(), TaskCancel::Unknown);
    assert!(store.list("old", TaskQuery::default()).await.unwrap().tasks.is_empty());
    assert_eq!(store.sweep().await.unwrap(), 1);
}

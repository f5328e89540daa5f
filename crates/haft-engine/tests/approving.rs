//! The list of questions: answered from elsewhere, once, for one call; and no way round it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Answers, Count, Door, Scripted, call_with, code, codes, message, tool, within};
use haft_core::{
    ApprovalId, ApprovalMode, Arguments, BatchOptions, CallContext, Channel, Decision, Footprint, Resource,
    ToolCall, ToolResult,
    port::{
        AcceptAnswers, Answer, ApprovalFilter, ApprovalState, Approver, NobodyToAsk, Store as _,
        StoredApproval, TenantStore,
    },
};
use haft_engine::{BatchRequest, Engine, Request, Settings};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_store::{DurableStore, Options};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// An engine as one process has it, on a folder that others share.
struct Process {
    engine: Engine,
    store: DurableStore,
    ran: Arc<Mutex<Vec<String>>>,
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn process(&self, approver: Arc<dyn Approver>) -> Process {
        self.with(approver, Settings::default(), |tool| tool)
    }

    /// A process whose tool `write` always asks, writes what `path` says, and notes what it ran with.
    fn with(
        &self,
        approver: Arc<dyn Approver>,
        settings: Settings,
        refine: impl FnOnce(Scripted) -> Scripted,
    ) -> Process {
        let store = DurableStore::open_sqlite(self.0.path(), Options::default()).unwrap();
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&ran);
        let write = tool("write", move |args, _| {
            seen.lock().unwrap().push(args.original.as_str().to_owned());
            async { Ok("done") }
        });
        let write = write.effects().asks().define(|definition| definition.aliases = vec!["Scribe".into()]);
        let write = write.on_footprint(|args| {
            let path = args.value.get("path").and_then(|path| path.as_str()).unwrap_or("/a").to_owned();
            Footprint::writes([Resource::path(path)])
        });
        let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
        let engine = Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::new(store.clone()))
            .settings(settings)
            .approver(approver)
            .tool(refine(write))
            .tool(tool("look", |_, _| async { Ok("seen") }).asks())
            .build()
            .unwrap();
        Process { engine, store, ran }
    }
}

impl Process {
    fn list(&self, tenant: &str) -> Box<dyn TenantStore> {
        self.store.for_tenant(tenant)
    }

    fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    async fn approvals(&self, state: ApprovalState) -> Vec<StoredApproval> {
        let filter = ApprovalFilter { state: Some(state), ..ApprovalFilter::default() };
        self.list("local").approvals(filter).await.unwrap()
    }

    /// The questions that wait, once there are so many.
    async fn waiting(&self, count: usize) -> Vec<StoredApproval> {
        within("the questions", async {
            loop {
                let open = self.approvals(ApprovalState::Open).await;
                if open.len() >= count {
                    return open;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    async fn answer(&self, id: &ApprovalId, decision: Decision) -> bool {
        self.list("local").answer(id, by(decision, Channel::CommandLine)).await.unwrap()
    }
}

fn by(decision: Decision, from: Channel) -> Answer {
    Answer { decision, by: "ada".to_owned(), from }
}

fn write(text: &str) -> ToolCall {
    call_with("write", json!({"text": text}))
}

fn approval_of(result: &ToolResult) -> ApprovalId {
    let data = result.error.as_ref().and_then(|error| error.data.as_ref()).expect("the way to answer");
    ApprovalId::from_text(data["approvalId"].as_str().unwrap())
}

/// Waits as a terminal would, for as long as it takes.
fn patient() -> Arc<Door> {
    Door::closed()
}

#[tokio::test]
async fn another_process_answers_while_the_call_waits() {
    let folder = Folder::new();
    for (decision, expected) in [
        (Decision::Approve, "OK"),
        (Decision::Deny { reason: Some("not today".into()) }, "CONFIRMATION_DENIED"),
    ] {
        let (asking, answering) = (folder.process(patient()), folder.process(Arc::new(NobodyToAsk)));
        let engine = asking.engine.clone();
        let running = tokio::spawn(async move { engine.execute(write("x")).await });
        let open = answering.waiting(1).await;
        assert_eq!((&*open[0].request.tool, &*open[0].request.asker.tenant), ("write", "local"));
        assert_eq!(open[0].request.footprint, Footprint::writes([Resource::path("/a")]));
        assert!(asking.ran().is_empty(), "nothing runs before the answer");
        assert!(answering.answer(&open[0].request.id, decision.clone()).await);
        let result = within("the call", running).await.unwrap();
        assert_eq!(code(&result), expected);
        if expected != "OK" {
            assert_eq!(
                message(&result),
                "Tool call denied by user: not today. Do not send the same call again: do it in another way, or ask the \
                 person what they would agree to"
            );
            assert!(asking.ran().is_empty());
        }
        assert!(answering.approvals(ApprovalState::Open).await.is_empty());
    }
}

#[tokio::test]
async fn a_call_that_nobody_answered_runs_once_when_it_is_sent_again_after_a_yes() {
    let folder = Folder::new();
    let process = folder.process(Arc::new(NobodyToAsk));
    let first = process.engine.execute(write("x")).await;
    assert_eq!(code(&first), "CONFIRMATION_REQUIRED");
    let id = approval_of(&first);
    assert!(message(&first).contains(id.as_str()), "{}", message(&first));
    let again = process.engine.execute(write("x")).await;
    assert_eq!(approval_of(&again), id, "the same call is the same question");
    drop(process);
    // Also after a restart, and from another process.
    let process = folder.process(Arc::new(NobodyToAsk));
    assert!(folder.process(Arc::new(NobodyToAsk)).answer(&id, Decision::Approve).await);
    assert!(process.ran().is_empty(), "an answer runs nothing by itself");
    // Changed arguments, another path, another session, another tenant, another user: none of them is this call.
    let owner = CallContext::clone(&CallContext::owner());
    let contexts = [
        CallContext { session: Some("s2".into()), ..owner.clone() },
        CallContext { tenant: "other".into(), ..owner.clone() },
        CallContext { user: Some("eve".into()), ..owner },
    ];
    for context in contexts {
        let result = process.engine.execute(Request::new(write("x")).context(context.clone())).await;
        assert_eq!(code(&result), "CONFIRMATION_REQUIRED", "{context:?}");
    }
    for other in
        [write("y"), call_with("write", json!({"text": "x", "path": "/b"})), call_with("write", json!({}))]
    {
        let result = process.engine.execute(other).await;
        assert_eq!(code(&result), "CONFIRMATION_REQUIRED");
        assert_ne!(approval_of(&result), id);
    }
    assert!(process.ran().is_empty(), "{:?}", process.ran());
    // By its alias it is the same call.
    let mut alias = write("x");
    alias.name = "scribe".into();
    assert_eq!(code(&process.engine.execute(alias).await), "OK");
    assert_eq!(process.ran(), [r#"{"text":"x"}"#]);
    // A yes is for one call: a replay is asked about again.
    let replay = process.engine.execute(write("x")).await;
    assert_eq!(code(&replay), "CONFIRMATION_REQUIRED");
    assert_ne!(approval_of(&replay), id);
    assert_eq!(process.ran().len(), 1);
}

/// A tool without side effects writes no intent; its approval is used up all the same.
#[tokio::test]
async fn a_yes_to_a_call_that_changes_nothing_is_used_up_too() {
    let folder = Folder::new();
    let process = folder.process(Arc::new(NobodyToAsk));
    let look = || call_with("look", json!({}));
    let first = process.engine.execute(look()).await;
    assert!(process.answer(&approval_of(&first), Decision::Approve).await);
    assert_eq!(code(&process.engine.execute(look()).await), "OK");
    assert_eq!(code(&process.engine.execute(look()).await), "CONFIRMATION_REQUIRED");
}

#[tokio::test]
async fn a_denied_call_is_told_so_once_and_is_a_new_question_after_that() {
    let folder = Folder::new();
    let process = folder.process(Arc::new(NobodyToAsk));
    let first = process.engine.execute(write("x")).await;
    assert!(process.answer(&approval_of(&first), Decision::Deny { reason: None }).await);
    assert_eq!(code(&process.engine.execute(write("x")).await), "CONFIRMATION_DENIED");
    assert_eq!(code(&process.engine.execute(write("x")).await), "CONFIRMATION_REQUIRED");
}

#[tokio::test]
async fn an_answer_that_is_too_old_counts_for_nothing() {
    let folder = Folder::new();
    let settings = Settings { approval_expiry: Duration::from_millis(150), ..Settings::default() };
    let process = folder.with(Arc::new(NobodyToAsk), settings.clone(), |tool| tool);
    let first = process.engine.execute(write("x")).await;
    assert!(process.answer(&approval_of(&first), Decision::Approve).await);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        code(&process.engine.execute(write("x")).await),
        "CONFIRMATION_REQUIRED",
        "the yes has expired"
    );
    let open = process.approvals(ApprovalState::Open).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!process.answer(&open[0].request.id, Decision::Approve).await, "the question has expired");
    // While somebody waits, too.
    let waiting = folder.with(patient(), settings, |tool| tool);
    let result = within("the call", waiting.engine.execute(write("z"))).await;
    assert_eq!(code(&result), "APPROVAL_EXPIRED");
    assert!(process.ran().is_empty() && waiting.ran().is_empty());
}

/// Two identical calls wait in two processes for one question: the yes is for one of them, the other is asked about
/// again.
#[tokio::test]
async fn one_yes_starts_one_of_two_same_calls() {
    let folder = Folder::new();
    let (one, other) = (folder.process(patient()), folder.process(patient()));
    let start = |process: &Process| {
        let engine = process.engine.clone();
        tokio::spawn(async move { engine.execute(write("x")).await })
    };
    let first = start(&one);
    let open = one.waiting(1).await;
    let second = start(&other);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(one.waiting(1).await.len(), 1, "it is one question");
    assert!(one.answer(&open[0].request.id, Decision::Approve).await);
    let next = within("the other's own question", async {
        loop {
            let open = one.approvals(ApprovalState::Open).await;
            if let Some(question) = open.into_iter().next() {
                return question;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // The other's question may be there before the first call has begun.
    within("one of them runs", async {
        while one.ran().len() + other.ran().len() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(one.ran().len() + other.ran().len(), 1);
    assert!(one.answer(&next.request.id, Decision::Deny { reason: None }).await);
    let mut results = [within("one", first).await.unwrap(), within("other", second).await.unwrap()];
    results.sort_by_key(code);
    assert_eq!(results.each_ref().map(code), ["CONFIRMATION_DENIED", "OK"]);
    assert_eq!(one.ran().len() + other.ran().len(), 1);
}

/// The approver here and somebody elsewhere at the same time: one of the two counts, and what is recorded is what
/// happens.
#[tokio::test]
async fn the_first_answer_counts_wherever_it_comes_from() {
    let folder = Folder::new();
    for round in 0..10 {
        let door = patient();
        let process = folder.process(door.clone());
        let engine = process.engine.clone();
        let running = tokio::spawn(async move { engine.execute(write("x")).await });
        let id = process.waiting(1).await[0].request.id.clone();
        let opening = async {
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            door.open();
        };
        let (denied, ()) = tokio::join!(process.answer(&id, Decision::Deny { reason: None }), opening);
        let result = within("the call", running).await.unwrap();
        assert_eq!(code(&result), if denied { "CONFIRMATION_DENIED" } else { "OK" });
        assert_eq!(process.ran().len(), usize::from(!denied));
    }
}

#[tokio::test]
async fn same_calls_of_a_batch_are_questions_of_their_own_and_can_be_answered_one_by_one() {
    let folder = Folder::new();
    let process = folder.process(patient());
    let engine = process.engine.clone();
    let calls = vec![write("x"), write("x"), write("y")];
    let running = tokio::spawn(async move { engine.execute_batch(calls).await.0 });
    let open = process.waiting(3).await;
    let batches: std::collections::HashSet<_> =
        open.iter().map(|question| question.request.batch_id).collect();
    assert!(batches.len() == 1 && !batches.contains(&None), "they know that they belong together");
    assert!(process.answer(&open[0].request.id, Decision::Approve).await);
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert!(process.ran().is_empty(), "nothing runs before the whole batch is decided");
    assert!(process.answer(&open[1].request.id, Decision::Deny { reason: None }).await);
    assert!(process.answer(&open[2].request.id, Decision::Approve).await);
    let results = within("the batch", running).await.unwrap();
    assert_eq!(codes(&results), ["OK", "CONFIRMATION_DENIED", "OK"]);
}

fn edit(arguments: serde_json::Value) -> Decision {
    Decision::Edit { arguments: Arguments::from(arguments) }
}

#[tokio::test]
async fn changed_arguments_are_planned_anew_and_asked_about_again() {
    let folder = Folder::new();
    let process = folder.with(patient(), Settings::default(), |tool| {
        tool.takes(json!({"type": "object", "properties": {"text": {"type": "string"}}}))
    });
    let engine = process.engine.clone();
    let running = tokio::spawn(async move { engine.execute(write("x")).await });
    let first = process.waiting(1).await.remove(0);
    assert!(process.answer(&first.request.id, edit(json!({"text": "y"}))).await);
    let second = loop {
        let open = process.waiting(1).await.remove(0);
        if open.request.id != first.request.id {
            break open;
        }
    };
    assert_eq!(second.request.arguments.as_str(), r#"{"text":"y"}"#);
    assert_eq!(second.request.replaces.as_ref(), Some(&first.request.id));
    assert_ne!(second.request.fingerprint, first.request.fingerprint);
    assert!(process.ran().is_empty(), "a change is no yes");
    assert!(process.answer(&second.request.id, Decision::Approve).await);
    let result = within("the call", running).await.unwrap();
    assert_eq!(code(&result), "OK");
    assert_eq!(process.ran(), [r#"{"text":"y"}"#], "what was shown last is what ran");
    let said = format!("{:?}", result.content);
    assert!(said.contains("A person changed the arguments of this call to"), "{said}");
    // The same call again is asked about as it was sent.
    let engine = process.engine.clone();
    let running = tokio::spawn(async move { engine.execute(write("x")).await });
    let open = process.waiting(1).await.remove(0);
    assert_eq!(open.request.arguments.as_str(), r#"{"text":"x"}"#);
    // What does not fit is refused as if it had come in like that.
    assert!(process.answer(&open.request.id, edit(json!({"text": [5]}))).await);
    let result = within("the call", running).await.unwrap();
    assert_eq!(code(&result), "VALIDATION_FAILED");
    assert_eq!(process.ran().len(), 1);
}

#[tokio::test]
async fn whoever_keeps_changing_the_arguments_is_not_asked_for_ever() {
    let folder = Folder::new();
    let count = Count::default();
    let always = Answers::by(move |_| edit(json!({"text": format!("{}", count.up())})));
    let process = folder.process(always.clone());
    let result = within("the call", process.engine.execute(write("x"))).await;
    assert_eq!(code(&result), "CONFIRMATION_DENIED");
    assert_eq!(always.asked().len(), 20);
    assert!(process.ran().is_empty());
}

#[tokio::test]
async fn answers_count_from_where_they_are_accepted() {
    let folder = Folder::new();
    let settings =
        Settings { accept_answers: AcceptAnswers::only([Channel::Terminal]), ..Settings::default() };
    for (from, expected) in [
        (Channel::Terminal, "OK"),
        (Channel::CommandLine, "CONFIRMATION_DENIED"),
        (Channel::Http, "CONFIRMATION_DENIED"),
        (Channel::Mcp, "CONFIRMATION_DENIED"),
    ] {
        let process = folder.with(Arc::new(NobodyToAsk), settings.clone(), |tool| tool);
        let first = process.engine.execute(write("x")).await;
        let answer = by(Decision::Approve, from);
        assert!(process.list("local").answer(&approval_of(&first), answer).await.unwrap());
        let result = process.engine.execute(write("x")).await;
        assert_eq!(code(&result), expected, "{from}");
        assert_eq!(process.ran().len(), usize::from(expected == "OK"));
    }
}

/// What an approver that is wired in says counts, and its answers are on record.
#[tokio::test]
async fn an_approver_of_the_program_is_on_record() {
    let folder = Folder::new();
    let process = folder.process(Answers::yes());
    assert_eq!(code(&process.engine.execute(write("x")).await), "OK");
    let used = process.approvals(ApprovalState::Used).await;
    assert_eq!((used.len(), used[0].answered_from), (1, Some(Channel::Program)));
}

#[tokio::test]
async fn a_cancelled_call_leaves_no_question_behind() {
    let folder = Folder::new();
    let process = folder.process(patient());
    let (id, options) = common::known_id();
    let engine = process.engine.clone();
    let request = BatchRequest::from(vec![write("x")])
        .options(BatchOptions { call: options, ..BatchOptions::default() });
    let running = tokio::spawn(async move { engine.execute_batch(request).await.0 });
    let open = process.waiting(1).await;
    let batch = haft_core::BatchId::from_uuid(id.as_uuid());
    assert!(process.engine.cancel(batch, haft_sdk::CancelReason::User, None));
    assert_eq!(codes(&within("the batch", running).await.unwrap()), ["CANCELLED"]);
    assert!(!process.answer(&open[0].request.id, Decision::Approve).await, "nobody can agree to it any more");
    let again = folder.process(Arc::new(NobodyToAsk));
    assert_eq!(code(&again.engine.execute(write("x")).await), "CONFIRMATION_REQUIRED");
    assert!(process.ran().is_empty() && again.ran().is_empty());
}

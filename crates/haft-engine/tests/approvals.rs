//! Approvals as every face uses them, over each store: in memory, and in SQLite as two processes share it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Door, call_with, code, tool, within};
use haft_core::{
    ApprovalId, ApprovalMode, ApprovalRequest, Channel, ErrorCode, ExecutionId, GrantOffer, ToolCall,
    ToolError,
    port::{AcceptAnswers, ApprovalState, Approver, NobodyToAsk, Store, StoredApproval},
};
use haft_engine::{ApprovalError, Approvals, Engine, GrantTime, LONGEST_GRANT, Remember, Reply, WhichOffer};
use haft_guard::{Covers, Grant, KnownSecrets, Lasts, ListPolicy, PermissionStrings};
use haft_store::{DurableStore, MemoryStore, Options};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

/// Where approvals are kept, as the process that asks has it and as one that answers has it.
struct Place {
    name: &'static str,
    asks: Arc<dyn Store>,
    answers: Arc<dyn Store>,
    _folder: Option<tempfile::TempDir>,
}

fn sqlite(folder: &Path) -> DurableStore {
    DurableStore::open_sqlite(folder, Options::default()).unwrap()
}

fn places() -> Vec<Place> {
    let memory = MemoryStore::new();
    let folder = tempfile::tempdir().unwrap();
    vec![
        Place { name: "memory", asks: Arc::new(memory.clone()), answers: Arc::new(memory), _folder: None },
        Place {
            name: "sqlite",
            asks: Arc::new(sqlite(folder.path())),
            answers: Arc::new(sqlite(folder.path())),
            _folder: Some(folder),
        },
    ]
}

impl Place {
    /// As a process without an engine has them.
    fn approvals(&self) -> Approvals {
        Approvals::over(self.answers.for_tenant("local"), AcceptAnswers::default())
    }

    async fn ask(&self, request: &ApprovalRequest) -> ApprovalId {
        self.asks.for_tenant("local").ask(request.clone(), Vec::new()).await.unwrap()
    }

    async fn state(&self, id: &ApprovalId) -> ApprovalState {
        self.approvals().get(id).await.unwrap().state
    }

    /// An engine whose tool `write` always asks, and notes what it ran with.
    fn engine(&self, approver: Arc<dyn Approver>) -> (Engine, Arc<Mutex<Vec<String>>>) {
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&ran);
        let write = tool("write", move |args, _| {
            seen.lock().unwrap().push(args.original.as_str().to_owned());
            async { Ok("done") }
        });
        let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
        let engine = Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::clone(&self.asks))
            .approver(approver)
            .redactor(Arc::new(KnownSecrets::new([("TOKEN", "hunter2hunter2".to_owned())])))
            .tool(write.effects().asks())
            .build()
            .unwrap();
        (engine, ran)
    }
}

fn covers() -> Covers {
    Covers::Host { tool: "fetch".into(), host: "example.com".into(), fixed: Default::default() }
}

fn request(id: &str) -> ApprovalRequest {
    let request = json!({
        "id": id, "executionId": ExecutionId::at(Timestamp::UNIX_EPOCH), "callId": "c", "tool": "fetch",
        "summary": "fetch a page", "reason": "it always asks", "risk": "high", "arguments": {"path": "a"},
        "fingerprint": id, "asker": {"tenant": "local", "agent": "helper"},
    });
    let request: ApprovalRequest = serde_json::from_value(request).unwrap();
    ApprovalRequest { offers: vec![covers().offer().unwrap()], ..request }
}

fn deny(reason: &str) -> Reply {
    Reply::Deny { reason: Some(reason.to_owned()) }
}

fn edit(arguments: Value) -> Reply {
    Reply::Edit { arguments: arguments.into() }
}

fn remember(kind: &str, lasts: GrantTime) -> Reply {
    Reply::Approve { remember: Some(Remember { offer: WhichOffer::Kind(kind.to_owned()), lasts }) }
}

fn ids(approvals: &[StoredApproval]) -> Vec<&str> {
    approvals.iter().map(|approval| approval.request.id.as_str()).collect()
}

fn write(text: &str) -> ToolCall {
    call_with("write", json!({"text": text}))
}

/// The first open approval, however long it takes to be asked for.
async fn first_open(approvals: &Approvals) -> StoredApproval {
    within("an approval", approvals.subscribe().next()).await.unwrap()
}

#[tokio::test]
async fn an_approval_is_found_and_answered_once() {
    for place in places() {
        let approvals = place.approvals();
        for id in ["apr_1111aaaa", "apr_1111bbbb", "apr_2222cccc"] {
            place.ask(&request(id)).await;
        }
        assert_eq!(ids(&approvals.open().await.unwrap()), ["apr_1111aaaa", "apr_1111bbbb", "apr_2222cccc"]);
        let found = approvals.find("apr_2222").await.unwrap();
        assert_eq!(found.request.id.as_str(), "apr_2222cccc");
        let several = approvals.find("apr_1111").await.unwrap_err();
        assert!(several.to_string().starts_with("several ids begin with `apr_1111`:"), "{several}");
        for unknown in ["apr_", "apr_222", "apr_3333", "nonsense"] {
            let error = approvals.find(unknown).await.unwrap_err();
            assert_eq!(error.to_string(), format!("there is no approval `{unknown}`"), "{}", place.name);
        }
        let others = Approvals::over(place.answers.for_tenant("other"), AcceptAnswers::default());
        let id = found.request.id;
        for error in [
            others.get(&id).await.unwrap_err(),
            others.answer(&id, Reply::approve(), "eve", Channel::Http).await.unwrap_err(),
        ] {
            assert_eq!(error.code(), ErrorCode::NotFound);
        }
        let answered = approvals.answer(&id, deny("not today"), "ada", Channel::Http).await.unwrap();
        assert_eq!((answered.approval.state, answered.grant), (ApprovalState::Denied, None));
        assert_eq!(answered.approval.answer_reason.as_deref(), Some("not today"));
        // The first answer is final.
        let late = approvals.answer(&id, Reply::approve(), "bob", Channel::Terminal).await.unwrap_err();
        assert_eq!(
            late.to_string(),
            "`apr_2222cccc` already has an answer: denied by ada (http): not today",
            "{}",
            place.name
        );
        assert_eq!(ToolError::from(late).code, ErrorCode::AlreadyAnswered);
        // What is over does not make a prefix ambiguous.
        approvals
            .answer(&ApprovalId::from_text("apr_1111aaaa"), Reply::approve(), "ada", Channel::Http)
            .await
            .unwrap();
        assert_eq!(approvals.find("apr_1111").await.unwrap().request.id.as_str(), "apr_1111bbbb");
    }
}

#[tokio::test]
async fn an_answer_from_where_none_is_accepted_changes_nothing() {
    for place in places() {
        let id = place.ask(&request("apr_1")).await;
        let list = || place.answers.for_tenant("local");
        let only_here = Approvals::over(list(), AcceptAnswers::only([haft_core::Channel::Terminal]));
        let refused = only_here.answer(&id, Reply::approve(), "ada", Channel::Http).await.unwrap_err();
        assert_eq!(refused.to_string(), "haft does not accept answers from `http` here");
        let error = ToolError::from(refused);
        assert_eq!(error.code, ErrorCode::PermissionDenied);
        assert!(error.message.ends_with(": add \"http\" to accept_from under [tools.approval]"), "{error}");
        assert_eq!(place.state(&id).await, ApprovalState::Open, "{}", place.name);
        only_here.answer(&id, Reply::approve(), "ada", Channel::Terminal).await.unwrap();
        assert_eq!(place.state(&id).await, ApprovalState::Approved);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_changes_nothing() {
    for place in places() {
        let approvals = place.approvals();
        let id = place.ask(&request("apr_1")).await;
        let mut hidden = request("apr_2");
        hidden.detail.hidden = Some(String::new());
        let hidden = place.ask(&hidden).await;
        let mut plain = request("apr_3");
        plain.offers.clear();
        let plain = place.ask(&plain).await;
        let refused = [
            (&hidden, edit(json!({"path": "b"})), "the arguments cannot be changed: they hold secrets"),
            (&id, edit(json!({"path": "a"})), "they did not change"),
            (&id, edit(json!([1])), "must be a JSON object"),
            (&id, remember("everything", GrantTime::Always), "haft can remember only this of the call: host"),
            (&plain, remember("host", GrantTime::Always), "haft can remember nothing of this call"),
            (&id, remember("host", GrantTime::Session), "the call belongs to no session"),
            (&id, remember("host", GrantTime::For(Duration::ZERO)), "a grant must last longer than"),
            (&id, remember("host", GrantTime::For(LONGEST_GRANT * 2)), "365 days at most"),
            (&id, deny(&"x".repeat(1001)), "`reason` must have 1000 characters at most"),
        ];
        for (id, reply, words) in refused {
            let approval = approvals.get(id).await.unwrap();
            let checked = approvals.check(&approval, &reply, Channel::Http).unwrap_err();
            let error = approvals.answer(id, reply.clone(), "ada", Channel::Http).await.unwrap_err();
            assert_eq!(checked, error);
            assert!(error.to_string().contains(words), "{reply:?}: {error}");
            assert_eq!(place.state(id).await, ApprovalState::Open, "{} {reply:?}", place.name);
        }
        assert_eq!(approvals.grants(true).await.unwrap(), []);
        // The control: the same with what fits.
        approvals.answer(&id, edit(json!({"path": "b"})), "ada", Channel::Http).await.unwrap();
        assert_eq!(approvals.get(&id).await.unwrap().edited, Some(json!({"path": "b"}).into()));
        approvals.answer(&hidden, deny(&"x".repeat(1000)), "ada", Channel::Http).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_remembered_is_what_the_guard_offered() {
    for place in places() {
        let approvals = place.approvals();
        let mut asked = request("apr_1");
        asked.asker.session = Some("s1".into());
        let cases = [
            (GrantTime::Always, None, None),
            (GrantTime::Session, Some("s1"), None),
            (GrantTime::For(Duration::from_secs(60)), None, Some(Duration::from_secs(60))),
        ];
        for (number, (lasts, session, time)) in cases.into_iter().enumerate() {
            let name = format!("apr_{number}");
            let id = ApprovalId::from_text(&name);
            asked = ApprovalRequest { id, fingerprint: name, ..asked };
            let id = place.ask(&asked).await;
            let answered =
                approvals.answer(&id, remember("host", lasts), "ada", Channel::Http).await.unwrap();
            assert_eq!(answered.approval.state, ApprovalState::Approved);
            let grant = answered.grant.unwrap();
            let end = time.map(|time| grant.granted_at.checked_add(time).unwrap());
            assert_eq!((grant.session.as_deref(), grant.expires_at), (session, end));
            assert_eq!(
                (&*grant.tool, grant.agent.as_deref(), &*grant.granted_by),
                ("fetch", Some("helper"), "ada")
            );
            let understood = Covers::from_document(&serde_json::from_str(&grant.covers).unwrap()).unwrap();
            assert_eq!(understood, covers());
            let lasts = match (session, end) {
                (Some(session), _) => Lasts::Session(session.to_owned()),
                (None, Some(end)) => Lasts::Until(end),
                (None, None) => Lasts::Always,
            };
            assert_eq!(grant.shown, Grant::new("g", "local", understood, lasts).to_string());
            assert_eq!(approvals.grants(false).await.unwrap().last(), Some(&grant), "{}", place.name);
        }
        let first = approvals.grants(false).await.unwrap().remove(0);
        assert!(approvals.revoke(&first.id, "ada").await.unwrap());
        assert!(!approvals.revoke(&first.id, "ada").await.unwrap());
        assert_eq!(
            (approvals.grants(false).await.unwrap().len(), approvals.grants(true).await.unwrap().len()),
            (2, 3)
        );
    }
}

#[tokio::test]
async fn an_answer_is_waited_for_until_it_comes_or_the_time_is_over() {
    for place in places() {
        let approvals = place.approvals();
        let id = place.ask(&request("apr_1")).await;
        let over = within("the deadline", approvals.wait(&id, Some(Duration::from_millis(1)))).await.unwrap();
        assert_eq!(over.state, ApprovalState::Open, "{}", place.name);
        let waiting = {
            let (approvals, id) = (approvals.clone(), id.clone());
            tokio::spawn(async move { approvals.wait(&id, None).await })
        };
        approvals.answer(&id, deny("no"), "ada", Channel::Terminal).await.unwrap();
        let heard = within("the answer", waiting).await.unwrap().unwrap();
        assert_eq!((heard.state, heard.answered_by.as_deref()), (ApprovalState::Denied, Some("ada")));
        let unknown = approvals.wait(&ApprovalId::from_text("apr_9"), None).await.unwrap_err();
        assert_eq!(unknown.code(), ErrorCode::NotFound);
    }
}

#[tokio::test]
async fn who_subscribes_hears_of_each_open_approval_once() {
    for place in places() {
        let approvals = place.approvals();
        let over = place.ask(&request("apr_0")).await;
        approvals.answer(&over, Reply::approve(), "ada", Channel::Http).await.unwrap();
        for id in ["apr_1", "apr_2"] {
            place.ask(&request(id)).await;
        }
        let mut open = approvals.subscribe();
        let mut heard = Vec::new();
        for later in [None, None, Some("apr_3"), Some("apr_4")] {
            if let Some(id) = later {
                // Nothing is lost with a future that was dropped.
                assert!(tokio::time::timeout(Duration::from_millis(1), open.next()).await.is_err());
                place.ask(&request(id)).await;
            }
            heard.push(within("an approval", open.next()).await.unwrap().request.id.to_string());
        }
        assert_eq!(heard, ["apr_1", "apr_2", "apr_3", "apr_4"], "{}", place.name);
    }
}

#[tokio::test]
async fn a_call_that_waits_goes_on_with_an_answer_from_elsewhere() {
    for place in places() {
        let (engine, ran) = place.engine(Door::closed());
        let running = tokio::spawn({
            let engine = engine.clone();
            async move { engine.execute(write("x")).await }
        });
        let approvals = place.approvals();
        let open = first_open(&approvals).await;
        assert_eq!(engine.approvals("local").get(&open.request.id).await.unwrap(), open, "the same list");
        assert!(ran.lock().unwrap().is_empty(), "nothing runs before the answer");
        approvals.answer(&open.request.id, Reply::approve(), "ada", Channel::CommandLine).await.unwrap();
        assert_eq!(code(&within("the call", running).await.unwrap()), "OK", "{}", place.name);
        assert_eq!(*ran.lock().unwrap(), [r#"{"text":"x"}"#]);
        assert_eq!(place.state(&open.request.id).await, ApprovalState::Used);
        // A yes is for one call.
        let (engine, ran) = place.engine(Arc::new(NobodyToAsk));
        assert_eq!(code(&engine.execute(write("x")).await), "CONFIRMATION_REQUIRED");
        let next = first_open(&approvals).await;
        assert_ne!(next.request.id, open.request.id);
        engine
            .approvals("local")
            .answer(&next.request.id, Reply::approve(), "ada", Channel::Program)
            .await
            .unwrap();
        assert!(ran.lock().unwrap().is_empty(), "an answer runs nothing by itself");
        assert_eq!(code(&engine.execute(write("x")).await), "OK");
        assert_eq!(ran.lock().unwrap().len(), 1);
    }
}

/// A person who is asked about a call answers that call, whoever else makes the same one meanwhile.
#[tokio::test]
async fn two_calls_that_are_the_same_and_wait_have_an_approval_each() {
    for place in places() {
        let (engine, ran) = place.engine(Door::closed());
        let approvals = place.approvals();
        let mut open = approvals.subscribe();
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let engine = engine.clone();
            let call = tokio::spawn(async move { engine.execute(write("x")).await });
            waiting.push((call, within("an approval", open.next()).await.unwrap().request.id));
        }
        for ((call, id), (reply, expected)) in
            waiting.into_iter().zip([(deny("no"), "CONFIRMATION_DENIED"), (Reply::approve(), "OK")])
        {
            approvals.answer(&id, reply, "ada", Channel::Http).await.unwrap();
            assert_eq!(code(&within("the call", call).await.unwrap()), expected, "{}", place.name);
        }
        assert_eq!(ran.lock().unwrap().len(), 1);
        // Once nobody waits, the same call is the same approval again.
        let (engine, _) = place.engine(Arc::new(NobodyToAsk));
        for _ in 0..2 {
            assert_eq!(code(&engine.execute(write("x")).await), "CONFIRMATION_REQUIRED");
        }
        assert_eq!(approvals.open().await.unwrap().len(), 1, "{}", place.name);
    }
}

#[tokio::test]
async fn a_changed_call_is_asked_about_again_and_its_approval_is_found() {
    for place in places() {
        let (engine, ran) = place.engine(Door::closed());
        let running = tokio::spawn(async move { engine.execute(write("x")).await });
        let approvals = place.approvals();
        let open = first_open(&approvals).await.request;
        approvals.answer(&open.id, edit(json!({"text": "y"})), "ada", Channel::Http).await.unwrap();
        let changed = approvals.replacement(&open.id, Duration::from_secs(20)).await.unwrap();
        let changed = changed.expect("somebody waits for it").request;
        assert_eq!(
            (changed.replaces.as_ref(), &changed.arguments),
            (Some(&open.id), &json!({"text": "y"}).into())
        );
        assert!(ran.lock().unwrap().is_empty());
        approvals.answer(&changed.id, Reply::approve(), "ada", Channel::Http).await.unwrap();
        assert_eq!(code(&within("the call", running).await.unwrap()), "OK");
        assert_eq!(*ran.lock().unwrap(), [r#"{"text":"y"}"#], "{}", place.name);
        // Nobody waits for this one.
        let id = place.ask(&request("apr_1")).await;
        approvals.answer(&id, edit(json!({"path": "b"})), "ada", Channel::Http).await.unwrap();
        assert_eq!(approvals.replacement(&id, Duration::ZERO).await.unwrap(), None);
    }
}

/// Whether something is hidden is a fact of the approval, and no matter of what the text looks like.
#[tokio::test]
async fn arguments_can_be_changed_where_nothing_is_hidden() {
    for place in places() {
        let approvals = place.approvals();
        for (text, can_edit) in
            [("use hunter2hunter2", false), ("write [redacted:TOKEN] into the page", true)]
        {
            let (engine, ran) = place.engine(Door::closed());
            let running = tokio::spawn(async move { engine.execute(write(text)).await });
            let open = first_open(&approvals).await.request;
            assert!(open.arguments.as_str().contains("[redacted:TOKEN]"), "{}", open.arguments.as_str());
            assert_eq!(open.can_edit(), can_edit, "{text}");
            let answered = approvals.answer(&open.id, edit(json!({"text": "y"})), "ada", Channel::Http).await;
            if !can_edit {
                assert_eq!(answered.unwrap_err(), ApprovalError::Hidden);
                approvals.answer(&open.id, deny("no"), "ada", Channel::Http).await.unwrap();
                assert_eq!(code(&within("the call", running).await.unwrap()), "CONFIRMATION_DENIED");
                continue;
            }
            answered.unwrap();
            let changed = approvals.replacement(&open.id, Duration::from_secs(20)).await.unwrap().unwrap();
            approvals.answer(&changed.request.id, Reply::approve(), "ada", Channel::Http).await.unwrap();
            assert_eq!(code(&within("the call", running).await.unwrap()), "OK", "{}", place.name);
            assert_eq!(*ran.lock().unwrap(), [r#"{"text":"y"}"#]);
        }
    }
}

const FOLDER: &str = "HAFT_APPROVALS_FOLDER";

/// A process that answers with a grant, until it is killed.
#[test]
#[ignore = "run by the next one, as a process of its own"]
fn child() {
    let folder = PathBuf::from(std::env::var(FOLDER).expect("run by another test"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let list = sqlite(&folder).for_tenant("local");
        let approvals = Approvals::over(list, AcceptAnswers::default());
        let open = approvals.open().await.unwrap().remove(0).request;
        approvals.answer(&open.id, remember("host", GrantTime::Always), "ada", Channel::Http).await.unwrap();
    });
}

/// The process is killed between the decision and its grant, and at every moment after: neither is there, or both are.
#[tokio::test]
async fn a_crash_leaves_an_answer_with_its_grant_or_neither() {
    for (moment, both) in
        [("decided", false), ("applied", false), ("written", true), ("told", true), ("never", true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let id = {
            let list = sqlite(folder.path()).for_tenant("local");
            list.ask(request("apr_1"), Vec::new()).await.unwrap()
        };
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "child"])
            .env(FOLDER, folder.path())
            .env("HAFT_FAILPOINT", format!("answer:{moment}:1"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        match moment {
            "never" => assert!(status.success(), "the control: {status}"),
            _ => assert_eq!(status.signal(), Some(9), "{moment}: {status}"),
        }
        let approvals = Approvals::over(sqlite(folder.path()).for_tenant("local"), AcceptAnswers::default());
        let (state, grants) = match both {
            true => (ApprovalState::Approved, 1),
            false => (ApprovalState::Open, 0),
        };
        assert_eq!(approvals.get(&id).await.unwrap().state, state, "{moment}");
        assert_eq!(approvals.grants(true).await.unwrap().len(), grants, "{moment}");
    }
}

#[test]
fn every_offer_can_be_taken_by_its_place() {
    // Two offers of one kind: the first is meant by its kind, each by its place.
    let offer = |host: &str| {
        let covers = Covers::Host { tool: "fetch".into(), host: host.into(), fixed: Default::default() };
        covers.offer().unwrap()
    };
    let offers: Vec<GrantOffer> = vec![offer("a.example"), offer("b.example")];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = MemoryStore::new();
        let approvals = Approvals::over(store.for_tenant("local"), AcceptAnswers::default());
        for (which, host) in [
            (WhichOffer::Kind("host".into()), "a.example"),
            (WhichOffer::Place(0), "a.example"),
            (WhichOffer::Place(1), "b.example"),
        ] {
            let id = ApprovalId::random();
            let asked = ApprovalRequest { offers: offers.clone(), ..request(id.as_str()) };
            let id = store.for_tenant("local").ask(asked, Vec::new()).await.unwrap();
            let remember = Some(Remember { offer: which, lasts: GrantTime::Always });
            let answered = approvals.answer(&id, Reply::Approve { remember }, "ada", Channel::Terminal).await;
            assert!(answered.unwrap().grant.unwrap().shown.contains(host));
        }
        let id = store.for_tenant("local").ask(request("apr_1"), Vec::new()).await.unwrap();
        let remember = Some(Remember { offer: WhichOffer::Place(7), lasts: GrantTime::Always });
        let refused =
            approvals.answer(&id, Reply::Approve { remember }, "ada", Channel::Terminal).await.unwrap_err();
        assert_eq!(refused, ApprovalError::NoOffer { kinds: vec!["host".into()] });
    });
}

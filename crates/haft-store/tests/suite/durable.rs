//! What holds for stores that outlive the process.

use super::{
    Home,
    make::{after, call, noon},
};
use haft_core::{
    ApprovalId, ApprovalRequest, Arguments, BatchId, CallContext, Decision, ErrorCode, ExecutionId, Risk,
    Status,
    port::{
        ApiKey, AuditQuery, BatchBegin, CallState, Claim, DISCARDED_AFTER_CRASH, JournalCall, JournalStep,
        KeyStore, MISSING_AFTER_CRASH, OutputRange, OutputSearch, Plan, Recovery, Registrations as _, Right,
        Store as _, StoredTool, UnfinishedId,
    },
};
use haft_store::{DurableStore, Grant, Keep, Options, QuestionState};
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};

pub async fn run(home: &dyn Home) {
    everything_is_there_after_a_restart(home).await;
    a_run_has_its_input_and_result(home).await;
    what_was_started_and_not_ended_is_unknown(home).await;
    living_processes_are_left_alone(home).await;
    keys_survive_a_crash(home).await;
    a_crash_while_calls_stream_in(home).await;
    a_batch_is_resumed_with_what_is_there(home).await;
    a_batch_is_discarded(home).await;
    batches_cannot_be_mixed_up(home).await;
    an_approval_is_used_once(home).await;
    keys_are_known_by_their_hash(home).await;
    questions_are_answered_once(home).await;
    grants_hold_until_they_do_not(home).await;
    registrations_stay(home).await;
    outputs_are_searched_kept_once_and_let_go(home).await;
    what_is_too_old_goes(home).await;
}

async fn everything_is_there_after_a_restart(home: &dyn Home) {
    let store = home.open();
    let done = call("restart", "write");
    store.intent(done.intent()).await.unwrap();
    store.outcome(done.outcome()).await.unwrap();
    // Nobody waits for this one, but closing writes it.
    store.outcome(call("restart", "read").without_effect().outcome()).await.unwrap();
    let handle = store.keep_output("restart", b"kept".to_vec()).await.unwrap();
    drop(store);
    let store = home.open();
    let tenant = store.for_tenant("restart");
    assert_eq!(tenant.audit(10).await.unwrap().len(), 2);
    let all = OutputRange { offset: 0, length: 100 };
    assert_eq!(tenant.output(&handle, all).await.unwrap(), Some((b"kept".to_vec(), 4)));
    assert!(tenant.unfinished().await.unwrap().is_empty());
}

async fn a_run_has_its_input_and_result(home: &dyn Home) {
    let store = home.open();
    let made = call("run", "write");
    store.intent(made.intent()).await.unwrap();
    store.outcome(made.outcome()).await.unwrap();
    let run = store.for_tenant("run").run(made.id).await.unwrap().expect("it is kept");
    assert_eq!(run.arguments, Some(made.arguments.clone()));
    let result = run.result.expect("its result is kept");
    assert_eq!(result.text(), "done");
    assert_eq!(result.metadata, made.result().metadata);
    let hashes = run.record.hashes.expect("this store works them out");
    assert_eq!(hashes.input, "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd");
    assert!(store.for_tenant("other").run(made.id).await.unwrap().is_none());
}

async fn what_was_started_and_not_ended_is_unknown(home: &dyn Home) {
    let store = home.open();
    let (ended, started) = (call("crash", "write"), call("crash", "write"));
    store.intent(ended.intent()).await.unwrap();
    store.outcome(ended.outcome()).await.unwrap();
    store.intent(started.intent()).await.unwrap();
    home.crash(store);

    let store = home.open();
    let tenant = store.for_tenant("crash");
    let unfinished = tenant.unfinished().await.unwrap();
    let [left] = &unfinished[..] else { panic!("{unfinished:?}") };
    assert_eq!(left.id, UnfinishedId::Call(started.id));
    assert!(matches!(left.calls[0].state, CallState::OutcomeUnknown { attempt: 1, .. }));
    let records = tenant.audit(10).await.unwrap();
    let unknown: Vec<_> =
        records.iter().filter(|record| record.code == Some(ErrorCode::OutcomeUnknown)).collect();
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].metadata.execution_id, started.id);
    assert_eq!(records.len(), 2, "each has one record");
    // Looking again adds nothing.
    drop(store);
    let store = home.open();
    assert_eq!(store.for_tenant("crash").audit(10).await.unwrap().len(), 2);
    let tenant = store.for_tenant("crash");
    let gone = tenant.recover(left.id, Recovery::Resume).await.unwrap().expect("it waits");
    assert_eq!(gone[0].text, MISSING_AFTER_CRASH);
    assert!(gone[0].is_error && gone[0].outcome_unknown);
    assert!(tenant.unfinished().await.unwrap().is_empty());
    assert!(tenant.recover(left.id, Recovery::Resume).await.unwrap().is_none(), "once");
    assert!(store.intent(started.intent()).await.is_err(), "its id cannot be used again");
}

async fn living_processes_are_left_alone(home: &dyn Home) {
    let (one, other) = (home.open(), home.open());
    let running = call("alive", "write");
    one.intent(running.intent()).await.unwrap();
    one.claim(running.claim("k")).await.unwrap();
    assert!(other.for_tenant("alive").unfinished().await.unwrap().is_empty());
    let again = call("alive", "write");
    assert!(matches!(other.claim(again.claim("k")).await.unwrap(), Claim::InFlight(id) if id == running.id));
    one.outcome(running.settling("k")).await.unwrap();
    assert!(matches!(other.claim(again.claim("k")).await.unwrap(), Claim::Settled(_)));
    assert_eq!(other.for_tenant("alive").audit(10).await.unwrap().len(), 1, "one sees what the other did");
}

async fn keys_survive_a_crash(home: &dyn Home) {
    let store = home.open();
    let (settled, started, claimed) = (call("keep", "a"), call("keep", "b"), call("keep", "c"));
    for call in [&settled, &started, &claimed] {
        store.claim(call.claim("k")).await.unwrap();
    }
    store.intent(settled.intent()).await.unwrap();
    store.outcome(settled.settling("k")).await.unwrap();
    store.intent(started.intent()).await.unwrap();
    // The other process is there before this one dies, so nothing is swept at its start.
    let other = home.open();
    home.crash(store);
    let again = |tool| call("keep", tool).claim("k");
    assert!(matches!(other.claim(again("a")).await.unwrap(), Claim::Settled(_)));
    match other.claim(again("b")).await.unwrap() {
        Claim::OutcomeUnknown(id) => assert_eq!(id, started.id),
        claim => panic!("{claim:?}"),
    }
    assert!(matches!(other.claim(again("c")).await.unwrap(), Claim::Fresh), "it never started");
    assert!(matches!(other.claim(again("b")).await.unwrap(), Claim::OutcomeUnknown(_)), "and stays unknown");
}

fn begin(tenant: &str, batch: BatchId) -> JournalStep {
    JournalStep::Begin(BatchBegin {
        batch,
        context: Arc::new(CallContext { session: Some("s1".into()), ..CallContext::new(tenant, "agent-1") }),
        model: Some("model-1".into()),
        assistant_text: "I will ".into(),
        at: noon(),
    })
}

/// IT-JRN-01: the process dies after each step of the intake; what had come is there.
async fn a_crash_while_calls_stream_in(home: &dyn Home) {
    let steps = |batch: BatchId| {
        vec![
            begin("stream", batch),
            JournalStep::Text { batch, delta: "look".into() },
            JournalStep::CallStart { batch, index: 0, call_id: "c0".into(), tool: "read".into() },
            JournalStep::ArgsDelta { batch, index: 0, delta: "{\"path\":".into() },
            JournalStep::ArgsDelta { batch, index: 0, delta: "\"a\"}".into() },
            JournalStep::CallStart { batch, index: 1, call_id: "c1".into(), tool: "write".into() },
            JournalStep::ArgsDelta { batch, index: 1, delta: "{\"pa".into() },
            JournalStep::Seal { batch, at: after(10) },
        ]
    };
    type Left<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);
    let expected: [Left<'_>; 8] = [
        ("I will ", &[], false),
        ("I will look", &[], false),
        ("I will look", &[("read", "")], false),
        ("I will look", &[("read", "{\"path\":")], false),
        ("I will look", &[("read", "{\"path\":\"a\"}")], false),
        ("I will look", &[("read", "{\"path\":\"a\"}"), ("write", "")], false),
        ("I will look", &[("read", "{\"path\":\"a\"}"), ("write", "{\"pa")], false),
        ("I will look", &[("read", "{\"path\":\"a\"}"), ("write", "{\"pa")], true),
    ];
    for (count, (text, calls, sealed)) in (1..).zip(expected) {
        let store = home.open_full();
        let batch = BatchId::at(noon());
        for step in steps(batch).into_iter().take(count) {
            store.journal(step).await.unwrap();
        }
        home.crash(store);
        let store = home.open();
        let tenant = store.for_tenant("stream");
        let unfinished = tenant.unfinished().await.unwrap();
        let [left] = &unfinished[..] else { panic!("after {count} steps: {unfinished:?}") };
        assert_eq!(left.id, UnfinishedId::Batch(batch));
        assert_eq!((&*left.assistant_text, left.sealed), (text, sealed), "after {count} steps");
        assert_eq!((left.model.as_deref(), left.session.as_deref()), (Some("model-1"), Some("s1")));
        let found: Vec<_> = left.calls.iter().map(|call| (&*call.tool, call.arguments.as_str())).collect();
        assert_eq!(found, calls, "after {count} steps");
        assert!(left.calls.iter().all(|call| matches!(call.state, CallState::NeverStarted)));
        tenant.recover(left.id, Recovery::Discard).await.unwrap().expect("it waits");
    }
}

/// A batch of three: the first ended, the second was started, the third was not.
async fn interrupted(home: &dyn Home, tenant: &str) -> (DurableStore, UnfinishedId, [ExecutionId; 3]) {
    let store = home.open();
    let batch = BatchId::at(noon());
    let calls: [_; 3] = std::array::from_fn(|index| call(tenant, "write").in_batch(batch, index as u32));
    store.journal(begin(tenant, batch)).await.unwrap();
    let taken = calls.iter().enumerate().map(|(index, call)| JournalCall {
        execution_id: call.id,
        call_id: format!("c{index}").into(),
        tool: Arc::clone(&call.tool),
        arguments: call.arguments.clone(),
    });
    store.journal(JournalStep::Calls { batch, calls: taken.collect(), at: after(1) }).await.unwrap();
    let plans = (0..3).map(|index| (index, Plan::Runs)).collect();
    store.journal(JournalStep::Decided { batch, calls: plans }).await.unwrap();
    store.intent(calls[0].intent()).await.unwrap();
    store.outcome(calls[0].outcome()).await.unwrap();
    store.intent(calls[1].intent()).await.unwrap();
    home.crash(store);
    (home.open(), UnfinishedId::Batch(batch), calls.map(|call| call.id))
}

/// IT-JRN-02: the process dies in the middle; a person is asked, and nothing runs again.
async fn a_batch_is_resumed_with_what_is_there(home: &dyn Home) {
    let (store, id, calls) = interrupted(home, "resume").await;
    let tenant = store.for_tenant("resume");
    let unfinished = tenant.unfinished().await.unwrap();
    let [left] = &unfinished[..] else { panic!("{unfinished:?}") };
    let states: Vec<_> = left.calls.iter().map(|call| &call.state).collect();
    let [CallState::Finished(Some(result)), CallState::OutcomeUnknown { .. }, CallState::NeverStarted] =
        states[..]
    else {
        panic!("{states:?}")
    };
    assert_eq!(result.metadata.execution_id, calls[0]);
    assert!(store.for_tenant("other").recover(id, Recovery::Resume).await.unwrap().is_none());
    let gone_on = tenant.recover(id, Recovery::Resume).await.unwrap().expect("it waits");
    let texts: Vec<_> = gone_on
        .iter()
        .map(|call| (&*call.call_id, &*call.text, call.is_error, call.outcome_unknown))
        .collect();
    assert_eq!(
        texts,
        [
            ("c0", "done", false, false),
            ("c1", MISSING_AFTER_CRASH, true, true),
            ("c2", MISSING_AFTER_CRASH, true, false)
        ]
    );
    assert!(tenant.unfinished().await.unwrap().is_empty());
    let page = tenant.audit_page(AuditQuery::default()).await.unwrap();
    let mut codes: Vec<_> =
        page.records.iter().map(|(_, record)| (record.metadata.execution_id, record.code)).collect();
    codes.sort_unstable_by_key(|(id, _)| calls.iter().position(|call| call == id));
    let expected = [
        (calls[0], None),
        (calls[1], Some(ErrorCode::OutcomeUnknown)),
        (calls[2], Some(ErrorCode::NotStarted)),
    ];
    assert_eq!(codes, expected, "one record each");
}

async fn a_batch_is_discarded(home: &dyn Home) {
    let (store, id, calls) = interrupted(home, "discard").await;
    let tenant = store.for_tenant("discard");
    let gone = tenant.recover(id, Recovery::Discard).await.unwrap().expect("it waits");
    assert!(gone.iter().all(|call| call.text == DISCARDED_AFTER_CRASH && call.is_error));
    let run = tenant.run(calls[0]).await.unwrap().expect("the evidence stays");
    assert_eq!(run.result.expect("with its result").status, Status::Success);
}

async fn batches_cannot_be_mixed_up(home: &dyn Home) {
    let store = home.open_full();
    let batch = BatchId::at(noon());
    store.journal(begin("mix", batch)).await.unwrap();
    store.journal(begin("mix", batch)).await.unwrap();
    assert!(store.journal(begin("mix-other", batch)).await.is_err(), "another tenant's");
    store.journal(JournalStep::Seal { batch, at: noon() }).await.unwrap();
    let late = JournalStep::Text { batch, delta: "more".into() };
    assert!(store.journal(late).await.is_err(), "it is sealed");
    store.journal(JournalStep::Close { batch, at: noon() }).await.unwrap();
    assert!(store.journal(begin("mix", batch)).await.is_err(), "it is over");
    let unknown = JournalStep::Text { batch: BatchId::at(noon()), delta: "x".into() };
    assert!(store.journal(unknown).await.is_err(), "it has not begun");
    assert!(store.for_tenant("mix").unfinished().await.unwrap().is_empty());
}

async fn an_approval_is_used_once(home: &dyn Home) {
    let store = home.open();
    let approval = ApprovalId::random();
    let first = call("approval", "write");
    let mut intent = first.intent();
    intent.approval = Some(approval.clone());
    store.intent(intent.clone()).await.unwrap();
    intent.attempt = 2;
    store.intent(intent).await.unwrap();
    let mut second = call("approval", "write").intent();
    second.approval = Some(approval);
    let error = store.intent(second.clone()).await.unwrap_err();
    assert!(error.0.contains("used for another call"), "{error}");
    second.approval = None;
    store.intent(second).await.expect("nothing of the refused one was written");
}

fn question(tool: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::random(),
        execution_id: ExecutionId::at(noon()),
        call_id: "call_1".into(),
        tool: tool.into(),
        summary: "write to a file".to_owned(),
        risk: Risk::Medium,
        reason: "it has side effects".to_owned(),
        arguments: Arguments::from_text("{}"),
        preview: Some("-old\n+new\n".into()),
        fingerprint: "ab".repeat(32),
    }
}

async fn questions_are_answered_once(home: &dyn Home) {
    let (asking, answering) = (home.open(), home.open());
    let context = CallContext::new("ask", "agent-1");
    let (yes, no, late) = (question("a"), question("b"), question("c"));
    let tenant = asking.tenant("ask");
    for request in [&yes, &no] {
        tenant.ask(&context, request.clone(), None).await.unwrap();
    }
    tenant.ask(&context, late.clone(), Some(noon())).await.unwrap();
    assert!(asking.tenant("other").ask(&context, question("d"), None).await.is_err());
    let theirs = answering.tenant("ask");
    let open = theirs.questions(QuestionState::Open).await.unwrap();
    let open: Vec<_> = open.iter().map(|question| &question.request).collect();
    assert_eq!(open, [&yes, &no], "another process sees them, but for what has expired");
    assert!(theirs.answer(&yes.id, Decision::Approve, "ada").await.unwrap());
    assert!(!theirs.answer(&yes.id, Decision::Deny { reason: None }, "bob").await.unwrap(), "once");
    assert!(!answering.tenant("other").answer(&no.id, Decision::Approve, "eve").await.unwrap());
    let deny = Decision::Deny { reason: Some("not today".into()) };
    assert!(theirs.answer(&no.id, deny, "ada").await.unwrap());
    assert!(!theirs.answer(&late.id, Decision::Approve, "ada").await.unwrap(), "too late");
    let denied = tenant.question(&no.id).await.unwrap().expect("it is kept");
    assert_eq!((denied.state, denied.answer_reason.as_deref()), (QuestionState::Denied, Some("not today")));
    let expired = tenant.question(&late.id).await.unwrap().expect("it is kept");
    assert_eq!(expired.state, QuestionState::Expired);
    // The denied one allows nothing.
    let mut intent = call("ask", "b").intent();
    intent.approval = Some(no.id.clone());
    assert!(asking.intent(intent.clone()).await.is_err());
    intent.approval = Some(yes.id.clone());
    asking.intent(intent).await.unwrap();
    assert_eq!(tenant.question(&yes.id).await.unwrap().unwrap().state, QuestionState::Used);
}

async fn grants_hold_until_they_do_not(home: &dyn Home) {
    let store = home.open();
    let tenant = store.tenant("grants");
    let grant = |id: &str, expires_at| Grant {
        id: id.to_owned(),
        tool: "write_file".to_owned(),
        agent: Some("agent-1".to_owned()),
        user: None,
        session: None,
        covers: r#"{"path":"docs/**"}"#.to_owned(),
        shown: "write below docs".to_owned(),
        granted_by: "ada".to_owned(),
        granted_at: noon(),
        expires_at,
        revoked_at: None,
    };
    tenant.grant(grant("g1", None)).await.unwrap();
    tenant.grant(grant("g2", Some(noon()))).await.unwrap();
    assert_eq!(tenant.grants().await.unwrap(), [grant("g1", None)], "the other has expired");
    assert!(store.tenant("other").grants().await.unwrap().is_empty());
    assert!(!store.tenant("other").revoke("g1", "eve").await.unwrap());
    assert!(tenant.revoke("g1", "ada").await.unwrap());
    assert!(!tenant.revoke("g1", "ada").await.unwrap());
    assert!(tenant.grants().await.unwrap().is_empty());
}

async fn registrations_stay(home: &dyn Home) {
    let off = StoredTool { enabled: false, ..StoredTool::new("web_fetch") };
    home.open().save(off.clone()).await.unwrap();
    let store = home.open();
    assert_eq!(store.load().await.unwrap(), [off]);
    store.save(StoredTool::new("web_fetch")).await.unwrap();
    assert!(store.load().await.unwrap().is_empty(), "nothing special about it any more");
}

async fn outputs_are_searched_kept_once_and_let_go(home: &dyn Home) {
    let keep = Keep { output_bytes: 20_000, ..Keep::default() };
    let store = home.open_with(Options { keep, ..Options::default() });
    let text: String = (1..=60_000).map(|n| format!("line {n}\r\n")).collect();
    let one = store.keep_output("search", text.clone().into_bytes()).await.unwrap();
    let two = store.keep_output("search", text.into_bytes()).await.unwrap();
    assert_ne!(one, two, "a handle cannot be guessed from another");
    let tenant = store.for_tenant("search");
    let find = |from_line, pattern: Option<&str>, max_lines| {
        let search = OutputSearch {
            from_line,
            pattern: pattern.map(str::to_owned),
            max_lines,
            ..OutputSearch::default()
        };
        tenant.search_output(&one, search)
    };
    let lines = |found: &haft_core::port::FoundLines| {
        found
            .lines
            .iter()
            .map(|(n, line)| (*n, String::from_utf8_lossy(line).into_owned()))
            .collect::<Vec<_>>()
    };
    let found = find(59_999, None, 10).await.unwrap().unwrap();
    assert_eq!(lines(&found), [(59_999, "line 59999".into()), (60_000, "line 60000".into())]);
    assert_eq!(found.next_line, None);
    let found = find(1, Some("^line [0-9]*777$"), 2).await.unwrap().unwrap();
    assert_eq!(lines(&found), [(777, "line 777".into()), (1777, "line 1777".into())]);
    assert_eq!(found.next_line, Some(2777));
    // Every line can be begun with, also where a piece of the output ends.
    for from in (1..60_000).step_by(997) {
        let found = find(from, None, 1).await.unwrap().unwrap();
        assert_eq!(lines(&found), [(from, format!("line {from}"))]);
    }
    assert!(find(1, Some("("), 1).await.is_err(), "no expression");
    let other = store.for_tenant("other");
    assert!(other.search_output(&one, OutputSearch::default()).await.unwrap().is_none());
    // Random bytes do not get smaller: these two are too much together with what is there.
    let noise = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..15_000).map(|_| random.u8(..)).collect::<Vec<_>>()
    };
    let third = store.keep_output("search", noise(1)).await.unwrap();
    let fourth = store.keep_output("search", noise(2)).await.unwrap();
    let all = OutputRange { offset: 0, length: u64::MAX };
    for (handle, is_there) in [(&one, false), (&two, false), (&third, false), (&fourth, true)] {
        assert_eq!(tenant.output(handle, all).await.unwrap().is_some(), is_there, "{handle}");
    }
}

async fn what_is_too_old_goes(home: &dyn Home) {
    let keep = Keep {
        results: Some(Duration::ZERO),
        outputs: Some(Duration::ZERO),
        keys: Some(Duration::ZERO),
        ..Keep::default()
    };
    let store = home.open_with(Options { keep, ..Options::default() });
    let made = call("old", "write");
    store.claim(made.claim("k")).await.unwrap();
    store.intent(made.intent()).await.unwrap();
    store.outcome(made.settling("k")).await.unwrap();
    let handle = store.keep_output("old", b"bytes".to_vec()).await.unwrap();
    let running = call("old", "write");
    store.claim(running.claim("r")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    let gone = store.gc().await.unwrap();
    assert!(gone.results >= 1 && gone.outputs >= 1 && gone.keys >= 1, "{gone:?}");
    let tenant = store.for_tenant("old");
    let all = OutputRange { offset: 0, length: 100 };
    assert_eq!(tenant.output(&handle, all).await.unwrap(), None);
    let run = tenant.run(made.id).await.unwrap().expect("the record stays");
    assert_eq!((run.arguments, run.result.is_none()), (None, true));
    assert!(matches!(store.claim(call("old", "write").claim("k")).await.unwrap(), Claim::Fresh));
    assert!(matches!(store.claim(call("old", "write").claim("r")).await.unwrap(), Claim::InFlight(_)));
}

async fn keys_are_known_by_their_hash(home: &dyn Home) {
    let store = home.open();
    let key = |id: &str, tenant: &str| ApiKey {
        id: id.into(),
        name: "ci".into(),
        tenant: tenant.into(),
        agent: Some("did:agent:7".into()),
        user: None,
        roles: vec!["editor".into(), "auditor".into()],
        rights: vec![Right::Invoke, Right::Operate],
        created_at: Timestamp::from_microsecond(1_700_000_000_000_000).unwrap(),
        created_by: "ada".into(),
        expires_at: Some(Timestamp::from_microsecond(4_000_000_000_000_000).unwrap()),
        revoked_at: None,
    };
    store.add(key("key_1", "acme"), [1; 32]).await.unwrap();
    store.add(key("key_2", "rival"), [2; 32]).await.unwrap();
    assert!(store.add(key("key_3", "rival"), [2; 32]).await.is_err(), "no two keys have one secret");
    assert!(store.add(key("key_1", "rival"), [4; 32]).await.is_err(), "no two keys have one id");
    drop(store);

    let store = home.open();
    assert_eq!(store.by_secret([1; 32]).await.unwrap(), Some(key("key_1", "acme")));
    assert_eq!(store.by_secret([9; 32]).await.unwrap(), None);
    assert_eq!(KeyStore::all(&store, Some("rival")).await.unwrap(), [key("key_2", "rival")]);
    assert_eq!(KeyStore::all(&store, None).await.unwrap().len(), 2);
    assert!(KeyStore::revoke(&store, "key_1").await.unwrap());
    assert!(!KeyStore::revoke(&store, "key_1").await.unwrap(), "once");
    assert!(!KeyStore::revoke(&store, "key_0").await.unwrap());
    let over = store.by_secret([1; 32]).await.unwrap().unwrap();
    assert!(over.revoked_at.is_some() && !over.counts(Timestamp::now()));
    assert!(store.by_secret([2; 32]).await.unwrap().unwrap().counts(Timestamp::now()));
}

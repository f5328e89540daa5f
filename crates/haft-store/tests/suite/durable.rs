//! What holds for stores that outlive the process.

use super::{
    Home,
    make::{after, call, noon},
};
use haft_core::{
    ApprovalDetail, ApprovalId, ApprovalRequest, Arguments, Asker, BatchId, CallContext, ChangesState,
    Decision, ErrorCode, ExecutionId, Footprint, GrantOffer, IsolationLevel, Resource, Risk, Status,
    port::{
        Answer, ApiKey, ApprovalFilter, ApprovalState, AuditQuery, BatchBegin, CallState, ChangesStep, Claim,
        DISCARDED_AFTER_CRASH, JournalCall, JournalStep, KeyStore, MISSING_AFTER_CRASH, OutputRange,
        OutputSearch, PlannedStep, Recovery, Registrations, Right, Store, StoredGrant, StoredTool,
        TakenAnswer, TenantStore as _, ToolShelf, UnfinishedId,
    },
};
use haft_store::{DurableStore, Happened, Keep, NotLetIn, Options};
use jiff::Timestamp;
use serde_json::json;
use std::{sync::Arc, time::Duration};

pub async fn run(home: &dyn Home) {
    everything_is_there_after_a_restart(home).await;
    a_run_has_its_input_and_result(home).await;
    what_was_started_and_not_ended_is_unknown(home).await;
    output_on_its_way_survives_a_crash(home).await;
    what_became_of_changes_is_known_after_a_crash(home).await;
    living_processes_are_left_alone(home).await;
    keys_survive_a_crash(home).await;
    a_crash_while_calls_stream_in(home).await;
    a_batch_is_resumed_with_what_is_there(home).await;
    a_batch_is_discarded(home).await;
    batches_cannot_be_mixed_up(home).await;
    an_approval_is_used_once(home).await;
    keys_are_known_by_their_hash(home).await;
    approvals(&home.open(), &home.open()).await;
    one_answer_wins(home).await;
    grants_hold_until_they_do_not(home).await;
    registrations_stay(home).await;
    outputs_are_searched_kept_once_and_let_go(home).await;
    what_is_too_old_goes(home).await;
    super::late::run(home).await;
    super::tasks::durable(home).await;
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

/// The journal knows how far each call came with its changes: whatever the crash cut, it never guesses.
async fn what_became_of_changes_is_known_after_a_crash(home: &dyn Home) {
    use ChangesStep::{Applying, Ran, Settled, Staged};
    let last = [
        (None, None),
        (Some(Staged), Some(false)),
        (Some(Ran), Some(false)),
        (Some(Applying), None),
        (Some(Settled(ChangesState::Applied)), Some(true)),
        (Some(Settled(ChangesState::Kept)), Some(false)),
        (Some(Settled(ChangesState::Discarded)), Some(false)),
    ];
    let store = home.open();
    let mut calls = Vec::new();
    for (step, applied) in last {
        let made = call("changes-crash", "run_command");
        store.intent(made.intent()).await.unwrap();
        for step in [Staged, Ran].into_iter().filter(|_| step.is_some()).chain(step) {
            store.journal(changes(&made, step)).await.unwrap();
        }
        calls.push((made, step, applied));
    }
    store.flush().await.unwrap();
    home.crash(store);
    let store = home.open();
    let tenant = store.for_tenant("changes-crash");
    let unfinished = tenant.unfinished().await.unwrap();
    assert_eq!(unfinished.len(), calls.len());
    for (made, step, applied) in &calls {
        let one = unfinished.iter().find(|one| one.id == UnfinishedId::Call(made.id)).unwrap();
        assert_eq!(one.calls[0].changes, *step);
        assert_eq!(one.calls[0].changes.and_then(ChangesStep::is_applied), *applied);
        assert_eq!(tenant.changes(made.id).await.unwrap(), *step);
        let record = tenant.run(made.id).await.unwrap().unwrap().record;
        let said = record.error.unwrap();
        match step {
            Some(step) => assert!(said.contains(step.in_words()), "{said}"),
            None => assert!(!said.contains("applied"), "{said}"),
        }
    }
    // The records of changed files tell what the journal alone does not, and the journal is told.
    let (cut, _, _) = &calls[3];
    store.journal(changes(cut, Settled(ChangesState::Applied))).await.unwrap();
    assert_eq!(tenant.changes(cut.id).await.unwrap(), Some(Settled(ChangesState::Applied)));
    let decided = tenant.recover(UnfinishedId::Call(cut.id), Recovery::Resume).await.unwrap().unwrap();
    assert_eq!(decided[0].text, format!("{MISSING_AFTER_CRASH}. All of what it changed was applied"));
}

fn changes(made: &super::make::Call, step: ChangesStep) -> JournalStep {
    let tenant = Arc::clone(&made.context.tenant);
    JournalStep::Changes { execution_id: made.id, tenant, step, at: noon() }
}

async fn output_on_its_way_survives_a_crash(home: &dyn Home) {
    let store = home.open();
    let (ended, cut, long, again) =
        (call("out", "ended"), call("out", "cut"), call("out", "long"), call("out", "again"));
    for call in [&ended, &cut, &long, &again] {
        store.intent(call.intent()).await.unwrap();
    }
    let put = |id, limit| store.running_output(id, limit).expect("this store keeps it");
    let mut output = put(ended.id, 100);
    output.put(b"all of it is in the result");
    store.flush().await.unwrap();
    store.outcome(ended.outcome()).await.unwrap();

    let mut output = put(cut.id, 1000);
    output.put(b"one, ");
    output.put(b"two, ");
    store.flush().await.unwrap();
    output.put(b"three");
    store.flush().await.unwrap();

    // Of what is too long, the beginning and the end stay.
    let mut output = put(long.id, 40);
    for n in 0..10 {
        output.put(format!("piece {n}, ").as_bytes());
        store.flush().await.unwrap();
    }
    // A try that failed is not heard any more, once the next one says something.
    put(again.id, 100).put(b"the first try");
    store.flush().await.unwrap();
    put(again.id, 100).put(b"2nd");
    store.flush().await.unwrap();
    home.crash(store);

    let store = home.open();
    let tenant = store.for_tenant("out");
    let all = OutputRange { offset: 0, length: 1000 };
    for (call, expected) in [
        (&cut, "one, two, three"),
        (&long, "piece 0, piece 1, piece 2, \n... [36 bytes not kept]\npiece 7, piece 8, piece 9, "),
        (&again, "2nd"),
    ] {
        let run = tenant.run(call.id).await.unwrap().expect("it is recorded");
        assert_eq!(run.record.code, Some(ErrorCode::OutcomeUnknown));
        let facts = &run.record.metadata;
        let handle = facts.output_handle.as_ref().unwrap_or_else(|| panic!("{expected} has a handle"));
        let (bytes, _) = tenant.output(handle, all).await.unwrap().expect("it is kept");
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        assert!(run.result.unwrap().text().contains(&format!("read_output {handle}")));
        assert!(store.for_tenant("other").output(handle, all).await.unwrap().is_none());
    }
    let run = tenant.run(ended.id).await.unwrap().expect("it is recorded");
    assert_eq!((run.record.code, &run.record.metadata.output_handle), (None, &None));
    for left in tenant.unfinished().await.unwrap() {
        tenant.recover(left.id, Recovery::Discard).await.unwrap().expect("it waits");
    }
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
    let plans = (0..3).map(|index| (index, PlannedStep::Runs)).collect();
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

pub fn approval(tool: &str) -> ApprovalRequest {
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
        fingerprint: tool.repeat(64),
        detail: ApprovalDetail {
            does: "write to a file, and say so".to_owned(),
            isolation: IsolationLevel::Strict,
            reach: json!({"hosts": ["example.com"]}),
            limits: None,
            sandbox: None,
            passed: json!(null),
            hidden: None,
        },
        asker: Asker::of(&CallContext { session: Some("s1".into()), ..CallContext::new("ask", "agent-1") }),
        batch_id: Some(BatchId::at(noon())),
        footprint: Footprint { reads: vec![], writes: vec![Resource::path("/a")] },
        offers: vec![GrantOffer { covers: json!({"kind": "host"}), words: "a host".into() }],
        replaces: None,
        expires_at: None,
    }
}

fn answered(decision: Decision, by: &str) -> Answer {
    Answer { decision, by: by.to_owned(), from: haft_core::Channel::CommandLine }
}

/// What holds for approvals in every store: through one handle, or through those of two processes.
pub async fn approvals(asking: &dyn Store, answering: &dyn Store) {
    questions_are_answered_once(asking, answering).await;
    the_same_question_is_asked_once(asking, answering).await;
    an_answer_and_its_grant_are_one(asking).await;
}

/// Where the one cannot be kept, the other is not.
async fn an_answer_and_its_grant_are_one(store: &dyn Store) {
    let tenant = store.for_tenant("ask");
    let yes = || answered(Decision::Approve, "ada");
    let (first, second) = (approval("g"), approval("h"));
    for request in [&first, &second] {
        tenant.ask(request.clone(), Vec::new()).await.unwrap();
    }
    assert!(tenant.answer_with_grant(&first.id, yes(), Some(grant("one", None))).await.unwrap());
    assert_eq!(tenant.grants(false).await.unwrap(), [grant("one", None)]);
    // Its question has an answer already.
    assert!(!tenant.answer_with_grant(&first.id, yes(), Some(grant("late", None))).await.unwrap());
    // Its id is taken.
    tenant.answer_with_grant(&second.id, yes(), Some(grant("one", None))).await.unwrap_err();
    assert_eq!(tenant.grants(true).await.unwrap().len(), 1, "no other grant");
    let open = tenant.approval(&second.id).await.unwrap().unwrap();
    assert_eq!((open.state, open.answered_by), (ApprovalState::Open, None), "no answer without its grant");
    assert!(tenant.answer_with_grant(&second.id, yes(), Some(grant("two", None))).await.unwrap());
    assert_eq!(tenant.grants(false).await.unwrap().len(), 2);
}

async fn questions_are_answered_once(asking: &dyn Store, answering: &dyn Store) {
    let (yes, no, late) = (approval("a"), approval("b"), approval("c"));
    let late = ApprovalRequest { expires_at: Some(noon()), ..late };
    let tenant = asking.for_tenant("ask");
    for request in [&yes, &no, &late] {
        assert_eq!(tenant.ask(request.clone(), Vec::new()).await.unwrap(), request.id);
    }
    assert!(asking.for_tenant("other").ask(approval("d"), Vec::new()).await.is_err());
    let theirs = answering.for_tenant("ask");
    let open = ApprovalFilter { state: Some(ApprovalState::Open), ..ApprovalFilter::default() };
    let open = theirs.approvals(open).await.unwrap();
    let open: Vec<_> = open.iter().map(|question| &question.request).collect();
    assert_eq!(open, [&yes, &no], "another process sees them, but for what has expired");
    let call_of = |request: &ApprovalRequest| request.execution_id;
    assert_eq!(tenant.take_answer(&yes.id, call_of(&yes)).await.unwrap(), TakenAnswer::Open);
    assert!(theirs.answer(&yes.id, answered(Decision::Approve, "ada")).await.unwrap());
    let deny = Decision::Deny { reason: Some("not today".into()) };
    assert!(!theirs.answer(&yes.id, answered(deny.clone(), "bob")).await.unwrap(), "once");
    assert!(!answering.for_tenant("other").answer(&no.id, answered(Decision::Approve, "eve")).await.unwrap());
    assert!(theirs.answer(&no.id, answered(deny, "ada")).await.unwrap());
    assert!(!theirs.answer(&late.id, answered(Decision::Approve, "ada")).await.unwrap(), "too late");
    let denied = tenant.approval(&no.id).await.unwrap().expect("it is kept");
    assert_eq!((denied.state, denied.answer_reason.as_deref()), (ApprovalState::Denied, Some("not today")));
    assert_eq!(denied.answered_from, Some(haft_core::Channel::CommandLine));
    assert_eq!(tenant.take_answer(&late.id, call_of(&late)).await.unwrap(), TakenAnswer::Expired);
    assert_eq!(tenant.approval(&late.id).await.unwrap().unwrap().state, ApprovalState::Expired);
    // The denied one allows nothing.
    let mut intent = call("ask", "b").intent();
    intent.approval = Some(no.id.clone());
    assert!(asking.intent(intent.clone()).await.is_err());
    // One call takes the yes; nobody else gets it, not even for its intent.
    assert_eq!(
        asking.for_tenant("other").take_answer(&yes.id, intent.execution_id).await.unwrap(),
        TakenAnswer::Gone
    );
    for _ in 0..2 {
        let taken = tenant.take_answer(&yes.id, intent.execution_id).await.unwrap();
        assert_eq!(taken, TakenAnswer::Answered(answered(Decision::Approve, "ada")));
    }
    let another = call("ask", "b").intent().execution_id;
    assert_eq!(theirs.take_answer(&yes.id, another).await.unwrap(), TakenAnswer::Gone);
    let mut thief = call("ask", "b").intent();
    thief.approval = Some(yes.id.clone());
    assert!(asking.intent(thief).await.unwrap_err().0.contains("used for another call"));
    intent.approval = Some(yes.id.clone());
    asking.intent(intent).await.unwrap();
    assert_eq!(tenant.approval(&yes.id).await.unwrap().unwrap().state, ApprovalState::Used);
}

async fn the_same_question_is_asked_once(asking: &dyn Store, answering: &dyn Store) {
    let (tenant, theirs) = (asking.for_tenant("ask"), answering.for_tenant("ask"));
    let first = approval("s");
    let again = ApprovalRequest { id: ApprovalId::random(), preview: Some("newer".into()), ..first.clone() };
    assert_eq!(tenant.ask(first.clone(), Vec::new()).await.unwrap(), first.id);
    assert_eq!(theirs.ask(again.clone(), Vec::new()).await.unwrap(), first.id, "it waits already");
    let shown = tenant.approval(&first.id).await.unwrap().unwrap();
    assert_eq!(shown.request.preview.as_deref(), Some("newer"), "as it looks now");
    let twin = tenant.ask(again.clone(), vec![first.id.clone()]).await.unwrap();
    assert_eq!(twin, again.id, "another call of the same batch");
    // An answer is for the call that comes next, and the one after that is asked about again.
    let edit = Decision::Edit { arguments: Arguments::from_text("{\"n\":1}") };
    assert!(theirs.answer(&twin, answered(edit.clone(), "ada")).await.unwrap());
    let third = ApprovalRequest { id: ApprovalId::random(), ..first.clone() };
    assert_eq!(tenant.ask(third.clone(), Vec::new()).await.unwrap(), twin, "answered ones first");
    let call_id = ExecutionId::at(noon());
    let taken = tenant.take_answer(&twin, call_id).await.unwrap();
    assert_eq!(taken, TakenAnswer::Answered(answered(edit, "ada")));
    let changed = ApprovalRequest { replaces: Some(twin.clone()), ..approval("t") };
    tenant.ask(changed.clone(), Vec::new()).await.unwrap();
    let filter = ApprovalFilter { replaces: Some(twin.clone()), ..ApprovalFilter::default() };
    let found = theirs.approvals(filter).await.unwrap();
    assert_eq!(found.iter().map(|question| &question.request.id).collect::<Vec<_>>(), [&changed.id]);
    // The id of one that is over is not given out again.
    let stale = ApprovalRequest { id: twin.clone(), ..approval("u") };
    assert_ne!(tenant.ask(stale, Vec::new()).await.unwrap(), twin);
    // An intent needs a yes.
    let mut intent = call("ask", "s").intent();
    intent.approval = Some(first.id.clone());
    assert!(asking.intent(intent).await.unwrap_err().0.contains("nobody has approved it"));
}

/// Two people at once: one of the answers counts, and everybody hears the same one.
async fn one_answer_wins(home: &dyn Home) {
    let stores = [home.open(), home.open()];
    for round in 0..20 {
        let request = approval(if round % 2 == 0 { "v" } else { "w" });
        let tenant = stores[0].tenant("ask");
        let id = tenant.ask(request.clone(), Vec::new()).await.unwrap();
        let (one, other) = (stores[0].tenant("ask"), stores[1].tenant("ask"));
        let deny = Decision::Deny { reason: Some("no".into()) };
        let (yes, no) = tokio::join!(
            one.answer(&id, answered(Decision::Approve, "ada")),
            other.answer(&id, answered(deny.clone(), "bob")),
        );
        let (yes, no) = (yes.unwrap(), no.unwrap());
        assert!(yes != no, "{yes} {no}");
        let winner = if yes { answered(Decision::Approve, "ada") } else { answered(deny, "bob") };
        let taken = other.take_answer(&id, request.execution_id).await.unwrap();
        assert_eq!(taken, TakenAnswer::Answered(winner));
    }
}

pub fn grant(id: &str, expires_at: Option<Timestamp>) -> StoredGrant {
    StoredGrant {
        id: id.to_owned(),
        tool: "write_file".to_owned(),
        agent: Some("agent-1".to_owned()),
        user: None,
        session: None,
        covers: r#"{"path":"docs/**"}"#.to_owned(),
        shown: "write below docs".to_owned(),
        granted_by: "ada".to_owned(),
        granted_from: Some(haft_core::Channel::Terminal),
        granted_at: noon(),
        expires_at,
        revoked_at: None,
    }
}

/// A grant comes with an answer, and in no other way.
async fn give(tenant: &haft_store::Tenant, grant: StoredGrant) {
    let asker = Asker::of(&CallContext::new("grants", "agent-1"));
    let request = ApprovalRequest { fingerprint: grant.id.clone(), asker, ..approval(&grant.id) };
    let id = tenant.ask(request, Vec::new()).await.unwrap();
    let yes = answered(Decision::Approve, "ada");
    assert!(tenant.answer_with_grant(&id, yes, Some(grant)).await.unwrap());
}

async fn grants_hold_until_they_do_not(home: &dyn Home) {
    let store = home.open();
    let tenant = store.tenant("grants");
    for given in [grant("g1", None), grant("g2", Some(noon()))] {
        give(&tenant, given).await;
    }
    assert_eq!(tenant.grants_now().unwrap(), tenant.grants(false).await.unwrap());
    assert_eq!(tenant.grants(false).await.unwrap(), [grant("g1", None)], "the other has expired");
    assert!(store.tenant("other").grants(true).await.unwrap().is_empty());
    assert!(!store.tenant("other").revoke("g1", "eve").await.unwrap());
    assert!(tenant.revoke("g1", "ada").await.unwrap());
    assert!(!tenant.revoke("g1", "ada").await.unwrap());
    assert!(tenant.grants(false).await.unwrap().is_empty() && tenant.grants_now().unwrap().is_empty());
    assert_eq!(tenant.grants(true).await.unwrap().len(), 2, "what was is known");
}

async fn registrations_stay(home: &dyn Home) {
    let off = StoredTool { enabled: false, ..StoredTool::new("web_fetch") };
    home.open().save(off.clone()).await.unwrap();
    let store = home.open();
    assert_eq!(store.load().await.unwrap(), [off]);
    store.save(StoredTool::new("web_fetch")).await.unwrap();
    assert!(store.load().await.unwrap().is_empty(), "nothing special about it any more");
    tools_are_found_one_by_one(home).await;
    changes_of_tools_are_followed(home).await;
}

fn added(name: &str, aliases: &[&str]) -> StoredTool {
    let mut definition = haft_core::ToolDefinition::new(name, "Does something");
    definition.aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
    StoredTool { definition: Some(Box::new(definition)), ..StoredTool::new(name) }
}

async fn tools_are_found_one_by_one(home: &dyn Home) {
    let store = home.open();
    let found = |name: &str| ToolShelf::find(&store, name).unwrap().map(|tool| tool.name);
    let off = StoredTool { enabled: false, ..StoredTool::new("web_fetch") };
    let (one, two) = (added("one", &["Eins", "First"]), added("two", &["Zwei"]));
    store.save_all(vec![one.clone(), two.clone(), off.clone()]).await.unwrap();
    assert_eq!(ToolShelf::find(&store, "one").unwrap(), Some(one.clone()));
    assert_eq!(found("eins").as_deref(), Some("one"));
    assert_eq!(found("zwei").as_deref(), Some("two"));
    assert_eq!(found("web_fetch").as_deref(), Some("web_fetch"));
    assert_eq!((found("three"), found("")), (None, None));
    assert_eq!(store.switched().unwrap(), [off]);
    assert_eq!(store.count().unwrap(), 2);
    let mut names = store.names().unwrap();
    names.sort();
    assert_eq!(names, ["eins", "first", "one", "two", "zwei"]);
    assert_eq!(ToolShelf::all(&store).unwrap().len(), 3);

    // Another definition has other aliases, and what is gone has none.
    store.save(added("one", &["Uno"])).await.unwrap();
    assert_eq!((found("eins"), found("uno").as_deref()), (None, Some("one")));
    Registrations::remove(&store, "one").await.unwrap();
    assert_eq!((found("uno"), found("one")), (None, None));

    let mut asks = added("asks", &[]);
    if let Some(definition) = &mut asks.definition {
        definition.mcp = Some(Box::new(haft_core::McpSource::new("server", "asks")));
    }
    store.save(asks.clone()).await.unwrap();
    assert_eq!(store.of_server("server").unwrap(), [asks]);
    assert!(store.of_server("other").unwrap().is_empty());
    Registrations::remove(&store, "asks").await.unwrap();

    // Taken over from elsewhere: what is here stays, and what either switched off is off.
    let brought = StoredTool { enabled: false, ..added("two", &["Other"]) };
    assert_eq!(store.import_tools(vec![brought, added("new", &["Neu"])]).unwrap(), ["two"]);
    let expected = StoredTool { enabled: false, ..two };
    assert_eq!(ToolShelf::find(&store, "two").unwrap(), Some(expected));
    assert_eq!((found("neu").as_deref(), found("other")), (Some("new"), None));
    for name in ["two", "new", "web_fetch"] {
        Registrations::remove(&store, name).await.unwrap();
    }
}

async fn changes_of_tools_are_followed(home: &dyn Home) {
    let (one, other) = (home.open(), home.open());
    one.save_all(vec![added("a", &[]), added("b", &[]), added("c", &[])]).await.unwrap();
    let seen = std::cell::Cell::new(other.tools_seen().unwrap());
    let look = async || {
        let (now, changes) = other.tools_since(seen.get()).await.unwrap()?;
        seen.set(now);
        let names: Vec<String> = changes.changed.into_iter().map(|tool| tool.name).collect();
        Some((names.join(" "), changes.left.map(|left| left.into_iter().collect::<Vec<_>>().join(" "))))
    };
    let said = |changed: &str, left: Option<&str>| Some((changed.to_owned(), left.map(str::to_owned)));
    assert_eq!(look().await, None, "nothing was changed");
    one.save(StoredTool { enabled: false, ..added("b", &[]) }).await.unwrap();
    assert_eq!(look().await, said("b", None));
    assert_eq!(look().await, None, "said once");
    one.save_all(vec![added("d", &[]), added("e", &[])]).await.unwrap();
    assert_eq!(look().await, said("d e", None));
    Registrations::remove(&one, "a").await.unwrap();
    assert_eq!(look().await, said("", Some("b c d e")));
    Registrations::remove(&one, "b").await.unwrap();
    one.save(added("f", &[])).await.unwrap();
    assert_eq!(look().await, said("f", Some("c d e f")), "as many as before, and others");
    Registrations::remove(&one, "c").await.unwrap();
    one.save(added("c", &[])).await.unwrap();
    assert_eq!(look().await, said("c", Some("c d e f")), "gone and there again");
    for name in ["c", "d", "e", "f"] {
        Registrations::remove(&one, name).await.unwrap();
    }
    assert_eq!(look().await, said("", Some("")));
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
    assert!(KeyStore::revoke(&store, "key_1", "bob").await.unwrap());
    assert!(!KeyStore::revoke(&store, "key_1", "bob").await.unwrap(), "once");
    assert!(!KeyStore::revoke(&store, "key_0", "bob").await.unwrap());
    let over = store.by_secret([1; 32]).await.unwrap().unwrap();
    assert!(over.revoked_at.is_some() && !over.counts(Timestamp::now()));
    assert!(store.by_secret([2; 32]).await.unwrap().unwrap().counts(Timestamp::now()));

    // All of it is on the record, and only what counted; so are those who were not let in.
    let addresses = [("10.0.0.7".to_owned(), 3)].into();
    store.not_let_in(NotLetIn { without: 1, unknown: 3, addresses, others: 2 }).await.unwrap();
    let mut events = store.happenings(1000).await.unwrap();
    events.retain(|event| ["keyCreated", "keyRevoked", "refused"].contains(&event.event.as_str()));
    let about = |event: &Happened| {
        (event.event.clone(), event.facts.get("key").cloned(), event.facts.get("by").cloned())
    };
    let told: Vec<_> = events.iter().map(about).collect();
    let of = |event: &str, key: &str, by: &str| (event.to_owned(), Some(json!(key)), Some(json!(by)));
    let expected = [
        of("keyRevoked", "key_1", "bob"),
        of("keyCreated", "key_2", "ada"),
        of("keyCreated", "key_1", "ada"),
    ];
    assert_eq!(told[1..4], expected, "newest first: {told:?}");
    assert_eq!(
        (events[0].event.as_str(), &events[0].facts["addresses"]),
        ("refused", &json!({"10.0.0.7": 3}))
    );
    assert!(events[0].seq > events[1].seq && !format!("{events:?}").contains(&"01".repeat(32)));
    assert_eq!(store.happenings(1).await.unwrap().len(), 1);
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None, "it is part of the chain");
}

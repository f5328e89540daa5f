//! What holds for every store.

use super::make::{after, call, noon};
use haft_core::{
    ApprovalId, Arguments, ChangeSummary, ChangesState, ErrorCode, ExecutionId, OutputHandle, SettledChanges,
    Status,
    port::{
        AuditQuery, CallEnd, ChangesStep, Claim, JournalStep, OutputRange, OutputSearch, Settlement, Store,
    },
};

const ALL: OutputRange = OutputRange { offset: 0, length: u64::MAX };

/// All of it.
pub async fn run(store: &dyn Store) {
    records_are_there_newest_first(store).await;
    tenants_do_not_see_each_other(store).await;
    a_query_lets_through_what_it_says(store).await;
    pages_go_through_everything_once(store).await;
    the_same_key_means_the_same_call(store).await;
    a_key_waits_and_is_released(store).await;
    only_the_owner_settles_a_key(store).await;
    outputs_come_back_by_range(store).await;
    numbers_are_right(store).await;
    the_journal_knows_how_far_changes_came(store).await;
    super::tasks::port(store).await;
}

async fn the_journal_knows_how_far_changes_came(store: &dyn Store) {
    use ChangesStep::{Applying, Ran, Settled, Staged};
    let made = call("changes", "run_command");
    let view = store.for_tenant("changes");
    let step = |tenant: &str, step| {
        let tenant = tenant.into();
        store.journal(JournalStep::Changes { execution_id: made.id, tenant, step, at: noon() })
    };
    assert_eq!(view.changes(made.id).await.unwrap(), None);
    store.intent(made.intent()).await.unwrap();
    for next in [Staged, Ran, Applying, Settled(ChangesState::Kept), Applying] {
        step("changes", next).await.unwrap();
        assert_eq!(view.changes(made.id).await.unwrap(), Some(next));
    }
    assert_eq!(store.for_tenant("rival").changes(made.id).await.unwrap(), None);
    // A word of another tenant counts nothing, and what was applied stays applied. Where nobody waits for a step, its
    // refusal is not waited for, either.
    let _ = step("rival", Settled(ChangesState::Discarded)).await;
    assert_eq!(view.changes(made.id).await.unwrap(), Some(Applying));
    let applied = Settled(ChangesState::Applied);
    step("changes", applied).await.unwrap();
    step("changes", applied).await.unwrap();
    let _ = step("changes", Settled(ChangesState::Kept)).await;
    assert!(step("changes", Applying).await.is_err(), "nothing is applied twice");
    assert_eq!(view.changes(made.id).await.unwrap(), Some(applied));
    // From its outcome on, the record of the call says it; what is kept can still be applied later.
    let ends = [(ChangesState::Applied, None), (ChangesState::Kept, Some(Settled(ChangesState::Kept)))];
    for (state, left) in ends {
        let made = call("changes", "run_command");
        store.intent(made.intent()).await.unwrap();
        let settled = JournalStep::Changes {
            execution_id: made.id,
            tenant: "changes".into(),
            step: Settled(state),
            at: noon(),
        };
        store.journal(settled).await.unwrap();
        let mut outcome = made.outcome();
        let mut facts = (*outcome.audit.metadata).clone();
        facts.changes = Some(Box::new(SettledChanges::new(state, ChangeSummary::default())));
        outcome.audit.metadata = facts.into();
        store.outcome(outcome).await.unwrap();
        assert_eq!(view.changes(made.id).await.unwrap(), left);
    }
}

async fn records_are_there_newest_first(store: &dyn Store) {
    let tenant = "newest";
    for n in 0..5 {
        let call = call(tenant, &format!("tool_{n}")).at(after(n));
        store.intent(call.intent()).await.unwrap();
        store.outcome(call.outcome()).await.unwrap();
    }
    let records = store.for_tenant(tenant).audit(3).await.unwrap();
    let tools: Vec<_> = records.iter().map(|record| &*record.tool).collect();
    assert_eq!(tools, ["tool_4", "tool_3", "tool_2"]);
    let record = &records[0];
    assert_eq!((record.status, record.code), (Status::Success, None));
    assert_eq!(record.rule.as_deref(), Some("allowlist"));
    assert_eq!(record.diagnostics.as_deref(), Some("seen by operators"));
    assert_eq!(&*record.context.agent, "agent-1");
    assert_eq!(record.metadata.started_at, after(4));
    assert_eq!(record.metadata.duration.as_millis(), 5);
    assert_eq!(record.input_size, 7);
}

async fn tenants_do_not_see_each_other(store: &dyn Store) {
    let mine = call("mine", "read");
    store.outcome(mine.clone().without_effect().outcome()).await.unwrap();
    let handle = store.keep_output("mine", b"secret plans".to_vec()).await.unwrap();
    store.claim(mine.claim("key")).await.unwrap();
    let others = store.for_tenant("theirs");
    assert!(others.audit(10).await.unwrap().is_empty());
    assert!(others.audit_page(AuditQuery::default()).await.unwrap().records.is_empty());
    assert_eq!(others.output(&handle, ALL).await.unwrap(), None);
    let plans = OutputSearch { pattern: Some("plans".into()), ..OutputSearch::default() };
    assert!(others.search_output(&handle, plans.clone()).await.unwrap().is_none());
    let found = store.for_tenant("mine").search_output(&handle, plans).await.unwrap();
    assert!(found.is_some(), "the control: it is there for those whose it is");
    let theirs = call("theirs", "read");
    assert!(matches!(store.claim(theirs.claim("key")).await.unwrap(), Claim::Fresh));
    assert_eq!(store.for_tenant("mine").audit(10).await.unwrap().len(), 1);
}

async fn a_query_lets_through_what_it_says(store: &dyn Store) {
    let tenant = "query";
    let calls = [
        call(tenant, "read_file").at(after(0)),
        call(tenant, "run_command").at(after(1000)).failed(ErrorCode::Timeout),
        call(tenant, "read_file").at(after(2000)).agent("agent-2").failed(ErrorCode::ToolDenied),
        call(tenant, "odd_%_name").at(after(3000)),
    ];
    for call in &calls {
        store.outcome(call.clone().without_effect().outcome()).await.unwrap();
    }
    let ids = |query: AuditQuery| async move {
        let page = store.for_tenant(tenant).audit_page(query).await.unwrap();
        let ids: Vec<_> = page.records.iter().map(|(_, record)| record.metadata.execution_id).collect();
        ids
    };
    let all = AuditQuery::default;
    let of = |places: &[usize]| -> Vec<ExecutionId> { places.iter().map(|place| calls[*place].id).collect() };
    assert_eq!(ids(all()).await, of(&[3, 2, 1, 0]));
    assert_eq!(ids(AuditQuery { tool: Some("read_file".into()), ..all() }).await, of(&[2, 0]));
    assert_eq!(ids(AuditQuery { agent: Some("agent-2".into()), ..all() }).await, of(&[2]));
    assert_eq!(ids(AuditQuery { status: Some(Status::Timeout), ..all() }).await, of(&[1]));
    assert_eq!(ids(AuditQuery { code: Some(ErrorCode::ToolDenied), ..all() }).await, of(&[2]));
    assert_eq!(ids(AuditQuery { text: Some("D_%_N".into()), ..all() }).await, of(&[3]), "signs are plain");
    assert_eq!(ids(AuditQuery { text: Some("no such text".into()), ..all() }).await, of(&[]));
    let range = AuditQuery { from: Some(after(1000)), until: Some(after(2000)), ..all() };
    assert_eq!(ids(range).await, of(&[1]), "from is in it, until is not");
}

async fn pages_go_through_everything_once(store: &dyn Store) {
    let tenant = "pages";
    for n in 0..25 {
        // Many at the same time, and some before: a clock may stand still or jump back.
        let call = call(tenant, "page").at(after(if n % 7 == 0 { -n } else { 0 }));
        store.outcome(call.without_effect().outcome()).await.unwrap();
    }
    let mut query = AuditQuery { limit: 4, ..AuditQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = store.for_tenant(tenant).audit_page(query.clone()).await.unwrap();
        assert!(page.records.len() <= 4);
        seen.extend(page.records.iter().map(|(seq, _)| *seq));
        // What comes in meanwhile does not shift the pages.
        store.outcome(call(tenant, "late").at(after(60_000)).without_effect().outcome()).await.unwrap();
        match page.next {
            Some(next) => query.after = Some(next.to_string().parse().unwrap()),
            None => break,
        }
    }
    let mut unique = seen.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!((seen.len(), unique.len()), (25, 25));
}

async fn the_same_key_means_the_same_call(store: &dyn Store) {
    let tenant = "keys";
    let first = call(tenant, "pay");
    assert!(matches!(store.claim(first.claim("k")).await.unwrap(), Claim::Fresh));
    let second = call(tenant, "pay");
    assert!(matches!(store.claim(second.claim("k")).await.unwrap(), Claim::InFlight(id) if id == first.id));
    let mut other = call(tenant, "pay");
    other.arguments = Arguments::from_text(r#"{"n":2}"#);
    assert!(matches!(store.claim(other.claim("k")).await.unwrap(), Claim::Conflict));
    store.intent(first.intent()).await.unwrap();
    store.outcome(first.settling("k")).await.unwrap();
    match store.claim(second.claim("k")).await.unwrap() {
        Claim::Settled(result) => {
            assert_eq!(result.metadata.execution_id, first.id);
            assert_eq!(result.text(), "done");
            assert_eq!(result.output, Some(serde_json::json!({"said": "done"})));
        }
        other => panic!("{other:?}"),
    }
    // Another principal, another tool: another key.
    let elsewhere = call(tenant, "pay").agent("agent-2");
    assert!(matches!(store.claim(elsewhere.claim("k")).await.unwrap(), Claim::Fresh));
    assert!(matches!(store.claim(call(tenant, "refund").claim("k")).await.unwrap(), Claim::Fresh));
}

async fn a_key_waits_and_is_released(store: &dyn Store) {
    let tenant = "waiting";
    let (first, approval) = (call(tenant, "pay"), ApprovalId::random());
    store.claim(first.claim("k")).await.unwrap();
    let waits = Settlement::Waiting(approval.clone());
    let outcome = first.clone().without_effect().outcome();
    store.outcome(CallEnd { settles: Some((first.claim("k"), waits)), ..outcome }).await.unwrap();
    let second = call(tenant, "pay");
    assert!(matches!(store.claim(second.claim("k")).await.unwrap(), Claim::Waiting(id) if id == approval));
    // The second one owns it now, and gives it back.
    let outcome = second.clone().without_effect().outcome();
    let released = CallEnd { settles: Some((second.claim("k"), Settlement::Released)), ..outcome };
    store.outcome(released).await.unwrap();
    assert!(matches!(store.claim(call(tenant, "pay").claim("k")).await.unwrap(), Claim::Fresh));
}

async fn only_the_owner_settles_a_key(store: &dyn Store) {
    let tenant = "owner";
    let (owner, other) = (call(tenant, "pay"), call(tenant, "pay"));
    store.claim(owner.claim("k")).await.unwrap();
    store.outcome(other.settling("k")).await.unwrap();
    assert!(matches!(store.claim(other.claim("k")).await.unwrap(), Claim::InFlight(id) if id == owner.id));
}

async fn outputs_come_back_by_range(store: &dyn Store) {
    let tenant = "outputs";
    let bytes: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    let handle = store.keep_output(tenant, bytes.clone()).await.unwrap();
    let reader = store.for_tenant(tenant);
    let read = |offset, length| reader.output(&handle, OutputRange { offset, length });
    let total = bytes.len() as u64;
    for (offset, length) in [(0, 10), (262_140, 10), (524_287, 2), (699_990, 100), (total, 5), (u64::MAX, 1)]
    {
        let begin = usize::try_from(offset.min(total)).unwrap();
        let end = usize::try_from(offset.saturating_add(length).min(total)).unwrap();
        assert_eq!(
            read(offset, length).await.unwrap(),
            Some((bytes[begin..end].to_vec(), total)),
            "{offset}"
        );
    }
    assert_eq!(read(0, u64::MAX).await.unwrap(), Some((bytes, total)));
    assert_eq!(reader.output(&OutputHandle::random(), ALL).await.unwrap(), None);
    let empty = store.keep_output(tenant, Vec::new()).await.unwrap();
    assert_eq!(reader.output(&empty, ALL).await.unwrap(), Some((Vec::new(), 0)));
}

async fn numbers_are_right(store: &dyn Store) {
    let tenant = "numbers";
    for n in 1..=100 {
        let call = call(tenant, "timed").took(n).at(noon());
        let call = if n > 90 { call.failed(ErrorCode::ExecutionFailed) } else { call };
        store.outcome(call.without_effect().outcome()).await.unwrap();
    }
    store.outcome(call(tenant, "once").took(7).without_effect().outcome()).await.unwrap();
    let numbers = store.for_tenant(tenant).statistics(AuditQuery::default()).await.unwrap();
    let [once, timed] = &numbers[..] else { panic!("{numbers:?}") };
    assert_eq!((&*once.tool, once.count, once.p50_ms, once.p99_ms), ("once", 1, 7.0, 7.0));
    assert_eq!((timed.count, timed.succeeded), (100, 90));
    assert_eq!((timed.p50_ms, timed.p95_ms, timed.p99_ms), (50.0, 95.0, 99.0));
    assert!((timed.success_rate() - 0.9).abs() < 1e-9);
}

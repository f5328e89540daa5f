use super::*;
use proptest::prelude::*;

fn who(tenant: &str, agent: &str) -> CallContext {
    CallContext::new(tenant, agent)
}

fn now(table: &Arc<LaneTable>, context: &CallContext) -> Slot {
    match table.ask(context, None) {
        Ok(SlotOffer::Now(slot)) => slot,
        Ok(SlotOffer::Wait(_)) => panic!("it has to wait"),
        Err(error) => panic!("{error}"),
    }
}

fn wait(table: &Arc<LaneTable>, context: &CallContext, priority: Option<u8>) -> Waiting {
    match table.ask(context, priority) {
        Ok(SlotOffer::Wait(waiting)) => waiting,
        Ok(SlotOffer::Now(_)) => panic!("it got a slot at once"),
        Err(error) => panic!("{error}"),
    }
}

fn granted(waiting: &mut Waiting) -> Option<Slot> {
    use futures_util::FutureExt;
    waiting.granted().now_or_never().flatten()
}

fn is_empty(table: &LaneTable) -> bool {
    let state = table.state();
    state.running == 0
        && state.queued == 0
        && state.ready.is_empty()
        && state.tenants.is_empty()
        && state.by_name.is_empty()
}

#[test]
fn an_agent_has_so_many_slots_and_another_one_has_its_own() {
    let table = LaneTable::new(Lanes { per_agent: Some(4), ..Lanes::default() });
    let (ada, bob) = (who("t", "ada"), who("t", "bob"));
    let mut slots: Vec<_> = (0..4).map(|_| now(&table, &ada)).collect();
    let mut fifth = wait(&table, &ada, None);
    assert_eq!((fifth.lane, fifth.ahead), ("agent", 0));
    drop(now(&table, &bob));
    assert!(granted(&mut fifth).is_none());
    fifth.has_slot = false;
    slots.pop();
    let slot = granted(&mut fifth).expect("a slot is free");
    drop((slot, slots, fifth));
    assert!(is_empty(&table), "nothing is kept of those who are gone");
}

#[test]
fn the_narrowest_lane_holds() {
    let lanes = Lanes { per_agent: Some(3), per_tenant: Some(2), global: Some(3), ..Lanes::default() };
    let table = LaneTable::new(lanes);
    let (ada, bob, eve) = (who("t", "ada"), who("t", "bob"), who("u", "eve"));
    let _slots = (now(&table, &ada), now(&table, &bob));
    assert_eq!(wait(&table, &ada, None).lane, "tenant");
    let _third = now(&table, &eve);
    assert_eq!(wait(&table, &eve, None).lane, "global");
}

#[test]
fn a_full_queue_refuses_the_tenant_that_filled_it_and_nobody_else() {
    let table = LaneTable::new(Lanes { global: Some(1), queue_per_tenant: 2, ..Lanes::default() });
    let (greedy, modest) = (who("greedy", "a"), who("modest", "a"));
    let _slot = now(&table, &greedy);
    let _queued = [wait(&table, &greedy, None), wait(&table, &greedy, None)];
    let Err(error) = table.ask(&greedy, None) else { panic!("a third one waits") };
    assert_eq!((error.code, error.code.e_number()), (ErrorCode::ConcurrentLimitExceeded, Some("E3106")));
    let _waiting = wait(&table, &modest, None);
    assert_eq!(table.stats().refused, 1);
}

#[test]
fn ten_thousand_queued_calls_delay_another_tenant_by_one_slot() {
    let table = LaneTable::new(Lanes { global: Some(1), queue_per_tenant: 10_000, ..Lanes::default() });
    let (greedy, modest) = (who("greedy", "a"), who("modest", "a"));
    let slot = now(&table, &greedy);
    let queued: Vec<_> = (0..10_000).map(|_| wait(&table, &greedy, Some(10))).collect();
    let mut single = wait(&table, &modest, Some(1));
    assert!(granted(&mut single).is_none());
    single.has_slot = false;
    drop(slot);
    assert!(granted(&mut single).is_some(), "it is served when the first slot is free");
    drop((single, queued));
    assert!(is_empty(&table));
}

#[tokio::test(start_paused = true)]
async fn a_higher_priority_is_first_and_the_lowest_is_not_starved() {
    let table = LaneTable::new(Lanes { per_agent: Some(1), ..Lanes::default() });
    let ada = who("t", "ada");
    let mut running = now(&table, &ada);
    let mut lowest = wait(&table, &ada, Some(1));
    let mut served_after = None;
    // A call of the highest priority comes every second, and each runs for a second.
    for second in 1..30 {
        let mut high = wait(&table, &ada, Some(10));
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(running);
        running = match granted(&mut high) {
            Some(slot) => slot,
            None => {
                let slot = granted(&mut lowest).expect("one of the two");
                served_after = Some(second);
                drop(slot);
                high.has_slot = false;
                granted(&mut high).expect("and then the other")
            }
        };
        if served_after.is_some() {
            break;
        }
        lowest.has_slot = false;
    }
    assert_eq!(served_after, Some(10), "nine steps of priority are nine seconds of waiting");
}

#[test]
fn whoever_stops_waiting_leaves_no_trace() {
    let table = LaneTable::new(Lanes { per_agent: Some(1), ..Lanes::default() });
    let ada = who("t", "ada");
    let slot = now(&table, &ada);
    let (first, second) = (wait(&table, &ada, None), wait(&table, &ada, None));
    drop(first);
    assert_eq!(table.stats().queued, 1);
    drop(slot);
    assert_eq!(table.stats().running, 1, "the second one has it");
    // It was granted and never looked at.
    drop(second);
    assert!(is_empty(&table));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Ask { tenant: u8, agent: u8, priority: u8 },
    End(prop::sample::Index),
    GiveUp(prop::sample::Index),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        5 => (0..3_u8, 0..3_u8, 1..=10_u8).prop_map(|(tenant, agent, priority)| Act::Ask { tenant, agent, priority }),
        4 => any::<prop::sample::Index>().prop_map(Act::End),
        1 => any::<prop::sample::Index>().prop_map(Act::GiveUp),
    ];
    prop::collection::vec(act, 1..120)
}

/// After every step: no lane is over its limit, and nobody waits who could run.
fn check(table: &LaneTable) {
    let state = table.state();
    let lanes = &table.lanes;
    let sum = |of: fn(&Tenant) -> usize| state.tenants.iter().map(|(_, tenant)| of(tenant)).sum::<usize>();
    assert_eq!((state.running, state.queued), (sum(|tenant| tenant.running), sum(|tenant| tenant.queued)));
    assert!(state.running <= Lanes::limit(lanes.global));
    for (index, tenant) in &state.tenants {
        assert!(tenant.running <= Lanes::limit(lanes.per_tenant));
        let agents =
            |of: fn(&Agent) -> usize| tenant.agents.iter().map(|(_, agent)| of(agent)).sum::<usize>();
        assert_eq!((tenant.running, tenant.queued), (agents(|a| a.running), agents(|a| a.waiting.len())));
        for (number, agent) in &tenant.agents {
            assert!(agent.running <= Lanes::limit(lanes.per_agent));
            assert!(agent.running > 0 || !agent.waiting.is_empty(), "an agent with nothing is kept");
            let could = agent.running < Lanes::limit(lanes.per_agent);
            if let Some(next) = agent.waiting.keys().next() {
                assert_eq!(tenant.ready.contains(&(*next, number)), could);
                let room = state.running < Lanes::limit(lanes.global)
                    && tenant.running < Lanes::limit(lanes.per_tenant);
                assert!(!(could && room), "somebody waits who could run");
            }
        }
        let listed = state.ready.contains(&(tenant.served, index));
        assert_eq!(listed, !tenant.ready.is_empty() && tenant.running < Lanes::limit(lanes.per_tenant));
    }
}

fn play(lanes: Lanes, acts: Vec<Act>) {
    let table = LaneTable::new(lanes);
    let (mut slots, mut waiting): (Vec<Slot>, Vec<Waiting>) = (Vec::new(), Vec::new());
    for act in acts {
        match act {
            Act::Ask { tenant, agent, priority } => {
                let context = who(&format!("t{tenant}"), &format!("a{agent}"));
                match table.ask(&context, Some(priority)) {
                    Ok(SlotOffer::Now(slot)) => slots.push(slot),
                    Ok(SlotOffer::Wait(place)) => waiting.push(place),
                    Err(_) => {}
                }
            }
            Act::End(which) if !slots.is_empty() => drop(slots.swap_remove(which.index(slots.len()))),
            Act::GiveUp(which) if !waiting.is_empty() => {
                drop(waiting.swap_remove(which.index(waiting.len())))
            }
            Act::End(_) | Act::GiveUp(_) => {}
        }
        let mut still = Vec::new();
        for mut place in waiting {
            match granted(&mut place) {
                Some(slot) => slots.push(slot),
                None => {
                    place.has_slot = false;
                    still.push(place);
                }
            }
        }
        waiting = still;
        check(&table);
    }
    drop((slots, waiting));
    assert!(is_empty(&table));
}

#[test]
fn whatever_happens_the_books_are_right() {
    let limits = (
        prop::option::of(1..4_usize),
        prop::option::of(1..5_usize),
        prop::option::of(1..6_usize),
        0..6_usize,
    );
    let config = ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400),
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    };
    let outcome = prop::test_runner::TestRunner::new(config).run(&(limits, acts()), |(limits, acts)| {
        let (per_agent, per_tenant, global, queue_per_tenant) = limits;
        play(Lanes { per_agent, per_tenant, global, queue_per_tenant, ..Lanes::default() }, acts);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

//! One call, one result; one exit; nothing outlives its call: for random batches of tools that do anything, interrupted
//! at random moments.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Alive, Count, House, Scripted, Setup, call_with, quiet, timeout, tool, within};
use haft_core::{
    ApprovalRequest, BatchId, BatchOptions, BatchOrigin, Decision, Event, ExecutionId, Retry, ToolCall,
    ToolError, ToolOutput, ToolResult,
    port::{Approver, BoxFuture, Claim, ClaimRequest, GuardError, Store},
};
use haft_engine::{BatchRequest, Breaker, EngineBuilder, Lanes, RepeatGuard, ResultCache, Settings};
use haft_sdk::{Args, CancelReason, ToolCtx};
use proptest::{collection::vec, option, prelude::*, test_runner::TestRunner};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::runtime::Runtime;

/// What a tool does when it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Succeed,
    Fail,
    PanicAtOnce,
    PanicLater,
    PanicInDrop,
    Hang,
    HangAndPanicInDrop,
    Flood,
    BadOutput,
}

const ACTS: [Act; 9] = [
    Act::Succeed,
    Act::Fail,
    Act::PanicAtOnce,
    Act::PanicLater,
    Act::PanicInDrop,
    Act::Hang,
    Act::HangAndPanicInDrop,
    Act::Flood,
    Act::BadOutput,
];

/// One call of a batch.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Of what tool: one that reads, writes or asks; one that is not there.
    tool: &'static str,
    act: Act,
    bad_arguments: bool,
    /// One of few idempotency keys, so that calls meet.
    key: Option<u8>,
}

/// What comes between a caller and its results.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    None,
    CancelBatch,
    CancelOne(usize),
    Abandon,
    AbandonUnpolled,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Say(&'static str),
    Fail,
    TooFew,
}

/// How the calls are scheduled.
#[derive(Clone, Copy, Debug)]
struct Manner {
    strategy: haft_core::Strategy,
    at_once: usize,
    /// Few slots, a short queue, breakers, stored results, the repeat guard.
    is_crowded: bool,
    retries: u32,
}

fn manners() -> impl Strategy<Value = Manner> {
    use haft_core::Strategy::{Parallel, Sequential, Smart};
    let strategy = prop_oneof![2 => Just(Sequential), 1 => Just(Parallel), 2 => Just(Smart)];
    (strategy, 1..6_usize, any::<bool>(), prop_oneof![3 => Just(0_u32), 1 => Just(1)]).prop_map(
        |(strategy, at_once, is_crowded, retries)| Manner { strategy, at_once, is_crowded, retries },
    )
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Step>,
    timeout: Duration,
    continue_on_failure: bool,
    manner: Manner,
    from_a_model: bool,
    slow_store: bool,
    answers: Vec<Answer>,
    thinking: Duration,
    interruption: Interruption,
    moment: Duration,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tool =
        prop_oneof![5 => Just("reads"), 5 => Just("writes"), 3 => Just("asks"), 1 => Just("no_such_tool")];
    // Hanging costs real time, so it is rarer than the rest.
    let act = prop_oneof![6 => prop::sample::select(&ACTS[..5]), 2 => prop::sample::select(&ACTS[5..])];
    let step = (tool, act, prop::bool::weighted(0.08), option::weighted(0.25, 0..2_u8));
    vec(step.prop_map(|(tool, act, bad_arguments, key)| Step { tool, act, bad_arguments, key }), 1..=12)
}

fn cases() -> impl Strategy<Value = Case> {
    let answer = prop_oneof![
        6 => Just(Answer::Say("approve")),
        2 => Just(Answer::Say("deny")),
        2 => Just(Answer::Say("unanswered")),
        1 => Just(Answer::Say("expired")),
        1 => Just(Answer::Fail),
        1 => Just(Answer::TooFew),
    ];
    let interruption = prop_oneof![
        4 => Just(Interruption::None),
        2 => Just(Interruption::CancelBatch),
        2 => (0..12_usize).prop_map(Interruption::CancelOne),
        3 => Just(Interruption::Abandon),
        1 => Just(Interruption::AbandonUnpolled),
    ];
    let ms = |most: u64| (0..most * 1000).prop_map(Duration::from_micros);
    (
        steps(),
        (20..60_u64).prop_map(Duration::from_millis),
        (prop::bool::weighted(0.7), manners()),
        any::<bool>(),
        any::<bool>(),
        vec(answer, 1..4),
        ms(3),
        interruption,
        ms(40),
    )
        .prop_map(
            |(
                steps,
                timeout,
                (continue_on_failure, manner),
                from_a_model,
                slow_store,
                answers,
                thinking,
                interruption,
                moment,
            )| {
                Case {
                    steps,
                    timeout,
                    continue_on_failure,
                    manner,
                    from_a_model,
                    slow_store,
                    answers,
                    thinking,
                    interruption,
                    moment,
                }
            },
        )
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("planned panic in drop")
        }
    }
}

fn acts(name: &str, alive: &Count) -> Scripted {
    let alive = alive.clone();
    tool(name, move |args: Args, cx: ToolCtx| {
        let here = alive.alive();
        let wanted = args.value["act"].as_str().unwrap_or_default().to_owned();
        let act = *ACTS.iter().find(|act| format!("{act:?}") == wanted).expect("a known act");
        if act == Act::PanicAtOnce {
            panic!("planned panic at once")
        }
        run(act, here, cx)
    })
    .takes(json!({"type": "object", "required": ["act"], "properties": {"act": {"type": "string"}}}))
    .gives(json!({"type": "object"}))
}

async fn run(act: Act, here: Alive, cx: ToolCtx) -> Result<ToolOutput, ToolError> {
    let _here = here;
    let _bomb = matches!(act, Act::PanicInDrop | Act::HangAndPanicInDrop).then_some(Bomb);
    tokio::task::yield_now().await;
    match act {
        Act::Succeed | Act::PanicAtOnce | Act::PanicInDrop => {
            Ok(ToolOutput::structured(json!({"done": true})))
        }
        Act::Fail => Err(ToolError::failed("it failed")),
        Act::PanicLater => panic!("planned panic later"),
        Act::Hang | Act::HangAndPanicInDrop => std::future::pending().await,
        Act::Flood => {
            for _ in 0..64 {
                for _ in 0..16 {
                    cx.print(&"x".repeat(1024));
                }
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::default())
        }
        Act::BadOutput => Ok(ToolOutput::structured(json!(["not an object"]))),
    }
}

/// Somebody who answers as the case says, after some thought.
struct Person {
    answers: Vec<Answer>,
    thinking: Duration,
}

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            tokio::time::sleep(self.thinking).await;
            let mut decisions = Vec::new();
            for (_, answer) in requests.iter().zip(self.answers.iter().cycle()) {
                match answer {
                    Answer::Say(word) => {
                        decisions
                            .push(serde_json::from_value(json!({"decision": word})).expect("a decision"));
                    }
                    Answer::Fail => return Err(GuardError("the line is dead".into())),
                    Answer::TooFew => return Ok(decisions),
                }
            }
            Ok(decisions)
        })
    }
}

fn to_call(index: usize, step: &Step) -> ToolCall {
    let arguments =
        if step.bad_arguments { json!({"act": 7}) } else { json!({"act": format!("{:?}", step.act)}) };
    let mut call = call_with(step.tool, arguments).with_id(format!("call_{index}"));
    call.idempotency_key = step.key.map(|key| format!("key_{key}").into());
    call
}

fn crowded(builder: EngineBuilder) -> EngineBuilder {
    builder
        .lanes(Lanes { per_agent: Some(2), queue_per_tenant: 2, ..Lanes::default() })
        .breaker(Breaker { min_calls: 3, ..Breaker::default() })
        .cache(ResultCache::default())
        .repeat_guard(RepeatGuard { warn_at: 1, stop_after: 2, ..RepeatGuard::default() })
}

fn house_of(case: &Case, alive: &Count) -> House {
    let setup = Setup {
        approver: Arc::new(Person { answers: case.answers.clone(), thinking: case.thinking }),
        settings: Settings {
            observable_after_end: 1024,
            event_log_capacity: 64,
            allow_parallel: true,
            ..Settings::default()
        },
        around: if case.manner.is_crowded { crowded } else { |builder| builder },
        ..Setup::default()
    };
    if case.slow_store {
        setup.store.take_your_time();
    }
    let reads = acts("reads", alive).define(|definition| definition.cacheable = true);
    setup.build([reads, acts("writes", alive).effects(), acts("asks", alive).effects().asks()])
}

/// The ids of calls, by their place in the batch, as they become known.
type Known = Arc<Mutex<HashMap<u32, ExecutionId>>>;

async fn watch(house: &House, batch: BatchId, known: Known) -> tokio::task::JoinHandle<Vec<Event>> {
    let mut observer = house.engine.observe(batch).expect("a batch can be watched once it is made");
    tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(event) = observer.next().await {
            if let (Some(index), Some(id)) = (event.batch_index, event.execution_id) {
                known.lock().unwrap().insert(index, id);
            }
            events.push(event);
        }
        events
    })
}

/// Makes the calls of a case, interrupts them, and looks at what is left.
async fn play(case: &Case) {
    let alive = Count::default();
    let house = house_of(case, &alive);
    let calls: Vec<ToolCall> =
        case.steps.iter().enumerate().map(|(index, step)| to_call(index, step)).collect();
    let id = ExecutionId::at(jiff::Timestamp::now());
    let batch = BatchId::from_uuid(id.as_uuid());
    let options = BatchOptions {
        call: haft_core::CallOptions {
            execution_id: Some(id),
            retry: Some(Retry {
                max_retries: case.manner.retries,
                base: Duration::from_millis(2),
                ..Retry::default()
            }),
            ..timeout(case.timeout)
        },
        strategy: case.manner.strategy,
        max_parallelism: case.manner.at_once,
        continue_on_failure: case.continue_on_failure,
        origin: if case.from_a_model { BatchOrigin::Model } else { BatchOrigin::Client },
    };
    let request = BatchRequest::from(calls.clone()).options(options);
    let running = house.engine.execute_batch(request);
    let known = Known::default();
    let watching = watch(&house, batch, Arc::clone(&known)).await;
    let _never_reads = house.engine.observe(batch);

    let results = match case.interruption {
        Interruption::AbandonUnpolled => {
            drop(running);
            None
        }
        interruption => {
            let running = tokio::spawn(running);
            if !matches!(interruption, Interruption::None) {
                tokio::time::sleep(case.moment).await;
            }
            match interruption {
                Interruption::None | Interruption::AbandonUnpolled => {}
                Interruption::CancelBatch => {
                    house.engine.cancel(batch, CancelReason::User, Some("enough"));
                }
                Interruption::CancelOne(place) => {
                    let one = known.lock().unwrap().values().nth(place % 3).copied();
                    one.map(|one| house.engine.cancel(one, CancelReason::User, None));
                }
                Interruption::Abandon => running.abort(),
            }
            match within("the results", running).await {
                Ok((results, summary)) => {
                    assert_eq!(summary.total, calls.len());
                    Some(results)
                }
                Err(error) => {
                    assert!(matches!(interruption, Interruption::Abandon), "the batch panicked: {error}");
                    None
                }
            }
        }
    };
    house.idle().await;
    check(&house, &calls, batch, results.as_deref(), &alive).await;
    let events = within("the end of the batch's events", watching).await.unwrap();
    let last = events.last().map(|event| (event.execution_id, event.payload.kind()));
    assert!(matches!(last, Some((None, "BatchCompleted" | "Cancelled"))), "the batch's last event: {last:?}");
}

/// Everything that must hold after a batch, whatever happened to it.
async fn check(
    house: &House,
    calls: &[ToolCall],
    batch: BatchId,
    results: Option<&[ToolResult]>,
    alive: &Count,
) {
    assert_eq!(alive.get(), 0, "a tool's future is still there");
    assert_eq!(house.store.memory.open_intents(), 0, "open intents");
    assert!(!house.engine.is_executing(batch), "the batch still executes");
    assert!(house.engine.pending().is_empty());

    let mut audit = house.audit().await;
    audit.sort_by_key(|record| record.metadata.batch_index);
    let places: Vec<_> = audit.iter().map(|record| record.metadata.batch_index).collect();
    let expected: Vec<_> = (0..calls.len()).map(|index| u32::try_from(index).ok()).collect();
    assert_eq!(places, expected, "one audit record for each call");
    for (record, call) in audit.iter().zip(calls) {
        let id = record.metadata.execution_id;
        assert_eq!(record.call_id, call.id);
        house.ended_once(id).await;
        let kinds = house.kinds(id).await;
        assert_eq!(kinds.first(), Some(&"Started"), "the first event of {id}: {kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| **kind == "Started").count(), 1, "{id}: {kinds:?}");
        assert_eq!(
            kinds.contains(&"InProgress"),
            record.metadata.attempts > 0,
            "`InProgress` and the record of {id} disagree: {record:?}"
        );
    }
    if let Some(results) = results {
        assert_eq!(results.len(), calls.len(), "one result for each call");
        for (result, record) in results.iter().zip(&audit) {
            assert_eq!(result.call_id, record.call_id, "results are in call order");
            assert_eq!((result.status, result.error_code()), (record.status, record.code));
            assert_eq!(result.metadata.execution_id, record.metadata.execution_id);
        }
    }
    for call in calls {
        let Some(key) = &call.idempotency_key else { continue };
        let request = ClaimRequest {
            execution_id: ExecutionId::at(jiff::Timestamp::UNIX_EPOCH),
            tenant: "local".into(),
            principal: "owner".into(),
            tool: Arc::clone(&call.name),
            key: Arc::clone(key),
            arguments: call.arguments.clone(),
        };
        let claim = house.store.memory.claim(request).await.unwrap();
        let stuck = matches!(claim, Claim::InFlight(by) if audit.iter().any(|record| record.metadata.execution_id == by));
        assert!(!stuck, "{key} is held by a call that has ended: {claim:?}");
    }
}

fn for_random_batches(runtime: &Runtime) {
    quiet();
    let usual = ProptestConfig::default();
    let config = ProptestConfig {
        // A few seconds by default; `PROPTEST_CASES=20000` for a night.
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { usual.cases } else { 150 },
        failure_persistence: None,
        max_shrink_iters: 300,
        ..usual
    };
    let outcome = TestRunner::new(config).run(&cases(), |case| {
        // In a task of its own, so that what fails is caught whole and the next case starts clean.
        let played = runtime.block_on(async { tokio::spawn(async move { play(&case).await }).await });
        played.map_err(|error| {
            let panic = error.into_panic();
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            TestCaseError::fail(text.unwrap_or_default())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn every_call_of_every_batch_ends_exactly_once_on_two_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for_random_batches(&runtime);
}

#[test]
fn every_call_of_every_batch_ends_exactly_once_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for_random_batches(&runtime);
}

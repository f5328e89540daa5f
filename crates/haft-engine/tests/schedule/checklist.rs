//! The verification checklist of seeds/001 §10, and acceptance 8 to 12 of seeds/000 §9, by name: what has to do with
//! scheduling. The rest of both is in `source_ids.rs`.

use crate::{
    Diary, MS, batch, caller,
    common::{Count, call, call_with, code, house, tool, with},
};
use haft_core::{CallOptions, ErrorCode, EventPayload, Retry, Strategy, Tier, ToolError};
use haft_engine::BatchRequest;
use haft_sdk::{Args, ToolCtx};
use serde_json::json;
use std::time::Duration;

fn fails(code: ErrorCode, runs: &Count) -> crate::common::Scripted {
    let runs = runs.clone();
    tool("fails", move |_: Args, _: ToolCtx| {
        runs.up();
        async move { Err::<(), _>(ToolError::new(code, "no")) }
    })
}

#[tokio::test(start_paused = true)]
async fn execute_with_retry_retries_on_failure_up_to_max_retries() {
    for max_retries in [0, 1, 2, 5] {
        let runs = Count::default();
        let house = house([fails(ErrorCode::Timeout, &runs)]);
        let retry = Some(Retry { max_retries, ..Retry::default() });
        // The waits of five retries may take longer than the usual deadline.
        let timeout = Some(Duration::from_secs(120));
        let options = CallOptions { retry, timeout, ..CallOptions::default() };
        house.engine.execute(with(call("fails"), options)).await;
        assert_eq!(runs.get(), max_retries as usize + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn execute_with_retry_uses_exponential_backoff() {
    // Each wait is a random part of 1, 2, 4, 8 s: over many calls the averages double.
    let (mut sums, rounds) = ([Duration::ZERO; 4], 200);
    for _ in 0..rounds {
        let runs = Count::default();
        let house = house([fails(ErrorCode::Timeout, &runs)]);
        let retry = Some(Retry { max_retries: 4, ..Retry::default() });
        let options = CallOptions { retry, ..CallOptions::default() };
        let result = house.engine.execute(with(call("fails"), options)).await;
        let tries = &result.metadata.scheduling.as_ref().unwrap().failed_tries;
        for ((sum, failed), most) in sums.iter_mut().zip(tries).zip([1, 2, 4, 8]) {
            assert!(failed.delay <= Duration::from_secs(most));
            *sum += failed.delay;
        }
    }
    for (sum, expected) in sums.iter().zip([0.5, 1.0, 2.0, 4.0]) {
        let mean = sum.as_secs_f64() / f64::from(rounds);
        assert!(
            (expected * 0.75..expected * 1.25).contains(&mean),
            "{mean} s, and {expected} s are expected"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn execute_with_retry_respects_should_retry_predicate() {
    for (on, expected) in [(vec![ErrorCode::RateLimited], 1), (vec![ErrorCode::Timeout], 3), (vec![], 3)] {
        let runs = Count::default();
        let house = house([fails(ErrorCode::Timeout, &runs)]);
        let retry = Some(Retry { on, ..Retry::default() });
        house.engine.execute(with(call("fails"), CallOptions { retry, ..CallOptions::default() })).await;
        assert_eq!(runs.get(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn execute_with_parallelization_runs_read_only_tools_in_parallel() {
    let diary = Diary::default();
    let house = house([diary.tool("x")]);
    let calls = (0..4).map(|n| call_with("x", json!({"n": n}))).collect();
    house.engine.execute_batch(batch(calls, Strategy::Smart, 4)).await;
    assert_eq!(diary.most_at_once(), 4);
}

#[tokio::test(start_paused = true)]
async fn execute_with_parallelization_runs_mutating_tools_sequentially() {
    let diary = Diary::default();
    let house = house([diary.tool("x").effects()]);
    let calls = (0..4).map(|n| call_with("x", json!({"n": n}))).collect();
    house.engine.execute_batch(batch(calls, Strategy::Smart, 4)).await;
    assert_eq!(diary.text(), "+0 -0 +1 -1 +2 -2 +3 -3 ");
}

#[tokio::test(start_paused = true)]
async fn execute_with_parallelization_respects_max_concurrency() {
    let diary = Diary::default();
    let house = house([diary.tool("x")]);
    let calls = (0..12).map(|n| call_with("x", json!({"n": n}))).collect();
    house.engine.execute_batch(batch(calls, Strategy::Smart, 5)).await;
    assert_eq!(diary.most_at_once(), 5);
}

#[tokio::test(start_paused = true)]
async fn retries_and_parallel_batches_emit_appropriate_events() {
    let runs = Count::default();
    let house = house([Diary::default().tool("x"), fails(ErrorCode::Timeout, &runs)]);
    let names = |events: &[haft_core::Event]| {
        events.iter().map(|event| event.payload.wire_name()).collect::<Vec<_>>()
    };
    let failed = house.engine.execute(call("fails")).await;
    let events = house.events(failed.metadata.execution_id).await;
    let expected = [
        "tool:executing",
        "tool:progress",
        "tool:retry-attempt",
        "tool:retry-attempt",
        "tool:retry-exhausted",
        "tool:timeout",
    ];
    assert_eq!(names(&events), expected);
    let (_, summary) = house.engine.execute_batch(batch(vec![call("x")], Strategy::Smart, 4)).await;
    let events = house.events(summary.batch_id).await;
    let of_the_batch: Vec<_> = events.iter().filter(|event| event.execution_id.is_none()).cloned().collect();
    let expected =
        ["tool:batch-start", "tool:parallel-start", "tool:parallel-complete", "tool:batch-complete"];
    assert_eq!(names(&of_the_batch), expected);
}

// --- seeds/000 §9 --------------------------------------------------------------------------------------------------

#[tokio::test]
async fn acceptance_8_batch_execution_processes_all_inputs_in_every_strategy() {
    for strategy in [Strategy::Sequential, Strategy::Parallel, Strategy::Smart] {
        let house = house([Diary::default().tool("x")]);
        let calls = (0..50).map(|n| call_with("x", json!({"n": n, "ms": 1}))).collect();
        let (results, _) = house.engine.execute_batch(batch(calls, strategy, 8)).await;
        let texts: Vec<_> = results.iter().map(|result| result.text().parse::<u32>().unwrap()).collect();
        assert_eq!(texts, (0..50).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn acceptance_9_batch_size_limited_by_tier() {
    for (tier, most) in [(Tier::Core, 5), (Tier::WriterPro, 20), (Tier::Teams, 50)] {
        let house = house([Diary::default().tool("x")]);
        let calls = |count: usize| vec![call_with("x", json!({"ms": 0})); count];
        let run = |count| {
            let request = BatchRequest::from(calls(count)).context(caller("t", "a", tier));
            house.engine.execute_batch(request)
        };
        assert!(run(most).await.0.iter().all(|result| result.is_success()), "{tier:?}");
        let (results, _) = run(most + 1).await;
        assert!(results.iter().all(|result| code(result) == "LIMIT_EXCEEDED"), "{tier:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn acceptance_10_parallel_execution_only_for_teams_and_above() {
    for (tier, at_once) in [(Tier::Core, 1), (Tier::WriterPro, 1), (Tier::Teams, 4), (Tier::Enterprise, 4)] {
        let diary = Diary::default();
        let house = house([diary.tool("x")]);
        let calls = (0..4).map(|n| call_with("x", json!({"n": n}))).collect();
        let request = batch(calls, Strategy::Parallel, 4).context(caller("t", "a", tier));
        let (results, summary) = house.engine.execute_batch(request).await;
        assert!(results.iter().all(|result| result.is_success()));
        assert_eq!(diary.most_at_once(), at_once, "{tier:?}");
        let events = house.events(summary.batch_id).await;
        let has_note = events.iter().any(|event| matches!(event.payload, EventPayload::Warning { .. }));
        assert_eq!(has_note, at_once == 1);
    }
}

fn p95(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 95 / 100]
}

#[tokio::test]
async fn acceptance_11_single_execution_under_500_ms_at_the_95th_percentile() {
    let house = house([Diary::default().tool("x")]);
    let mut times = Vec::new();
    for _ in 0..100 {
        times.push(house.engine.execute(call("x")).await.metadata.duration);
    }
    assert!(p95(times.clone()) < MS(500), "{:?}", p95(times));
}

#[tokio::test]
async fn acceptance_12_batch_of_ten_tools_under_5_s_at_the_95th_percentile() {
    for strategy in [Strategy::Sequential, Strategy::Smart] {
        let house = house([Diary::default().tool("x")]);
        let mut times = Vec::new();
        for _ in 0..20 {
            let calls = (0..10).map(|n| call_with("x", json!({"n": n}))).collect();
            times.push(house.engine.execute_batch(batch(calls, strategy, 4)).await.1.duration);
        }
        assert!(p95(times.clone()) < Duration::from_secs(5), "{strategy:?}: {:?}", p95(times));
    }
}

// --- seeds/003 §9 and §13, seeds/004 NFR-PERF-01 ---------------------------------------------------------------------

/// How long each of them took.
fn times<T>(names: &[String], mut run: impl FnMut(&str) -> T) -> Vec<Duration> {
    let time = |name: &String| {
        let started = std::time::Instant::now();
        run(name);
        started.elapsed()
    };
    names.iter().map(time).collect()
}

#[tokio::test]
async fn among_a_thousand_tools_one_is_found_within_5_ms_at_the_95th_percentile() {
    let names: Vec<String> = (0..1000).map(|n| format!("tool_{n}")).collect();
    let house = house(names.iter().map(|name| Diary::default().tool(name)));
    assert_eq!(house.engine.tools().count(None), names.len());
    let found = times(&names, |name| assert!(house.engine.tools().exists(name), "{name}"));
    assert!(p95(found.clone()) < MS(5), "{:?}", p95(found));
    let missing = times(&names, |name| assert!(!house.engine.tools().exists(&format!("{name}_not"))));
    assert!(p95(missing.clone()) < MS(5), "{:?}", p95(missing));
}

#[tokio::test]
async fn arguments_are_checked_within_10_ms_at_the_95th_percentile() {
    let house = house([Diary::default().tool("x")]);
    let mut times = Vec::new();
    for n in 0..200 {
        let started = std::time::Instant::now();
        let previews = house.engine.plan(BatchRequest::from(vec![call_with("x", json!({"n": n}))])).await;
        times.push(started.elapsed());
        assert_eq!(previews.len(), 1);
    }
    assert!(p95(times.clone()) < MS(10), "{:?}", p95(times));
}

//! What scheduling costs: many calls at once against the ideal, the admission controls of a start, a stored result, and
//! the memory of calls in flight.
//!
//! Times that are compared take turns in many short rounds of one run; a difference is the median over rounds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

use futures_util::{StreamExt, future::join_all, stream};
use haft_core::{BatchOptions, Strategy, ToolCall};
use haft_engine::{
    BatchRequest, Breaker, Engine, EngineBuilder, Lanes, Quotas, RateLimit, RateScope, RepeatGuard,
    ResultCache,
};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{ToolCtx, ToolError, tool_fn};
use haft_store::MemoryStore;
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Nothing to speak of.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    /// The place.
    name: String,
}

fn builder(store: MemoryStore) -> EngineBuilder {
    Engine::builder(Arc::new(ListPolicy::default()), Arc::new(PermissionStrings), Arc::new(store))
}

fn answers(cacheable: bool) -> impl haft_sdk::Tool {
    let tool = tool_fn("answers", |args: Place, _: ToolCtx| async { Ok::<_, ToolError>(args.name) });
    tool.read_only().define(|definition| definition.cacheable = cacheable)
}

fn call() -> ToolCall {
    ToolCall::new("answers", serde_json::json!({"name": "Bern"})).with_id("call_1")
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Nanoseconds a call, with so many in flight, each lane a task of its own.
async fn time(engine: &Engine, calls: usize, in_flight: usize) -> f64 {
    let start = Instant::now();
    let lanes: Vec<_> = (0..in_flight)
        .map(|_| {
            let (engine, call) = (engine.clone(), call());
            tokio::spawn(async move {
                for _ in 0..calls / in_flight {
                    let result = engine.execute(call.clone()).await;
                    assert!(result.is_success(), "{result:?}");
                    black_box(result);
                }
            })
        })
        .collect();
    join_all(lanes).await.into_iter().for_each(|lane| lane.unwrap());
    start.elapsed().as_nanos() as f64 / calls as f64
}

/// 1,000 calls of 10 ms, 64 at once: as a batch, and as bare sleeps.
async fn sleeps(rounds: usize) -> (f64, f64) {
    let sleeps = tool_fn("sleeps", |_: Place, _: ToolCtx| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok::<_, ToolError>(())
    });
    let engine = builder(MemoryStore::new()).tool(sleeps.read_only()).build().unwrap();
    let (mut ideal, mut haft) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let bare = stream::iter(0..1_000).map(|_| tokio::time::sleep(Duration::from_millis(10)));
        bare.buffer_unordered(64).for_each(|()| async {}).await;
        ideal.push(start.elapsed().as_secs_f64());
        let calls: Vec<_> =
            (0..1_000).map(|_| ToolCall::new("sleeps", serde_json::json!({"name": "x"}))).collect();
        let options =
            BatchOptions { strategy: Strategy::Smart, max_parallelism: 64, ..BatchOptions::default() };
        let start = Instant::now();
        let (results, summary) = engine.execute_batch(BatchRequest::from(calls).options(options)).await;
        haft.push(start.elapsed().as_secs_f64());
        assert_eq!((results.len(), summary.succeeded, summary.overlapped), (1_000, 1_000, 1_000));
    }
    let ratio = median(haft.iter().zip(&ideal).map(|(haft, ideal)| haft / ideal).collect());
    (median(haft) * 1e3, ratio)
}

fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / 1e6
}

/// Megabytes of 10,000 calls that run, and of 10,000 of which all but 64 wait for a slot.
async fn in_flight(lanes: Option<Lanes>) -> f64 {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let waits = tool_fn("waits", move |_: Place, _: ToolCtx| {
        let gate = Arc::clone(&held);
        async move {
            let _open = gate.acquire().await;
            Ok::<_, ToolError>(())
        }
    });
    let mut builder = builder(MemoryStore::new());
    if let Some(lanes) = lanes {
        builder = builder.lanes(lanes);
    }
    let engine = builder.tool(waits.read_only()).build().unwrap();
    let before = resident();
    let calls: Vec<_> = (0..10_000)
        .map(|number| {
            let call = ToolCall::new("waits", serde_json::json!({"name": format!("place {number}")}));
            tokio::spawn(engine.execute(call))
        })
        .collect();
    let all_there = || match engine.stats().lanes {
        Some(lanes) => lanes.running + lanes.queued == 10_000,
        None => engine.running() == 10_000,
    };
    while !all_there() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let used = resident() - before;
    gate.add_permits(10_000);
    join_all(calls).await.into_iter().for_each(|result| assert!(result.unwrap().is_success()));
    used
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let (rounds, calls) = if quick { (3, 2_000) } else { (31, 40_000) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut missed = Vec::new();
    let mut goal = |what: &str, measured: f64, unit: &str, most: f64| {
        println!("{what:<58} {measured:>8.2} {unit} (goal {most} {unit})");
        if measured > most {
            missed.push(format!("{what}: {measured:.2} {unit}, and the goal is {most}"));
        }
    };

    // First, while the process is small.
    let running = runtime.block_on(in_flight(None));
    goal("10,000 calls that run", running, "MB", 100.0);
    let lanes = Lanes { per_agent: Some(64), queue_per_tenant: 10_000, ..Lanes::default() };
    let queued = runtime.block_on(in_flight(Some(lanes.clone())));
    goal("10,000 calls, 64 of which run and the rest waits", queued, "MB", 100.0);

    let (millis, ratio) = runtime.block_on(sleeps(if quick { 2 } else { 15 }));
    println!("{:<58} {millis:>8.2} ms", "1,000 calls of 10 ms, 64 at once");
    goal("… against the same sleeps without haft", ratio, "times", 1.1);

    let plain = builder(MemoryStore::new()).tool(answers(false)).build().unwrap();
    let with_lanes = builder(MemoryStore::new()).tool(answers(false)).lanes(lanes.clone()).build().unwrap();
    let rate = RateLimit::new(RateScope::Agent, u32::MAX, Duration::from_secs(60)).unwrap();
    let with_all = builder(MemoryStore::new())
        .tool(answers(false))
        .lanes(lanes)
        .breaker(Breaker::default())
        .rate_limits([rate])
        .quotas(Quotas::default())
        .cache(ResultCache::default())
        .repeat_guard(RepeatGuard::default())
        .build()
        .unwrap();
    let (mut base, mut lane, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let times = [&plain, &with_lanes, &with_all].map(|engine| runtime.block_on(time(engine, calls, 64)));
        if round > 0 {
            base.push(times[0]);
            lane.push((times[1] - times[0]) / 1e3);
            all.push((times[2] - times[0]) / 1e3);
        }
    }
    println!("{:<58} {:>8.2} µs", "a call at 64 in flight, nothing around its start", median(base) / 1e3);
    goal("… lanes add", median(lane), "µs", 1.0);
    goal("… lanes, rate, quota, breaker, cache and repeat guard add", median(all), "µs", 1.0);

    let cached =
        builder(MemoryStore::new()).tool(answers(true)).cache(ResultCache::default()).build().unwrap();
    for (in_flight, what) in
        [(1, "a stored result, one call at a time"), (64, "a stored result, 64 in flight")]
    {
        let mut hits = Vec::new();
        for round in 0..=rounds {
            let hit = runtime.block_on(time(&cached, calls, in_flight));
            if round > 0 {
                hits.push(hit / 1e3);
            }
        }
        goal(what, median(hits), "µs", 2.0);
    }
    assert!(cached.stats().cache.is_some_and(|cache| cache.misses <= 2), "{:?}", cached.stats().cache);

    match missed.as_slice() {
        [] => println!("goals met"),
        missed => missed.iter().for_each(|missed| println!("goal missed: {missed}")),
    }
}

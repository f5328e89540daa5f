//! Lanes, through the engine: slots, queues, priorities, fairness.

use crate::{
    Diary, MS, caller,
    common::{call, call_with, code, house, message, tool, until, with, within},
    kinds, with_around,
};
use futures_util::{StreamExt, future::join_all, stream};
use haft_core::{BatchOptions, CallOptions, EventPayload, Limits, Retry, Tier};
use haft_engine::{BatchRequest, Lanes, Request};
use haft_sdk::{Args, CancelReason, ToolCtx};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn an_agent_runs_ten_calls_at_once_and_the_rest_waits_with_its_wait_on_the_result() {
    let diary = Diary::default();
    let house = with_around([diary.tool("reads")], |builder| builder.lanes(Lanes::default()));
    let calls = (0..25).map(|n| house.engine.execute(call_with("reads", json!({"n": n}))));
    let results = join_all(calls).await;
    assert_eq!(diary.most_at_once(), 10);
    let waits: Vec<_> = results
        .iter()
        .map(|result| result.metadata.scheduling.as_ref().map_or(0, |facts| facts.queue_wait.as_millis()))
        .collect();
    let expected: Vec<_> = (0..25).map(|place| place / 10 * 10).collect();
    assert_eq!(waits, expected);
    let events = house.events(results[10].metadata.execution_id).await;
    assert_eq!(kinds(&events), ["Started", "Queued", "InProgress", "Completed"]);
    assert_eq!(events[1].payload, EventPayload::Queued { lane: "agent", ahead: 0 });
    let stats = house.engine.stats().lanes.unwrap();
    assert_eq!((stats.running, stats.queued), (0, 0));
}

#[tokio::test]
async fn a_full_queue_is_e3106() {
    let diary = Diary::default();
    let lanes = Lanes { per_agent: Some(1), queue_per_tenant: 1, ..Lanes::default() };
    let house = with_around([diary.tool("reads")], |builder| builder.lanes(lanes));
    let once = CallOptions { retry: Some(crate::common::no_retry()), ..CallOptions::default() };
    let calls = (0..3).map(|n| house.engine.execute(with(call_with("reads", json!({"n": n})), once.clone())));
    let results = join_all(calls).await;
    assert_eq!(results.iter().map(code).collect::<Vec<_>>(), ["OK", "OK", "CONCURRENT_LIMIT_EXCEEDED"]);
    let error = results[2].error.as_ref().unwrap();
    assert_eq!((error.number.as_deref(), error.retryable), (Some("E3106"), true));
    assert_eq!(results[2].metadata.attempts, 0);
    assert!(message(&results[2]).contains("Try again later"));
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_dropped_while_it_waits_leaves_its_place() {
    let house = with_around(
        [tool("hangs", |_: Args, _: ToolCtx| async {
            std::future::pending::<()>().await;
            Ok(())
        })],
        |builder| builder.lanes(Lanes { per_agent: Some(1), ..Lanes::default() }),
    );
    let queued = || house.engine.stats().lanes.unwrap().queued;
    let running = tokio::spawn(house.engine.execute(call("hangs")));
    until("it runs", || house.engine.stats().lanes.unwrap().running == 1).await;
    let (id, options) = crate::common::known_id();
    let waiting = tokio::spawn(house.engine.execute(with(call("hangs"), options)));
    until("it waits", || queued() == 1).await;
    assert!(house.engine.cancel(id, CancelReason::User, None));
    let result = within("its end", waiting).await.unwrap();
    assert_eq!((code(&result), result.metadata.attempts, queued()), ("CANCELLED", 0, 0));

    let dropped = tokio::spawn(house.engine.execute(call("hangs")));
    until("it waits", || queued() == 1).await;
    dropped.abort();
    until("it is gone", || queued() == 0).await;
    running.abort();
    house.idle().await;
    assert_eq!(house.engine.stats().lanes.unwrap(), haft_engine::LaneStats::default());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_queued_calls_of_a_tenant_delay_another_ones_call_by_at_most_one_slots_time() {
    let diary = Diary::default();
    let lanes = Lanes { per_agent: None, global: Some(4), queue_per_tenant: 20_000, ..Lanes::default() };
    let house = with_around([diary.tool("works")], |builder| builder.lanes(lanes));
    let request = |tenant: &str, n: u64| {
        Request::new(call_with("works", json!({"n": n, "ms": 100}))).context(caller(
            tenant,
            "a",
            Tier::Enterprise,
        ))
    };
    let greedy: Vec<_> =
        (0..10_000).map(|n| tokio::spawn(house.engine.execute(request("greedy", n)))).collect();
    until("all are in the queue", || house.engine.stats().lanes.unwrap().queued == 10_000 - 4).await;
    let before = tokio::time::Instant::now();
    let result = within("the single call", house.engine.execute(request("modest", 10_001))).await;
    assert!(result.is_success());
    let waited = result.metadata.scheduling.as_ref().unwrap().queue_wait;
    assert!(waited <= MS(100), "it waited {waited:?}, and a slot is busy for 100 ms");
    assert!(before.elapsed() <= MS(201), "{:?}", before.elapsed());
    greedy.iter().for_each(|call| call.abort());
    house.idle().await;
}

#[tokio::test(start_paused = true)]
async fn priority_one_is_not_starved() {
    let diary = Diary::default();
    let lanes = Lanes { per_agent: Some(1), ..Lanes::default() };
    let house = with_around([diary.tool("works")], |builder| builder.lanes(lanes));
    let request = |n: u64, priority: u8| {
        let options = CallOptions { priority: Some(priority), ..CallOptions::default() };
        with(call_with("works", json!({"n": n, "ms": 500})), options)
    };
    let first = tokio::spawn(house.engine.execute(request(0, 10)));
    tokio::task::yield_now().await;
    let lowest = tokio::spawn(house.engine.execute(request(1, 1)));
    // More of the highest priority than there is room for, for a minute.
    let engine = house.engine.clone();
    let flood = tokio::spawn(async move {
        let calls = stream::iter(2..120).map(|n| engine.execute(request(n, 10)));
        calls.buffer_unordered(3).collect::<Vec<_>>().await
    });
    let waited = lowest.await.unwrap().metadata.scheduling.clone().unwrap().queue_wait;
    assert!((MS(8_000)..MS(12_000)).contains(&waited), "nine steps of a second, and it waited {waited:?}");
    flood.abort();
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_running_call_makes_needs_no_second_slot() {
    let outer = tool("outer", |_: Args, cx: ToolCtx| async move {
        let result = cx.engine().call(cx.execution_id(), call("inner")).await?;
        Ok(result.text().to_owned())
    });
    let inner = tool("inner", |_: Args, _: ToolCtx| async { Ok("from inside") });
    let lanes = Lanes { per_agent: Some(1), ..Lanes::default() };
    let house = with_around([outer, inner], |builder| builder.lanes(lanes));
    let result = within("the end", house.engine.execute(call("outer"))).await;
    assert_eq!(result.text(), "from inside");
}

/// The engine checks the options of every call, from whichever face it comes.
#[tokio::test]
async fn options_that_nobody_could_have_meant_are_refused() {
    let house = house([Diary::default().tool("reads")]);
    let priority = |priority| CallOptions { priority: Some(priority), ..CallOptions::default() };
    let retries = |max_retries| CallOptions {
        retry: Some(Retry { max_retries, ..Retry::default() }),
        ..CallOptions::default()
    };
    let limits = Limits { memory_bytes: Some(0), ..Limits::default() };
    let without_memory = CallOptions { limits: Some(Box::new(limits)), ..CallOptions::default() };
    for (options, problem) in [
        (priority(1), None),
        (priority(10), None),
        (retries(20), None),
        (priority(0), Some("`priority` must be 1 (last) to 10 (first)")),
        (priority(11), Some("`priority` must be 1 (last) to 10 (first)")),
        (retries(21), Some("`retry.maxRetries` must be 20 at most")),
        (without_memory, Some("Nothing runs without memory, processor, process or open file")),
    ] {
        let alone = house.engine.execute(with(call("reads"), options.clone())).await;
        let options = BatchOptions { call: options, ..BatchOptions::default() };
        let together = BatchRequest::from(vec![call("reads"), call("reads")]).options(options);
        let (results, _) = house.engine.execute_batch(together).await;
        assert_eq!(results.len(), 2);
        for result in results.iter().chain([&alone]) {
            let said = result.error.as_ref().map(|error| (code(result), error.message.as_str()));
            assert_eq!(said, problem.map(|problem| ("VALIDATION_FAILED", problem)));
        }
    }
    let wide = BatchOptions { max_parallelism: 1001, ..BatchOptions::default() };
    let (results, _) =
        house.engine.execute_batch(BatchRequest::from(vec![call("reads")]).options(wide)).await;
    assert_eq!(results[0].error.as_ref().unwrap().message, "`maxParallelism` must be 1 to 1000");
}

#[tokio::test(start_paused = true)]
async fn without_lanes_as_many_run_as_come() {
    let diary = Diary::default();
    let house = house([diary.tool("reads")]);
    join_all((0..100).map(|n| house.engine.execute(call_with("reads", json!({"n": n}))))).await;
    assert_eq!(diary.most_at_once(), 100);
    assert!(house.engine.stats().lanes.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_those_who_wait() {
    let diary = Diary::default();
    let lanes = Lanes { per_agent: Some(1), ..Lanes::default() };
    let house = with_around([diary.tool("works")], |builder| builder.lanes(lanes));
    let calls: Vec<_> = (0..3)
        .map(|n| tokio::spawn(house.engine.execute(call_with("works", json!({"n": n, "ms": 3_600_000})))))
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let shutdown = house.engine.shutdown_now().await;
    assert_eq!((shutdown.cancelled, shutdown.left), (3, 0));
    let mut ended = Vec::new();
    for call in calls {
        ended.push(code(&call.await.unwrap()).to_owned());
    }
    ended.sort();
    assert_eq!(ended, ["CANCELLED", "SHUTTING_DOWN", "SHUTTING_DOWN"], "two of them never ran");
}

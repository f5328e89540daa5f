//! Rates, quotas, breakers, deadlines from history and the repeat guard, through the engine.

use crate::{
    MS, caller,
    common::{Count, Scripted, call, call_with, code, house, message, no_retry, tool, with},
    kinds, with_around,
};
use haft_core::{CallOptions, Category, ErrorCode, EventPayload, Tier, ToolError, ToolOutput};
use haft_engine::{
    AdaptiveTimeout, Breaker, Lanes, Quota, Quotas, RateLimit, RateScope, RepeatGuard, Request, ResultCache,
};
use haft_sdk::{Args, ToolCtx};
use serde_json::json;
use std::time::Duration;

/// A tool that succeeds or fails as its argument `ok` says, and counts its runs.
fn obeys(name: &str, runs: &Count) -> Scripted {
    let runs = runs.clone();
    tool(name, move |args: Args, _: ToolCtx| {
        runs.up();
        async move {
            match args.value.get("ok").and_then(|ok| ok.as_bool()) {
                Some(false) => Err(ToolError::failed("it is down")),
                _ => Ok("up"),
            }
        }
    })
}

fn once() -> CallOptions {
    CallOptions { retry: Some(no_retry()), ..CallOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn over_the_rate_is_rate_limited_with_when_to_come_again() {
    let runs = Count::default();
    let limit = RateLimit::new(RateScope::Agent, 2, Duration::from_secs(60)).unwrap();
    let house = with_around([obeys("x", &runs)], |builder| builder.rate_limits([limit]));
    for expected in ["OK", "OK", "RATE_LIMITED"] {
        assert_eq!(code(&house.engine.execute(with(call("x"), once())).await), expected);
    }
    let refused = house.engine.execute(with(call("x"), once())).await;
    let error = refused.error.as_ref().unwrap();
    assert_eq!((error.number.as_deref(), refused.metadata.attempts), (Some("E3302"), 0));
    let after = error.data.as_ref().unwrap()["retryAfterMs"].as_u64().unwrap();
    assert!((29_000..=30_001).contains(&after), "{after}");
    assert_eq!((runs.get(), house.engine.stats().rate_limited), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_for_the_rate_is_waited_by_a_retry() {
    let runs = Count::default();
    let limit = RateLimit::new(RateScope::Tool, 1, Duration::from_secs(3)).unwrap();
    let house = with_around([obeys("x", &runs)], |builder| builder.rate_limits([limit]));
    assert!(house.engine.execute(call("x")).await.is_success());
    let result = house.engine.execute(call("x")).await;
    assert_eq!((code(&result), result.metadata.attempts, runs.get()), ("OK", 1, 2));
    assert_eq!(result.metadata.scheduling.as_ref().unwrap().failed_tries[0].code, ErrorCode::RateLimited);
}

#[tokio::test]
async fn a_quota_that_is_used_up_refuses_until_tomorrow() {
    let runs = Count::default();
    let everybody = Quota { calls: Some(3), bytes: Some(1 << 20), ..Quota::default() };
    let floods = tool("floods", |_: Args, _: ToolCtx| async { Ok(ToolOutput::text("x".repeat(2 << 20))) });
    let house = with_around([obeys("x", &runs), floods], |builder| {
        builder.quotas(Quotas { everybody, ..Quotas::default() })
    });
    let by = |tenant: &str, tool: &str| {
        house.engine.execute(Request::new(call(tool)).context(caller(tenant, "a", Tier::Teams)))
    };
    for expected in ["OK", "OK", "OK", "QUOTA_EXCEEDED"] {
        assert_eq!(code(&by("many", "x").await), expected);
    }
    assert_eq!(code(&by("other", "x").await), "OK");
    assert_eq!(code(&by("large", "floods").await), "OK");
    let refused = by("large", "x").await;
    assert!(message(&refused).contains("1048576 bytes"), "{}", message(&refused));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_half_of_the_time_is_left_alone_for_a_minute_and_then_tried() {
    let runs = Count::default();
    let house = with_around([obeys("x", &runs)], |builder| builder.breaker(Breaker::default()));
    let ask = |ok: bool, tenant: &str| {
        let request = Request::new(call_with("x", json!({"ok": ok}))).options(once());
        house.engine.execute(request.context(caller(tenant, "a", Tier::Teams)))
    };
    for number in 0..9 {
        assert_eq!(
            code(&ask(number % 2 == 0, "t").await),
            if number % 2 == 0 { "OK" } else { "EXECUTION_FAILED" }
        );
    }
    let last = ask(false, "t").await;
    let events = house.events(last.metadata.execution_id).await;
    assert_eq!(kinds(&events), ["Started", "InProgress", "CircuitChanged", "Failed"]);
    assert_eq!(events[2].payload, EventPayload::CircuitChanged { state: "open", failures: 5, calls: 10 });
    let refused = ask(true, "t").await;
    assert_eq!((code(&refused), runs.get(), refused.metadata.attempts), ("CIRCUIT_OPEN", 10, 0));
    assert!(message(&refused).contains("paused for another 60 s"), "{}", message(&refused));
    assert_eq!(code(&ask(true, "u").await), "OK", "another tenant has a breaker of its own");
    tokio::time::advance(Duration::from_secs(60)).await;
    for _ in 0..10 {
        assert_eq!(code(&ask(true, "t").await), "OK");
    }
    let stats = house.engine.stats();
    assert_eq!(stats.circuit_refused, 1);
    let states: Vec<_> = stats.breakers.iter().map(|breaker| (&*breaker.tenant, breaker.state)).collect();
    assert_eq!(states, [("t", "closed"), ("u", "closed")]);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_is_not_waited_for() {
    let runs = Count::default();
    let house = with_around([obeys("x", &runs)], |builder| builder.breaker(Breaker::default()));
    for _ in 0..10 {
        house.engine.execute(call_with("x", json!({"ok": false}))).await;
    }
    let before = tokio::time::Instant::now();
    assert_eq!(code(&house.engine.execute(call("x")).await), "CIRCUIT_OPEN");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_there_is_no_fault_of_the_tool() {
    let runs = Count::default();
    let reads = obeys("reads", &runs).define(|definition| definition.category = Category::FileSystem);
    let house = with_around([reads], |builder| builder.breaker(Breaker::default()));
    for _ in 0..30 {
        assert_eq!(
            code(&house.engine.execute(call_with("reads", json!({"ok": false}))).await),
            "EXECUTION_FAILED"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_comes_from_history_where_nobody_names_one() {
    let varies = tool("varies", |args: Args, _: ToolCtx| async move {
        let ms = args.value.get("ms").and_then(|ms| ms.as_u64()).unwrap_or(0);
        tokio::time::sleep(MS(ms)).await;
        Ok(())
    });
    let house = with_around([varies], |builder| builder.adaptive_timeout(AdaptiveTimeout::default()));
    for _ in 0..50 {
        assert!(house.engine.execute(call("varies")).await.is_success());
    }
    let slow = || call_with("varies", json!({"ms": 5_000}));
    let result = house.engine.execute(with(slow(), once())).await;
    assert_eq!(code(&result), "TIMEOUT");
    let timeout = result.metadata.scheduling.as_ref().unwrap().adaptive_timeout;
    assert_eq!(timeout, Some(Duration::from_secs(1)));
    let named = CallOptions { timeout: Some(Duration::from_secs(9)), ..once() };
    assert!(house.engine.execute(with(slow(), named)).await.is_success(), "a deadline that is named holds");
}

#[tokio::test(start_paused = true)]
async fn the_same_failing_call_again_and_again_is_warned_about_and_then_stopped() {
    let runs = Count::default();
    let edits = tool("edits", |_: Args, _: ToolCtx| async { Ok("edited") }).effects();
    let house =
        with_around([obeys("x", &runs), edits], |builder| builder.repeat_guard(RepeatGuard::default()));
    let failing = || house.engine.execute(call_with("x", json!({"ok": false})));
    for number in 1..=5 {
        let result = failing().await;
        assert_eq!(code(&result), "EXECUTION_FAILED");
        let is_warned = message(&result).contains("time in a row that this very call fails");
        assert_eq!(is_warned, number >= 3, "{}", message(&result));
    }
    let stopped = failing().await;
    assert_eq!((code(&stopped), runs.get(), stopped.metadata.attempts), ("REPEATED_FAILURE", 5, 0));
    assert!(message(&stopped).contains("Change the arguments"), "{}", message(&stopped));
    assert_eq!(stopped.metadata.scheduling.as_ref().unwrap().repeated_failures, Some(5));
    // Other arguments, and other agents, are not stopped.
    assert!(house.engine.execute(call_with("x", json!({"ok": true}))).await.is_success());
    let other = Request::new(call_with("x", json!({"ok": false}))).context(caller("local", "b", Tier::Teams));
    assert_eq!(code(&house.engine.execute(other).await), "EXECUTION_FAILED");
    // Something has changed, so it may well succeed now.
    assert!(house.engine.execute(call("edits")).await.is_success());
    assert_eq!(code(&failing().await), "EXECUTION_FAILED");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_gets_past_planning_is_warned_about_too() {
    let house = with_around([], |builder| builder.repeat_guard(RepeatGuard::default()));
    let mut last = String::new();
    for _ in 0..3 {
        last = message(&house.engine.execute(call("no_such_tool")).await).to_owned();
    }
    assert!(
        last.starts_with("Unknown tool: no_such_tool") && last.contains("This is the 3rd time"),
        "{last}"
    );
}

#[tokio::test(start_paused = true)]
async fn they_nest_from_the_cache_to_the_lane() {
    // A stored result needs no rate, no breaker and no slot.
    let runs = Count::default();
    let stored = obeys("stored", &runs).define(|definition| definition.cacheable = true);
    let limit = RateLimit::new(RateScope::Tool, 1, Duration::from_secs(3600)).unwrap();
    let house = with_around([stored], |builder| {
        builder
            .cache(ResultCache::default())
            .rate_limits([limit])
            .breaker(Breaker::default())
            .lanes(Lanes::default())
    });
    for _ in 0..10 {
        assert_eq!(code(&house.engine.execute(with(call("stored"), once())).await), "OK");
    }
    assert_eq!(runs.get(), 1);
    assert_eq!(
        code(&house.engine.execute(with(call_with("stored", json!({"n": 1})), once())).await),
        "RATE_LIMITED"
    );
}

#[tokio::test(start_paused = true)]
async fn statistics_tell_what_runs_and_how_tools_do() {
    let runs = Count::default();
    let house = with_around([obeys("x", &runs)], |builder| {
        builder.cache(ResultCache::default()).breaker(Breaker::default()).lanes(Lanes::default())
    });
    for ok in [true, true, true, false] {
        house.engine.execute(call_with("x", json!({"ok": ok}))).await;
    }
    let stats = serde_json::to_value(house.engine.stats()).unwrap();
    // Those of seeds/001 `getStats`, and more.
    assert_eq!((&stats["defaultTimeout"], &stats["maxRetries"]), (&json!(30_000.0), &json!(2)));
    assert_eq!(stats["maxBatchRetries"], 0);
    assert_eq!((&stats["running"], &stats["lanes"]["queued"]), (&json!(0), &json!(0)));
    assert_eq!(stats["tools"]["x"]["total"], 4);
    assert_eq!(stats["tools"]["x"]["byStatus"], json!({"Success": 3, "Failed": 1}));
    for percentile in ["p50", "p95", "p99"] {
        assert!(stats["tools"]["x"]["durationMs"][percentile].is_number(), "{stats}");
    }
    let breaker = json!([{"tool": "x", "tenant": "local", "state": "closed", "failures": 1, "calls": 4}]);
    assert_eq!(stats["breakers"], breaker);
    assert_eq!(stats["cache"]["entries"], 0);
}

#[tokio::test]
async fn an_engine_without_any_of_it_says_nothing_about_it() {
    let runs = Count::default();
    let house = house([obeys("x", &runs)]);
    let result = house.engine.execute(call("x")).await;
    assert_eq!(result.metadata.scheduling, None);
    let stats = house.engine.stats();
    assert!(stats.lanes.is_none() && stats.cache.is_none() && stats.breakers.is_empty());
}

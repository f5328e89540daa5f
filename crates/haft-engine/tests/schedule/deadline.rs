//! The time of a call: one deadline for all attempts and the waits between them (seeds/000 §4.3 and §9.5, seeds/001 §2).

use crate::{
    MS, batch,
    common::{Count, Scripted, call, call_with, code, house, message, tool, with},
    kinds, with_around,
};
use haft_core::{BatchOptions, CallOptions, ErrorCode, EventPayload, Retry, Strategy, ToolError};
use haft_engine::{BatchRequest, Lanes};
use haft_sdk::{Args, ToolCtx};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// A tool that never ends; it counts its attempts.
fn hangs(name: &str, runs: &Count) -> Scripted {
    let runs = runs.clone();
    tool(name, move |_: Args, _: ToolCtx| {
        runs.up();
        async {
            std::future::pending::<()>().await;
            Ok(())
        }
    })
}

/// A tool that fails at once, each time with that error.
fn fails(code: ErrorCode, runs: &Count) -> Scripted {
    let runs = runs.clone();
    tool("fails", move |_: Args, _: ToolCtx| {
        runs.up();
        async move { Err::<(), _>(ToolError::new(code, "the service is down")) }
    })
}

fn timeout(millis: u64) -> CallOptions {
    CallOptions { timeout: Some(MS(millis)), ..CallOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_one_second_took_five_in_three_attempts() {
    let runs = Count::default();
    let house = house([hangs("hangs", &runs)]);
    let before = Instant::now();
    let result = house.engine.execute(with(call("hangs"), timeout(1000))).await;
    assert_eq!((before.elapsed().as_millis(), runs.get(), result.metadata.attempts), (1000, 1, 1));
    assert_eq!(code(&result), "TIMEOUT");
    let said = "Tool 'hangs' timed out after 1s. It was stopped; what it did until then stays";
    assert_eq!(message(&result), said);
}

#[tokio::test(start_paused = true)]
async fn attempts_that_time_out_are_retried_inside_the_deadline() {
    let runs = Count::default();
    let house = house([hangs("hangs", &runs)]);
    let retry = Some(Retry { max_retries: 20, base: Duration::ZERO, on: Vec::new() });
    let options = CallOptions { attempt_timeout: Some(MS(300)), retry, ..timeout(1000) };
    let before = Instant::now();
    let result = house.engine.execute(with(call("hangs"), options)).await;
    // 300, 300, 300, and the last one has what is left.
    assert_eq!((before.elapsed().as_millis(), runs.get(), result.metadata.attempts), (1000, 4, 4));
    assert!(message(&result).starts_with("Tool 'hangs' timed out after 1s in 4 attempts"), "{result:?}");
    let tries = &result.metadata.scheduling.as_ref().unwrap().failed_tries;
    assert!(tries.iter().all(|failed| failed.code == ErrorCode::Timeout));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_told_what_is_left_of_the_time() {
    let told = tool("told", |_: Args, cx: ToolCtx| async move {
        match cx.attempt() {
            1 => std::future::pending::<Result<String, ToolError>>().await,
            _ => Ok(format!("{:?}", cx.timeout())),
        }
    });
    let house = house([told]);
    let retry = Some(Retry { base: Duration::ZERO, ..Retry::default() });
    let options = CallOptions { attempt_timeout: Some(MS(400)), retry, ..timeout(600) };
    let result = house.engine.execute(with(call("told"), options)).await;
    assert_eq!(result.text(), "200ms");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_outlast_the_deadline_is_not_begun() {
    let runs = Count::default();
    let later = tool("later", move |_: Args, _: ToolCtx| {
        runs.up();
        async {
            let error = ToolError::from(ErrorCode::RateLimited);
            Err::<(), _>(error.with_data(json!({"retryAfterMs": 5000})))
        }
    });
    let house = house([later]);
    let before = Instant::now();
    let result = house.engine.execute(with(call("later"), timeout(2000))).await;
    assert_eq!((code(&result), result.metadata.attempts), ("RATE_LIMITED", 1));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_waits_for_a_slot_within_the_deadline() {
    let runs = Count::default();
    let lanes = Lanes { per_agent: Some(1), ..Lanes::default() };
    let retry_at_once = Some(Retry { base: Duration::ZERO, ..Retry::default() });
    let long = tool("long", |_: Args, _: ToolCtx| async {
        tokio::time::sleep(Duration::from_secs(25)).await;
        Ok(())
    });
    let house = with_around([hangs("hangs", &runs), long], |builder| builder.lanes(lanes));
    let options = CallOptions { attempt_timeout: Some(MS(500)), retry: retry_at_once, ..timeout(2000) };
    let first = tokio::spawn(house.engine.execute(with(call("hangs"), options)));
    crate::common::until("the first attempt runs", || runs.get() == 1).await;
    // The slot goes to this one while the other is between two attempts.
    let other = tokio::spawn(house.engine.execute(call("long")));
    let before = Instant::now();
    let result = first.await.unwrap();
    assert_eq!((code(&result), runs.get()), ("TIMEOUT", 1));
    assert!(before.elapsed() <= MS(2000), "{:?}", before.elapsed());
    assert!(other.await.unwrap().is_success());
}

#[tokio::test(start_paused = true)]
async fn without_a_callers_timeout_it_is_default_timeout_then_max_execution_time_then_30_s() {
    let runs = Count::default();
    let house = house([
        hangs("neither", &runs),
        hangs("most", &runs)
            .define(|definition| definition.constraints.max_execution_time = Duration::from_secs(90)),
        hangs("both", &runs).define(|definition| {
            definition.constraints.max_execution_time = Duration::from_secs(90);
            definition.constraints.default_timeout = Some(Duration::from_secs(5));
        }),
    ]);
    for (name, seconds) in [("neither", 30), ("most", 90), ("both", 5)] {
        let before = Instant::now();
        let result = house.engine.execute(call(name)).await;
        assert_eq!((code(&result), before.elapsed().as_secs()), ("TIMEOUT", seconds), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_attempt_is_on_each_attempt_and_retry_exhausted_has_the_errors_text() {
    let runs = Count::default();
    let house = house([fails(ErrorCode::UpstreamUnavailable, &runs)]);
    let options = CallOptions { retry: Some(Retry::default()), ..CallOptions::default() };
    let result = house.engine.execute(with(call("fails"), options)).await;
    let events = house.events(result.metadata.execution_id).await;
    assert_eq!(
        kinds(&events),
        ["Started", "InProgress", "RetryAttempt", "RetryAttempt", "RetryAttempt", "RetryExhausted", "Failed"]
    );
    let sent: Vec<_> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()["data"].clone()).collect();
    assert_eq!((&sent[2]["attempt"], &sent[2]["maxRetries"]), (&json!(1), &json!(3)));
    assert_eq!((&sent[4]["attempt"], &sent[4]["error"]), (&json!(3), &json!("the service is down")));
    let exhausted = json!({"attempts": 3, "code": "UPSTREAM_UNAVAILABLE", "error": "the service is down"});
    assert_eq!(sent[5], exhausted);
}

#[tokio::test(start_paused = true)]
async fn a_call_and_a_tool_can_widen_and_stop_retries() {
    let widened = Retry { on: vec![ErrorCode::ExecutionFailed], ..Retry::default() };
    let none = Retry { max_retries: 0, ..Retry::default() };
    let cases = [
        (None, None, 1),
        (Some(widened.clone()), None, 3),
        (None, Some(widened.clone()), 3),
        (Some(none.clone()), Some(widened.clone()), 1),
        (Some(widened), Some(none), 1),
    ];
    for (asked, of_tool, expected) in cases {
        let runs = Count::default();
        let tool = fails(ErrorCode::ExecutionFailed, &runs);
        let retry = of_tool.clone().map(Box::new);
        let house = house([tool.define(move |definition| definition.retry = retry)]);
        let options = CallOptions { retry: asked.clone(), ..CallOptions::default() };
        house.engine.execute(with(call("fails"), options)).await;
        assert_eq!(runs.get(), expected, "{asked:?} {of_tool:?}");
    }
}

#[tokio::test]
async fn a_refusal_cannot_be_retried() {
    let house = house([fails(ErrorCode::ExecutionFailed, &Count::default())]);
    let retry = Some(Retry { on: vec![ErrorCode::PermissionDenied], ..Retry::default() });
    let result =
        house.engine.execute(with(call("fails"), CallOptions { retry, ..CallOptions::default() })).await;
    assert!(message(&result).contains("`retry.on` has PERMISSION_DENIED"), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn parallelism_is_what_was_asked_for_or_the_batch_says_why_not() {
    let overlaps = || {
        tool("x", |_: Args, _: ToolCtx| async {
            tokio::time::sleep(MS(10)).await;
            Ok(())
        })
    };
    let calls = || (0..12).map(|n| call_with("x", json!({"n": n}))).collect::<Vec<_>>();
    let house = with_around([overlaps()], |builder| builder.lanes(Lanes::default()));
    let (_, summary) = house.engine.execute_batch(batch(calls(), Strategy::Smart, 8)).await;
    assert_eq!(summary.note, None);
    let narrow = Lanes { per_agent: Some(4), ..Lanes::default() };
    let house = with_around([overlaps()], |builder| builder.lanes(narrow));
    let (_, summary) = house.engine.execute_batch(batch(calls(), Strategy::Smart, 10)).await;
    let said = "At most 4 run at once, not 10: scheduling.lanes.per_agent is 4";
    assert_eq!(summary.note.as_deref(), Some(said));
    assert_eq!(BatchOptions::default().max_parallelism, 5);
}

#[tokio::test(start_paused = true)]
async fn each_result_of_a_batch_says_whether_it_ran_in_parallel() {
    let reads = tool("reads", |_: Args, _: ToolCtx| async {
        tokio::time::sleep(MS(10)).await;
        Ok(())
    });
    let changes = tool("changes", |_: Args, _: ToolCtx| async { Ok(()) }).effects();
    let house = house([reads, changes]);
    let calls = vec![call("reads"), call_with("reads", json!({"n": 1})), call("changes")];
    let (results, summary) = house.engine.execute_batch(batch(calls, Strategy::Smart, 5)).await;
    let parallel: Vec<_> = results.iter().map(|result| result.metadata.parallel).collect();
    assert_eq!(parallel, [Some(true), Some(true), Some(false)]);
    assert_eq!(summary.overlapped, 2);
    assert_eq!(house.engine.execute(call("reads")).await.metadata.parallel, None);
}

#[tokio::test(start_paused = true)]
async fn stop_on_failure_with_smart_starts_nothing_after_a_refused_call() {
    for strategy in [Strategy::Sequential, Strategy::Smart, Strategy::Parallel] {
        let runs = Count::default();
        let counted = runs.clone();
        let reads = tool("reads", move |_: Args, _: ToolCtx| {
            counted.up();
            async { Ok(()) }
        });
        let house = house([reads]);
        let calls =
            vec![call("reads"), call("no_such_tool"), call_with("reads", json!({"n": 1})), call("no_other")];
        let options = BatchOptions { strategy, continue_on_failure: false, ..BatchOptions::default() };
        let (results, _) = house.engine.execute_batch(BatchRequest::from(calls).options(options)).await;
        let codes: Vec<_> = results.iter().map(code).collect();
        assert_eq!(codes, ["OK", "TOOL_NOT_FOUND", "NOT_STARTED", "NOT_STARTED"], "{strategy:?}");
        assert_eq!(runs.get(), 1, "{strategy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stop_on_failure_with_smart_starts_nothing_after_a_failure() {
    let runs = Count::default();
    let house = house([fails(ErrorCode::ExecutionFailed, &runs)]);
    let calls = (0..5).map(|n| call_with("fails", json!({"n": n}))).collect::<Vec<_>>();
    let request = BatchRequest::from(calls).options(BatchOptions {
        strategy: Strategy::Smart,
        max_parallelism: 2,
        continue_on_failure: false,
        ..BatchOptions::default()
    });
    let (results, _) = house.engine.execute_batch(request).await;
    let started = results.iter().filter(|result| result.metadata.attempts > 0).count();
    assert!(started <= 2 && runs.get() == started, "{started} started");
    assert_eq!(code(&results[4]), "NOT_STARTED");
    let EventPayload::Failed { .. } =
        house.events(results[0].metadata.execution_id).await.pop().unwrap().payload
    else {
        panic!("the first one failed")
    };
}

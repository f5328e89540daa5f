//! Retries: when, how often, and what they hold meanwhile.

use crate::{
    MS,
    common::{Count, Scripted, call, code, house, known_id, no_retry, tool, until, with, within},
    kinds, with_around,
};
use haft_core::{BatchOptions, CallOptions, ErrorCode, EventPayload, Footprint, Resource, Retry, ToolError};
use haft_engine::{BatchRequest, Lanes, Settings};
use haft_sdk::{Args, CancelReason, ToolCtx};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// A tool that fails so often before it succeeds, each time with that error.
fn flaky(name: &str, runs: &Count, failures: usize, code: ErrorCode) -> Scripted {
    let runs = runs.clone();
    tool(name, move |_: Args, cx: ToolCtx| {
        let number = runs.up();
        async move {
            assert_eq!(cx.attempt() as usize, number + 1, "the try that it is told");
            if number < failures {
                Err(ToolError::new(code, "not now"))
            } else {
                Ok(format!("try {}", number + 1))
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_is_tried_twice_more_with_growing_waits() {
    let runs = Count::default();
    let prepared = Count::default();
    let counted = prepared.clone();
    let flaky = flaky("flaky", &runs, 2, ErrorCode::RateLimited).on_prepare(move |_| {
        counted.up();
        Ok(())
    });
    let house = house([flaky]);
    let before = tokio::time::Instant::now();
    let result = house.engine.execute(call("flaky")).await;
    assert_eq!((result.text(), result.metadata.attempts, prepared.get()), ("try 3", 3, 3));
    assert!(before.elapsed() <= Duration::from_secs(3), "1 s and 2 s at most: {:?}", before.elapsed());
    let tries = &result.metadata.scheduling.as_ref().unwrap().failed_tries;
    assert_eq!(tries.iter().map(|failed| failed.code).collect::<Vec<_>>(), [ErrorCode::RateLimited; 2]);
    assert!(tries[0].delay <= MS(1000) && tries[1].delay <= MS(2000));
    let events = house.events(result.metadata.execution_id).await;
    assert_eq!(
        kinds(&events),
        ["Started", "InProgress", "RetryAttempt", "RetryAttempt", "RetrySucceeded", "Completed"]
    );
    let EventPayload::RetryAttempt { attempt: 2, most: 3, failed: Some((ErrorCode::RateLimited, _)), .. } =
        &events[2].payload
    else {
        panic!("{events:?}")
    };
    assert_eq!(house.engine.stats().retries, 2);
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_the_answer() {
    let runs = Count::default();
    let house = house([flaky("flaky", &runs, 9, ErrorCode::RateLimited)]);
    let result = house.engine.execute(call("flaky")).await;
    assert_eq!((code(&result), runs.get(), result.metadata.attempts), ("RATE_LIMITED", 3, 3));
    let events = house.events(result.metadata.execution_id).await;
    assert_eq!(
        kinds(&events),
        ["Started", "InProgress", "RetryAttempt", "RetryAttempt", "RetryExhausted", "Failed"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_must_not_run_twice_does_not() {
    let of = |name: &str, runs: &Count| flaky(name, runs, 1, ErrorCode::RateLimited);
    let runs: [Count; 5] = std::array::from_fn(|_| Count::default());
    let house = house([
        of("effects", &runs[0]).effects(),
        of("idempotent", &runs[1]).effects().define(|definition| definition.idempotent = true),
        flaky("deterministic", &runs[2], 1, ErrorCode::ExecutionFailed),
        // It has no side effects of its own, but passes calls on that may.
        of("passes_on", &runs[3]).on_footprint(|_| Footprint::writes([Resource::Anything])),
        of("reads", &runs[4]),
    ]);
    let mut ran = Vec::new();
    for (name, count) in ["effects", "idempotent", "deterministic", "passes_on", "reads"].iter().zip(&runs) {
        house.engine.execute(call(name)).await;
        ran.push(count.get());
    }
    assert_eq!(ran, [1, 2, 1, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_batch_is_not_tried_again_unless_it_says_so() {
    let runs = Count::default();
    let house = house([flaky("flaky", &runs, 1, ErrorCode::RateLimited)]);
    let (results, _) = house.engine.execute_batch(vec![call("flaky")]).await;
    assert_eq!((code(&results[0]), runs.get()), ("RATE_LIMITED", 1));
    let runs = Count::default();
    let house = crate::common::house([flaky("flaky", &runs, 1, ErrorCode::RateLimited)]);
    let retry = CallOptions { retry: Some(Retry::default()), ..CallOptions::default() };
    let options = BatchOptions { call: retry, ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call("flaky")]).options(options);
    let (results, _) = house.engine.execute_batch(request).await;
    assert_eq!((code(&results[0]), runs.get()), ("OK", 2));
}

#[tokio::test(start_paused = true)]
async fn only_errors_that_are_wanted_are_tried_again() {
    let runs = Count::default();
    let house = house([flaky("flaky", &runs, 1, ErrorCode::RateLimited)]);
    let only = Retry { on: vec![ErrorCode::Timeout], ..Retry::default() };
    let options = CallOptions { retry: Some(only), ..CallOptions::default() };
    let result = house.engine.execute(with(call("flaky"), options)).await;
    assert_eq!((code(&result), runs.get()), ("RATE_LIMITED", 1));
}

#[tokio::test(start_paused = true)]
async fn a_try_that_ran_out_of_time_is_told_and_the_next_one_is_not() {
    let contexts = Arc::new(Mutex::new(Vec::<ToolCtx>::new()));
    let kept = Arc::clone(&contexts);
    let slow_at_first = tool("slow_at_first", move |_: Args, cx: ToolCtx| {
        let number = {
            let mut kept = kept.lock().unwrap();
            kept.push(cx.clone());
            kept.len()
        };
        async move {
            cx.print(&format!("output {number}"));
            if number == 1 {
                std::future::pending::<()>().await;
            }
            Ok(haft_core::ToolOutput::default())
        }
    });
    let house = house([slow_at_first]);
    let options = CallOptions { attempt_timeout: Some(Duration::from_secs(1)), ..CallOptions::default() };
    let (id, _) = known_id();
    let options = CallOptions { execution_id: Some(id), ..options };
    let running = tokio::spawn(house.engine.execute(with(call("slow_at_first"), options)));
    until("the second try", || contexts.lock().unwrap().len() == 2).await;
    {
        let contexts = contexts.lock().unwrap();
        assert_eq!(contexts[0].cancel_reason(), Some(CancelReason::Deadline));
        assert_eq!(contexts[1].cancel_reason(), None);
        contexts[0].print("too late");
    }
    let result = within("the result", running).await.unwrap();
    assert_eq!((code(&result), result.text(), result.metadata.attempts), ("OK", "output 2", 2));
    house.ended_once(id).await;
}

#[tokio::test]
async fn whoever_cancels_between_two_tries_or_in_a_later_one_cancels_the_call() {
    // The first fails at once; the second hangs.
    let second = tool("second_hangs", |_: Args, cx: ToolCtx| async move {
        if cx.attempt() > 1 {
            std::future::pending::<()>().await;
        }
        Err::<(), _>(ToolError::from(ErrorCode::RateLimited))
    });
    for (base, attempts) in [(Duration::from_secs(3600), 1), (Duration::ZERO, 2)] {
        let house = house([second.clone()]);
        let (id, options) = known_id();
        let retry = Some(Retry { base, ..Retry::default() });
        let options = CallOptions { timeout: Some(Duration::from_secs(600)), ..options };
        let running =
            tokio::spawn(house.engine.execute(with(call("second_hangs"), CallOptions { retry, ..options })));
        tokio::time::sleep(MS(50)).await;
        assert!(house.engine.cancel(id, CancelReason::User, Some("enough")));
        let result = within("the end", running).await.unwrap();
        assert_eq!((code(&result), result.metadata.attempts), ("CANCELLED", attempts));
        house.ended_once(id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn back_off_holds_no_slot() {
    let runs = Count::default();
    let other = tool("other", |_: Args, _: ToolCtx| async { Ok("done") });
    let lanes = Lanes { per_agent: Some(1), ..Lanes::default() };
    let house = with_around([flaky("flaky", &runs, 1, ErrorCode::RateLimited), other], |builder| {
        builder.lanes(lanes)
    });
    let retry = Some(Retry { base: Duration::from_secs(3600), ..Retry::default() });
    let (id, options) = known_id();
    let options = CallOptions { timeout: Some(Duration::from_secs(600)), ..options };
    let waiting = tokio::spawn(house.engine.execute(with(call("flaky"), CallOptions { retry, ..options })));
    until("the first try has failed", || runs.get() == 1).await;
    tokio::task::yield_now().await;
    assert_eq!(house.engine.stats().lanes.unwrap().running, 0);
    let result = house.engine.execute(call("other")).await;
    assert!(result.is_success() && result.metadata.scheduling.is_none(), "it had to wait: {result:?}");
    house.engine.cancel(id, CancelReason::User, None);
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_second_try_has_the_same_effect_id_and_an_intent_of_its_own() {
    let runs = Count::default();
    let idempotent = flaky("idempotent", &runs, 1, ErrorCode::RateLimited)
        .effects()
        .define(|definition| definition.idempotent = true);
    let house = house([idempotent]);
    let result = house.engine.execute(call("idempotent")).await;
    assert_eq!(result.metadata.attempts, 2);
    assert_eq!(house.store.asked(crate::common::Op::Intent), 2);
    assert_eq!(house.store.memory.open_intents(), 0);
    assert_eq!(house.audit().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn retries_can_be_switched_off_for_all_calls() {
    let runs = Count::default();
    let setup = crate::common::Setup {
        settings: Settings { retry: no_retry(), ..Settings::default() },
        ..crate::common::Setup::default()
    };
    let house = setup.build([flaky("flaky", &runs, 1, ErrorCode::RateLimited)]);
    assert_eq!(code(&house.engine.execute(call("flaky")).await), "RATE_LIMITED");
    assert_eq!(runs.get(), 1);
}

/// What a failed attempt put out is not what the next one put out, nor is what it still says when its time is over.
#[tokio::test(start_paused = true)]
async fn each_attempt_begins_with_nothing_put_out() {
    let go = Arc::new(tokio::sync::Notify::new());
    let lingers = tool("lingers", move |_: Args, cx: ToolCtx| {
        let go = Arc::clone(&go);
        async move {
            if cx.attempt() == 1 {
                cx.print("first\n");
                tokio::spawn(async move {
                    go.notified().await;
                    cx.print("late\n");
                });
                return std::future::pending().await;
            }
            cx.print("second\n");
            go.notify_one();
            tokio::time::sleep(MS(10)).await;
            Ok(())
        }
    });
    let prints = tool("prints", |_: Args, cx: ToolCtx| async move {
        cx.print(&format!("attempt {}\n", cx.attempt()));
        match cx.attempt() {
            1 => Err(ToolError::new(ErrorCode::RateLimited, "not now")),
            _ => Ok(()),
        }
    });
    let house = house([lingers, prints]);
    assert_eq!(house.engine.execute(call("prints")).await.text(), "attempt 2\n");
    let options = CallOptions { attempt_timeout: Some(MS(500)), ..CallOptions::default() };
    assert_eq!(house.engine.execute(with(call("lingers"), options)).await.text(), "second\n");
}

//! Deadlines: the hard one, the idle one, and what the tool hears of them.

use crate::common::{
    Count, Scripted, call, code, house, known_id, message, no_retry, timeout, tool, with, within,
};
use haft_core::{CallContext, CallOptions, Limits, OutputStream, ParentGrant, Status};
use haft_engine::Request;
use haft_sdk::{CancelReason, ToolCtx};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// How a tool shows that it is alive.
type Sign = fn(&ToolCtx);

/// A tool that gives a sign of life every few milliseconds, so often.
fn lively(every: Duration, times: usize, sign: Sign) -> Scripted {
    tool("lively", move |_, cx: ToolCtx| async move {
        for _ in 0..times {
            tokio::time::sleep(every).await;
            sign(&cx);
        }
        Ok("done")
    })
}

fn idle(idle: Duration, hard: Duration) -> CallOptions {
    CallOptions { idle_timeout: Some(idle), ..timeout(hard) }
}

#[tokio::test]
async fn a_request_above_the_tools_maximum_is_refused_naming_both() {
    let runs = Count::default();
    let counted = runs.clone();
    let slow = tool("slow", move |_, _| {
        counted.up();
        async { Ok(()) }
    })
    .define(|definition| definition.constraints.max_execution_time = Duration::from_secs(60));
    let house = house([slow]);
    let refused = house.engine.execute(with(call("slow"), timeout(Duration::from_secs(61)))).await;
    assert_eq!((code(&refused), refused.status), ("VALIDATION_FAILED", Status::ValidationError));
    assert!(
        message(&refused).contains("PT1M1S") && message(&refused).contains("PT1M "),
        "{}",
        message(&refused)
    );
    assert_eq!(runs.get(), 0);
    assert!(house.engine.execute(with(call("slow"), timeout(Duration::from_secs(60)))).await.is_success());

    let limits = Limits { wall_time: Some(Duration::from_secs(5)), ..Limits::default() };
    let parent = ParentGrant { sandbox_id: "sb-1".into(), limits, ..ParentGrant::default() };
    let inside = CallContext { parent: Some(parent), ..(*CallContext::owner()).clone() };
    let request = Request::new(call("slow")).options(timeout(Duration::from_secs(6))).context(inside);
    let refused = house.engine.execute(request).await;
    assert!(
        message(&refused).contains("PT6S") && message(&refused).contains("PT5S"),
        "{}",
        message(&refused)
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_the_requests_else_the_tools_else_the_default() {
    let hangs = |name: &str| {
        tool(name, |_, _| async {
            std::future::pending::<()>().await;
            Ok(())
        })
    };
    let house = house([
        hangs("plain"),
        hangs("own")
            .define(|definition| definition.constraints.default_timeout = Some(Duration::from_secs(7))),
    ]);
    for (name, request, expected) in
        [("plain", None, 30), ("own", None, 7), ("own", Some(3), 3), ("plain", Some(90), 90)]
    {
        let before = tokio::time::Instant::now();
        let options = CallOptions {
            timeout: request.map(Duration::from_secs),
            retry: Some(no_retry()),
            ..CallOptions::default()
        };
        let result = within("the deadline", house.engine.execute(with(call(name), options))).await;
        assert_eq!((code(&result), before.elapsed().as_secs()), ("TIMEOUT", expected), "{name} {request:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_the_future_is_gone_and_threads_of_the_tool_can_learn_of_it() {
    let (alive, kept) = (Count::default(), Arc::new(Mutex::new(None::<ToolCtx>)));
    let (counted, keep) = (alive.clone(), Arc::clone(&kept));
    let house = house([tool("hangs", move |_, cx: ToolCtx| {
        let here = counted.alive();
        *keep.lock().unwrap() = Some(cx.clone());
        async move {
            let _here = here;
            cx.print("as far as it came");
            std::future::pending::<()>().await;
            Ok(())
        }
    })]);
    let result = house.engine.execute(with(call("hangs"), timeout(Duration::from_secs(1)))).await;
    assert_eq!((code(&result), alive.get()), ("TIMEOUT", 0));
    assert!(
        result.text().ends_with("\n\nas far as it came"),
        "what it had put out is kept: {}",
        result.text()
    );
    let cx = kept.lock().unwrap().take().unwrap();
    assert_eq!(cx.cancel_reason(), Some(CancelReason::Deadline));
    let before = house.events(result.metadata.execution_id).await.len();
    cx.print("too late");
    cx.warn("too late");
    assert_eq!(house.events(result.metadata.execution_id).await.len(), before, "heard after the end");
}

#[tokio::test]
async fn signs_of_life_extend_an_idle_timeout() {
    let signs: [(&str, Sign); 4] = [
        ("progress", |cx| cx.progress(50, "half")),
        ("status", |cx| cx.status("working")),
        ("output", |cx| cx.print(".")),
        ("stderr", |cx| cx.write(OutputStream::Stderr, b".")),
    ];
    let all = signs.map(async |(what, sign)| {
        // Four times as long as the idle timeout, and never silent for as long as it.
        let house = house([lively(MS(50), 16, sign)]);
        let result = house.engine.execute(with(call("lively"), idle(MS(200), MS(20_000)))).await;
        assert_eq!(code(&result), "OK", "{what} is not a sign of life: {}", message(&result));
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn a_tool_that_falls_silent_is_ended_by_the_idle_timeout() {
    let house = house([tool("silent", |_, cx: ToolCtx| async move {
        tokio::time::sleep(MS(60)).await;
        cx.progress(10, "and then nothing");
        std::future::pending::<()>().await;
        Ok(())
    })]);
    let before = Instant::now();
    let result =
        within("the end", house.engine.execute(with(call("silent"), idle(MS(150), MS(20_000))))).await;
    assert_eq!((code(&result), result.status), ("TIMEOUT", Status::Timeout));
    assert!(message(&result).contains("0.15s without output or progress"), "{}", message(&result));
    let took = before.elapsed();
    assert!(took >= MS(205), "ended after {took:?}, although it was alive after 60 ms");
}

#[tokio::test]
async fn signs_of_life_never_extend_the_hard_cap() {
    let house = house([lively(MS(20), usize::MAX, |cx| cx.progress(1, "on and on"))]);
    let (id, options) = known_id();
    let options = CallOptions { execution_id: options.execution_id, ..idle(MS(100), MS(300)) };
    let before = Instant::now();
    let result = within("the end", house.engine.execute(with(call("lively"), options))).await;
    assert_eq!(code(&result), "TIMEOUT");
    assert!(message(&result).contains("after 0.3s."), "it says which deadline passed: {}", message(&result));
    assert!((MS(290)..MS(5000)).contains(&before.elapsed()), "ended after {:?}", before.elapsed());
    house.ended_once(id).await;
}

#[tokio::test]
async fn a_tool_is_asked_again_only_after_it_woke_its_task() {
    let asked = Count::default();
    let counted = asked.clone();
    let waits = tool("waits", move |_, _| {
        let asked = counted.clone();
        async move {
            std::future::poll_fn(|task| {
                asked.up();
                if asked.get() > 1 {
                    return std::task::Poll::Ready(());
                }
                let waker = task.waker().clone();
                std::thread::spawn(move || {
                    std::thread::sleep(MS(20));
                    waker.wake();
                });
                std::task::Poll::Pending
            })
            .await;
            Ok("done")
        }
    });
    let result = within("the tool ends", house([waits]).engine.execute(call("waits"))).await;
    assert!(result.is_success(), "{result:?}");
    assert_eq!(asked.get(), 2);
}

/// Every program that makes a call moves this around.
#[test]
fn a_call_is_small_to_move() {
    let engine = house([tool("any", |_, _| async { Ok(()) })]).engine;
    let size = std::mem::size_of_val(&engine.execute(call("any")));
    assert!(size <= 1024, "{size} bytes");
}

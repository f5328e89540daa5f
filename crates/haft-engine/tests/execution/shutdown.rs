//! Shutdown: stop accepting, drain, cancel, wait, record, flush.

use crate::common::{
    Count, Door, House, Op, Scripted, Setup, call, code, codes, message, tool, until, within,
};
use haft_core::{Status, ToolsMode};
use haft_engine::{Settings, Shutdown};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn lasting(name: &str, time: Duration, runs: &Count) -> Scripted {
    let runs = runs.clone();
    tool(name, move |_, _| {
        runs.up();
        async move {
            tokio::time::sleep(time).await;
            Ok("done")
        }
    })
}

fn setup(settings: Settings, tools: Vec<Scripted>) -> House {
    Setup { settings, ..Setup::default() }.build(tools)
}

fn quick() -> Settings {
    Settings { drain: MS(2000), grace: MS(2000), ..Settings::default() }
}

#[tokio::test]
async fn draining_lets_a_short_call_end_by_itself() {
    let runs = Count::default();
    let house = setup(quick(), vec![lasting("short", MS(50), &runs)]);
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(call("short")).await });
    until("it runs", || runs.get() == 1).await;
    let shutdown = within("the shutdown", house.engine.shutdown()).await;
    assert_eq!(shutdown, Shutdown { drained: 1, cancelled: 0, left: 0 });
    assert_eq!(code(&running.await.unwrap()), "OK");
    assert_eq!(
        house.store.notes().last().map(String::as_str),
        Some("Flush"),
        "the record is made safe at the end"
    );
}

#[tokio::test]
async fn what_takes_longer_is_cancelled_with_the_reason() {
    let runs = Count::default();
    let settings = Settings { drain: MS(30), ..quick() };
    let house = setup(settings, vec![lasting("long", MS(60_000), &runs), lasting("next", MS(0), &runs)]);
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute_batch(vec![call("long"), call("next")]).await.0 });
    until("it runs", || runs.get() == 1).await;
    let shutdown = within("the shutdown", house.engine.shutdown()).await;
    assert_eq!(shutdown, Shutdown { drained: 0, cancelled: 2, left: 0 });
    let results = running.await.unwrap();
    assert_eq!(codes(&results), ["CANCELLED", "SHUTTING_DOWN"], "the second one never ran");
    assert_eq!(message(&results[0]), "Cancelled, because haft is shutting down");
    let error = results[1].error.as_ref().unwrap();
    assert!(error.retryable && error.code.http() == 503 && results[1].status == Status::Cancelled);
    for result in &results {
        house.ended_once(result.metadata.execution_id).await;
    }
    assert_eq!(runs.get(), 1, "a call was started during the shutdown");
    let notes = house.store.notes();
    assert_eq!(notes, ["CallEnd", "CallEnd", "Flush"], "outcomes are recorded before the flush");
}

#[tokio::test]
async fn shutdown_now_does_not_wait_for_calls_to_end_by_themselves() {
    let runs = Count::default();
    let settings = Settings { drain: MS(60_000), ..quick() };
    let house = setup(settings, vec![lasting("long", MS(60_000), &runs)]);
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(call("long")).await });
    until("it runs", || runs.get() == 1).await;
    let shutdown = within("the shutdown", house.engine.shutdown_now()).await;
    assert_eq!(shutdown, Shutdown { drained: 0, cancelled: 1, left: 0 });
    assert_eq!(running.await.unwrap().status, Status::Cancelled);
}

#[tokio::test]
async fn new_calls_are_refused_and_are_on_record() {
    let runs = Count::default();
    let house = setup(quick(), vec![lasting("ping", MS(0), &runs)]);
    house.engine.shutdown().await;
    let single = within("the refusal", house.engine.execute(call("ping"))).await;
    let (batch, _) =
        within("the refusal", house.engine.execute_batch(vec![call("ping"), call("ping")])).await;
    for result in batch.iter().chain([&single]) {
        assert_eq!(
            (code(result), message(result)),
            ("SHUTTING_DOWN", "Not started, because haft is shutting down. Try again later.")
        );
        house.ended_once(result.metadata.execution_id).await;
    }
    assert_eq!((runs.get(), house.audit().await.len()), (0, 3));
    let again = within("a second shutdown", house.engine.shutdown()).await;
    assert_eq!(again, Shutdown { drained: 0, cancelled: 0, left: 0 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_never_yields_is_reported_as_left() {
    let stop = Arc::new(AtomicBool::new(false));
    let (seen, runs) = (Arc::clone(&stop), Count::default());
    let counted = runs.clone();
    let spins = tool("spins", move |_, _| {
        let (stop, runs) = (Arc::clone(&seen), counted.clone());
        async move {
            runs.up();
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(MS(1));
            }
            Ok(())
        }
    });
    let settings = Settings { drain: MS(30), grace: MS(60), ..Settings::default() };
    let house = setup(settings, vec![spins]);
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(call("spins")).await });
    until("it runs", || runs.get() == 1).await;
    let shutdown = within("the shutdown", house.engine.shutdown()).await;
    assert_eq!(shutdown, Shutdown { drained: 0, cancelled: 1, left: 1 });
    assert_eq!(house.store.asked(Op::Flush), 1);
    stop.store(true, Ordering::Relaxed);
    let result = within("the end of the tool", running).await.unwrap();
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test]
async fn calls_that_wait_for_a_person_are_cancelled_too() {
    let door = Door::closed();
    let settings = Settings { drain: MS(20), ..quick() };
    let house = Setup { settings: settings.clone(), approver: door.clone(), ..Setup::default() }
        .build([tool("asks", |_, _| async { Ok(()) }).asks()]);
    let engine = house.engine.clone();
    let asking = tokio::spawn(async move { engine.execute(call("asks")).await });
    until("somebody is asked", || door.asked() == 1).await;
    assert_eq!(within("the shutdown", house.engine.shutdown()).await.left, 0);
    assert_eq!(code(&asking.await.unwrap()), "SHUTTING_DOWN");

    let house = setup(
        Settings { mode: ToolsMode::ParseOnly, ..settings },
        vec![tool("asks", |_, _| async { Ok(()) })],
    );
    let engine = house.engine.clone();
    let parked = tokio::spawn(async move { engine.execute(call("asks")).await });
    until("it waits", || !house.engine.pending().is_empty()).await;
    assert_eq!(within("the shutdown", house.engine.shutdown()).await.left, 0);
    assert_eq!(code(&parked.await.unwrap()), "SHUTTING_DOWN");
}

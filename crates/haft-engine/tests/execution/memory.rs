//! Intent before effect, outcome before answer, and what happens when either cannot be written.

use crate::common::{
    Count, House, Op, Scripted, Setup, TestStore, call, code, codes, known_id, message, tool, until, with,
};
use haft_core::{Status, ToolError};

/// A tool that writes into the store's own notes that it ran.
fn noted(name: &str, store: &TestStore, runs: &Count) -> Scripted {
    let (store, runs) = (store.clone(), runs.clone());
    tool(name, move |_, _| {
        runs.up();
        store.note("ran");
        async { Ok("done") }
    })
}

fn setup() -> (House, Count) {
    let (setup, runs) = (Setup::default(), Count::default());
    let tools = [noted("reads", &setup.store, &runs), noted("writes", &setup.store, &runs).effects()];
    (setup.build(tools), runs)
}

#[tokio::test]
async fn an_intent_is_recorded_before_the_effect_and_an_outcome_after_it() {
    let (house, _) = setup();
    assert!(house.engine.execute(call("writes")).await.is_success());
    assert_eq!(house.store.notes(), ["Intent", "ran", "CallEnd"]);
    assert_eq!(house.store.memory.open_intents(), 0);
}

#[tokio::test]
async fn a_tool_without_side_effects_needs_no_intent() {
    let (house, _) = setup();
    assert!(house.engine.execute(call("reads")).await.is_success());
    assert_eq!(house.store.notes(), ["ran", "CallEnd"]);
}

#[tokio::test]
async fn while_a_tool_with_side_effects_runs_its_intent_is_open() {
    let house = Setup::default().build([tool("writes", |_, _| async {
        std::future::pending::<()>().await;
        Ok(())
    })
    .effects()]);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("writes"), options)).await });
    until("the intent is written", || house.store.memory.open_intents() == 1).await;
    house.engine.cancel(id, haft_sdk::CancelReason::User, None);
    running.await.unwrap();
    assert_eq!(house.store.memory.open_intents(), 0);
}

#[tokio::test]
async fn when_the_intent_cannot_be_recorded_the_tool_does_not_run() {
    let (house, runs) = setup();
    house.store.fail(Op::Intent);
    let (results, _) = house.engine.execute_batch(vec![call("writes"), call("reads")]).await;
    assert_eq!(codes(&results), ["STORE_UNAVAILABLE", "OK"], "what needs no intent still runs");
    assert_eq!(runs.get(), 1);
    assert_eq!(message(&results[0]), "The call could not be recorded, so it was not run.");
    assert_eq!(results[0].diagnostics.as_deref(), Some(TestStore::DISK_FULL));
    assert!(!serde_json::to_string(&results[0]).unwrap().contains("/var/lib"), "the model learned of a path");
    assert_eq!(results[0].metadata.attempts, 0);
    house.ended_once(results[0].metadata.execution_id).await;
}

#[tokio::test]
async fn when_the_outcome_cannot_be_recorded_the_result_says_so() {
    let (house, runs) = setup();
    house.store.fail(Op::CallEnd);
    let (id, options) = known_id();
    let result = house.engine.execute(with(call("writes"), options)).await;
    assert_eq!((code(&result), result.status, runs.get()), ("STORE_UNAVAILABLE", Status::Failed, 1));
    assert_eq!(result.output, None, "a result that nothing remembers must not look like one");
    assert_eq!(message(&result), "The call ran and ended with Success, but that could not be recorded");
    assert_eq!(result.diagnostics.as_deref(), Some(TestStore::DISK_FULL));
    assert_eq!(house.kinds(id).await, ["Started", "InProgress", "Failed"]);
    assert_eq!(house.engine.running(), 0);

    let unknown = house.engine.execute(call("no_such_tool")).await;
    assert_eq!(code(&unknown), "STORE_UNAVAILABLE", "a refusal that is not on record is not a refusal");
    assert_eq!(message(&unknown), "The call could not be recorded, so it was not run.");
}

#[tokio::test]
async fn when_a_long_output_cannot_be_kept_the_result_is_still_right() {
    let house = Setup::default().build([tool("long", |_, _| async { Ok("line\n".repeat(100_000)) })]);
    house.store.fail(Op::Output);
    let result = house.engine.execute(call("long")).await;
    assert!(result.is_success() && result.metadata.output_truncated);
    assert_eq!(result.metadata.output_handle, None);
    assert!(!result.text().contains("read_output"), "it points to an output that is not there");
    assert!(result.text().contains("left out]"), "the counts are still there");
}

/// The store takes the intent, and the caller goes away before the tool starts.
#[tokio::test]
async fn an_intent_is_closed_when_the_caller_goes_away_while_it_is_written() {
    let (house, runs) = setup();
    house.store.stall(Op::Intent);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("writes"), options)).await });
    until("the intent is being written", || house.store.asked(Op::Intent) == 1).await;
    running.abort();
    let _ = running.await;
    house.store.let_go();
    house.idle().await;
    house.ended_once(id).await;
    assert_eq!(runs.get(), 0);
    assert_eq!(
        house.store.memory.open_intents(),
        0,
        "a call that has ended looks like one with unknown outcome"
    );
}

#[tokio::test]
async fn a_caller_that_goes_away_while_the_outcome_is_written_undoes_nothing() {
    let (house, runs) = setup();
    house.store.stall(Op::CallEnd);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("writes"), options)).await });
    until("the outcome is being written", || house.store.asked(Op::CallEnd) == 1).await;
    running.abort();
    let _ = running.await;
    house.store.let_go();
    house.idle().await;
    house.ended_once(id).await;
    assert_eq!(
        house.audit_of(id).await[0].status,
        Status::Success,
        "it had succeeded before the caller went away"
    );
    assert_eq!((runs.get(), house.store.asked(Op::CallEnd)), (1, 1));
}

#[tokio::test]
async fn a_caller_that_goes_away_while_a_long_output_is_kept_gets_one_record() {
    let long = "x".repeat(200_000);
    let house = Setup::default().build([
        tool("long", move |_, _| {
            let long = long.clone();
            async { Ok(long) }
        }),
        tool("fails", |_, _| async { Err::<(), _>(ToolError::failed("x".repeat(200_000))) }),
    ]);
    house.store.stall(Op::Output);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("long"), options)).await });
    until("the output is being kept", || house.store.asked(Op::Output) == 1).await;
    running.abort();
    let _ = running.await;
    house.store.let_go();
    house.idle().await;
    house.ended_once(id).await;
}

//! The same key means the same call: it has an effect once.

use crate::common::{
    Answers, Count, House, Op, Scripted, Setup, call, call_with, code, codes, known_id, tool, until, with,
    within,
};
use haft_core::{CallContext, Decision, ToolCall, ToolError};
use haft_engine::Request;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// A tool with side effects that says the number of its run.
fn number(name: &str, runs: &Count) -> Scripted {
    let runs = runs.clone();
    tool(name, move |_, _| {
        let run = runs.up();
        async move { Ok(format!("run {run}")) }
    })
    .effects()
}

fn keyed(name: &str) -> ToolCall {
    call_with(name, json!({"to": "ada"})).with_idempotency_key("key-1")
}

fn setup(runs: &Count) -> House {
    Setup::default().build([number("send", runs)])
}

#[tokio::test]
async fn the_same_key_gets_the_stored_result_and_runs_once() {
    let runs = Count::default();
    let house = setup(&runs);
    let first = house.engine.execute(keyed("send").with_id("a")).await;
    let second = house.engine.execute(keyed("send").with_id("b")).await;
    assert_eq!((first.text(), second.text(), runs.get()), ("run 0", "run 0", 1));
    assert_eq!(&*second.call_id, "b", "the stored result answers the call that asked");
    assert_ne!(first.metadata.execution_id, second.metadata.execution_id);
    for result in [&first, &second] {
        house.ended_once(result.metadata.execution_id).await;
    }
}

#[tokio::test]
async fn a_failure_after_the_start_is_remembered_like_a_success() {
    let runs = Count::default();
    let counted = runs.clone();
    let house = Setup::default().build([tool("send", move |_, _| {
        counted.up();
        async { Err::<(), _>(ToolError::failed("half of it was sent")) }
    })
    .effects()]);
    for _ in 0..2 {
        let result = house.engine.execute(keyed("send")).await;
        assert_eq!((code(&result), result.text()), ("EXECUTION_FAILED", "send failed: half of it was sent"));
    }
    assert_eq!(runs.get(), 1, "what may have had an effect was run again");
}

#[tokio::test]
async fn other_arguments_under_the_same_key_are_a_conflict() {
    let runs = Count::default();
    let house = setup(&runs);
    house.engine.execute(keyed("send")).await;
    let other = call_with("send", json!({"to": "bob"})).with_idempotency_key("key-1");
    let result = house.engine.execute(other).await;
    assert_eq!((code(&result), runs.get()), ("IDEMPOTENCY_CONFLICT", 1));
}

#[tokio::test]
async fn a_key_belongs_to_one_tenant_one_principal_and_one_tool() {
    let runs = Count::default();
    let house = Setup::default().build([number("send", &runs), number("post", &runs)]);
    let who = |tenant: &str, agent: &str, user: Option<&str>| CallContext {
        user: user.map(Into::into),
        permissions: vec!["*".into()],
        ..CallContext::new(tenant, agent)
    };
    let requests = [
        (who("acme", "agent", None), "send"),
        (who("other", "agent", None), "send"),
        (who("acme", "agent 2", None), "send"),
        (who("acme", "agent", Some("ada")), "send"),
        (who("acme", "agent", None), "post"),
    ];
    for (expected, (context, name)) in requests.iter().enumerate() {
        let request = Request::new(keyed(name)).context(context.clone());
        let result = house.engine.execute(request).await;
        assert_eq!(result.text(), format!("run {expected}"), "{context:?} {name} got another's result");
    }
    // The person behind two agents is one principal.
    let request = Request::new(keyed("send")).context(who("acme", "agent 3", Some("ada")));
    assert_eq!(house.engine.execute(request).await.text(), "run 3");
}

/// A tool that runs until it is let go.
fn gated(name: &str, runs: &Count) -> (Scripted, Arc<tokio::sync::Semaphore>) {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (runs, inside) = (runs.clone(), Arc::clone(&gate));
    let tool = tool(name, move |_, _| {
        let (run, gate) = (runs.up(), Arc::clone(&inside));
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(format!("run {run}"))
        }
    });
    (tool.effects(), gate)
}

#[tokio::test]
async fn calls_in_flight_share_one_run() {
    let runs = Count::default();
    let (tool, gate) = gated("send", &runs);
    let house = Setup::default().build([tool]);
    let all: Vec<_> = (0..5)
        .map(|_| {
            let engine = house.engine.clone();
            tokio::spawn(async move { engine.execute(keyed("send")).await })
        })
        .collect();
    until("all are on their way", || house.engine.running() == 5 && runs.get() == 1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    gate.add_permits(1);
    for call in all {
        let result = within("a result", call).await.unwrap();
        assert_eq!((code(&result), result.text()), ("OK", "run 0"));
        house.ended_once(result.metadata.execution_id).await;
    }
    assert_eq!((runs.get(), house.audit().await.len()), (1, 5));
}

#[tokio::test]
async fn the_same_key_twice_in_one_batch_runs_once() {
    let runs = Count::default();
    let house = setup(&runs);
    let (results, summary) =
        house.engine.execute_batch(vec![keyed("send"), call("send"), keyed("send")]).await;
    let texts: Vec<_> = results.iter().map(|result| result.text()).collect();
    assert_eq!(texts, ["run 0", "run 1", "run 0"]);
    assert_eq!((runs.get(), summary.total), (2, 3));
}

#[tokio::test]
async fn a_key_whose_call_never_started_is_free_again() {
    let runs = Count::default();
    let schema = json!({"type": "object", "required": ["to"]});
    let answers = Arc::new(Mutex::new(Decision::Deny { reason: None }));
    let says = Arc::clone(&answers);
    let person = Answers::by(move |_| says.lock().unwrap().clone());
    let house =
        Setup { approver: person, ..Setup::default() }.build([number("send", &runs).takes(schema).asks()]);

    let invalid = call("send").with_idempotency_key("key-1");
    assert_eq!(code(&house.engine.execute(invalid).await), "VALIDATION_FAILED");
    assert_eq!(code(&house.engine.execute(keyed("send")).await), "CONFIRMATION_DENIED");
    assert_eq!(runs.get(), 0);
    *answers.lock().unwrap() = Decision::Approve;
    let result = house.engine.execute(keyed("send")).await;
    assert_eq!((code(&result), result.text()), ("OK", "run 0"), "the key was not given back");
}

#[tokio::test]
async fn a_repetition_waits_for_the_same_approval() {
    let runs = Count::default();
    let answers = Arc::new(Mutex::new(Decision::Unanswered));
    let says = Arc::clone(&answers);
    let person = Answers::by(move |_| says.lock().unwrap().clone());
    let house = Setup { approver: person.clone(), ..Setup::default() }.build([number("send", &runs).asks()]);
    for _ in 0..2 {
        assert_eq!(code(&house.engine.execute(keyed("send")).await), "CONFIRMATION_REQUIRED");
    }
    *answers.lock().unwrap() = Decision::Approve;
    assert_eq!(code(&house.engine.execute(keyed("send")).await), "OK");
    let ids: Vec<_> = person.asked().iter().map(|asked| asked[0].id.clone()).collect();
    assert_eq!(ids, vec![ids[0].clone(); 3], "a repetition asked a new question");
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn a_follower_of_a_call_that_never_started_is_told_to_send_it_again() {
    let runs = Count::default();
    let door = crate::common::Door::closed();
    let house = Setup { approver: door.clone(), ..Setup::default() }.build([number("send", &runs).asks()]);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let leader = tokio::spawn(async move { engine.execute(with(keyed("send"), options)).await });
    until("the first one asks", || door.asked() == 1).await;
    let engine = house.engine.clone();
    let follower = tokio::spawn(async move { engine.execute(keyed("send")).await });
    until("both are on their way", || house.engine.running() == 2).await;
    house.engine.cancel(id, haft_sdk::CancelReason::User, None);
    assert_eq!(code(&within("the first", leader).await.unwrap()), "CANCELLED");
    assert_eq!(code(&within("the second", follower).await.unwrap()), "NOT_STARTED");
    door.open();
    let result = within("the third", house.engine.execute(keyed("send"))).await;
    assert_eq!((code(&result), runs.get()), ("OK", 1), "the key was not given back");
}

#[tokio::test]
async fn a_caller_that_went_away_after_the_start_does_not_make_it_run_twice() {
    let runs = Count::default();
    let (tool, _gate) = gated("send", &runs);
    let house = Setup::default().build([tool]);
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(keyed("send")).await });
    until("it runs", || runs.get() == 1).await;
    running.abort();
    house.idle().await;
    let again = within("the repetition", house.engine.execute(keyed("send"))).await;
    assert_eq!((code(&again), runs.get()), ("CANCELLED", 1), "a call with side effects was run again");
}

/// The store takes the key, and the caller goes away before it hears of that.
#[tokio::test]
async fn a_key_is_not_lost_with_a_caller_that_went_away_while_it_was_taken() {
    let runs = Count::default();
    let house = setup(&runs);
    house.store.stall(Op::Claim);
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(keyed("send")).await });
    until("the key is being taken", || house.store.asked(Op::Claim) == 1).await;
    running.abort();
    let _ = running.await;
    house.store.let_go();
    house.idle().await;
    let again = within("the repetition", house.engine.execute(keyed("send"))).await;
    assert_eq!((code(&again), runs.get()), ("OK", 1), "nothing ran, and the key stays taken for ever");
}

#[tokio::test]
async fn a_store_that_cannot_take_the_key_runs_nothing() {
    let runs = Count::default();
    let house = setup(&runs);
    house.store.fail(Op::Claim);
    let (results, _) = house.engine.execute_batch(vec![keyed("send"), call("send")]).await;
    assert_eq!(codes(&results), ["STORE_UNAVAILABLE", "OK"]);
    assert_eq!(runs.get(), 1);
}

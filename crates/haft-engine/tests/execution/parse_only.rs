//! Parse-only mode: calls are checked and listed, and somebody else supplies their results.

use crate::common::{
    House, Setup, call, call_with, code, codes, known_id, message, poll_once, tool, until, with, within,
};
use haft_core::{ErrorCode, ExecutionId, ToolError, ToolOutput, ToolsMode};
use haft_engine::{Settings, SubmitError};
use serde_json::json;

fn setup() -> House {
    let settings = Settings { mode: ToolsMode::ParseOnly, ..Settings::default() };
    Setup { settings, ..Setup::default() }.build([tool("ping", |_, _| async {
        if true {
            panic!("parse-only mode ran a tool")
        }
        Ok(())
    })
    .takes(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
    .gives(json!({"type": "object"}))])
}

fn unknown(id: &str) -> Result<(), SubmitError> {
    Err(SubmitError::Unknown(id.to_owned()))
}

fn twice(id: &str) -> Result<(), SubmitError> {
    Err(SubmitError::AlreadySubmitted(id.to_owned()))
}

fn text(text: &str) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::text(text))
}

#[tokio::test]
async fn calls_that_are_wrong_are_refused_and_not_listed() {
    let house = setup();
    for (call, expected) in [
        (call("no_such_tool"), "TOOL_NOT_FOUND"),
        (call_with("ping", json!({"n": "one"})), "VALIDATION_FAILED"),
    ] {
        let result = within("the refusal", house.engine.execute(call)).await;
        assert_eq!(code(&result), expected);
    }
    assert!(house.engine.pending().is_empty());
}

#[tokio::test]
async fn what_cannot_be_submitted_says_why() {
    let house = setup();
    let engine = &house.engine;
    assert_eq!(engine.submit_result("a", text("x")), Err(SubmitError::NotAwaiting));
    let waiting: Vec<_> = ["a", "b", "b"]
        .map(|id| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.execute(call("ping").with_id(id)).await })
        })
        .into();
    until("three calls wait", || engine.pending().len() == 3).await;

    assert_eq!(engine.submit_result("c", text("x")), unknown("c"));
    assert_eq!(engine.submit_result("b", text("x")), Err(SubmitError::Ambiguous("b".into())));
    let never = ExecutionId::at(jiff::Timestamp::UNIX_EPOCH).to_string();
    assert_eq!(engine.submit_result(&never, text("x")), unknown(&never));
    assert_eq!(engine.pending().len(), 3, "a submission that was not taken changed something");

    let first = engine.pending().iter().find(|pending| &*pending.call_id == "a").unwrap().execution_id;
    assert_eq!(engine.submit_result("a", text("first")), Ok(()));
    assert_eq!(engine.submit_result("a", text("second")), twice("a"), "a result is supplied once");
    for pending in engine.pending() {
        let id = pending.execution_id.to_string();
        assert_eq!(engine.submit_result(&id, text("by execution id")), Ok(()));
    }
    let mut texts = Vec::new();
    for call in waiting {
        texts.push(within("a result", call).await.unwrap().text().to_owned());
    }
    assert_eq!(texts, ["first", "by execution id", "by execution id"]);
    assert_eq!(engine.submit_result("a", text("x")), twice("a"), "also once the call has ended");
    let by_its_execution = first.to_string();
    assert_eq!(engine.submit_result(&by_its_execution, text("x")), twice(&by_its_execution));
    assert_eq!(engine.submit_result("d", text("x")), Err(SubmitError::NotAwaiting));
    let again = engine.submit_result("a", text("x")).unwrap_err();
    assert_eq!(again.to_string(), "Result for tool call 'a' already submitted");
    assert_eq!(SubmitError::NotAwaiting.to_string(), "Not awaiting tool results");
    assert_eq!(SubmitError::Unknown("a".into()).to_string(), "No pending tool call with ID 'a'");
}

#[tokio::test]
async fn all_calls_of_a_batch_are_listed_at_once_and_answered_in_any_order() {
    let house = setup();
    let engine = house.engine.clone();
    let calls = ["a", "b", "c"].map(|id| call("ping").with_id(id)).to_vec();
    let batch = tokio::spawn(async move { engine.execute_batch(calls).await.0 });
    until("a call waits", || !house.engine.pending().is_empty()).await;
    let listed: Vec<String> =
        house.engine.pending().iter().map(|pending| pending.call_id.to_string()).collect();
    assert_eq!(listed, ["a", "b", "c"], "FR-MODE-02, FR-TUI-04: pending calls are surfaced, all of them");
    for id in ["c", "a", "b"] {
        house.engine.submit_result(id, text(id)).unwrap();
    }
    let results = within("the batch", batch).await.unwrap();
    let texts: Vec<&str> = results.iter().map(|result| result.text()).collect();
    assert_eq!(texts, ["a", "b", "c"], "results come in call order");
}

#[tokio::test]
async fn a_supplied_result_is_finished_like_any_other() {
    let house = setup();
    let supply = async |supplied: Result<ToolOutput, ToolError>| {
        let (id, options) = known_id();
        let mut running = Box::pin(house.engine.execute(with(call("ping"), options)));
        poll_once(&mut running).await;
        house.engine.submit_result(&id.to_string(), supplied).unwrap();
        let result = within("the result", running).await;
        house.ended_once(id).await;
        result
    };
    let long = supply(text(&"\x1b[1mline\n".repeat(100_000))).await;
    assert!(long.metadata.output_truncated && !long.text().contains('\x1b'));
    let invalid = supply(Ok(ToolOutput::structured(json!([1])))).await;
    assert_eq!(code(&invalid), "OUTPUT_VALIDATION_FAILED");
    let failed = supply(Err(ToolError::failed("the disk was full"))).await;
    assert_eq!((code(&failed), message(&failed)), ("EXECUTION_FAILED", "ping failed: the disk was full"));
    assert_eq!(failed.error_code(), Some(ErrorCode::ExecutionFailed));
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_dropped_waits_no_longer() {
    let house = setup();
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let cancelled =
        tokio::spawn(async move { engine.execute(with(call("ping").with_id("a"), options)).await });
    let engine = house.engine.clone();
    let dropped = tokio::spawn(async move { engine.execute(call("ping").with_id("b")).await });
    until("two calls wait", || house.engine.pending().len() == 2).await;
    assert!(house.engine.cancel(id, haft_sdk::CancelReason::User, None));
    assert_eq!(codes(&[within("the result", cancelled).await.unwrap()]), ["CANCELLED"]);
    dropped.abort();
    house.idle().await;
    assert!(house.engine.pending().is_empty());
    assert_eq!(house.engine.submit_result("a", text("x")), Err(SubmitError::NotAwaiting));
    assert_eq!(house.audit().await.len(), 2);
}

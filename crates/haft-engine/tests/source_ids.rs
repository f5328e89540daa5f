//! The tests that the source documents name, under their ids: seeds/004 §7.1, seeds/001 §10, seeds/000 §9.
//!
//! Ids that belong to other rooms (T-SBX, T-READ, T-PATCH, retries, parallel strategies) are tested there. T-APR is in
//! `walk/approval.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{
    Count, Door, House, Setup, call, call_with, codes, house, known_id, message, timeout, tool, until, with,
    within,
};
use haft_core::{
    BatchOptions, BatchOrigin, CallContext, ErrorCode, Event, Risk, Status, ToolCall, ToolError, ToolsMode,
};
use haft_engine::{BatchRequest, Request, Settings};
use haft_sdk::{CancelReason, ToolCtx};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// A tool that counts how often it ran.
fn counting(name: &str, runs: &Count) -> common::Scripted {
    let runs = runs.clone();
    tool(name, move |_, _| {
        runs.up();
        async { Ok("ran") }
    })
}

fn failing(name: &str) -> common::Scripted {
    tool(name, |_, _| async { Err::<(), _>(ToolError::failed("the ledger is closed")) })
}

fn hanging(name: &str) -> common::Scripted {
    tool(name, |_, _| async {
        std::future::pending::<()>().await;
        Ok(())
    })
}

fn in_mode(mode: ToolsMode) -> Setup {
    Setup { settings: Settings { mode, ..Settings::default() }, ..Setup::default() }
}

// --- seeds/004 §7.1 ------------------------------------------------------------------------------------------------

#[tokio::test]
async fn t_mode_01_disabled_mode_rejects_tool_calls() {
    let runs = Count::default();
    let house = in_mode(ToolsMode::Disabled).build([counting("ping", &runs)]);
    for name in ["ping", "no_such_tool"] {
        let result = house.engine.execute(call(name)).await;
        assert_eq!(result.error_code(), Some(ErrorCode::ToolDisabled), "{name}");
        assert_eq!(result.status, Status::PermissionDenied, "{name}");
    }
    assert_eq!(runs.get(), 0);
    assert_eq!(house.audit().await.len(), 2, "a refused call is on record, too");
}

#[tokio::test]
async fn t_mode_02_parse_only_mode_surfaces_pending_calls_without_execution() {
    let runs = Count::default();
    let house = in_mode(ToolsMode::ParseOnly).build([counting("ping", &runs)]);
    let engine = house.engine.clone();
    let waiting =
        tokio::spawn(
            async move { engine.execute(call_with("ping", json!({"n": 1})).with_id("call_1")).await },
        );
    until("the call is pending", || !house.engine.pending().is_empty()).await;

    let pending = &house.engine.pending()[0];
    assert_eq!((&*pending.call_id, &*pending.tool), ("call_1", "ping"));
    assert_eq!(pending.arguments.as_str(), r#"{"n":1}"#);
    assert!(house.engine.is_executing(pending.execution_id), "it has no result yet");

    house.engine.submit_result("call_1", Ok(haft_core::ToolOutput::text("by hand"))).unwrap();
    let result = within("the submitted result", waiting).await.unwrap();
    assert_eq!((result.status, result.text()), (Status::Success, "by hand"));
    assert_eq!(runs.get(), 0, "parse-only mode ran the tool");
    assert!(house.engine.pending().is_empty());
}

#[tokio::test]
async fn t_lim_01_exceeding_max_tool_calls_per_batch_pre_resolves_the_extras() {
    let runs = Count::default();
    let house = house([counting("ping", &runs)]);
    let options = BatchOptions { origin: BatchOrigin::Model, ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call("ping"); 10]).options(options);
    let (results, summary) = house.engine.execute_batch(request).await;

    let mut expected = vec!["OK"; 8];
    expected.extend(["LIMIT_EXCEEDED"; 2]);
    assert_eq!(codes(&results), expected);
    assert!(
        message(&results[9]).starts_with("Exceeded max tool calls per batch"),
        "{}",
        message(&results[9])
    );
    assert_eq!((runs.get(), summary.total, summary.executed), (8, 10, 8));
}

#[tokio::test]
async fn t_val_01_unknown_tool_in_enabled_mode_is_pre_resolved_without_a_prompt() {
    let door = Door::closed();
    let house = Setup { approver: door.clone(), ..Setup::default() }.build([hanging("ping").asks()]);
    let result = within("the refusal", house.engine.execute(call("pnig"))).await;
    assert_eq!(result.error_code(), Some(ErrorCode::ToolNotFound));
    assert_eq!(message(&result), "Unknown tool: pnig. Did you mean `ping`?");
    assert_eq!(door.asked(), 0, "somebody was asked about a tool that is not there");
}

#[tokio::test]
async fn t_val_02_schema_invalid_arguments_are_pre_resolved_without_execution() {
    let (runs, door) = (Count::default(), Door::closed());
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let house = Setup { approver: door.clone(), ..Setup::default() }
        .build([counting("ping", &runs).takes(schema).asks()]);
    for arguments in [json!({}), json!({"n": "one"}), json!({"n": 1.5})] {
        let result = within("the refusal", house.engine.execute(call_with("ping", arguments.clone()))).await;
        assert_eq!(result.error_code(), Some(ErrorCode::ValidationFailed), "{arguments}");
        assert_eq!(result.status, Status::ValidationError, "{arguments}");
        let problems = &result.error.as_ref().unwrap().problems;
        assert!(
            !problems.is_empty() && message(&result).starts_with("Bad args: "),
            "{arguments}: {problems:?}"
        );
    }
    assert_eq!((runs.get(), door.asked()), (0, 0));
}

#[tokio::test]
async fn t_out_01_truncation_marker_is_included_within_the_effective_limit() {
    let long = tool("long", |_, _| async { Ok("line\n".repeat(100_000)) });
    for limit in [1024, 5000, 100 * 1024] {
        let settings = Settings { max_output_bytes: limit, ..Settings::default() };
        let house = Setup { settings, ..Setup::default() }.build([long.clone()]);
        let result = house.engine.execute(call("long")).await;
        assert!(result.text().len() <= limit, "{} bytes under a limit of {limit}", result.text().len());
        assert!(result.text().contains("... [output truncated"), "no marker under a limit of {limit}");
        assert!(result.metadata.output_truncated);
    }
}

#[tokio::test]
async fn t_out_02_sanitization_removes_terminal_controls() {
    const HOSTILE: &str = "a\x1b[31mred\x1b[0m\x1b]0;title\x07 \x1bPq\x1b\\b\u{9b}1mc\x00\x08\x7f\r\n\tend";
    const SAFE: &str = "ared bc\r\n\tend";
    let says = tool("says", |_, _| async { Ok(HOSTILE) });
    let prints = tool("prints", |_, cx: ToolCtx| async move {
        // Cut everywhere, so that no piece alone looks like a sequence.
        for byte in HOSTILE.as_bytes() {
            cx.write(haft_core::OutputStream::Stdout, &[*byte]);
        }
        Ok(())
    });
    let fails = tool("fails", |_, _| async { Err::<(), _>(ToolError::failed(HOSTILE)) });
    let house = house([says, prints, fails]);
    for name in ["says", "prints", "fails"] {
        let (id, options) = known_id();
        let result = house.engine.execute(with(call(name), options)).await;
        let expected = if name == "fails" { format!("fails failed: {SAFE}") } else { SAFE.to_owned() };
        assert_eq!(result.text(), expected, "{name}");
        for event in house.events(id).await {
            let shown = format!("{:?}", event.payload);
            assert!(!shown.contains("\\u{1b}") && !shown.contains("\\u{9b}"), "{name}: {shown}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn t_tmo_01_timeout_yields_a_timeout_error_and_the_batch_continues() {
    let runs = Count::default();
    let house = house([hanging("hangs"), counting("ping", &runs)]);
    let options = BatchOptions { call: timeout(Duration::from_secs(3)), ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call("hangs"), call("ping")]).options(options);
    let (results, _) = within("the batch", house.engine.execute_batch(request)).await;
    assert_eq!(codes(&results), ["TIMEOUT", "OK"]);
    assert_eq!(results[0].status, Status::Timeout);
    assert!(message(&results[0]).starts_with("Tool 'hangs' timed out after 3s"), "{}", message(&results[0]));
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn t_can_01_cancel_mid_execution_marks_the_remaining_calls_as_cancelled() {
    let runs = Count::default();
    let house = house([counting("ping", &runs), hanging("hangs")]);
    let (id, options) = known_id();
    let batch = haft_core::BatchId::from_uuid(id.as_uuid());
    let calls = vec![call("ping"), call("hangs"), call("ping"), call("no_such_tool")];
    let options = BatchOptions { call: options, ..BatchOptions::default() };
    let engine = house.engine.clone();
    let running =
        tokio::spawn(async move { engine.execute_batch(BatchRequest::from(calls).options(options)).await });
    until("the first call has run", || runs.get() == 1).await;
    tokio::task::yield_now().await;
    assert!(house.engine.cancel(batch, CancelReason::User, None));

    let (results, summary) = within("the batch", running).await.unwrap();
    assert_eq!(codes(&results), ["OK", "CANCELLED", "CANCELLED", "CANCELLED"]);
    for result in &results[1..] {
        assert_eq!((result.status, message(result)), (Status::Cancelled, "Cancelled by user"));
    }
    assert_eq!((runs.get(), summary.executed), (1, 2), "a call was started after the cancellation");
}

// --- seeds/001 §10 -------------------------------------------------------------------------------------------------

fn wire(events: &[Event]) -> Vec<Value> {
    events.iter().map(|event| serde_json::to_value(event).expect("events can always be written")).collect()
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.payload.wire_name()).collect()
}

#[tokio::test(start_paused = true)]
async fn execute_with_timeout_resolves_before_the_timeout() {
    let slow = tool("slow", |_, _| async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        Ok("done")
    });
    let house = house([slow]);
    let result = house.engine.execute(with(call("slow"), timeout(Duration::from_secs(1)))).await;
    assert_eq!((result.status, result.text()), (Status::Success, "done"));
}

#[tokio::test(start_paused = true)]
async fn execute_with_timeout_rejects_with_execution_timeout_after_the_timeout() {
    let house = house([hanging("hangs")]);
    let before = tokio::time::Instant::now();
    let result = house.engine.execute(with(call("hangs"), timeout(Duration::from_secs(1)))).await;
    assert_eq!("EXECUTION_TIMEOUT".parse(), Ok(result.error_code().unwrap()));
    assert_eq!(before.elapsed().as_millis(), 1000, "the deadline is what was asked for");
}

#[tokio::test(start_paused = true)]
async fn execute_with_timeout_clears_its_timer_on_success_or_error() {
    let kept = Arc::new(Mutex::new(Vec::<ToolCtx>::new()));
    let keep = |kept: &Arc<Mutex<Vec<ToolCtx>>>, cx: ToolCtx| kept.lock().unwrap().push(cx);
    let (first, second) = (Arc::clone(&kept), Arc::clone(&kept));
    let house = house([
        tool("succeeds", move |_, cx| {
            keep(&first, cx);
            async { Ok("done") }
        }),
        tool("errs", move |_, cx| {
            keep(&second, cx);
            async { Err::<(), _>(ToolError::failed("no")) }
        }),
    ]);
    for name in ["succeeds", "errs"] {
        let (id, options) = known_id();
        house
            .engine
            .execute(with(
                call(name),
                haft_core::CallOptions { timeout: Some(Duration::from_secs(1)), ..options },
            ))
            .await;
        let before = house.events(id).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(house.events(id).await, before, "`{name}` had an event after its end");
    }
    for cx in kept.lock().unwrap().iter() {
        assert_eq!(cx.cancel_reason(), None, "the deadline of a call that had ended was still ticking");
    }
}

#[tokio::test]
async fn execute_batch_executes_all_tools_in_sequence() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let steps = tool("step", move |args, _| {
        let (log, n) = (Arc::clone(&log), args.value["n"].clone());
        async move {
            log.lock().unwrap().push(format!("{n} begins"));
            tokio::time::sleep(Duration::from_millis(5)).await;
            log.lock().unwrap().push(format!("{n} ends"));
            Ok(())
        }
    });
    let house = house([steps]);
    let calls: Vec<ToolCall> = (0..4).map(|n| call_with("step", json!({"n": n}))).collect();
    house.engine.execute_batch(calls).await;
    let expected: Vec<String> = (0..4).flat_map(|n| [format!("{n} begins"), format!("{n} ends")]).collect();
    assert_eq!(*order.lock().unwrap(), expected);
}

#[tokio::test]
async fn execute_batch_continues_on_error_unless_stop_on_error() {
    for (continue_on_failure, expected) in
        [(true, ["OK", "EXECUTION_FAILED", "OK"]), (false, ["OK", "EXECUTION_FAILED", "NOT_STARTED"])]
    {
        let runs = Count::default();
        let house = house([counting("ping", &runs), failing("fails")]);
        let options = BatchOptions { continue_on_failure, ..BatchOptions::default() };
        let calls = vec![call("ping"), call("fails"), call("ping")];
        let (results, _) = house.engine.execute_batch(BatchRequest::from(calls).options(options)).await;
        assert_eq!(codes(&results), expected, "continue_on_failure: {continue_on_failure}");
        assert_eq!(runs.get(), if continue_on_failure { 2 } else { 1 });
    }
}

#[tokio::test]
async fn execute_batch_returns_results_and_summary() {
    let house = house([counting("ping", &Count::default()), failing("fails")]);
    let options = BatchOptions { continue_on_failure: false, ..BatchOptions::default() };
    let calls = vec![call("ping"), call("ping"), call("fails"), call("ping")];
    let (results, summary) = house.engine.execute_batch(BatchRequest::from(calls).options(options)).await;
    assert_eq!(results.len(), 4, "one result each, also for what did not start");
    assert_eq!((summary.total, summary.executed, summary.succeeded, summary.failed), (4, 3, 2, 2));
    assert!(results.iter().all(|result| result.metadata.batch_id == Some(summary.batch_id)));
    assert!(summary.duration >= results[0].metadata.duration);
}

#[tokio::test]
async fn format_result_for_context_truncates_long_results() {
    let house = house([tool("long", |_, _| async { Ok("é".repeat(5000)) })]);
    let result = house.engine.execute(call("long")).await;
    let formatted = result.format_for_context(4000, false);
    let expected = format!("{}\n... (truncated, 1000 characters omitted)", "é".repeat(4000));
    assert_eq!(formatted, expected);
    assert_eq!(result.format_for_context(5000, false), "é".repeat(5000), "what fits stays whole");
}

#[tokio::test]
async fn format_result_for_context_includes_metadata_when_requested() {
    let house = house([tool("says", |_, _| async { Ok("hello") }), failing("fails")]);
    for (name, status, content) in [
        ("says", "Success", "hello"),
        ("fails", "Failed", "Error: fails failed: the ledger is closed (EXECUTION_FAILED)"),
    ] {
        let mut result = house.engine.execute(call(name)).await;
        Arc::make_mut(&mut result.metadata).duration = Duration::from_millis(1234);
        let with_metadata = format!("Tool: {name}\nStatus: {status}\nDuration: 1234ms\n---\n{content}");
        assert_eq!(result.format_for_context(4000, true), with_metadata);
        assert_eq!(result.for_context(), with_metadata, "4,000 characters with metadata is the default");
        assert_eq!(result.format_for_context(4000, false), content);
    }
}

#[tokio::test(start_paused = true)]
async fn all_execution_methods_emit_appropriate_events() {
    let house = house([counting("ping", &Count::default()), failing("fails"), hanging("hangs")]);
    for (name, last, data) in [
        ("ping", "tool:executed", json!({"success": true})),
        (
            "fails",
            "tool:error",
            json!({"error": "fails failed: the ledger is closed", "code": "EXECUTION_FAILED"}),
        ),
        ("hangs", "tool:timeout", json!({"timeout": 2000.0})),
    ] {
        let (id, options) = known_id();
        let options = haft_core::CallOptions {
            timeout: Some(Duration::from_secs(2)),
            retry: Some(common::no_retry()),
            ..options
        };
        house.engine.execute(with(call_with(name, json!({"n": 1})), options)).await;
        let events = house.events(id).await;
        assert_eq!(names(&events), ["tool:executing", "tool:progress", last], "{name}");
        let events = wire(&events);
        assert_eq!(events[0]["tool"], name);
        assert_eq!(events[0]["data"], json!({"args": {"n": 1}, "timeout": 2000.0}), "{name}");
        for (key, value) in data.as_object().unwrap() {
            assert_eq!(events[2]["data"][key], *value, "{name}: {key}");
        }
        assert_eq!(events[2]["data"]["duration"].is_number(), last != "tool:timeout", "{name}: duration");
    }
}

#[tokio::test]
async fn execute_batch_emits_batch_start_and_batch_complete() {
    let house = house([counting("ping", &Count::default()), failing("fails")]);
    let (_, summary) = house.engine.execute_batch(vec![call("ping"), call("fails")]).await;
    let events = house.events(summary.batch_id).await;
    assert_eq!(
        names(&events),
        [
            "tool:batch-start",
            "tool:executing",
            "tool:executing",
            "tool:progress",
            "tool:executed",
            "tool:progress",
            "tool:error",
            "tool:batch-complete"
        ]
    );
    let events = wire(&events);
    assert_eq!(events[0]["data"], json!({"count": 2, "isParallel": false}));
    let completed = &events[7]["data"];
    assert_eq!((&completed["count"], &completed["successCount"]), (&json!(2), &json!(1)));
    assert_eq!((&completed["failureCount"], completed["duration"].is_number()), (&json!(1), true));
}

// --- seeds/000 §9 --------------------------------------------------------------------------------------------------

async fn one_call(house: &House, name: &str) -> haft_core::ToolResult {
    within("the result", house.engine.execute(call(name))).await
}

#[tokio::test]
async fn acceptance_1_single_execution_completes() {
    let house = house([tool("ping", |_, _| async { Ok(json!({"pong": true})) })]);
    let result = one_call(&house, "ping").await;
    assert_eq!((result.status, result.output), (Status::Success, Some(json!({"pong": true}))));
    assert_eq!(result.metadata.attempts, 1);
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test]
async fn acceptance_2_tool_not_found_returns_a_proper_error_result() {
    let house = house([]);
    let result = one_call(&house, "ping").await;
    let error = result.error.as_ref().unwrap();
    assert_eq!(
        (result.status, error.code, error.number.as_deref()),
        (Status::Failed, ErrorCode::ToolNotFound, Some("E3001"))
    );
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test]
async fn acceptance_3_authorization_failure_returns_permission_denied() {
    let runs = Count::default();
    let needs = counting("ping", &runs)
        .define(|definition| definition.required_permissions = vec!["tool.net.ping".to_owned()]);
    let house = house([needs]);
    let context = CallContext { permissions: vec!["tool.files.*".into()], ..CallContext::new("local", "a") };
    let result = house.engine.execute(Request::new(call("ping")).context(context)).await;
    assert_eq!(
        (result.status, result.error_code()),
        (Status::PermissionDenied, Some(ErrorCode::PermissionDenied))
    );
    assert!(message(&result).contains("`tool.net.ping`"), "it names what is missing: {}", message(&result));
    assert_eq!(runs.get(), 0);
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test]
async fn acceptance_4_parameter_validation_failure_returns_validation_error() {
    let runs = Count::default();
    let house = house([counting("ping", &runs).takes(json!({"type": "object", "required": ["host"]}))]);
    let result = one_call(&house, "ping").await;
    assert_eq!((result.status, runs.get()), (Status::ValidationError, 0));
    assert!(message(&result).contains("host"), "it names what is wrong: {}", message(&result));
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test(start_paused = true)]
async fn acceptance_5_timeout_enforcement_returns_timeout() {
    let alive = Count::default();
    let counted = alive.clone();
    let house = house([tool("hangs", move |_, _| {
        let here = counted.alive();
        async move {
            std::future::pending::<()>().await;
            drop(here);
            Ok(())
        }
    })]);
    let result = house.engine.execute(with(call("hangs"), timeout(Duration::from_secs(5)))).await;
    assert_eq!(result.status, Status::Timeout);
    assert_eq!(alive.get(), 0, "the tool's future is still there");
    house.ended_once(result.metadata.execution_id).await;
}

#[tokio::test]
async fn acceptance_6_cancellation_returns_cancelled() {
    let house = house([hanging("hangs")]);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("hangs"), options)).await });
    until("the call runs", || house.engine.is_executing(id)).await;
    assert!(house.engine.cancel(id, CancelReason::User, Some("it took too long")));
    let result = within("the result", running).await.unwrap();
    assert_eq!((result.status, message(&result)), (Status::Cancelled, "Cancelled by user: it took too long"));
    house.ended_once(id).await;
    assert!(!house.engine.cancel(id, CancelReason::User, None), "there is nothing left to cancel");
}

#[tokio::test]
async fn acceptance_7_confirmation_required_tool_awaits_the_callback() {
    let (runs, door) = (Count::default(), Door::closed());
    let house = Setup { approver: door.clone(), ..Setup::default() }.build([counting("ping", &runs).asks()]);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("ping"), options)).await });
    until("somebody is asked", || door.asked() == 1).await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!running.is_finished() && runs.get() == 0, "it did not wait for the answer");
    door.open();
    let result = within("the result", running).await.unwrap();
    assert_eq!((result.status, runs.get()), (Status::Success, 1));
    let kinds = house.kinds(id).await;
    let expected = ["Started", "ConfirmationRequested", "ConfirmationReceived", "InProgress", "Completed"];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn acceptance_8_batch_execution_processes_all_inputs() {
    let runs = Count::default();
    let house = house([counting("ping", &runs)]);
    let calls: Vec<ToolCall> = (0..60).map(|n| call("ping").with_id(format!("call_{n}"))).collect();
    let (results, summary) = house.engine.execute_batch(calls).await;
    assert_eq!((runs.get(), summary.total, summary.succeeded), (60, 60, 60));
    for (index, result) in results.iter().enumerate() {
        assert_eq!(&*result.call_id, format!("call_{index}"), "results are in call order");
        house.ended_once(result.metadata.execution_id).await;
    }
}

// --- seeds/004 FR-MODE-01, FR-REG-01 ---------------------------------------------------------------------------------

#[tokio::test]
async fn fr_mode_01_no_tools_are_offered_in_disabled_mode() {
    for (mode, offered) in [(ToolsMode::Disabled, 0), (ToolsMode::ParseOnly, 1), (ToolsMode::Enabled, 1)] {
        let house = in_mode(mode).build([counting("ping", &Count::default())]);
        let context = CallContext::new("local", "agent");
        assert_eq!(house.engine.tools().listed(&context).await.len(), offered, "{mode:?}");
        assert_eq!(house.engine.tools().available(&context).await.len(), offered, "{mode:?}");
    }
}

#[test]
fn fr_reg_01_risk_is_low_without_side_effects_and_otherwise_medium_unless_said() {
    let mut definition = haft_core::ToolDefinition::new("touch", "Touches a file");
    definition.constraints.allow_side_effects = false;
    assert_eq!(definition.risk(), Risk::Low);
    definition.constraints.allow_side_effects = true;
    assert_eq!(definition.risk(), Risk::Medium);
    for risk in [Risk::Low, Risk::Medium, Risk::High] {
        definition.risk = Some(risk);
        assert_eq!(definition.risk(), risk);
    }
}

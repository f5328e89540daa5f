//! Calls that are wrong in every way: each gets exactly one result, with a clear error where it is one, and nothing
//! panics. What the parser itself makes of bad input is tested in haft-core.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Count, House, call, code, codes, house, message, tool};
use haft_core::{Arguments, CallContext, ErrorCode, ToolCall, ToolResult};
use haft_engine::Request;
use serde_json::json;
use std::{
    fs,
    time::{Duration, Instant},
};

/// An engine with one tool that takes any object and counts its runs.
fn echo() -> (House, Count) {
    let runs = Count::default();
    let counted = runs.clone();
    let echo = tool("echo", move |args, _| {
        counted.up();
        async move { Ok(json!(args.value)) }
    });
    (house([echo]), runs)
}

fn echo_of(text: impl Into<String>) -> ToolCall {
    let mut call = call("echo");
    call.arguments = Arguments::from_text(text.into());
    call
}

/// The parsing suite: name, and the text where it is one.
fn suite() -> Option<Vec<(String, Option<String>)>> {
    let folder = haft_testkit::shared_data("jsontestsuite/test_parsing")?;
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| {
            let path = entry.expect("its entries, too").path();
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, String::from_utf8(fs::read(&path).expect("files can be read")).ok())
        })
        .collect();
    files.sort();
    assert!(files.len() > 300, "only {} files", files.len());
    Some(files)
}

/// That there is one result, and one exit on record for it.
async fn one_result(house: &House, call: ToolCall) -> ToolResult {
    let before = house.audit().await.len();
    let result = house.engine.execute(call).await;
    house.ended_once(result.metadata.execution_id).await;
    assert_eq!(house.audit().await.len(), before + 1);
    assert_eq!(house.engine.running(), 0);
    result
}

/// These are JSON by the grammar, and refused on purpose: a check and a tool could see different values.
const DUPLICATE_KEYS: [&str; 2] = ["y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"];

/// These are no JSON by the grammar, and taken on purpose: models send nothing for a tool without arguments.
const NOTHING: [&str; 2] = ["n_single_space.json", "n_structure_no_data.json"];

#[tokio::test]
async fn every_file_of_the_parsing_suite_as_the_arguments_of_a_call() {
    let Some(files) = suite() else {
        return haft_testkit::not_run(
            "every_file_of_the_parsing_suite_as_the_arguments_of_a_call",
            "the folder jsontestsuite/test_parsing is not in the test data",
        );
    };
    let (house, runs) = echo();
    for (name, text) in files {
        // Bytes that are no text cannot come this far: they are refused where they are read (haft-core).
        let Some(text) = text else { continue };
        let ran_before = runs.get();
        let result = one_result(&house, echo_of(text.clone())).await;
        let succeeds = match &name[..2] {
            "y_" => {
                let is_object = text.trim().starts_with('{') && !DUPLICATE_KEYS.contains(&name.as_str());
                Some(is_object || text.trim() == "null")
            }
            "n_" => Some(NOTHING.contains(&name.as_str())),
            _ => None,
        };
        if let Some(expected) = succeeds {
            assert_eq!(result.is_success(), expected, "{name}: {}", result.text());
        }
        assert_eq!(runs.get() > ran_before, result.is_success(), "{name}: refused, and run all the same");
        if !result.is_success() {
            assert_eq!(code(&result), "VALIDATION_FAILED", "{name}");
            assert!(
                message(&result).starts_with("Invalid tool arguments JSON: "),
                "{name}: {}",
                message(&result)
            );
            assert!(message(&result).len() < 300, "{name}: the error is not short: {}", message(&result));
        }
    }
}

#[tokio::test]
async fn every_file_of_the_parsing_suite_as_a_value_in_the_arguments() {
    let Some(files) = suite() else {
        return haft_testkit::not_run(
            "every_file_of_the_parsing_suite_as_a_value_in_the_arguments",
            "the folder jsontestsuite/test_parsing is not in the test data",
        );
    };
    let (house, _) = echo();
    for (name, text) in files {
        let Some(text) = text else { continue };
        let result = one_result(&house, echo_of(format!(r#"{{"v": {text}}}"#))).await;
        match &name[..2] {
            "y_" if DUPLICATE_KEYS.contains(&name.as_str()) => {
                assert!(message(&result).contains("is there twice"), "{name}: {}", message(&result));
            }
            "y_" => {
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(
                    result.output,
                    Some(json!({"v": value})),
                    "{name} did not reach the tool as it was"
                );
            }
            "n_" => assert_eq!(code(&result), "VALIDATION_FAILED", "{name} succeeded: {}", result.text()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn bombs_and_nul_bytes_are_refused_at_once() {
    let (house, runs) = echo();
    let arrays = |depth: usize| format!(r#"{{"v": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let ten_megabytes = format!(r#"{{"v": "{}"}}"#, "x".repeat(10 << 20));
    for (what, text, expected, part) in [
        ("a deep list", arrays(100_000), "VALIDATION_FAILED", "recursion limit exceeded"),
        (
            "a deep list that is never closed",
            "[".repeat(200_000),
            "VALIDATION_FAILED",
            "recursion limit exceeded",
        ),
        ("a NUL byte in a string", "{\"v\": \"a\0b\"}".to_owned(), "VALIDATION_FAILED", "control character"),
        ("a NUL byte after the end", "{}\0".to_owned(), "VALIDATION_FAILED", "trailing characters"),
        ("10 MB", ten_megabytes, "LIMIT_EXCEEDED", "262144 is the most"),
        ("10 MB of nothing", " ".repeat(10 << 20), "LIMIT_EXCEEDED", "262144 is the most"),
        (
            "a key that is there twice",
            r#"{"a": {"b": 1, "b": 2}}"#.to_owned(),
            "VALIDATION_FAILED",
            "\"b\" is there twice",
        ),
        (
            "a huge number",
            format!(r#"{{"v": 1{}}}"#, "0".repeat(400)),
            "VALIDATION_FAILED",
            "number out of range",
        ),
    ] {
        let before = Instant::now();
        let result = one_result(&house, echo_of(text)).await;
        let took = before.elapsed();
        assert_eq!(code(&result), expected, "{what}: {}", message(&result));
        assert!(message(&result).contains(part), "{what}: {}", message(&result));
        assert!(took < Duration::from_secs(2), "{what} took {took:?}");
    }
    assert_eq!(runs.get(), 0);
}

#[tokio::test]
async fn a_limit_of_the_tools_own_replaces_the_general_one() {
    let patch = |name: &str, most| {
        tool(name, |_, _| async { Ok(()) })
            .define(|definition| definition.constraints.max_argument_size = Some(most))
    };
    let house = house([patch("apply_patch", 512 * 1024), patch("tiny", 16)]);
    let of = |name: &str, size: usize| {
        let mut call = call(name);
        call.arguments = Arguments::from_text(format!(r#"{{"v": "{}"}}"#, "x".repeat(size - 9)));
        call
    };
    for (call, expected) in [
        (of("apply_patch", 512 * 1024), "OK"),
        (of("apply_patch", 512 * 1024 + 1), "LIMIT_EXCEEDED"),
        (of("tiny", 16), "OK"),
        (of("tiny", 17), "LIMIT_EXCEEDED"),
        (of("no_such_tool", 256 * 1024), "TOOL_NOT_FOUND"),
        (of("no_such_tool", 256 * 1024 + 1), "LIMIT_EXCEEDED"),
    ] {
        let (name, size) = (call.name.clone(), call.arguments.len());
        assert_eq!(code(&house.engine.execute(call).await), expected, "{name} with {size} bytes");
    }
}

#[tokio::test]
async fn names_and_ids_from_outside_are_never_trusted() {
    let (house, runs) = echo();
    let long = "x".repeat(1 << 20);
    for name in ["", " ", "\0", "ec\0ho", "echo ", "../echo", "echo\n\x1b[2J", "ＥＣＨＯ", &long] {
        let result = one_result(&house, ToolCall::new(name, json!({})).with_id("\0\x1b[2J\n")).await;
        let shown: String = name.chars().take(20).collect();
        assert_eq!(result.error_code(), Some(ErrorCode::ToolNotFound), "{shown:?}");
        let text = message(&result);
        assert!(text.len() < 300, "{shown:?}: the error repeats {} bytes", text.len());
        assert!(!text.contains(|c: char| c.is_control()), "{shown:?}: {text:?}");
        assert_eq!(&*result.call_id, "\0\x1b[2J\n", "the caller's own name comes back as it was");
    }
    assert_eq!(runs.get(), 0);
    assert_eq!(code(&house.engine.execute(call("Echo")).await), "OK", "upper case is no reason to refuse");
}

#[tokio::test]
async fn a_context_that_is_not_well_formed_is_refused_and_on_record() {
    let (house, runs) = echo();
    for (tenant, agent) in [("", "agent"), ("local", ""), ("lo\0cal", "agent"), ("local", "a\nb")] {
        let request = Request::new(call("echo")).context(CallContext::new(tenant, agent));
        let result = house.engine.execute(request).await;
        assert_eq!(code(&result), "PERMISSION_DENIED", "{tenant:?} {agent:?}");
        assert!(!house.engine.is_executing(result.metadata.execution_id));
    }
    assert_eq!(runs.get(), 0);
}

#[tokio::test]
async fn only_the_offending_calls_of_a_batch_are_refused() {
    let (house, runs) = echo();
    let calls = vec![
        echo_of("{}"),
        echo_of("{not json"),
        echo_of(""),
        echo_of(" ".repeat(1 << 20)),
        echo_of("[]"),
        call("no_such_tool"),
        echo_of("{}"),
    ];
    let (results, summary) = house.engine.execute_batch(calls).await;
    assert_eq!(
        codes(&results),
        ["OK", "VALIDATION_FAILED", "OK", "LIMIT_EXCEEDED", "VALIDATION_FAILED", "TOOL_NOT_FOUND", "OK"]
    );
    assert_eq!((runs.get(), summary.total, house.audit().await.len()), (3, 7, 7));
}

#[tokio::test]
async fn a_batch_of_nothing_is_a_batch() {
    let (house, _) = echo();
    let (results, summary) = house.engine.execute_batch(Vec::new()).await;
    assert_eq!((results.len(), summary.total), (0, 0));
    assert_eq!(house.kinds(summary.batch_id).await, ["BatchStarted", "BatchCompleted"]);
}

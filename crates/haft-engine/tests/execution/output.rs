//! Finish: what becomes of a tool's output. Errors that pass through, output schemas, truncation, the model's capacity.

use crate::common::{House, Scripted, Setup, call, call_with, code, house, message, tool, with};
use haft_core::{
    BatchOptions, CallOptions, ModelBudget, OutputHandle, Status, TokenEstimate, ToolError, ToolOutput,
    ToolResult, UNKNOWN_BUDGET_BYTES,
};
use haft_engine::{BatchRequest, Settings};
use haft_sdk::ToolCtx;
use serde_json::json;

/// A tool that fails with that message.
fn fails(message: &str) -> House {
    let message = message.to_owned();
    house([tool("ledger", move |_, _| {
        let message = message.clone();
        async { Err::<(), _>(ToolError::failed(message)) }
    })])
}

fn handle(result: &ToolResult) -> &OutputHandle {
    result.metadata.output_handle.as_ref().expect("a handle to the whole output")
}

#[tokio::test]
async fn fr_err_json_tool_01_a_json_error_object_passes_through_byte_for_byte() {
    for json in [
        r#"{"error":"closed"}"#,
        "{}",
        "{ \"error\" :\t\"closed\",\r\n  \"code\": 7 }\n",
        "  {\"é\": \"\u{202e}\\u001b[31m\"}",
        "{\"controls that JSON allows\": \"\u{7f}\u{9b}\"}",
        r#"{"twice": 1, "twice": 2}"#,
    ] {
        let result = fails(json).engine.execute(call("ledger")).await;
        assert_eq!(code(&result), "EXECUTION_FAILED");
        assert_eq!((result.text(), message(&result)), (json, json), "it was changed on its way");
    }
}

#[tokio::test]
async fn fr_err_json_tool_01_anything_else_gets_the_tools_name() {
    for text in ["closed", "", "[1]", "\"{}\"", "{not json}", "{} {}", "null"] {
        let result = fails(text).engine.execute(call("ledger")).await;
        assert_eq!(result.text(), format!("ledger failed: {text}"));
    }
}

#[tokio::test]
async fn fr_err_json_tool_02_a_json_error_over_the_limit_is_stored_and_a_handle_given() {
    let json = format!(r#"{{"error":"{}"}}"#, "x".repeat(150 * 1024));
    let house = fails(&json);
    let result = house.engine.execute(call("ledger")).await;
    assert!(result.text().len() < 1000 && result.metadata.output_truncated, "{}", result.text().len());
    assert!(!result.text().contains("output truncated"), "no marker may be put into JSON: {}", result.text());
    assert!(result.text().contains(&format!("{} bytes", json.len())), "{}", result.text());
    assert!(result.text().contains(handle(&result).as_str()), "the handle is named: {}", result.text());
    assert_eq!(house.stored("local", handle(&result)).await.as_deref(), Some(json.as_bytes()));
    assert_eq!(house.stored("other", handle(&result)).await, None);
}

#[tokio::test]
async fn an_output_that_breaks_its_own_schema_fails_without_any_of_its_data() {
    const RAW: &str = "raw-4711-data";
    let house = house([tool("count", |_, cx: ToolCtx| async move {
        cx.status("counting");
        Ok(ToolOutput::text(RAW).with_structured(json!({"words": RAW, RAW: RAW, "list": [RAW]})))
    })
    .gives(json!({
        "type": "object",
        "properties": {"words": {"type": "integer"}, "list": {"items": {"enum": ["a"]}}},
        "additionalProperties": false
    }))]);
    let result = house.engine.execute(call("count")).await;
    assert_eq!(
        (code(&result), result.status, &result.output),
        ("OUTPUT_VALIDATION_FAILED", Status::Failed, &None)
    );
    let diagnostics = result.diagnostics.as_deref().unwrap_or_default();
    assert!(
        diagnostics.contains("/words"),
        "the operator, who can mend it, is told the place: {diagnostics:?}"
    );
    let seen = serde_json::to_string(&result).unwrap();
    let events = serde_json::to_string(&house.events(result.metadata.execution_id).await).unwrap();
    assert!(!seen.contains(RAW), "data that was refused reached the caller: {seen}");
    assert!(!events.contains(RAW), "data that was refused reached an observer: {events}");
}

/// Numbered lines, so that it can be seen which are there.
fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

fn says(text: String) -> Scripted {
    tool("says", move |_, _| {
        let text = text.clone();
        async { Ok(text) }
    })
}

fn prints(text: String) -> Scripted {
    tool("says", move |_, cx: ToolCtx| {
        let text = text.clone();
        async move {
            for line in text.split_inclusive('\n') {
                cx.print(line);
            }
            Ok(())
        }
    })
}

#[tokio::test]
async fn a_long_output_keeps_head_and_tail_counts_what_is_left_out_and_can_be_read_back_whole() {
    let text = lines(20_000);
    for tool in [says(text.clone()), prints(text.clone())] {
        let house = house([tool]);
        let result = house.engine.execute(call("says")).await;
        let shown = result.text();
        assert!(shown.len() <= 100 * 1024, "{} bytes", shown.len());
        assert!(shown.starts_with("line 1\nline 2\n") && shown.ends_with("line 19999\nline 20000\n"));
        assert_eq!(
            (result.metadata.output_size, result.metadata.output_truncated),
            (text.len() as u64, true)
        );

        // The counts in the marker are exact: head + left out + tail is the whole.
        let (head, rest) = shown.split_once("\n... [output truncated: ").expect("a marker");
        let (marker, tail) = rest.split_once("]\n\n").expect("an end of the marker");
        let words: Vec<&str> = marker.split(' ').collect();
        let (bytes, left_out): (usize, usize) = (words[0].parse().unwrap(), words[3].parse().unwrap());
        assert_eq!(head.len() + bytes + tail.len(), text.len(), "{marker}");
        assert_eq!(head.lines().count() + left_out + tail.lines().count(), 20_000, "{marker}");
        assert!(marker.ends_with(&format!("read_output {}", handle(&result))), "{marker}");

        assert_eq!(house.stored("local", handle(&result)).await.as_deref(), Some(text.as_bytes()));
        assert_eq!(house.stored("other", handle(&result)).await, None, "another tenant can read it");
        assert_eq!(house.stored("local", &OutputHandle::random()).await, None);
    }
}

#[tokio::test]
async fn stored_bytes_stay_raw_and_the_models_text_does_not() {
    let raw = "\x1b[31mred\x1b[0m\r\n".repeat(30_000);
    let house = house([says(raw.clone())]);
    let result = house.engine.execute(call("says")).await;
    assert!(result.text().starts_with("red\r\nred\r\n") && !result.text().contains('\x1b'));
    assert_eq!(house.stored("local", handle(&result)).await.as_deref(), Some(raw.as_bytes()));

    let value = json!({"file": "\u{feff}a\r\n\x1b[31m👩‍👩‍👧"});
    let given = value.clone();
    let house = crate::common::house([tool("says", move |_, _| {
        let value = given.clone();
        async { Ok(value) }
    })]);
    let result = house.engine.execute(call("says")).await;
    assert_eq!(result.output, Some(value), "structured output is not touched");
}

#[tokio::test]
async fn what_a_tool_streamed_is_its_output_and_stays_with_its_failure() {
    let house = house([
        tool("streams", |_, cx: ToolCtx| async move {
            cx.print("compiling\n");
            cx.write(haft_core::OutputStream::Stderr, b"warning: unused\n");
            Ok(())
        }),
        tool("fails", |_, cx: ToolCtx| async move {
            cx.print("compiling\nerror: line 7\n");
            Err::<(), _>(ToolError::failed("the build failed"))
        }),
    ]);
    let streamed = house.engine.execute(call("streams")).await;
    assert_eq!(streamed.text(), "compiling\nwarning: unused\n");
    assert_eq!(streamed.metadata.output_size, 26);
    let failed = house.engine.execute(call("fails")).await;
    assert_eq!(failed.text(), "fails failed: the build failed\n\ncompiling\nerror: line 7\n");
    assert_eq!(message(&failed), "fails failed: the build failed", "the error itself is the sentence alone");
}

#[tokio::test]
async fn a_text_that_must_stay_whole_is_not_cut() {
    let house = house([tool("base64", |_, _| async {
        Ok(ToolOutput { keep_whole: true, ..ToolOutput::text("QUJD".repeat(50_000)) })
    })]);
    let result = house.engine.execute(call("base64")).await;
    assert_eq!((result.text().len(), result.metadata.output_truncated), (200_000, false));
}

// --- FR-REG-04b: what the model behind the call can still take ------------------------------------------------------

fn known(bytes: usize) -> ModelBudget {
    ModelBudget::Known(TokenEstimate {
        limit: 1000 + bytes / 4,
        used: 500,
        response_reserve: 400,
        safety_margin: 100,
    })
}

/// A tool that says as many bytes as it is told to.
fn sized() -> House {
    let settings = Settings { max_output_bytes: usize::MAX, ..Settings::default() };
    Setup { settings, ..Setup::default() }.build([tool("says", |args, _| async move {
        let size = args.value["size"].as_u64().unwrap_or(0) as usize;
        Ok("x".repeat(size))
    })])
}

#[tokio::test]
async fn fr_reg_04b_a_result_fits_into_what_the_model_can_take() {
    let house = sized();
    for (model, size, most) in [
        (ModelBudget::NoModel, 1_000_000, 1_000_000),
        (ModelBudget::Unknown, UNKNOWN_BUDGET_BYTES, UNKNOWN_BUDGET_BYTES),
        (ModelBudget::Unknown, 1_000_000, UNKNOWN_BUDGET_BYTES),
        (known(4000), 4000, 4000),
        (known(4000), 4001, 4000),
        (known(0), 10, 0),
    ] {
        let options = CallOptions { model, ..CallOptions::default() };
        let result = house.engine.execute(with(call_with("says", json!({"size": size})), options)).await;
        assert!(result.text().len() <= most, "{model:?}: {} bytes of {size}", result.text().len());
        assert_eq!(result.metadata.output_truncated, size > most, "{model:?}, {size} bytes");
        assert_eq!(result.metadata.output_handle.is_some(), size > most, "{model:?}, {size} bytes");
        if size > most && most > 0 {
            assert!(
                result.text().len() > most * 9 / 10,
                "{model:?}: the room is used: {}",
                result.text().len()
            );
        }
    }
    assert_eq!(UNKNOWN_BUDGET_BYTES, 64 * 1024);
}

#[tokio::test]
async fn fr_out_04_refusals_and_failures_fit_as_well() {
    let house = house([tool("fails", |_, _| async { Err::<(), _>(ToolError::failed("x".repeat(500))) })]);
    for name in ["fails", "no_such_tool"] {
        for most in [0, 16, 120] {
            let options = CallOptions { model: known(most), ..CallOptions::default() };
            let result = house.engine.execute(with(call(name), options)).await;
            let text = result.text();
            assert!(text.len() <= most, "{name}: {} bytes where {most} fit: {text}", text.len());
        }
    }
}

#[tokio::test]
async fn fr_reg_04b_each_result_of_a_batch_leaves_less_for_the_next() {
    let house = sized();
    for (model, sizes, most) in [
        (ModelBudget::Unknown, vec![40_000, 40_000, 40_000], UNKNOWN_BUDGET_BYTES),
        (known(8000), vec![3000, 3000, 3000, 10], 8000),
        (known(8000), vec![8000, 1], 8000),
    ] {
        let options =
            BatchOptions { call: CallOptions { model, ..CallOptions::default() }, ..BatchOptions::default() };
        let calls = sizes.iter().map(|size| call_with("says", json!({"size": size}))).collect::<Vec<_>>();
        let (results, _) = house.engine.execute_batch(BatchRequest::from(calls).options(options)).await;
        let lengths: Vec<usize> = results.iter().map(|result| result.text().len()).collect();
        assert!(
            lengths.iter().sum::<usize>() <= most,
            "{model:?}: together {lengths:?} is more than the {most} bytes that the model can take"
        );
        assert_eq!(lengths[0], sizes[0], "the first one fits");
        for (result, size) in results.iter().zip(&sizes) {
            let whole = result.text().len() == *size;
            assert_eq!(result.metadata.output_truncated, !whole, "{lengths:?}");
        }
    }
}

#[tokio::test]
async fn a_tool_is_told_how_much_of_its_output_can_reach_the_caller() {
    let settings = Settings { max_output_bytes: 50_000, ..Settings::default() };
    let house = Setup { settings, ..Setup::default() }.build([
        tool("plain", |_, cx: ToolCtx| async move { Ok(cx.output_limit() as u64) }),
        tool("small", |_, cx: ToolCtx| async move { Ok(cx.output_limit() as u64) })
            .define(|definition| definition.constraints.max_output_size = 2048),
    ]);
    for (name, model, expected) in [
        ("plain", ModelBudget::NoModel, 50_000),
        ("plain", known(4000), 4000),
        ("small", ModelBudget::Unknown, 2048),
    ] {
        let options = CallOptions { model, ..CallOptions::default() };
        let result = house.engine.execute(with(call(name), options)).await;
        assert_eq!(result.output, Some(json!(expected)), "{name} {model:?}");
    }
}

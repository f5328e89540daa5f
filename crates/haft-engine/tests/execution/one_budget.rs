//! Results: one budget for text and value, output that no schema allows, the output of what failed, and questions that
//! nobody needs to answer (seeds/000 §4, seeds/004 FR-OUT, FR-EXE-06).

use crate::common::{Answers, Count, Setup, call, call_with, code, house, message, tool};
use haft_core::{ErrorCode, Footprint, Resource, ToolError, ToolOutput, json_fit};
use haft_engine::Settings;
use haft_sdk::{Args, ToolCtx};
use serde_json::{Value, json};

const LIMIT: usize = 100 * 1024;

fn size(output: Option<&Value>) -> usize {
    output.map_or(0, json_fit::size)
}

#[tokio::test]
async fn fr_out_text_and_value_share_one_budget() {
    let numbers: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let said = numbers.clone();
    let seq = tool("seq", move |_: Args, _: ToolCtx| {
        let said = said.clone();
        async move {
            let value = json!({"exitCode": 0, "stdout": said});
            Ok(ToolOutput::text(said).with_structured(value))
        }
    })
    .define(|definition| {
        definition.output_schema = Some(json!({
            "type": "object", "required": ["exitCode", "stdout"],
            "properties": {"exitCode": {"type": "integer"}, "stdout": {"type": "string"}}
        }));
    });
    let house = house([seq]);
    let result = house.engine.execute(call("seq")).await;
    let (text, value) = (result.text().len(), size(result.output.as_ref()));
    assert!(text + value <= LIMIT, "{text} and {value}");
    assert!(text > LIMIT / 3 && value > LIMIT / 3, "both are of use: {text} and {value}");
    assert!(result.metadata.output_truncated);
    let output = result.output.unwrap();
    assert_eq!(output["exitCode"], 0, "facts stay");
    assert!(output["stdout"].as_str().unwrap().contains("output truncated"));
    let whole = house.stored("local", result.metadata.output_handle.as_ref().unwrap()).await.unwrap();
    assert_eq!(whole, numbers.as_bytes());
}

#[tokio::test]
async fn fr_out_a_long_value_with_a_short_text_is_cut_kept_whole_and_said() {
    let long = tool("long", |_: Args, _: ToolCtx| async {
        Ok(ToolOutput::text("9 rows").with_structured(json!({"rows": "r".repeat(300 * 1024)})))
    });
    let house = house([long]);
    let result = house.engine.execute(call("long")).await;
    assert!(
        result.text().starts_with("9 rows\n... [structured output truncated: it has "),
        "{}",
        result.text()
    );
    assert!(result.text().len() + size(result.output.as_ref()) <= LIMIT);
    assert!(result.metadata.output_truncated);
    let whole = house.stored("local", result.metadata.output_handle.as_ref().unwrap()).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&whole).unwrap()["rows"].as_str().unwrap().len(), 300 * 1024);
}

#[tokio::test]
async fn fr_out_a_value_that_cannot_be_cut_to_its_schema_is_left_out() {
    let exact = tool("exact", |_: Args, _: ToolCtx| async {
        Ok(ToolOutput::text("done").with_structured(json!({"data": "d".repeat(300 * 1024)})))
    })
    .define(|definition| {
        let data = json!({"type": "string", "minLength": 300 * 1024});
        definition.output_schema = Some(json!({"type": "object", "properties": {"data": data}}));
    });
    let result = house([exact]).engine.execute(call("exact")).await;
    assert!(result.is_success() && result.output.is_none(), "{:?}", result.error);
    assert!(result.metadata.output_handle.is_some());
}

#[tokio::test]
async fn fr_out_what_fits_together_is_whole() {
    let settings = Settings { max_output_bytes: 1000, ..Settings::default() };
    let both = tool("both", |_: Args, _: ToolCtx| async {
        Ok(ToolOutput::text("t".repeat(700)).with_structured(json!("v".repeat(200))))
    });
    let result = Setup { settings, ..Setup::default() }.build([both]).engine.execute(call("both")).await;
    assert_eq!((result.text().len(), result.metadata.output_truncated), (700, false));
    assert_eq!(result.output, Some(json!("v".repeat(200))));
}

#[tokio::test]
async fn an_output_schema_that_text_cannot_meet_is_an_error_with_its_place() {
    let with = |schema: Value| {
        tool("says", |_: Args, _: ToolCtx| async { Ok(ToolOutput::text("hello")) })
            .define(move |definition| definition.output_schema = Some(schema))
    };
    let result = house([with(json!({"type": "object"}))]).engine.execute(call("says")).await;
    assert_eq!(code(&result), "OUTPUT_VALIDATION_FAILED");
    assert_eq!(message(&result), "says gave text alone, and its output schema describes something else");
    let problems = &result.error.as_ref().unwrap().problems;
    assert_eq!((problems[0].pointer.as_str(), problems[0].rule.as_str()), ("", "type"));
    for schema in [json!({"type": "string"}), json!(true), json!({})] {
        assert!(house([with(schema)]).engine.execute(call("says")).await.is_success());
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_its_schema_is_an_error_with_its_place_and_without_the_value() {
    let gives = tool("gives", |_: Args, _: ToolCtx| async {
        Ok(ToolOutput::structured(json!({"rows": [1, "hunter2"]})))
    })
    .define(|definition| {
        let rows = json!({"type": "array", "items": {"type": "integer"}});
        definition.output_schema = Some(json!({"type": "object", "properties": {"rows": rows}}));
    });
    let result = house([gives]).engine.execute(call("gives")).await;
    let problems = &result.error.as_ref().unwrap().problems;
    assert_eq!((problems[0].pointer.as_str(), problems[0].rule.as_str()), ("/rows/1", "type"));
    assert!(!format!("{:?}{:?}", result.content, result.error).contains("hunter2"));
}

#[tokio::test]
async fn the_output_of_a_failed_command_is_in_the_context_of_a_model() {
    let fails = tool("fails", |_: Args, cx: ToolCtx| async move {
        cx.print("error[E0308]: mismatched types\n");
        Err::<(), _>(ToolError::new(ErrorCode::NonZeroExit, "The command ended with exit code 1"))
    });
    let result = house([fails]).engine.execute(call("fails")).await;
    let shown = result.for_context();
    assert!(shown.contains("Status: Failed\n"), "{shown}");
    let expected =
        "Error: The command ended with exit code 1 (NON_ZERO_EXIT)\n\nerror[E0308]: mismatched types\n";
    assert!(shown.ends_with(expected), "{shown}");
}

#[tokio::test]
async fn nobody_is_asked_about_what_cannot_succeed() {
    for (failure, is_asked) in [
        (ErrorCode::StaleFile, false),
        (ErrorCode::PatchFailed, false),
        (ErrorCode::FilesystemPolicyViolation, false),
        (ErrorCode::Panicked, true),
    ] {
        let person = Answers::yes();
        let patch = tool("patch", |_: Args, _: ToolCtx| async { Ok("patched") })
            .asks()
            .on_failing_preview(failure, "the file was not read");
        let house = Setup { approver: person.clone(), ..Setup::default() }.build([patch]);
        let result = house.engine.execute(call("patch")).await;
        assert_eq!(!person.asked().is_empty(), is_asked, "{failure}");
        assert_eq!(result.is_success(), is_asked, "{failure}");
        if !is_asked {
            assert_eq!(result.error_code(), Some(failure));
            assert!(message(&result).contains("the file was not read"), "{}", message(&result));
            assert_eq!(result.metadata.attempts, 0);
        }
    }
}

#[tokio::test]
async fn what_an_earlier_call_of_the_batch_may_make_possible_is_asked_about() {
    let (person, runs) = (Answers::yes(), Count::default());
    let counted = runs.clone();
    let write = tool("write", move |_: Args, _: ToolCtx| {
        counted.up();
        async { Ok("written") }
    })
    .on_footprint(|_| Footprint::writes([Resource::path("/a")]));
    let patch = tool("patch", |_: Args, _: ToolCtx| async { Ok("patched") })
        .asks()
        .on_footprint(|_| Footprint::writes([Resource::path("/a")]))
        .on_failing_preview(ErrorCode::ExecutionFailed, "'a' does not exist");
    let house = Setup { approver: person.clone(), ..Setup::default() }.build([write, patch]);
    let (results, _) = house.engine.execute_batch(vec![call("write"), call_with("patch", json!({}))]).await;
    assert!(results.iter().all(haft_core::ToolResult::is_success), "{results:?}");
    assert_eq!(person.asked().len(), 1);
}

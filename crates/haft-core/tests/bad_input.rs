//! What comes from outside is wrong in every way: a clear error or a right value, never a panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    Arguments, BatchOptions, CallContext, CallOptions, Constraints, Event, EventPayload, ExecutionId,
    Footprint, Limits, Parameters, ParentGrant, Retry, ToolCall, ToolDefinition, ToolResult, iso_duration,
    json,
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json as value};
use std::{fs, time::Duration};

/// The files of the JSON parsing suite: name and bytes.
fn suite() -> Option<Vec<(String, Vec<u8>)>> {
    let folder = haft_testkit::shared_data("jsontestsuite/test_parsing")?;
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| {
            let path = entry.expect("its entries, too").path();
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("files can be read"))
        })
        .collect();
    files.sort();
    assert!(files.len() > 300, "only {} files", files.len());
    Some(files)
}

fn no_data(test: &str) {
    haft_testkit::not_run(test, "the folder jsontestsuite/test_parsing is not in the test data");
}

fn wrapped(before: &str, bytes: &[u8], after: &str) -> Vec<u8> {
    [before.as_bytes(), bytes, after.as_bytes()].concat()
}

/// These are JSON by the grammar, and refused on purpose: a check and a program could see different values.
const DUPLICATE_KEYS: [&str; 2] = ["y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"];

#[test]
fn the_parser_takes_what_is_json_and_nothing_else() {
    let Some(files) = suite() else { return no_data("the_parser_takes_what_is_json_and_nothing_else") };
    for (name, bytes) in &files {
        let Ok(text) = std::str::from_utf8(bytes) else {
            assert!(!name.starts_with("y_"), "{name} is UTF-8");
            continue;
        };
        let parsed = json::parse(text);
        match &name[..2] {
            "y_" if DUPLICATE_KEYS.contains(&name.as_str()) => {
                let problem = parsed.expect_err(name);
                assert!(problem.message.contains("is there twice"), "{name}: {}", problem.message);
            }
            "y_" => assert_eq!(parsed, Ok(serde_json::from_str(text).unwrap()), "{name}"),
            "n_" => {
                let problem = parsed.expect_err(name);
                assert!(problem.message.contains("(line "), "{name} has no place: {}", problem.message);
                assert_eq!(problem.rule, "json", "{name}");
            }
            "i_" => {}
            other => panic!("{other}: a kind of file that this test does not know"),
        }
    }
}

/// A whole document with a call in it, as a client sends it: the arguments are taken as they stand and looked at later.
#[test]
fn a_call_with_any_arguments_is_read_or_refused() {
    let Some(files) = suite() else { return no_data("a_call_with_any_arguments_is_read_or_refused") };
    for (name, bytes) in &files {
        let document = wrapped(r#"{"name": "echo", "arguments": "#, bytes, "}");
        let call = serde_json::from_slice::<ToolCall>(&document);
        match &name[..2] {
            "y_" => {
                let call = call.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(call.arguments.as_str().as_bytes(), bytes.trim_ascii(), "{name}: it was changed");
                let is_object =
                    bytes.trim_ascii().starts_with(b"{") && !DUPLICATE_KEYS.contains(&name.as_str());
                let is_null = bytes.trim_ascii() == b"null";
                assert_eq!(call.arguments.parse().is_ok(), is_object || is_null, "{name}");
            }
            "n_" => assert!(call.is_err(), "{name} was read as {:?}", call.map(|call| call.arguments)),
            _ => drop(call.map(|call| call.arguments.parse())),
        }
    }
}

#[test]
fn arguments_that_are_no_object_are_named() {
    for (text, expected) in [
        ("[]", "arguments must be a JSON object, got an array"),
        ("1", "arguments must be a JSON object, got a number"),
        ("\"{}\"", "arguments must be a JSON object, got a string"),
        ("true", "arguments must be a JSON object, got a boolean"),
        ("{\"a\":1}{\"b\":2}", "trailing characters (line 1 column 8)"),
        ("{\"a\":1", "EOF while parsing an object (line 1 column 6)"),
        (
            "{\"a\":\"\u{0}\"}",
            "control character (\\u0000-\\u001F) found while parsing a string (line 1 column 7)",
        ),
        ("\u{feff}{}", "expected value (line 1 column 1)"),
        ("{'a':1}", "key must be a string (line 1 column 2)"),
        ("NaN", "expected value (line 1 column 1)"),
    ] {
        let problem = Arguments::from_text(text).parse().expect_err(text);
        assert_eq!(problem.message, expected, "{text:?}");
    }
    for nothing in ["", " ", "\n\t", "null", " null "] {
        assert_eq!(Arguments::from_text(nothing).parse().unwrap().len(), 0, "{nothing:?} means no arguments");
    }
}

/// Depth, length and NUL bytes: nothing of it costs more than it should.
#[test]
fn bombs_do_not_go_off() {
    let deep = |open: &str, close: &str, depth: usize| {
        format!(
            r#"{{"v": {}{}{}}}"#,
            open.repeat(depth),
            if open == "[" { "" } else { "1" },
            close.repeat(depth)
        )
    };
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        assert!(Arguments::from_text(deep(open, close, 100)).parse().is_ok(), "100 levels are fine");
        for depth in [200, 100_000] {
            let text = deep(open, close, depth);
            let problem = Arguments::from_text(text.clone()).parse().expect_err("too deep");
            assert!(problem.message.starts_with("recursion limit exceeded"), "{}", problem.message);
            let call: ToolCall =
                serde_json::from_str(&format!(r#"{{"name": "a", "arguments": {text}}}"#)).unwrap();
            assert_eq!(call.arguments.as_str(), text, "kept as it is, refused when it is planned");
            assert!(serde_json::to_string(&call).is_ok(), "and it can be written again");
        }
    }
    let long = format!(r#"{{"v": "{}"}}"#, "x".repeat(10 << 20));
    assert_eq!(Arguments::from_text(long).parse().unwrap()["v"].as_str().unwrap().len(), 10 << 20);
    let many: String = (0..200_000).map(|n| format!("\"k{n}\":{n},")).collect();
    assert_eq!(
        Arguments::from_text(format!("{{{}}}", many.trim_end_matches(','))).parse().unwrap().len(),
        200_000
    );
    assert_eq!(
        Arguments::from_text(r#"{"v": "\u0000"}"#).parse().unwrap()["v"],
        "\0",
        "an escaped NUL is a character"
    );
}

/// Whatever the arguments are, an event about them can be written.
#[test]
fn an_event_about_any_arguments_can_be_written() {
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    for text in ["", "null", "{not json", r#"{"a":1,"a":2}"#, "1e999", r#""\ud800""#, &deep] {
        let event = Event {
            seq: 0,
            execution_id: Some(ExecutionId::at(jiff::Timestamp::UNIX_EPOCH)),
            batch_id: None,
            batch_index: None,
            tool: "echo".into(),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            elapsed: Duration::ZERO,
            payload: EventPayload::Started { arguments: Arguments::from_text(text), timeout: Duration::ZERO },
        };
        let written = std::panic::catch_unwind(|| serde_json::to_string(&event));
        let shown: String = text.chars().take(20).collect();
        assert!(
            written.is_ok_and(|written| written.is_ok()),
            "an event with the arguments {shown} cannot be written"
        );
    }
}

/// That a document with one more member is refused, and that the refusal names it.
fn refuses_unknown_fields<T: DeserializeOwned>(what: &str, smallest: Value) {
    serde_json::from_value::<T>(smallest.clone())
        .unwrap_or_else(|error| panic!("{what}: the smallest one cannot be read: {error}"));
    let mut more = smallest;
    more["noSuchField"] = value!(1);
    let Err(error) = serde_json::from_value::<T>(more) else {
        panic!("{what}: a member that is not known was dropped without a word")
    };
    assert!(error.to_string().contains("unknown field `noSuchField`"), "{what}: {error}");
}

#[test]
fn unknown_fields_are_refused_by_name_in_what_people_and_clients_write() {
    refuses_unknown_fields::<ToolCall>("ToolCall", value!({"name": "a"}));
    refuses_unknown_fields::<CallContext>("CallContext", value!({"tenant": "a", "agent": "b"}));
    refuses_unknown_fields::<ParentGrant>("ParentGrant", value!({"sandboxId": "a"}));
    refuses_unknown_fields::<CallOptions>("CallOptions", value!({}));
    refuses_unknown_fields::<BatchOptions>("BatchOptions", value!({}));
    refuses_unknown_fields::<Limits>("Limits", value!({}));
    refuses_unknown_fields::<Retry>("Retry", value!({"maxRetries": 1, "base": "PT1S"}));
    refuses_unknown_fields::<Footprint>("Footprint", value!({}));
    refuses_unknown_fields::<ToolDefinition>("ToolDefinition", value!({"name": "a", "description": "b"}));
    refuses_unknown_fields::<Constraints>("Constraints", value!({}));
}

#[test]
fn what_is_wrong_with_a_document_is_said() {
    fn error<T: DeserializeOwned>(text: &str) -> String {
        match serde_json::from_str::<T>(text) {
            Ok(_) => panic!("it was read: {text}"),
            Err(error) => error.to_string(),
        }
    }
    for (message, expected) in [
        (error::<ToolCall>("{}"), "missing field `name`"),
        (error::<ToolCall>(r#"{"name": "a", "name": "b"}"#), "duplicate field `name`"),
        (
            error::<ToolCall>(r#"{"name": "a", "arguments": {}, "arguments": {}}"#),
            "duplicate field `arguments`",
        ),
        (error::<ToolCall>(r#"{"name": 7}"#), "invalid type: integer `7`"),
        (error::<CallOptions>(r#"{"timeout": 5}"#), "invalid type: integer `5`"),
        (error::<CallOptions>(r#"{"timeout": "soon"}"#), "PT30S"),
        (error::<CallOptions>(r#"{"timeout": "-PT5S"}"#), "negative"),
        (error::<CallOptions>(r#"{"priority": 300}"#), "300"),
        (error::<CallOptions>(r#"{"isolation": "strict"}"#), "unknown variant `strict`"),
        (error::<CallOptions>(r#"{"executionId": "seven"}"#), "invalid"),
        (error::<Limits>(r#"{"memoryBytes": -1}"#), "-1"),
        (error::<Limits>(r#"{"memoryBytes": 1.5}"#), "1.5"),
        (error::<CallContext>(r#"{"tenant": "a", "agent": "b", "tier": "Gold"}"#), "unknown variant `Gold`"),
        (
            error::<ToolDefinition>(r#"{"name": "a", "description": "b", "parameters": 7}"#),
            "a list of parameters",
        ),
        (
            error::<ToolDefinition>(r#"{"name": "a", "description": "b", "parameters": [{"name": "p"}]}"#),
            "missing field `description`",
        ),
        (
            error::<Parameters>(r#"[{"name": "p", "description": "d", "type": "Float"}]"#),
            "unknown variant `Float`",
        ),
        (error::<ToolResult>("{}"), "missing field"),
    ] {
        assert!(message.contains(expected), "expected “{expected}” in “{message}”");
    }
}

#[test]
fn a_context_with_control_characters_or_without_end_is_not_well_formed() {
    let long = "x".repeat(256);
    for (tenant, agent) in [("", "a"), ("a", ""), ("a\0b", "a"), ("a", "a\nb"), (&*long, "a"), ("a", &*long)]
    {
        assert!(CallContext::new(tenant, agent).check().is_err(), "{tenant:?} {agent:?}");
    }
    assert!(CallContext::new(&long[..255], "did:agent:ü").check().is_ok());
}

#[test]
fn durations_that_are_none_are_refused() {
    for text in [
        "",
        "PT",
        "P",
        "30",
        "soon",
        "-PT1S",
        "PT-1S",
        "PT1e9S",
        "PT99999999999999999999S",
        "P1Y",
        "PT1S\0",
        "∞",
    ] {
        assert!(iso_duration::parse(text).is_err(), "{text:?} was taken for {:?}", iso_duration::parse(text));
    }
    assert_eq!(iso_duration::parse(&iso_duration::format(Duration::MAX)).map(|_| ()), Ok(()));
}

fn has_duplicate_keys(problem: &str) -> bool {
    problem.contains("is there twice")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Strict reading differs from serde_json's in one thing only.
    #[test]
    fn strict_reading_agrees_with_serde_json_but_for_duplicate_keys(
        text in r#"([\[\]{},:" ]|"[ab]":|[0-9.eE+-]{1,4}|null|true|\\u00|\n){0,24}"#
    ) {
        match (json::parse(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(strict), Ok(usual)) => prop_assert_eq!(strict, usual),
            (Err(_), Err(_)) => {}
            (Err(problem), Ok(_)) => prop_assert!(has_duplicate_keys(&problem.message), "{}: {}", text, problem.message),
            (Ok(_), Err(error)) => prop_assert!(false, "taken, although {error}: {text}"),
        }
    }

    /// Any bytes as a document: an error or a value, and what was read can be written.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(call) = serde_json::from_slice::<ToolCall>(&bytes) {
            prop_assert!(serde_json::to_string(&call).is_ok());
        }
        let _ = serde_json::from_slice::<ToolDefinition>(&bytes).map(|definition| definition.check());
        let text = String::from_utf8_lossy(&bytes);
        let arguments = Arguments::from_text(&*text);
        let _ = arguments.parse();
        prop_assert!(serde_json::to_string(&arguments).is_ok());
        let _ = iso_duration::parse(&text);
    }
}

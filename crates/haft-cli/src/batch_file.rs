//! A batch as it is written down: a JSON array, or JSON Lines, of calls.
//!
//! The arguments of a call keep their original text; whether they are right is the engine's to say, for that call
//! alone. What is no call at all spoils the whole: nobody knows what was meant.

use haft::ToolCall;
use haft_core::{suggest, text};
use serde_json::value::RawValue;

/// Why a text is no batch, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadBatch {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: String,
    pub(super) help: String,
}

const FORM: &str =
    r#"a batch is [{"id": "c1", "name": "get_metrics", "arguments": {}}], or one such object on each line"#;
const MEMBERS: [&str; 7] = ["id", "name", "tool", "arguments", "args", "idempotencyKey", "metadata"];

/// The calls of a batch, in their order.
pub(super) fn parse(text: &str) -> Result<Vec<ToolCall>, BadBatch> {
    // Some editors begin a file with this mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let elements: Vec<&RawValue> = match text.trim_start().chars().next() {
        None => return Err(bad(1, 1, "there are no calls in it", FORM)),
        Some('[') => serde_json::from_str(text).map_err(|error| syntax(&error))?,
        Some('{') => serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| syntax(&error))?,
        Some(_) => {
            let start = text.len() - text.trim_start().len();
            let (line, column) = place(text, start);
            return Err(bad(line, column, "this begins neither an array nor an object", FORM));
        }
    };
    let calls = elements.into_iter().enumerate();
    calls.map(|(index, element)| call(element, index + 1, text)).collect()
}

fn bad(line: usize, column: usize, what: impl Into<String>, help: impl Into<String>) -> BadBatch {
    BadBatch { line, column, what: what.into(), help: help.into() }
}

fn syntax(error: &serde_json::Error) -> BadBatch {
    let help = if error.is_eof() { "the file ends too early; check its last line" } else { FORM };
    bad(error.line(), error.column(), without_place(error), help)
}

fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text::one_line(text.strip_suffix(&place).unwrap_or(&text), 300)
}

fn call(element: &RawValue, number: usize, whole: &str) -> Result<ToolCall, BadBatch> {
    serde_json::from_str(element.get()).map_err(|error| {
        // The element is a part of the whole, so the distance of their addresses is its place.
        let start = (element.get().as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
        let (line, column) = place(whole, start);
        if !element.get().starts_with('{') {
            return bad(line, column, format!("call {number} is not an object"), FORM);
        }
        let (line, column) = match error.line() {
            0 | 1 => (line, column + error.column().saturating_sub(1)),
            further => (line + further - 1, error.column()),
        };
        let what = without_place(&error);
        match unknown_member(&what) {
            Some(member) => {
                let help = match suggest::nearest(member, MEMBERS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "a call has id, name (or tool), arguments (or args), idempotencyKey, metadata"
                        .to_owned(),
                };
                // The place is that of the name's end.
                let column = column.saturating_sub(member.len() + 1).max(1);
                bad(line, column, format!("call {number} has an unknown member `{member}`"), help)
            }
            None => bad(line, column, format!("call {number}: {what}"), FORM),
        }
    })
}

/// The name in "unknown field `name`, expected …".
fn unknown_member(what: &str) -> Option<&str> {
    what.strip_prefix("unknown field `")?.split("`, expected").next()
}

/// Line and column of a byte, both from 1.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (usize, usize, String) {
        let bad = parse(text).unwrap_err();
        assert!(!bad.help.is_empty());
        (bad.line, bad.column, bad.what)
    }

    #[test]
    fn both_forms_give_the_same_calls() {
        let array = r#" [{"id":"a","name":"x","arguments":{"n": 1.50}}, {"name":"y"}]"#;
        let lines = "{\"id\":\"a\",\"name\":\"x\",\"arguments\":{\"n\": 1.50}}\n\n{\"name\":\"y\"}\n";
        let calls = parse(array).unwrap();
        assert_eq!(calls, parse(lines).unwrap());
        assert_eq!(calls, parse(&format!("\u{feff}{array}")).unwrap());
        assert_eq!(calls[0].arguments.as_str(), r#"{"n": 1.50}"#, "the original text stays");
        assert_eq!(calls[1].arguments.as_str(), "{}");
        assert_eq!(parse("[]").unwrap(), []);
    }

    #[test]
    fn seeds_001_section_7_a_call_may_be_tool_and_args() {
        let calls = parse(r#"[{"tool":"ReadFile","args":{"path":"/a.js"}}]"#).unwrap();
        assert_eq!(calls, parse(r#"[{"name":"ReadFile","arguments":{"path":"/a.js"}}]"#).unwrap());
        assert_eq!(error(r#"[{"tool":"x","name":"y"}]"#).2, "call 1: duplicate field `name`");
    }

    #[test]
    fn arguments_that_are_no_object_spoil_one_call_and_not_the_batch() {
        for arguments in ["5", "null", "\"{}\"", "[1]", "{\"a\":1,\"a\":2}"] {
            let calls = parse(&format!(r#"[{{"name":"x","arguments":{arguments}}}]"#)).unwrap();
            assert_eq!(calls[0].arguments.as_str(), arguments);
        }
    }

    #[test]
    fn what_is_no_batch_has_a_place() {
        for (text, line, column, what) in [
            ("", 1, 1, "there are no calls in it"),
            (" \n ", 1, 1, "there are no calls in it"),
            ("\n calls", 2, 2, "this begins neither an array nor an object"),
            ("[{\"name\":\"x\"},\n]", 2, 1, "trailing comma"),
            ("[{\"name\":\"x\"}", 1, 13, "EOF while parsing a list"),
            ("[] []", 1, 4, "trailing characters"),
            ("{\"name\":\"x\"}\n{\"name\"}", 2, 8, "expected `:`"),
            ("[\n  {\"name\":\"x\"},\n  5\n]", 3, 3, "call 2 is not an object"),
            ("[{\"id\":\"x\"}]", 1, 11, "call 1: missing field `name`"),
            ("[{\"name\":\"x\",\"argumnets\":{}}]", 1, 14, "call 1 has an unknown member `argumnets`"),
            ("[{\"name\":\"x\",\"name\":\"y\"}]", 1, 19, "call 1: duplicate field `name`"),
            (
                "[{\"name\":\"x\u{0}\"}]",
                1,
                11,
                "control character (\\u0000-\\u001F) found while parsing a string",
            ),
        ] {
            assert_eq!(error(text), (line, column, what.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn deep_nesting_is_left_to_the_engine() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(parse(&format!("[{{\"name\":\"x\",\"arguments\":{deep}}}]")).unwrap().len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "\\PC{0,60}|[\\[\\]{}\",:a-z0-9\n ]{0,60}") {
            let _ = parse(&text);
        }
    }
}

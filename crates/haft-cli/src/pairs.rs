//! `KEY=VALUE`: arguments as a person types them, read as the types that the tool wants.
//!
//! Whether they are right is the engine's to say: what has no type here goes on as the text that it is.

use super::failure::Failure;
use haft::Arguments;
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeSet, path::Path};

/// The arguments that the pairs stand for. `schema` is what the tool takes, where there is such a tool; `read` gives
/// the text of the file after an `@`.
pub(super) fn arguments(
    pairs: &[String],
    schema: Option<&Value>,
    mut read: impl FnMut(&Path) -> Result<String, Failure>,
) -> Result<Arguments, Failure> {
    let mut seen = BTreeSet::new();
    let mut members = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let Some((key, text)) = pair.split_once('=') else {
            return Err(Failure::NotAPair { pair: pair.clone() });
        };
        let (key, is_json) = match key.strip_suffix(':') {
            Some(key) => (key, true),
            None => (key, false),
        };
        if key.is_empty() {
            return Err(Failure::NotAPair { pair: pair.clone() });
        }
        if !seen.insert(key) {
            return Err(Failure::KeyTwice { key: key.to_owned() });
        }
        let value = match (is_json, text.strip_prefix('@')) {
            (true, _) => json(key, text)?,
            (false, Some(file)) => typed(key, &read(Path::new(file))?, schema)?,
            (false, None) => typed(key, text, schema)?,
        };
        members.push(format!("{}:{value}", Value::from(key)));
    }
    // Put together as text, so that a number keeps every digit that was typed.
    Ok(Arguments::from_text(format!("{{{}}}", members.join(","))))
}

fn json(key: &str, text: &str) -> Result<String, Failure> {
    let text = text.trim();
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(Failure::NotJson { key: key.to_owned(), problem: error.to_string() }),
    }
}

fn typed(key: &str, text: &str, schema: Option<&Value>) -> Result<String, Failure> {
    let wanted = schema.and_then(|schema| types(schema.get("properties")?.get(key)?, schema, 8));
    let as_text = || Ok(Value::from(text).to_string());
    match wanted {
        None => as_text(),
        Some(wanted) if wanted.contains("string") => as_text(),
        Some(wanted) => match json(key, text) {
            Err(failure) if wanted.contains("array") || wanted.contains("object") => Err(failure),
            Err(_) => as_text(),
            json => json,
        },
    }
}

/// The types that a schema takes; `None` where it may take any.
fn types(schema: &Value, root: &Value, depth: usize) -> Option<BTreeSet<String>> {
    let schema = schema.as_object()?;
    let depth = depth.checked_sub(1)?;
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return types(root.pointer(reference.strip_prefix('#')?)?, root, depth);
    }
    if let Some(kind) = schema.get("type") {
        return match kind {
            Value::String(name) => Some(BTreeSet::from([name.clone()])),
            Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
    }
    if let Some(value) = schema.get("const") {
        return Some(BTreeSet::from([type_of(value).to_owned()]));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().map(|value| type_of(value).to_owned()).collect());
    }
    let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let mut all = BTreeSet::new();
    for branch in branches {
        all.append(&mut types(branch, root, depth)?);
    }
    Some(all)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "$defs": {"level": {"enum": [1, 2]}},
            "properties": {
                "text": {"type": "string"},
                "count": {"type": ["integer", "null"]},
                "ratio": {"type": "number"},
                "on": {"type": "boolean"},
                "list": {"type": "array"},
                "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "format": {"oneOf": [{"const": "json"}, {"const": "toml"}]},
                "level": {"$ref": "#/$defs/level"},
                "loop": {"$ref": "#/properties/loop"},
                "free": true,
            }
        })
    }

    fn read(typed: &[&str]) -> Result<String, String> {
        let pairs: Vec<String> = typed.iter().map(|&pair| pair.to_owned()).collect();
        let file = |path: &Path| Ok(format!("[\"{}\"]\n", path.display()));
        arguments(&pairs, Some(&schema()), file)
            .map(|arguments| arguments.as_str().to_owned())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_value_is_read_as_the_type_that_the_tool_wants() {
        for (pair, expected) in [
            ("text=5", r#"{"text":"5"}"#),
            ("text=", r#"{"text":""}"#),
            ("text=a=b", r#"{"text":"a=b"}"#),
            ("text=\"quoted\"", r#"{"text":"\"quoted\""}"#),
            ("count=5", r#"{"count":5}"#),
            ("count= 5 ", r#"{"count":5}"#),
            ("count=null", r#"{"count":null}"#),
            ("count=123456789012345678901234567890", r#"{"count":123456789012345678901234567890}"#),
            ("count=five", r#"{"count":"five"}"#),
            ("count=05", r#"{"count":"05"}"#),
            ("ratio=1.50", r#"{"ratio":1.50}"#),
            ("on=true", r#"{"on":true}"#),
            ("on=yes", r#"{"on":"yes"}"#),
            ("list=[1, \"a\"]", r#"{"list":[1, "a"]}"#),
            ("either=5", r#"{"either":"5"}"#),
            ("format=toml", r#"{"format":"toml"}"#),
            ("level=2", r#"{"level":2}"#),
            ("loop=2", r#"{"loop":"2"}"#),
            ("free=[1]", r#"{"free":"[1]"}"#),
            ("unknown=5", r#"{"unknown":"5"}"#),
            ("text:=5", r#"{"text":5}"#),
            ("free:={\"a\": [1]}", r#"{"free":{"a": [1]}}"#),
            ("text=@a.txt", "{\"text\":\"[\\\"a.txt\\\"]\\n\"}"),
            ("list=@a.json", r#"{"list":["a.json"]}"#),
            ("text:=\"@a\"", r#"{"text":"@a"}"#),
            ("a\"b=1", r#"{"a\"b":"1"}"#),
        ] {
            assert_eq!(read(&[pair]).as_deref(), Ok(expected), "{pair}");
        }
        assert_eq!(read(&["text=a", "count=1"]).as_deref(), Ok(r#"{"text":"a","count":1}"#));
        assert_eq!(read(&[]).as_deref(), Ok("{}"));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (pairs, expected) in [
            (&["text"][..], "`text` is not KEY=VALUE"),
            (&["=1"], "`=1` is not KEY=VALUE"),
            (&[":=1"], "`:=1` is not KEY=VALUE"),
            (&["text=1", "text:=2"], "`text` is given twice"),
            (&["list=a,b"], "`list` needs JSON, and this is not JSON: expected value at line 1 column 1"),
            (
                &["text:={"],
                "`text` needs JSON, and this is not JSON: EOF while parsing an object at line 1 column 1",
            ),
        ] {
            assert_eq!(read(pairs), Err(expected.to_owned()), "{pairs:?}");
        }
    }
}

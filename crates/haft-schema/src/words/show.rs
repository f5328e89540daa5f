//! How values, names and lists look in a message.

use std::io;

use jsonschema::JsonType;
use serde_json::Value;

/// Characters of one value that a message shows.
const SHOWN: usize = 80;
/// Characters of a list that a message shows.
const LIST_SHOWN: usize = 240;

/// A value as JSON, cut to 80 characters.
///
/// ```
/// use haft_schema::words::shown;
/// use serde_json::json;
///
/// assert_eq!(shown(&json!({"a": [1, null]})), "{\"a\":[1,null]}");
/// assert_eq!(shown(&json!("x".repeat(200))).chars().count(), 80);
/// ```
#[must_use]
pub fn shown(value: &Value) -> String {
    let mut start = Start { bytes: Vec::new() };
    // Only fails when enough was written.
    let _ = serde_json::to_writer(&mut start, value);
    cut(&String::from_utf8_lossy(&start.bytes))
}

/// Keeps the start of what is written to it.
struct Start {
    bytes: Vec<u8>,
}

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A character takes four bytes at most.
        if self.bytes.len() > 4 * SHOWN {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let room = (4 * SHOWN + 4).saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// At most 80 characters of `text`; an ellipsis shows that some are left out.
pub(super) fn cut(text: &str) -> String {
    cut_to(text, SHOWN)
}

fn cut_to(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// A name in double quotes.
pub(super) fn quoted(name: &str) -> String {
    shown(&Value::from(cut_to(name, SHOWN)))
}

/// A value with the name of its type.
pub(super) fn got(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("the boolean {value}"),
        Value::Number(_) => format!("the number {}", shown(value)),
        Value::String(string) if string.is_empty() => "an empty string".to_owned(),
        Value::String(_) => format!("the string {}", shown(value)),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(items) => format!("an array of {}", count(items.len() as u64, "item")),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(members) => {
            format!("an object with {}", listed(members.keys(), |name| quoted(name)))
        }
    }
}

pub(super) fn type_name(name: JsonType) -> &'static str {
    match name {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

/// `1 item`, `2 items`, `0 properties`
pub(super) fn count(number: u64, name: &str) -> String {
    match (number, name.strip_suffix('y')) {
        (1, _) => format!("1 {name}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {name}s"),
    }
}

/// `a, b or c`
pub(super) fn list(parts: impl Iterator<Item = String>, last: &str) -> String {
    let mut parts: Vec<String> = parts.collect();
    match (parts.pop(), parts.is_empty()) {
        (None, _) => String::new(),
        (Some(only), true) => only,
        (Some(end), false) => format!("{} {last} {end}", parts.join(", ")),
    }
}

/// `a, b, c`, or as much of it as fits and how many more there are.
pub(super) fn listed<T>(parts: impl Iterator<Item = T>, show: impl Fn(T) -> String) -> String {
    let mut text = String::new();
    let mut parts = parts;
    let mut left_out = 0;
    for part in parts.by_ref() {
        let part = show(part);
        if !text.is_empty() {
            if text.chars().count() + part.chars().count() + 2 > LIST_SHOWN {
                left_out = 1;
                break;
            }
            text.push_str(", ");
        }
        text.push_str(&part);
    }
    left_out += parts.count();
    if left_out > 0 {
        text.push_str(&format!(" and {left_out} more"));
    }
    text
}

/// One step of a JSON pointer, read.
pub(super) fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

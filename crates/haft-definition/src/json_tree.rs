//! From JSON text to a tree.

use serde_json::{Value, value::RawValue};

use crate::error::{Position, ReadErrors};
use crate::tree::{Key, Kind, Node};

/// The tree of a text. Strict: no name twice, nothing after the value, at most 128 levels.
pub(crate) fn parse(text: &str) -> Result<Node, ReadErrors> {
    if let Err(problem) = haft_core::json::parse(text) {
        let (message, position) = split(&problem.message);
        // That is JSON to some readers, and each takes another of the two.
        if message.ends_with("is there twice") {
            return Err(ReadErrors::one(position, message, Some("keep one of the two".to_owned())));
        }
        return Err(ReadErrors::one(position, format!("this is not JSON: {message}"), None));
    }
    // It is JSON, so the rest cannot fail.
    serde_json::from_str::<&RawValue>(text)
        .ok()
        .and_then(|raw| node(text, raw))
        .ok_or_else(|| ReadErrors::one(Position::of(text, 0), "this is not JSON", None))
}

/// The message without the place that it ends with, and that place.
fn split(message: &str) -> (&str, Position) {
    let parts = || {
        let (message, place) = message.strip_suffix(')')?.rsplit_once(" (line ")?;
        let (line, column) = place.split_once(" column ")?;
        let (line, column) = (line.parse().ok()?, column.parse::<usize>().ok()?);
        Some((message, Position { line, column: column.max(1) }))
    };
    parts().unwrap_or((message, Position { line: 1, column: 1 }))
}

fn node(text: &str, raw: &RawValue) -> Option<Node> {
    let at = offset(text, raw);
    let kind = match raw.get().as_bytes().first()? {
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            Kind::List(items.into_iter().map(|item| node(text, item)).collect::<Option<_>>()?)
        }
        b'{' => {
            let members: Members<'_> = serde_json::from_str(raw.get()).ok()?;
            // After the brace, and then after each member, comes the next name.
            let mut end = at + 1;
            let mut table = Vec::new();
            for (name, value) in members.0 {
                let key_at = end + text.get(end..)?.find('"')?;
                end = offset(text, value) + value.get().len();
                table.push((Key { name, at: key_at }, node(text, value)?));
            }
            Kind::Table(table)
        }
        _ => Kind::Scalar(serde_json::from_str::<Value>(raw.get()).ok()?),
    };
    Some(Node { at, kind })
}

/// Where in the text a part of it is.
fn offset(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr().addr() - text.as_ptr().addr()
}

/// The members of an object, in their order.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> serde::Deserialize<'de> for Members<'t> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> serde::de::Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_where_it_is() {
        let text = "{ \"a\\\"b\" : [ 1 ,\n  { \"c\" :true } ], \"d\": \"}{\" }";
        let tree = parse(text).unwrap();
        let step = |steps: &[&str]| steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>();
        for (steps, key, value) in [
            (step(&["a\"b"]), "\"a\\\"b\"", "[ 1"),
            (step(&["a\"b", "0"]), "1 ,", "1 ,"),
            (step(&["a\"b", "1", "c"]), "\"c\"", "true"),
            (step(&["d"]), "\"d\"", "\"}{\""),
        ] {
            assert!(text[tree.key_at(&steps)..].starts_with(key), "{steps:?}");
            assert!(text[tree.value_at(&steps)..].starts_with(value), "{steps:?}");
        }
        assert_eq!(tree.to_value(), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(tree.value_at(&step(&["none", "at", "all"])), 0);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, message) in [
            ("{", "error: this is not JSON: EOF while parsing an object at line 1, column 1"),
            (
                "{\"a\":1,\n \"a\":2}",
                "error: the key \"a\" is there twice at line 2, column 4\n  help: keep one of the two",
            ),
            ("", "error: this is not JSON: EOF while parsing a value at line 1, column 1"),
            ("{} x", "error: this is not JSON: trailing characters at line 1, column 4"),
            ("{\"a\": 01}", "error: this is not JSON: invalid number at line 1, column 8"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text:?}");
        }
    }
}

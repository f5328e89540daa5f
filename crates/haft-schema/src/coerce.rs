//! `"5"` where 5 was meant: models send strings where numbers belong.

use crate::pointer::push_segment;
use serde_json::{Map, Number, Value};

/// Turns members into the type that the schema names, where nothing is lost, and gives the pointers of those that it
/// changed. A value that has a type which the schema allows is never touched.
///
/// ```
/// use serde_json::json;
/// let schema = json!({"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}});
/// let mut arguments = json!({"n": "5", "s": "5"}).as_object().unwrap().clone();
/// assert_eq!(haft_schema::coerce(&schema, &mut arguments), ["/n"]);
/// assert_eq!(arguments["n"], 5);
/// assert_eq!(arguments["s"], "5");
/// ```
pub fn coerce(schema: &Value, arguments: &mut Map<String, Value>) -> Vec<String> {
    let mut changed = Vec::new();
    members(schema, arguments, "", &mut changed);
    changed
}

fn members(schema: &Value, object: &mut Map<String, Value>, pointer: &str, changed: &mut Vec<String>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        if let Some(value) = object.get_mut(name) {
            let mut pointer = pointer.to_owned();
            push_segment(&mut pointer, name);
            one(property, value, pointer, changed);
        }
    }
}

fn one(schema: &Value, value: &mut Value, pointer: String, changed: &mut Vec<String>) {
    match value {
        Value::Object(object) => members(schema, object, &pointer, changed),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    one(schema, item, format!("{pointer}/{index}"), changed);
                }
            }
        }
        Value::String(text) => {
            // Only a single type: with several, or none, the string may well be what was meant.
            let wanted = schema.get("type").and_then(Value::as_str);
            if let Some(better) = wanted.and_then(|wanted| meant(text, wanted)) {
                *value = better;
                changed.push(pointer);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value that a string stands for, if it stands for exactly one and would be written the same way.
fn meant(text: &str, wanted: &str) -> Option<Value> {
    let value = match wanted {
        "integer" => {
            text.parse::<i64>().ok().map(Value::from).or_else(|| text.parse::<u64>().ok().map(Value::from))
        }
        "number" => {
            let number: Number = serde_json::from_str(text).ok()?;
            Some(Value::Number(number))
        }
        "boolean" => text.parse::<bool>().ok().map(Value::from),
        _ => None,
    }?;
    (value.to_string() == text).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_loses_nothing() {
        for (text, wanted, expected) in [
            ("5", "integer", Some(json!(5))),
            ("-5", "integer", Some(json!(-5))),
            ("18446744073709551615", "integer", Some(json!(u64::MAX))),
            ("5.0", "integer", None),
            ("05", "integer", None),
            ("+5", "integer", None),
            (" 5", "integer", None),
            ("1.5", "number", Some(json!(1.5))),
            ("1.50", "number", None),
            ("0.1234567890123456789", "number", None),
            ("NaN", "number", None),
            ("true", "boolean", Some(json!(true))),
            ("yes", "boolean", None),
            ("5", "string", None),
        ] {
            assert_eq!(meant(text, wanted), expected, "{text:?} as {wanted}");
        }
    }

    #[test]
    fn nested_places_are_named() {
        let schema = json!({"properties": {"a/b": {"items": {"properties": {"n": {"type": "integer"}}}}}});
        let mut arguments = json!({"a/b": [{"n": 1}, {"n": "2"}]}).as_object().unwrap().clone();
        assert_eq!(coerce(&schema, &mut arguments), ["/a~1b/1/n"]);
    }

    proptest::proptest! {
        #[test]
        fn a_value_that_was_valid_never_changes(text in ".{0,12}", number in proptest::num::i64::ANY) {
            let schema = json!({"properties": {
                "s": {"type": "string"}, "n": {"type": "integer"}, "u": {"type": ["string", "integer"]}
            }});
            let before = json!({"s": text, "n": number, "u": text}).as_object().unwrap().clone();
            let mut after = before.clone();
            proptest::prop_assert!(coerce(&schema, &mut after).is_empty());
            proptest::prop_assert_eq!(before, after);
        }
    }
}

//! Gemini's `anyOf`, which stands alone, and its `nullable`.

use super::keywords::types;
use serde_json::{Map, Value, json};

pub(super) fn set_nullable(schema: &mut Map<String, Value>, nullable: bool) {
    if !nullable {
        return;
    }
    match schema.get_mut("anyOf") {
        Some(Value::Array(branches)) => {
            if let Some(Value::Object(first)) = branches.first_mut() {
                first.insert("nullable".into(), true.into());
            }
        }
        _ => drop(schema.insert("nullable".into(), true.into())),
    }
}

/// `anyOf` that stands alone; the description of the whole goes to each alternative that has none.
pub(super) fn any_of(branches: Vec<Map<String, Value>>, whole: &Map<String, Value>) -> Map<String, Value> {
    let mut flat: Vec<Value> = Vec::new();
    for mut branch in branches {
        let inner = match branch.remove("anyOf") {
            Some(Value::Array(inner)) => inner,
            _ => vec![Value::Object(branch)],
        };
        for mut one in inner {
            if let (Value::Object(one), Some(Value::String(text))) = (&mut one, whole.get("description")) {
                one.entry("description").or_insert_with(|| text.clone().into());
            }
            if !flat.contains(&one) {
                flat.push(one);
            }
        }
    }
    match flat.pop() {
        Some(Value::Object(only)) if flat.is_empty() => only,
        Some(last) => {
            flat.push(last);
            Map::from_iter([("anyOf".to_owned(), flat.into())])
        }
        None => anything(),
    }
}

pub(super) fn anything_branches() -> Vec<Map<String, Value>> {
    ["string", "number", "boolean", "object"]
        .into_iter()
        .map(|kind| map(json!({"type": kind})))
        .chain([map(json!({"type": "array", "items": {"type": "string"}}))])
        .collect()
}

pub(super) fn anything() -> Map<String, Value> {
    any_of(anything_branches(), &Map::new())
}

/// Whether it takes null and nothing else.
pub(super) fn is_null(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return false };
    let plain = |key: &String| matches!(key.as_str(), "type" | "const" | "enum" | "title" | "description");
    let choices_take_it = schema.get("const").is_none_or(Value::is_null)
        && schema.get("enum").is_none_or(|values| *values == json!([null]));
    schema.keys().all(plain) && choices_take_it && types(schema).is_some_and(|types| types == ["null"])
}

pub(super) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

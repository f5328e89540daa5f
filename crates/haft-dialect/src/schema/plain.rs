//! JSON Schema as it is, but for what a service turns away: lists without `items` and schemas that are booleans
//! (OpenAI), references that lead nowhere (all).

use super::{
    DEEPEST,
    expand::{resolve, unresolved},
    root::plain_schema,
};
use crate::{
    Change,
    remark::{Notes, child},
};
use serde_json::{Map, Value, json};

/// Puts right, all the way down, what OpenAI turns away.
pub(crate) fn put_right(schema: &mut Map<String, Value>, at: &str, depth: usize, notes: &mut Notes) {
    if depth >= DEEPEST || !notes.spend() {
        return;
    }
    let is_list = match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if is_list && !schema.contains_key("items") {
        schema.insert("items".into(), json!({}));
        notes.add(
            &child(at, "items"),
            Change::Rewritten,
            "it is `{}`",
            "OpenAI takes no list without `items`",
        );
    }
    for (key, value) in schema.iter_mut() {
        let at = child(at, key);
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(members)) => {
                for (name, member) in members {
                    below(member, &child(&at, name), depth, notes);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(members)) => {
                for (index, member) in members.iter_mut().enumerate() {
                    below(member, &format!("{at}/{index}"), depth, notes);
                }
            }
            ("items", member) => below(member, &at, depth, notes),
            ("additionalProperties" | "not" | "if" | "then" | "else" | "contains", Value::Object(member)) => {
                put_right(member, &at, depth + 1, notes);
            }
            _ => {}
        }
    }
}

fn below(schema: &mut Value, at: &str, depth: usize, notes: &mut Notes) {
    if !schema.is_array() {
        plain_schema(schema, at, notes);
    }
    if let Value::Object(schema) = schema {
        put_right(schema, at, depth + 1, notes);
    }
}

/// Removes references that lead nowhere.
pub(crate) fn without_dead_references(top: &mut Map<String, Value>, at: &str, notes: &mut Notes) {
    if !top.values().any(|value| has_reference(value, 0)) {
        return;
    }
    let root = Value::Object(top.clone());
    for (key, value) in top.iter_mut() {
        remove_dead(value, &root, &child(at, key), 0, notes);
    }
}

fn has_reference(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > 2 * DEEPEST => false,
        Value::Object(object) => {
            reference(object).is_some() || object.values().any(|value| has_reference(value, depth + 1))
        }
        Value::Array(items) => items.iter().any(|value| has_reference(value, depth + 1)),
        _ => false,
    }
}

/// Where it refers to. A property may be named `$ref`, too, but then it is not a text.
fn reference(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

fn remove_dead(value: &mut Value, root: &Value, at: &str, depth: usize, notes: &mut Notes) {
    if depth > 2 * DEEPEST {
        return;
    }
    match value {
        Value::Object(object) => {
            if let Some(to) = reference(object).filter(|to| resolve(root, to).is_none()) {
                unresolved(to, at, notes);
                object.remove("$ref");
            }
            for (key, value) in object.iter_mut() {
                remove_dead(value, root, &child(at, key), depth + 1, notes);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter_mut().enumerate() {
                remove_dead(value, root, &format!("{at}/{index}"), depth + 1, notes);
            }
        }
        _ => {}
    }
}

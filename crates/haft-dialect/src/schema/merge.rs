//! Several schemas that hold at once, as one.

use super::keywords::type_of;
use crate::{
    Change,
    remark::{Notes, child},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Adds to a schema what another one asks for as well.
///
/// Where both speak about the same thing the narrower one holds; where none is narrower, the first one, and a remark
/// says so.
pub(crate) fn both(into: &mut Map<String, Value>, from: &Map<String, Value>, at: &str, notes: &mut Notes) {
    if shuts_out(into, from) || shuts_out(from, into) {
        let what = "the members of one part are allowed in the other";
        notes.add(&child(at, "additionalProperties"), Change::Loosened, what, "the parts are one schema");
    }
    for (key, new) in from {
        let Some(old) = into.get_mut(key) else {
            into.insert(key.clone(), new.clone());
            continue;
        };
        if old == new {
            continue;
        }
        let merged = match (key.as_str(), &mut *old, new) {
            ("properties" | "$defs" | "definitions", Value::Object(old), Value::Object(new)) => {
                for (name, schema) in new {
                    match old.get_mut(name) {
                        None => drop(old.insert(name.clone(), schema.clone())),
                        Some(there) if there == schema => {}
                        Some(there) => *there = json!({"allOf": [there.take(), schema]}),
                    }
                }
                true
            }
            ("required", Value::Array(old), Value::Array(new)) => {
                for name in new {
                    if !old.contains(name) {
                        old.push(name.clone());
                    }
                }
                true
            }
            ("type", old, new) => narrower_type(old, new),
            ("enum", Value::Array(old), Value::Array(new)) => {
                let common: Vec<Value> = old.iter().filter(|value| new.contains(value)).cloned().collect();
                let some = !common.is_empty();
                if some {
                    *old = common;
                }
                some
            }
            ("items", old, new) => {
                *old = json!({"allOf": [old.take(), new]});
                true
            }
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", old, new) => {
                narrower_number(old, new, |old, new| new > old)
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", old, new) => {
                narrower_number(old, new, |old, new| new < old)
            }
            ("additionalProperties" | "unevaluatedProperties", old, new) => {
                if *new == Value::Bool(false) || is_open(old) {
                    *old = new.clone();
                }
                *old == Value::Bool(false) || old == new || is_open(new)
            }
            // A hint: the nearer one is the better one.
            ("title" | "description" | "default" | "examples" | "$comment" | "$id" | "$schema", _, _) => true,
            _ => false,
        };
        if !merged {
            notes.add(
                &child(at, key),
                Change::Loosened,
                format!("of two `{key}` that hold at once the first is said"),
                "the two have no common form",
            );
        }
    }
}

/// Whether a schema says nothing about values.
fn is_open(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

/// Whether a part says something about members that it does not name, and the other part names some.
fn shuts_out(part: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let speaks = |key: &str| part.get(key).is_some_and(|rest| !is_open(rest));
    let own = part.get("properties").and_then(Value::as_object);
    let named = other.get("properties").and_then(Value::as_object);
    (speaks("additionalProperties") || speaks("unevaluatedProperties"))
        && named.is_some_and(|named| named.keys().any(|name| !own.is_some_and(|own| own.contains_key(name))))
}

fn narrower_number(old: &mut Value, new: &Value, narrower: fn(f64, f64) -> bool) -> bool {
    let (Some(before), Some(after)) = (old.as_f64(), new.as_f64()) else {
        return false;
    };
    if narrower(before, after) {
        *old = new.clone();
    }
    true
}

fn narrower_type(old: &mut Value, new: &Value) -> bool {
    let names = |value: &Value| -> BTreeSet<String> {
        match value {
            Value::String(one) => BTreeSet::from([one.clone()]),
            Value::Array(many) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => BTreeSet::new(),
        }
    };
    let (before, after) = (names(old), names(new));
    let within = |name: &String, others: &BTreeSet<String>| {
        others.contains(name) || (name == "integer" && others.contains("number"))
    };
    let common: BTreeSet<&String> = before
        .iter()
        .filter(|name| within(name, &after))
        .chain(after.iter().filter(|name| within(name, &before)))
        .collect();
    match common.len() {
        0 => return false,
        1 => *old = common.into_iter().cloned().collect::<String>().into(),
        _ => *old = common.into_iter().cloned().collect(),
    }
    true
}

/// Adds to an object schema what any of several shapes may have: all their properties, and what all of them require.
///
/// True where that asks for more than before: a shape that is open to all members lets those of the others be anything.
pub(crate) fn any(into: &mut Map<String, Value>, shapes: &[Map<String, Value>]) -> bool {
    let closed = |shape: &Map<String, Value>| shape.get("additionalProperties") == Some(&Value::Bool(false));
    let mut tighter = false;
    let mut variants: Map<String, Value> = Map::new();
    for shape in shapes {
        let Some(Value::Object(properties)) = shape.get("properties") else { continue };
        for (name, schema) in properties {
            match variants.entry(name.clone()).or_insert_with(|| json!([])) {
                Value::Array(seen) if !seen.contains(schema) => seen.push(schema.clone()),
                _ => {}
            }
        }
    }
    if let Value::Object(properties) = into.entry("properties").or_insert_with(|| json!({})) {
        for (name, seen) in variants {
            let names = |shape: &Map<String, Value>| {
                shape.get("properties").is_some_and(|properties| properties.get(&name).is_some())
            };
            // What the top itself says about a property holds in each shape.
            if !properties.contains_key(&name) {
                tighter |= shapes.iter().any(|shape| !closed(shape) && !names(shape));
                properties.insert(name, one_of_these(seen));
            }
        }
    }
    let requires = |shape: &Map<String, Value>, name: &str| super::strings(shape, "required").contains(&name);
    if let Some((first, others)) = shapes.split_first() {
        let common: Vec<Value> = super::strings(first, "required")
            .into_iter()
            .filter(|name| others.iter().all(|shape| requires(shape, name)))
            .filter(|name| !requires(into, name))
            .map(Value::from)
            .collect();
        match into.get_mut("required") {
            Some(Value::Array(names)) => names.extend(common),
            _ if common.is_empty() => {}
            _ => drop(into.insert("required".into(), common.into())),
        }
        let closed =
            |shape: &Map<String, Value>| shape.get("additionalProperties") == Some(&Value::Bool(false));
        if shapes.iter().all(closed) {
            into.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    }
    tighter
}

/// One schema for several: a list of choices where each is one, else `anyOf`.
fn one_of_these(seen: Value) -> Value {
    let Value::Array(mut seen) = seen else { return seen };
    if seen.len() == 1 {
        return seen.remove(0);
    }
    match choices(&Map::new(), &seen) {
        Some(choices) => Value::Object(choices),
        None => json!({"anyOf": seen}),
    }
}

/// Alternatives that are nothing but different values, as one list of choices. What each one means is told in the
/// description.
pub(crate) fn choices(base: &Map<String, Value>, branches: &[Value]) -> Option<Map<String, Value>> {
    if base.contains_key("enum") || base.contains_key("const") || branches.is_empty() {
        return None;
    }
    let mut values: Vec<&Value> = Vec::new();
    let mut meanings: Vec<String> = Vec::new();
    for branch in branches {
        let branch = branch.as_object()?;
        let plain =
            |key: &String| matches!(key.as_str(), "const" | "enum" | "type" | "title" | "description");
        let own = match (branch.get("const"), branch.get("enum")) {
            (Some(one), None) => std::slice::from_ref(one),
            (None, Some(Value::Array(several))) => several,
            _ => return None,
        };
        if !branch.keys().all(plain) || own.is_empty() || own.iter().any(|value| values.contains(&value)) {
            return None;
        }
        // A type beside the values says nothing new, unless it shuts some of them out.
        if branch.contains_key("type")
            && !own.iter().all(|value| branch.get("type") == Some(&type_of(value).into()))
        {
            return None;
        }
        if let (Some(Value::String(text)), [Value::String(value)]) = (branch.get("description"), own) {
            meanings.push(format!("{value}: {text}"));
        }
        values.extend(own);
    }
    let mut whole = base.clone();
    whole.insert("enum".into(), json!(values));
    if !meanings.is_empty() {
        let meanings = meanings.join("; ");
        let description = match base.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text} ({meanings})"),
            None => meanings,
        };
        whole.insert("description".into(), description.into());
    }
    Some(whole)
}

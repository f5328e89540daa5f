//! The top of a tool's parameters: always an object, and to most dialects one without alternatives.

use super::{
    DEEPEST,
    expand::{Expander, cut},
    merge, strings,
};
use crate::{
    Change,
    dialect::NameRule,
    remark::{Notes, child},
};
use haft_core::text;
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::BTreeMap};

/// The parameters as an object schema; `Err` says why there is none.
pub(crate) fn object(
    schema: &Value,
    at: &str,
    notes: &mut Notes,
) -> Result<Map<String, Value>, &'static str> {
    let mut top = match schema {
        Value::Object(schema) => schema.clone(),
        Value::Null | Value::Bool(true) => Map::new(),
        Value::Bool(false) => {
            notes.add(
                at,
                Change::Loosened,
                "it is an object without properties",
                "no argument would ever fit",
            );
            Map::new()
        }
        _ => return Err("its parameters are not a JSON Schema"),
    };
    object_type(&mut top, at, notes)?;
    Ok(top)
}

fn object_type(top: &mut Map<String, Value>, at: &str, notes: &mut Notes) -> Result<(), &'static str> {
    match top.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {
            notes.add(
                &child(at, "type"),
                Change::Rewritten,
                "it is `object`",
                "arguments are always an object",
            );
        }
        Some(_) => return Err("its parameters are not an object"),
    }
    top.insert("type".into(), "object".into());
    Ok(())
}

/// The schema without a reference and without alternatives at the top.
pub(crate) fn flat(
    top: Map<String, Value>,
    expander: &mut Expander<'_>,
    at: &str,
    owner: &str,
    notes: &mut Notes,
) -> Result<Map<String, Value>, &'static str> {
    let mut top = flattened(Cow::Owned(top), expander, at, owner, 0, notes);
    object_type(&mut top, at, notes)?;
    tidy(&mut top, at, notes);
    Ok(top)
}

fn flattened(
    schema: Cow<'_, Map<String, Value>>,
    expander: &mut Expander<'_>,
    at: &str,
    owner: &str,
    depth: usize,
    notes: &mut Notes,
) -> Map<String, Value> {
    let mut top = match expander.expand(&schema, at, notes) {
        Ok(top) => top.into_owned(),
        Err(recursion) => {
            cut(&recursion, at, notes);
            let mut top = schema.into_owned();
            top.remove("$ref");
            top.remove("allOf");
            top
        }
    };
    // Where the top was a reference, what other references point to stands beside it.
    for key in ["anyOf", "oneOf"] {
        let Some(shapes) = top.remove(key) else { continue };
        let at = child(at, key);
        let Value::Array(shapes) = shapes else {
            notes.add(&at, Change::Loosened, format!("`{key}` is left out"), "it is not a list");
            continue;
        };
        let (mut flat, open): (Vec<Map<String, Value>>, _) = (Vec::new(), Map::new());
        for (index, shape) in shapes.iter().enumerate() {
            let shape = match shape {
                Value::Object(shape) => shape,
                Value::Bool(true) => &open,
                _ => continue,
            };
            if depth >= DEEPEST || !notes.spend() {
                break;
            }
            let mark = expander.mark();
            let at = format!("{at}/{index}");
            let shape = flattened(Cow::Borrowed(shape), expander, &at, owner, depth + 1, notes);
            expander.close(mark);
            if may_be_object(shape.get("type")) {
                flat.push(shape);
            }
        }
        if merge::any(&mut top, &flat) {
            let what = "what only some of its shapes have is always as those say";
            notes.add(&at, Change::Tightened, what, format!("{owner} has no `{key}` at the top"));
        }
        let what = format!("its {} shapes are said as one, with all their parameters", shapes.len());
        notes.add(&at, Change::Loosened, what, format!("{owner} has no `{key}` at the top"));
    }
    top
}

fn may_be_object(kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}

/// Brings `properties` and `required` into the form that every dialect expects.
pub(crate) fn tidy(top: &mut Map<String, Value>, at: &str, notes: &mut Notes) {
    match top.get_mut("properties") {
        Some(Value::Object(properties)) => {
            let at = child(at, "properties");
            for (name, schema) in properties {
                plain_schema(schema, &child(&at, name), notes);
            }
        }
        None => drop(top.insert("properties".into(), json!({}))),
        Some(other) => {
            *other = json!({});
            notes.add(&child(at, "properties"), Change::Loosened, "it is empty", "it was not an object");
        }
    }
    if let Some(required) = top.get("required") {
        let names = strings(top, "required");
        if required.as_array().is_none_or(|all| all.len() != names.len()) {
            let names: Value = names.into();
            top.insert("required".into(), names);
            notes.add(
                &child(at, "required"),
                Change::Loosened,
                "only names are kept",
                "it was not a list of names",
            );
        }
    }
}

/// Makes `{}` of `true` and `{"not": {}}` of `false`: not every dialect knows schemas that are booleans.
pub(crate) fn plain_schema(schema: &mut Value, at: &str, notes: &mut Notes) {
    let (plain, change) = match schema {
        Value::Object(_) => return,
        Value::Bool(true) => (json!({}), Change::Rewritten),
        Value::Bool(false) => (json!({"not": {}}), Change::Rewritten),
        _ => (json!({}), Change::Loosened),
    };
    *schema = plain;
    notes.add(at, change, format!("it is `{schema}`"), "schemas are objects here");
}

/// Removes keywords that may not stand at the top.
pub(crate) fn without(
    top: &mut Map<String, Value>,
    keywords: &[&str],
    owner: &str,
    at: &str,
    notes: &mut Notes,
) {
    for key in keywords {
        if top.remove(*key).is_some() {
            let why = format!("{owner} has no `{key}` at the top");
            notes.add(&child(at, key), Change::Loosened, format!("`{key}` is left out"), why);
        }
    }
}

/// Gives parameters names that the dialect takes. The map leads from the new name to the old one.
pub(crate) fn rename_properties(
    top: &mut Map<String, Value>,
    rule: NameRule,
    owner: &str,
    at: &str,
    notes: &mut Notes,
) -> BTreeMap<String, String> {
    let mut back = BTreeMap::new();
    let Some(Value::Object(properties)) = top.get_mut("properties") else { return back };
    let unfit: Vec<String> = properties.keys().filter(|name| !rule.allows(name)).cloned().collect();
    let at = child(at, "properties");
    for old in unfit {
        let (Some(new), Some(schema)) = (rule.fit(&old), properties.remove(&old)) else { continue };
        if properties.contains_key(&new) {
            // Two names with one fingerprint: as good as never, but then the first one stays.
            notes.add(&child(&at, &old), Change::Tightened, "it is left out", "its name cannot be said");
            continue;
        }
        let why = format!("{owner} takes no such name: {}", text::one_line(&old, 80));
        notes.add(&child(&at, &old), Change::Renamed, format!("it is `{new}`"), why);
        properties.insert(new.clone(), schema);
        back.insert(new, old);
    }
    if let (false, Some(Value::Array(required))) = (back.is_empty(), top.get_mut("required")) {
        for name in required {
            if let Some((new, _)) = back.iter().find(|(_, old)| name == *old) {
                *name = new.clone().into();
            }
        }
    }
    back
}

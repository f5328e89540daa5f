//! What Gemini can say about plain values: choices, formats, bounds.

use super::{
    keywords::{Class, class, fits},
    list,
};
use crate::{
    Change,
    remark::{Notes, child},
};
use haft_core::text;
use serde_json::{Map, Number, Value};

/// The most characters that choices may take in a description.
const LONGEST_LIST: usize = 400;

/// The schema with the rules and choices for one type only.
pub(super) fn only_of_type(schema: &Map<String, Value>, kind: &str) -> Map<String, Value> {
    schema
        .iter()
        .filter(|(key, _)| match class(key) {
            Class::Rule(kinds) => kinds.is_empty() || kinds.contains(&kind),
            Class::Meta | Class::Hint => true,
        })
        .map(|(key, value)| match value {
            Value::Array(values) if key == "enum" && values.iter().any(|value| fits(value, kind)) => {
                let own: Vec<Value> = values.iter().filter(|value| fits(value, kind)).cloned().collect();
                (key.clone(), own.into())
            }
            _ => (key.clone(), value.clone()),
        })
        .collect()
}

/// `enum` and `const`. Gemini has choices for texts only; others are told in the description.
pub(super) fn choices(
    schema: &Map<String, Value>,
    kind: &str,
    out: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) {
    let (key, values) = match schema.get("const") {
        Some(one) => ("const", std::slice::from_ref(one)),
        None => ("enum", list(schema, "enum")),
    };
    if values.is_empty() {
        return;
    }
    let here = child(at, key);
    if let (Some(one), Some(Value::Array(all))) = (schema.get("const"), schema.get("enum"))
        && !all.contains(one)
    {
        let what = "only `const` is said";
        notes.add(&child(at, "enum"), Change::Loosened, what, "no value fits it and `enum` at once");
    }
    let own: Vec<&Value> = values.iter().filter(|value| fits(value, kind)).collect();
    if own.is_empty() {
        let what = format!("`{key}` is left out");
        return notes.add(&here, Change::Loosened, what, format!("none of its values is of type `{kind}`"));
    }
    if kind == "string" {
        let texts: Vec<&str> =
            own.iter().filter_map(|value| value.as_str()).filter(|text| !text.is_empty()).collect();
        if texts.len() < own.len() {
            let (change, what) = match texts.is_empty() {
                true => (Change::Loosened, "it may be any text"),
                false => (Change::Tightened, "the empty text is left out"),
            };
            notes.add(&here, change, what, "Gemini has no empty choice");
        }
        if texts.is_empty() {
            return;
        }
        if key == "const" {
            notes.add(&here, Change::Rewritten, "it is an `enum` with one value", "Gemini has no `const`");
        }
        out.insert("enum".into(), texts.into());
        return;
    }
    if let ([Value::Number(only)], true) = (own.as_slice(), matches!(kind, "number" | "integer")) {
        notes.add(
            &here,
            Change::Rewritten,
            "it is `minimum` and `maximum`",
            "Gemini has choices for texts only",
        );
        for (bound, step) in [("minimum", 1), ("maximum", -1)] {
            let there = out.get(bound).and_then(Value::as_number);
            if !there.is_some_and(|there| tighter(there, only, step)) {
                out.insert(bound.into(), only.clone().into());
            }
        }
        return;
    }
    let told: Vec<String> = own.iter().map(ToString::to_string).collect();
    let told = text::one_line(&told.join(", "), LONGEST_LIST);
    let description = match out.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} (one of: {told})"),
        None => format!("One of: {told}"),
    };
    out.insert("description".into(), description.into());
    notes.add(
        &here,
        Change::Loosened,
        "the choices are told in the description",
        "Gemini has choices for texts only",
    );
}

/// `format`, where Gemini knows it.
pub(super) fn format(
    schema: &Map<String, Value>,
    known: &[&str],
    out: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) {
    let Some(format) = schema.get("format") else { return };
    match format.as_str() {
        Some("enum") if !out.contains_key("enum") => {}
        Some(name) if known.contains(&name) => drop(out.insert("format".into(), name.into())),
        _ => {
            let what = format!("the format {} is left out", text::one_line(&format.to_string(), 40));
            let why = format!("Gemini knows only {} here", known.join(" and "));
            // Nobody checks numbers against a format; texts are checked.
            let change = if known.contains(&"date-time") { Change::Loosened } else { Change::Dropped };
            notes.add(&child(at, "format"), change, what, why);
        }
    }
}

/// Numbers of letters, items and properties.
pub(super) fn copy_counts(
    schema: &Map<String, Value>,
    keys: &[&str],
    out: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) {
    for key in keys {
        match schema.get(*key) {
            None => {}
            Some(value) if value.as_u64().is_some_and(|count| i64::try_from(count).is_ok()) => {
                out.insert((*key).into(), value.clone());
            }
            Some(_) => {
                notes.add(
                    &child(at, key),
                    Change::Loosened,
                    format!("`{key}` is left out"),
                    "it is not a count",
                );
            }
        }
    }
}

pub(super) fn copy_pattern(
    schema: &Map<String, Value>,
    out: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) {
    match schema.get("pattern") {
        None => {}
        Some(Value::String(pattern)) => drop(out.insert("pattern".into(), pattern.clone().into())),
        Some(_) => {
            notes.add(&child(at, "pattern"), Change::Loosened, "`pattern` is left out", "it is not a text")
        }
    }
}

/// `minimum` and `maximum`, also from the bounds that are not part of the range.
pub(super) fn bounds(
    schema: &Map<String, Value>,
    kind: &str,
    out: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) {
    let number = |key: &str, notes: &mut Notes| match schema.get(key) {
        None => None,
        Some(Value::Number(number)) => Some(number.clone()),
        Some(_) => {
            notes.add(
                &child(at, key),
                Change::Loosened,
                format!("`{key}` is left out"),
                "it is not a number",
            );
            None
        }
    };
    for (plain, exclusive, step) in [("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)]
    {
        let mut bound = number(plain, notes);
        if let Some(outside) = number(exclusive, notes) {
            let whole =
                outside.as_i64().and_then(|outside| outside.checked_add(step)).filter(|_| kind == "integer");
            let (near, change) = match whole {
                Some(inside) => (Number::from(inside), Change::Rewritten),
                None => (outside, Change::Loosened),
            };
            let why = format!("Gemini has no `{exclusive}`");
            notes.add(&child(at, exclusive), change, format!("it is `{plain}` {near}"), why);
            bound = Some(match bound {
                Some(bound) if tighter(&bound, &near, step) => bound,
                _ => near,
            });
        }
        if let Some(bound) = bound {
            out.insert(plain.into(), bound.into());
        }
    }
}

fn tighter(one: &Number, other: &Number, step: i64) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) if step > 0 => one > other,
        (Some(one), Some(other)) => one < other,
        _ => false,
    }
}

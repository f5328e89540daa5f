//! Schemas: from JSON Schema 2020-12 to what a dialect can say.
//!
//! [`root`] makes the top an object without alternatives; [`plain`], [`gemini`] and [`strict`] do the rest, each for
//! the dialects that need it. [`expand`] and [`merge`] are what they share.

pub(crate) mod expand;
pub(crate) mod gemini;
mod gemini_unions;
mod gemini_values;
pub(crate) mod keywords;
pub(crate) mod merge;
pub(crate) mod plain;
pub(crate) mod root;
pub(crate) mod strict;
pub(crate) mod strict_limits;

use serde_json::{Map, Value};

/// How deep a schema is looked at. JSON that was read from text is never deeper.
pub(crate) const DEEPEST: usize = 128;

/// The strings of a list; nothing where there is no list.
pub(crate) fn strings<'a>(map: &'a Map<String, Value>, key: &str) -> Vec<&'a str> {
    match map.get(key) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The members of a list; nothing where there is no list.
pub(crate) fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    match map.get(key) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// Carries title and description over.
pub(crate) fn hints(from: &Map<String, Value>, to: &mut Map<String, Value>) {
    for key in ["title", "description"] {
        if let Some(Value::String(text)) = from.get(key) {
            to.insert(key.into(), text.clone().into());
        }
    }
}

/// Whether an alternative says nothing but which names are required.
pub(crate) fn only_requires(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| schema.keys().all(|key| key == "required"))
}

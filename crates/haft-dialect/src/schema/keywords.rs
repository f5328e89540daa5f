//! What each keyword of JSON Schema is there for.

use crate::{
    Change,
    remark::{Notes, child},
};
use serde_json::{Map, Value};

/// What leaving a keyword out means.
pub(crate) enum Class {
    /// About the schema itself: nobody misses it.
    Meta,
    /// A hint that restricts nothing.
    Hint,
    /// A rule for values of these types; for all of them where the list is empty.
    Rule(&'static [&'static str]),
}

const NUMBERS: &[&str] = &["number", "integer"];

pub(crate) fn class(keyword: &str) -> Class {
    match keyword {
        "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$vocabulary" | "$comment" | "$defs"
        | "definitions" => Class::Meta,
        "minLength" | "maxLength" | "pattern" | "format" => Class::Rule(&["string"]),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Class::Rule(NUMBERS)
        }
        "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems"
        | "contains" | "minContains" | "maxContains" | "unevaluatedItems" => Class::Rule(&["array"]),
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies"
        | "unevaluatedProperties" => Class::Rule(&["object"]),
        "type" | "enum" | "const" | "not" | "if" | "then" | "else" | "anyOf" | "oneOf" | "allOf" | "$ref"
        | "$dynamicRef" | "$recursiveRef" => Class::Rule(&[]),
        _ => Class::Hint,
    }
}

/// The type that a schema without `type` is surely meant for.
pub(crate) fn meant_type(schema: &Map<String, Value>) -> Option<&'static str> {
    ["object", "array", "string", "number"].into_iter().find(|kind| {
        schema.keys().any(|key| match class(key) {
            Class::Rule(kinds) => kinds.first() == Some(kind),
            Class::Meta | Class::Hint => false,
        })
    })
}

/// The type of a value, in the words of JSON Schema.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The types that a value may have: those that the schema names, or those of its choices; `None` where it has neither.
pub(crate) fn types(schema: &Map<String, Value>) -> Option<Vec<String>> {
    let named = named_types(schema);
    let choices = match (schema.get("const"), schema.get("enum")) {
        (Some(one), _) => std::slice::from_ref(one),
        (None, Some(Value::Array(values))) => values,
        _ => &[],
    };
    match named {
        Some(mut named) => {
            // A type that no choice has is as good as not named.
            if named.iter().any(|kind| choices.iter().any(|value| fits(value, kind))) {
                named.retain(|kind| choices.iter().any(|value| fits(value, kind)));
            }
            Some(named)
        }
        None => {
            let mut kinds: Vec<String> = Vec::new();
            for value in choices {
                let kind = type_of(value);
                if !kinds.iter().any(|known| known == kind) {
                    kinds.push(kind.to_owned());
                }
            }
            (!kinds.is_empty()).then_some(kinds)
        }
    }
}

fn named_types(schema: &Map<String, Value>) -> Option<Vec<String>> {
    const ALL: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
    let named: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let mut known: Vec<String> = Vec::new();
    for kind in named {
        if ALL.contains(&kind) && !known.iter().any(|there| there == kind) {
            known.push(kind.to_owned());
        }
    }
    (!known.is_empty()).then_some(known)
}

/// Whether a value is of a type.
pub(crate) fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_number(),
        // To JSON Schema 1.0 is an integer.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        kind => type_of(value) == kind,
    }
}

/// Says what is lost with the keywords that were not carried over.
pub(crate) fn note_the_rest(
    schema: &Map<String, Value>,
    kinds: &[&str],
    carried: impl Fn(&str) -> bool,
    owner: &str,
    at: &str,
    notes: &mut Notes,
) {
    for (key, value) in schema {
        if carried(key) || says_nothing(key, value) {
            continue;
        }
        let why = || format!("{owner} has no `{key}`");
        match class(key) {
            Class::Meta => {}
            Class::Hint => notes.add(&child(at, key), Change::Dropped, format!("`{key}` is left out"), why()),
            Class::Rule(of) if of.is_empty() || of.iter().any(|kind| kinds.contains(kind)) => {
                notes.add(&child(at, key), Change::Loosened, format!("`{key}` is left out"), why());
            }
            Class::Rule(_) => {}
        }
    }
}

/// Whether a keyword with that value is as good as none.
fn says_nothing(key: &str, value: &Value) -> bool {
    match key {
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "additionalItems" => {
            *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty)
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => *value == Value::Bool(false),
        "minLength" | "minItems" | "minProperties" => value.as_u64() == Some(0),
        "required" | "examples" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    }
}

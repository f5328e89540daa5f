//! Guesses at what was meant.

use std::collections::HashMap;

use jsonschema::JsonType;
use jsonschema::error::TypeKind;
use serde_json::Value;

use super::show::{quoted, shown};
use haft_core::suggest::nearest;

/// What to do about a value of the wrong type.
pub(super) fn wrong_type(kind: &TypeKind, value: &Value) -> Option<String> {
    let wanted: Vec<JsonType> = match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(several) => several.iter().collect(),
    };
    let wants = |one: JsonType| wanted.contains(&one);
    match value {
        Value::String(text) => quoted_value(text, wants),
        Value::Number(number) if wants(JsonType::Integer) && number.is_f64() => {
            Some("write it without a fraction".to_owned())
        }
        Value::Number(_) | Value::Bool(_) if wants(JsonType::String) => {
            Some(format!("put it in quotes: {}", quoted(&value.to_string())))
        }
        Value::Number(_)
            if wants(JsonType::Boolean) && !wants(JsonType::Array) && !wants(JsonType::Object) =>
        {
            Some(TRUE_OR_FALSE.to_owned())
        }
        Value::Array(items) => match items.as_slice() {
            [only] if is_one_of(only, wants) => {
                Some(format!("write the item itself, not an array with it: {}", shown(only)))
            }
            _ => None,
        },
        one if wants(JsonType::Array) && !one.is_null() => Some(IN_AN_ARRAY.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

const TRUE_OR_FALSE: &str = "write true or false";
const IN_AN_ARRAY: &str = "put it in an array: [ … ]";

/// A hint for a string: perhaps its content was meant.
fn quoted_value(text: &str, wants: impl Fn(JsonType) -> bool) -> Option<String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(_)) if wants(JsonType::Array) => {
            Some("write the array itself, not a string with JSON in it".to_owned())
        }
        Ok(Value::Object(_)) if wants(JsonType::Object) => {
            Some("write the object itself, not a string with JSON in it".to_owned())
        }
        Ok(inner) if !inner.is_string() && is_one_of(&inner, &wants) => {
            Some(format!("write {} without quotes", shown(&inner)))
        }
        _ if wants(JsonType::Array) => Some(IN_AN_ARRAY.to_owned()),
        _ if wants(JsonType::Boolean) => {
            let words = ["true", "false", "yes", "no", "on", "off", "1", "0", "y", "n"];
            words.iter().any(|word| text.eq_ignore_ascii_case(word)).then(|| TRUE_OR_FALSE.to_owned())
        }
        _ => None,
    }
}

/// Whether a value has one of the types.
fn is_one_of(value: &Value, wants: impl Fn(JsonType) -> bool) -> bool {
    match value {
        Value::Null => wants(JsonType::Null),
        Value::Bool(_) => wants(JsonType::Boolean),
        Value::Number(number) => wants(JsonType::Number) || (wants(JsonType::Integer) && !number.is_f64()),
        Value::String(_) => wants(JsonType::String),
        Value::Array(_) => wants(JsonType::Array),
        Value::Object(_) => wants(JsonType::Object),
    }
}

/// The option that was probably meant.
pub(super) fn near_option(options: &[Value], value: &Value) -> Option<String> {
    let near = match value {
        Value::String(text) => match nearest(text, options.iter().filter_map(Value::as_str)) {
            Some(near) => Value::from(near),
            // The right value in quotes.
            None => options.iter().find(|option| !option.is_string() && option.to_string() == *text)?.clone(),
        },
        other => options.iter().find(|option| option.as_str() == Some(&other.to_string()))?.clone(),
    };
    Some(format!("did you mean {}?", shown(&near)))
}

/// Which two items of an array are equal.
pub(super) fn equal_items(array: &Value) -> String {
    let items = array.as_array().map_or(&[][..], Vec::as_slice);
    let mut first_at: HashMap<String, usize> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let written = match item.as_f64() {
            Some(number) => number.to_string(),
            None => item.to_string(),
        };
        if let Some(first) = first_at.insert(written, index) {
            return format!("{} twice, as items {first} and {index}", shown(item));
        }
    }
    "an item twice".to_owned()
}

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
        Value::String(text) => {
            let inner: Value = serde_json::from_str(text).ok()?;
            let fits = match &inner {
                Value::Null => wants(JsonType::Null),
                Value::Bool(_) => wants(JsonType::Boolean),
                Value::Number(number) => {
                    wants(JsonType::Number) || (wants(JsonType::Integer) && !number.is_f64())
                }
                Value::Array(_) if wants(JsonType::Array) => {
                    return Some("write the array itself, not a string with JSON in it".to_owned());
                }
                Value::Object(_) if wants(JsonType::Object) => {
                    return Some("write the object itself, not a string with JSON in it".to_owned());
                }
                _ => false,
            };
            fits.then(|| format!("write {} without quotes", shown(&inner)))
        }
        Value::Number(_) | Value::Bool(_) if wants(JsonType::String) => {
            Some(format!("put it in quotes: {}", quoted(&value.to_string())))
        }
        Value::Number(number) if wants(JsonType::Integer) && number.is_f64() => {
            Some("write it without a fraction".to_owned())
        }
        scalar if wants(JsonType::Array) && !scalar.is_null() => Some("put it in an array: [ … ]".to_owned()),
        _ => None,
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

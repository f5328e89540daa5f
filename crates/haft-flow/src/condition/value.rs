//! JSON values as CEL has them.

use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// Whole numbers are ints, whichever sign they have: an output that is 3 can be added to 1.
pub(super) fn from_json(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(on) => cel::Value::Bool(*on),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => cel::Value::Int(int),
            (None, Some(int)) => cel::Value::UInt(int),
            (None, None) => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(from_json).collect())),
        Value::Object(members) => {
            let members: HashMap<String, cel::Value> =
                members.iter().map(|(name, value)| (name.clone(), from_json(value))).collect();
            cel::Value::from(members)
        }
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &cel::Value) -> &'static str {
    match value {
        cel::Value::List(_) => "a list",
        cel::Value::Map(_) | cel::Value::Struct(_) => "a map",
        cel::Value::Int(_) | cel::Value::UInt(_) | cel::Value::Float(_) => "a number",
        cel::Value::String(_) => "a string",
        cel::Value::Bytes(_) => "bytes",
        cel::Value::Bool(_) => "a boolean",
        cel::Value::Null => "null",
        cel::Value::Function(..) | cel::Value::Opaque(_) => "something else",
    }
}

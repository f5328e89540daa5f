//! Gemini's `Schema`, read as JSON Schema.

use crate::schema::DEEPEST;
use serde_json::{Map, Value, json};

/// The schema in JSON Schema's words; `Err` where it is nested too deeply.
pub(super) fn read(schema: &Value, depth: usize) -> Result<Value, ()> {
    let Value::Object(schema) = schema else { return Ok(schema.clone()) };
    if depth > DEEPEST {
        return Err(());
    }
    let mut out = Map::new();
    for (key, value) in schema {
        let (key, value) = match (camel_case(key), value) {
            // Absent, as protocol buffers say it.
            (_, Value::Null) => continue,
            ("type", Value::String(kind)) if kind == "TYPE_UNSPECIFIED" => continue,
            ("type", Value::String(kind)) => ("type", kind.to_ascii_lowercase().into()),
            ("format", Value::String(format)) if format == "enum" => continue,
            ("nullable", _) => continue,
            ("propertyOrdering", _) => continue,
            ("example", example) => ("examples", json!([example])),
            ("properties", Value::Object(properties)) => {
                let properties: Result<Map<String, Value>, ()> = properties
                    .iter()
                    .map(|(name, property)| Ok((name.clone(), read(property, depth + 1)?)))
                    .collect();
                ("properties", properties?.into())
            }
            ("anyOf", Value::Array(branches)) => {
                let branches: Result<Vec<Value>, ()> =
                    branches.iter().map(|branch| read(branch, depth + 1)).collect();
                ("anyOf", branches?.into())
            }
            ("items", items) => ("items", read(items, depth + 1)?),
            // 64-bit numbers are texts in the JSON of protocol buffers.
            (
                key @ ("minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties"
                | "maxProperties"),
                Value::String(count),
            ) => (key, count.parse::<u64>().map_or_else(|_| value.clone(), Value::from)),
            (key, value) => (key, value.clone()),
        };
        out.insert(key.to_owned(), value);
    }
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        make_nullable(&mut out);
    }
    Ok(Value::Object(out))
}

/// Both spellings of protocol buffers are fine.
fn camel_case(key: &str) -> &str {
    match key {
        "any_of" => "anyOf",
        "min_items" => "minItems",
        "max_items" => "maxItems",
        "min_length" => "minLength",
        "max_length" => "maxLength",
        "min_properties" => "minProperties",
        "max_properties" => "maxProperties",
        "property_ordering" => "propertyOrdering",
        key => key,
    }
}

fn make_nullable(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
    } else if let Some(Value::String(kind)) = schema.get("type") {
        let types = json!([kind, "null"]);
        schema.insert("type".into(), types);
        if let Some(Value::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
}

//! JSON Schemas from Rust types.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

/// The schema of a type, self-contained, without what only costs a model's context.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let settings = settings.with_transform(RecursiveTransform(without_examples));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
    }
    schema
}

/// Examples in Rust are for those who write Rust, and links for those who read the documentation of the crate.
fn without_examples(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let end = text.find("```").unwrap_or(text.len());
        *text = text[..end].trim_end().replace("[`", "`").replace("`]", "`");
    }
}

/// The schema of an arguments type, and its description. Members that it does not name are refused: a misspelt
/// argument must not be ignored.
pub(crate) fn of_args<T: JsonSchema>() -> (Value, String) {
    let mut schema = of::<T>();
    let mut description = String::new();
    if let Some(schema) = schema.as_object_mut() {
        if let Some(Value::String(text)) = schema.remove("description") {
            description = text;
        }
        let closed = ["additionalProperties", "unevaluatedProperties", "oneOf", "anyOf", "allOf", "$ref"];
        if !closed.iter().any(|key| schema.contains_key(*key)) {
            schema.insert("additionalProperties".into(), Value::Bool(false));
        }
    }
    (schema, description)
}

//! How much of JSON Schema a definition uses.

use crate::keywords::each_schema;
use haft_core::ToolDefinition;
use serde_json::Value;

/// Keywords that check more than types, required members and choices. What is not here describes, or checks nothing.
const ADVANCED: [&str; 41] = [
    "$ref",
    "$defs",
    "$dynamicRef",
    "$recursiveRef",
    "definitions",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "contentSchema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "divisibleBy",
    "disallow",
    "extends",
];

/// The first keyword of a definition's schemas that says more than types, required members and choices, and in which of
/// them it is. Keywords that JSON Schema does not know check nothing, so they do not count.
///
/// ```
/// use haft_core::ToolDefinition;
/// let mut definition: ToolDefinition = serde_json::from_str(r#"{
///     "name": "count", "description": "Counts",
///     "parameters": {"properties": {"to": {"type": "integer"}}, "required": ["to"]}
/// }"#).unwrap();
/// assert_eq!(haft_schema::beyond_basic(&definition), None);
/// definition.output_schema = Some(serde_json::json!({"type": "integer", "minimum": 0}));
/// assert_eq!(haft_schema::beyond_basic(&definition), Some(("output schema", "minimum")));
/// ```
pub fn beyond_basic(definition: &ToolDefinition) -> Option<(&'static str, &'static str)> {
    let parameters = definition.parameters.to_schema();
    let schemas = [("parameters", Some(&parameters)), ("output schema", definition.output_schema.as_ref())];
    schemas.into_iter().find_map(|(place, schema)| {
        let mut found = None;
        each_schema(schema?, &mut |_, schema: &Value| {
            found = found.or_else(|| ADVANCED.into_iter().find(|keyword| schema.get(keyword).is_some()));
        });
        found.map(|keyword| (place, keyword))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_basic_and_what_is_not() {
        let basic = [
            json!({}),
            json!({"type": "object", "properties": {"minimum": {"type": "string"}}, "required": ["minimum"]}),
            json!({"properties": {"a": {"enum": ["anyOf", 1], "default": 1, "title": "A", "x-order": 3}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "object", "additionalProperties": false}}}}),
            json!({"properties": {"a": {"type": "string", "format": "date", "const": {"pattern": "x"}}}}),
        ];
        let advanced = [
            (json!({"properties": {"a": {"minimum": 1}}}), "minimum"),
            (json!({"properties": {"a": {"items": {"pattern": "x"}}}}), "pattern"),
            (json!({"properties": {"a": {"additionalProperties": {"anyOf": [true]}}}}), "anyOf"),
            (json!({"minProperties": 1}), "minProperties"),
            (json!({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": true}}), "$defs"),
        ];
        let cases = basic.into_iter().map(|schema| (schema, None));
        for (schema, expected) in cases.chain(advanced.map(|(schema, keyword)| (schema, Some(keyword)))) {
            let whole = json!({"name": "a", "description": "A", "parameters": schema});
            let mut definition: ToolDefinition = serde_json::from_value(whole).unwrap();
            let in_parameters = expected.map(|keyword| ("parameters", keyword));
            assert_eq!(beyond_basic(&definition), in_parameters, "{schema}");
            definition.parameters = ToolDefinition::new("a", "A").parameters;
            definition.output_schema = Some(schema.clone());
            assert_eq!(
                beyond_basic(&definition),
                expected.map(|keyword| ("output schema", keyword)),
                "{schema}"
            );
        }
    }
}

//! What takes a validator to see: whether a definition's schemas can be used, and whether its defaults satisfy them.

use haft_core::{DefinitionProblem, Parameters, ToolDefinition};
use serde_json::Value;

use crate::{BadSchema, Schema, check_defaults};

/// The problems that [`ToolDefinition::check`] cannot see: schemas that cannot be used, and defaults that do not
/// satisfy them.
///
/// ```
/// use haft_core::ToolDefinition;
/// let definition: ToolDefinition = serde_json::from_str(r#"{
///     "name": "list_directory", "description": "Lists a directory",
///     "parameters": [
///         {"name": "depth", "description": "How far", "type": "Integer", "default": 0, "schema": {"minimum": 1}}
///     ]
/// }"#).unwrap();
/// assert!(definition.check().is_empty());
/// let problems = haft_schema::check_definition(&definition);
/// assert_eq!(problems[0].to_string(), "parameters[0].default: expected at least 1, got 0; \
///     use a value that satisfies the schema beside it, or remove the default");
/// ```
pub fn check_definition(definition: &ToolDefinition) -> Vec<DefinitionProblem> {
    let mut problems = Vec::new();
    let mut check = |root: &str, schema: &Value| {
        if let Err(error) = Schema::compile(schema) {
            problems.push(unusable(definition, root, &error));
            return;
        }
        for (pointer, wrong) in check_defaults(schema) {
            problems.push(DefinitionProblem {
                place: place(definition, root, &pointer),
                problem: wrong,
                fix: "use a value that satisfies the schema beside it, or remove the default".to_owned(),
            });
        }
    };
    check("parameters", &definition.parameters.to_schema());
    if let Some(schema) = &definition.output_schema {
        check("outputSchema", schema);
    }
    if let Some(schema) = &definition.settings_schema {
        check("settingsSchema", schema);
    }
    problems
}

/// A schema that cannot be used, as a problem of its definition.
pub(crate) fn unusable(definition: &ToolDefinition, root: &str, error: &BadSchema) -> DefinitionProblem {
    DefinitionProblem {
        place: place(definition, root, &error.pointer),
        problem: format!("it is not a usable JSON Schema: {}", error.message),
        fix: "correct it; references must stay inside the schema".to_owned(),
    }
}

/// The field of the definition that a pointer into one of its schemas leads to.
fn place(definition: &ToolDefinition, root: &str, pointer: &str) -> String {
    let mut steps: Vec<String> =
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let mut place = root.to_owned();
    if let (Parameters::List(list), "parameters", [properties, name, ..]) =
        (&definition.parameters, root, steps.as_slice())
        && properties == "properties"
        && let Some(index) = list.iter().position(|parameter| parameter.name == *name)
    {
        place.push_str(&format!("[{index}]"));
        steps.drain(..2);
        // What the parameter says itself is beside its schema, the rest is in it.
        let own = ["type", "description", "default", "enum"];
        if !steps.first().is_some_and(|step| own.contains(&step.as_str())) {
            place.push_str(".schema");
        }
    }
    for step in steps {
        let plain = step.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
            && step.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '-');
        if plain {
            place.push('.');
            place.push_str(&step);
        } else if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) {
            place.push_str(&format!("[{step}]"));
        } else {
            place.push_str(&format!("[{}]", Value::from(step)));
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(changes: Value) -> ToolDefinition {
        let mut whole = json!({"name": "read_file", "description": "Reads a file"});
        for (field, value) in changes.as_object().unwrap() {
            whole[field] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn problems_are_named_where_the_author_wrote_them() {
        let list = |parameter: Value| {
            let mut whole = json!({"name": "b", "description": "B", "type": "String"});
            for (field, value) in parameter.as_object().unwrap() {
                whole[field] = value.clone();
            }
            json!({"parameters": [{"name": "a", "description": "A", "type": "String"}, whole]})
        };
        for (changes, expected, part) in [
            (json!({}), None, ""),
            (list(json!({"default": "x", "schema": {"minLength": 1}})), None, ""),
            (
                list(json!({"default": "", "schema": {"minLength": 1}})),
                Some("parameters[1].default"),
                "at least 1",
            ),
            (
                list(json!({"schema": {"minLength": "1"}})),
                Some("parameters[1].schema.minLength"),
                "not a usable JSON Schema",
            ),
            (
                list(json!({"schema": {"pattern": "("}})),
                Some("parameters[1].schema.pattern"),
                "regular expression",
            ),
            (
                list(json!({"type": "Array", "default": [1], "schema": {"items": {"type": "string"}}})),
                Some("parameters[1].default"),
                "/0: expected a string",
            ),
            (
                list(
                    json!({"type": "Object", "schema": {"properties": {"a b": {"anyOf": [{"type": "x"}]}}}}),
                ),
                Some("parameters[1].schema.properties[\"a b\"].anyOf[0].type"),
                "not a usable",
            ),
            (
                list(json!({"schema": {"$ref": "#/$defs/none"}})),
                Some("parameters[1].schema.$ref"),
                "not there",
            ),
            (
                json!({"parameters": {"properties": {"x": {"type": "integer", "default": "1"}}}}),
                Some("parameters.properties.x.default"),
                "expected an integer",
            ),
            (
                json!({"parameters": {"$ref": "https://example.com/x.json"}}),
                Some("parameters.$ref"),
                "not fetched",
            ),
            (json!({"outputSchema": {"type": "text"}}), Some("outputSchema.type"), "not a usable"),
            (
                json!({"outputSchema": {"type": "string", "default": 1}}),
                Some("outputSchema.default"),
                "expected a string",
            ),
            (json!({"outputSchema": true}), None, ""),
        ] {
            let found = check_definition(&definition(changes.clone()));
            let places: Vec<&str> = found.iter().map(|problem| problem.place.as_str()).collect();
            assert_eq!(places, expected.as_slice(), "{changes}");
            assert!(found.iter().all(|problem| problem.problem.contains(part)), "{changes}: {found:?}");
        }
    }
}

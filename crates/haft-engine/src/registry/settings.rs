//! What a tool is configured with: what can be tightened on every tool, and what the tool itself has.

use super::RegisterError;
use haft_core::{Tightening, ToolDefinition, suggest};
use haft_schema::Schema;
use haft_sdk::Tool;
use serde_json::{Map, Value};

/// Looks at settings before they count, and gives what they tighten.
pub(super) fn check(tool: &dyn Tool, settings: &Map<String, Value>) -> Result<Tightening, RegisterError> {
    checked(tool.definition(), tool.works_in_jail(), settings)
}

fn checked(
    written: &ToolDefinition,
    works_in_jail: bool,
    settings: &Map<String, Value>,
) -> Result<Tightening, RegisterError> {
    let bad = |problem: String| RegisterError::BadSetting { name: written.name.clone(), problem };
    let tightening = Tightening::read(settings, written, works_in_jail).map_err(bad)?;
    let is_own = |key: &str| !Tightening::KEYS.contains(&key);
    let own: Map<String, Value> = settings
        .iter()
        .filter(|(key, _)| is_own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let known = known(written);
    if let Some(unknown) = own.keys().find(|key| !is_open(written) && !known.contains(&key.as_str())) {
        let near = suggest::nearest(unknown, known.iter().copied());
        let near = near.map(|near| format!(". Did you mean `{near}`?")).unwrap_or_default();
        return Err(bad(format!("it has no setting `{unknown}`, only {}{near}", known.join(", "))));
    }
    let Some(schema) = &written.settings_schema else { return Ok(tightening) };
    let schema = Schema::compile(schema).map_err(|error| bad(error.message))?;
    let own = Value::Object(own);
    match schema.is_valid(&own) {
        true => Ok(tightening),
        false => Err(bad(schema.explain(&own).0)),
    }
}

/// The settings that a tool has, by name.
fn known(written: &ToolDefinition) -> Vec<&str> {
    let own = written.settings_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    own.into_iter().flat_map(|own| own.keys().map(String::as_str)).chain(Tightening::KEYS).collect()
}

/// Whether a tool says itself that it takes settings of any name.
fn is_open(written: &ToolDefinition) -> bool {
    let more = |schema: &Value| {
        schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
            || schema.get("patternProperties").is_some()
    };
    written.settings_schema.as_ref().is_some_and(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_has_the_settings_that_it_says_and_those_of_every_tool() {
        let mut written = ToolDefinition::new("greet", "Greets");
        let said = |written: &ToolDefinition, settings: Value| {
            checked(written, false, settings.as_object().unwrap())
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        assert!(said(&written, json!({"maxOutputSize": 10})).is_ok());
        let refused = said(&written, json!({"depth": 3})).unwrap_err();
        assert!(
            refused.contains("`greet` cannot be set up so: it has no setting `depth`, only tier,"),
            "{refused}"
        );
        let refused = said(&written, json!({"maxOutputSiz": 3})).unwrap_err();
        assert!(refused.contains("Did you mean `maxOutputSize`?"), "{refused}");
        written.settings_schema =
            Some(json!({"type": "object", "properties": {"depth": {"type": "integer"}}}));
        assert!(said(&written, json!({"depth": 3, "tier": "Teams"})).is_ok());
        assert!(said(&written, json!({"depth": "deep"})).unwrap_err().contains("depth"));
        assert!(said(&written, json!({"width": 3})).is_err());
        written.settings_schema = Some(json!({"type": "object", "additionalProperties": {"type": "string"}}));
        assert!(said(&written, json!({"width": "x"})).is_ok());
        assert!(said(&written, json!({"width": 3})).is_err());
    }
}

//! The schemas of a tool, ready to be used.

use haft_core::{DefinitionProblem, Problem, ToolDefinition, suggest};
use haft_schema::{BadSchema, Defaults, Schema};
use serde_json::{Map, Value};

fn problem(place: &str, error: &BadSchema) -> DefinitionProblem {
    DefinitionProblem {
        place: place.to_owned(),
        problem: format!("it is not a usable JSON Schema ({error})"),
        fix: "correct it; references must stay inside the schema".to_owned(),
    }
}

/// What a tool takes.
pub(crate) struct ArgumentSchema {
    source: Value,
    schema: Schema,
    defaults: Defaults,
}

impl ArgumentSchema {
    pub(crate) fn new(definition: &ToolDefinition) -> Result<Self, DefinitionProblem> {
        let source = definition.parameters.to_schema();
        let schema = Schema::compile(&source).map_err(|error| problem("parameters", &error))?;
        Ok(ArgumentSchema { defaults: Defaults::of(&source), schema, source })
    }

    /// Coercion where asked for, then defaults, then the schema. Gives the pointers of what was coerced.
    pub(crate) fn check(
        &self,
        mut arguments: Map<String, Value>,
        coerce: bool,
    ) -> Result<(Map<String, Value>, Vec<String>), (String, Vec<Problem>)> {
        let coerced = if coerce { haft_schema::coerce(&self.source, &mut arguments) } else { Vec::new() };
        self.defaults.apply(&mut arguments);
        let value = Value::Object(arguments);
        if !self.schema.is_valid(&value) {
            let (mut sentence, problems) = self.schema.explain(&value);
            if let Some(hint) = self.misspelt(&value) {
                sentence.push_str(&hint);
            }
            return Err((sentence, problems));
        }
        match value {
            Value::Object(arguments) => Ok((arguments, coerced)),
            // It was made from a map three lines above.
            _ => Ok((Map::new(), coerced)),
        }
    }

    fn misspelt(&self, value: &Value) -> Option<String> {
        let known = self.source.get("properties")?.as_object()?;
        let unknown = value.as_object()?.keys().find(|key| !known.contains_key(*key))?;
        let near = suggest::nearest(unknown, known.keys().map(String::as_str))?;
        Some(format!(". Did you mean \"{near}\" instead of \"{unknown}\"?"))
    }
}

/// What a tool gives.
pub(crate) struct OutputSchema(Schema);

impl OutputSchema {
    pub(crate) fn new(definition: &ToolDefinition) -> Result<Option<Self>, DefinitionProblem> {
        let Some(source) = &definition.output_schema else {
            return Ok(None);
        };
        Schema::compile(source).map(OutputSchema).map(Some).map_err(|error| problem("outputSchema", &error))
    }

    pub(crate) fn check(&self, output: &Value) -> Result<(), (String, Vec<Problem>)> {
        if self.0.is_valid(output) { Ok(()) } else { Err(self.0.explain(output)) }
    }
}

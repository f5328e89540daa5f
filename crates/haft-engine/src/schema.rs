//! The schemas of a tool. Compiled once, when the tool is first called: of thousands of tools most never are, and a
//! compiled schema is many times as large as its text.

use haft_core::{DefinitionProblem, ErrorCode, Problem, ToolDefinition, ToolError};
use haft_schema::{BadSchema, Defaults, Schema};
use serde_json::{Map, Value};
use std::sync::OnceLock;

fn problem(place: &str, error: &BadSchema) -> DefinitionProblem {
    DefinitionProblem {
        place: place.to_owned(),
        problem: format!("it is not a usable JSON Schema ({error})"),
        fix: "correct it; references must stay inside the schema".to_owned(),
    }
}

/// It compiled when the tool was registered, so this says something about the machine, not about the schema.
fn no_longer(error: &BadSchema) -> ToolError {
    ToolError::new(ErrorCode::BadDefinition, "The tool's schema cannot be used").with_diagnostics(error)
}

/// What a tool takes.
#[derive(Default)]
pub(crate) struct ArgumentSchema(OnceLock<Box<Result<Arguments, BadSchema>>>);

struct Arguments {
    source: Value,
    schema: Schema,
    defaults: Defaults,
}

impl Arguments {
    fn of(definition: &ToolDefinition) -> Result<Self, BadSchema> {
        let source = definition.parameters.to_schema();
        Ok(Arguments { schema: Schema::compile(&source)?, defaults: Defaults::of(&source), source })
    }
}

/// Arguments that fit, and the pointers of those that were coerced.
pub(crate) type Fitting = (Map<String, Value>, Vec<String>);

impl ArgumentSchema {
    /// What is wrong with the schema, if anything.
    pub(crate) fn check_definition(definition: &ToolDefinition) -> Option<DefinitionProblem> {
        Arguments::of(definition).err().map(|error| problem("parameters", &error))
    }

    /// Coercion where asked for, then defaults, then the schema.
    pub(crate) fn check(
        &self,
        definition: &ToolDefinition,
        mut arguments: Map<String, Value>,
        coerce: bool,
    ) -> Result<Fitting, ToolError> {
        let compiled = self.0.get_or_init(|| Box::new(Arguments::of(definition)));
        let Arguments { source, schema, defaults } = (**compiled).as_ref().map_err(no_longer)?;
        let coerced = if coerce { haft_schema::coerce(source, &mut arguments) } else { Vec::new() };
        defaults.apply(&mut arguments);
        let value = Value::Object(arguments);
        if !schema.is_valid(&value) {
            return Err(bad_args(schema.explain(&value)));
        }
        match value {
            Value::Object(arguments) => Ok((arguments, coerced)),
            // It was made from a map a few lines above.
            _ => Ok((Map::new(), coerced)),
        }
    }
}

fn bad_args((sentence, problems): (String, Vec<Problem>)) -> ToolError {
    ToolError::new(ErrorCode::ValidationFailed, format!("Bad args: {sentence}")).with_problems(problems)
}

/// What a tool gives.
#[derive(Default)]
pub(crate) struct OutputSchema(OnceLock<Box<Result<Schema, BadSchema>>>);

impl OutputSchema {
    /// What is wrong with the schema, if anything.
    pub(crate) fn check_definition(definition: &ToolDefinition) -> Option<DefinitionProblem> {
        let schema = definition.output_schema.as_ref()?;
        Schema::compile(schema).err().map(|error| problem("outputSchema", &error))
    }

    /// A value that does not fit the tool's own schema is not passed on. One without a schema always fits.
    pub(crate) fn check(&self, definition: &ToolDefinition, output: &Value) -> Result<(), ToolError> {
        let Some(source) = &definition.output_schema else { return Ok(()) };
        let compiled = self.0.get_or_init(|| Box::new(Schema::compile(source)));
        let schema = (**compiled).as_ref().map_err(no_longer)?;
        if schema.is_valid(output) {
            return Ok(());
        }
        // The words quote what is there, and what was refused must not be passed on in them.
        let (sentence, _) = schema.explain(output);
        Err(ToolError::from(ErrorCode::OutputValidationFailed).with_diagnostics(sentence))
    }
}

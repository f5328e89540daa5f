//! The schemas of a tool. Compiled once, when the tool is first called: of thousands of tools most never are, and a
//! compiled schema is as large as its text again.

use haft_core::{DefinitionProblem, ErrorCode, ToolDefinition, ToolError};
use haft_schema::{ArgumentSchema, BadSchema, Coercion, Fitting, Schema};
use serde_json::{Map, Value};
use std::{fmt, sync::OnceLock};

/// It compiled when the tool was registered, so this says something about the machine, not about the schema.
fn no_longer(error: &impl fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::BadDefinition, "The tool's schema cannot be used").with_diagnostics(error)
}

/// What a tool takes.
#[derive(Default)]
pub(crate) struct Arguments(OnceLock<Box<Result<ArgumentSchema, DefinitionProblem>>>);

impl Arguments {
    /// Coercion where asked for, then defaults, then the schema.
    pub(crate) fn check(
        &self,
        definition: &ToolDefinition,
        arguments: Map<String, Value>,
        coercion: Coercion,
    ) -> Result<Fitting, ToolError> {
        let compiled = self.0.get_or_init(|| Box::new(ArgumentSchema::of(definition)));
        let schema = (**compiled).as_ref().map_err(no_longer)?;
        schema.check(arguments, coercion).map_err(|unfit| {
            ToolError::new(ErrorCode::ValidationFailed, format!("Bad args: {}", unfit.sentence))
                .with_problems(unfit.problems)
        })
    }
}

/// What a tool gives.
#[derive(Default)]
pub(crate) struct Output(OnceLock<Box<Result<Schema, BadSchema>>>);

impl Output {
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

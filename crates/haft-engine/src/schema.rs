//! The schemas of a tool. Compiled once, when the tool is first called: of thousands of tools most never are, and a
//! compiled schema is as large as its text again.

use haft_core::{DefinitionProblem, ErrorCode, Problem, ToolDefinition, ToolError};
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
        // The words quote what is there, and what was refused must not be passed on in them: the places are.
        let (sentence, problems) = schema.explain(output);
        let names = source.to_string();
        let place = |problem: Problem| {
            let message = format!("does not fit `{}` of the output schema", problem.rule);
            Problem::new(named(&problem.pointer, &names), problem.rule, message)
        };
        Err(ToolError::from(ErrorCode::OutputValidationFailed)
            .with_problems(problems.into_iter().map(place).collect())
            .with_diagnostics(sentence))
    }

    /// Words alone are an answer where the schema allows a text.
    pub(crate) fn check_text(&self, definition: &ToolDefinition, text: &str) -> Result<(), ToolError> {
        let said = Value::String(text.to_owned());
        self.check(definition, &said).map_err(|error| {
            let text = format!(
                "{} gave text alone, and its output schema describes something else",
                definition.name
            );
            ToolError { message: text, ..error }
        })
    }
}

/// A pointer with those names that the schema has, too; any other name came with the value, and is a star.
fn named(pointer: &str, schema: &str) -> String {
    let is_known = |step: &str| {
        step.bytes().all(|byte| byte.is_ascii_digit()) || schema.contains(&format!("\"{step}\":"))
    };
    pointer.split('/').map(|step| if is_known(step) { step } else { "*" }).collect::<Vec<_>>().join("/")
}

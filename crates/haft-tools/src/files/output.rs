//! What a file tool gives back.

use haft_core::{ToolError, ToolOutput};
use haft_sdk::{IntoToolOutput, Json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A structured value with the text for a model, which may be one that must not be cut.
#[derive(Clone, Debug)]
pub struct Told<T> {
    pub(super) value: T,
    pub(super) text: String,
    /// The tool kept the text within the limit itself: cutting it would break it.
    pub(super) keep_whole: bool,
}

/// A result that becomes JSON.
pub trait IntoValue {
    /// The JSON of it, in which long texts are moved rather than copied.
    fn into_value(self) -> serde_json::Result<Value>;
}

impl<T: IntoValue + Serialize + JsonSchema + Send> IntoToolOutput for Told<T> {
    fn output_schema() -> Option<Value> {
        <Json<T> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let value = self.value.into_value().map_err(|error| {
            ToolError::failed("the result cannot be written as JSON").with_diagnostics(error)
        })?;
        Ok(ToolOutput {
            text: Some(self.text),
            structured: Some(value),
            keep_whole: self.keep_whole,
            ..ToolOutput::default()
        })
    }
}

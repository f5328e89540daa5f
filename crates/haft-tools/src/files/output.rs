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

impl<T: Serialize + JsonSchema + Send> IntoToolOutput for Told<T> {
    fn output_schema() -> Option<Value> {
        <Json<T> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let mut output = Json(self.value).into_tool_output()?;
        output.text = Some(self.text);
        output.keep_whole = self.keep_whole;
        Ok(output)
    }
}

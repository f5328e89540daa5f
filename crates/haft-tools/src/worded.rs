//! A value together with the words for it.

use haft_core::{ToolError, ToolOutput};
use haft_sdk::{IntoToolOutput, Json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Structured output whose text is written for its reader instead of being the same JSON again.
pub struct Worded<T> {
    pub(crate) value: T,
    pub(crate) text: String,
}

impl<T: Serialize + JsonSchema + Send> IntoToolOutput for Worded<T> {
    fn output_schema() -> Option<Value> {
        <Json<T> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let mut output = Json(self.value).into_tool_output()?;
        output.text = Some(self.text);
        Ok(output)
    }
}

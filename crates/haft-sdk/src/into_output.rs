//! What a tool's function may return.

use haft_core::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Anything that a tool's function may return.
///
/// ```
/// use haft_sdk::IntoToolOutput;
/// assert_eq!("done".into_tool_output().unwrap().text.as_deref(), Some("done"));
/// assert_eq!(42_i64.into_tool_output().unwrap().structured, Some(42.into()));
/// ```
pub trait IntoToolOutput: Send {
    /// The JSON Schema of the structured value, where there is one.
    fn output_schema() -> Option<Value> {
        None
    }

    /// The output.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for &'static str {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

macro_rules! scalar {
    ($($kind:ty => $word:literal),*) => {$(
        impl IntoToolOutput for $kind {
            fn output_schema() -> Option<Value> {
                Some(serde_json::json!({"type": $word}))
            }

            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::structured(self.into()))
            }
        }
    )*};
}
scalar!(bool => "boolean", i32 => "integer", i64 => "integer", u32 => "integer", u64 => "integer", f64 => "number");

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::structured(self))
    }
}

/// A value of one's own as structured output; its type gives the output schema.
///
/// ```
/// use haft_sdk::{IntoToolOutput, Json};
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Count { words: usize }
/// let output = Json(Count { words: 3 }).into_tool_output().unwrap();
/// assert_eq!(output.structured, Some(serde_json::json!({"words": 3})));
/// ```
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + Send> IntoToolOutput for Json<T> {
    fn output_schema() -> Option<Value> {
        Some(crate::schema::of::<T>())
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        serde_json::to_value(self.0).map(ToolOutput::structured).map_err(|error| {
            ToolError::failed("the tool's output cannot be written as JSON").with_diagnostics(error)
        })
    }
}

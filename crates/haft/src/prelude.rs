//! What a program that embeds haft needs: `use haft::prelude::*;`.
//!
//! ```
//! use haft::prelude::*;
//! let call = ToolCall::new("get_metrics", json!({}));
//! assert_eq!(&*call.name, "get_metrics");
//! ```

pub use crate::{
    BatchOptions, BatchRequest, CallOptions, Decision, ErrorCode, Haft, Json, Request, Status, ToolCall,
    ToolCtx, ToolDefinition, ToolError, ToolOutput, ToolResult, TypedTool, tool_fn, typed,
};
pub use schemars::{self, JsonSchema};
pub use serde::{Deserialize, Serialize};
pub use serde_json::json;

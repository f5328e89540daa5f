//! What one needs to write a tool.
//!
//! A tool is a struct for its arguments, with a doc comment for each, and one async function:
//!
//! ```
//! use haft_sdk::{ToolCtx, ToolError, tool_fn};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! /// Adds two whole numbers.
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: i64,
//!     /// The second number.
//!     b: i64,
//! }
//!
//! async fn add(args: Add, _cx: ToolCtx) -> Result<i64, ToolError> {
//!     Ok(args.a + args.b)
//! }
//!
//! let tool = tool_fn("add", add).read_only();
//! # use haft_sdk::Tool;
//! assert_eq!(tool.definition().description, "Adds two whole numbers.");
//! ```
//!
//! A tool with state implements [`TypedTool`]; one that needs full control implements [`Tool`].
//! Files, programs and the network are reached only through the [`ToolCtx`].

mod blocking;
mod bytes_as_text;
mod cancel;
pub mod capability;
mod ctx;
pub mod files;
mod function;
mod into_output;
mod metered;
mod passed_on;
mod schema;
pub mod testing;
mod tool;
mod typed;

pub use cancel::{Cancel, CancelReason};
pub use ctx::{CallHost, ToolCtx};
pub use function::{FnTool, tool_fn};
pub use haft_core::{Footprint, OutputStream, Resource, ToolDefinition, ToolError, ToolOutput};
pub use into_output::{IntoToolOutput, Json};
pub use passed_on::PassedOn;
pub use tool::{Args, Prepared, Tool, ToolFuture};
pub use typed::{Typed, TypedTool, typed, typed_with};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

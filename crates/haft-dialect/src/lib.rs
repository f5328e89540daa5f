//! Tools in the words of others: definitions exported for OpenAI (Chat Completions and Responses), Anthropic, Gemini
//! and MCP, and lists in those shapes imported.
//!
//! ```
//! use haft_core::{Parameters, Source, ToolDefinition};
//! use haft_dialect::{Dialect, export, import};
//! use serde_json::json;
//!
//! let mut read = ToolDefinition::new("read_file", "Reads a file");
//! read.parameters = Parameters::Schema(json!({
//!     "type": "object",
//!     "properties": {"path": {"type": "string"}},
//!     "required": ["path"],
//! }));
//! let chat = export(Dialect::OpenAiChat, [&read]);
//! assert!(chat.remarks.is_empty(), "nothing had to change");
//!
//! let back = import(&chat.to_value())?;
//! assert_eq!(back.definitions[0].name, "read_file");
//! assert_eq!(back.definitions[0].parameters, read.parameters);
//! assert_eq!(back.definitions[0].source, Source::Declared);
//! # Ok::<(), haft_dialect::ImportError>(())
//! ```
//!
//! # What a dialect cannot say
//!
//! A definition holds a JSON Schema 2020-12, and haft checks every call against it, whatever a model was told. What a
//! dialect cannot say is said as near as it can be, and each change is a [`Remark`]: of which tool, where, what, why. A
//! tool is left out only where it has no form at all in the dialect: one such tool would make a provider turn the whole
//! request away. A tool without a remark is told in full.
//!
//! What a dialect has no place for is left out without a remark: title, annotations and the schema of the output
//! everywhere but in MCP; `$schema`, `$id`, `$comment` and, once references are put in place, `$defs` in Gemini and in
//! strict mode.
//!
//! | dialect | name | parameters |
//! |---|---|---|
//! | `openai-chat`, `openai-responses` | 64 of `a-z A-Z 0-9 _ -` | the top is an object without `$ref`, `allOf`, `anyOf`, `oneOf`, `enum`, `const`, `not`; lists have `items`; schemas are objects. Descriptions have 1024 characters. Responses get `strict` always, since absent means true there |
//! | the same, [strict](ExportOptions::strict) | | all properties required (absent is null), no others; references in place; `anyOf` for `oneOf`; only keywords that the decoder knows; 10 levels, 5000 properties, 1000 choices |
//! | `anthropic` | 64 of `a-z A-Z 0-9 _ -` | the top is an object without `$ref`, `allOf`, `anyOf`, `oneOf`; parameter names have 64 of `a-z A-Z 0-9 _ . -` |
//! | `gemini` | 64 of `a-z A-Z 0-9 _ . -`, first a letter or `_` | the `Schema` of OpenAPI 3.0 in part: one type and `nullable`; `anyOf` alone; choices for texts only; references in place; no `additionalProperties`, `const`, `oneOf`, `allOf`, `not`, `multipleOf`, `uniqueItems`, `exclusiveMinimum`; parameter names have 64 of `a-z A-Z 0-9 _` |
//! | `mcp` | 128 of `a-z A-Z 0-9 _ . -` | the top is an object, the rest stays; the output is an object or is not told |
//!
//! haft's own names fit everywhere. Another one is changed to fit, with a fingerprint of the whole name at its end, so
//! that the same name is always changed in the same way; [`Export::name_back`] leads back. The same is done for
//! parameters, and [`Export::arguments_back`] leads back.
//!
//! # What is imported
//!
//! [`import()`] takes a list of tools, an object with one under `tools`, `functions` or `result`, or one tool. Each
//! tool may have any of the five shapes, or haft's own (`name`, `description`, `parameters`): the shape is told from
//! the tool, not from the list. Every definition that comes out passes
//! [`ToolDefinition::check`](haft_core::ToolDefinition::check).
//!
//! Names that haft does not take are turned into snake_case (`getUser` and `get-user` are `get_user`). The name that
//! was there is in the metadata as `originalName`; where haft takes it as an alias (letters, digits and underscores,
//! and no other tool has it), it is one, too. Two tools that would have the same name are an error, for nobody could
//! tell which one is called.
//!
//! Hints of an MCP server are not believed: `destructiveHint` and `openWorldHint` become annotations, `readOnlyHint`
//! and `idempotentHint` stay in the metadata under `hints`. A tool that is imported has side effects until its owner
//! says otherwise.
#![forbid(unsafe_code)]

mod back;
mod dialect;
mod export;
mod import;
mod name;
mod remark;
mod schema;
mod write;

pub use dialect::{Dialect, UnknownDialect};
pub use export::{Export, ExportOptions, export, export_with};
pub use import::{Import, ImportError, ImportProblem, import};
pub use remark::{Change, Remark};

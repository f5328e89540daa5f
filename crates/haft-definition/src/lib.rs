//! Tool definitions in files: JSON (`x.tool.json`) and TOML (`x.tool.toml`), with the same fields.
//!
//! ```toml
//! name = "word_count"
//! description = "Count the words of a text"
//! category = "System"
//!
//! [constraints]
//! maxExecutionTime = "PT10S"
//! allowSideEffects = false
//!
//! [[parameters]]
//! name = "text"
//! description = "The text"
//! type = "String"
//! required = true
//! ```
//!
//! Reading is strict: a field that is not known, or there twice, is refused with its line and column, and with what was
//! probably meant. Fields may be spelled in camelCase, as the JSON form has them, or in snake_case. `parameters` is a
//! list of parameters or a JSON Schema. What TOML cannot say (`null`, integers above 2⁶³) is written
//! `{ "$json" = "null" }`, in any place.
//!
//! [`read`] gives a definition that is well-formed, [`check`] tells which rules it breaks, and [`read_checked`] does
//! both and says where in the text. [`FILE_SCHEMA`] is the JSON Schema of such files, for editors.
#![forbid(unsafe_code)]

mod check;
mod document;
mod error;
mod format;
mod json_tree;
mod read;
mod several;
mod spelling;
mod toml_tree;
mod tree;
mod write;

pub use check::{check, locate, read_checked};
pub use document::Document;
pub use error::{Position, ReadError, ReadErrors};
pub use format::{Format, read_file_name_format};
/// What a person should know about the schemas of a definition, such as the draft that they were written in.
pub use haft_schema::dialect_notes;
pub use read::{FILE_SCHEMA, read};
pub use several::read_all_checked;
pub use write::write;

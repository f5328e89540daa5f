//! JSON Schema 2020-12, the one dialect (older drafts are converted to it), through one entry: compiled once, problems in words that a model can act on, defaults, and
//! coercion that loses nothing.
//!
//! References to other documents are never fetched, from the network or from the disk. What a schema may cost is
//! bounded before it runs (`shape`) and while it runs (`metered`): a schema can come from a model, too.

mod arguments;
mod bounds;
mod check_defaults;
mod checker;
mod coerce;
mod compile;
mod defaults;
mod definition;
mod dialect;
mod documents;
mod keywords;
mod level;
mod local;
mod metered;
mod options;
mod place;
pub mod pointer;
mod schema;
mod shape;
mod trouble;
pub mod words;

pub use arguments::{ArgumentSchema, Coercion, Fitting, Unfit};
pub use check_defaults::check_defaults;
pub use checker::{Checked, Checker};
pub use coerce::coerce;
pub use defaults::Defaults;
pub use definition::check_definition;
pub use dialect::{Converted, Draft, Unconvertible, dialect_notes, to_2020_12};
pub use documents::Documents;
pub use level::beyond_basic;
pub use options::{Formats, Options};
pub use schema::Schema;
pub use trouble::BadSchema;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

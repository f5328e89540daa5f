//! JSON Schema 2020-12, through one entry: compiled once, problems in words that a model can act on, defaults, and
//! coercion that loses nothing.
//!
//! References to other documents are never fetched, from the network or from the disk. What a schema may cost is
//! bounded before it runs (`shape`) and while it runs (`metered`): a schema can come from a model, too.

mod checker;
mod coerce;
mod defaults;
mod metered;
pub mod pointer;
mod schema;
mod shape;
pub mod words;

pub use checker::{BadSchema, Checked, Checker};
pub use coerce::coerce;
pub use defaults::Defaults;
pub use schema::Schema;

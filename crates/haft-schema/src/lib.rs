//! JSON Schema 2020-12, through one entry: compiled once, problems in words that a model can act on, defaults, and
//! coercion that loses nothing.
//!
//! References to other documents are never fetched, from the network or from the disk.

mod coerce;
mod defaults;
mod schema;
pub mod words;

pub use coerce::coerce;
pub use defaults::Defaults;
pub use schema::{BadSchema, Schema};

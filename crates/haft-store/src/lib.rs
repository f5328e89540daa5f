//! Memory: what was about to happen, what happened, and what was put out.
//!
//! [`MemoryStore`] is just that: it forgets everything when the process ends, and says so by its name.

mod memory;

pub use memory::{MemoryStore, Retention};

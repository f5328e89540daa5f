//! Memory: what was about to happen, what happened, what was put out, and which tools were added.
//!
//! [`MemoryStore`] is just that: it forgets everything when the process ends, and says so by its name.
//! [`FileRegistrations`] lasts: it keeps what is known about tools in one file.

mod memory;
pub mod private_file;
mod reads;
mod registrations;

pub use memory::{MemoryStore, Retention};
pub use reads::{FileReadHashes, MemoryReadHashes};
pub use registrations::FileRegistrations;

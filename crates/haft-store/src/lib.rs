//! Memory: what was about to happen, what happened, what was put out, and which tools were added.
//!
//! [`MemoryStore`] is just that: it forgets everything when the process ends, and says so by its name.
#![cfg_attr(
    feature = "sql",
    doc = "[`DurableStore`] does not: a journal that a crash cannot confuse, an audit that cannot be quietly"
)]
#![cfg_attr(
    feature = "sql",
    doc = "changed, outputs behind handles, on SQLite (feature `sqlite`) or PostgreSQL (feature `postgres`)."
)]
//! [`FileRegistrations`] lasts: it keeps what is known about tools in one file.

#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod failpoint;
#[cfg(all(feature = "sql", not(feature = "failpoints")))]
mod failpoint;
mod lines;
mod memory;
mod memory_approvals;
mod memory_changes;
mod memory_keys;
mod memory_tasks;
pub mod private_file;
mod reads;
mod registrations;
#[cfg(feature = "sql")]
mod sql;
mod state_folder;

pub use memory::{MemoryStore, Retention};
pub use memory_keys::MemoryKeys;
pub use reads::{FileReadHashes, MemoryReadHashes};
pub use registrations::FileRegistrations;
#[cfg(feature = "sql")]
pub use registrations::ImportedTools;
#[cfg(feature = "postgres")]
pub use sql::PostgresPlace;
#[cfg(feature = "sqlite")]
pub use sql::sqlite_exists;
#[cfg(feature = "sql")]
pub use sql::{
    Archived, AuditHead, Bad, Durability, DurableStore, ExportFormat, Gone, Happened, HeadSink, Keep,
    NotLetIn, Options, RetentionRule, Tenant, Verified,
};
pub use state_folder::{StateFolderError, check_only_name, check_state_folder};

//! The durable store, on SQLite or PostgreSQL. The logic is written once, against [`value::Sql`].

mod approvals;
mod archive;
mod audit;
mod chain;
mod changes;
mod claims;
mod gc;
mod happened;
mod history;
mod instances;
mod journal;
mod keys;
mod migrations;
mod open;
mod options;
mod outputs;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_open;
#[cfg(feature = "postgres")]
mod postgres_tls;
mod projection;
mod readers;
mod record;
mod recovery;
mod registrations;
mod running;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_open;
mod store;
mod tasks;
mod tenant;
mod tool_shelf;
mod value;
mod verify;
mod work;
mod writer;

pub use archive::{Archived, RetentionRule};
pub use audit::{Bad, ExportFormat, Verified};
pub use gc::Gone;
pub use happened::{Happened, NotLetIn};
pub use options::{AuditHead, Durability, HeadSink, Keep, Options};
#[cfg(feature = "postgres")]
pub use postgres_open::PostgresPlace;
#[cfg(feature = "sqlite")]
pub use sqlite_open::sqlite_exists;
pub use store::DurableStore;
pub use tenant::Tenant;

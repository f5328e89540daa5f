//! The durable store, on SQLite or PostgreSQL. The logic is written once, against [`value::Sql`].

mod approvals;
mod chain;
mod claims;
mod failpoint;
mod gc;
mod history;
mod instances;
mod journal;
mod migrations;
mod open;
mod options;
mod outputs;
mod projection;
mod readers;
mod record;
mod recovery;
mod registrations;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_open;
mod store;
mod tenant;
mod value;
mod work;
mod writer;

pub use approvals::{Grant, Question, QuestionState};
pub use gc::Gone;
pub use options::{AuditHead, Durability, HeadSink, Keep, Options};
pub use store::DurableStore;
pub use tenant::Tenant;

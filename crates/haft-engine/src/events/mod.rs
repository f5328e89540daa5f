//! What happens to a call while it runs, for those who watch it: its events, and what its tool puts out.

mod feed;
mod log;
mod spool;

pub(crate) use feed::Feeds;
pub use feed::{EventPosition, EventStream, NoPosition};
pub use log::Observer;
pub(crate) use log::{EventLog, Logged, Source};
pub(crate) use spool::{Redactors, Spool};

//! The calls of an engine that somebody may ask about: those that run, those that ended lately, and what is counted of
//! them.

mod awaiting;
mod executions;

pub(crate) use awaiting::AwaitingResults;
pub use awaiting::{PendingCall, SubmitError};
pub(crate) use executions::Executions;

use crate::metrics::Counters;

/// What the end of a call has to be told to.
pub(crate) struct LiveCalls {
    pub(crate) executions: Executions,
    pub(crate) awaiting: AwaitingResults,
    pub(crate) counters: Counters,
}

impl LiveCalls {
    pub(crate) fn new(keep_ended: usize) -> Self {
        LiveCalls {
            executions: Executions::new(keep_ended),
            awaiting: AwaitingResults::default(),
            counters: Counters::default(),
        }
    }
}

//! How a tool learns that it is to stop.

use std::sync::{
    OnceLock,
    atomic::{AtomicU8, Ordering},
};
use tokio::sync::Notify;

/// Who ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CancelReason {
    /// A person, or the program that made the call.
    User = 1,
    /// The batch, flow or sandbox around it ended.
    Parent = 2,
    /// haft stops.
    Shutdown = 3,
    /// The caller went away without waiting for the result.
    Abandoned = 4,
    /// The deadline passed.
    Deadline = 5,
}

impl CancelReason {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => CancelReason::User,
            2 => CancelReason::Parent,
            3 => CancelReason::Shutdown,
            4 => CancelReason::Abandoned,
            5 => CancelReason::Deadline,
            _ => return None,
        })
    }

    /// What a model is told.
    ///
    /// ```
    /// assert_eq!(haft_sdk::CancelReason::User.model_text(), "Cancelled by user");
    /// ```
    pub const fn model_text(self) -> &'static str {
        match self {
            CancelReason::User => "Cancelled by user",
            CancelReason::Parent => "Cancelled, because what it was part of ended",
            CancelReason::Shutdown => "Cancelled, because haft is shutting down",
            CancelReason::Abandoned => "Cancelled, because the caller did not wait for the result",
            CancelReason::Deadline => "Cancelled, because the deadline passed",
        }
    }
}

/// A switch that goes one way: from running to cancelled, once, with a reason.
///
/// ```
/// use haft_sdk::{Cancel, CancelReason};
/// let cancel = Cancel::new();
/// assert!(cancel.cancel(CancelReason::User, None));
/// assert!(!cancel.cancel(CancelReason::Shutdown, None), "the first reason stays");
/// assert_eq!(cancel.reason(), Some(CancelReason::User));
/// ```
#[derive(Debug, Default)]
pub struct Cancel {
    reason: AtomicU8,
    note: OnceLock<Box<str>>,
    changed: Notify,
}

impl Cancel {
    /// Not cancelled.
    pub const fn new() -> Self {
        Cancel { reason: AtomicU8::new(0), note: OnceLock::new(), changed: Notify::const_new() }
    }

    /// Cancels; false if it was already. The note is somebody's own words about why.
    pub fn cancel(&self, reason: CancelReason, note: Option<&str>) -> bool {
        if self.reason().is_some() {
            return false;
        }
        if let Some(note) = note {
            // Only the first note is kept, as only the first reason is.
            let _ = self.note.set(note.into());
        }
        let first =
            self.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire).is_ok();
        self.changed.notify_waiters();
        first
    }

    /// Why it was cancelled, if it was.
    pub fn reason(&self) -> Option<CancelReason> {
        CancelReason::from_number(self.reason.load(Ordering::Acquire))
    }

    /// Somebody's own words about why.
    pub fn note(&self) -> Option<&str> {
        self.note.get().map(|note| &**note)
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) -> CancelReason {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the look, so that a cancel in between is not missed.
            changed.as_mut().enable();
            if let Some(reason) = self.reason() {
                return reason;
            }
            changed.await;
        }
    }
}

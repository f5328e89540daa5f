//! The ports: what the engine needs from the outside world.
//!
//! Each is a small object-safe trait. Implementations live in other crates and never know each other; only the
//! `haft` crate puts them together.
//!
//! **Architecture Invariant:** a guard that returns an error denies. No port has a way to say "go on anyway".

mod approvals;
mod guard;
mod history;
mod jail;
mod journal;
mod keys;
mod reads;
mod redact;
mod registrations;
mod staging;
mod store;
mod tasks;

pub use approvals::{
    AcceptAnswers, Answer, ApprovalFilter, ApprovalState, StoredApproval, StoredGrant, TakenAnswer,
};
pub use guard::{
    Approver, Authorisation, Authoriser, GuardError, NobodyToAsk, Policy, RuleName, Subject, Verdict,
};
pub use history::{
    AuditPage, AuditQuery, FoundLines, NotAPageKey, OutputSearch, PageKey, StoredRun, ToolStatistics,
};
pub use jail::{
    Exceeded, Guest, GuestControl, GuestEnd, GuestSignal, GuestSpec, GuestStdin, Jail, NoJail, OutputSink,
    Preset, Sandbox, TerminalSize, Unavailable, covers_host,
};
pub use journal::{
    BatchBegin, CallState, ChangesStep, DISCARDED_AFTER_CRASH, JournalCall, JournalStep, MISSING_AFTER_CRASH,
    PlannedStep, RecoveredCall, Recovery, Unfinished, UnfinishedCall, UnfinishedId,
};
pub use keys::{ApiKey, KeyStore, NotARight, Right, SecretHash};
pub use reads::{ReadHashes, ReadRecord};
pub use redact::{NoRedaction, Redactor};
pub use registrations::{
    ForgetfulRegistrations, Registrations, StoredTool, ToolChanges, ToolShelf, ToolsSeen,
};
pub use staging::{
    ChangeSets, FoundChanges, KeepOutcome, KeptChanges, LayerMarks, Stage, StageSpec, StagedCall, StagedRoot,
    Unstageable, Writes,
};
pub use store::{
    AuditRecord, CallEnd, Claim, ClaimRequest, Hashes, Intent, OutputRange, RunningOutput, Settlement, Store,
    StoreError, StoredPart, TenantStore, Wants,
};
pub use tasks::{ClaimedTask, NewTask, TaskCancel, TaskStore};

use std::{future::Future, pin::Pin};

/// A boxed future, so that ports stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What time it is. A port, so that tests can say.
///
/// ```
/// use haft_core::port::Clock;
/// struct Stopped;
/// impl Clock for Stopped {
///     fn now(&self) -> jiff::Timestamp { jiff::Timestamp::UNIX_EPOCH }
/// }
/// assert_eq!(Stopped.now().as_second(), 0);
/// ```
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> jiff::Timestamp;
}

//! The six stages of a call, in one direction. Start reading at `executor.rs`: it is the picture of the architecture
//! page, in code.
//!
//! | module | takes | gives |
//! |---|---|---|
//! | [`types`] | | what travels |
//! | [`plan`] | `CallState` | `Planned` |
//! | [`approve`] | all `Planned` of a batch | all `Decided` |
//! | [`schedule`] | `Decided` | starts, in order, bounded; the only loop over attempts |
//! | [`run`] | a `Ready` call | what its tool returned, or why it did not |
//! | [`settle`] | what a command wrote apart from the files | the outcome, and what became of that |
//! | [`finish`] | `RunOutcome` | `ToolResult` |
//! | [`executor`] | calls | results, through all of them |
//! | [`hand_over`] | calls that another program runs | results, through plan, approve and finish |
//!
//! A module imports only what is lower in the list of `tests/arrows.rs`, which reads the sources and says so.

pub(crate) mod approve;
pub(crate) mod awaiting;
pub(crate) mod executor;
pub(crate) mod finish;
pub(crate) mod hand_over;
pub(crate) mod intake;
pub(crate) mod journal;
pub(crate) mod plan;
pub(crate) mod preview;
pub(crate) mod recheck;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod settle;
pub(crate) mod types;

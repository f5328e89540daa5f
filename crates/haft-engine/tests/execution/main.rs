//! The execution of a call, stage by stage: what the engine promises about each, and that it keeps it when something
//! fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod approval;
mod deciding;
mod dropping;
mod idempotency;
mod licence;
mod memory;
mod observing;
mod one_budget;
mod output;
mod panics;
mod parse_only;
mod planning;
mod precedence;
mod secrets;
mod shutdown;
mod strengths;
mod timeouts;

/// STYLE: "One pipeline file that reads like the picture … an executor short enough to read on one screen". What does
/// not fit belongs to a stage; a newcomer starts reading here and must not have to scroll.
#[test]
fn the_executor_can_be_read_at_a_glance() {
    let lines = include_str!("../../src/pipeline/executor.rs").lines().count();
    assert!(lines < 150, "executor.rs has {lines} lines; move what is not the walk itself into a stage");
}

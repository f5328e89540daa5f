//! Grants for commands: what is offered of programs that run text or others, and what a grant does not cover.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{CallContext, Footprint, ToolDefinition, port::Subject};
use haft_guard::{Covers, Fixed, Grant, Lasts, command::Shell};
use jiff::Timestamp;
use serde_json::json;

/// What is done with the call that runs a line.
fn with<T>(line: &str, done: impl FnOnce(&Subject<'_>) -> T) -> T {
    let arguments = json!({"command": line});
    done(&Subject {
        context: &CallContext::new("acme", "agent"),
        definition: &ToolDefinition::new("run_command", "A tool"),
        arguments: arguments.as_object().unwrap(),
        footprint: &Footprint::undeclared(true),
        folder: "/w",
        confirm: None,
        now: Timestamp::UNIX_EPOCH,
    })
}

fn covers(words: &[&str], line: &str) -> bool {
    let covers = Covers::Commands {
        tool: "run_command".into(),
        words: words.iter().map(ToString::to_string).collect(),
        fixed: Fixed { free: vec!["command".into()], ..Fixed::default() },
        folder: Some("/w".into()),
    };
    with(line, |call| Grant::new("g", "acme", covers, Lasts::Always).covers(call, Shell::Posix))
}

/// The second file of `uniq` is written, whatever the first is called.
#[test]
fn a_grant_for_a_program_covers_no_file_that_it_writes() {
    for line in ["uniq -c", "uniq -c a", "uniq -c -", "uniq -c -- -in"] {
        assert!(covers(&["uniq", "-c"], line), "{line}");
    }
    for line in ["uniq -c a out", "uniq -c - out", "uniq -c -- -in out", "uniq -c -- - out"] {
        assert!(!covers(&["uniq", "-c"], line), "{line}");
    }
}

#[test]
fn a_grant_for_an_interpreter_covers_no_text() {
    for line in ["python3 -u x.py", "python3 -u -W ignore x.py"] {
        assert!(covers(&["python3", "-u"], line), "{line}");
    }
    for line in [
        "python3 -u",
        "python3 -u -W ignore",
        "python3 -u -i x.py",
        "python3 -u //dev/stdin",
        "python3 -u -mcode",
    ] {
        assert!(!covers(&["python3", "-u"], line), "{line}");
    }
}

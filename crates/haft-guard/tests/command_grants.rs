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
        accepts: haft_core::port::AcceptAnswers::from_any(),
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

/// A program under another name says no more than under its first one, and what runs others is not offered at all.
#[test]
fn no_grant_is_offered_for_all_that_a_program_runs() {
    let offered = |line: &str| with(line, |call| Covers::suggestions(call, "Run", Shell::Posix).len());
    for line in
        ["cargo test", "python3.11 x.py", "node20 x.js", "gcc-12 -O2 a.c", "npm run build", "bun install x"]
    {
        assert_eq!(offered(line), 2, "the control: {line}");
    }
    for line in [
        "python3.11 -u x.py",
        "python3.13t -u x.py",
        "node20 --no-warnings x.js",
        "php8.2 -n x.php",
        "lua5.4 -E x.lua",
        "pypy3 -u x.py",
        "perl5.36 x.pl",
        "gcc-12 -wrapper ./wr a.c",
        "npx x y",
        "bunx x y",
        "pnpx x y",
        "uvx x y",
        "pipx run x",
        "npm exe x",
        "yarn dlx x",
        "pnpm dlx x",
        "python3.11 -u",
    ] {
        assert_eq!(offered(line), 1, "{line}");
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

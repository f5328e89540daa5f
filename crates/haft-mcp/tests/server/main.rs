//! The server, as a client on a pipe sees it: line by line, each line checked against the published schema.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test may panic: that is how it fails"
)]

mod approvals;
mod calls;
mod lists;
mod rounds;
mod schemas;
mod support;
mod tasks;
mod web;

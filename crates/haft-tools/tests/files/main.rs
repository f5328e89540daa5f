//! The file tools on real files, in a path jail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

mod common;
mod glob;
mod list_directory;
mod read_file;
mod search_files;

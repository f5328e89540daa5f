//! The command line, as a person or a shell uses it: the real program, in folders of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

mod batch;
mod calls;
mod config;
mod dialects;
mod files;
mod help;
mod http_tools;
mod memory;
mod own_tools;
mod pipes;
mod programs;
mod serve;
mod stop;
mod support;
mod tools;
mod words;

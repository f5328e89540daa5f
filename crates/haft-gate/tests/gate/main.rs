//! The gate as programs see it: curl, Python and raw bytes, with servers on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod attacks;
mod limits;
mod programs;
mod spellings;
mod tunnels;
mod world;

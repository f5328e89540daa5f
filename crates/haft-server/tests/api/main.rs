//! The API as its clients meet it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod bounds;
mod calls;
mod document;
mod events;
mod identity;
mod l03;
mod listeners;
mod rights;
mod schemas;
mod support;
mod tenants;

//! The parts that a configuration gives, for programs that offer what the command line offers.
//!
//! [`Haft::builder`](crate::Haft::builder) puts most of them together by itself; a program that only embeds haft needs
//! nothing of this. `haft-cli` is built on it: it opens the store before an engine needs it, shows and answers
//! approvals without one, and signs tools.

#[cfg(feature = "durable")]
pub use crate::lazy_store::{AuditPlaces, HeadsTo, LazyStore, StorePlace, age, retention};
pub use crate::{
    commands::{LazyJail, can_stage, recover},
    guards::{Admitted, Payload, Signatures, Source, environment, licensing, local},
    wiring::{CHANGES, ToolMaker, command_tools, settings},
};

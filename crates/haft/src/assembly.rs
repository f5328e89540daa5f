//! The parts that a configuration gives, for programs that offer what the command line offers.
//!
//! [`Haft::builder`](crate::Haft::builder) puts most of them together by itself; a program that only embeds haft needs
//! nothing of this. `haft-cli` is built on it: it opens the store before an engine needs it, shows and answers
//! approvals without one, and signs tools.

#[cfg(feature = "durable")]
pub use crate::lazy_store::{AuditPlaces, HeadsTo, LazyStore, StorePlace, age, retention};
/// Finds out what became of the changes of staged commands whose haft was killed, and tells the journal: for commands
/// that only look. To be called when changes of files that were cut have been taken back.
pub fn settle_cut(
    state: &std::path::Path,
    store: std::sync::Arc<dyn haft_core::port::Store>,
) -> std::io::Result<Vec<crate::Unsettled>> {
    #[cfg(target_os = "linux")]
    return crate::change_sets::recover(state, &crate::change_sets::Journal(store));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (state, store);
        Ok(Vec::new())
    }
}

pub use crate::{
    commands::{LazyJail, can_stage, recover, sweep_caches},
    guards::{Admitted, Payload, Signatures, Source, environment, licensing, local},
    wiring::{CHANGES, ToolMaker, command_tools, settings},
};

//! The tools of a process that lives long: as other processes add, remove and switch them.

use super::{console::Console, setup::described};
use haft::{
    CommandToolSettings, FileRegistrations, Haft,
    assembly::Signatures,
    port::{Registrations as _, StoredTool},
};
use haft_core::text::one_line;
use std::sync::Arc;

/// Follows what is remembered about the tools.
pub(super) struct Following {
    registrations: FileRegistrations,
    seen: Vec<StoredTool>,
    commands: CommandToolSettings,
    signatures: Arc<Signatures>,
    /// Whether the last look found something that cannot be read: said once.
    is_broken: bool,
}

impl Following {
    /// From what was remembered when the tools were brought back.
    pub(super) fn new(
        registrations: FileRegistrations,
        seen: Vec<StoredTool>,
        (commands, signatures): (CommandToolSettings, Arc<Signatures>),
    ) -> Self {
        Following { registrations, seen, commands, signatures, is_broken: false }
    }

    /// Looks once. The file is read whole: it is small, and a time of change can lie.
    pub(super) async fn look(&mut self, haft: &Haft, console: &Console) {
        let now = match self.registrations.load().await {
            Ok(now) => now,
            Err(error) => {
                if !std::mem::replace(&mut self.is_broken, true) {
                    let reason = one_line(&error.to_string(), 400);
                    console
                        .warn(&format!("the tools were changed and cannot be read, so they stay: {reason}"));
                }
                return;
            }
        };
        self.is_broken = false;
        if now == self.seen {
            return;
        }
        let make = |definition| described(definition, &self.commands, &self.signatures, haft);
        for skipped in haft.tools().follow(&self.seen, &now, make) {
            console.warn(&format!("a change of the tools has no effect here: {}", one_line(&skipped, 400)));
        }
        self.seen = now;
    }
}

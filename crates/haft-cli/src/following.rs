//! The tools of a process that lives long: as other processes add, remove and switch them.

use super::console::Console;
use haft::{Haft, assembly::LazyStore, port::ToolsSeen};
use haft_core::text::one_line;

/// Follows what is remembered about the tools.
pub(super) struct Following {
    memory: LazyStore,
    seen: ToolsSeen,
    /// Whether the last look found something that cannot be read: said once.
    is_broken: bool,
}

impl Following {
    /// From what was seen before the first tool was brought back.
    pub(super) fn new(memory: LazyStore, seen: ToolsSeen) -> Self {
        Following { memory, seen, is_broken: false }
    }

    /// Looks once: at one number, unless something was changed.
    pub(super) async fn look(&mut self, haft: &Haft, console: &Console) {
        let changes = match self.memory.tools_since(self.seen).await {
            Ok(changes) => changes,
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
        let Some((seen, changes)) = changes else { return };
        for skipped in haft.tools().follow(&changes) {
            console.warn(&format!("a change of the tools has no effect here: {}", one_line(&skipped, 400)));
        }
        self.seen = seen;
    }
}

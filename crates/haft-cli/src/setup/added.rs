//! Tools that somebody added, brought back.

use super::{
    super::{console::Console, failure::Failure, words},
    now,
};
use haft::{CommandToolSettings, Haft, RegisterError, Tool, assembly::Signatures};
use haft_core::text::one_line;
use std::path::PathBuf;

/// A tool that somebody added, from its definition.
pub(crate) fn described(
    definition: haft::ToolDefinition,
    commands: &CommandToolSettings,
    signatures: &Signatures,
    haft: &Haft,
) -> Result<Box<dyn Tool>, String> {
    signatures.checked(definition, |definition| haft::assembly::described(definition, commands, haft))
}

/// Brings back the tools that were added, and what was switched and configured.
pub(super) fn restore(
    haft: &Haft,
    file: Option<PathBuf>,
    commands: &CommandToolSettings,
    signatures: &Signatures,
    console: &Console,
) -> Result<(), Failure> {
    let described = |definition| described(definition, commands, signatures, haft);
    let skipped = match (now(haft.tools().restore(described))?, file) {
        (Err(RegisterError::NotRemembered(reason)), Some(path)) => {
            return Err(Failure::CannotRemember { path, reason });
        }
        (restored, _) => restored?,
    };
    if !skipped.is_empty() {
        let skipped: Vec<String> = skipped.iter().map(|skipped| one_line(skipped, 400)).collect();
        console.warn(&format!(
            "what is remembered about {} has no effect, until it fits again or `haft tools remove NAME` forgets \
             it:\n{}",
            words::count(skipped.len(), "tool"),
            skipped.join("\n")
        ));
    }
    Ok(())
}

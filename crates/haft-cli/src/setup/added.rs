//! Tools that somebody added, brought back when they are needed.

use super::super::{console::Console, failure::Failure, words};
use haft::{
    FileRegistrations, Haft, Tool,
    assembly::{LazyStore, Signatures, ToolMaker},
    port::ToolShelf,
};
use haft_core::text::one_line;
use std::{path::Path, sync::Arc};

/// A tool that somebody added, from its definition.
fn described(
    definition: haft::ToolDefinition,
    maker: &ToolMaker,
    signatures: &Signatures,
) -> Result<Box<dyn Tool>, String> {
    signatures.checked(definition, |definition| maker.make(definition))
}

/// Takes over the list that an earlier haft kept in a file. One that cannot be read stops everything.
pub(super) fn take_over(memory: &LazyStore, state: &Path, console: &Console) -> Result<(), Failure> {
    let path = FileRegistrations::new(state).path();
    if !path.exists() {
        return Ok(());
    }
    let taken = memory
        .take_over_tools()
        .map_err(|error| Failure::CannotRemember { path, reason: error.to_string() })?;
    let Some(taken) = taken else { return Ok(()) };
    let (tools, kept) = (words::count(taken.count, "tool"), words::path(&taken.kept));
    console.note(&format!(
        "haft keeps its tools in its database now: {tools} taken over, the old file is {kept}"
    ));
    if !taken.differ.is_empty() {
        let names: Vec<String> = taken.differ.iter().map(|name| one_line(name, 80)).collect();
        console.warn(&format!(
            "the database has other entries for {}; they stay, and what either one disables is disabled. The old file \
             is {kept}",
            names.join(", ")
        ));
    }
    Ok(())
}

/// Brings back the tools that were added, and what was switched and configured, when somebody asks for them.
pub(super) fn restore_when_needed(
    haft: &Haft,
    memory: &LazyStore,
    maker: ToolMaker,
    signatures: &Arc<Signatures>,
    console: &Console,
) {
    let (signatures, console) = (Arc::clone(signatures), console.again());
    let make = move |definition| described(definition, &maker, &signatures);
    let say = move |skipped: &[String]| {
        let skipped: Vec<String> = skipped.iter().map(|skipped| one_line(skipped, 400)).collect();
        console.warn(&format!(
            "what is remembered about {} has no effect, until it fits again or `haft tools remove NAME` forgets \
             it:\n{}",
            words::count(skipped.len(), "tool"),
            skipped.join("\n")
        ));
    };
    haft.tools().restore_when_needed(Arc::new(memory.clone()) as Arc<dyn ToolShelf>, make, say);
}

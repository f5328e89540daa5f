//! Tools that come with haft are registered without looking at their schemas each time: so they are looked at here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic: that is how it fails")]

use haft_engine::Engine;
use haft_guard::{ListPolicy, PermissionStrings};
use haft_store::MemoryStore;
use haft_tools::{
    CommandToolSettings, FileToolSettings, builtin, change_set_tools, command_tools,
    commands::BackgroundCommands, file_tools,
};
use std::sync::Arc;

/// `Engine::builder().boxed_tool` checks every rule of a definition, `checked_tool` all but those about schemas.
#[tokio::test]
async fn every_definition_that_comes_with_haft_is_sound() {
    let mut tools = builtin();
    tools.extend(file_tools(&FileToolSettings::default()));
    tools.extend(command_tools(&CommandToolSettings::default(), &BackgroundCommands::default()));
    tools.extend(change_set_tools());
    assert!(tools.len() > 20, "there are only {}", tools.len());
    let engine = Engine::builder(
        Arc::new(ListPolicy::default()),
        Arc::new(PermissionStrings),
        Arc::new(MemoryStore::new()),
    );
    tools.into_iter().fold(engine, |engine, tool| engine.boxed_tool(tool)).build().unwrap();
}

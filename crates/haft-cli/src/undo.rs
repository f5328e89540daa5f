//! `haft undo`: what a call changed, put back.

use super::{
    args::UndoArgs,
    call::run_agreed,
    console::Console,
    failure::Failure,
    memory,
    setup::{CliContext, Setup, now},
};
use haft::{ExecutionId, ToolCall};
use serde_json::json;

/// It is an ordinary call: checked, recorded, and undone in the same way.
pub(super) fn run(args: &UndoArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let setup = ground.setup_for_calls(console)?;
    let execution = execution(&setup, &args.execution)?;
    let call = ToolCall::new("undo_changes", json!({"execution_id": execution}));
    run_agreed(setup, call, args.json, console)
}

/// The whole id of a call that was named by a prefix. Anything else is for the tool to judge.
fn execution(setup: &Setup, typed: &str) -> Result<String, Failure> {
    let Some(memory) = setup.memory.as_ref().filter(|_| typed.trim().parse::<ExecutionId>().is_err()) else {
        return Ok(typed.trim().to_owned());
    };
    let tenant = &setup.owner.tenant;
    let id = now(memory::run_id(memory.open()?, &[], tenant, typed, memory::Which::Calls))??;
    Ok(id.call.to_string())
}

//! `haft undo`: what a call changed, put back.

use super::{
    args::UndoArgs,
    call::{Form, run_request},
    console::Console,
    failure::Failure,
    memory,
    setup::{CliContext, Setup, now},
    watch::{self, Watch},
};
use haft::{CallOptions, Decision, ExecutionId, Request, Target, ToolCall, ask_with};
use serde_json::json;
use std::sync::Arc;

/// It is an ordinary call: checked, recorded, and undone in the same way.
pub(super) fn run(args: &UndoArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let setup = ground.setup_for_calls(console)?;
    let execution = execution(&setup, &args.execution)?;
    let call = ToolCall::new("undo_changes", json!({"execution_id": execution}));
    let id = ExecutionId::at(jiff::Timestamp::now());
    let calls = vec![(call.name.to_string(), String::new())];
    let shown = setup.show_running(Target::Call(id), &calls);
    let what = Watch { target: Target::Call(id), calls, events: false, shown };
    // The person who types this is the one who would be asked.
    let agreed = ask_with(|questions| questions.iter().map(|_| Decision::Approve).collect());
    let request = Request::new(call)
        .options(CallOptions { execution_id: Some(id), ..CallOptions::default() })
        .context(setup.caller(None))
        .approver(Arc::new(agreed));
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(run_request(&setup, request, what, Form::of(args.json), console));
    runtime.shutdown_background();
    setup.end(console)?;
    ended
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

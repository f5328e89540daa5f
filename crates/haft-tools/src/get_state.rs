//! `get_state`: what runs now.

use crate::{harmless, worded::Worded};
use haft_core::{Footprint, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Says what runs now: the calls of the caller's tenant, its sandboxes and tasks, and the mode.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// assert_eq!(typed(haft_tools::GetState).definition().aliases, ["GetState"]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GetState;

/// There is nothing to choose.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetStateArgs {}

/// What runs now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// What is done with calls: disabled, parse_only or enabled.
    pub mode: String,
    /// Calls that have no result yet, oldest first.
    pub calls: Vec<RunningCall>,
    /// Sandboxes, oldest first.
    pub sandboxes: Vec<SandboxState>,
    /// How many tasks are under way.
    pub tasks: u64,
}

/// A call that has no result yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningCall {
    /// The id of the call.
    pub execution_id: String,
    /// The tool.
    pub tool: String,
    /// When the call came in.
    pub arrived_at: String,
    /// The agent that made it.
    pub agent: String,
}

/// A sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxState {
    /// Its name.
    pub id: String,
    /// Calls that run in it.
    pub running: u64,
    /// When haft ends it.
    pub expires_at: String,
}

impl TypedTool for GetState {
    const NAME: &'static str = "get_state";
    type Args = GetStateArgs;
    type Output = Worded<State>;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Get state",
            "Says what runs now: the calls that have no result yet, the sandboxes, the number of tasks, and the mode. \
             The call itself is left out.",
        );
        definition.aliases = vec!["GetState".to_owned()];
    }

    fn footprint(&self, _args: &GetStateArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    async fn call(&self, _args: GetStateArgs, cx: ToolCtx) -> Result<Worded<State>, ToolError> {
        let mut value: State =
            serde_json::from_value(cx.engine().state(&cx.context().tenant)).map_err(|error| {
                ToolError::failed("The state of this engine cannot be read").with_diagnostics(error)
            })?;
        let own = cx.execution_id().to_string();
        value.calls.retain(|call| call.execution_id != own);
        Ok(Worded { text: told(&value), value })
    }
}

fn told(state: &State) -> String {
    let counted = |count: usize, one: &str, several: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    };
    let mut out = format!(
        "Mode {}; {} running, {}, {} under way",
        state.mode,
        counted(state.calls.len(), "call", "calls"),
        counted(state.sandboxes.len(), "sandbox", "sandboxes"),
        counted(usize::try_from(state.tasks).unwrap_or(usize::MAX), "task", "tasks"),
    );
    for call in &state.calls {
        let _ = write!(out, "\ncall {}  {}  since {}", call.execution_id, call.tool, call.arrived_at);
    }
    for sandbox in &state.sandboxes {
        let _ = write!(
            out,
            "\nsandbox {}  {} running  until {}",
            sandbox.id, sandbox.running, sandbox.expires_at
        );
    }
    out
}

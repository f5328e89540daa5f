//! `get_logs`: calls that ended lately.

use crate::{harmless, worded::Worded};
use haft_core::{Footprint, Status, ToolDefinition, ToolError, port::AuditQuery};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// How many calls are listed where nobody says how many, and at most.
const USUAL: u32 = 20;
const MOST: u32 = 200;

/// Lists the calls of the caller's tenant that ended lately, newest first.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// assert_eq!(typed(haft_tools::GetLogs).definition().aliases, ["GetLogs"]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GetLogs;

/// Which calls.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetLogsArgs {
    /// Only of this tool, by name or alias.
    #[serde(default)]
    pub tool: Option<String>,
    /// Only those that ended so.
    #[serde(default)]
    pub status: Option<Status>,
    /// At most so many; 20 when left out, 200 at the most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<u32>,
}

/// Calls that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Logs {
    /// The calls, newest first.
    pub calls: Vec<LoggedCall>,
    /// Whether there are more.
    pub more: bool,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedCall {
    /// The id of the call.
    pub execution_id: String,
    /// The tool.
    pub tool: String,
    /// How it ended.
    pub status: String,
    /// Why it did not succeed.
    pub code: Option<String>,
    /// When it was started.
    pub started_at: String,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
}

impl TypedTool for GetLogs {
    const NAME: &'static str = "get_logs";
    type Args = GetLogsArgs;
    type Output = Worded<Logs>;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Get logs",
            "Lists calls that ended lately, newest first: the id, the tool, how each ended, when it was started and how \
             long it took. Arguments and outputs are not in it.",
        );
        definition.aliases = vec!["GetLogs".to_owned()];
    }

    fn footprint(&self, _args: &GetLogsArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    async fn call(&self, args: GetLogsArgs, cx: ToolCtx) -> Result<Worded<Logs>, ToolError> {
        let limit = args.limit.unwrap_or(USUAL).clamp(1, MOST) as usize;
        let query = AuditQuery { tool: args.tool, status: args.status, limit, ..AuditQuery::default() };
        let logs = cx.engine().logs(&cx.context().tenant, query).await?;
        let value: Logs = serde_json::from_value(logs).map_err(|error| {
            ToolError::failed("The records of earlier calls cannot be read").with_diagnostics(error)
        })?;
        Ok(Worded { text: told(&value), value })
    }
}

fn told(logs: &Logs) -> String {
    if logs.calls.is_empty() {
        return "No such calls are on record".to_owned();
    }
    let mut out = String::new();
    for call in &logs.calls {
        let code = call.code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "{}  {}  {}  {}{code}  {:.0} ms",
            call.started_at, call.execution_id, call.tool, call.status, call.duration_ms
        );
    }
    out.push_str(if logs.more { "[there are more: ask with a larger limit]" } else { "[these are all]" });
    out
}

//! `get_metrics`: how often tools were called, how it went, how long it took.

use crate::{harmless, no_such_tool, worded::Worded};
use haft_core::{Footprint, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt::Write as _};

/// Says how often tools were called, how it went, and how long it took, since haft was started.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// assert_eq!(typed(haft_tools::GetMetrics).definition().aliases, ["GetMetrics"]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GetMetrics;

/// What to count.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetMetricsArgs {
    /// Only this tool, by name or alias; all tools when left out.
    #[serde(default)]
    pub tool: Option<String>,
}

/// Counts and times since haft was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// All of them together.
    pub all: Counts,
    /// By tool; those that were never called are left out.
    pub tools: BTreeMap<String, Counts>,
}

/// Counts and times of finished calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// How many there were.
    pub total: u64,
    /// How they ended.
    pub by_status: BTreeMap<String, u64>,
    /// How long they took, in milliseconds.
    pub duration_ms: Times,
}

/// Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// On average.
    pub mean: f64,
    /// Half of the calls took less.
    pub p50: f64,
    /// 95 of 100 calls took less.
    pub p95: f64,
    /// 99 of 100 calls took less.
    pub p99: f64,
}

impl TypedTool for GetMetrics {
    const NAME: &'static str = "get_metrics";
    type Args = GetMetricsArgs;
    type Output = Worded<Metrics>;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Get metrics",
            "Says how often tools were called since haft was started, how those calls ended, and how long they took. \
             The call itself is not counted, since it has not ended.",
        );
        definition.aliases = vec!["GetMetrics".to_owned()];
    }

    fn footprint(&self, _args: &GetMetricsArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    async fn call(&self, args: GetMetricsArgs, cx: ToolCtx) -> Result<Worded<Metrics>, ToolError> {
        let tool = args.tool.as_deref();
        if let Some(name) = tool.filter(|name| cx.engine().definition(name).is_none()) {
            return Err(ToolError::failed(no_such_tool(cx.engine(), name)));
        }
        let value: Metrics = serde_json::from_value(cx.engine().metrics(&cx.context().tenant, tool))
            .map_err(|error| {
                ToolError::failed("The counts of this engine cannot be read").with_diagnostics(error)
            })?;
        Ok(Worded { text: table(&value), value })
    }
}

fn succeeded(counts: &Counts) -> u64 {
    counts.by_status.get("Success").copied().unwrap_or(0)
}

/// The counts as a line, and as a table.
fn table(metrics: &Metrics) -> String {
    if metrics.all.total == 0 {
        return "No calls have ended yet".to_owned();
    }
    let rows: Vec<(&str, &Counts)> =
        metrics.tools.iter().map(|(name, counts)| (name.as_str(), counts)).collect();
    let all = (metrics.tools.len() > 1).then_some(("all", &metrics.all));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("tool".len());
    let total = metrics.all.total;
    let mut out = format!(
        "{total} {} ended, {} succeeded\n{:width$}  {:>6}  {:>9}  {:>9}  {:>9}  {:>9}",
        if total == 1 { "call" } else { "calls" },
        succeeded(&metrics.all),
        "tool",
        "calls",
        "succeeded",
        "mean ms",
        "p50 ms",
        "p95 ms"
    );
    for (name, counts) in rows.into_iter().chain(all) {
        let succeeded = succeeded(counts);
        let Times { mean, p50, p95, .. } = counts.duration_ms;
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n{name:width$}  {:>6}  {succeeded:>9}  {mean:>9.3}  {p50:>9.3}  {p95:>9.3}",
            counts.total
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_has_a_row_for_each_tool_and_one_for_all() {
        let counts = json!({"total": 3, "byStatus": {"Success": 2, "Failed": 1},
            "durationMs": {"mean": 0.25, "p50": 0.2, "p95": 1.5, "p99": 1.5}});
        let one = json!({"all": counts, "tools": {"validate_content": counts}});
        let two = json!({"all": counts, "tools": {"a": counts, "validate_content": counts}});
        let lines = |value| table(&serde_json::from_value(value).unwrap()).lines().count();
        assert_eq!(lines(one.clone()), 3, "one tool is all of them");
        assert_eq!(lines(two), 5);
        assert_eq!(
            table(&serde_json::from_value(one).unwrap()),
            "3 calls ended, 2 succeeded\n\
             tool               calls  succeeded    mean ms     p50 ms     p95 ms\n\
             validate_content       3          2      0.250      0.200      1.500"
        );
        let none =
            json!({"total": 0, "byStatus": {}, "durationMs": {"mean": 0, "p50": 0, "p95": 0, "p99": 0}});
        let none: Metrics = serde_json::from_value(json!({"all": none, "tools": {}})).unwrap();
        assert_eq!(table(&none), "No calls have ended yet");
    }
}

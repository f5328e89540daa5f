//! What would happen to a call, for a dry run.

use super::{
    approve::{look_ahead, summary},
    types::{EarlyExit, Planned},
};
use crate::ports::Ports;
use haft_core::{ErrorCode, ErrorInfo, Footprint, ToolCall, ToolError, port::RuleName};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// What is decided about a call, without running it.
#[derive(Clone, Debug)]
pub enum Preview {
    /// It would run.
    Ready {
        /// The tool's canonical name.
        tool: Arc<str>,
        /// What it would do.
        summary: String,
        /// What it would read and write.
        footprint: Footprint,
        /// The rule that allows it.
        rule: Option<RuleName>,
        /// What would change, such as a diff, where the tool can say.
        change: Option<String>,
    },
    /// A person would be asked.
    NeedsApproval {
        /// The tool's canonical name.
        tool: Arc<str>,
        /// What it would do.
        summary: String,
        /// Why somebody is asked.
        reason: String,
        /// The rule that asks.
        rule: Option<RuleName>,
        /// What would change, such as a diff, where the tool can say.
        change: Option<String>,
    },
    /// Somebody outside would supply the result.
    Pending {
        /// The tool's canonical name.
        tool: Arc<str>,
    },
    /// It would not run.
    Refused(ToolError),
}

/// What is decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanDecision {
    /// It would run.
    Ready,
    /// A person would be asked.
    NeedsApproval,
    /// Somebody outside would supply the result, or an earlier call has it.
    Pending,
    /// It would not run.
    Refused,
}

/// What would happen to a call. Programs read this same form everywhere: `--dry-run --json`, and `/v1/plan` over HTTP.
///
/// ```
/// use haft_core::{ErrorCode, ToolCall, ToolError};
/// use haft_engine::{Plan, Preview};
///
/// let refused = Preview::Refused(ToolError::new(ErrorCode::ToolDenied, "not this one"));
/// let plan = serde_json::to_value(Plan::new(&ToolCall::new("shell", serde_json::json!({})), &refused)).unwrap();
/// assert_eq!((plan["decision"].as_str(), plan["code"].as_str()), (Some("refused"), Some("TOOL_DENIED")));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The caller's own name for the call.
    #[serde(skip_serializing_if = "str_is_empty")]
    pub call_id: Arc<str>,
    /// What is decided.
    pub decision: PlanDecision,
    /// The tool's canonical name, or what was asked for where it is refused.
    pub tool: Arc<str>,
    /// What it would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What it would read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Footprint>,
    /// Why somebody is asked, or why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rule that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    /// What would change, such as a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The row of the error table, where it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The whole error, where it is refused: as the result would have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorInfo>>,
}

fn str_is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl Plan {
    /// What was found out about that call.
    #[must_use]
    pub fn new(call: &ToolCall, preview: &Preview) -> Self {
        let plan = |decision, tool: &Arc<str>| Plan {
            call_id: Arc::clone(&call.id),
            decision,
            tool: Arc::clone(tool),
            summary: None,
            footprint: None,
            reason: None,
            rule: None,
            change: None,
            code: None,
            error: None,
        };
        match preview {
            Preview::Ready { tool, summary, footprint, rule, change } => Plan {
                summary: Some(summary.clone()),
                footprint: Some(footprint.clone()),
                rule: rule.clone(),
                change: change.clone(),
                ..plan(PlanDecision::Ready, tool)
            },
            Preview::NeedsApproval { tool, summary, reason, rule, change } => Plan {
                summary: Some(summary.clone()),
                reason: Some(reason.clone()),
                rule: rule.clone(),
                change: change.clone(),
                ..plan(PlanDecision::NeedsApproval, tool)
            },
            Preview::Pending { tool } => plan(PlanDecision::Pending, tool),
            Preview::Refused(error) => Plan {
                reason: Some(error.message.clone()),
                code: Some(error.code),
                error: Some(Box::new(ErrorInfo {
                    code: error.code,
                    number: error.code.e_number().map(str::to_owned),
                    message: error.message.clone(),
                    retryable: error.code.is_retryable(),
                    problems: error.problems.clone(),
                    data: error.data.clone(),
                })),
                ..plan(PlanDecision::Refused, &call.name)
            },
        }
    }
}

/// What planning came to, in words.
pub(crate) async fn preview(ports: &Ports, planned: Planned) -> Preview {
    match planned {
        Planned::Ready(ready) => match summary(ports, &ready) {
            Ok(summary) => Preview::Ready {
                change: look_ahead(ports, &ready).await,
                tool: Arc::clone(ready.call.tool_name()),
                summary,
                rule: ready.call.facts.rule.clone(),
                footprint: ready.footprint,
            },
            Err(error) => Preview::Refused(ports.redaction.error(error)),
        },
        Planned::NeedsApproval(asking) => match summary(ports, &asking.ready) {
            Ok(summary) => Preview::NeedsApproval {
                change: look_ahead(ports, &asking.ready).await,
                tool: Arc::clone(asking.ready.call.tool_name()),
                summary,
                rule: asking.ready.call.facts.rule.clone(),
                reason: asking.reason,
            },
            Err(error) => Preview::Refused(ports.redaction.error(error)),
        },
        Planned::AwaitingResult(call) | Planned::Follows(call, _) => {
            Preview::Pending { tool: Arc::clone(call.tool_name()) }
        }
        Planned::Resolved(_, EarlyExit::Error(error)) => Preview::Refused(ports.redaction.error(error)),
        Planned::Resolved(call, EarlyExit::Replay(_)) => {
            Preview::Pending { tool: Arc::clone(call.tool_name()) }
        }
    }
}

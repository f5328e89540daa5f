//! What would happen to a call, for a dry run.

use super::{
    approve::{look_ahead, summary},
    types::{EarlyExit, Planned},
};
use crate::ports::Ports;
use haft_core::{Footprint, ToolError, port::RuleName};
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

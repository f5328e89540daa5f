//! Tools that only a host has, so that policy can decide about them; and what a host's tool gave, for the record.

use super::map::{Foreign, Touches};
use haft::{Args, Prepared, Tool, ToolCtx, ToolDefinition, ToolError, ToolFuture, ToolOutput};
use haft_core::{Footprint, IsolationLevel, Parameters, Resource, text::one_line};
use serde_json::json;
use std::sync::Arc;

/// The name under which haft records what a host's tool gave.
pub(super) const RESULT: &str = "host_result";

/// A tool that haft does not run.
pub(super) struct HostTool {
    definition: Arc<ToolDefinition>,
    footprint: Footprint,
    runs: Runs,
}

/// What happens when it is run.
#[derive(Clone)]
enum Runs {
    /// The host runs it, and haft never does.
    Elsewhere,
    /// It ran, with this.
    Ran(Result<String, String>),
}

impl HostTool {
    /// One that only the host has, under that name.
    pub(super) fn new(name: &str, title: &str, foreign: &Foreign) -> Self {
        let (effects, footprint) = match &foreign.touches {
            Touches::Nothing => (false, Footprint::default()),
            Touches::Network(host) => (true, Footprint::reads([Resource::Host(host.clone())])),
            Touches::Anything => (true, Footprint::undeclared(true)),
        };
        let description = format!("A tool of {title} itself; haft decides about it and does not run it");
        HostTool { definition: defined(name, description, effects), footprint, runs: Runs::Elsewhere }
    }

    /// What a tool of the host gave.
    pub(super) fn result(title: &str, gave: Result<String, String>) -> Self {
        let description = format!("What a tool of {title} gave, for the record");
        HostTool {
            definition: defined(RESULT, description, false),
            footprint: Footprint::default(),
            runs: Runs::Ran(gave),
        }
    }
}

fn defined(name: &str, description: String, effects: bool) -> Arc<ToolDefinition> {
    let mut definition = ToolDefinition::new(name, description);
    definition.parameters = Parameters::Schema(json!({"type": "object"}));
    definition.constraints.allow_side_effects = effects;
    // Nothing that haft could isolate runs here.
    definition.constraints.required_isolation = IsolationLevel::None;
    Arc::new(definition)
}

impl Tool for HostTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Ok(Box::new(HostCall {
            summary: one_line(args.original.as_str(), 200),
            footprint: self.footprint.clone(),
            runs: self.runs.clone(),
        }))
    }
}

struct HostCall {
    summary: String,
    footprint: Footprint,
    runs: Runs,
}

impl Prepared for HostCall {
    fn footprint(&self) -> Footprint {
        self.footprint.clone()
    }

    fn summary(&self) -> String {
        self.summary.clone()
    }

    fn confirm(&self) -> Option<String> {
        None
    }

    fn execute(self: Box<Self>, _cx: ToolCtx) -> ToolFuture {
        Box::pin(async move {
            match self.runs {
                Runs::Elsewhere => Err(ToolError::failed("haft does not run tools of a host")),
                Runs::Ran(Ok(text)) => Ok(ToolOutput::text(text)),
                Runs::Ran(Err(text)) => Err(ToolError::failed(text)),
            }
        })
    }
}

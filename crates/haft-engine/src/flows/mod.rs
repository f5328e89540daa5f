//! Flows: calls that take something from each other. What is next is decided in `haft-flow`; here it is run.
//!
//! | file | what |
//! |---|---|
//! | `request`, `result` | what is asked for, and what comes of it |
//! | `run` | a flow on its way: each node through the five stages |
//! | `condition` | whether a node runs at all |
//! | `gate` | nodes whose turn has come, and that must not overlap |
//! | `tool` | a flow as a tool |

mod condition;
mod gate;
mod request;
mod result;
mod run;
mod tool;

pub use request::{FlowError, FlowRequest};
pub use result::{FlowResult, FlowStatus, FlowSummary, NodeResult};
pub(crate) use run::begin;
pub use tool::FlowTool;

use crate::{inner::Inner, registry::Registry};
use haft_core::ToolDefinition;
use haft_definition::ReadErrors;
use haft_flow::{Flow, Tools};
use std::sync::Arc;

/// Checks a flow against the tools that are here.
pub(crate) fn check(engine: &Inner, flow: &Flow) -> Result<(), ReadErrors> {
    haft_flow::check(flow, &Known(&engine.ports.registry))
}

/// The tools of an engine, as the check of a flow sees them.
struct Known<'r>(&'r Registry);

impl Tools for Known<'_> {
    fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        self.0.lookup(name).map(|registered| Arc::clone(&registered.definition))
    }

    fn nearest(&self, name: &str) -> Option<String> {
        self.0.nearest(name)
    }
}

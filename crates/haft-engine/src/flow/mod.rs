//! Flows: calls that take something from each other. What is next is decided in `haft-flow`; here it is run.
//!
//! | file | what |
//! |---|---|
//! | `request`, `result` | what is asked for, and what comes of it |
//! | `run` | a flow on its way: each node through the five stages |
//! | `gate` | nodes whose turn has come, and that must not overlap |
//! | `tool` | a flow as a tool |

mod gate;
mod request;
mod result;
mod run;
mod tool;

pub use request::{FlowError, FlowRequest};
pub use result::{FlowResult, FlowStatus, FlowSummary, NodeResult};
pub use tool::FlowTool;

use crate::{engine::Engine, registry::Registry};
use haft_core::ToolDefinition;
use haft_definition::ReadErrors;
use haft_flow::{Flow, Tools};
use std::{future::Future, sync::Arc};

impl Engine {
    /// Checks a flow against the tools that are here. Nothing runs.
    ///
    /// # Errors
    ///
    /// Everything that does not fit, with its place in the file.
    pub fn check_flow(&self, flow: &Flow) -> Result<(), ReadErrors> {
        haft_flow::check(flow, &Known(&self.0.ports.registry))
    }

    /// Runs a flow: each node is an ordinary call, through every check. Dropping the future cancels what has not ended.
    ///
    /// # Errors
    ///
    /// Before anything runs: what does not fit the tools that are here, or an input that does not fit the flow.
    pub fn run_flow(
        &self,
        request: FlowRequest,
    ) -> Result<impl Future<Output = FlowResult> + Send + use<>, FlowError> {
        run::begin(self, request, None)
    }
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

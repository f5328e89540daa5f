//! Flows: calls that take something from each other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod as_tool;
mod attempts;
mod failing;
mod property;
mod recording;
mod shapes;
mod stopping;

use common::{House, Scripted, tool, within};
use haft_core::{ToolError, ToolOutput};
use haft_definition::Format;
use haft_engine::{FlowError, FlowRequest, FlowResult};
use haft_flow::{Flow, NodeStatus};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A flow of these nodes.
pub(crate) fn flow(nodes: Value) -> Arc<Flow> {
    flow_with(json!({ "nodes": nodes }))
}

/// A flow with a name.
pub(crate) fn flow_with(mut parts: Value) -> Arc<Flow> {
    for (name, value) in [("name", json!("a_flow")), ("description", json!("A flow of a test"))] {
        if parts.get(name).is_none() {
            parts[name] = value;
        }
    }
    Arc::new(haft_flow::read(&parts.to_string(), Format::Json).unwrap_or_else(|errors| panic!("{errors}")))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Runs a flow that is fine.
pub(crate) async fn run(house: &House, flow: Arc<Flow>, input: Value) -> FlowResult {
    let running = house.engine.run_flow(FlowRequest::new(flow, object(input)));
    within("the end of the flow", running.unwrap_or_else(|error| panic!("{error}"))).await
}

/// Why a flow is not started.
pub(crate) fn refused(house: &House, flow: Arc<Flow>, input: Value) -> String {
    match house.engine.run_flow(FlowRequest::new(flow, object(input))) {
        Ok(_) => panic!("it was taken"),
        Err(FlowError::Bad(errors)) => errors.to_string(),
        Err(FlowError::Refused(error)) => format!("{}: {}", error.code, error.message),
    }
}

/// Each node with how it ended.
pub(crate) fn statuses(result: &FlowResult) -> String {
    let each = result.nodes.iter().map(|node| format!("{} {}", node.name, node.status.as_str()));
    each.collect::<Vec<_>>().join(", ")
}

/// The reason of a node.
pub(crate) fn reason<'r>(result: &'r FlowResult, name: &str) -> &'r str {
    let node = result.nodes.iter().find(|node| &*node.name == name).unwrap();
    assert_ne!(node.status, NodeStatus::Success, "{node:?}");
    node.reason.as_deref().unwrap_or_default()
}

/// A tool that gives back what it gets.
pub(crate) fn echo() -> Scripted {
    tool("echo", |args, _| async move { Ok(ToolOutput::structured(Value::Object(args.value))) })
}

/// A tool that fails.
pub(crate) fn fails() -> Scripted {
    tool("fails", |_, _| async { Err::<&str, _>(ToolError::failed("it broke")) })
}

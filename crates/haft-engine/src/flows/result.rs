//! What comes of a flow.

use haft_core::{BatchId, ErrorCode, ErrorInfo, ExecutionId, Status, ToolResult};
use haft_flow::{Flow, Given, NodeStatus};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowStatus {
    /// Every node succeeded, was skipped, or may fail.
    Success,
    /// Some did not succeed, others did.
    PartialFailure,
    /// None that counts succeeded, or the output could not be put together.
    Failed,
    /// It was stopped.
    Cancelled,
}

/// How one node ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// The node.
    pub name: Arc<str>,
    /// The tool that it calls.
    pub tool: Arc<str>,
    /// How it ended.
    pub status: NodeStatus,
    /// Why it was skipped, blocked or did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long its call took; 0 where none was made.
    #[serde(rename = "durationMs", serialize_with = "millis")]
    #[schemars(with = "f64")]
    pub duration: Duration,
    /// Its call, where one was made or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The whole result of that call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
}

/// A flow in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowSummary {
    /// Nodes.
    pub total: usize,
    /// Those that succeeded.
    pub succeeded: usize,
    /// Those that did not.
    pub failed: usize,
    /// Those that were not started because of others.
    pub blocked: usize,
    /// Those that were not to run.
    pub skipped: usize,
    /// Those that were stopped.
    pub cancelled: usize,
    /// Calls that ran while another one of the flow ran.
    pub overlapped: usize,
    /// From the first check to the last result.
    #[serde(rename = "durationMs", serialize_with = "millis")]
    #[schemars(with = "f64")]
    pub duration: Duration,
}

/// What comes of a flow: one entry for each node, in the order of the file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowResult {
    /// The name of the flow.
    pub flow: String,
    /// By which its calls are found on the record.
    pub batch_id: BatchId,
    /// How it ended.
    pub status: FlowStatus,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorInfo>>,
    /// Each node.
    pub nodes: Vec<NodeResult>,
    /// In numbers.
    pub summary: FlowSummary,
}

impl FlowResult {
    /// Whether it succeeded.
    pub fn is_success(&self) -> bool {
        self.status == FlowStatus::Success
    }

    /// The row of the error table, where it did not.
    pub fn error_code(&self) -> Option<ErrorCode> {
        self.error.as_ref().map(|error| error.code)
    }

    /// The exit code of the command line for it.
    pub fn exit_code(&self) -> u8 {
        self.error_code().map_or(0, ErrorCode::exit)
    }
}

/// The first node, in the order of the file, that did not succeed and should have. One that failed says more than one
/// that was blocked by it.
pub(super) fn culprit<'n>(flow: &Flow, nodes: &'n [NodeResult]) -> Option<&'n NodeResult> {
    let counts = |(place, node): &(usize, &NodeResult)| {
        let is_bad = !matches!(node.status, NodeStatus::Success | NodeStatus::Skipped);
        is_bad && (!flow.nodes[*place].continue_on_failure || node.status == NodeStatus::Cancelled)
    };
    let bad = || nodes.iter().enumerate().filter(counts).map(|(_, node)| node);
    let of = |status| bad().find(|node: &&NodeResult| node.status == status);
    of(NodeStatus::Failed).or_else(|| of(NodeStatus::Cancelled)).or_else(|| bad().next())
}

pub(super) fn summary(nodes: &[NodeResult], overlapped: usize, duration: Duration) -> FlowSummary {
    let count = |status| nodes.iter().filter(|node| node.status == status).count();
    FlowSummary {
        total: nodes.len(),
        succeeded: count(NodeStatus::Success),
        failed: count(NodeStatus::Failed),
        blocked: count(NodeStatus::Blocked),
        skipped: count(NodeStatus::Skipped),
        cancelled: count(NodeStatus::Cancelled),
        overlapped,
        duration,
    }
}

fn millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_micros() as f64 / 1000.0)
}

/// How a node ended, by the result of its call.
pub(super) fn status_of(result: &ToolResult) -> NodeStatus {
    match (result.status, result.error_code()) {
        (Status::Success, _) => NodeStatus::Success,
        (_, Some(ErrorCode::Blocked | ErrorCode::NotStarted)) => NodeStatus::Blocked,
        (_, Some(ErrorCode::Cancelled | ErrorCode::ShuttingDown)) => NodeStatus::Cancelled,
        _ => NodeStatus::Failed,
    }
}

/// What later nodes are given of a node.
pub(super) fn given(status: NodeStatus, result: &ToolResult) -> Given {
    let is_cut = result.metadata.output_truncated;
    Given {
        status,
        output: result.output.clone(),
        text: (!is_cut && status == NodeStatus::Success).then(|| result.text().to_owned()),
        is_cut,
        error: result.error.as_ref().map(|error| (error.code.to_string(), error.message.clone())),
    }
}

/// Why a flow did not succeed: what its first failed node says.
pub(super) fn why(node: &NodeResult) -> ErrorInfo {
    let reason = node.reason.as_deref().unwrap_or("it did not succeed");
    let code = node.result.as_ref().and_then(ToolResult::error_code).unwrap_or(ErrorCode::ExecutionFailed);
    info(code, format!("The node `{}` did not succeed: {reason}", node.name))
}

/// An error of the table, with words of its own.
pub(super) fn info(code: ErrorCode, message: String) -> ErrorInfo {
    ErrorInfo {
        code,
        number: code.e_number().map(str::to_owned),
        message,
        retryable: code.is_retryable(),
        problems: Vec::new(),
        data: None,
    }
}

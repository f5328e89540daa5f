//! A flow as a tool.

use super::{FlowError, FlowRequest, FlowResult, run};
use crate::{inner::Inner, pipeline::types::CallState, view::View};
use haft_core::{
    CallOptions, DefinitionProblem, ErrorCode, ExecutionId, Footprint, Source, ToolDefinition, ToolError,
    ToolOutput,
};
use haft_definition::Format;
use haft_flow::{Flow, MOST_LEVELS};
use haft_sdk::{Args, Prepared, Tool, ToolCtx, ToolFuture};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A flow that is called like any tool. What it calls passes every check for itself: it is decided about, asked about,
/// scheduled and recorded as if it were called directly.
///
/// ```
/// use haft_engine::FlowTool;
/// use haft_sdk::Tool;
/// let text = r#"{"name": "both", "description": "Both", "nodes": [{"name": "x", "tool": "ping"}]}"#;
/// let flow = haft_flow::read(text, haft_definition::Format::Json)?;
/// let tool = FlowTool::new(flow);
/// assert_eq!(FlowTool::of((**tool.definition()).clone()).unwrap().definition().name, "both");
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct FlowTool {
    flow: Arc<Flow>,
    definition: Arc<ToolDefinition>,
}

impl FlowTool {
    /// The tool of a flow.
    pub fn new(flow: impl Into<Arc<Flow>>) -> Self {
        let flow = flow.into();
        FlowTool { definition: Arc::new(flow.definition()), flow }
    }

    /// The tool of a definition that has a flow, as it is remembered.
    ///
    /// # Errors
    ///
    /// When it has none, or one that cannot be read.
    pub fn of(definition: ToolDefinition) -> Result<Self, DefinitionProblem> {
        let problem = |problem: String| DefinitionProblem {
            place: "flow".to_owned(),
            problem,
            fix: "add the flow again, from its file".to_owned(),
        };
        let Some(flow) = definition.flow.as_ref().filter(|_| definition.source == Source::Flow) else {
            return Err(problem("there is none".to_owned()));
        };
        // How many nodes it may have was looked at when it was added.
        let flow = haft_flow::read_within(&flow.to_string(), Format::Json, usize::MAX);
        let flow = flow.map_err(|errors| problem(haft_core::text::one_line(&errors.to_string(), 400)))?;
        Ok(FlowTool { flow: Arc::new(flow), definition: Arc::new(definition) })
    }

    /// The flow.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }
}

impl Tool for FlowTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn only_calls(&self) -> bool {
        true
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Ok(Box::new(PreparedFlow { flow: Arc::clone(&self.flow), input: args.value.clone() }))
    }
}

struct PreparedFlow {
    flow: Arc<Flow>,
    input: Map<String, Value>,
}

impl Prepared for PreparedFlow {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        // Whatever its nodes may touch.
        Footprint::undeclared(true)
    }

    fn summary(&self) -> String {
        format!("Run the flow {} of {} nodes", self.flow.name, self.flow.nodes.len())
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        Box::pin(async move {
            let (engine, outer) = around(&cx)?;
            bounded(&outer)?;
            // Its calls are found under the id of this one; another attempt cannot use it again.
            let id = match cx.attempt() {
                1 => outer.id,
                _ => ExecutionId::at(engine.ports.clock.now()),
            };
            let options = CallOptions {
                execution_id: Some(id),
                priority: outer.options.priority,
                limits: outer.options.limits.clone(),
                ..CallOptions::default()
            };
            let request = FlowRequest {
                flow: Arc::clone(&self.flow),
                input: self.input,
                context: Arc::clone(&outer.context),
                options,
                approver: outer.approver.clone(),
            };
            let running = run::begin(&engine, request, Some(outer)).map_err(|error| match error {
                FlowError::Refused(error) => error,
                FlowError::Bad(errors) => ToolError::new(
                    ErrorCode::BadDefinition,
                    format!("The flow `{}` does not fit the tools that are here:\n{errors}", self.flow.name),
                ),
            })?;
            output(running.await)
        })
    }
}

/// The engine that runs the call, and the call.
fn around(cx: &ToolCtx) -> Result<(Arc<Inner>, Arc<CallState>), ToolError> {
    let view = cx.engine().as_any().and_then(|view| view.downcast_ref::<View>());
    let engine = view.and_then(|view| view.engine.upgrade());
    let gone = || ToolError::new(ErrorCode::ToolDisabled, "There is no engine here that could run a flow");
    let engine = engine.ok_or_else(gone)?;
    let call = engine.live.executions.call(cx.execution_id()).ok_or_else(gone)?;
    Ok((engine, call))
}

/// A flow that would call itself, or flows that call flows too deeply, are refused. What the check of a file cannot see
/// (a tool that calls others by name) is seen here.
fn bounded(call: &Arc<CallState>) -> Result<(), ToolError> {
    let name = call.tool_name();
    let mut levels = 0;
    let mut outer = call.outer.as_ref();
    while let Some(above) = outer {
        levels += 1;
        if above.tool_name() == name {
            let text =
                format!("The flow `{name}` would call itself. Call a tool that does not lead back to it");
            return Err(ToolError::new(ErrorCode::LimitExceeded, text));
        }
        if levels >= MOST_LEVELS {
            let text =
                format!("Calls are nested more than {MOST_LEVELS} levels deep. Use fewer flows inside flows");
            return Err(ToolError::new(ErrorCode::LimitExceeded, text));
        }
        outer = above.outer.as_ref();
    }
    Ok(())
}

fn output(result: FlowResult) -> Result<ToolOutput, ToolError> {
    let nodes: Vec<Value> = result
        .nodes
        .iter()
        .map(|node| json!({"name": node.name, "tool": node.tool, "status": node.status, "reason": node.reason}))
        .collect();
    match result.error {
        Some(error) => {
            let error = ToolError::new(error.code, error.message).with_problems(error.problems);
            Err(error.with_data(json!({"batchId": result.batch_id, "nodes": nodes})))
        }
        None => {
            let effects = result.nodes.iter().filter_map(|node| node.result.as_ref());
            Ok(ToolOutput {
                structured: result.output,
                side_effects: effects.flat_map(|result| result.metadata.side_effects.clone()).collect(),
                ..ToolOutput::default()
            })
        }
    }
}

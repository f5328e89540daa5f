//! What is asked for.

use haft_core::{CallContext, CallOptions, ErrorCode, ToolError, port::Approver};
use haft_definition::ReadErrors;
use haft_flow::Flow;
use haft_schema::{ArgumentSchema, Coercion};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A flow with what it takes, who runs it and how.
#[derive(Clone)]
pub struct FlowRequest {
    /// The flow.
    pub flow: Arc<Flow>,
    /// What it takes.
    pub input: Map<String, Value>,
    /// Who runs it.
    pub context: Arc<CallContext>,
    /// How: the options of every node that says nothing else. An execution id there names the flow's run.
    pub options: CallOptions,
    /// Whom to ask instead of the engine's approver.
    pub approver: Option<Arc<dyn Approver>>,
}

impl FlowRequest {
    /// A flow that the owner of the machine runs.
    ///
    /// ```
    /// let text = r#"{"name": "a", "description": "A", "nodes": [{"name": "x", "tool": "ping"}]}"#;
    /// let flow = haft_flow::read(text, haft_definition::Format::Json)?;
    /// let request = haft_engine::FlowRequest::new(flow, serde_json::Map::new());
    /// assert_eq!(&*request.context.tenant, "local");
    /// # Ok::<(), haft_definition::ReadErrors>(())
    /// ```
    pub fn new(flow: impl Into<Arc<Flow>>, input: Map<String, Value>) -> Self {
        FlowRequest {
            flow: flow.into(),
            input,
            context: CallContext::owner(),
            options: CallOptions::default(),
            approver: None,
        }
    }

    /// Names who runs it.
    #[must_use]
    pub fn context(mut self, context: impl Into<Arc<CallContext>>) -> Self {
        self.context = context.into();
        self
    }

    /// Sets the options of its nodes.
    #[must_use]
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Names whom to ask.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }
}

/// Why a flow was not started. Nothing of it ran.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FlowError {
    /// It does not fit the tools that are here.
    #[error("{0}")]
    Bad(ReadErrors),
    /// What it was given does not fit it, or it cannot be taken.
    #[error("{}", .0.message)]
    Refused(ToolError),
}

/// What the flow is given, with defaults.
pub(super) fn checked_input(flow: &Flow, input: Map<String, Value>) -> Result<Map<String, Value>, FlowError> {
    let definition = flow.definition();
    let unusable = |problem: String| FlowError::Refused(ToolError::new(ErrorCode::BadDefinition, problem));
    let schema = ArgumentSchema::of(&definition).map_err(|problem| unusable(problem.to_string()))?;
    schema.check(input, Coercion::Off).map(|fitting| fitting.arguments).map_err(|unfit| {
        let text = format!("The input does not fit the flow `{}`: {}", flow.name, unfit.sentence);
        FlowError::Refused(ToolError::new(ErrorCode::ValidationFailed, text).with_problems(unfit.problems))
    })
}

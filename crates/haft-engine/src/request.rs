//! What the engine is asked to do.

use haft_core::{BatchOptions, CallContext, CallOptions, ToolCall, port::Approver};
use std::sync::Arc;

/// A call with who makes it and how. A bare [`ToolCall`] is one by the owner, with nothing special asked for.
///
/// ```
/// use haft_core::{CallOptions, ToolCall};
/// use haft_engine::Request;
/// let request = Request::new(ToolCall::new("get_metrics", serde_json::json!({})))
///     .options(CallOptions { coerce: Some(false), ..CallOptions::default() });
/// assert_eq!(&*request.context.tenant, "local");
/// ```
#[derive(Clone)]
pub struct Request {
    /// The call.
    pub call: ToolCall,
    /// Who makes it.
    pub context: Arc<CallContext>,
    /// The options.
    pub options: Arc<CallOptions>,
    /// Whom to ask instead of the engine's approver.
    pub approver: Option<Arc<dyn Approver>>,
}

impl Request {
    /// A call by the owner of the machine.
    pub fn new(call: ToolCall) -> Self {
        Request { call, context: CallContext::owner(), options: default_options(), approver: None }
    }

    /// Names who calls.
    pub fn context(mut self, context: impl Into<Arc<CallContext>>) -> Self {
        self.context = context.into();
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: impl Into<Arc<CallOptions>>) -> Self {
        self.options = options.into();
        self
    }

    /// Names whom to ask.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }
}

fn default_options() -> Arc<CallOptions> {
    static DEFAULT: std::sync::LazyLock<Arc<CallOptions>> = std::sync::LazyLock::new(Arc::default);
    Arc::clone(&DEFAULT)
}

impl From<ToolCall> for Request {
    fn from(call: ToolCall) -> Self {
        Request::new(call)
    }
}

/// Calls that are planned together, with who makes them and how.
///
/// ```
/// use haft_core::ToolCall;
/// use haft_engine::BatchRequest;
/// let batch = BatchRequest::from(vec![ToolCall::new("get_metrics", serde_json::json!({}))]);
/// assert!(batch.options.continue_on_failure);
/// ```
#[derive(Clone)]
pub struct BatchRequest {
    /// The calls, in their order.
    pub calls: Vec<ToolCall>,
    /// Who makes them.
    pub context: Arc<CallContext>,
    /// The options.
    pub options: BatchOptions,
    /// Whom to ask instead of the engine's approver.
    pub approver: Option<Arc<dyn Approver>>,
}

impl BatchRequest {
    /// Names who calls.
    pub fn context(mut self, context: impl Into<Arc<CallContext>>) -> Self {
        self.context = context.into();
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: BatchOptions) -> Self {
        self.options = options;
        self
    }

    /// Names whom to ask.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }
}

impl From<Vec<ToolCall>> for BatchRequest {
    fn from(calls: Vec<ToolCall>) -> Self {
        BatchRequest {
            calls,
            context: CallContext::owner(),
            options: BatchOptions::default(),
            approver: None,
        }
    }
}

//! A tool from one async function.

use crate::{Args, IntoToolOutput, Prepared, Tool, ToolCtx, ToolFuture, typed};
use haft_core::{Arguments, Footprint, ToolDefinition, ToolError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::{future::Future, marker::PhantomData, sync::Arc};

/// A tool made of an async function. See [`tool_fn`].
pub struct FnTool<A, F> {
    definition: Arc<ToolDefinition>,
    function: Arc<F>,
    args: PhantomData<fn() -> A>,
}

/// Makes a tool of an async function from typed arguments to anything that is [`IntoToolOutput`].
///
/// ```
/// use haft_sdk::{Tool, ToolCtx, ToolError, tool_fn};
///
/// /// Turns a text around.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Reverse {
///     /// The text.
///     text: String,
/// }
///
/// let tool = tool_fn("reverse", async |args: Reverse, _cx: ToolCtx| -> Result<String, ToolError> {
///     Ok(args.text.chars().rev().collect())
/// }).read_only();
/// assert!(tool.definition().check().is_empty());
/// ```
pub fn tool_fn<A, F, Fut, O>(name: &str, function: F) -> FnTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(A, ToolCtx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolOutput + 'static,
{
    FnTool {
        definition: Arc::new(typed::definition_of::<A, O>(name)),
        function: Arc::new(function),
        args: PhantomData,
    }
}

impl<A, F> FnTool<A, F> {
    /// It changes nothing, so nobody needs to be asked.
    pub fn read_only(mut self) -> Self {
        Arc::make_mut(&mut self.definition).constraints.allow_side_effects = false;
        self
    }

    /// Adds to the definition what the types cannot say.
    pub fn define(mut self, refine: impl FnOnce(&mut ToolDefinition)) -> Self {
        refine(Arc::make_mut(&mut self.definition));
        self
    }
}

impl<A, F, Fut, O> Tool for FnTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(A, ToolCtx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolOutput + 'static,
{
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Ok(Box::new(FnCall {
            args: typed::read_args::<A>(args)?,
            original: args.original.clone(),
            has_side_effects: self.definition.has_side_effects(),
            function: Arc::clone(&self.function),
        }))
    }
}

struct FnCall<A, F> {
    function: Arc<F>,
    args: A,
    original: Arguments,
    has_side_effects: bool,
}

impl<A, F, Fut, O> Prepared for FnCall<A, F>
where
    A: Send + Sync + 'static,
    F: Fn(A, ToolCtx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolOutput + 'static,
{
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        Footprint::undeclared(self.has_side_effects)
    }

    fn summary(&self) -> String {
        self.original.as_str().to_owned()
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        let FnCall { function, args, .. } = *self;
        Box::pin(async move { function(args, cx).await?.into_tool_output() })
    }
}

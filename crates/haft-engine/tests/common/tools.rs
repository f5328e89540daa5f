//! Tools that do as they are told.

use haft_core::{
    Footprint, IsolationLevel, Parameters, Resource, ToolDefinition, ToolError, port::BoxFuture,
};
use haft_sdk::{Args, IntoToolOutput, Prepared, Tool, ToolCtx, ToolFuture};
use serde_json::{Value, json};
use std::{
    future::Future,
    sync::{
        Arc, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

type Check = dyn Fn(&Args) -> Result<(), ToolError> + Send + Sync;
type Print = dyn Fn(&Args) -> Footprint + Send + Sync;
type Words = dyn Fn(&Args) -> String + Send + Sync;
type Looks = dyn Fn(&Args) -> Result<String, ToolError> + Send + Sync;
type Confirms = dyn Fn() -> Option<String> + Send + Sync;
type Run = dyn Fn(Args, ToolCtx) -> ToolFuture + Send + Sync;

/// A tool whose every step is a closure. Unless told otherwise it takes any object, touches nothing and is read-only.
#[derive(Clone)]
pub(crate) struct Scripted {
    definition: Arc<ToolDefinition>,
    prepare: Arc<Check>,
    footprint: Arc<Print>,
    confirm: Arc<Confirms>,
    summary: Arc<Words>,
    preview: Option<Arc<Looks>>,
    run: Arc<Run>,
}

/// A tool that runs that function. What it does before it returns its future is the synchronous part.
pub(crate) fn tool<F, Fut, O>(name: &str, run: F) -> Scripted
where
    F: Fn(Args, ToolCtx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolOutput + 'static,
{
    let mut definition = ToolDefinition::new(name, "A tool of a test");
    definition.parameters = Parameters::Schema(json!({"type": "object"}));
    definition.constraints.allow_side_effects = false;
    definition.constraints.required_isolation = IsolationLevel::None;
    Scripted {
        definition: Arc::new(definition),
        prepare: Arc::new(|_| Ok(())),
        footprint: Arc::new(|_| Footprint::default()),
        confirm: Arc::new(|| None),
        summary: Arc::new(|args| args.original.as_str().to_owned()),
        preview: None,
        run: Arc::new(move |args, cx| {
            let running = run(args, cx);
            Box::pin(async move { running.await?.into_tool_output() })
        }),
    }
}

impl Scripted {
    pub(crate) fn define(mut self, refine: impl FnOnce(&mut ToolDefinition)) -> Self {
        refine(Arc::make_mut(&mut self.definition));
        self
    }

    /// It changes things, and nobody knows which.
    pub(crate) fn effects(mut self) -> Self {
        self.footprint = Arc::new(|_| Footprint::undeclared(true));
        self.define(|definition| definition.constraints.allow_side_effects = true)
    }

    /// It changes that path and nothing else.
    pub(crate) fn writes(mut self, path: &'static str) -> Self {
        self = self.effects();
        self.footprint = Arc::new(move |_| Footprint::writes([Resource::path(path)]));
        self
    }

    /// It reads that path.
    pub(crate) fn reads(mut self, path: &'static str) -> Self {
        self.footprint = Arc::new(move |_| Footprint::reads([Resource::path(path)]));
        self
    }

    /// A person must always agree.
    pub(crate) fn asks(self) -> Self {
        self.define(|definition| definition.requires_confirmation = true)
    }

    pub(crate) fn takes(self, schema: Value) -> Self {
        self.define(|definition| definition.parameters = Parameters::Schema(schema))
    }

    pub(crate) fn gives(self, schema: Value) -> Self {
        self.define(|definition| definition.output_schema = Some(schema))
    }

    pub(crate) fn on_prepare(
        mut self,
        check: impl Fn(&Args) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.prepare = Arc::new(check);
        self
    }

    pub(crate) fn on_footprint(
        mut self,
        footprint: impl Fn(&Args) -> Footprint + Send + Sync + 'static,
    ) -> Self {
        self.footprint = Arc::new(footprint);
        self
    }

    /// Why a person has to agree, as far as it knows now.
    pub(crate) fn on_confirm(mut self, confirm: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.confirm = Arc::new(confirm);
        self
    }

    pub(crate) fn on_summary(mut self, summary: impl Fn(&Args) -> String + Send + Sync + 'static) -> Self {
        self.summary = Arc::new(summary);
        self
    }

    pub(crate) fn on_preview(mut self, preview: impl Fn(&Args) -> String + Send + Sync + 'static) -> Self {
        self.preview = Some(Arc::new(move |args| Ok(preview(args))));
        self
    }

    /// It cannot say what it would change.
    pub(crate) fn on_failing_preview(mut self, code: haft_core::ErrorCode, text: &'static str) -> Self {
        self.preview = Some(Arc::new(move |_| Err(ToolError::new(code, text))));
        self
    }
}

impl Tool for Scripted {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        (self.prepare)(args)?;
        Ok(Box::new(Script { args: args.clone(), tool: self.clone() }))
    }
}

struct Script {
    args: Args,
    tool: Scripted,
}

impl Prepared for Script {
    fn confirm(&self) -> Option<String> {
        (self.tool.confirm)()
    }

    fn footprint(&self) -> Footprint {
        (self.tool.footprint)(&self.args)
    }

    fn summary(&self) -> String {
        (self.tool.summary)(&self.args)
    }

    fn preview(&self, _cx: ToolCtx) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        let preview = self.tool.preview.as_ref()?;
        Some(Box::pin(std::future::ready(preview(&self.args))))
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        (self.tool.run)(self.args, cx)
    }
}

/// A count that several tools and a test share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// One more, for as long as what comes back is not dropped.
    pub(crate) fn alive(&self) -> Alive {
        self.up();
        Alive(self.clone())
    }
}

/// Something that a running tool holds: it counts as long as the tool's future is there.
pub(crate) struct Alive(Count);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Keeps panics that a test plans out of its output: those whose message begins with `planned`. Others are printed as
/// ever.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let planned = info.payload_as_str().is_none_or(|text| text.starts_with("planned"));
            if !planned {
                usual(info);
            }
        }));
    });
}

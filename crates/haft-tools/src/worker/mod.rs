//! File tools in a jail: haft starts itself again there, and the tool does its work in that worker.
//!
//! | where | what |
//! |---|---|
//! | in the worker | the tool's own code: arguments, paths, reading, searching, decoding, patching |
//! | outside | changes, which haft makes as always; what a conversation has read; which secrets there are |
//!
//! The worker sees the roots read-only, and nothing of the network. What it asks for outside is checked there as if the
//! tool had asked in haft's own process: changes are held to what was decided about the call.

mod host;
mod inside;
mod wire;

pub use inside::{MARK, serve};

use haft_core::{Footprint, IsolationLevel, ToolDefinition, ToolError, ToolOutput, port::BoxFuture};
use haft_sdk::{IntoToolOutput, ToolCtx, TypedTool};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use wire::Purpose;

/// A tool that does its work in haft's own process, or in a worker where a call asks for that.
pub(crate) struct Jailable<T>(Arc<T>);

impl<T> Jailable<T> {
    pub(crate) fn new(tool: T) -> Self {
        Jailable(Arc::new(tool))
    }
}

/// What a tool returned, here or in its worker.
pub(crate) enum Ran<O> {
    Here(O),
    InWorker(ToolOutput),
}

impl<O: IntoToolOutput> IntoToolOutput for Ran<O> {
    fn output_schema() -> Option<Value> {
        O::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Ran::Here(output) => output.into_tool_output(),
            Ran::InWorker(output) => Ok(output),
        }
    }
}

impl<T> TypedTool for Jailable<T>
where
    T: TypedTool + Serialize + DeserializeOwned,
    T::Args: Serialize,
{
    const NAME: &'static str = T::NAME;
    type Args = T::Args;
    type Output = Ran<T::Output>;

    fn define(&self, definition: &mut ToolDefinition) {
        self.0.define(definition);
    }

    fn works_in_jail(&self) -> bool {
        true
    }

    fn check(&self, args: &T::Args) -> Result<(), ToolError> {
        self.0.check(args)
    }

    fn confirm(&self, args: &T::Args) -> Option<String> {
        self.0.confirm(args)
    }

    fn timeout(&self, args: &T::Args) -> Option<Duration> {
        self.0.timeout(args)
    }

    fn stages(&self, args: &T::Args) -> bool {
        self.0.stages(args)
    }

    fn footprint(&self, args: &T::Args) -> Option<Footprint> {
        self.0.footprint(args)
    }

    fn summary(&self, args: &T::Args) -> Option<String> {
        self.0.summary(args)
    }

    fn preview(&self, args: &T::Args, cx: ToolCtx) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let here = self.0.preview(args, cx.clone())?;
        if cx.isolation() == IsolationLevel::None {
            return Some(here);
        }
        let job = host::job(&*self.0, args, &cx, Purpose::Preview);
        Some(Box::pin(async move { Ok(host::run(job?, &cx).await?.text.unwrap_or_default()) }))
    }

    async fn call(&self, args: T::Args, cx: ToolCtx) -> Result<Ran<T::Output>, ToolError> {
        if cx.isolation() == IsolationLevel::None {
            return Ok(Ran::Here(self.0.call(args, cx).await?));
        }
        let job = host::job(&*self.0, &args, &cx, Purpose::Run)?;
        // Boxed: its state would make every call larger that needs no worker.
        Ok(Ran::InWorker(Box::pin(host::run(job, &cx)).await?))
    }
}

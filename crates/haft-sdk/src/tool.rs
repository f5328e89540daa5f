//! The object-safe traits behind every tool.

use crate::ToolCtx;
use haft_core::{Arguments, Footprint, ToolDefinition, ToolError, ToolOutput, port::BoxFuture};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// Arguments that fit the tool's schema, with the text that they came from.
#[derive(Clone, Debug)]
pub struct Args {
    /// The members, after defaults and coercion.
    pub value: Map<String, Value>,
    /// The original bytes: what is hashed and shown.
    pub original: Arguments,
}

/// What a tool's run comes to.
pub type ToolFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// A tool: what it says about itself, and how a call of it is prepared.
///
/// Nearly every author wants [`tool_fn`](crate::tool_fn) or [`TypedTool`](crate::TypedTool) instead.
pub trait Tool: Send + Sync + 'static {
    /// What it says about itself. Always the same; shared, because with thousands of tools copies add up.
    fn definition(&self) -> &Arc<ToolDefinition>;

    /// Whether it can start itself again in a jail, where a call asks for isolation or for limits that code in haft's own
    /// process cannot be held to ([`ToolCtx::isolation`]). Such calls of other tools that run in haft's process are
    /// refused.
    fn works_in_jail(&self) -> bool {
        false
    }

    /// Whether it does nothing itself and only makes calls through the engine, which have the limits of its own call. Limits
    /// that code in haft's own process cannot be held to are then no reason to refuse it.
    fn only_calls(&self) -> bool {
        false
    }

    /// The only parse. Pure: no I/O, nothing changed. What comes back is what is shown, approved, hashed and run.
    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError>;
}

impl Tool for Box<dyn Tool> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        (**self).definition()
    }

    fn works_in_jail(&self) -> bool {
        (**self).works_in_jail()
    }

    fn only_calls(&self) -> bool {
        (**self).only_calls()
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        (**self).prepare(args)
    }
}

/// A call that could run now. The very object that a person agreed to is the one that runs.
pub trait Prepared: Send + Sync {
    /// What it would read and write.
    fn footprint(&self) -> Footprint;

    /// What it would do, in one line for a person; at most 200 characters are shown.
    fn summary(&self) -> String;

    /// Why a person must agree to this very call, whatever is allowed in general: it deletes something, say. Such a
    /// call is of high risk. Whatever wraps a call must pass this on, so there is no default.
    fn confirm(&self) -> Option<String>;

    /// The deadline that this very call asks for, as one of its arguments, say. A deadline that the caller set counts
    /// more.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether all that it changes is changed by one program that runs to its end ([`ToolCtx::run`]): only then can its
    /// writes be kept apart, and be decided about when it has ended.
    fn stages(&self) -> bool {
        false
    }

    /// A look at what would change, such as a diff, for the person who is asked. It may read, never write.
    fn preview(&self, _cx: ToolCtx) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        None
    }

    /// Runs it. Dropping the future ends it.
    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture;
}

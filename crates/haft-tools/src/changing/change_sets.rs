//! `apply_changes` and `discard_changes`: a person's decision about what a staged command changed. They are ordinary
//! calls, so that the decision is checked and recorded. No model is given them unless a program adds them.

use super::{changing, undo_changes::id};
use haft_core::{
    ErrorCode, Risk, ToolDefinition, ToolError, ToolOutput,
    port::{BoxFuture, ChangeSets},
};
use haft_sdk::{Tool, ToolCtx, TypedTool, typed};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// How much of a diff a person can be asked about.
const MOST_SHOWN: usize = 4 << 20;

/// What both take.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSetArgs {
    /// The call whose changes are meant: the execution_id that its result names.
    pub execution_id: String,
}

/// Applies what a staged command changed, which was kept apart until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApplyChanges;

/// Throws away what a staged command changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardChanges;

/// The tools with which a person decides about what staged commands changed.
///
/// ```
/// let tools = haft_tools::change_set_tools();
/// let names: Vec<_> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
/// assert_eq!(names, ["apply_changes", "discard_changes"]);
/// assert!(tools.iter().all(|tool| tool.definition().check().is_empty()));
/// ```
pub fn change_set_tools() -> Vec<Box<dyn Tool>> {
    vec![Box::new(typed(ApplyChanges)), Box::new(typed(DiscardChanges))]
}

fn sets(cx: &ToolCtx) -> Result<Arc<dyn ChangeSets>, ToolError> {
    cx.commands().change_sets().ok_or_else(|| {
        ToolError::new(ErrorCode::PermissionDenied, "Changes of staged commands are not granted to this call")
    })
}

impl TypedTool for ApplyChanges {
    const NAME: &'static str = "apply_changes";
    type Args = ChangeSetArgs;
    type Output = ToolOutput;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Apply what an earlier command changed and what was kept apart from the files until now: all of \
             it, or nothing. Refused where somebody else changed one of the files since.";
        changing(definition, "Apply changes", description, Risk::High, &[]);
    }

    fn check(&self, args: &ChangeSetArgs) -> Result<(), ToolError> {
        id(&args.execution_id).map(|_| ())
    }

    fn summary(&self, args: &ChangeSetArgs) -> Option<String> {
        Some(format!("Apply what {} changed", args.execution_id))
    }

    fn preview(
        &self,
        args: &ChangeSetArgs,
        cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let of = id(&args.execution_id);
        Some(Box::pin(async move {
            let of = of?;
            sets(&cx)?.diff(&cx.context().tenant, of, MOST_SHOWN + 1).await
        }))
    }

    async fn call(&self, args: ChangeSetArgs, cx: ToolCtx) -> Result<ToolOutput, ToolError> {
        let (of, sets) = (id(&args.execution_id)?, sets(&cx)?);
        let tenant = cx.context().tenant.to_string();
        let found = sets.look(&tenant, of).await?;
        cx.check_cancelled()?;
        let summary = sets.apply(&tenant, of, &found.fingerprint, true).await?;
        let mut output = ToolOutput::text(format!("Applied what {of} changed: {summary}"));
        output.structured = serde_json::to_value(&summary).ok();
        Ok(output)
    }
}

impl TypedTool for DiscardChanges {
    const NAME: &'static str = "discard_changes";
    type Args = ChangeSetArgs;
    type Output = ToolOutput;

    fn define(&self, definition: &mut ToolDefinition) {
        let description =
            "Throw away what an earlier command changed and what was kept apart from the files until now.";
        changing(definition, "Discard changes", description, Risk::High, &[]);
    }

    fn check(&self, args: &ChangeSetArgs) -> Result<(), ToolError> {
        id(&args.execution_id).map(|_| ())
    }

    fn summary(&self, args: &ChangeSetArgs) -> Option<String> {
        Some(format!("Throw away what {} changed", args.execution_id))
    }

    async fn call(&self, args: ChangeSetArgs, cx: ToolCtx) -> Result<ToolOutput, ToolError> {
        let (of, sets) = (id(&args.execution_id)?, sets(&cx)?);
        let tenant = cx.context().tenant.to_string();
        sets.discard(&tenant, of).await?;
        Ok(ToolOutput::text(format!("Threw away what {of} changed")))
    }
}

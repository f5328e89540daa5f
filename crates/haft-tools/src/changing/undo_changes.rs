//! `undo_changes`: the way back.

use super::{
    changing,
    report::{Reported, lines},
};
use haft_core::{ExecutionId, Footprint, Resource, Risk, ToolDefinition, ToolError, port::BoxFuture};
use haft_sdk::{ToolCtx, TypedTool, files::Reader};
use schemars::JsonSchema;
use serde::Deserialize;

/// What `undo_changes` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoChangesArgs {
    /// The call whose changes are put back: the execution_id that its result names.
    pub execution_id: String,
}

/// Puts back what a call changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndoChanges;

impl TypedTool for UndoChanges {
    const NAME: &'static str = "undo_changes";
    type Args = UndoChangesArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Put back the files that an earlier call changed, made, moved or deleted. Refused where one \
             of them changed since. Undoing can itself be undone.";
        changing(definition, "Undo changes", description, Risk::Medium, &[]);
    }

    fn check(&self, args: &UndoChangesArgs) -> Result<(), ToolError> {
        id(&args.execution_id).map(|_| ())
    }

    /// The paths come in its place: a person is asked about protected names, and rules about paths hold.
    fn footprint(&self, args: &UndoChangesArgs) -> Option<Footprint> {
        Some(Footprint::writes([Resource::changes_of(id(&args.execution_id).ok()?)]))
    }

    fn preview(
        &self,
        args: &UndoChangesArgs,
        cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let of = id(&args.execution_id);
        Some(Box::pin(async move {
            let of = of?;
            cx.blocking(move |cx| {
                let paths = cx.workspace().changed_by(of, &cx.context().tenant)?;
                let paths = paths.unwrap_or_else(|| vec!["more files than can be listed".to_owned()]);
                Ok(paths.iter().map(|path| format!("put back {path}\n")).collect())
            })
            .await
        }))
    }

    fn summary(&self, args: &UndoChangesArgs) -> Option<String> {
        Some(format!("Undo what {} changed", args.execution_id))
    }

    async fn call(&self, args: UndoChangesArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        let of = id(&args.execution_id)?;
        cx.blocking(move |cx| {
            cx.check_cancelled()?;
            let changed = cx.workspace().undo(of, cx.execution_id(), &Reader::of(cx.context()))?;
            Ok(Reported { text: lines(&changed), changed, execution_id: cx.execution_id().to_string() })
        })
        .await
    }
}

pub(super) fn id(text: &str) -> Result<ExecutionId, ToolError> {
    text.trim().parse().map_err(|_| {
        let shown = haft_core::text::one_line(text, 60);
        ToolError::bad_args(format!(
            "Bad args: '{shown}' is not an execution id; one looks like 0197f3a2-1c5b-7def-8a90-123456789abc"
        ))
    })
}

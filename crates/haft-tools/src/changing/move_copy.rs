//! `move_file` and `copy_file`.

use super::{
    changing, commit,
    report::{Reported, lines},
};
use haft_core::{ErrorCode, Footprint, Resource, Risk, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool, files::Change};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `move_file` and `copy_file` take.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MoveCopyArgs {
    /// The file that is there, relative to the working folder.
    pub source: String,
    /// Where it goes. In a folder that is there, it keeps its name. Folders on the way are made.
    pub destination: String,
    /// Whether a file that is at the destination is replaced.
    #[serde(default)]
    pub overwrite: bool,
}

/// Moves a file or a folder.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MoveFile {
    /// Whether calls may replace files at all.
    pub allow_overwrite: bool,
}

/// Copies a file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CopyFile {
    /// Whether calls may replace files at all.
    pub allow_overwrite: bool,
}

fn check(args: &MoveCopyArgs, allow_overwrite: bool) -> Result<(), ToolError> {
    for (name, path) in [("source", &args.source), ("destination", &args.destination)] {
        if path.trim().is_empty() {
            return Err(ToolError::bad_args(format!("Bad args: {name} must not be empty")));
        }
    }
    match args.overwrite && !allow_overwrite {
        false => Ok(()),
        true => Err(ToolError::new(
            ErrorCode::FilesystemPolicyViolation,
            "overwrite is not allowed here: tools.fileops.allow_overwrite is false. Choose a destination where \
             nothing is",
        )),
    }
}

impl TypedTool for MoveFile {
    const NAME: &'static str = "move_file";
    type Args = MoveCopyArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Move or rename a file or a folder. Refuses where something is at the destination.";
        changing(definition, "Move file", description, Risk::High, &["MoveFile", "move", "rename", "mv"]);
    }

    fn check(&self, args: &MoveCopyArgs) -> Result<(), ToolError> {
        check(args, self.allow_overwrite)
    }

    fn footprint(&self, args: &MoveCopyArgs) -> Option<Footprint> {
        Some(Footprint::writes([Resource::path(&args.source), Resource::path(&args.destination)]))
    }

    fn summary(&self, args: &MoveCopyArgs) -> Option<String> {
        Some(format!("Move {} to {}", args.source, args.destination))
    }

    async fn call(&self, args: MoveCopyArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        let summary = self.summary(&args).unwrap_or_default();
        let change = Change::Move { from: args.source, to: args.destination, replace: args.overwrite };
        made(cx, summary, change).await
    }
}

impl TypedTool for CopyFile {
    const NAME: &'static str = "copy_file";
    type Args = MoveCopyArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Copy a file, with its permissions. Refuses where something is at the destination.";
        changing(definition, "Copy file", description, Risk::Medium, &["CopyFile", "copy", "cp"]);
        definition.requires_confirmation = true;
    }

    fn check(&self, args: &MoveCopyArgs) -> Result<(), ToolError> {
        check(args, self.allow_overwrite)
    }

    fn footprint(&self, args: &MoveCopyArgs) -> Option<Footprint> {
        let mut footprint = Footprint::writes([Resource::path(&args.destination)]);
        footprint.reads.push(Resource::path(&args.source));
        Some(footprint)
    }

    fn summary(&self, args: &MoveCopyArgs) -> Option<String> {
        Some(format!("Copy {} to {}", args.source, args.destination))
    }

    async fn call(&self, args: MoveCopyArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        let summary = self.summary(&args).unwrap_or_default();
        let change = Change::Copy { from: args.source, to: args.destination, replace: args.overwrite };
        made(cx, summary, change).await
    }
}

async fn made(cx: ToolCtx, summary: String, change: Change) -> Result<Reported, ToolError> {
    cx.blocking(move |cx| {
        let changed = commit(cx, summary, vec![change])?;
        Ok(Reported { text: lines(&changed), changed, execution_id: cx.execution_id().to_string() })
    })
    .await
}

//! `delete_file`.

use super::{
    changing, check_hash, check_path, commit,
    report::{Reported, lines},
};
use haft_core::{ErrorCode, Footprint, Resource, Risk, ToolDefinition, ToolError, port::BoxFuture};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{Change, Expect, Kind},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `delete_file` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteFileArgs {
    /// The file, relative to the working folder. Of a link, the link itself goes.
    pub path: String,
    /// SHA-256 that the file must have now, as read_file gave it.
    #[serde(default)]
    pub expected_sha256: Option<String>,
}

/// Deletes a file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct DeleteFile {
    /// Whether folders may be deleted, too, with all that is in them.
    pub allow_delete_dirs: bool,
}

impl TypedTool for DeleteFile {
    const NAME: &'static str = "delete_file";
    type Args = DeleteFileArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Delete a file. It is kept aside, so that it can be put back with undo_changes.";
        changing(definition, "Delete file", description, Risk::High, &["DeleteFile", "Delete", "rm"]);
    }

    fn check(&self, args: &DeleteFileArgs) -> Result<(), ToolError> {
        check_path(&args.path)?;
        check_hash(args.expected_sha256.as_deref())
    }

    fn footprint(&self, args: &DeleteFileArgs) -> Option<Footprint> {
        Some(Footprint::writes([Resource::path(&args.path)]))
    }

    fn summary(&self, args: &DeleteFileArgs) -> Option<String> {
        Some(format!("Delete {}", args.path))
    }

    fn preview(
        &self,
        args: &DeleteFileArgs,
        cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let path = args.path.clone();
        Some(Box::pin(async move {
            cx.blocking(move |cx| match cx.workspace().look(&path)? {
                Some((_, metadata)) if metadata.kind == Kind::File => {
                    Ok(haft_patch::diff(Some(&super::read(cx, &path)?), None, &path, &path))
                }
                Some((place, _)) => Ok(format!("{} and all that is in it", place.shown)),
                None => Ok(format!("{path} does not exist")),
            })
            .await
        }))
    }

    async fn call(&self, args: DeleteFileArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        let allow_folders = self.allow_delete_dirs;
        cx.blocking(move |cx| {
            let path = &args.path;
            let Some((place, metadata)) = cx.workspace().look(path)? else {
                return Err(ToolError::failed(format!("'{path}' does not exist")));
            };
            if metadata.kind == Kind::Folder && !allow_folders {
                let text = format!(
                    "'{}' is a directory, and deleting directories is not allowed: tools.delete.allow_delete_dirs is \
                     false. Delete its files instead",
                    place.shown
                );
                return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
            }
            let expect = args.expected_sha256.clone().map_or(Expect::Anything, Expect::Sha256);
            let change = Change::Delete { path: path.clone(), expect };
            let changed = commit(cx, format!("Delete {path}"), vec![change])?;
            Ok(Reported { text: lines(&changed), changed, execution_id: cx.execution_id().to_string() })
        })
        .await
    }
}

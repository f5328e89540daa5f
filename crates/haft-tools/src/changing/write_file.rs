//! `write_file`: a whole file.

use super::{changing, check_hash, check_path, commit, read, read_known, report::Reported, still};
use haft_core::{Footprint, Resource, Risk, ToolDefinition, ToolError, port::BoxFuture};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{Change, Expect},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do where a file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// Makes a new file, and refuses where one is.
    #[default]
    Create,
    /// Adds to the end of the file, or makes it.
    Append,
    /// Replaces the file, which must have been read in this conversation and not have changed since.
    Overwrite,
}

/// What `write_file` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFileArgs {
    /// The file, relative to the working folder. Folders on the way are made.
    pub path: String,
    /// All of its text; with mode append, what is added.
    pub content: String,
    /// What to do where a file is: create (default) refuses, append adds to it, overwrite replaces it.
    #[serde(default)]
    pub mode: WriteMode,
    /// SHA-256 that the file must have now, as read_file gave it. Not needed for a file that was read in this
    /// conversation.
    #[serde(default)]
    pub expected_sha256: Option<String>,
}

/// Writes a file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct WriteFile;

impl TypedTool for WriteFile {
    const NAME: &'static str = "write_file";
    type Args = WriteFileArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Write content to a new file, creating directories as needed. An existing file is not \
             touched unless mode is append or overwrite; to change parts of one, use edit_file or apply_patch.";
        changing(definition, "Write file", description, Risk::Medium, &["WriteFile", "Write"]);
    }

    fn check(&self, args: &WriteFileArgs) -> Result<(), ToolError> {
        check_path(&args.path)?;
        check_hash(args.expected_sha256.as_deref())
    }

    fn footprint(&self, args: &WriteFileArgs) -> Option<Footprint> {
        Some(Footprint::writes([Resource::path(&args.path)]))
    }

    fn summary(&self, args: &WriteFileArgs) -> Option<String> {
        let (path, bytes) = (&args.path, args.content.len());
        Some(match args.mode {
            WriteMode::Create => format!("Write new file: {path} ({bytes} bytes)"),
            WriteMode::Append => format!("Append {bytes} bytes to {path}"),
            WriteMode::Overwrite => format!("Overwrite {path} ({bytes} bytes)"),
        })
    }

    fn preview(
        &self,
        args: &WriteFileArgs,
        cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let args = args.clone();
        Some(Box::pin(async move {
            cx.blocking(move |cx| {
                let before = match cx.workspace().look(&args.path)? {
                    Some(_) => Some(read(cx, &args.path)?),
                    None => None,
                };
                let after = after(&args, before.as_deref());
                Ok(haft_patch::diff(before.as_deref(), Some(&after), &args.path, &args.path))
            })
            .await
        }))
    }

    async fn call(&self, args: WriteFileArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        cx.blocking(move |cx| write(cx, args)).await
    }
}

fn after(args: &WriteFileArgs, before: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = match args.mode {
        WriteMode::Append => before.unwrap_or_default().to_vec(),
        WriteMode::Create | WriteMode::Overwrite => Vec::new(),
    };
    bytes.extend_from_slice(args.content.as_bytes());
    bytes
}

fn write(cx: &ToolCtx, args: WriteFileArgs) -> Result<Reported, ToolError> {
    let there = cx.workspace().look(&args.path)?;
    let expected = args.expected_sha256.as_deref();
    let (expect, bytes) = match (args.mode, &there) {
        (WriteMode::Create, Some((place, _))) => {
            let text = format!(
                "file already exists: {}. Use edit_file or apply_patch to modify existing files, or mode overwrite to \
                 replace it",
                place.shown
            );
            return Err(ToolError::failed(text));
        }
        (WriteMode::Create, None) => (Expect::Absent, after(&args, None)),
        (WriteMode::Append, there) => {
            let before = match (there, expected) {
                (Some(_), None) => Some(read(cx, &args.path)?),
                (None, None) => None,
                (_, Some(_)) => read_known(cx, &args.path, expected)?,
            };
            (still(before.as_deref()), after(&args, before.as_deref()))
        }
        (WriteMode::Overwrite, _) => {
            let before = read_known(cx, &args.path, expected)?;
            (still(before.as_deref()), after(&args, None))
        }
    };
    let summary = WriteFile.summary(&args).unwrap_or_default();
    let change = Change::Write { path: args.path, expect, bytes, like: None };
    let changed = commit(cx, summary, vec![change])?;
    let text = match (&*changed, args.mode, there) {
        ([], ..) => "No changes applied.".to_owned(),
        ([file, ..], _, None) => format!("Created {} ({} bytes)", file.place.shown, file.bytes),
        ([file, ..], WriteMode::Append, _) => {
            format!(
                "Appended {} bytes to {} ({} bytes now)",
                args.content.len(),
                file.place.shown,
                file.bytes
            )
        }
        ([file, ..], _, _) => format!("Replaced {} ({} bytes)", file.place.shown, file.bytes),
    };
    Ok(Reported { text, changed, execution_id: cx.execution_id().to_string() })
}

//! `apply_patch`: parts of several files at once, in one of three formats.

use super::{
    changing, check_hash, commit, read, read_known,
    report::{Reported, lines},
    still,
};
use haft_core::{ErrorCode, Footprint, Resource, Risk, ToolDefinition, ToolError, port::BoxFuture};
use haft_patch::{ApplyError, FileChange, Patch, PathAction};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{Change, Expect},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap};

/// A patch, read when the arguments are: the only parse.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct PatchText {
    /// As it came.
    text: String,
    patch: Patch,
}

impl TryFrom<String> for PatchText {
    type Error = haft_patch::PatchError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let patch = haft_patch::parse(&text)?;
        Ok(PatchText { text, patch })
    }
}

impl Serialize for PatchText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl JsonSchema for PatchText {
    fn schema_name() -> Cow<'static, str> {
        "PatchText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// What `apply_patch` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchArgs {
    /// The patch: LP1 (`LP1` … `END`), `*** Begin Patch` … `*** End Patch`, or a unified diff. Which one it is shows.
    pub patch: PatchText,
    /// For files that were not read in this conversation: their path as in the patch, and the SHA-256 that they must
    /// have now.
    #[serde(default)]
    pub expected_sha256: BTreeMap<String, String>,
}

/// Applies a patch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ApplyPatch {
    /// The largest patch, in bytes.
    pub max_patch_bytes: usize,
}

impl Default for ApplyPatch {
    fn default() -> Self {
        ApplyPatch { max_patch_bytes: 512 << 10 }
    }
}

impl TypedTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    type Args = ApplyPatchArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Apply a patch to files that were read before: all of it, or nothing. Formats: LP1, the \
             `*** Begin Patch` envelope, unified diff. New files need no reading; deleting and moving files always \
             asks.";
        changing(definition, "Apply patch", description, Risk::Medium, &["ApplyPatch"]);
        // As JSON a patch is longer than it is: every line end and every quote takes two bytes.
        definition.constraints.max_argument_size = Some(2 * self.max_patch_bytes as u64 + (64 << 10));
    }

    fn check(&self, args: &ApplyPatchArgs) -> Result<(), ToolError> {
        for hash in args.expected_sha256.values() {
            check_hash(Some(hash))?;
        }
        match args.patch.text.len() > self.max_patch_bytes {
            false => Ok(()),
            true => Err(ToolError::bad_args(format!(
                "Patch exceeds max_patch_bytes: {} bytes, and {} is the most. Send it in parts",
                args.patch.text.len(),
                self.max_patch_bytes
            ))),
        }
    }

    fn footprint(&self, args: &ApplyPatchArgs) -> Option<Footprint> {
        let mut writes = Vec::new();
        for path in args.patch.patch.paths() {
            if let PathAction::Move { to } = path.action {
                writes.push(Resource::path(to));
            }
            writes.push(Resource::path(path.path));
        }
        Some(Footprint::writes(writes))
    }

    fn summary(&self, args: &ApplyPatchArgs) -> Option<String> {
        let paths = args.patch.patch.paths();
        let mut names: Vec<String> = Vec::new();
        for path in paths {
            let name = match path.action {
                PathAction::Delete => format!("delete {}", path.path),
                PathAction::Move { to } => format!("move {} to {to}", path.path),
                PathAction::Create | PathAction::Modify | PathAction::ModifyOrCreate => path.path,
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(format!("Apply patch to {} file(s): {}", names.len(), names.join(", ")))
    }

    fn confirm(&self, args: &ApplyPatchArgs) -> Option<String> {
        let paths = args.patch.patch.paths();
        let is_grave = |action: &PathAction| matches!(action, PathAction::Delete | PathAction::Move { .. });
        let first = paths.iter().find(|path| is_grave(&path.action))?;
        Some(match &first.action {
            PathAction::Delete => format!("it deletes {}", first.path),
            _ => format!("it moves {}", first.path),
        })
    }

    fn preview(
        &self,
        args: &ApplyPatchArgs,
        cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let args = args.clone();
        Some(Box::pin(async move {
            cx.blocking(move |cx| {
                let changes = staged(&args, |path| match cx.workspace().look(path)? {
                    Some(_) => read(cx, path).map(Some),
                    None => Ok(None),
                })?;
                Ok(changes.iter().map(FileChange::diff).collect::<Vec<_>>().join("\n"))
            })
            .await
        }))
    }

    async fn call(&self, args: ApplyPatchArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        let summary = self.summary(&args).unwrap_or_default();
        cx.blocking(move |cx| {
            let known = |path: &str| args.expected_sha256.get(path).map(String::as_str);
            let staged = staged(&args, |path| read_known(cx, path, known(path)))?;
            let notes: Vec<_> = staged
                .iter()
                .flat_map(|change| change.notes.iter().map(|note| format!("note: {}: {note}", change.path)))
                .chain(args.patch.patch.remarks().iter().map(|remark| {
                    format!("note: {}: {} (line {} of the patch)", remark.path, remark.text, remark.line)
                }))
                .collect();
            let changes = staged.into_iter().flat_map(as_changes).collect();
            let changed = commit(cx, summary, changes)?;
            let mut text = lines(&changed);
            for note in notes {
                text.push('\n');
                text.push_str(&note);
            }
            Ok(Reported { text, changed, execution_id: cx.execution_id().to_string() })
        })
        .await
    }
}

/// What the files would be, with what the patch does to them.
fn staged(
    args: &ApplyPatchArgs,
    mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, ToolError>,
) -> Result<Vec<FileChange>, ToolError> {
    haft_patch::apply(&args.patch.patch, &mut read).map_err(|error| match error {
        ApplyError::Read { error, .. } => error,
        ApplyError::Patch(error) => {
            let file = error.path.as_deref().unwrap_or("<patch>");
            let failed = ToolError::new(ErrorCode::PatchFailed, format!("Patch failed for {file}: {error}"));
            match error.path {
                Some(file) => failed.with_fact("file", file),
                None => failed,
            }
        }
    })
}

fn as_changes(change: FileChange) -> Vec<Change> {
    let FileChange { path, before, after, moved_from, overwritten, .. } = change;
    match (after, moved_from) {
        (None, _) => vec![Change::Delete { path, expect: still(before.as_deref()) }],
        (Some(bytes), None) => {
            vec![Change::Write { path, expect: still(before.as_deref()), bytes, like: None }]
        }
        (Some(bytes), Some(from)) => {
            let expect = overwritten.as_deref().map_or(Expect::Absent, |there| still(Some(there)));
            vec![
                Change::Write { path, expect, bytes, like: Some(from.clone()) },
                Change::Delete { path: from, expect: still(before.as_deref()) },
            ]
        }
    }
}

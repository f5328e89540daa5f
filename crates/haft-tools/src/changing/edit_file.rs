//! `edit_file`: a part of a file.

use super::{
    as_text, changing, check_hash, check_path, commit,
    edits::{self, Edited, Which},
    plural, read, read_known,
    report::Reported,
    still,
};
use haft_core::{Footprint, Resource, Risk, ToolDefinition, ToolError, port::BoxFuture, text::one_line};
use haft_sdk::{ToolCtx, TypedTool, files::Change};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `edit_file` takes: a snippet to replace, or lines to replace.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EditFileArgs {
    /// The file, relative to the working folder.
    pub path: String,
    /// The text to replace, exactly as it is in the file. Leave it out to replace whole lines.
    #[serde(default)]
    pub old_text: Option<String>,
    /// The text that takes its place.
    pub new_text: String,
    /// Which one is meant where old_text is there several times, counted from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub occurrence: Option<u32>,
    /// Replaces old_text everywhere.
    #[serde(default)]
    pub all: bool,
    /// The first line to replace, counted from 1. Instead of old_text.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub start_line: Option<u32>,
    /// The last line to replace. One less than start_line puts new_text before start_line.
    #[serde(default)]
    pub end_line: Option<u32>,
    /// SHA-256 that the file must have now, as read_file gave it. Not needed for a file that was read in this
    /// conversation.
    #[serde(default)]
    pub expected_sha256: Option<String>,
}

/// Edits a file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct EditFile;

impl TypedTool for EditFile {
    const NAME: &'static str = "edit_file";
    type Args = EditFileArgs;
    type Output = Reported;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Replace a piece of text in a file that was read before: give old_text exactly as it is in \
             the file, with enough lines around it to be unique (or occurrence, or all), and new_text. Or replace \
             whole lines: give start_line, end_line and new_text. Line ends and permissions stay.";
        changing(definition, "Edit file", description, Risk::Medium, &["EditFile", "Edit"]);
    }

    fn check(&self, args: &EditFileArgs) -> Result<(), ToolError> {
        check_path(&args.path)?;
        check_hash(args.expected_sha256.as_deref())?;
        let wrong = match (&args.old_text, args.start_line, args.end_line) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                "give old_text, or start_line and end_line, not both"
            }
            (None, None, _) => "give old_text, or start_line and end_line",
            (None, Some(_), None) => "end_line is missing; it is the last line that is replaced",
            (None, Some(start), Some(end)) if end + 1 < start => "start_line must be <= end_line",
            (None, Some(_), Some(_)) if args.all || args.occurrence.is_some() => {
                "occurrence and all go with old_text"
            }
            (Some(old), ..) if old.is_empty() => {
                "old_text must not be empty; to put text somewhere, use start_line and end_line"
            }
            (Some(old), ..) if *old == args.new_text => "old_text and new_text are the same",
            (Some(_), ..) if args.all && args.occurrence.is_some() => "give occurrence or all, not both",
            _ => return Ok(()),
        };
        Err(ToolError::bad_args(format!("Bad args: {wrong}")))
    }

    fn footprint(&self, args: &EditFileArgs) -> Option<Footprint> {
        Some(Footprint::writes([Resource::path(&args.path)]))
    }

    fn summary(&self, args: &EditFileArgs) -> Option<String> {
        let what = match (&args.old_text, args.start_line, args.end_line) {
            (Some(old), ..) => {
                let everywhere = if args.all { " everywhere" } else { "" };
                format!("replace {}{everywhere}", plural(old.lines().count(), "line"))
            }
            (None, Some(start), Some(end)) if end < start => format!("insert before line {start}"),
            (None, Some(start), Some(end)) => format!("replace lines {start}-{end}"),
            (None, _, _) => "replace lines".to_owned(),
        };
        Some(format!("Edit {}: {what}", args.path))
    }

    fn preview(
        &self,
        args: &EditFileArgs,
        cx: ToolCtx,
    ) -> Option<BoxFuture<'static, Result<String, ToolError>>> {
        let args = args.clone();
        Some(Box::pin(async move {
            cx.blocking(move |cx| {
                let before = read(cx, &args.path)?;
                let after = edit(&args, as_text(&args.path, &before)?)?.text;
                Ok(haft_patch::diff(Some(&before), Some(after.as_bytes()), &args.path, &args.path))
            })
            .await
        }))
    }

    async fn call(&self, args: EditFileArgs, cx: ToolCtx) -> Result<Reported, ToolError> {
        cx.blocking(move |cx| {
            let before = read_known(cx, &args.path, args.expected_sha256.as_deref())?;
            let before = before.ok_or_else(|| {
                ToolError::failed(format!("'{}' does not exist. Use write_file to make it", args.path))
            })?;
            let edited = edit(&args, as_text(&args.path, &before)?)?;
            let summary = EditFile.summary(&args).unwrap_or_default();
            let expect = still(Some(&before));
            let bytes = edited.text.into_bytes();
            let change = Change::Write { path: args.path, expect, bytes, like: None };
            let changed = commit(cx, summary, vec![change])?;
            let lines: Vec<_> = edited.lines.iter().take(20).map(ToString::to_string).collect();
            let text = match changed.first() {
                None => "No changes applied.".to_owned(),
                Some(file) => {
                    let word = if edited.lines.len() == 1 { "line" } else { "lines" };
                    format!("modified: {} ({word} {})", file.place.shown, lines.join(", "))
                }
            };
            Ok(Reported { text, changed, execution_id: cx.execution_id().to_string() })
        })
        .await
    }
}

fn edit(args: &EditFileArgs, text: &str) -> Result<Edited, ToolError> {
    let in_file = |error: ToolError| error.with_fact("file", one_line(&args.path, 200));
    match (&args.old_text, args.start_line, args.end_line) {
        (Some(old), ..) => {
            let which = match args.occurrence {
                _ if args.all => Which::All,
                Some(number) => Which::Nth(number.max(1)),
                None => Which::Only,
            };
            edits::snippet(text, old, &args.new_text, which).map_err(in_file)
        }
        (None, start, end) => {
            let start = start.unwrap_or(1).max(1);
            edits::lines(text, start as usize, end.unwrap_or(start) as usize, &args.new_text).map_err(in_file)
        }
    }
}

//! Tools that change files. Each makes its changes whole, names what it changed, and can be undone.

mod apply_patch;
mod change_sets;
mod delete_file;
mod edit_file;
mod edits;
mod move_copy;
mod report;
mod undo_changes;
mod write_file;

pub use apply_patch::{ApplyPatch, ApplyPatchArgs, PatchText};
pub use change_sets::{ApplyChanges, ChangeSetArgs, DiscardChanges, change_set_tools};
pub use delete_file::{DeleteFile, DeleteFileArgs};
pub use edit_file::{EditFile, EditFileArgs};
pub use move_copy::{CopyFile, MoveCopyArgs, MoveFile};
pub use report::{Action, ChangeReport, ChangedFile};
pub use undo_changes::{UndoChanges, UndoChangesArgs};
pub use write_file::{WriteFile, WriteFileArgs, WriteMode};

use haft_core::{Category, ErrorCode, Risk, Source, ToolDefinition, ToolError};
use haft_sdk::{
    ToolCtx,
    files::{Access, Change, ChangeSet, Changed, Expect, Reader},
};
use sha2::{Digest as _, Sha256};
use std::io::Read as _;

/// What all of them say about themselves.
fn changing(definition: &mut ToolDefinition, title: &str, description: &str, risk: Risk, aliases: &[&str]) {
    definition.title = Some(title.to_owned());
    definition.description = description.to_owned();
    definition.category = Category::FileSystem;
    definition.constraints.allow_side_effects = true;
    definition.required_permissions = vec!["tool.filesystem.write".to_owned()];
    definition.risk = Some(risk);
    definition.requires_confirmation = risk == Risk::High;
    definition.version = Some("1.0.0".to_owned());
    definition.source = Source::BuiltIn;
    definition.aliases = aliases.iter().map(|&alias| alias.to_owned()).collect();
}

/// Makes changes in the name of the call.
fn commit(cx: &ToolCtx, summary: String, changes: Vec<Change>) -> Result<Vec<Changed>, ToolError> {
    // The last moment at which stopping leaves everything as it was.
    cx.check_cancelled()?;
    let reader = Reader::of(cx.context());
    cx.workspace().change(ChangeSet { by: cx.execution_id(), reader, summary, changes })
}

/// A file that is to be changed: its bytes, or that it is not there. Refused where the conversation does not know what
/// is in it (`FR-TOOL-PATCH-02a`, `b`).
fn read_known(cx: &ToolCtx, path: &str, expected: Option<&str>) -> Result<Option<Vec<u8>>, ToolError> {
    let files = cx.workspace();
    let place = files.locate(path, Access::Write)?;
    if files.look(path)?.is_none() {
        return match expected {
            None => Ok(None),
            Some(_) => Err(stale(&place.shown, "File does not exist any more")),
        };
    }
    let known = match expected {
        Some(expected) => expected.to_owned(),
        None => files
            .last_read(&Reader::of(cx.context()), &place)?
            .ok_or_else(|| stale(&place.shown, "File was not read before patching"))?,
    };
    let bytes = read(cx, path)?;
    match sha256(&bytes).eq_ignore_ascii_case(&known) {
        true => Ok(Some(bytes)),
        false => Err(stale(&place.shown, "File content changed since last read")),
    }
}

/// All bytes of a file.
fn read(cx: &ToolCtx, path: &str) -> Result<Vec<u8>, ToolError> {
    /// More is never edited as text.
    const MOST: u64 = 64 << 20;
    let opened = cx.workspace().open(path)?;
    if opened.len > MOST {
        let text =
            format!("'{}' has {} bytes, and at most {MOST} are edited", opened.place.shown, opened.len);
        return Err(ToolError::new(ErrorCode::LimitExceeded, text));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len).unwrap_or(0));
    let read = opened.file.take(MOST).read_to_end(&mut bytes);
    read.map_err(|error| ToolError::failed(format!("'{}' could not be read: {error}", opened.place.shown)))?;
    Ok(bytes)
}

/// Bytes as text; the tools that edit lines edit nothing else.
fn as_text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, ToolError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        ToolError::failed(format!("'{path}' is not UTF-8 text (byte {at}), so it cannot be edited as text"))
    })
}

fn stale(path: &str, reason: &str) -> ToolError {
    let next = "Read it with read_file, then repeat the change";
    ToolError::new(ErrorCode::StaleFile, format!("Stale file {path}: {reason}. {next}"))
        .with_fact("file", path)
        .with_fact("reason", reason)
}

/// The SHA-256 of bytes, in hex.
fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What must be there for a change of bytes that were read.
fn still(bytes: Option<&[u8]>) -> Expect {
    bytes.map_or(Expect::Absent, |bytes| Expect::Sha256(sha256(bytes)))
}

/// A hash that a caller gave.
fn check_hash(hash: Option<&str>) -> Result<(), ToolError> {
    match hash {
        Some(hash) if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Err(ToolError::bad_args(
                "Bad args: expected_sha256 must be 64 hexadecimal digits, as read_file gives them",
            ))
        }
        _ => Ok(()),
    }
}

fn check_path(path: &str) -> Result<(), ToolError> {
    match path.trim().is_empty() {
        true => Err(ToolError::bad_args("Bad args: path must not be empty")),
        false => Ok(()),
    }
}

fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

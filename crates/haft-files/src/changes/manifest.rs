//! What a set of changes is, in a form that outlives the process.

use haft_core::ExecutionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The version of the form. A record of another version is left alone.
pub(super) const VERSION: u32 = 1;

/// The version of the form in which the steps are whole trees, in a list of their own beside the manifest.
pub(super) const TREES: u32 = 2;

/// A set of changes: made together, undone together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) version: u32,
    /// The call that makes them.
    pub(super) by: ExecutionId,
    pub(super) tenant: String,
    /// What they are for.
    pub(super) summary: String,
    pub(super) at: Timestamp,
    /// The roots that the paths are below: the process that takes the changes back may have other roots.
    pub(super) roots: Vec<PathBuf>,
    /// In the order in which they are made.
    pub(super) steps: Vec<Step>,
    /// Why it cannot be undone, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cannot_undo: Option<String>,
}

/// One change, with what was and what is to be. Undoing it is the same the other way round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    /// What is at a path becomes something else.
    Turn {
        /// Resolved.
        path: PathBuf,
        before: State,
        after: State,
        /// The name, in the same folder, under which new bytes are written first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        staged: Option<String>,
    },
    /// A file or folder gets another name. Nothing has that name.
    Move {
        /// Resolved.
        from: PathBuf,
        /// Resolved.
        to: PathBuf,
        /// Of a file, its SHA-256 and length.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<(String, u64)>,
    },
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        sha256: String,
        len: u64,
        /// Of a new file, whatever the system gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
        /// The file of the record that holds its bytes, where they are kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
    },
    /// A folder, empty.
    Folder {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A link.
    Link { target: PathBuf },
}

impl Step {
    /// The paths that it touches.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let (first, second) = match self {
            Step::Turn { path, .. } => (path, None),
            Step::Move { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

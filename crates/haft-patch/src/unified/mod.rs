//! Unified diffs, as `diff -u`, git and others write them.
//!
//! New, deleted and renamed files, several files in one text, timestamps, quoted names, the prefixes `a/` and `b/`, and
//! `\ No newline at end of file` are understood; so is a mail around the diff. A hunk is found at the line that its
//! header states, else at the nearest place where all of its lines are: no context is ever left out.
//!
//! Refused are binary content, symbolic links, submodules, copies and merges. A change of a file's mode is not carried
//! out, and [`Patch::remarks`](crate::Patch::remarks) says so.
//!
//! Lines that only a difference in line ends keeps apart are matched when the hunk itself changes none: a diff with LF
//! fits a file with CRLF, and the file keeps its own.

mod apply;
mod header;
mod hunk;
mod parse;

pub(crate) use apply::apply;
pub(crate) use parse::is_unified;
pub use parse::parse;

use crate::patch::PathAction;

/// What a unified diff does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) kind: Kind,
    pub(crate) hunks: Vec<Hunk>,
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Modify,
    Delete,
    Rename { to: String },
}

impl FileDiff {
    pub(crate) fn path_action(&self) -> PathAction {
        match &self.kind {
            Kind::Create => PathAction::Create,
            Kind::Modify => PathAction::Modify,
            Kind::Delete => PathAction::Delete,
            Kind::Rename { to } => PathAction::Move { to: to.clone() },
        }
    }
}

/// A hunk: where it is said to begin, and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Its place in the patch, counted from 1.
    pub(crate) line: usize,
    /// The line of the old file, counted from 1; for a hunk without old lines, the line after which it goes.
    pub(crate) old_start: usize,
    pub(crate) lines: Vec<HunkLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HunkLine {
    pub(crate) side: Side,
    /// The text with its line end; without one only where the patch says that there is none.
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Old,
    New,
}

impl Hunk {
    pub(crate) fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.side != Side::New).map(|line| line.text.as_str())
    }

    pub(crate) fn new_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.side != Side::Old).map(|line| line.text.as_str())
    }
}

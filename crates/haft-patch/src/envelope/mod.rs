//! The `*** Begin Patch` envelope: edits by context.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: notes.txt
//! +first line
//! *** Update File: src/main.rs
//! *** Move to: src/bin/main.rs
//! @@ fn main() {
//!  context
//! -old line
//! +new line
//! *** Delete File: old.txt
//! *** End Patch
//! ```
//!
//! A chunk is found by its context and removed lines, text for text, below the chunk before it. It must be found once;
//! a `@@` line with a line of the file above it narrows the search, several of them one after the other. A chunk that
//! only adds goes below its `@@` line or, without one, to the end of the file. `*** End of File` ties a chunk to it.
//!
//! Each line keeps its own end. A new line gets the end that most lines of the file have; whether the file ends
//! with a newline stays as it was.

mod apply;
mod parse;

pub(crate) use apply::apply;
pub(crate) use parse::is_begin;
pub use parse::parse;

use crate::patch::PathAction;

/// What the envelope does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Add(String),
    Delete,
    Update { chunks: Vec<Chunk>, move_to: Option<String> },
}

impl Action {
    pub(crate) fn path_action(&self) -> PathAction {
        match self {
            Self::Add(_) => PathAction::Create,
            Self::Delete => PathAction::Delete,
            Self::Update { move_to: Some(to), .. } => PathAction::Move { to: to.clone() },
            Self::Update { move_to: None, .. } => PathAction::Modify,
        }
    }
}

/// One place in a file, and how it changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Chunk {
    /// Where it begins in the patch, counted from 1.
    pub(crate) line: usize,
    /// The texts of its `@@` lines.
    pub(crate) headers: Vec<String>,
    pub(crate) changes: Vec<Change>,
    pub(crate) at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Keep(String),
    Remove(String),
    Add(String),
}

impl Chunk {
    /// The lines that must be in the file.
    pub(crate) fn old(&self) -> Vec<&str> {
        let old = |change| match change {
            &Change::Keep(ref line) | &Change::Remove(ref line) => Some(line.as_str()),
            &Change::Add(_) => None,
        };
        self.changes.iter().filter_map(old).collect()
    }
}

//! LP1, the line patch: exact edits by whole lines.
//!
//! ```text
//! LP1
//! # a comment
//! F src/main.rs
//! R
//! old line
//! .
//! new line
//! .
//! N +
//! END
//! ```
//!
//! | operation | blocks | effect |
//! |---|---|---|
//! | `R [n]` | find, replacement | replaces the lines that were found |
//! | `I [n]` | find, new | puts lines after those that were found |
//! | `P [n]` | find, new | puts lines before those that were found |
//! | `E [n]` | find | removes the lines that were found |
//! | `T` | new | puts lines at the end of the file |
//! | `B` | new | puts lines at the beginning of the file |
//! | `N +`, `N -` | | with, without a newline at the end of the file |
//!
//! A block ends with a line that is `.`; a content line that begins with a dot gets one more. Without `n` the lines
//! must occur exactly once. An empty find block with `n` is the place before line `n`.

mod apply;
mod model;
mod parse;

pub use apply::apply_section;
pub(crate) use apply::{apply, numbers};
pub use model::{Eol, FileModel};
pub use parse::{parse, parse_sections};

/// What a section of an LP1 patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The file.
    pub path: String,
    /// The line of the patch with `F`, counted from 1.
    pub line: usize,
    /// The operations, in order; each sees what the ones before it did.
    pub operations: Vec<Operation>,
}

/// One operation, with its place in the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The line of the patch, counted from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
}

/// What an operation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `R`: replaces.
    Replace(Find, Vec<String>),
    /// `I`: puts after.
    InsertAfter(Find, Vec<String>),
    /// `P`: puts before.
    InsertBefore(Find, Vec<String>),
    /// `E`: removes.
    Erase(Find),
    /// `T`: puts at the end.
    Append(Vec<String>),
    /// `B`: puts at the beginning.
    Prepend(Vec<String>),
    /// `N +` or `N -`.
    FinalNewline(FinalNewline),
}

impl Action {
    /// What the operation looks for; those at an end of the file look for nothing.
    #[must_use]
    pub fn find(&self) -> Option<&Find> {
        match self {
            Self::Replace(find, _)
            | Self::InsertAfter(find, _)
            | Self::InsertBefore(find, _)
            | Self::Erase(find) => Some(find),
            Self::Append(_) | Self::Prepend(_) | Self::FinalNewline(_) => None,
        }
    }
}

/// Which lines an operation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// The lines.
    pub lines: Vec<String>,
    /// Which of several places, counted from 1; without it there must be exactly one.
    pub occurrence: Option<usize>,
}

/// Whether a file ends with a newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalNewline {
    /// `N +`
    With,
    /// `N -`
    Without,
}

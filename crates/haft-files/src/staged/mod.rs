//! What a command wrote apart from the files themselves: looked at, then applied whole or thrown away. Linux.
//!
//! A jail gives a [`StagedRoot`] for each folder whose writes it kept apart. [`StagedSet::look`] says what applying
//! them would change, and what of that is refused, asked about or in conflict; [`Files::apply_staged`] applies them as
//! one change set, which `haft undo` undoes; [`discard`] throws them away.
//!
//! [`Files::apply_staged`]: crate::Files::apply_staged

mod diff;
mod follow;
mod judge;
mod keep;
mod look;
mod walk;

pub use judge::{Ask, Conflict, Violation, ViolationKind};
pub use keep::{StagedKeep, discard, outdated};
pub(crate) use look::look;
pub use look::{Findings, Listed, UndoFit};
pub(crate) use walk::{At, Layer, Next, Touch, Visitor};

use crate::Keep;
use haft_core::port::StagedRoot;
use haft_guard::names::ProtectedNames;
use std::{collections::BTreeSet, io, path::PathBuf, sync::Arc};

/// What a change set is judged by.
#[derive(Clone, Debug)]
pub struct StageRules {
    /// Names of files that run programs later: changing one needs an approval of its own.
    pub names: Arc<ProtectedNames>,
    /// Whether the command may change repositories, but for what runs programs: the preset `git`.
    pub git: bool,
    /// Folders outside that links may lead to, such as those of the system's programs.
    pub link_targets: Vec<PathBuf>,
    /// Folders that are only read, resolved.
    pub read_only: Vec<PathBuf>,
    /// What is kept for undoing.
    pub keep: Keep,
    /// How many changes, violations, questions and conflicts are listed.
    pub most_listed: usize,
    /// Files and folders that haft itself put back since, when the set was being applied and that was cut: whoever
    /// changed one after that is in conflict, and haft is not.
    pub restored: Arc<Restored>,
}

/// What haft put back: the number of each file or folder in its file system, and when it changed last. Not its path:
/// that is another one once the folder around it is back.
pub type Restored = BTreeSet<(u64, (i64, u32))>;

impl Default for StageRules {
    fn default() -> Self {
        StageRules {
            names: Arc::default(),
            git: false,
            link_targets: Vec::new(),
            read_only: Vec::new(),
            keep: Keep::default(),
            most_listed: 200,
            restored: Arc::default(),
        }
    }
}

/// What a command wrote, in all folders that it was granted.
#[derive(Clone, Debug)]
pub struct StagedSet {
    /// The folders. Their guest has ended.
    pub roots: Vec<StagedRoot>,
    /// What it is judged by.
    pub rules: StageRules,
}

impl StagedSet {
    /// What applying it would change, and what of that is refused, asked about or in conflict. Changes nothing.
    pub fn look(&self) -> io::Result<Findings> {
        look::look(&self.open()?, &self.rules)
    }

    /// What it changes in text files, as a unified diff of at most about so many bytes; of other files, their sizes.
    pub fn diff(&self, most_bytes: usize) -> io::Result<String> {
        diff::diff(&self.open()?, &self.rules.restored, most_bytes)
    }

    pub(crate) fn open(&self) -> io::Result<Vec<Layer>> {
        self.roots.iter().map(Layer::open).collect()
    }
}

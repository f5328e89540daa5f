//! Writes of a guest that are kept apart from the files that they would change.

use std::path::PathBuf;

/// Where the writes of a guest go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// To the files themselves.
    #[default]
    Live,
    /// To a layer above them, which is looked at when the guest has ended.
    Staged(StageSpec),
}

/// How writes are kept apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSpec {
    /// An empty folder of haft's own, for this guest alone: its layers are made in there.
    pub layers: PathBuf,
    /// How many bytes the guest may write; no bound where absent.
    pub most_bytes: Option<u64>,
    /// How many files and folders it may make or change; no bound where absent.
    pub most_files: Option<u64>,
}

/// The extended attributes in which a layer keeps its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerMarks {
    /// `trusted.overlay.*`: mounted by root.
    Trusted,
    /// `user.overlay.*`: mounted by an ordinary user.
    User,
}

/// A folder whose writes were kept apart, when its guest has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedRoot {
    /// The folder that was granted, resolved. Nothing in it was changed by the guest.
    pub root: PathBuf,
    /// What the guest wrote: the upper layer of an overlay.
    pub upper: PathBuf,
    /// How that layer is marked.
    pub marks: LayerMarks,
    /// Paths below the root that the guest could not see, relative to it.
    pub hidden: Vec<PathBuf>,
    /// When the layer was put above the folder, by the clock of file times: seconds and nanoseconds. Whatever changed
    /// in the folder after that was changed by somebody else.
    pub since: (i64, u32),
}

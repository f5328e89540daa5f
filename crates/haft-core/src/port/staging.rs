//! Writes of a guest that are kept apart from the files that they would change.

use super::Unavailable;
use crate::{ErrorCode, ToolError};
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

impl Writes {
    /// For a jail that cannot keep writes apart: refuses everything that asks for it.
    pub fn must_be_live(&self, jail: &str) -> Result<(), Unstageable> {
        match self {
            Writes::Live => Ok(()),
            Writes::Staged(_) => Err(Unstageable::by(jail)),
        }
    }
}

/// Why the writes of a guest cannot be kept apart, and what would help. They are never let through instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {fix}")]
pub struct Unstageable {
    /// Which path is in the way, where it is one.
    pub path: Option<PathBuf>,
    /// What is wrong with it.
    pub reason: String,
    /// What to do.
    pub fix: String,
}

impl Unstageable {
    /// A jail that cannot keep writes apart at all.
    pub fn by(jail: &str) -> Self {
        Unstageable {
            path: None,
            reason: format!("the `{jail}` jail cannot stage writes"),
            fix: "use the `namespace` jail, or let the command write to the files themselves".into(),
        }
    }

    /// The error of a guest that is not started for it.
    pub fn error(&self) -> ToolError {
        let path = self.path.as_ref().map(|path| path.to_string_lossy());
        let data =
            serde_json::json!({ "unstageable": { "path": path, "reason": self.reason, "fix": self.fix } });
        ToolError::new(ErrorCode::SandboxCreationFailed, format!("its writes cannot be staged: {self}"))
            .with_data(data)
    }
}

impl From<Unstageable> for Unavailable {
    fn from(why: Unstageable) -> Self {
        Unavailable { reason: why.reason, fix: why.fix }
    }
}

/// How writes are kept apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSpec {
    /// An empty folder of haft's own, for this guest alone: its layers are made in there, and nobody but haft's user
    /// gets in. It stays when the guest has ended, also where haft was killed.
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
    /// When the layer was put above the folder, by the clock of file times: seconds and nanoseconds. The guest began
    /// later by that clock, so that whatever changed in the folder after that (`ctime > since`) was changed by somebody
    /// else, and the guest may not have seen it.
    pub since: (i64, u32),
}

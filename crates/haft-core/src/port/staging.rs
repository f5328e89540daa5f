//! Writes of a guest that are kept apart from the files that they would change.

use super::{BoxFuture, Unavailable};
use crate::{ChangeSummary, ErrorCode, ExecutionId, ToolError};
use jiff::Timestamp;
use std::{any::Any, path::PathBuf};

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

/// A call whose writes are kept apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedCall {
    /// Its execution: the id of its change set.
    pub execution_id: ExecutionId,
    /// Whose call it is.
    pub tenant: String,
    /// Its tool.
    pub tool: String,
    /// What it does, in one line.
    pub summary: String,
}

/// Room for what a guest writes.
pub struct Stage {
    /// Where it goes.
    pub spec: StageSpec,
    /// Keeps others from changing the same folders. Dropped, they may.
    pub held: Box<dyn Any + Send + Sync>,
}

/// What was found out about a change set, in words where it is for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundChanges {
    /// What it changes.
    pub summary: ChangeSummary,
    /// Every path that it touches; `None` where there are too many to name.
    pub paths: Option<Vec<String>>,
    /// Why it cannot be applied at all.
    pub violations: Vec<String>,
    /// What somebody else changed meanwhile: it cannot be applied, either.
    pub conflicts: Vec<String>,
    /// What needs an approval of its own.
    pub asks: Vec<String>,
    /// Differs between change sets: what was looked at is what is applied.
    pub fingerprint: String,
}

/// A change set that waits for somebody to apply or discard it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptChanges {
    /// The call that made it.
    pub call: StagedCall,
    /// Why it was not applied.
    pub why: String,
    /// When its call ended.
    pub since: Timestamp,
    /// Whether it can still be applied; else it can only be discarded.
    pub can_apply: bool,
}

/// What became of a change set when it is not applied now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepOutcome {
    /// It is kept until then.
    Kept(Timestamp),
    /// It was applied a moment before: the caller that began that did not wait for its end.
    Applied(ChangeSummary),
    /// There is none: nothing was written.
    Nothing,
}

/// Keeps what commands wrote until it is applied or discarded. Every id is that of an execution; what belongs to
/// another tenant is not there.
pub trait ChangeSets: Send + Sync {
    /// Where room would be made, and how much. Makes none.
    fn place(&self) -> StageSpec;

    /// Makes room for what a command writes, once no other one works in the same folders. Room that the same call had
    /// before is thrown away, with what is in it.
    fn open<'a>(&'a self, call: StagedCall) -> BoxFuture<'a, Result<Stage, ToolError>>;

    /// Takes down what the command of that call wrote, and looks at it.
    fn ran<'a>(
        &'a self,
        id: ExecutionId,
        roots: Vec<StagedRoot>,
    ) -> BoxFuture<'a, Result<FoundChanges, ToolError>>;

    /// Looks at a change set again.
    fn look<'a>(&'a self, tenant: &'a str, id: ExecutionId)
    -> BoxFuture<'a, Result<FoundChanges, ToolError>>;

    /// What it changes in text files, as a unified diff of at most about so many bytes.
    fn diff<'a>(
        &'a self,
        tenant: &'a str,
        id: ExecutionId,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<String, ToolError>>;

    /// Applies it, whole or not at all, if it is still what was looked at. `approved` says that somebody agreed to what
    /// is asked about. It goes on when nobody waits for it any more.
    fn apply<'a>(
        &'a self,
        tenant: &'a str,
        id: ExecutionId,
        fingerprint: &'a str,
        approved: bool,
    ) -> BoxFuture<'a, Result<ChangeSummary, ToolError>>;

    /// Keeps it for a bounded time, for that reason.
    fn keep<'a>(&'a self, id: ExecutionId, why: &'a str) -> BoxFuture<'a, Result<KeepOutcome, ToolError>>;

    /// Throws it away.
    fn discard<'a>(&'a self, tenant: &'a str, id: ExecutionId) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Those that wait for somebody, the newest first.
    fn list<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, Result<Vec<KeptChanges>, ToolError>>;
}

//! Files, as a tool reaches them: below roots that cannot be left, and changed as a whole or not at all.
//!
//! Everything here waits for the disk, so a tool calls it inside [`ToolCtx::blocking`](crate::ToolCtx::blocking).

pub use crate::metered::{FileReader, Meter, metered};
use haft_core::{CallContext, ErrorCode, ExecutionId, Footprint, SideEffect, SideEffectKind, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    sync::Arc,
    time::SystemTime,
};

/// What a path is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read: links that stay inside are followed.
    Read,
    /// To write: a link at the end is never followed.
    Write,
}

/// How much of a folder a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What has that very path.
    Entry,
    /// All that is in there, as for a folder that is moved or deleted.
    Everything,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A link to something else.
    Link,
    /// A pipe, a device, a socket.
    Other,
}

/// What is known about a file or folder. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: Kind,
    /// Its length in bytes.
    pub len: u64,
    /// When it was last changed.
    pub modified: Option<SystemTime>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The whole path, resolved, with forward slashes.
    pub path: String,
    /// The path, as short as it can be written: below the first root without it.
    pub shown: String,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: FileReader,
    /// Where it is.
    pub place: Place,
    /// How long it was when it was opened.
    pub len: u64,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: OsString,
    /// What it is, where the listing says so.
    pub kind: Option<Kind>,
}

/// An open folder. What is denied does not appear in it.
pub trait FolderView: Send {
    /// What is in it, in no order.
    fn entries(&self) -> io::Result<Vec<Listed>>;
    /// What is known about one of them.
    fn metadata(&self, name: &OsStr) -> io::Result<Metadata>;
    /// Opens a folder in it; a link is refused.
    fn folder(&self, name: &OsStr) -> io::Result<Box<dyn FolderView>>;
}

/// Which files a walk visits.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    /// Where it starts: a folder, or a single file.
    pub path: &'a str,
    /// Also files and folders whose name begins with a dot.
    pub hidden: bool,
    /// Leaves out what `.gitignore`, `.ignore` and `.git/info/exclude` leave out.
    pub ignore_files: bool,
    /// How many threads walk; at least one.
    pub threads: usize,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It does.
    Continue,
    /// It ends, on all threads.
    Stop,
}

/// A regular file on a walk.
pub struct Visit<'a> {
    /// Its path below the start of the walk; of a walk over one file, its name.
    pub below: &'a Path,
    /// Opens it. A file that was swapped for a link, or that is denied, is refused.
    pub open: &'a dyn Fn() -> io::Result<FileReader>,
}

/// What visits the files of a walk, on several threads at once.
pub type Visitor<'a> = dyn Fn(&Visit<'_>) -> Step + Sync + 'a;

/// What a file must be for a change to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// Not there.
    Absent,
    /// There, with bytes of this SHA-256 in hex.
    Sha256(String),
    /// Whatever it is.
    Anything,
}

/// One change. Paths are as the caller wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The file has these bytes. Folders on the way are made; permissions stay.
    Write {
        /// Which file.
        path: String,
        /// What must be there.
        expect: Expect,
        /// All of its bytes.
        #[serde(with = "crate::bytes_as_text")]
        bytes: Vec<u8>,
        /// The file whose permissions it gets, where it is new.
        like: Option<String>,
    },
    /// The file, or the folder with all that is in it, is gone.
    Delete {
        /// Which one.
        path: String,
        /// What must be there.
        expect: Expect,
    },
    /// It has another name. Folders on the way are made.
    Move {
        /// The name it has.
        from: String,
        /// The name it gets.
        to: String,
        /// Whether a file that has that name goes.
        replace: bool,
    },
    /// A second file with the same bytes and permissions is there.
    Copy {
        /// Which file.
        from: String,
        /// The name of the second one.
        to: String,
        /// Whether a file that has that name goes.
        replace: bool,
    },
}

/// Whose memory of files that were read counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reader {
    /// Whose data it is.
    pub tenant: Arc<str>,
    /// The conversation.
    pub conversation: Arc<str>,
}

impl Reader {
    /// The conversation of a call; without one, the session or the agent stands for it.
    ///
    /// ```
    /// use haft_sdk::files::Reader;
    /// let owner = haft_core::CallContext::owner();
    /// assert_eq!(Reader::of(&owner).conversation, owner.agent);
    /// ```
    pub fn of(context: &CallContext) -> Self {
        let conversation = context.conversation.as_ref().or(context.session.as_ref());
        Reader {
            tenant: Arc::clone(&context.tenant),
            conversation: Arc::clone(conversation.unwrap_or(&context.agent)),
        }
    }
}

/// Changes that are made together.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    /// The call that makes them; undoing names it.
    pub by: ExecutionId,
    /// Whose memory of read files is brought up to date.
    pub reader: Reader,
    /// What they are for, in one line.
    pub summary: String,
    /// In order.
    pub changes: Vec<Change>,
}

/// What happened to one file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOutcome {
    /// It is new.
    Created,
    /// Its bytes are others.
    Modified,
    /// It is gone.
    Deleted,
    /// It had another name.
    Moved {
        /// The name that it had.
        from: Place,
    },
}

/// One file or folder that is different now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Where it is, or was.
    pub place: Place,
    /// What happened to it.
    pub outcome: FileOutcome,
    /// The SHA-256 that it had; of files that were there.
    pub before: Option<String>,
    /// The SHA-256 that it has; of files that are there.
    pub after: Option<String>,
    /// How many bytes it has, or had.
    pub bytes: u64,
}

impl Changed {
    /// This change as a side effect on the result of a call.
    pub fn side_effect(&self, at: jiff::Timestamp) -> SideEffect {
        let (kind, description) = match &self.outcome {
            FileOutcome::Created => (SideEffectKind::Created, None),
            FileOutcome::Modified => (SideEffectKind::Modified, None),
            FileOutcome::Deleted => (SideEffectKind::Deleted, None),
            FileOutcome::Moved { from } => {
                (SideEffectKind::Modified, Some(format!("moved from {}", from.path)))
            }
        };
        let hash = |hash: &Option<String>| hash.as_ref().map(|hash| json!({"sha256": hash}));
        SideEffect {
            description,
            previous_value: hash(&self.before),
            new_value: hash(&self.after),
            is_reversible: true,
            ..SideEffect::new(kind, self.place.path.clone(), at)
        }
    }
}

/// Files, within the roots that were granted.
pub trait Workspace: Send + Sync {
    /// These files, as a worker in a jail opens them again: for that worker alone. Refused where there is none.
    fn for_worker(&self) -> Result<Value, ToolError> {
        let text = "these files cannot be opened from a jail; call the tool without isolation";
        Err(ToolError::new(ErrorCode::SandboxCreationFailed, text))
    }

    /// Where a path leads now, and whether it may be used like that. It need not exist.
    fn locate(&self, path: &str, access: Access) -> Result<Place, ToolError>;

    /// What is at a path; `None` where nothing is. A link at the end is not followed.
    fn look(&self, path: &str) -> Result<Option<(Place, Metadata)>, ToolError>;

    /// Where a folder is, in which a program is to start; it must be there. Nothing that is in it can be seen by this.
    fn working_folder(&self, path: &str) -> Result<Place, ToolError>;

    /// Opens a regular file for reading.
    fn open(&self, path: &str) -> Result<OpenFile, ToolError>;

    /// Opens a folder for reading.
    fn folder(&self, path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError>;

    /// Visits every regular file below a folder; links are not followed. Gives where it started.
    fn walk(&self, walk: &Walk<'_>, visitor: &Visitor<'_>) -> Result<Place, ToolError>;

    /// Why changing what is at a resolved path needs an approval of its own: it would run programs later, when its
    /// owner uses git, a shell, an editor or an agent. `None` where it would not.
    fn protects(&self, path: &str, scope: Scope) -> Result<Option<String>, ToolError>;

    /// Makes changes: all of them, or none. Afterwards, and after a crash, every file is whole.
    fn change(&self, set: ChangeSet) -> Result<Vec<Changed>, ToolError>;

    /// Every path that undoing what a call of that tenant changed would change, resolved; `None` where nothing is known
    /// of it, or too much to name.
    fn changed_by(&self, of: ExecutionId, tenant: &str) -> Result<Option<Vec<String>>, ToolError>;

    /// Puts back what a call changed, as a change of its own; refused where something changed since. What runs programs
    /// later is put back only where these files are [held to](Workspace::held_to) it: then it was decided about by
    /// name.
    fn undo(&self, of: ExecutionId, by: ExecutionId, reader: &Reader) -> Result<Vec<Changed>, ToolError>;

    /// The SHA-256 that a file had when the reader last read or wrote it.
    fn last_read(&self, reader: &Reader, place: &Place) -> Result<Option<String>, ToolError>;

    /// Remembers what a reader has read.
    fn remember(&self, reader: &Reader, place: &Place, sha256: &str) -> Result<(), ToolError>;

    /// The same files, held to what was decided on: whatever is located, looked at, opened, walked or changed must be,
    /// at that very moment, below a path of this footprint, whose paths are resolved. So nothing that is swapped
    /// between a decision and its use leads elsewhere. [`Resource::Anything`](haft_core::Resource::Anything) holds to
    /// nothing.
    fn held_to(&self, footprint: &Footprint) -> Arc<dyn Workspace>;
}

/// Files without a grant: every use is refused, with the reason.
fn refused<T>() -> Result<T, ToolError> {
    let text = "files are not granted to this call: there is no folder for it, or the folders that its client named (MCP \
                roots) are outside of tools.files.allowed_roots or missing";
    Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text))
}

impl Workspace for crate::capability::NotGranted {
    /// Says nothing about where it leads: a tool that knows its own paths may declare them all the same.
    fn locate(&self, path: &str, _access: Access) -> Result<Place, ToolError> {
        Ok(Place { path: path.to_owned(), shown: path.to_owned() })
    }

    fn look(&self, _path: &str) -> Result<Option<(Place, Metadata)>, ToolError> {
        refused()
    }

    fn working_folder(&self, _path: &str) -> Result<Place, ToolError> {
        refused()
    }

    fn open(&self, _path: &str) -> Result<OpenFile, ToolError> {
        refused()
    }

    fn folder(&self, _path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError> {
        refused()
    }

    fn walk(&self, _walk: &Walk<'_>, _visitor: &Visitor<'_>) -> Result<Place, ToolError> {
        refused()
    }

    /// Nothing is changed through it.
    fn protects(&self, _path: &str, _scope: Scope) -> Result<Option<String>, ToolError> {
        Ok(None)
    }

    fn change(&self, _set: ChangeSet) -> Result<Vec<Changed>, ToolError> {
        refused()
    }

    /// Nothing is known of it.
    fn changed_by(&self, _of: ExecutionId, _tenant: &str) -> Result<Option<Vec<String>>, ToolError> {
        Ok(None)
    }

    fn undo(&self, _of: ExecutionId, _by: ExecutionId, _reader: &Reader) -> Result<Vec<Changed>, ToolError> {
        refused()
    }

    fn last_read(&self, _reader: &Reader, _place: &Place) -> Result<Option<String>, ToolError> {
        refused()
    }

    fn remember(&self, _reader: &Reader, _place: &Place, _sha256: &str) -> Result<(), ToolError> {
        refused()
    }

    fn held_to(&self, _footprint: &Footprint) -> Arc<dyn Workspace> {
        Arc::new(crate::capability::NotGranted)
    }
}

//! What is written down about the change set of a call, beside its layers.

use haft_core::{
    ExecutionId,
    port::{LayerMarks, StagedCall, StagedRoot},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

/// The file that it is in.
const FILE: &str = "set.json";
const VERSION: u32 = 1;

/// The change set of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    pub(super) execution_id: ExecutionId,
    pub(super) tenant: String,
    pub(super) tool: String,
    pub(super) summary: String,
    pub(super) at: Timestamp,
    pub(super) state: State,
    /// What its command wrote, once that has ended.
    roots: Option<Vec<Root>>,
}

/// How far a call came with its change set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Its command runs.
    Running,
    /// Its command has ended, and nothing is decided yet.
    Ran,
    /// It is being applied: whether it was is known by the records of changed files.
    Applying,
    /// It waits for somebody to apply or discard it.
    Kept { why: String },
}

/// A path, whatever its bytes are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Path> for Name {
    fn from(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Name::Text(text.to_owned()),
            None => Name::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl From<Name> for PathBuf {
    fn from(name: Name) -> Self {
        match name {
            Name::Text(text) => text.into(),
            Name::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Root {
    root: Name,
    upper: Name,
    trusted: bool,
    hidden: Vec<Name>,
    since: (i64, u32),
}

impl Record {
    pub(super) fn new(call: &StagedCall, at: Timestamp) -> Self {
        Record {
            version: VERSION,
            execution_id: call.execution_id,
            tenant: call.tenant.clone(),
            tool: call.tool.clone(),
            summary: call.summary.clone(),
            at,
            state: State::Running,
            roots: None,
        }
    }

    pub(super) fn call(&self) -> StagedCall {
        StagedCall {
            execution_id: self.execution_id,
            tenant: self.tenant.clone(),
            tool: self.tool.clone(),
            summary: self.summary.clone(),
        }
    }

    pub(super) fn ran(&mut self, roots: &[StagedRoot]) {
        let name = |path: &PathBuf| Name::from(&**path);
        let root = |root: &StagedRoot| Root {
            root: name(&root.root),
            upper: name(&root.upper),
            trusted: root.marks == LayerMarks::Trusted,
            hidden: root.hidden.iter().map(name).collect(),
            since: root.since,
        };
        self.roots = Some(roots.iter().map(root).collect());
    }

    pub(super) fn roots(&self) -> Option<Vec<StagedRoot>> {
        let root = |root: Root| StagedRoot {
            root: root.root.into(),
            upper: root.upper.into(),
            marks: if root.trusted { LayerMarks::Trusted } else { LayerMarks::User },
            hidden: root.hidden.into_iter().map(PathBuf::from).collect(),
            since: root.since,
        };
        Some(self.roots.clone()?.into_iter().map(root).collect())
    }

    /// Reads what is written down in the folder of a change set; `None` where nothing is, or not by this haft.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(folder.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let record = serde_json::from_slice::<Record>(&text).ok();
        Ok(record.filter(|record| record.version == VERSION))
    }

    /// Takes it away: what is in the folder is no change set any more.
    pub(super) fn remove(folder: &Path) -> io::Result<()> {
        match fs::remove_file(folder.join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes it down, in one step: what was there before is there until this is.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let new = folder.join("set.json.new");
        let written = fs::write(&new, serde_json::to_vec(self)?);
        if let Err(error) = written.and_then(|()| fs::rename(&new, folder.join(FILE))) {
            // On a full disk the room is better used otherwise.
            let _ = fs::remove_file(new);
            return Err(error);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let odd = PathBuf::from(OsString::from_vec(b"a\xff\n\"b".to_vec()));
        let roots = vec![StagedRoot {
            root: "/w".into(),
            upper: "/s/upper".into(),
            marks: LayerMarks::User,
            hidden: vec![".env".into(), odd],
            since: (12, 34),
        }];
        let call = StagedCall {
            execution_id: ExecutionId::at(Timestamp::UNIX_EPOCH),
            tenant: "local".into(),
            tool: "run_command".into(),
            summary: "Run command: make".into(),
        };
        let mut record = Record::new(&call, Timestamp::UNIX_EPOCH);
        assert_eq!(Record::read(folder.path()).unwrap(), None);
        record.ran(&roots);
        record.state = State::Kept { why: "it timed out".into() };
        record.write(folder.path()).unwrap();
        let read = Record::read(folder.path()).unwrap().unwrap();
        assert_eq!((read.roots().unwrap(), read.call()), (roots, call));
        assert_eq!(read, record);
    }
}

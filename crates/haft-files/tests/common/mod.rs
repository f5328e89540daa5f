//! A folder with files, a folder outside, a state folder, and the path jail between them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use haft_core::{ExecutionId, ToolError};
use haft_files::{DEFAULT_DENIES, Files, JailSpec, Keep, PathJail, RootSpec};
use haft_sdk::files::{Change, ChangeSet, Changed, Reader, Workspace as _};
use haft_store::MemoryReadHashes;
use std::{fs, path::Path, sync::Arc};
use tempfile::TempDir;

pub struct Ground {
    pub root: TempDir,
    pub outside: TempDir,
    pub state: TempDir,
    pub files: Files,
}

pub fn new_id() -> ExecutionId {
    ExecutionId::at(jiff::Timestamp::now())
}

pub fn spec(root: &Path) -> JailSpec {
    JailSpec {
        roots: vec![RootSpec { path: root.into(), read_only: false }],
        denied_patterns: DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()).collect(),
        ..JailSpec::default()
    }
}

pub fn files(root: &Path, state: &Path, keep: Keep) -> Files {
    let jail = Arc::new(PathJail::new(spec(root)).unwrap());
    Files::new(jail, Arc::new(MemoryReadHashes::default()), &state.join("changes"), keep)
}

impl Ground {
    pub fn new() -> Self {
        Ground::keeping(Keep::default())
    }

    pub fn keeping(keep: Keep) -> Self {
        let (root, outside, state) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = files(root.path(), state.path(), keep);
        Ground { root, outside, state, files }
    }

    pub fn reader(&self) -> Reader {
        Reader { tenant: "local".into(), conversation: "c".into() }
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn change<const N: usize>(&self, changes: [Change; N]) -> Result<Vec<Changed>, ToolError> {
        self.change_as(changes).map(|(_, changed)| changed)
    }

    pub fn change_as<const N: usize>(
        &self,
        changes: [Change; N],
    ) -> Result<(ExecutionId, Vec<Changed>), ToolError> {
        let by = new_id();
        let set = ChangeSet { by, reader: self.reader(), summary: "a test".into(), changes: changes.into() };
        Ok((by, self.files.change(set)?))
    }

    pub fn undo(&self, of: ExecutionId) -> Result<ExecutionId, ToolError> {
        let by = new_id();
        self.files.undo(of, by, &self.reader()).map(|_| by)
    }

    /// Every file with its text, every link, every empty folder.
    pub fn tree(&self) -> Vec<String> {
        tree(self.root.path())
    }
}

pub fn tree(root: &Path) -> Vec<String> {
    fn add(root: &Path, folder: &Path, into: &mut Vec<String>) {
        let entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
        if entries.is_empty() && folder != root {
            into.push(format!("{}/", folder.strip_prefix(root).unwrap().display()));
        }
        for entry in entries {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let kind = entry.file_type().unwrap();
            if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                let target = if target.is_absolute() { "".into() } else { target.display().to_string() };
                into.push(format!("{name}->{target}"));
            } else if kind.is_dir() {
                add(root, &path, into);
            } else {
                into.push(format!("{name}={}", fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut all = Vec::new();
    add(root, root, &mut all);
    all.sort();
    all
}

//! Who works in which folder: a staged command alone, calls that change files together.
//!
//! Everybody who works writes a claim: a file of haft's state that names the folders, locked for as long as its owner
//! works. Two claims are in each other's way where a folder of one is a folder of the other, or is in it, or holds it:
//! so two haft with different roots keep apart as well, as long as they share the state folder. Claims are made and
//! compared one after the other. What a killed haft leaves is a claim without a lock, which the next one removes.

use haft_core::{ErrorCode, ExecutionId, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::DirBuilderExt as _,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a staged command waits for its folders.
const COMMAND_WAITS: Duration = Duration::from_secs(120);
/// How long a call that changes files waits, which has a short deadline.
const CHANGE_WAITS: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// The file that is locked while claims are compared.
const REGISTRY: &str = "registry";
const CLAIM: &str = ".claim";

/// What somebody does in the folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Use {
    /// A staged command works there.
    Command,
    /// Files are changed there.
    Changes,
}

/// What is in a claim.
#[derive(Serialize, Deserialize)]
struct Claimed {
    by: Use,
    /// Paths as they are, byte for byte.
    roots: Vec<Vec<u8>>,
}

impl Claimed {
    /// Whether somebody else cannot work beside it.
    fn is_in_the_way_of(&self, by: Use, roots: &[PathBuf]) -> bool {
        if (self.by, by) == (Use::Changes, Use::Changes) {
            return false;
        }
        let theirs = || self.roots.iter().map(|root| PathBuf::from(OsString::from_vec(root.clone())));
        roots.iter().any(|mine| theirs().any(|theirs| mine.starts_with(&theirs) || theirs.starts_with(mine)))
    }
}

/// Folders that are held. Dropped, others may work there.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    _lock: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Should it stay, it is a claim without a lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Claims on folders, as files of haft's state: they hold for every haft that shares it.
#[derive(Clone, Debug)]
pub(super) struct RootLocks {
    folder: PathBuf,
    roots: Vec<PathBuf>,
}

impl RootLocks {
    pub(super) fn new(folder: PathBuf, roots: &[PathBuf]) -> Self {
        // Two names of one folder are one folder.
        let real = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        RootLocks { folder, roots: roots.iter().map(real).collect() }
    }

    /// Claims the folders; `None` where somebody is in the way.
    fn try_claim(&self, by: Use) -> io::Result<Option<Claim>> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let registry = open(&self.folder.join(REGISTRY), true)?;
        if !comes_in(&registry)? {
            return Ok(None);
        }
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == &CLAIM[1..])
                && living(&path)?.is_some_and(|claimed| claimed.is_in_the_way_of(by, &self.roots))
            {
                return Ok(None);
            }
        }
        let roots = self.roots.iter().map(|root| root.as_os_str().as_bytes().to_vec()).collect();
        let path = self.folder.join(format!("{}{CLAIM}", ExecutionId::at(Timestamp::now())));
        let mut file = open(&path, true)?;
        file.lock()?;
        let claim = Claim { path, _lock: file.try_clone()? };
        file.write_all(&serde_json::to_vec(&Claimed { by, roots })?)?;
        Ok(Some(claim))
    }

    /// Waits until nobody else works in the folders, around them or below them.
    pub(super) async fn alone(&self) -> Result<Claim, ToolError> {
        let start = Instant::now();
        loop {
            if let Some(claim) = self.try_claim(Use::Command).map_err(broken)? {
                return Ok(claim);
            }
            if start.elapsed() > COMMAND_WAITS {
                return Err(busy());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until no staged command works in the folders, around them or below them. On a thread that may wait.
    pub(super) fn together(&self) -> Result<Claim, ToolError> {
        let start = Instant::now();
        loop {
            if let Some(claim) = self.try_claim(Use::Changes).map_err(broken)? {
                return Ok(claim);
            }
            if start.elapsed() > CHANGE_WAITS {
                return Err(busy());
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Waits a moment until nobody else compares claims, which takes them less than that.
fn comes_in(registry: &File) -> io::Result<bool> {
    for _ in 0..20 {
        match registry.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// The claim in a file whose owner lives. One whose owner is gone is removed.
fn living(path: &Path) -> io::Result<Option<Claimed>> {
    let mut file = match open(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = fs::remove_file(path);
            return Ok(None);
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    // One that cannot be read, of another haft say, may be about any folder: it is in everybody's way.
    let anything = Claimed { by: Use::Command, roots: vec![b"/".to_vec()] };
    Ok(Some(serde_json::from_slice(&text).unwrap_or(anything)))
}

pub(super) fn open(path: &Path, create: bool) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn broken(error: io::Error) -> ToolError {
    ToolError::failed(format!("the folder could not be locked: {error}. Nothing was changed"))
}

fn busy() -> ToolError {
    let text = "A command works in this folder, or in one around or below it, and what it changed is not settled yet. \
                Nothing was changed. Send the call again when that command has ended";
    ToolError::new(ErrorCode::Blocked, text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn locks(folder: &Path, roots: &[&str]) -> RootLocks {
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        RootLocks::new(folder.join("locks"), &roots)
    }

    #[test]
    fn a_staged_command_is_alone_and_changes_are_together() {
        let folder = tempfile::tempdir().unwrap();
        let locks = |roots: &[&str]| locks(folder.path(), roots);
        let (one, both, other) = (locks(&["/a"]), locks(&["/b", "/a"]), locks(&["/c"]));
        let alone = one.try_claim(Use::Command).unwrap().unwrap();
        assert!(both.try_claim(Use::Command).unwrap().is_none());
        assert!(both.try_claim(Use::Changes).unwrap().is_none());
        assert!(other.try_claim(Use::Command).unwrap().is_some());
        drop(alone);
        let together = [&one, &both].map(|locks| locks.try_claim(Use::Changes).unwrap().unwrap());
        assert!(one.try_claim(Use::Command).unwrap().is_none());
        drop(together);
        assert!(both.try_claim(Use::Command).unwrap().is_some());
    }

    #[test]
    fn folders_around_and_below_are_the_same_folder_to_a_staged_command() {
        // one, other, whether they are in each other's way
        let cases = [
            ("/ws", "/ws/sub", true),
            ("/ws/sub/deep", "/ws", true),
            ("/", "/ws", true),
            ("/ws", "/ws2", false),
            ("/ws/a", "/ws/b", false),
            ("/ws/a", "/ws/ab", false),
        ];
        for (one, other, expected) in cases {
            for (first, second) in
                [(Use::Command, Use::Command), (Use::Command, Use::Changes), (Use::Changes, Use::Command)]
            {
                let folder = tempfile::tempdir().unwrap();
                let _held = locks(folder.path(), &[one]).try_claim(first).unwrap().unwrap();
                let blocked = locks(folder.path(), &[other]).try_claim(second).unwrap().is_none();
                assert_eq!(blocked, expected, "{first:?} in {one}, {second:?} in {other}");
            }
            let folder = tempfile::tempdir().unwrap();
            let _held = locks(folder.path(), &[one]).try_claim(Use::Changes).unwrap().unwrap();
            assert!(locks(folder.path(), &[other]).try_claim(Use::Changes).unwrap().is_some());
        }
    }

    #[test]
    fn a_claim_without_an_owner_is_nobodys_and_one_that_cannot_be_read_is_in_everybodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(folder.path(), &["/a"]);
        std::mem::drop(locks.try_claim(Use::Command).unwrap().unwrap());
        let left = folder.path().join("locks/left.claim");
        fs::write(&left, r#"{"by":"command","roots":[[47,97]]}"#).unwrap();
        assert!(locks.try_claim(Use::Command).unwrap().is_some());
        assert!(!left.exists(), "it is removed");
        fs::write(&left, "of another haft").unwrap();
        let file = open(&left, false).unwrap();
        file.lock().unwrap();
        assert!(locks.try_claim(Use::Changes).unwrap().is_none());
        drop(file);
        assert!(locks.try_claim(Use::Changes).unwrap().is_some());
    }
}

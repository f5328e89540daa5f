//! Who works in which folder: a staged command alone, calls that change files together.

use haft_core::{ErrorCode, ToolError};
use sha2::{Digest as _, Sha256};
use std::{
    any::Any,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a staged command waits for its folders.
const COMMAND_WAITS: Duration = Duration::from_secs(120);
/// How long a call that changes files waits, which has a short deadline.
const CHANGE_WAITS: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Locks of folders, as files of haft's state: they hold for every haft of the same user.
#[derive(Clone, Debug)]
pub(super) struct RootLocks {
    folder: PathBuf,
    /// The folders that are locked, in one order for all.
    roots: Vec<PathBuf>,
}

impl RootLocks {
    pub(super) fn new(folder: PathBuf, roots: &[PathBuf]) -> Self {
        let mut roots = roots.to_vec();
        roots.sort();
        roots.dedup();
        RootLocks { folder, roots }
    }

    fn path(&self, root: &Path) -> PathBuf {
        let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name)
    }

    /// All folders for a staged command, which nobody else uses then; `None` where somebody does.
    fn try_alone(&self) -> io::Result<Option<Vec<File>>> {
        fs::create_dir_all(&self.folder)?;
        let mut locked = Vec::new();
        for root in &self.roots {
            let file = open(&self.path(root), true)?;
            match file.try_lock() {
                Ok(()) => locked.push(file),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Some(locked))
    }

    /// All folders for a call that changes files; `None` where a staged command works in one.
    fn try_together(&self) -> io::Result<Option<Vec<File>>> {
        let mut locked = Vec::new();
        for root in &self.roots {
            let file = match open(&self.path(root), false) {
                // No command was ever staged there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            match file.try_lock_shared() {
                Ok(()) => locked.push(file),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Some(locked))
    }

    /// Waits until nobody else uses the folders.
    pub(super) async fn alone(&self) -> Result<Vec<File>, ToolError> {
        let start = Instant::now();
        loop {
            if let Some(locked) = self.try_alone().map_err(broken)? {
                return Ok(locked);
            }
            if start.elapsed() > COMMAND_WAITS {
                return Err(busy());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until no staged command works in the folders. On a thread that may wait.
    pub(super) fn together(&self) -> Result<Box<dyn Any>, ToolError> {
        let start = Instant::now();
        loop {
            if let Some(locked) = self.try_together().map_err(broken)? {
                return Ok(Box::new(locked));
            }
            if start.elapsed() > CHANGE_WAITS {
                return Err(busy());
            }
            std::thread::sleep(LOOK);
        }
    }
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
    let text = "A command works in this folder, and what it changed is not settled yet. Nothing was changed. Send the \
                call again when that command has ended";
    ToolError::new(ErrorCode::Blocked, text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_staged_command_is_alone_and_changes_are_together() {
        let folder = tempfile::tempdir().unwrap();
        let locks = |roots: &[&str]| {
            let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
            RootLocks::new(folder.path().join("locks"), &roots)
        };
        let (one, both, other) = (locks(&["/a"]), locks(&["/b", "/a"]), locks(&["/c"]));
        assert!(one.try_together().unwrap().unwrap().is_empty(), "nothing was staged there yet");
        let alone = one.try_alone().unwrap().unwrap();
        assert!(both.try_alone().unwrap().is_none() && both.try_together().unwrap().is_none());
        assert!(other.try_alone().unwrap().is_some());
        drop(alone);
        let together = (one.try_together().unwrap().unwrap(), both.try_together().unwrap().unwrap());
        assert!(one.try_alone().unwrap().is_none());
        drop(together);
        assert_eq!(both.try_alone().unwrap().unwrap().len(), 2);
    }
}

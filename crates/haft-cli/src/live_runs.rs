//! Which calls run now, among all processes of this machine that share a state folder, and how to stop one of another.
//!
//! A call that has begun is a file in the folder `running`, named by its id and locked for as long as its process
//! lives. A process that wants it to stop puts a second file beside it; its own process looks for that a few times a
//! second. The database is not asked: read-only calls are not in it before they end.

use haft_store::private_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// What is known about a call, or a batch, that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Running {
    /// The execution's id, or the batch's.
    pub(crate) id: String,
    /// Whether it is a batch.
    pub(crate) is_batch: bool,
    /// The tool, or the tools.
    pub(crate) tools: Vec<String>,
    /// Whose.
    pub(crate) tenant: String,
    /// By whom.
    pub(crate) agent: String,
    /// Since when.
    pub(crate) since: Timestamp,
    /// In which process.
    pub(crate) process: u32,
}

/// Shows others that something runs, until it is dropped.
pub(crate) struct Shown {
    path: PathBuf,
    wish: PathBuf,
    _lock: File,
}

impl Shown {
    /// Puts it on the list.
    pub(crate) fn new(state: &Path, running: &Running) -> io::Result<Shown> {
        let folder = folder(state);
        private_file::create_folder(&folder)?;
        let path = folder.join(format!("{}.json", running.id));
        // It gets its name when it is locked and written: a process that lists meanwhile must not take it for a
        // leftover.
        let fresh = path.with_extension("new");
        let mut file = private_file::lock(&fresh)?;
        file.write_all(&serde_json::to_vec(running)?)?;
        fs::rename(&fresh, &path)?;
        let wish = wish(state, &running.id);
        Ok(Shown { path, wish, _lock: file })
    }

    /// Whether somebody wants it to stop.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.wish.exists()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // The next process that lists removes what is left over.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.wish);
    }
}

fn folder(state: &Path) -> PathBuf {
    state.join("running")
}

fn wish(state: &Path, id: &str) -> PathBuf {
    folder(state).join(format!("{id}.stop"))
}

/// Everything that runs, oldest first. What a process that is gone left is tidied away.
pub(crate) fn list(state: &Path) -> io::Result<Vec<Running>> {
    let entries = match fs::read_dir(folder(state)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.extend(look(&path));
        }
    }
    found.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
    Ok(found)
}

/// One file: what runs, if it still does.
fn look(path: &Path) -> Option<Running> {
    let file = File::open(path).ok()?;
    match file.try_lock() {
        // Nobody holds it: its process is gone.
        Ok(()) => {
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(path.with_extension("stop"));
            None
        }
        Err(fs::TryLockError::WouldBlock) => {
            let text = fs::read(path).ok()?;
            // Not yet written whole: the next look sees it.
            serde_json::from_slice(&text).ok()
        }
        Err(fs::TryLockError::Error(_)) => None,
    }
}

/// Asks the process that runs it to stop it. False where nothing of that id runs.
pub(crate) fn ask_to_stop(state: &Path, id: &str) -> io::Result<bool> {
    if !list(state)?.iter().any(|running| running.id == id) {
        return Ok(false);
    }
    private_file::ensure(&wish(state, id))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(id: &str) -> Running {
        Running {
            id: id.to_owned(),
            is_batch: false,
            tools: vec!["echo".to_owned()],
            tenant: "local".to_owned(),
            agent: "owner".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            process: 7,
        }
    }

    #[test]
    fn what_runs_is_shown_until_it_ends_and_can_be_asked_to_stop() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(list(state.path()).unwrap(), []);
        assert!(!ask_to_stop(state.path(), "a").unwrap(), "nothing runs");
        let shown = Shown::new(state.path(), &running("a")).unwrap();
        assert_eq!(list(state.path()).unwrap(), [running("a")]);
        assert!(!shown.is_to_stop());
        assert!(ask_to_stop(state.path(), "a").unwrap());
        assert!(shown.is_to_stop());
        drop(shown);
        assert_eq!(fs::read_dir(state.path().join("running")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_process_that_is_gone_left_is_tidied_away() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("running");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("b.json"), serde_json::to_string(&running("b")).unwrap()).unwrap();
        fs::write(folder.join("b.stop"), "").unwrap();
        assert_eq!(list(state.path()).unwrap(), []);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }
}

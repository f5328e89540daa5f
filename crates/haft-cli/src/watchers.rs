//! Who answers calls that wait, among all processes of this machine that share a state folder.
//!
//! A process in which somebody is asked about every call that waits holds a locked file in the folder `watchers`, for as
//! long as it lives. A call that needs an answer waits while there is one, and does not where there is none.

use haft_store::private_file;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// What is known about somebody who answers.
#[derive(Debug, Serialize, Deserialize)]
struct Watching {
    /// Whose calls they are asked about.
    tenant: String,
}

/// Says that somebody here answers, until it is dropped.
pub(crate) struct Watcher {
    path: PathBuf,
    _lock: File,
}

impl Watcher {
    /// Somebody answers for that tenant from now on.
    pub(crate) fn new(state: &Path, tenant: &str) -> io::Result<Watcher> {
        let folder = folder(state);
        private_file::create_folder(&folder)?;
        let path = folder.join(format!("{}.json", uuid()));
        // It gets its name when it is locked and written: another process must not take it for a leftover.
        let fresh = path.with_extension("new");
        let mut file = private_file::lock(&fresh)?;
        file.write_all(&serde_json::to_vec(&Watching { tenant: tenant.to_owned() })?)?;
        fs::rename(&fresh, &path)?;
        Ok(Watcher { path, _lock: file })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // What is left over, the next process that looks removes.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether somebody answers for that tenant now. Where that cannot be found out, nobody does.
pub(crate) fn is_anybody_there(state: &Path, tenant: &str) -> bool {
    let Ok(entries) = fs::read_dir(folder(state)) else { return false };
    let files = entries.flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "json")).any(|path| watches(&path, tenant))
}

fn watches(path: &Path, tenant: &str) -> bool {
    let Ok(file) = File::open(path) else { return false };
    match file.try_lock() {
        // Nobody holds it: its process is gone.
        Ok(()) => {
            let _ = fs::remove_file(path);
            false
        }
        Err(_) => {
            let watching =
                fs::read(path).ok().and_then(|text| serde_json::from_slice::<Watching>(&text).ok());
            watching.is_some_and(|watching| watching.tenant == tenant)
        }
    }
}

fn folder(state: &Path) -> PathBuf {
    state.join("watchers")
}

/// A name that no other process takes.
fn uuid() -> String {
    haft::ExecutionId::at(jiff::Timestamp::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_there_while_they_watch_and_for_their_tenant_alone() {
        let state = tempfile::tempdir().unwrap();
        assert!(!is_anybody_there(state.path(), "local"));
        let watcher = Watcher::new(state.path(), "local").unwrap();
        assert!(is_anybody_there(state.path(), "local") && !is_anybody_there(state.path(), "other"));
        drop(watcher);
        assert!(!is_anybody_there(state.path(), "local"));
        // What a killed process left is not somebody, and is tidied away.
        let left = folder(state.path()).join("left.json");
        fs::write(&left, "{\"tenant\": \"local\"}").unwrap();
        assert!(!is_anybody_there(state.path(), "local") && !left.exists());
    }
}

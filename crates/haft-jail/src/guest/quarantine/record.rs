//! What is on record of guests that may run, in haft's state folder.
//!
//! A guest that starts asks the records which names others made that still run. It does so after it looked through its
//! folders: one that ends in between must still be on record then, or its names would be taken for the owner's. So
//! records are removed only while no guest is between its search and its own record ([`Window`]).

use super::Watched;
use rustix::{
    fd::OwnedFd,
    fs::{CWD, FlockOperation, Mode, flock, openat},
};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A record of a guest that may run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// The run of haft whose guest it is.
    pub(super) instance: String,
    pub(super) watched: Watched,
}

pub(super) fn records(state: &Path) -> PathBuf {
    state.join("watch")
}

/// What is on record. One that is removed meanwhile is not.
pub(super) fn on_record(state: &Path) -> impl Iterator<Item = (PathBuf, io::Result<Record>)> + use<> {
    files(&records(state), "json").filter_map(|path| match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some((path, read.and_then(|text| Ok(serde_json::from_slice(&text)?)))),
    })
}

fn files(folder: &Path, extension: &'static str) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(move |path| path.extension() == Some(OsStr::new(extension)))
}

/// Writes a record. Others read it as soon as it is there, so it is whole by then.
pub(super) fn write(path: &Path, record: &Record) -> io::Result<()> {
    let half = path.with_extension("new");
    fs::write(&half, serde_json::to_vec(record)?)?;
    let _ = fs::remove_file(over(path));
    fs::rename(half, path)
}

/// Whether all was done that a record is for.
pub(super) fn is_over(record: &Path) -> bool {
    over(record).exists()
}

fn over(record: &Path) -> PathBuf {
    record.with_extension("over")
}

/// Forgets a record: at once, or when nobody is between a search and a record any more.
pub(super) fn forget(record: &Path) {
    // Where even that cannot be written, what is known to others matters less than a guest whose end is looked at
    // twice.
    if fs::write(over(record), "").is_err() {
        let _ = fs::remove_file(record);
    }
    if let Some(folder) = record.parent() {
        sweep(folder);
    }
}

/// Removes records that are over, unless somebody still has to read them.
pub(super) fn sweep(records: &Path) {
    if let Ok(folder) = openat(CWD, records, super::FOLDER, Mode::empty()) {
        sweep_with(&folder, records);
    }
}

fn sweep_with(folder: &OwnedFd, records: &Path) {
    if flock(folder, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    for over in files(records, "over") {
        let _ = fs::remove_file(over.with_extension("json"));
        let _ = fs::remove_file(over);
    }
}

/// Open from before a guest's folders are looked through until its own record is written.
#[derive(Clone, Debug)]
pub(crate) struct Window(#[allow(dead_code, reason = "it is held")] Arc<Held>);

#[derive(Debug)]
struct Held {
    folder: OwnedFd,
    records: PathBuf,
}

impl Window {
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let records = records(state);
        DirBuilder::new().recursive(true).mode(0o700).create(&records)?;
        let folder = openat(CWD, &records, super::FOLDER, Mode::empty())?;
        rustix::io::retry_on_intr(|| flock(&folder, FlockOperation::LockShared))?;
        Ok(Window(Arc::new(Held { folder, records })))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        sweep_with(&self.folder, &self.records);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{
        super::{begin, tests::watched},
        *,
    };

    /// One guest made a name and ends while another has looked through the folder, and is not yet on record.
    #[test]
    fn a_guest_that_ends_after_the_search_of_another_is_still_on_record() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, state) = (root.path(), state.path());
        let left = || fs::read_dir(records(state)).unwrap().count();
        let window = Window::open(state).unwrap();
        let (first, _) = begin(state, "i", "first", watched(at)).unwrap();
        drop(window);
        fs::write(at.join(".envrc"), "evil").unwrap();
        let window = Window::open(state).unwrap();
        let second = watched(at);
        assert_eq!(second.known.len(), 1, "its search met the name");
        forget(&first);
        let (record, second) = begin(state, "i", "second", second).unwrap();
        assert_eq!(second.known.len(), 0, "it is the first one's");
        assert_eq!(left(), 3, "two records, and that the first is over");
        drop(window);
        assert_eq!(left(), 1);
        forget(&record);
        assert_eq!(left(), 0);
    }
}

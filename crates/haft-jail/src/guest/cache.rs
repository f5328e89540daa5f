//! Build caches: what toolchains keep from one command to the next, for each workspace by itself, in haft's state.
//!
//! ```text
//! state/caches/ID/files/    what guests read and write
//! state/caches/ID/roots     the folders of the workspace, for people and for `haft gc`
//! state/caches/ID/lock      shared by running guests; who has it alone may delete the files
//! state/caches/ID/counted   when it was counted last
//! ```
//!
//! The id is made of the folders that a guest may write: their paths, and which folders they are. So a guest that is
//! kept to less, and another workspace in the same place, have other caches. Nobody but guests uses what is in there: a
//! program that a command put into a cache runs in a jail, or never.

use super::{
    staging::{Bounds, remove_layers},
    wire::Bind,
};
use sha2::{Digest as _, Sha256};
use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

const CACHES: &str = "caches";
const FILES: &str = "files";
const LOCK: &str = "lock";
const ROOTS: &str = "roots";
const COUNTED: &str = "counted";
/// Counting takes a while, so it is not done before every command.
const COUNTED_EVERY: Duration = Duration::from_secs(60);
/// Between opening and locking, somebody may remove a cache; after so many times something else is wrong.
const MOST_TRIES: usize = 5;

/// A cache that a guest uses.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// What the guest reads and writes.
    pub(crate) files: PathBuf,
    most_bytes: u64,
    /// Held while the guest lives.
    _lock: Arc<File>,
}

impl Cache {
    /// The cache of a guest that may write these folders, made where it is missing and emptied where it is too large;
    /// `None` where it may write none.
    pub(crate) fn open(state: &Path, writable: &[PathBuf], most_bytes: u64) -> io::Result<Option<Self>> {
        if writable.is_empty() || most_bytes == 0 {
            return Ok(None);
        }
        let (id, roots) = identity(writable)?;
        let place = state.join(CACHES).join(id);
        let mut tries = 0;
        loop {
            match Cache::at(&place, &roots, most_bytes) {
                // It was removed just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < MOST_TRIES => tries += 1,
                opened => return opened.map(Some),
            }
        }
    }

    fn at(place: &Path, roots: &[u8], most_bytes: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(place)?;
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(place.join(LOCK))?;
        lock.lock_shared()?;
        lock.set_modified(SystemTime::now())?;
        if !place.join(ROOTS).exists() {
            fs::write(place.join(ROOTS), roots)?;
        }
        let files = place.join(FILES);
        let is_known = fs::metadata(place.join(COUNTED)).and_then(|known| known.modified());
        let is_known = is_known.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < COUNTED_EVERY));
        if !is_known && files.exists() {
            if Bounds::of_cache(files.clone(), most_bytes).look().is_err() {
                empty(&lock, &files)?;
            }
            fs::write(place.join(COUNTED), "")?;
        }
        match DirBuilder::new().mode(0o700).create(&files) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Not one that was removed meanwhile, with the lock of which nobody would know.
        let (named, held) = (fs::metadata(place.join(LOCK))?, lock.metadata()?);
        match (named.dev(), named.ino()) == (held.dev(), held.ino()) {
            true => Ok(Cache { files: files.canonicalize()?, most_bytes, _lock: Arc::new(lock) }),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// How the guest gets it: where it is on the machine, writable.
    pub(crate) fn bind(&self) -> io::Result<Bind> {
        let found = fs::symlink_metadata(&self.files)?;
        let (device, inode) = (found.dev(), found.ino());
        Ok(Bind { path: self.files.clone(), writable: true, device, inode, layers: None })
    }

    /// How large it may become while the guest runs.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::of_cache(self.files.clone(), self.most_bytes)
    }
}

/// Deletes what is in a cache that nobody else uses now.
fn empty(lock: &File, files: &Path) -> io::Result<()> {
    let removed = match lock.try_lock() {
        Ok(()) => remove_layers(files),
        // Those who use it are ended when they write more.
        Err(fs::TryLockError::WouldBlock) => Ok(()),
        Err(fs::TryLockError::Error(error)) => Err(error),
    };
    lock.lock_shared()?;
    removed
}

/// What tells workspaces apart, and the same for people.
fn identity(writable: &[PathBuf]) -> io::Result<(String, Vec<u8>)> {
    let mut roots = writable.iter().map(fs::canonicalize).collect::<io::Result<Vec<_>>>()?;
    roots.sort();
    roots.dedup();
    let (mut hash, mut text) = (Sha256::new(), Vec::new());
    for root in &roots {
        let found = fs::metadata(root)?;
        // Numbers of folders are used again; together with the time nobody has the same.
        let made = found.created().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let which = format!("\0{} {} {:?}\0", found.dev(), found.ino(), made);
        hash.update(root.as_os_str().as_bytes());
        hash.update(which.as_bytes());
        text.extend_from_slice(root.as_os_str().as_bytes());
        text.push(b'\n');
    }
    let mut id = String::new();
    for byte in hash.finalize().iter().take(16) {
        let _ = write!(id, "{byte:02x}");
    }
    Ok((id, text))
}

/// Deletes build caches that no command used for so long, and those of workspaces that are gone. Zero deletes all. What
/// a running command uses stays. Gives how many were deleted.
///
/// ```
/// # let state = tempfile::tempdir()?;
/// let deleted = haft_jail::guest::sweep_caches(state.path(), std::time::Duration::ZERO)?;
/// assert_eq!(deleted, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sweep_caches(state: &Path, unused_for: Duration) -> io::Result<u64> {
    let entries = match fs::read_dir(state.join(CACHES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut deleted = 0;
    for entry in entries {
        let place = entry?.path();
        let lock = match OpenOptions::new().write(true).open(place.join(LOCK)) {
            Ok(lock) => Some(lock),
            // A haft was killed before it was made.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(lock) = &lock {
            match lock.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => continue,
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
            let age = lock.metadata()?.modified()?.elapsed().unwrap_or_default();
            if age < unused_for && is_there(&place) {
                continue;
            }
        }
        remove_layers(&place)?;
        deleted += 1;
    }
    Ok(deleted)
}

/// Whether the folders of its workspace are there.
fn is_there(place: &Path) -> bool {
    let Ok(roots) = fs::read(place.join(ROOTS)) else { return false };
    let mut roots = roots.split(|byte| *byte == b'\n').filter(|root| !root.is_empty());
    roots.all(|root| Path::new(std::ffi::OsStr::from_bytes(root)).is_dir())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    struct House(tempfile::TempDir);

    impl House {
        fn new() -> House {
            let house = House(tempfile::tempdir().unwrap());
            for name in ["state", "one", "two"] {
                fs::create_dir(house.path(name)).unwrap();
            }
            house
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn open(&self, roots: &[&str], bytes: u64) -> Option<Cache> {
            let roots: Vec<_> = roots.iter().map(|root| self.path(root)).collect();
            Cache::open(&self.path("state"), &roots, bytes).unwrap()
        }
    }

    #[test]
    fn each_workspace_has_its_own_and_finds_it_again() {
        let house = House::new();
        let one = house.open(&["one"], 1 << 20).unwrap().files;
        fs::write(one.join("x"), "x").unwrap();
        assert_eq!(house.open(&["one"], 1 << 20).unwrap().files, one);
        let two = house.open(&["two"], 1 << 20).unwrap().files;
        let both = house.open(&["one", "two"], 1 << 20).unwrap().files;
        assert!(one != two && one != both && two != both);
        assert!(!two.join("x").exists() && !both.join("x").exists());
        assert_eq!(house.open(&["two", "one"], 1 << 20).unwrap().files, both, "whatever their order");
        assert!(house.open(&[], 1 << 20).is_none() && house.open(&["one"], 0).is_none());
        // Another folder in the same place is another workspace.
        fs::rename(house.path("one"), house.path("old")).unwrap();
        fs::create_dir(house.path("one")).unwrap();
        assert_ne!(house.open(&["one"], 1 << 20).unwrap().files, one);
    }

    #[test]
    fn one_that_is_too_large_is_emptied_unless_somebody_uses_it() {
        let house = House::new();
        let first = house.open(&["one"], 1 << 20).unwrap();
        fs::write(first.files.join("large"), vec![1; 2 << 20]).unwrap();
        let counted = first.files.parent().unwrap().join(COUNTED);
        let again = house.open(&["one"], 1 << 20).unwrap();
        assert!(again.files.join("large").exists(), "the first one uses it");
        drop((first, again));
        fs::remove_file(&counted).unwrap();
        let emptied = house.open(&["one"], 1 << 20).unwrap();
        assert!(emptied.files.is_dir() && !emptied.files.join("large").exists());
        assert!(counted.exists());
    }

    #[test]
    fn what_nobody_uses_any_more_is_deleted() {
        let house = House::new();
        let state = house.path("state");
        let month = Duration::from_secs(30 * 24 * 3600);
        let (one, two) = (house.open(&["one"], 1 << 20).unwrap(), house.open(&["two"], 1 << 20).unwrap());
        assert_eq!(sweep_caches(&state, Duration::ZERO).unwrap(), 0, "both are used");
        drop((one, two));
        assert_eq!(sweep_caches(&state, month).unwrap(), 0);
        fs::remove_dir(house.path("two")).unwrap();
        assert_eq!(sweep_caches(&state, month).unwrap(), 1, "its workspace is gone");
        let one = house.open(&["one"], 1 << 20).unwrap();
        let lock = one.files.parent().unwrap().join(LOCK);
        drop(one);
        let lock = OpenOptions::new().write(true).open(lock).unwrap();
        lock.set_modified(SystemTime::now() - 2 * month).unwrap();
        assert_eq!(sweep_caches(&state, month).unwrap(), 1, "nobody used it for two months");
        assert_eq!(fs::read_dir(state.join(CACHES)).unwrap().count(), 0);
    }
}

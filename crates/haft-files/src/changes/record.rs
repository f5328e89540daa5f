//! Records of changes on disk.
//!
//! `open/ID/` holds one that is under way, `done/ID/` one that is made. Giving the folder its other name is the
//! moment in which a set of changes counts as made: what is still in `open` after a crash is taken back. A lock beside
//! it tells whether the process that makes it still lives.

use super::manifest::{Manifest, VERSION};
use haft_core::ExecutionId;
use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

const MANIFEST: &str = "manifest.json";
/// The largest manifest that is read.
const MOST_MANIFEST_BYTES: u64 = 64 << 20;

/// Where records are kept.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    open: PathBuf,
    done: PathBuf,
}

/// A record that this process works on. Nobody else touches it as long as this lives.
#[derive(Debug)]
pub(super) struct Record {
    name: String,
    pub(super) folder: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Shelf {
    pub(super) fn new(folder: &Path) -> Self {
        Shelf { open: folder.join("open"), done: folder.join("done") }
    }

    /// A record for the changes of a call; one call may make several sets.
    pub(super) fn begin(&self, by: ExecutionId) -> io::Result<Record> {
        create_folder(&self.open)?;
        create_folder(&self.done)?;
        // Not how many there are: old ones go, and a number must not come again.
        let last = self.of(by)?.last().and_then(|folder| number(folder)).unwrap_or(0);
        let name = format!("{by}.{:08}", last + 1);
        // Twice: the first lock may have been taken away between being made and being locked.
        let record = match self.lock(&name)? {
            Some(record) => record,
            None => {
                self.lock(&name)?.ok_or_else(|| io::Error::other("the same call makes changes elsewhere"))?
            }
        };
        create_folder(&record.folder)?;
        Ok(record)
    }

    /// Locks a record; `None` where its process lives.
    fn lock(&self, name: &str) -> io::Result<Option<Record>> {
        let lock_path = self.open.join(format!("{name}.lock"));
        let lock = private().create(true).truncate(false).open(&lock_path)?;
        match lock.try_lock() {
            // Another process may have taken the file for one that was left, and have removed it: then it locks
            // nothing.
            Ok(()) if !is_still_there(&lock, &lock_path) => Ok(None),
            Ok(()) => {
                let folder = self.open.join(name);
                Ok(Some(Record { name: name.to_owned(), folder, lock_path, _lock: lock }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The records that were cut: their processes are gone.
    pub(super) fn cut(&self) -> io::Result<Vec<Record>> {
        let mut cut = Vec::new();
        for name in names(&self.open)? {
            let is_lock = name.strip_suffix(".lock");
            let record = self.lock(is_lock.unwrap_or(&name))?;
            match (record, is_lock) {
                (Some(record), None) => cut.push(record),
                // A lock without a record: it was made just before the process ended, or just after it was done.
                (Some(record), Some(_)) if !record.folder.exists() => record.forget()?,
                (Some(_) | None, _) => {}
            }
        }
        cut.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(cut)
    }

    /// The folders of the finished records of a call, oldest first.
    pub(super) fn of(&self, by: ExecutionId) -> io::Result<Vec<PathBuf>> {
        let prefix = format!("{by}.");
        let mut found: Vec<_> =
            names(&self.done)?.into_iter().filter(|name| name.starts_with(&prefix)).collect();
        found.sort();
        Ok(found.into_iter().map(|name| self.done.join(name)).collect())
    }

    /// Removes the oldest finished records until at most so many, of so many bytes, are left.
    pub(super) fn prune(&self, most_records: usize, most_bytes: u64) -> io::Result<()> {
        /// Adding up sizes means looking at every file, so it is not done every time.
        const EVERY: usize = 16;
        let mut names = names(&self.done)?;
        if names.len() <= most_records && names.len() % EVERY != 0 {
            return Ok(());
        }
        names.sort();
        let mut bytes = 0;
        for (age, name) in names.iter().rev().enumerate() {
            let folder = self.done.join(name);
            bytes += size(&folder);
            // The newest stays in any case: it is the one that was just made.
            if age > 0 && (age >= most_records || bytes > most_bytes) {
                fs::remove_dir_all(folder)?;
            }
        }
        Ok(())
    }

    /// The changes are made: from now on they count.
    pub(super) fn finish(&self, record: Record) -> io::Result<()> {
        let done = self.done.join(&record.name);
        fs::rename(&record.folder, &done)?;
        if let Err(error) = sync_folder(&self.done).and_then(|()| sync_folder(&self.open)) {
            // It may be lost in a power cut, so it does not count: it goes back to where cut ones are.
            fs::rename(&done, &record.folder)?;
            return Err(error);
        }
        record.unlock();
        Ok(())
    }
}

impl Record {
    /// Keeps bytes for later.
    pub(super) fn keep(&self, image: &str, mut from: impl io::Read) -> io::Result<()> {
        let mut file = private().create_new(true).open(self.folder.join(image))?;
        io::copy(&mut from, &mut file)?;
        file.sync_data()
    }

    /// Writes down what is about to happen. When this returns, a crash does not lose it.
    pub(super) fn write(&self, manifest: &Manifest) -> io::Result<()> {
        let fresh = self.folder.join("manifest.new");
        let mut file = private().create_new(true).open(&fresh)?;
        serde_json::to_writer(&mut file, manifest)?;
        file.flush()?;
        file.sync_data()?;
        fs::rename(&fresh, self.folder.join(MANIFEST))?;
        sync_folder(&self.folder)?;
        self.folder.parent().map_or(Ok(()), sync_folder)
    }

    /// The changes are taken back, or were never begun: nothing remains.
    pub(super) fn forget(self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.unlock();
        Ok(())
    }

    fn unlock(self) {
        // Should it stay, the next start removes it.
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// The number in the name of a record.
fn number(folder: &Path) -> Option<u64> {
    folder.extension()?.to_str()?.parse().ok()
}

#[cfg(unix)]
fn is_still_there(lock: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |known: &fs::Metadata| (known.dev(), known.ino());
    matches!((lock.metadata(), fs::metadata(path)), (Ok(held), Ok(named)) if id(&held) == id(&named))
}

/// Which file a handle is cannot be asked there without more; the lock itself is all there is.
#[cfg(not(unix))]
fn is_still_there(_lock: &File, _path: &Path) -> bool {
    true
}

/// The manifest of a record; `None` where it was cut before it had one.
pub(super) fn read(folder: &Path) -> io::Result<Option<Manifest>> {
    let file = match File::open(folder.join(MANIFEST)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(MOST_MANIFEST_BYTES).read_to_end(&mut text)?;
    let manifest: Manifest = serde_json::from_slice(&text)?;
    match manifest.version {
        VERSION => Ok(Some(manifest)),
        other => Err(io::Error::other(format!("it has the form {other}, which this haft does not know"))),
    }
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

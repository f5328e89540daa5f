//! Records of changes on disk.
//!
//! `open` holds those that are under way, `done` those that are made: what is still in `open` after a crash is taken
//! back. A record is one file ([`Packed`](super::packed::Packed)); that of whole trees is a folder, and giving it its
//! other name is the moment in which it counts as made. A lock beside the folder tells whether the process that makes
//! it still lives.

use super::{
    Became,
    manifest::{Manifest, TREES, VERSION},
    packed::{self, Images},
    tally,
};
#[cfg(target_os = "linux")]
use crate::staged::Restored;
use haft_core::ExecutionId;
use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

const MANIFEST: &str = "manifest.json";
/// The largest manifest that is read.
const MOST_MANIFEST_BYTES: u64 = 64 << 20;

/// Where records are kept.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    pub(super) open: PathBuf,
    pub(super) done: PathBuf,
    /// Empty files for records to come.
    pub(super) spare: PathBuf,
    /// How many records there are, and of how many bytes.
    tally: PathBuf,
    /// Notes about folders that sets have below roots while they are made, and what is only still to be removed.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only staged commands leave something"))]
    left: PathBuf,
    /// Notes about what was put back when sets were taken back.
    #[cfg(target_os = "linux")]
    restored: PathBuf,
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
        let below = |name: &str| folder.join(name);
        let (open, done, spare) = (below("open"), below("done"), below("spare"));
        Shelf {
            open,
            done,
            spare,
            tally: below("tally"),
            left: below("left"),
            #[cfg(target_os = "linux")]
            restored: below("restored"),
        }
    }

    /// A record for the changes of a call; one call may make several sets.
    #[cfg(target_os = "linux")]
    pub(super) fn begin(&self, by: ExecutionId) -> io::Result<Record> {
        create_folder(&self.open)?;
        create_folder(&self.done)?;
        let name = format!("{by}.{:020}", next_number());
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
            if packed::is_packed(&self.open.join(&name)) {
                continue;
            }
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

    /// The finished records of a call, oldest first.
    pub(super) fn of(&self, by: ExecutionId) -> io::Result<Vec<PathBuf>> {
        let prefix = format!("{by}.");
        let mut found: Vec<_> =
            names(&self.done)?.into_iter().filter(|name| name.starts_with(&prefix)).collect();
        found.sort();
        Ok(found.into_iter().map(|name| self.done.join(name)).collect())
    }

    /// What became of the changes of a call. One that is under way, or was cut, counts more than those before.
    pub(super) fn became_of(&self, by: ExecutionId) -> io::Result<Became> {
        let prefix = format!("{by}.");
        let is_open = |name: &String| name.starts_with(&prefix) && !name.ends_with(".lock");
        if names(&self.open)?.iter().any(is_open) {
            return Ok(Became::Cut);
        }
        Ok(if self.of(by)?.is_empty() { Became::Nothing } else { Became::Made })
    }

    /// Counts a record that was just made, and removes the oldest finished ones where there are more than so many, or
    /// of more than so many bytes. How many there are is kept, so that this does not look at all of them each time.
    pub(super) fn prune(&self, added: u64, most_records: usize, most_bytes: u64) -> io::Result<()> {
        tally::count(&self.tally, added, |known| match known {
            Some(total) if total.records <= most_records as u64 && total.bytes <= most_bytes => Ok(total),
            _ => self.remove_oldest(most_records, most_bytes),
        })
    }

    /// Removes the oldest finished records until at most so many, of so many bytes, are left. Where one has to go a
    /// sixteenth goes, so that it is not done every time.
    fn remove_oldest(&self, most_records: usize, most_bytes: u64) -> io::Result<tally::Total> {
        let mut all = names(&self.done)?;
        all.sort();
        let sized: Vec<_> = all.iter().rev().map(|name| (name, size(&self.done.join(name)))).collect();
        let sum: u64 = sized.iter().map(|(_, bytes)| bytes).sum();
        let (mut records, mut bytes) = (most_records, most_bytes);
        if sized.len() > most_records || sum > most_bytes {
            records -= records / 16;
            bytes -= bytes / 16;
        }
        let mut kept = tally::Total::default();
        for (age, (name, size)) in sized.into_iter().enumerate() {
            // The newest stays in any case: it is the one that was just made.
            if age > 0 && (age >= records || kept.bytes.saturating_add(size) > bytes) {
                remove_all(&self.done.join(name))?;
            } else {
                kept.records += 1;
                kept.bytes += size;
            }
        }
        Ok(kept)
    }

    /// The changes are made: from now on they count. Gives how many bytes the record has.
    #[cfg(target_os = "linux")]
    pub(super) fn finish(&self, record: Record) -> io::Result<u64> {
        let done = self.done.join(&record.name);
        fs::rename(&record.folder, &done)?;
        if let Err(error) = sync_folder(&self.done).and_then(|()| sync_folder(&self.open)) {
            // It may be lost in a power cut, so it does not count: it goes back to where cut ones are.
            fs::rename(&done, &record.folder)?;
            return Err(error);
        }
        record.unlock();
        Ok(size(&done))
    }
}

impl Record {
    /// Writes down what is about to happen. When this returns, a crash does not lose it.
    #[cfg(target_os = "linux")]
    pub(super) fn write(&self, manifest: &Manifest) -> io::Result<()> {
        let fresh = self.folder.join("manifest.new");
        let mut file = private().create_new(true).open(&fresh)?;
        file.write_all(&serde_json::to_vec(manifest)?)?;
        file.sync_data()?;
        fs::rename(&fresh, self.folder.join(MANIFEST))?;
        sync_folder(&self.folder)?;
        self.folder.parent().map_or(Ok(()), sync_folder)
    }

    /// The changes are taken back, or were never begun: nothing remains.
    pub(super) fn forget(self) -> io::Result<()> {
        match remove_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.unlock();
        Ok(())
    }

    /// Its name: the call and a number.
    #[cfg(target_os = "linux")]
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn unlock(self) {
        // Should it stay, the next start removes it.
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// A number that did not come before, here and in other processes that work on the same call: later ones are higher.
pub(super) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or(0);
    let next = |last: u64| now.max(last + 1);
    next(LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))).unwrap_or(0))
}

#[cfg(unix)]
pub(super) fn is_still_there(lock: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |known: &fs::Metadata| (known.dev(), known.ino());
    matches!((lock.metadata(), fs::metadata(path)), (Ok(held), Ok(named)) if id(&held) == id(&named))
}

/// Which file a handle is cannot be asked there without more; the lock itself is all there is.
#[cfg(not(unix))]
pub(super) fn is_still_there(_lock: &File, _path: &Path) -> bool {
    true
}

/// A record with the bytes that it keeps; `None` where it was cut before it was whole.
pub(super) fn read(record: &Path) -> io::Result<Option<(Manifest, Images)>> {
    if packed::is_packed(record) {
        return packed::read(record);
    }
    Ok(manifest_of(record)?.map(|manifest| (manifest, Images::Folder(record.to_owned()))))
}

/// The manifest of a record that is a folder; `None` where it was cut before it had one.
pub(super) fn manifest_of(folder: &Path) -> io::Result<Option<Manifest>> {
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
        TREES if cfg!(target_os = "linux") => Ok(Some(manifest)),
        other => Err(io::Error::other(format!("it has the form {other}, which this haft does not know"))),
    }
}

pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// How many bytes a record has. What a set of trees kept is in folders.
#[cfg(target_os = "linux")]
fn size(folder: &Path) -> u64 {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return 0 };
    crate::folder::Folder::open(parent).map_or(0, |parent| crate::tree::size_of(&parent, name))
}

#[cfg(not(target_os = "linux"))]
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Removes a record. Folders in it may have lost the permissions that this takes.
#[cfg(target_os = "linux")]
fn remove_all(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
    crate::tree::remove_tree(&crate::folder::Folder::open(parent)?, name)
}

#[cfg(not(target_os = "linux"))]
fn remove_all(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder)
}

/// What sets of trees leave beside their records.
#[cfg(target_os = "linux")]
impl Shelf {
    /// The folder of a record that is made.
    pub(super) fn done_folder(&self, name: &str) -> PathBuf {
        self.done.join(name)
    }

    /// Notes which folders a set is about to make below roots, so that a crash leaves none of them for good.
    pub(super) fn note_left(&self, name: &str, areas: &[PathBuf]) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = self.left.join(format!("{name}.json"));
        if path.exists() {
            return Ok(());
        }
        create_folder(&self.left)?;
        let areas: Vec<&[u8]> = areas.iter().map(|area| area.as_os_str().as_bytes()).collect();
        let mut file = private().create(true).truncate(true).open(&path)?;
        file.write_all(&serde_json::to_vec(&areas)?)?;
        file.sync_data()?;
        sync_folder(&self.left)
    }

    /// Notes what was put back when a set was taken back, beside what was noted before.
    pub(super) fn note_restored(&self, name: &str, restored: Restored) -> io::Result<()> {
        if restored.is_empty() {
            return Ok(());
        }
        create_folder(&self.restored)?;
        self.forget_old_restored();
        let call = name.split('.').next().unwrap_or(name);
        let mut all = self.restored(call)?;
        all.extend(restored);
        let path = self.restored.join(format!("{call}.json"));
        let fresh = path.with_extension("new");
        let mut file = private().create(true).truncate(true).open(&fresh)?;
        serde_json::to_writer(&mut file, &all)?;
        file.flush()?;
        file.sync_data()?;
        fs::rename(fresh, path)
    }

    /// What was put back of the changes of a call.
    pub(super) fn restored(&self, call: &str) -> io::Result<Restored> {
        let text = match fs::read(self.restored.join(format!("{call}.json"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Restored::new()),
            text => text?,
        };
        // What cannot be read counts as changed by somebody else.
        Ok(serde_json::from_slice(&text).unwrap_or_default())
    }

    /// The changes are applied or thrown away: nobody asks any more.
    pub(super) fn forget_restored(&self, call: &str) {
        let _ = fs::remove_file(self.restored.join(format!("{call}.json")));
    }

    /// Nothing is kept for longer than this.
    fn forget_old_restored(&self) {
        const LONGEST: std::time::Duration = std::time::Duration::from_secs(400 * 24 * 3600);
        for entry in fs::read_dir(&self.restored).into_iter().flatten().flatten() {
            let made = entry.metadata().and_then(|known| known.modified());
            if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LONGEST)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// The folders are removed.
    pub(super) fn forget_left(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.left.join(format!("{name}.json"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The folders that were noted by sets which are not under way any more.
    pub(super) fn left(&self) -> io::Result<Vec<(String, Vec<PathBuf>)>> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut left = Vec::new();
        for file in names(&self.left)? {
            let Some(name) = file.strip_suffix(".json") else { continue };
            if self.open.join(name).exists() {
                continue;
            }
            let text = match fs::read(self.left.join(&file)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text?,
            };
            // One that was cut while it was written: nothing was made yet.
            let areas: Vec<Vec<u8>> = serde_json::from_slice(&text).unwrap_or_default();
            let areas = areas.into_iter().map(|area| std::ffi::OsString::from_vec(area).into()).collect();
            left.push((name.to_owned(), areas));
        }
        Ok(left)
    }

    pub(super) fn left_folder(&self) -> PathBuf {
        self.left.clone()
    }

    /// What is only still to be removed.
    pub(super) fn dropped(&self) -> io::Result<Vec<std::ffi::OsString>> {
        Ok(names(&self.left)?.into_iter().filter(|name| name.ends_with(".dropped")).map(Into::into).collect())
    }

    /// Removes what a set kept that cannot be undone: until now it served to take it back.
    pub(super) fn drop_kept(&self, name: &str) -> io::Result<()> {
        create_folder(&self.left)?;
        let dropped = self.left.join(format!("{name}.dropped"));
        fs::rename(self.done.join(name).join("kept"), &dropped)?;
        remove_all(&dropped)
    }
}

pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

pub(super) fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

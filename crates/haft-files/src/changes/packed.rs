//! A record of changes in one file: what is about to happen, and the bytes that go.
//!
//! A set is on record with a single sync: the file had its name on disk before (a *spare*, made sixteen at a time), and
//! giving it another name loses neither of the two in a power cut. So whoever looks for records after one also looks
//! among the spares. A lock on the file tells whether the process that makes the set still lives; a mark in it, whether
//! the set is made.

use super::{
    manifest::{Manifest, State, Step, VERSION},
    record::{self, Shelf},
};
use haft_core::ExecutionId;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// How a record begins. The letter after it is the mark.
const MAGIC: &[u8; 15] = b"haft-changes-1 ";
const OPEN: u8 = b'o';
const MADE: u8 = b'm';
/// Magic, mark, the length of the contents in twenty digits, their SHA-256 in hex, with spaces and a line end.
const HEADER: usize = MAGIC.len() + 1 + 1 + 20 + 1 + 64 + 1;
/// The largest table of contents that is read.
const MOST_BYTES: u64 = 64 << 20;
/// How many spares are made at a time: one sync serves for all of them.
const SPARES: usize = 16;

/// What a record says, before the bytes that it keeps.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    /// The name that it has among the records.
    name: String,
    /// Which boot of the machine it was made in, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
    manifest: Manifest,
    /// The kept bytes that follow: their names in the manifest, and how many each are.
    images: Vec<(String, u64)>,
}

/// A record that this process works on. Nobody else touches it as long as this lives.
#[derive(Debug)]
pub(super) struct Packed {
    name: String,
    path: PathBuf,
    file: File,
    /// Whether the set is made is found out without its mark, should a power cut lose that.
    is_clear_without_mark: bool,
}

/// A record that was left by a process that is gone.
pub(super) struct Left {
    pub(super) record: Packed,
    pub(super) manifest: Manifest,
    pub(super) is_made: bool,
    /// The machine was started anew since: what was not synced may be lost.
    pub(super) is_of_another_boot: bool,
}

/// Where the bytes are that a record keeps.
#[derive(Debug)]
pub(super) enum Images {
    /// Each in a file of that folder.
    Folder(PathBuf),
    /// In the record itself, each at that offset with that length.
    Packed { path: PathBuf, at: Vec<(String, u64, u64)> },
}

impl Images {
    /// Opens kept bytes, for reading.
    pub(super) fn open(&self, image: &str) -> io::Result<io::Take<File>> {
        match self {
            Images::Folder(folder) => Ok(File::open(folder.join(image))?.take(u64::MAX)),
            Images::Packed { path, at } => {
                let (_, offset, length) =
                    at.iter().find(|(name, ..)| name == image).ok_or(io::ErrorKind::NotFound)?;
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(*offset))?;
                Ok(file.take(*length))
            }
        }
    }
}

impl Packed {
    /// Takes a spare for a set of changes.
    pub(super) fn begin(shelf: &Shelf, by: ExecutionId) -> io::Result<Self> {
        for folder in [&shelf.open, &shelf.done, &shelf.spare] {
            record::create_folder(folder)?;
        }
        let name = format!("{by}.{:020}", record::next_number());
        let path = shelf.open.join(&name);
        // Twice: others may take all of those that were just made.
        for _ in 0..2 {
            for spare in record::names(&shelf.spare)? {
                let spare = shelf.spare.join(spare);
                if let Some(file) = lock(&spare)?
                    && file.metadata()?.len() == 0
                {
                    fs::rename(&spare, &path)?;
                    return Ok(Packed { name, path, file, is_clear_without_mark: false });
                }
            }
            make_spares(&shelf.spare)?;
        }
        Err(io::Error::other("other processes take every free record"))
    }

    /// Writes down what is about to happen, with the bytes that go. When this returns, a crash does not lose it.
    pub(super) fn write(
        &mut self,
        manifest: &Manifest,
        images: &[(&str, &[u8])],
        kept: impl Fn(),
    ) -> io::Result<()> {
        let boot = boot_id();
        self.is_clear_without_mark = boot.is_some() && only_turn(manifest).is_some();
        let contents = Contents {
            name: self.name.clone(),
            boot,
            manifest: manifest.clone(),
            images: images.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.len() as u64)).collect(),
        };
        let contents = serde_json::to_vec(&contents)?;
        let mut text = Vec::with_capacity(HEADER + contents.len());
        text.extend_from_slice(MAGIC);
        writeln!(text, "{} {:020} {}", char::from(OPEN), contents.len(), super::apply::sha256(&contents))?;
        text.extend_from_slice(&contents);
        self.file.write_all(&text)?;
        for (_, bytes) in images {
            self.file.write_all(bytes)?;
            kept();
        }
        self.file.sync_data()
    }

    /// The kept bytes.
    pub(super) fn images(&self) -> io::Result<Images> {
        let (_, images) = read(&self.path)?.ok_or(io::ErrorKind::InvalidData)?;
        Ok(images)
    }

    /// The changes are made: from now on they count. Gives how many bytes the record has.
    ///
    /// Of a single change the mark is not waited for: after a power cut the path itself says whether it was made.
    pub(super) fn finish(mut self, shelf: &Shelf) -> io::Result<u64> {
        self.mark(MADE)?;
        if !self.is_clear_without_mark
            && let Err(error) = self.file.sync_data()
        {
            // It may be lost in a power cut, so it does not count.
            self.mark(OPEN)?;
            return Err(error);
        }
        let length = self.file.metadata()?.len();
        self.shelve(shelf)?;
        Ok(length)
    }

    fn mark(&mut self, mark: u8) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(MAGIC.len() as u64))?;
        self.file.write_all(&[mark])
    }

    /// Puts it among those that are made. The name need not be on disk: the mark is what counts.
    pub(super) fn shelve(&self, shelf: &Shelf) -> io::Result<()> {
        fs::rename(&self.path, shelf.done.join(&self.name))
    }

    /// The changes are taken back, or were never begun: nothing remains.
    pub(super) fn forget(self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The records of processes that are gone, oldest first. What never was whole is removed: nothing was changed then.
pub(super) fn left(shelf: &Shelf) -> io::Result<Vec<Left>> {
    let mut left = Vec::new();
    for folder in [&shelf.open, &shelf.spare] {
        for name in record::names(folder)? {
            let path = folder.join(&name);
            if is_packed(&path)
                && let Some(file) = lock(&path)?
                && let Some(found) = look(folder == &shelf.spare, path, file)?
            {
                left.push(found);
            }
        }
    }
    left.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    Ok(left)
}

fn look(is_spare: bool, path: PathBuf, file: File) -> io::Result<Option<Left>> {
    match (file.metadata()?.len(), parse(&path)?) {
        (0, _) if is_spare => Ok(None),
        (_, Some(whole)) => {
            let Contents { name, boot, manifest, .. } = whole.contents;
            let is_clear_without_mark = boot.is_some() && only_turn(&manifest).is_some();
            let is_of_another_boot = boot != boot_id();
            let record = Packed { name, path, file, is_clear_without_mark };
            Ok(Some(Left { record, manifest, is_made: whole.is_made, is_of_another_boot }))
        }
        (_, None) => fs::remove_file(&path).map(|()| None),
    }
}

/// The only change of a set, where there is one: it is made in a single moment.
pub(super) fn only_turn(manifest: &Manifest) -> Option<&Step> {
    match manifest.steps.as_slice() {
        [step @ Step::Turn { before, after, .. }]
            if !matches!((before, after), (State::Folder { .. }, _) | (_, State::Folder { .. })) =>
        {
            Some(step)
        }
        _ => None,
    }
}

/// Whether it is a record in one file: not a folder, and not the lock of one.
pub(super) fn is_packed(path: &Path) -> bool {
    path.extension().is_none_or(|ending| ending != "lock") && path.is_file()
}

/// A record with the bytes that it keeps; `None` where it was cut before it was whole.
pub(super) fn read(path: &Path) -> io::Result<Option<(Manifest, Images)>> {
    let Some(whole) = parse(path)? else { return Ok(None) };
    let mut offset = whole.images_at;
    let mut at = Vec::with_capacity(whole.contents.images.len());
    for (name, length) in whole.contents.images {
        at.push((name, offset, length));
        offset = offset.saturating_add(length);
    }
    Ok(Some((whole.contents.manifest, Images::Packed { path: path.to_owned(), at })))
}

struct Whole {
    contents: Contents,
    is_made: bool,
    images_at: u64,
}

fn parse(path: &Path) -> io::Result<Option<Whole>> {
    let mut file = File::open(path)?;
    let mut header = [0; HEADER];
    match file.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let Some((mark, length, sha256)) = fields(&header) else { return Ok(None) };
    let mut text = Vec::new();
    (&mut file).take(length).read_to_end(&mut text)?;
    if super::apply::sha256(&text) != sha256 {
        return Ok(None);
    }
    let contents: Contents = serde_json::from_slice(&text)?;
    if contents.manifest.version != VERSION {
        let other = contents.manifest.version;
        return Err(io::Error::other(format!("it has the form {other}, which this haft does not know")));
    }
    let images_at = (HEADER + text.len()) as u64;
    let all = contents.images.iter().fold(images_at, |sum, (_, length)| sum.saturating_add(*length));
    Ok((file.metadata()?.len() >= all).then_some(Whole { contents, is_made: mark == MADE, images_at }))
}

fn fields(header: &[u8; HEADER]) -> Option<(u8, u64, &str)> {
    let (mark, rest) = header.strip_prefix(MAGIC)?.split_first()?;
    let mut words = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    let length: u64 = words.next()?.parse().ok()?;
    (length <= MOST_BYTES).then_some((*mark, length, words.next()?))
}

/// Locks a file; `None` where its process lives, or somebody took the file away meanwhile.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => Ok(record::is_still_there(&file, path).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn make_spares(folder: &Path) -> io::Result<()> {
    for _ in 0..SPARES {
        let name = format!("{}-{:020}", std::process::id(), record::next_number());
        record::private().create_new(true).open(folder.join(name))?;
    }
    record::sync_folder(folder)
}

/// Which boot of the machine this is.
fn boot_id() -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        use std::sync::OnceLock;
        static BOOT: OnceLock<Option<String>> = OnceLock::new();
        let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        BOOT.get_or_init(|| read().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())).clone()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

//! Files that are counted: what is read, written and done, against the limits of a call.
//!
//! [`metered`] puts the counting around any [`Workspace`], so that it is the same in haft's own process and in a worker.

use crate::{
    Cancel,
    files::{
        Access, Change, ChangeSet, Changed, FolderView, Listed, Metadata, OpenFile, Place, Reader, Scope,
        Step, Visit, Visitor, Walk, Workspace,
    },
};
use haft_core::{ErrorCode, ExecutionId, Footprint, Limits, ToolError};
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a call that is too fast waits before it looks again whether it was ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Counts what a call does with files, and says when that is too much.
///
/// ```
/// use haft_core::Limits;
/// use haft_sdk::{Cancel, files::Meter};
/// let meter = Meter::new(Limits { written_bytes: Some(10), ..Limits::default() }, Cancel::new().into());
/// assert!(meter.write(10).is_ok() && meter.exceeded().is_none());
/// assert!(meter.write(1).unwrap_err().message.contains("`writtenBytes`"));
/// assert!(meter.exceeded().is_some());
/// ```
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    cancel: Arc<Cancel>,
    started: Instant,
    read: AtomicU64,
    written: AtomicU64,
    operations: AtomicU64,
    /// The first limit that was met: its name, and what it allows.
    over: OnceLock<(&'static str, u64)>,
}

impl Meter {
    /// One that begins now. The switch ends a call that waits because it was too fast.
    pub fn new(limits: Limits, cancel: Arc<Cancel>) -> Self {
        let count = || AtomicU64::new(0);
        let over = OnceLock::new();
        Meter {
            limits,
            cancel,
            started: Instant::now(),
            read: count(),
            written: count(),
            operations: count(),
            over,
        }
    }

    /// What it counts against.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The error of the call, where a limit was met: also where its tool made something else of that.
    pub fn exceeded(&self) -> Option<ToolError> {
        self.over.get().map(|(limit, allowed)| over(limit, *allowed))
    }

    /// One more operation.
    pub fn operation(&self) -> Result<(), ToolError> {
        self.spend("ioOperations", &self.operations, self.limits.io_operations, 1)
    }

    /// So many bytes are about to be written.
    pub fn write(&self, bytes: u64) -> Result<(), ToolError> {
        self.spend("writtenBytes", &self.written, self.limits.written_bytes, bytes)
    }

    /// A file of that size is about to be written.
    fn file(&self, bytes: u64) -> Result<(), ToolError> {
        match self.limits.file_bytes {
            Some(most) if bytes > most => Err(self.is_over("fileBytes", most)),
            _ => self.write(bytes),
        }
    }

    fn spend(
        &self,
        name: &'static str,
        used: &AtomicU64,
        most: Option<u64>,
        amount: u64,
    ) -> Result<(), ToolError> {
        let most = most.unwrap_or(u64::MAX);
        let add = |used: u64| used.checked_add(amount).filter(|used| *used <= most);
        match used.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.is_over(name, most)),
        }
    }

    fn is_over(&self, name: &'static str, most: u64) -> ToolError {
        let (limit, allowed) = self.over.get_or_init(|| (name, most));
        over(limit, *allowed)
    }

    /// Reads, never more than one byte beyond what may be read: that one tells that there is more.
    fn read(&self, mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.exceeded() {
            return Err(io::Error::other(error));
        }
        let (most, wanted) = (self.limits.read_bytes.unwrap_or(u64::MAX), buffer.len() as u64);
        let mut taken = 0;
        let take = |used: u64| {
            taken = wanted.min(most.saturating_sub(used));
            used.checked_add(taken)
        };
        // It never refuses: what is over the limit takes nothing.
        let _ = self.read.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        let room = usize::try_from(taken).unwrap_or(usize::MAX).max(1).min(buffer.len());
        let read = file.read(&mut buffer[..room]);
        let found = read.as_ref().map_or(0, |read| *read as u64);
        self.read.fetch_sub(taken.saturating_sub(found), Ordering::AcqRel);
        if found > taken {
            return Err(io::Error::other(self.is_over("readBytes", most)));
        }
        self.slow_down()?;
        read
    }

    /// Waits until what was read and written so far is not too much for the time since the start.
    fn slow_down(&self) -> io::Result<()> {
        let Some(rate) = self.limits.io_bytes_per_second.filter(|rate| *rate > 0) else { return Ok(()) };
        let bytes = self.read.load(Ordering::Acquire).saturating_add(self.written.load(Ordering::Acquire));
        let due = Duration::from_millis(bytes.saturating_mul(1000) / rate);
        loop {
            if self.cancel.reason().is_some() {
                return Err(io::Error::other(ToolError::cancelled()));
            }
            match due.checked_sub(self.started.elapsed()) {
                None | Some(Duration::ZERO) => return Ok(()),
                Some(early) => std::thread::sleep(early.min(PAUSE)),
            }
        }
    }
}

fn over(limit: &str, allowed: u64) -> ToolError {
    let text = format!("the call was ended by its limit `{limit}`: it may use {allowed}");
    ToolError::new(ErrorCode::ResourceLimitExceeded, text)
        .with_data(json!({"limit": limit, "allowed": allowed}))
}

/// A file that is read, and counted where that was asked for.
#[derive(Debug)]
pub struct FileReader {
    file: File,
    meter: Option<Arc<Meter>>,
}

impl From<File> for FileReader {
    fn from(file: File) -> Self {
        FileReader { file, meter: None }
    }
}

impl Read for &FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.meter {
            None => (&self.file).read(buffer),
            Some(meter) => meter.read(&self.file, buffer),
        }
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match &self.meter {
            // It asks the file how much there is.
            None => self.file.read_to_end(bytes),
            Some(_) => io::Read::read_to_end(&mut &*self, bytes),
        }
    }
}

/// The same files, counted.
pub fn metered(files: Arc<dyn Workspace>, meter: Arc<Meter>) -> Arc<dyn Workspace> {
    Arc::new(Metered { files, meter })
}

struct Metered {
    files: Arc<dyn Workspace>,
    meter: Arc<Meter>,
}

impl Metered {
    fn counted(&self, file: FileReader) -> FileReader {
        FileReader { file: file.file, meter: Some(Arc::clone(&self.meter)) }
    }

    /// Counts a change before it is made.
    fn count(&self, change: &Change) -> Result<(), ToolError> {
        self.meter.operation()?;
        match change {
            Change::Write { bytes, .. } => self.meter.file(bytes.len() as u64),
            Change::Copy { from, .. } => match self.files.look(from)? {
                Some((_, found)) => {
                    self.meter.spend(
                        "readBytes",
                        &self.meter.read,
                        self.meter.limits.read_bytes,
                        found.len,
                    )?;
                    self.meter.file(found.len)
                }
                // Whoever makes it says so.
                None => Ok(()),
            },
            Change::Delete { .. } | Change::Move { .. } => Ok(()),
        }
    }
}

impl Workspace for Metered {
    fn for_worker(&self) -> Result<Value, ToolError> {
        self.files.for_worker()
    }

    fn locate(&self, path: &str, access: Access) -> Result<Place, ToolError> {
        self.files.locate(path, access)
    }

    fn look(&self, path: &str) -> Result<Option<(Place, Metadata)>, ToolError> {
        self.meter.operation()?;
        self.files.look(path)
    }

    fn working_folder(&self, path: &str) -> Result<Place, ToolError> {
        self.files.working_folder(path)
    }

    fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        self.meter.operation()?;
        let OpenFile { file, place, len } = self.files.open(path)?;
        Ok(OpenFile { file: self.counted(file), place, len })
    }

    fn folder(&self, path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError> {
        self.meter.operation()?;
        let (place, folder) = self.files.folder(path)?;
        Ok((place, Box::new(MeteredFolder { folder, meter: Arc::clone(&self.meter) })))
    }

    fn walk(&self, walk: &Walk<'_>, visitor: &Visitor<'_>) -> Result<Place, ToolError> {
        let place = self.files.walk(walk, &|visit| {
            if self.meter.operation().is_err() {
                return Step::Stop;
            }
            let open = || {
                self.meter.operation().map_err(io::Error::other)?;
                Ok(self.counted((visit.open)()?))
            };
            visitor(&Visit { below: visit.below, open: &open })
        })?;
        self.meter.exceeded().map_or(Ok(place), Err)
    }

    fn protects(&self, path: &str, scope: Scope) -> Result<Option<String>, ToolError> {
        self.files.protects(path, scope)
    }

    fn change(&self, set: ChangeSet) -> Result<Vec<Changed>, ToolError> {
        set.changes.iter().try_for_each(|change| self.count(change))?;
        self.meter.slow_down().map_err(|_| ToolError::cancelled())?;
        self.files.change(set)
    }

    fn changed_by(&self, of: ExecutionId, tenant: &str) -> Result<Option<Vec<String>>, ToolError> {
        self.files.changed_by(of, tenant)
    }

    fn undo(&self, of: ExecutionId, by: ExecutionId, reader: &Reader) -> Result<Vec<Changed>, ToolError> {
        if let Some(limit) = self.meter.limits.of_io().or(self.meter.limits.file_bytes.map(|_| "fileBytes")) {
            let text = format!(
                "`{limit}` does not hold for undoing: how much is written shows when it is done. Undo without the limit"
            );
            return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
        }
        self.files.undo(of, by, reader)
    }

    fn last_read(&self, reader: &Reader, place: &Place) -> Result<Option<String>, ToolError> {
        self.files.last_read(reader, place)
    }

    fn remember(&self, reader: &Reader, place: &Place, sha256: &str) -> Result<(), ToolError> {
        self.files.remember(reader, place, sha256)
    }

    fn held_to(&self, footprint: &Footprint) -> Arc<dyn Workspace> {
        metered(self.files.held_to(footprint), Arc::clone(&self.meter))
    }
}

struct MeteredFolder {
    folder: Box<dyn FolderView>,
    meter: Arc<Meter>,
}

impl FolderView for MeteredFolder {
    fn entries(&self) -> io::Result<Vec<Listed>> {
        self.meter.operation().map_err(io::Error::other)?;
        self.folder.entries()
    }

    fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.meter.operation().map_err(io::Error::other)?;
        self.folder.metadata(name)
    }

    fn folder(&self, name: &OsStr) -> io::Result<Box<dyn FolderView>> {
        self.meter.operation().map_err(io::Error::other)?;
        let folder = self.folder.folder(name)?;
        Ok(Box::new(MeteredFolder { folder, meter: Arc::clone(&self.meter) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(limits: Limits) -> Arc<Meter> {
        Arc::new(Meter::new(limits, Arc::new(Cancel::new())))
    }

    /// A file with that many bytes, under that meter.
    fn file(bytes: usize, meter: &Arc<Meter>) -> FileReader {
        use std::io::{Seek as _, Write as _};
        let path = std::env::temp_dir().join(format!("haft-metered-{}-{bytes}", std::process::id()));
        let options = || File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let mut file = options().unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&vec![b'x'; bytes]).unwrap();
        file.rewind().unwrap();
        FileReader { file, meter: Some(Arc::clone(meter)) }
    }

    #[test]
    fn as_many_bytes_are_read_as_may_be_and_one_more_is_an_error() {
        for (most, bytes, fits) in [(100, 100, true), (100, 101, false), (0, 0, true), (0, 1, false)] {
            let meter = meter(Limits { read_bytes: Some(most), ..Limits::default() });
            let mut all = Vec::new();
            let read = file(bytes, &meter).read_to_end(&mut all);
            assert_eq!(read.is_ok(), fits, "{bytes} of {most}: {read:?}");
            assert_eq!(all.len() as u64, most.min(bytes as u64), "{bytes} of {most}");
            assert_eq!(meter.exceeded().is_some(), !fits);
            let again = file(3, &meter).read_to_end(&mut Vec::new());
            assert!(again.is_err(), "nothing is left for another file");
        }
    }

    #[test]
    fn several_threads_share_what_may_be_read() {
        let meter = meter(Limits { read_bytes: Some(10_000), ..Limits::default() });
        let read: u64 = std::thread::scope(|scope| {
            let threads = [1000_usize, 4000, 9000, 16_000].map(|bytes| {
                let mut file = file(bytes, &meter);
                scope.spawn(move || {
                    let (mut piece, mut all) = ([0; 64], 0);
                    while let Ok(read @ 1..) = file.read(&mut piece) {
                        all += read as u64;
                    }
                    all
                })
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(read <= 10_000 && meter.exceeded().is_some(), "{read}");
    }

    #[test]
    fn a_rate_slows_down_and_its_call_can_be_ended() {
        let limits = Limits { io_bytes_per_second: Some(100_000), ..Limits::default() };
        let began = Instant::now();
        file(20_000, &meter(limits.clone())).read_to_end(&mut Vec::new()).unwrap();
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(190) && took < Duration::from_secs(5), "{took:?}");
        let cancel = Arc::new(Cancel::new());
        cancel.cancel(crate::CancelReason::User, None);
        let slow = Arc::new(Meter::new(Limits { io_bytes_per_second: Some(1), ..limits }, cancel));
        assert!(file(20_000, &slow).read_to_end(&mut Vec::new()).is_err());
    }
}

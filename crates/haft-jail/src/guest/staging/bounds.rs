//! How much a guest writes to its layers. No kernel bounds a folder, so haft counts what is in it: as often as it takes
//! for the fastest writer not to get far, never longer than a tenth of the time, and once more when the guest has
//! ended.

use haft_core::port::{Exceeded, StageSpec};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, statvfs};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// What no guest writes in a second.
const FASTEST: Counted = Counted { bytes: 8 << 30, files: 1_000_000 };
/// How often haft counts, at most and at least.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Counting takes at most this part of the time.
const PART: u32 = 10;
/// So many files are counted at once.
const LITTLE: u64 = 200;
/// Folders deeper than this are not looked into: each takes a descriptor.
const MOST_DEPTH: usize = 512;

/// What is in layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    bytes: u64,
    files: u64,
}

/// What a guest may write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    uppers: Vec<PathBuf>,
    most_bytes: Option<u64>,
    most_files: Option<u64>,
    /// What the limit of bytes is called.
    of_bytes: &'static str,
    /// Bytes that were free before.
    free: u64,
}

impl Bounds {
    pub(super) fn of(spec: &StageSpec, uppers: Vec<PathBuf>) -> Self {
        let free = uppers.first().map_or(0, |upper| free(upper));
        let of_bytes = "stagedBytes";
        Bounds { uppers, most_bytes: spec.most_bytes, most_files: spec.most_files, of_bytes, free }
    }

    /// Of a build cache, which is counted like a layer.
    pub(crate) fn of_cache(files: PathBuf, most_bytes: u64) -> Self {
        let free = free(&files);
        let of_bytes = "cacheBytes";
        Bounds { uppers: vec![files], most_bytes: Some(most_bytes), most_files: None, of_bytes, free }
    }

    /// Whether there is anything to count.
    pub(crate) fn is_watched(&self) -> bool {
        !self.uppers.is_empty() && (self.most_bytes.is_some() || self.most_files.is_some())
    }

    /// When there could be too much at the earliest, where there is nothing yet.
    pub(crate) fn first_look(&self) -> Duration {
        let bytes = self.most_bytes.map_or(LOOKS.1, |most| after(most, FASTEST.bytes));
        let files = self.most_files.map_or(LOOKS.1, |most| after(most, FASTEST.files));
        bytes.min(files).clamp(LOOKS.0, LOOKS.1)
    }

    /// The limit that was passed, and when to look again where none was.
    pub(crate) fn look(&self) -> Result<Duration, Exceeded> {
        self.look_at(u64::MAX).unwrap_or(Ok(LOOKS.0))
    }

    /// The same, where there is so little that it takes no time; else nothing.
    pub(crate) fn look_at_little(&self) -> Option<Result<Duration, Exceeded>> {
        self.look_at(LITTLE)
    }

    fn look_at(&self, most: u64) -> Option<Result<Duration, Exceeded>> {
        let begun = Instant::now();
        let mut count = Counter { counted: Counted::default(), is_whole: true, bounds: self };
        for upper in &self.uppers {
            count.folder(upper, most);
            if count.counted.files > most {
                return None;
            }
        }
        let mut counted = count.counted;
        if !count.is_whole {
            // Something is shut, and a file in there may grow. What is not free any more may be others', too.
            counted.bytes = counted
                .bytes
                .max(self.free.saturating_sub(self.uppers.first().map_or(0, |upper| free(upper))));
        }
        let bytes = left(self.of_bytes, self.most_bytes, counted.bytes, FASTEST.bytes);
        let files = left("stagedFiles", self.most_files, counted.files, FASTEST.files);
        let soon =
            |bytes: Duration, files| bytes.min(files).clamp(LOOKS.0, LOOKS.1).max(begun.elapsed() * PART);
        Some(bytes.and_then(|bytes| files.map(|files| soon(bytes, files))))
    }

    fn is_passed(&self, counted: Counted) -> bool {
        self.most_bytes.is_some_and(|most| counted.bytes > most)
            || self.most_files.is_some_and(|most| counted.files > most)
    }
}

fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// How long it may go on unwatched; or the limit that it passed.
fn left(limit: &'static str, most: Option<u64>, used: u64, fastest: u64) -> Result<Duration, Exceeded> {
    let Some(allowed) = most else { return Ok(LOOKS.1) };
    match allowed.checked_sub(used) {
        None => Err(Exceeded { limit, allowed, used: Some(used) }),
        Some(left) => Ok(after(left, fastest)),
    }
}

/// How long the fastest writer takes for so much.
fn after(left: u64, fastest: u64) -> Duration {
    Duration::from_secs_f64(left as f64 / fastest as f64)
}

struct Counter<'a> {
    counted: Counted,
    is_whole: bool,
    bounds: &'a Bounds,
}

impl Counter<'_> {
    /// Counts what is in an upper layer, until it is too much or there are more files than that. Follows no link.
    fn folder(&mut self, upper: &Path, most: u64) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(root) = openat(CWD, upper, flags, Mode::empty()) else {
            self.is_whole = false;
            return;
        };
        let mut open = vec![Dir::new(root)];
        while let Some(folder) = open.last_mut() {
            let Ok(folder) = folder else {
                self.is_whole = false;
                open.pop();
                continue;
            };
            let Some(entry) = folder.read() else {
                open.pop();
                continue;
            };
            let Ok(entry) = entry else {
                self.is_whole = false;
                open.pop();
                continue;
            };
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let Ok(here) = folder.fd() else { continue };
            self.counted.files += 1;
            // One that is gone meanwhile takes nothing.
            let Ok(stat) = statat(here, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            self.counted.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            if self.bounds.is_passed(self.counted) || self.counted.files > most {
                return;
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                match openat(here, name, flags, Mode::empty()) {
                    Ok(inner) if open.len() < MOST_DEPTH => open.push(Dir::new(inner)),
                    _ => self.is_whole = false,
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_in_layers_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c"), vec![1; 100_000]).unwrap();
        let look = |most_bytes, most_files| {
            let spec = StageSpec { layers: PathBuf::new(), most_bytes, most_files };
            Bounds::of(&spec, vec![folder.path().to_owned()]).look().err().map(|over| over.limit)
        };
        assert_eq!(look(None, Some(3)), None);
        assert_eq!(look(None, Some(2)), Some("stagedFiles"));
        assert_eq!(look(Some(1 << 20), None), None);
        assert_eq!(look(Some(90_000), Some(3)), Some("stagedBytes"));
    }

    #[test]
    fn the_less_is_left_the_sooner_it_is_counted_again() {
        let wait = |used| left("stagedBytes", Some(4 << 30), used, FASTEST.bytes);
        assert_eq!(wait(0).unwrap(), Duration::from_millis(500));
        assert!(wait(4 << 30).unwrap().is_zero());
        assert_eq!(wait((4 << 30) + 1).unwrap_err().used, Some((4 << 30) + 1));
    }
}

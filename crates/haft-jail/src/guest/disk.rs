//! The room that a guest leaves on the file systems of what it may write.
//!
//! No kernel limits what a program adds to a folder of somebody else's. So haft looks how much is free, as often as it
//! takes for the fastest writer not to get past it in between, and ends the guest before the machine runs out. What
//! would take room at once, without writing (`fallocate`), the filter leaves to be written.

use haft_core::port::Exceeded;
use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, fstat, fstatvfs, open},
};
use std::{collections::BTreeMap, path::Path, time::Duration};

/// What a guest leaves free, unless there is less than twice as much when it starts: then it leaves half.
const LEAVES: Free = Free { bytes: 1 << 30, files: 100_000 };
/// What no guest takes in a second.
const FASTEST: Free = Free { bytes: 8 << 30, files: 1_000_000 };
/// How often haft looks, at most and at least.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// What is free on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Free {
    bytes: u64,
    /// `u64::MAX` where files are not counted.
    files: u64,
}

/// The file systems that a guest can fill.
pub(super) struct Room(Vec<Place>);

struct Place {
    folder: OwnedFd,
    before: Free,
}

impl Room {
    /// Of where it writes. A place that cannot be looked at is not watched: its guest will not start.
    pub(super) fn of<'a>(written: impl Iterator<Item = &'a Path>) -> Self {
        let mut places = BTreeMap::new();
        for path in written {
            let Ok(folder) = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
                continue;
            };
            let (Ok(stat), Some(before)) = (fstat(&folder), free(&folder)) else { continue };
            places.entry(stat.st_dev).or_insert(Place { folder, before });
        }
        Room(places.into_values().collect())
    }

    /// The limit that was passed, and when to look again where none was.
    pub(super) fn look(&self) -> Result<Duration, Exceeded> {
        let mut next = LOOKS.1;
        for place in &self.0 {
            let Some(now) = free(&place.folder) else { continue };
            next = next.min(decide(place.before, now)?);
        }
        Ok(next)
    }

    /// Whether there is anything to look at.
    pub(super) fn is_watched(&self) -> bool {
        !self.0.is_empty()
    }
}

fn free(folder: &OwnedFd) -> Option<Free> {
    let found = fstatvfs(folder).ok()?;
    // Some file systems make files as they need them, and say that there are none.
    let files = if found.f_files == 0 { u64::MAX } else { found.f_favail };
    Some(Free { bytes: found.f_bavail.saturating_mul(found.f_frsize), files })
}

/// How long it may go on unwatched; or the limit that it passed.
fn decide(before: Free, now: Free) -> Result<Duration, Exceeded> {
    let bytes = left("diskBytes", [before.bytes, now.bytes, LEAVES.bytes, FASTEST.bytes])?;
    let files = left("diskFiles", [before.files, now.files, LEAVES.files, FASTEST.files])?;
    Ok(bytes.min(files).clamp(LOOKS.0, LOOKS.1))
}

fn left(limit: &'static str, [before, now, leaves, fastest]: [u64; 4]) -> Result<Duration, Exceeded> {
    let floor = leaves.min(before / 2);
    match now.checked_sub(floor) {
        None | Some(0) if before > 0 => {
            Err(Exceeded { limit, allowed: before - floor, used: Some(before.saturating_sub(now)) })
        }
        above => Ok(Duration::from_secs_f64(above.unwrap_or(0) as f64 / fastest as f64)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_guest_leaves_room() {
        let free = |bytes, files| Free { bytes, files };
        let much = free(100 * GIB, u64::MAX);
        for (before, now, expected) in [
            (much, free(100 * GIB, u64::MAX), None),
            (much, free(GIB + 1, u64::MAX), None),
            (much, free(GIB, u64::MAX), Some(("diskBytes", 99 * GIB, 99 * GIB))),
            // Where there is little, it leaves half.
            (free(GIB, 10), free(GIB / 2 + 1, 6), None),
            (free(GIB, 10), free(GIB / 2, 6), Some(("diskBytes", GIB / 2, GIB / 2))),
            (free(GIB, 10), free(GIB, 5), Some(("diskFiles", 5, 5))),
            (free(GIB, 1_000_000), free(GIB, 99_999), Some(("diskFiles", 900_000, 900_001))),
            // A disk that was full before is not its doing.
            (free(0, u64::MAX), free(0, u64::MAX), None),
        ] {
            let passed = decide(before, now).err().map(|over| (over.limit, over.allowed, over.used.unwrap()));
            assert_eq!(passed, expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn the_less_is_left_the_sooner_it_is_looked_at_again() {
        let at = |bytes| {
            decide(Free { bytes: 100 * GIB, files: u64::MAX }, Free { bytes, files: u64::MAX }).unwrap()
        };
        assert_eq!((at(100 * GIB), at(GIB + 1)), (LOOKS.1, LOOKS.0));
        assert_eq!(at(5 * GIB), Duration::from_millis(500));
    }
}

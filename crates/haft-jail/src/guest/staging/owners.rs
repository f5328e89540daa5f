//! Files of other owners, which an ordinary user's layer cannot hold: the kernel refuses to write them (`EOVERFLOW`).

use super::layers::marks;
use haft_core::port::LayerMarks;
use rustix::{
    fd::BorrowedFd,
    fs::{AtFlags, FileType, Stat, statat},
};
use std::ffi::OsStr;

/// A guest whose layers hold files of one owner only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    user: u32,
    group: u32,
}

/// Who writes; nothing where every owner will do.
pub(crate) fn writer() -> Option<Writer> {
    let user =
        || Writer { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() };
    (marks() == LayerMarks::User).then(user)
}

impl Writer {
    /// Whether a guest would write to something of that name in a folder, and its layer could not hold it.
    pub(crate) fn cannot_hold(self, folder: BorrowedFd<'_>, name: &OsStr) -> bool {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| self.is_in_the_way(&stat))
    }

    /// Whether it is another's.
    pub(crate) fn is_foreign(self, stat: &Stat) -> bool {
        (stat.st_uid, stat.st_gid) != (self.user, self.group)
    }

    /// Another's that a guest may write by its mode. One that it may only read is not in the way.
    fn is_in_the_way(self, stat: &Stat) -> bool {
        let bits = match (stat.st_uid == self.user, stat.st_gid == self.group) {
            (true, _) => 0o200,
            (false, true) => 0o020,
            (false, false) => 0o002,
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_written = matches!(kind, FileType::RegularFile | FileType::Directory);
        is_written && self.is_foreign(stat) && stat.st_mode & bits != 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_be_written_is_in_the_way() {
        let writer = Writer { user: 7, group: 8 };
        let mut stat = rustix::fs::stat("/").unwrap();
        let (file, folder, link) = (0o100_000, 0o040_000, 0o120_000);
        for (user, group, mode, expected) in [
            (7, 8, file | 0o644, false),
            (7, 9, file | 0o644, true),
            (7, 9, file | 0o444, false),
            (0, 0, file | 0o644, false),
            (0, 0, file | 0o666, true),
            (0, 8, file | 0o664, true),
            (0, 9, file | 0o664, false),
            (0, 0, folder | 0o1777, true),
            (0, 0, folder | 0o755, false),
            (0, 0, link | 0o777, false),
        ] {
            (stat.st_uid, stat.st_gid, stat.st_mode) = (user, group, mode);
            assert_eq!(writer.is_in_the_way(&stat), expected, "{user}:{group} {mode:o}");
        }
    }
}

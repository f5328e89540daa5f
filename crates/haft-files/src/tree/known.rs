//! What is known about an entry of a folder.

use crate::folder::{Folder, Opener};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

/// The kind of an entry, as far as it matters for whole trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    File,
    Folder,
    Link,
    /// A device with the number 0:0, which is how an overlay marks what is gone.
    Nothing,
    /// A device, a pipe or a socket.
    Special(&'static str),
}

/// An entry of a folder; links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) what: What,
    /// Permission bits.
    pub(crate) mode: u32,
    /// User and group.
    pub(crate) owner: (u32, u32),
    pub(crate) len: u64,
    /// Seconds and nanoseconds.
    pub(crate) modified: (i64, u32),
    /// When anything of it changed last.
    pub(crate) changed: (i64, u32),
    pub(crate) number: u64,
    pub(crate) device: u64,
    /// How many names it has.
    pub(crate) names: u64,
}

impl Known {
    pub(crate) fn is_folder(&self) -> bool {
        self.what == What::Folder
    }

    /// Whether another has the same kind, permissions and owner.
    pub(crate) fn is_like(&self, other: &Known) -> bool {
        (self.what, self.mode, self.owner) == (other.what, other.mode, other.owner)
    }
}

impl Folder {
    /// What has that name in this folder; `None` where nothing has.
    pub(crate) fn known(&self, name: &OsStr) -> io::Result<Option<Known>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(known(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// This folder.
    pub(crate) fn known_itself(&self) -> io::Result<Known> {
        known_file(&self.0)
    }

    /// The names in this folder, in their order.
    pub(crate) fn sorted(&self) -> io::Result<Vec<std::ffi::OsString>> {
        let mut names = Vec::new();
        self.names(|name, _| names.push(name.to_owned()))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Whether something can be renamed from here to there: on the same file system, and in the same mount of it.
    pub(crate) fn shares_mount(&self, other: &Folder) -> io::Result<bool> {
        Ok(mount(self)? == mount(other)?)
    }

    /// Writes all of its file system to disk.
    pub(crate) fn sync_all_files(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.0)?)
    }
}

/// What an open file is.
pub(crate) fn known_file(file: impl AsFd) -> io::Result<Known> {
    Ok(known(&rustix::fs::fstat(file)?))
}

/// A folder that was entered. One whose permissions keep its owner out has others for as long as this lives.
pub(crate) struct Entered {
    folder: Folder,
    restored: Option<u32>,
}

impl std::ops::Deref for Entered {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(mode) = self.restored {
            // It may be gone by now.
            let _ = rustix::fs::fchmod(&self.folder.0, Mode::from_raw_mode(mode));
        }
    }
}

/// Opens a folder of haft's own, such as one of a layer, to look into it and to take from it.
pub(crate) fn enter(folder: &Folder, name: &OsStr) -> io::Result<Entered> {
    use rustix::fs::Access;
    let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(&folder.0, name, wanted, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => {
            let handle = handle(folder, name)?;
            let known = known_file(&handle)?;
            if !known.is_folder() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            chmod(&handle, known.mode | 0o700)?;
            let opened = folder.folder(Path::new(name), Opener::best());
            if opened.is_err() {
                chmod(&handle, known.mode)?;
            }
            Ok(Entered { folder: opened?, restored: Some(known.mode) })
        }
        _ => Ok(Entered { folder: folder.folder(Path::new(name), Opener::best())?, restored: None }),
    }
}

/// A handle of an entry that needs no permission for it, and does not follow a link.
fn handle(folder: &Folder, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&folder.0, name, flags, Mode::empty())?)
}

fn chmod(handle: &OwnedFd, mode: u32) -> io::Result<()> {
    let path = super::xattrs::by_handle(handle, OsStr::new(""));
    Ok(rustix::fs::chmod(&path, Mode::from_raw_mode(mode))?)
}

/// Sets the permissions of an entry that is no link: of this very one, should it be swapped for a link meanwhile.
pub(super) fn set_mode(folder: &Folder, name: &OsStr, mode: u32) -> io::Result<()> {
    let handle = handle(folder, name)?;
    match known_file(&handle)?.what {
        What::Link => Err(io::Error::other("it is a link now")),
        _ => chmod(&handle, mode),
    }
}

fn mount(folder: &Folder) -> io::Result<(u64, u64)> {
    use rustix::fs::StatxFlags;
    let known = folder.known_itself()?;
    match rustix::fs::statx(&folder.0, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID) {
        Ok(stat) => Ok((known.device, stat.stx_mnt_id)),
        // Before Linux 5.8 nobody says which mount it is; a rename that fails is taken back.
        Err(Errno::NOSYS | Errno::INVAL) => Ok((known.device, 0)),
        Err(error) => Err(error.into()),
    }
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "the types differ between systems")]
fn known(stat: &Stat) -> Known {
    let nanos = |nanos: i64| u32::try_from(nanos).unwrap_or(0);
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => What::File,
        FileType::Directory => What::Folder,
        FileType::Symlink => What::Link,
        FileType::CharacterDevice if stat.st_rdev == 0 => What::Nothing,
        FileType::Fifo => What::Special("pipe"),
        FileType::Socket => What::Special("socket"),
        _ => What::Special("device"),
    };
    Known {
        what,
        mode: (stat.st_mode as u32) & 0o7777,
        owner: (stat.st_uid as u32, stat.st_gid as u32),
        len: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (stat.st_mtime as i64, nanos(stat.st_mtime_nsec as i64)),
        changed: (stat.st_ctime as i64, nanos(stat.st_ctime_nsec as i64)),
        number: stat.st_ino as u64,
        device: stat.st_dev as u64,
        names: stat.st_nlink as u64,
    }
}

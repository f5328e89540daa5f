//! An open folder, and what can be done in it without ever following a link. Unix.

use super::{entry::Entry, portable};
use haft_sdk::files::Kind;
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
    time::{Duration, SystemTime},
};

/// How a path below a folder is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    /// By one call to the kernel, which refuses links on the way (`openat2`, Linux 5.6).
    Kernel,
    /// Name by name, refusing links at each.
    StepByStep,
}

impl Opener {
    /// The best one here. Found out once.
    pub(crate) fn best() -> Self {
        use std::sync::OnceLock;
        static BEST: OnceLock<Opener> = OnceLock::new();
        *BEST.get_or_init(|| if kernel_can() { Opener::Kernel } else { Opener::StepByStep })
    }
}

#[cfg(target_os = "linux")]
fn kernel_can() -> bool {
    // Some containers answer a system call that they do not know with "not permitted".
    rustix::fs::openat2(rustix::fs::CWD, "/", FOLDER, Mode::empty(), beneath()).is_ok()
        || rustix::fs::openat2(rustix::fs::CWD, ".", FOLDER, Mode::empty(), beneath()).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn kernel_can() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn beneath() -> rustix::fs::ResolveFlags {
    use rustix::fs::ResolveFlags;
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

/// A folder, open. What is done in it is done in this very folder, wherever its path leads meanwhile.
#[derive(Debug)]
pub(crate) struct Folder(pub(super) OwnedFd);

pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A folder on the way to something else: it need not be readable.
#[cfg(target_os = "linux")]
pub(super) const WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const WAY: OFlags = FOLDER;
/// Without blocking: opening a pipe would otherwise wait for somebody to write into it.
pub(super) const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl Folder {
    /// Opens a folder by its path, following links: for roots, and haft's own folders.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Folder(rustix::fs::open(path, FOLDER, Mode::empty())?))
    }

    /// Opens a folder by its path, following links, from which one can only go on.
    pub(crate) fn open_way(path: &Path) -> io::Result<Self> {
        Ok(Folder(rustix::fs::open(path, WAY, Mode::empty())?))
    }

    /// Opens a folder below this one. A link on the way is an error (`ELOOP`).
    pub(crate) fn folder(&self, below: &Path, opener: Opener) -> io::Result<Folder> {
        self.open_below(below, FOLDER, opener).map(Folder)
    }

    /// Opens a file below this one, for reading. A link on the way is an error (`ELOOP`).
    pub(crate) fn file(&self, below: &Path, opener: Opener) -> io::Result<File> {
        self.open_below(below, FILE, opener).map(File::from)
    }

    /// What is below this one. A link on the way is an error, but not one at the end.
    pub(crate) fn entry_below(&self, below: &Path, opener: Opener) -> io::Result<Entry> {
        match (below.parent(), below.file_name()) {
            (Some(parent), Some(name)) if parent != Path::new("") => {
                Folder(self.open_below(parent, WAY, opener)?).entry(name)
            }
            (_, Some(name)) => self.entry(name),
            (_, None) => self.itself(),
        }
    }

    fn open_below(&self, below: &Path, flags: OFlags, opener: Opener) -> io::Result<OwnedFd> {
        let below = if below == Path::new("") { Path::new(".") } else { below };
        #[cfg(target_os = "linux")]
        if opener == Opener::Kernel {
            return Ok(open_by_kernel(self, below, flags)?);
        }
        let _ = opener;
        Ok(portable::open_step_by_step(self, below, flags)?)
    }

    /// What is in this folder under that name; links are not followed.
    pub(crate) fn entry(&self, name: &OsStr) -> io::Result<Entry> {
        Ok(entry_of(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// This folder.
    pub(crate) fn itself(&self) -> io::Result<Entry> {
        Ok(entry_of(&rustix::fs::fstat(&self.0)?))
    }

    /// The names in this folder with what each is, as far as the listing says: `None` has to be asked for.
    #[cfg(target_os = "linux")]
    pub(crate) fn names(&self, mut each: impl FnMut(&OsStr, Option<Kind>)) -> io::Result<()> {
        // Straight from the kernel's buffer: the usual way copies every name twice.
        const BUFFER: usize = 32 * 1024;
        rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Start(0))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut listing = rustix::fs::RawDir::new(&self.0, buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                each(OsStr::from_bytes(name), kind_listed(entry.file_type()));
            }
        }
        Ok(())
    }

    /// The names in this folder with what each is, as far as the listing says: `None` has to be asked for.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn names(&self, mut each: impl FnMut(&OsStr, Option<Kind>)) -> io::Result<()> {
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                each(OsStr::from_bytes(name), kind_listed(entry.file_type()));
            }
        }
        Ok(())
    }

    /// Makes a file that must not be there yet, for writing.
    pub(crate) fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode as _))?))
    }

    /// Opens a regular file of this folder for reading. What was one a moment ago may be a device by now, which need
    /// not have an end: so the open file itself is looked at.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
        let file = File::from(rustix::fs::openat(&self.0, name, FILE | OFlags::NOFOLLOW, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    /// Gives an open file the owner and the permission bits of another. Only a privileged process can give files
    /// away; where it may not, the file is the user's own, as any that the user writes. A file that changed hands
    /// never lets others run as its new owner or group.
    pub(crate) fn set_owner_and_mode(file: &File, owner: Option<(u32, u32)>, mode: u32) -> io::Result<()> {
        let is_kept = owner.is_some_and(|(user, group)| {
            let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
            let _ = rustix::fs::fchown(file, Some(user), Some(group));
            entry_of_file(file).is_ok_and(|entry| Some(entry.owner) == owner)
        });
        let kept_bits = if is_kept { 0o7777 } else { 0o1777 };
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode((mode & kept_bits) as _))?)
    }

    /// Gives a folder that was just made its permission bits.
    pub(crate) fn set_folder_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let folder = self.folder(Path::new(name), Opener::best())?;
        Ok(rustix::fs::fchmod(&folder.0, Mode::from_raw_mode((mode & 0o7777) as _))?)
    }

    /// Makes a folder.
    pub(crate) fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(mode as _))?)
    }

    /// Makes a link.
    pub(crate) fn create_link(&self, name: &OsStr, target: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Where a link leads.
    pub(crate) fn link_target(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsStr::from_bytes(target.to_bytes()).to_owned())
    }

    /// Gives something another name, also in another folder; what is there under that name is replaced.
    pub(crate) fn rename(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Gives something another name, unless something is there under it.
    pub(crate) fn rename_new(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        match rustix::fs::renameat_with(&self.0, name, &to.0, new, RenameFlags::NOREPLACE) {
            // Not every file system can; a link can be made only where nothing is.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(&self.0, name, &to.0, new, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
            }
            done => Ok(done?),
        }
    }

    /// Removes a file or a link.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes sure that names which changed in this folder survive a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

/// What an open file is.
pub(crate) fn entry_of_file(file: impl AsFd) -> io::Result<Entry> {
    Ok(entry_of(&rustix::fs::fstat(file)?))
}

/// Whether a file is on a file system that shows processes or the kernel itself, wherever that is mounted. Where it
/// cannot be found out, it is.
#[cfg(target_os = "linux")]
pub(crate) fn is_system_file(file: &File) -> bool {
    /// procfs, sysfs, debugfs, tracefs, securityfs, configfs, cgroup, cgroup2, bpf.
    const SYSTEM: [u32; 9] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x6265_6570,
        0x0027_e0eb,
        0x6367_7270,
        0xcafe_4a11,
    ];
    rustix::fs::fstatfs(file).map_or(true, |known| SYSTEM.contains(&(known.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_system_file(_file: &File) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn open_by_kernel(folder: &Folder, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    // The kernel asks to try again when it could not be sure, because something was moved meanwhile.
    const TRIES: usize = 16;
    for _ in 1..TRIES {
        match rustix::fs::openat2(&folder.0, below, flags, Mode::empty(), beneath()) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    rustix::fs::openat2(&folder.0, below, flags, Mode::empty(), beneath())
}

fn kind_listed(kind: FileType) -> Option<Kind> {
    match kind {
        FileType::Unknown => None,
        known => Some(kind_of(known)),
    }
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    }
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "the types differ between systems")]
fn entry_of(stat: &Stat) -> Entry {
    let since_1970 = u64::try_from(stat.st_mtime as i64).ok();
    let modified = since_1970.and_then(|seconds| {
        let nanos = u32::try_from(stat.st_mtime_nsec as i64).unwrap_or(0);
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
    });
    Entry {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        len: u64::try_from(stat.st_size).unwrap_or(0),
        modified,
        mode: (stat.st_mode as u32) & 0o7777,
        owner: (stat.st_uid as u32, stat.st_gid as u32),
        id: (stat.st_dev as u64, stat.st_ino as u64),
    }
}

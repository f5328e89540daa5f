//! Staying inside without the kernel's help: for systems that cannot open a path and refuse links in one step.
//!
//! On Unix each name is opened from the folder before it, and links are refused at each: nothing that is swapped
//! meanwhile can lead out. Elsewhere paths are used, resolved before and compared after (`FR-VAL-06`): a file that
//! was opened must be the one that the resolved path names.

#[cfg(unix)]
pub(super) use unix::open_step_by_step;

#[cfg(unix)]
mod unix {
    use super::super::folder_unix::{Folder, WAY};
    use rustix::{
        fs::{AtFlags, FileType, Mode, OFlags},
        io::Errno,
    };
    use std::{
        ffi::OsStr,
        os::fd::{AsFd, OwnedFd},
        path::{Component, Path},
    };

    /// Opens a path below a folder, name by name.
    pub(crate) fn open_step_by_step(folder: &Folder, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = Vec::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
            }
        }
        let Some((last, way)) = names.split_last() else {
            return rustix::fs::openat(&folder.0, ".", flags, Mode::empty());
        };
        let mut at: Option<OwnedFd> = None;
        for name in way {
            let from = at.as_ref().map_or(folder.0.as_fd(), |fd| fd.as_fd());
            at = Some(open_name(from, name, WAY | OFlags::NOFOLLOW)?);
        }
        let from = at.as_ref().map_or(folder.0.as_fd(), |fd| fd.as_fd());
        open_name(from, last, flags | OFlags::NOFOLLOW)
    }

    fn open_name(from: impl AsFd + Copy, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        match rustix::fs::openat(from, name, flags, Mode::empty()) {
            // What a system says of a link that it was told not to follow differs.
            Err(error @ (Errno::NOTDIR | Errno::MLINK)) => {
                let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
                Err(if is_link { Errno::LOOP } else { error })
            }
            done => done,
        }
    }
}

#[cfg(not(unix))]
pub(crate) use paths::*;

#[cfg(not(unix))]
mod paths {
    use super::super::entry::Entry;
    use haft_sdk::files::Kind;
    use std::{
        ffi::{OsStr, OsString},
        fs::{self, File},
        io,
        path::{Path, PathBuf},
    };

    /// How a path below a folder is opened.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Opener {
        /// By its path, which is compared afterwards.
        ByPath,
    }

    impl Opener {
        pub(crate) fn best() -> Self {
            Opener::ByPath
        }
    }

    /// A folder by its resolved path, held open so that it can be compared.
    #[derive(Debug)]
    pub(crate) struct Folder {
        path: PathBuf,
        handle: same_file::Handle,
    }

    fn is_link() -> io::Error {
        io::Error::other("a link is on the way")
    }

    /// Whether an error says that a link is on the way.
    pub(crate) fn says_link(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::Other && error.to_string() == "a link is on the way"
    }

    impl Folder {
        pub(crate) fn open_way(path: &Path) -> io::Result<Self> {
            Folder::open(path)
        }

        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            let path = path.canonicalize()?;
            let handle = same_file::Handle::from_path(&path)?;
            match handle.as_file().metadata()?.is_dir() {
                true => Ok(Folder { path, handle }),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        }

        pub(crate) fn folder(&self, below: &Path, _opener: Opener) -> io::Result<Folder> {
            let folder = Folder::open(&self.literal(below)?)?;
            self.verify(below, &folder.handle)?;
            Ok(folder)
        }

        pub(crate) fn file(&self, below: &Path, _opener: Opener) -> io::Result<File> {
            let file = File::open(self.literal(below)?)?;
            self.verify(below, &same_file::Handle::from_file(file.try_clone()?)?)?;
            Ok(file)
        }

        pub(crate) fn entry_below(&self, below: &Path, _opener: Opener) -> io::Result<Entry> {
            self.still_here()?;
            entry_at(&self.path.join(below))
        }

        /// The path below this folder, which must resolve to itself: no link is on the way.
        fn literal(&self, below: &Path) -> io::Result<PathBuf> {
            self.still_here()?;
            let path = self.path.join(below);
            match path.canonicalize()? == path {
                true => Ok(path),
                false => Err(is_link()),
            }
        }

        /// What was opened is what the path names, after it was opened.
        fn verify(&self, below: &Path, opened: &same_file::Handle) -> io::Result<()> {
            let now = same_file::Handle::from_path(self.literal(below)?)?;
            if now == *opened { Ok(()) } else { Err(is_link()) }
        }

        fn still_here(&self) -> io::Result<()> {
            let now = same_file::Handle::from_path(&self.path)?;
            if now == self.handle { Ok(()) } else { Err(is_link()) }
        }

        pub(crate) fn entry(&self, name: &OsStr) -> io::Result<Entry> {
            self.entry_below(Path::new(name), Opener::ByPath)
        }

        pub(crate) fn itself(&self) -> io::Result<Entry> {
            entry_at(&self.path)
        }

        pub(crate) fn names(&self, mut each: impl FnMut(&OsStr, Option<Kind>)) -> io::Result<()> {
            self.still_here()?;
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                each(&entry.file_name(), entry.file_type().ok().map(kind_of));
            }
            self.still_here()
        }

        pub(crate) fn create(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
            self.still_here()?;
            File::options().write(true).create_new(true).open(self.path.join(name))
        }

        pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
            let file = self.file(Path::new(name), Opener::ByPath)?;
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
            }
        }

        pub(crate) fn set_owner_and_mode(
            _file: &File,
            _owner: Option<(u32, u32)>,
            _mode: u32,
        ) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn create_folder(&self, name: &OsStr, _mode: u32) -> io::Result<()> {
            self.still_here()?;
            fs::create_dir(self.path.join(name))
        }

        pub(crate) fn set_folder_mode(&self, _name: &OsStr, _mode: u32) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn create_link(&self, _name: &OsStr, _target: &OsStr) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn link_target(&self, name: &OsStr) -> io::Result<OsString> {
            self.still_here()?;
            Ok(fs::read_link(self.path.join(name))?.into_os_string())
        }

        pub(crate) fn rename(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
            self.still_here()?;
            to.still_here()?;
            fs::rename(self.path.join(name), to.path.join(new))
        }

        pub(crate) fn rename_new(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
            self.still_here()?;
            to.still_here()?;
            fs::hard_link(self.path.join(name), to.path.join(new))?;
            fs::remove_file(self.path.join(name))
        }

        pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
            self.still_here()?;
            fs::remove_file(self.path.join(name))
        }

        pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            self.still_here()?;
            fs::remove_dir(self.path.join(name))
        }

        pub(crate) fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn entry_of_file(file: &File) -> io::Result<Entry> {
        Ok(entry_of(&file.metadata()?))
    }

    /// There are no such files here.
    pub(crate) fn is_system_file(_file: &File) -> bool {
        false
    }

    fn entry_at(path: &Path) -> io::Result<Entry> {
        Ok(entry_of(&fs::symlink_metadata(path)?))
    }

    fn entry_of(metadata: &fs::Metadata) -> Entry {
        Entry {
            kind: kind_of(metadata.file_type()),
            len: metadata.len(),
            modified: metadata.modified().ok(),
            mode: 0o644,
            owner: (0, 0),
            id: (0, 0),
        }
    }

    fn kind_of(kind: fs::FileType) -> Kind {
        match () {
            () if kind.is_symlink() => Kind::Link,
            () if kind.is_dir() => Kind::Folder,
            () if kind.is_file() => Kind::File,
            () => Kind::Other,
        }
    }
}

//! The folder of an agent's own, which the agent writes: nothing in it is followed as a link.

use rustix::{
    fd::{AsFd as _, OwnedFd},
    fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, unlinkat},
    io::Errno,
};
use std::{
    fs::{DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Component, Path},
};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder that an agent writes while it runs, and haft between its runs.
pub(super) struct OwnFolder(OwnedFd);

impl OwnFolder {
    /// Makes it, for its owner alone. What is above it no agent writes.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(OwnFolder(open(path, FOLDER, Mode::empty())?))
    }

    /// The folder of that name below it, made where it is not there.
    pub(super) fn folder(&self, below: &Path) -> io::Result<OwnFolder> {
        let mut folder = self.0.try_clone()?;
        for part in below.components() {
            let Component::Normal(name) = part else { return Err(Errno::INVAL.into()) };
            match mkdirat(&folder, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = openat(&folder, name, FOLDER, Mode::empty())?;
        }
        Ok(OwnFolder(folder))
    }

    /// Puts a file there in place of whatever has that name; `None` only removes that.
    pub(super) fn put(&self, below: &Path, bytes: Option<&[u8]>) -> io::Result<()> {
        let name = below.file_name().ok_or(Errno::INVAL)?;
        let folder = self.folder(below.parent().unwrap_or(Path::new("")))?;
        match unlinkat(folder.0.as_fd(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(bytes) = bytes else { return Ok(()) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(folder.0.as_fd(), name, flags, Mode::from_raw_mode(0o600))?).write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn nothing_is_written_through_a_link_that_an_agent_made() {
        let place = tempfile::tempdir().unwrap();
        let (own, others) = (place.path().join("own"), place.path().join("others"));
        fs::create_dir(&others).unwrap();
        fs::write(others.join("settings.json"), "theirs").unwrap();
        let folder = OwnFolder::create(&own).unwrap();
        let below = Path::new("config/settings.json");
        folder.put(below, Some(b"mine")).unwrap();
        assert_eq!(fs::read(own.join(below)).unwrap(), b"mine");

        // A link in place of the file is replaced, one in place of the folder is refused.
        fs::remove_file(own.join(below)).unwrap();
        symlink(others.join("settings.json"), own.join(below)).unwrap();
        folder.put(below, Some(b"mine")).unwrap();
        fs::remove_dir_all(own.join("config")).unwrap();
        symlink(&others, own.join("config")).unwrap();
        folder.put(below, Some(b"mine")).unwrap_err();
        folder.put(below, None).unwrap_err();
        assert_eq!(fs::read(others.join("settings.json")).unwrap(), b"theirs");
    }
}

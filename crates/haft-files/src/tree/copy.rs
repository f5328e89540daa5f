//! Copies of trees with all that belongs to them: permissions, owners, times, attributes, hard links among them.

use super::{Known, What, enter, known::set_mode, others, xattrs::set_others};
use crate::folder::{Folder, Opener};
use rustix::fs::{AtFlags, Gid, Timespec, Timestamps, Uid};
use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// Copies trees into one folder. Files that are hard links of each other are so in there, too.
pub(crate) struct Copier {
    to: Folder,
    /// Where the first of several names of a file is, below `to`.
    first: HashMap<(u64, u64), PathBuf>,
}

impl Copier {
    pub(crate) fn new(to: Folder) -> Self {
        Copier { to, first: HashMap::new() }
    }

    /// Copies what has that name, under another name. Marks of an overlay are left behind.
    pub(crate) fn copy(&mut self, from: &Folder, name: &OsStr, new: &OsStr) -> io::Result<()> {
        let known = from.known(name)?.ok_or(io::ErrorKind::NotFound)?;
        let to = self.to.folder(Path::new(""), Opener::best())?;
        self.copy_into(from, name, &known, &to, Path::new(new), new)
    }

    fn copy_into(
        &mut self,
        from: &Folder,
        name: &OsStr,
        known: &Known,
        to: &Folder,
        below: &Path,
        new: &OsStr,
    ) -> io::Result<()> {
        match known.what {
            What::File => {
                let id = (known.device, known.number);
                if let Some(first) = (known.names > 1).then(|| self.first.get(&id)).flatten() {
                    let folder = self.to.folder(first.parent().unwrap_or(Path::new("")), Opener::best())?;
                    let first = first.file_name().unwrap_or_default();
                    return Ok(rustix::fs::linkat(&folder.0, first, &to.0, new, AtFlags::empty())?);
                }
                let mut source = from.read(name)?;
                let mut copy = to.create(new, 0o600)?;
                io::copy(&mut source, &mut copy)?;
                if known.names > 1 {
                    self.first.insert(id, below.to_path_buf());
                }
            }
            What::Link => to.create_link(new, &from.link_target(name)?)?,
            What::Folder => {
                to.create_folder(new, 0o700)?;
                let (source, target) = (enter(from, name)?, to.folder(Path::new(new), Opener::best())?);
                for inner in source.sorted()? {
                    let known = source.known(&inner)?.ok_or(io::ErrorKind::NotFound)?;
                    self.copy_into(&source, &inner, &known, &target, &below.join(&inner), &inner)?;
                }
            }
            What::Nothing | What::Special(_) => {
                return Err(io::Error::other("a pipe, device or socket is not copied"));
            }
        }
        set_meta(to, new, known, Some(&others(from, name)?))
    }
}

/// Gives an entry the owner, the permissions, the attributes and the time of another.
pub(crate) fn set_meta(
    folder: &Folder,
    name: &OsStr,
    known: &Known,
    others: Option<&BTreeMap<Vec<u8>, Vec<u8>>>,
) -> io::Result<()> {
    let there = folder.known(name)?.ok_or(io::ErrorKind::NotFound)?;
    if there.owner != known.owner {
        let (user, group) = (Uid::from_raw(known.owner.0), Gid::from_raw(known.owner.1));
        rustix::fs::chownat(&folder.0, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if let Some(others) = others {
        set_others(folder, name, others)?;
    }
    // After the owner: giving a file away takes bits off it.
    if known.what != What::Link && folder.known(name)?.is_none_or(|now| now.mode != known.mode) {
        set_mode(folder, name, known.mode)?;
    }
    if known.what != What::Folder {
        let time = Timespec { tv_sec: known.modified.0, tv_nsec: i64::from(known.modified.1) as _ };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(&folder.0, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

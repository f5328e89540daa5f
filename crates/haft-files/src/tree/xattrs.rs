//! Extended attributes: those in which an overlay keeps its marks, and all others.

use super::{What, enter};
use crate::folder::Folder;
use haft_core::port::LayerMarks;
use rustix::{fs::XattrFlags, io::Errno};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, AsRawFd as _},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
};

/// The most bytes that the names of all attributes of a file have, by the kernel's own limit.
const MOST_NAMES: usize = 64 << 10;
/// The most bytes of one attribute, by the same.
const MOST_VALUE: usize = 64 << 10;

/// The marks of an overlay on one entry of its upper layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// What is below this folder in the lower layer does not count.
    pub(crate) is_opaque: bool,
    /// This file stands for one that is gone.
    pub(crate) is_whiteout: bool,
    /// This folder has the contents of another one in the lower layer.
    pub(crate) redirect: Option<Vec<u8>>,
    /// This file has no bytes of its own.
    pub(crate) is_metacopy: bool,
    /// This was copied from the lower layer.
    pub(crate) has_origin: bool,
    /// There is any mark.
    pub(crate) any: bool,
    /// Running this file gives privileges.
    pub(crate) has_capability: bool,
}

/// The prefix of the attributes that mark a layer.
fn prefix(marks: LayerMarks) -> &'static [u8] {
    match marks {
        LayerMarks::Trusted => b"trusted.overlay.",
        LayerMarks::User => b"user.overlay.",
    }
}

/// Whether an attribute is an overlay's.
pub(crate) fn is_mark(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

/// The name of an entry of an open folder that needs no way to it. A link is not followed by what ends in `l…xattr`.
pub(super) fn by_handle(folder: impl AsFd, name: &OsStr) -> PathBuf {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()));
    if !name.is_empty() {
        path.push(name);
    }
    path
}

fn names(path: &PathBuf) -> io::Result<Vec<u8>> {
    // Nearly every file has none, or few: a small buffer on the stack is enough.
    let mut small = [0_u8; 512];
    match rustix::fs::llistxattr(path, &mut small[..]) {
        Ok(length) => return Ok(small.get(..length).unwrap_or_default().to_vec()),
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(Errno::RANGE) => {}
        Err(error) => return Err(error.into()),
    }
    let mut buffer = vec![0; MOST_NAMES];
    let length = rustix::fs::llistxattr(path, &mut buffer[..])?;
    buffer.truncate(length);
    Ok(buffer)
}

fn value(path: &PathBuf, name: &[u8]) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; MOST_VALUE];
    let length = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut buffer[..])?;
    buffer.truncate(length);
    Ok(buffer)
}

fn split(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    names.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// The marks of an entry of an upper layer.
pub(crate) fn marks(folder: &Folder, name: &OsStr, by: LayerMarks) -> io::Result<Marks> {
    let path = by_handle(&folder.0, name);
    let mut found = Marks::default();
    for name in split(&names(&path)?) {
        found.any |= is_mark(name);
        found.has_capability |= name == b"security.capability";
        match name.strip_prefix(prefix(by)) {
            Some(b"opaque") => found.is_opaque = value(&path, name)? == b"y",
            Some(b"whiteout") => found.is_whiteout = true,
            Some(b"redirect") => found.redirect = Some(value(&path, name)?),
            Some(b"metacopy") => found.is_metacopy = true,
            Some(b"origin") => found.has_origin = true,
            Some(_) | None => {}
        }
    }
    Ok(found)
}

/// Every attribute that is not an overlay's, nor one that the system itself gives by place.
pub(crate) fn others(folder: &Folder, name: &OsStr) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let path = by_handle(&folder.0, name);
    let listed = names(&path)?;
    let is_other = |name: &&[u8]| !is_mark(name) && *name != b"security.selinux";
    split(&listed).filter(is_other).map(|name| Ok((name.to_vec(), value(&path, name)?))).collect()
}

/// Whether two entries have the same attributes, but for marks.
pub(crate) fn same_others(a: (&Folder, &OsStr), b: (&Folder, &OsStr)) -> io::Result<bool> {
    Ok(others(a.0, a.1)? == others(b.0, b.1)?)
}

/// Gives an entry these attributes and no others, but for those that the system keeps to itself.
pub(super) fn set_others(
    folder: &Folder,
    name: &OsStr,
    wanted: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> io::Result<()> {
    let path = by_handle(&folder.0, name);
    let there = others(folder, name)?;
    for (name, value) in wanted {
        if there.get(name) != Some(value) {
            rustix::fs::lsetxattr(&path, OsStr::from_bytes(name), value, XattrFlags::empty())?;
        }
    }
    for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
        rustix::fs::lremovexattr(&path, OsStr::from_bytes(name))?;
    }
    Ok(())
}

/// Marks a folder as one whose lower contents do not count.
pub(crate) fn mark_opaque(folder: &Folder, name: &OsStr, by: LayerMarks) -> io::Result<()> {
    let mark = [prefix(by), b"opaque"].concat();
    let path = by_handle(&folder.0, name);
    Ok(rustix::fs::lsetxattr(&path, OsStr::from_bytes(&mark), b"y", XattrFlags::empty())?)
}

/// Takes the marks off an entry, and off everything in it.
pub(crate) fn strip_tree(folder: &Folder, name: &OsStr) -> io::Result<()> {
    let path = by_handle(&folder.0, name);
    for mark in split(&names(&path)?).filter(|name| is_mark(name)) {
        rustix::fs::lremovexattr(&path, OsStr::from_bytes(mark))?;
    }
    if folder.known(name)?.is_some_and(|known| known.what == What::Folder) {
        let inner = enter(folder, name)?;
        for name in inner.sorted()? {
            strip_tree(&inner, &name)?;
        }
    }
    Ok(())
}

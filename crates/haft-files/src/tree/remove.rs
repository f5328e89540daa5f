//! Removing a tree, whatever its permissions are, and how large one is.

use super::enter;
use crate::folder::Folder;
use rustix::fs::Mode;
use std::{ffi::OsStr, io};

/// Removes what has that name with all that is in it. That it is not there is as good. Links are not followed.
pub(crate) fn remove_tree(folder: &Folder, name: &OsStr) -> io::Result<()> {
    match folder.known(name)? {
        None => return Ok(()),
        Some(known) if !known.is_folder() => return folder.remove(name),
        Some(_) => {}
    }
    let inner = enter(folder, name)?;
    // Names can only be taken from a folder that its owner may write: one that goes may have lost that.
    if inner.known_itself()?.mode & 0o700 != 0o700 {
        rustix::fs::fchmod(&inner.0, Mode::RWXU)?;
    }
    let mut names = Vec::new();
    inner.names(|name, _| names.push(name.to_owned()))?;
    for name in names {
        remove_tree(&inner, &name)?;
    }
    folder.remove_folder(name)
}

/// How many bytes the files of a tree have. What cannot be looked at counts nothing.
pub(crate) fn size_of(folder: &Folder, name: &OsStr) -> u64 {
    let Ok(Some(known)) = folder.known(name) else { return 0 };
    if !known.is_folder() {
        return known.len;
    }
    let Ok(inner) = enter(folder, name) else { return 0 };
    inner.sorted().unwrap_or_default().iter().map(|name| size_of(&inner, name)).sum()
}

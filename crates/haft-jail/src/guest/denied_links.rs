//! Links under denied names: what they lead to is hidden, as file tools refuse it by the name of the link.
//!
//! A link cannot be mounted on, so a guest can remove one, and the next guest would not know what it led to. It is put
//! back when the guest has ended; guests that start meanwhile take it from the record of the one that runs.

use super::{
    gather::can_be_hidden,
    links::{self, Awaited, HANDLE, Was},
    mask::Granted,
    raw::Raw,
    survey::{Id, Met, What},
};
use rustix::{
    fd::{AsFd as _, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, fstat, openat, readlinkat, statat, symlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeniedLinks {
    /// Where they are, with those on their way.
    #[serde(with = "links::pairs")]
    links: Awaited,
    /// Where they lead.
    targets: BTreeSet<Raw>,
}

impl DeniedLinks {
    /// Follows a link under a denied name. A link to a folder that it is in hides nothing.
    pub(crate) fn add(&mut self, link: &Path, granted: &Granted) {
        let led = links::follow(link);
        let Some(real) = led.real.filter(|real| can_be_hidden(real, granted) && !link.starts_with(real))
        else {
            return;
        };
        let is_writable = |path: &Path| granted.writable.iter().any(|root| path.starts_with(root));
        let on_the_way =
            led.awaited.into_iter().filter(|(path, was)| is_writable(&path.0) && matches!(was, Was::Link(_)));
        self.links.extend(on_the_way);
        self.targets.insert(Raw(real));
    }

    /// Adds those of a guest that still runs: it may have removed them.
    pub(crate) fn add_all(&mut self, others: DeniedLinks) {
        for (path, was) in others.links {
            self.links.entry(path).or_insert(was);
        }
        self.targets.extend(others.targets);
    }

    /// What is to be hidden of what is granted.
    pub(crate) fn targets<'a>(&'a self, granted: &'a Granted) -> impl Iterator<Item = &'a PathBuf> {
        self.targets.iter().map(|target| &target.0).filter(|target| can_be_hidden(target, granted))
    }

    /// Where they are: folders around them must not move.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.links.keys().map(|path| &*path.0)
    }

    /// Makes links below a root again that are not there any more. `take` moves another thing away that is in the place
    /// of one, `tell` is told how it went.
    pub(crate) fn put_back(
        &self,
        root: &Path,
        id: Id,
        take: &mut dyn FnMut(&Met<'_>),
        tell: &mut dyn FnMut(&Path, Result<(), Errno>),
    ) {
        for (Raw(path), was) in &self.links {
            let (Ok(below), Was::Link(Raw(text))) = (path.strip_prefix(root), was) else { continue };
            match put_back(root, id, path, below, text, take) {
                Ok(false) => {}
                Ok(true) => tell(path, Ok(())),
                Err(error) => tell(path, Err(error)),
            }
        }
    }
}

/// Whether it had to be made.
fn put_back(
    root: &Path,
    id: Id,
    path: &Path,
    below: &Path,
    text: &Path,
    take: &mut dyn FnMut(&Met<'_>),
) -> Result<bool, Errno> {
    let mut folder: OwnedFd = openat(CWD, root, HANDLE, Mode::empty())?;
    let there = fstat(&folder)?;
    if (there.st_dev, there.st_ino) != (id.device, id.inode) {
        return Err(Errno::STALE);
    }
    for name in below.parent().into_iter().flatten() {
        folder = openat(&folder, name, HANDLE, Mode::empty())?;
    }
    let name = below.file_name().unwrap_or(OsStr::new("."));
    match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
        Ok(found) => {
            let kind = FileType::from_raw_mode(found.st_mode);
            let now = readlinkat(&folder, name, Vec::new());
            if now.is_ok_and(|now| now.as_bytes() == text.as_os_str().as_bytes()) {
                return Ok(false);
            }
            take(&Met { what: What::Denied, folder: folder.as_fd(), name, path, kind, again: false });
        }
    }
    symlinkat(text, &folder, name)?;
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn only_what_is_inside_is_hidden_and_never_what_is_granted_or_around_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("w/a/granted")).unwrap();
        fs::create_dir_all(at.join("w/b")).unwrap();
        for file in ["w/b/prod", "outside"] {
            fs::write(at.join(file), "").unwrap();
        }
        let granted = Granted { readable: vec![at.join("w/a/granted")], writable: vec![at.join("w")] };
        symlink("b/prod", at.join("w/on")).unwrap();
        for (text, expected) in [
            ("b/prod", Some("w/b/prod")),
            ("on", Some("w/b/prod")),
            ("b", Some("w/b")),
            ("a", None),
            (".", None),
            ("../outside", None),
            ("nothing", None),
        ] {
            let link = at.join("w/.env");
            let _ = fs::remove_file(&link);
            symlink(text, &link).unwrap();
            let mut links = DeniedLinks::default();
            links.add(&link, &granted);
            let targets: Vec<_> = links.targets(&granted).cloned().collect();
            assert_eq!(targets, expected.map(|path| at.join(path)).into_iter().collect::<Vec<_>>(), "{text}");
            let on_the_way = if text == "on" { 2 } else { usize::from(expected.is_some()) };
            assert_eq!(links.paths().count(), on_the_way, "{text}");
        }
        let inside = at.join("w/b/.env");
        symlink("../b", &inside).unwrap();
        let mut links = DeniedLinks::default();
        links.add(&inside, &granted);
        assert_eq!(links, DeniedLinks::default(), "it is in what it leads to");
    }
}

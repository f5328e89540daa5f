//! One walk over granted folders: what in them is denied, and what runs programs later. By handles, following no link.

use haft_guard::names::{DeniedPaths, GitEntries, ProtectedNames, is_git_part};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{Access, AtFlags, CWD, Dir, FileType, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Which file something is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Id {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Folders deeper than this are not looked into: each takes a descriptor while it is.
const MOST_DEPTH: usize = 128;

/// What a walk is after.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    /// What must not be seen. A walk that looks for what is new needs none: it looks everywhere.
    pub(crate) denied: Option<&'a DeniedPaths>,
    /// What runs programs later, where the folder can be written.
    pub(crate) protected: Option<&'a ProtectedNames>,
    /// What is not looked at.
    pub(crate) skip: &'a BTreeSet<PathBuf>,
}

/// What a walk met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A pattern denies it.
    Denied,
    /// A folder that cannot be looked into, so that anything could be in there.
    Closed,
    /// A folder `.git`.
    Repository,
    /// What makes a folder of another name a repository.
    Head,
    /// It runs programs later, and this is why.
    Protected(&'static str),
}

/// One thing that a walk met, with the folder that it is in.
pub(crate) struct Met<'a> {
    pub(crate) what: What,
    pub(crate) folder: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    pub(crate) path: &'a Path,
    pub(crate) kind: FileType,
}

impl Met<'_> {
    /// Which file it is; `None` where it is gone.
    pub(crate) fn id(&self) -> Option<Id> {
        let stat = rustix::fs::statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Id { device: stat.st_dev, inode: stat.st_ino })
    }
}

/// Whether a walk goes into what it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Enter,
    Pass,
}

/// A folder that is still to be looked into.
struct Waiting {
    parent: Arc<OwnedFd>,
    name: OsString,
    path: PathBuf,
    place: Place,
}

/// Where in a tree a folder is.
#[derive(Clone, Debug, Default)]
struct Place {
    depth: usize,
    /// Inside of a repository's own folder: where in it.
    git: Option<String>,
    /// Among packages that were installed: editors and agents are not opened there.
    packages: bool,
}

/// Walks through a root. `meet` is told of everything that the search is after, `count` of each name.
pub(crate) fn walk<E>(
    root: &Path,
    search: Search<'_>,
    meet: &mut dyn FnMut(&Met<'_>) -> Result<Step, E>,
    count: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let git = (root.file_name() == Some(OsStr::new(".git"))).then(String::new);
    let mut walker = Walker { root, search, meet, count, waiting: Vec::new() };
    // Its path is a whole one, so that it does not matter where it starts.
    walker.enter(CWD, root.as_os_str(), root, Place { git, ..Place::default() })?;
    while let Some(Waiting { parent, name, path, place }) = walker.waiting.pop() {
        walker.enter(parent.as_fd(), &name, &path, place)?;
    }
    Ok(())
}

pub(crate) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

struct Walker<'a, E> {
    root: &'a Path,
    search: Search<'a>,
    meet: &'a mut dyn FnMut(&Met<'_>) -> Result<Step, E>,
    count: &'a mut dyn FnMut() -> Result<(), E>,
    waiting: Vec<Waiting>,
}

impl<E> Walker<'_, E> {
    fn enter(&mut self, parent: BorrowedFd<'_>, name: &OsStr, path: &Path, place: Place) -> Result<(), E> {
        let opened = match place.depth > MOST_DEPTH {
            true => Err(Errno::TOOBIG),
            false => rustix::fs::openat(parent, name, FOLDER, Mode::empty()),
        };
        let listed = opened.and_then(|here| {
            // Reading a listing is not enough: without the other right nothing in there could be looked at, or hidden.
            rustix::fs::accessat(&here, ".", Access::EXEC_OK, AtFlags::EACCESS)?;
            list(&here).map(|entries| (Arc::new(here), entries))
        });
        match listed {
            Ok((here, entries)) => self.look(&here, path, place, entries),
            // It is gone, or another thing now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(_) => {
                let kind = FileType::Directory;
                (self.meet)(&Met { what: What::Closed, folder: parent, name, path, kind }).map(drop)
            }
        }
    }

    fn look(
        &mut self,
        here: &Arc<OwnedFd>,
        path: &Path,
        mut place: Place,
        entries: Vec<(OsString, FileType)>,
    ) -> Result<(), E> {
        let mut git = GitEntries::default();
        for (name, _) in &entries {
            (self.count)()?;
            git.meet(name.as_bytes());
        }
        let is_bare = place.git.is_none() && git.is_repository();
        if git.is_repository() {
            place.git = Some(String::new());
        }
        for (name, kind) in entries {
            self.entry(here, path, &place, is_bare, name, kind)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        here: &Arc<OwnedFd>,
        folder: &Path,
        place: &Place,
        is_bare: bool,
        name: OsString,
        kind: FileType,
    ) -> Result<(), E> {
        let kind = match kind {
            FileType::Unknown => match rustix::fs::statat(&**here, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(()),
            },
            known => known,
        };
        let is_denied = || {
            let denied = self.search.denied.filter(|denied| denied.suspects(&name))?;
            // Where a link leads is granted, or not there.
            let path = folder.join(&name);
            (kind != FileType::Symlink && denied.pattern(&path, []).is_some()).then_some(What::Denied)
        };
        let inside = place.git.as_ref().map(|inside| match &**inside {
            "" => name.to_string_lossy().into_owned(),
            inside => format!("{inside}/{}", name.to_string_lossy()),
        });
        let what =
            is_denied().or_else(|| self.protected(folder, place, is_bare, &name, kind, inside.as_deref()));
        let path = || folder.join(&name);
        if !self.search.skip.is_empty() && self.search.skip.contains(&path()) {
            return Ok(());
        }
        let mut git = inside;
        if let Some(what) = what {
            let met = Met { what, folder: here.as_fd(), name: &name, path: &path(), kind };
            if (self.meet)(&met)? == Step::Pass {
                return Ok(());
            }
            if what == What::Repository {
                git = Some(String::new());
            }
        }
        if kind == FileType::Directory && !git.as_deref().is_some_and(holds_objects) {
            let packages = place.packages || name == OsStr::new("node_modules");
            let place = Place { depth: place.depth + 1, git, packages };
            self.waiting.push(Waiting { parent: Arc::clone(here), path: path(), name, place });
        }
        Ok(())
    }

    fn protected(
        &self,
        folder: &Path,
        place: &Place,
        is_bare: bool,
        name: &OsStr,
        kind: FileType,
        inside: Option<&str>,
    ) -> Option<What> {
        let protected = self.search.protected?;
        if let Some(inside) = inside {
            if is_git_part(inside) {
                return protected.reason_of_git_part(&folder.join(name)).map(What::Protected);
            }
            if is_bare && place.git.as_deref() == Some("") && name.as_bytes().eq_ignore_ascii_case(b"HEAD") {
                return protected.reason_of_git_part(&folder.join(name)).map(|_| What::Head);
            }
            // Branches may have any name.
            if ["refs/", "logs/"].iter().any(|front| inside.starts_with(front)) {
                return None;
            }
        }
        if !protected.suspects(name) {
            return None;
        }
        let path = folder.join(name);
        let why = protected.reason_of_entry(path.strip_prefix(self.root).unwrap_or(&path))?;
        let is_git = name.as_bytes().eq_ignore_ascii_case(b".git");
        match kind {
            FileType::Directory if is_git => Some(What::Repository),
            _ if place.packages && !is_git && name != OsStr::new(".envrc") => None,
            _ => Some(What::Protected(why)),
        }
    }
}

/// What is in a folder.
fn list(folder: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            entries.push((OsString::from_vec(name.to_vec()), entry.file_type()));
        }
    }
    Ok(entries)
}

/// Where git keeps what was committed: names there are numbers, and nothing else is looked for.
fn holds_objects(inside: &str) -> bool {
    let Some(name) = inside.strip_prefix("objects/") else { return false };
    name == "pack" || (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

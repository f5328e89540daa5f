//! One walk over granted folders: what in them is denied, and what runs programs later. By handles, following no link.

use super::staging::Writer;
use haft_guard::names::{DeniedPaths, GitEntries, ProtectedNames, is_git_part};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags},
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

/// Something as it was when it was seen: which file, under which path, and since when. A number alone says too little:
/// files are renamed, and numbers of removed ones are given to new ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Escaped, so that every path can be told from every other and be written down.
    path: String,
    id: Id,
    /// When it was made. Where the file system does not know, when it was last changed: a folder always is, and has
    /// none.
    born: Option<(i64, u32)>,
}

impl Seen {
    /// What is at a path now.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        Seen::entry(CWD, path.as_os_str(), path)
    }

    /// What has that name in a folder now.
    fn entry(folder: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Option<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let found = rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
        let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
        let is_dir = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
        let knows = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let since = match knows {
            true => Some(found.stx_btime),
            false => (!is_dir).then_some(found.stx_ctime),
        };
        let born = since.map(|since| (since.tv_sec, since.tv_nsec));
        Some(Seen { path: escaped(path), id: Id { device, inode: found.stx_ino }, born })
    }

    /// Whether it is below a folder.
    pub(crate) fn is_below(&self, folder: &Path) -> bool {
        self.is_within(escaped(folder).trim_end_matches('/'))
    }

    /// Whether it is another, or in it.
    pub(crate) fn is_in(&self, other: &Seen) -> bool {
        self.path == other.path || self.is_within(&other.path)
    }

    fn is_within(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether the same is still there.
    pub(crate) fn is_there(&self) -> bool {
        let Some(path) = unescaped(&self.path) else { return false };
        Seen::at(&path).is_some_and(|now| now == *self)
    }
}

fn escaped(path: &Path) -> String {
    path.as_os_str().as_bytes().escape_ascii().to_string()
}

/// The path that was escaped, where nothing in it had to be.
fn unescaped(path: &str) -> Option<PathBuf> {
    (!path.contains('\\')).then(|| PathBuf::from(path))
}

/// Folders deeper than this are not looked into: each takes a descriptor while it is.
const MOST_DEPTH: usize = 128;

/// Folders whose path is longer than this are not looked into: what is in them could not be named to be hidden. The
/// kernel takes 4,096 bytes, of which a runtime needs some for the place of the tree.
const MOST_PATH: usize = 3_000;

/// What a walk is after.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    /// What must not be seen. A walk that looks for what is new needs none: it looks everywhere.
    pub(crate) denied: Option<&'a DeniedPaths>,
    /// What runs programs later, where the folder can be written.
    pub(crate) protected: Option<&'a ProtectedNames>,
    /// Whose layers hold what is written there, where that is not so for files of every owner.
    pub(crate) writer: Option<Writer>,
    /// What is not looked at, as long as it is the same.
    pub(crate) skip: &'a BTreeSet<Seen>,
}

/// What a walk met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A pattern denies it.
    Denied,
    /// A folder that cannot be looked into, so that anything could be in there.
    Closed,
    /// Nothing that is written to it could be kept apart. The walk goes on as if it were not met.
    Foreign,
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
    /// It was met before, opened up, and still cannot be looked into.
    pub(crate) again: bool,
}

impl Met<'_> {
    /// Which file it is; `None` where it is gone.
    pub(crate) fn id(&self) -> Option<Id> {
        let stat = rustix::fs::statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Id { device: stat.st_dev, inode: stat.st_ino })
    }

    /// What it is now, with its place; `None` where it is gone.
    pub(crate) fn seen(&self) -> Option<Seen> {
        Seen::entry(self.folder, self.name, self.path)
    }
}

/// Whether a walk goes into what it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Enter,
    Pass,
    /// It is a repository whose own settings and hooks are harmless: only what else is in it is looked for.
    Plain,
    /// It was shut, and was opened: to be looked into after all, and shut again afterwards.
    Reopened(Mode),
    /// It is not there any more.
    Taken,
}

/// What is still to be done.
enum Waiting {
    /// A folder is to be looked into.
    Folder { parent: Arc<OwnedFd>, name: OsString, path: PathBuf, place: Place },
    /// A folder that was opened is to be shut again: all that is in it was looked at.
    Shut { folder: Arc<OwnedFd>, mode: Mode },
}

/// Where in a tree a folder is.
#[derive(Clone, Debug, Default)]
struct Place {
    depth: usize,
    /// Inside of a repository's own folder: where in it.
    git: Option<String>,
    /// That repository was there before, so that its branches may have any name.
    trusted: bool,
    /// Its settings and hooks are harmless.
    plain: bool,
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
    // Its path is a whole one, so that it does not matter where it starts.
    walk_from(CWD, root.as_os_str(), root, search, meet, count)
}

/// Walks from a handle: whatever is at its path meanwhile.
pub(crate) fn walk_from<E>(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    root: &Path,
    search: Search<'_>,
    meet: &mut dyn FnMut(&Met<'_>) -> Result<Step, E>,
    count: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let git = (root.file_name() == Some(OsStr::new(".git"))).then(String::new);
    let place = Place { trusted: git.is_some(), git, ..Place::default() };
    let mut walker = Walker { root, search, meet, count, waiting: Vec::new() };
    walker.enter(folder, name, root, place)?;
    while let Some(next) = walker.waiting.pop() {
        match next {
            Waiting::Folder { parent, name, path, place } => {
                walker.enter(parent.as_fd(), &name, &path, place)?;
            }
            Waiting::Shut { folder, mode } => drop(rustix::fs::fchmod(&*folder, mode)),
        }
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
        let mut again = None;
        loop {
            match open(parent, name, path, place.depth) {
                Ok((here, entries)) => {
                    // Done last: what is in there comes before it.
                    if let Some(mode) = again {
                        self.waiting.push(Waiting::Shut { folder: Arc::clone(&here), mode });
                    }
                    return self.look(&here, path, place, entries);
                }
                // It is gone, or another thing now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                Err(_) => {
                    let kind = FileType::Directory;
                    let what = What::Closed;
                    let met = Met { what, folder: parent, name, path, kind, again: again.is_some() };
                    match (self.meet)(&met)? {
                        Step::Reopened(mode) if again.is_none() => again = Some(mode),
                        _ => return Ok(()),
                    }
                }
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
        let is_another = git.is_repository() && place.git.as_deref() != Some("");
        let is_bare = is_another && !(place.git.is_some() && place.trusted);
        if is_another {
            place = Place { git: Some(String::new()), plain: false, ..place };
        }
        let is_head = |name: &OsStr| is_bare && name.as_bytes().eq_ignore_ascii_case(b"HEAD");
        let (heads, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(name, _)| is_head(name));
        // Whether it was a repository before decides what may be in it.
        let mut is_new = false;
        for (name, kind) in heads {
            is_new |= self.entry(here, path, &place, is_bare, name, kind)? == Step::Taken;
        }
        place.trusted = if is_bare { !is_new } else { place.trusted };
        for (name, kind) in others {
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
    ) -> Result<Step, E> {
        let kind = match kind {
            FileType::Unknown => match rustix::fs::statat(&**here, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(Step::Pass),
            },
            known => known,
        };
        let is_denied = || {
            let denied = self.search.denied.filter(|denied| denied.suspects(&name))?;
            denied.pattern(&folder.join(&name), []).map(|_| What::Denied)
        };
        let inside = place.git.as_ref().map(|inside| match &**inside {
            "" => name.to_string_lossy().into_owned(),
            inside => format!("{inside}/{}", name.to_string_lossy()),
        });
        let path = || folder.join(&name);
        let denied = is_denied();
        if let Some(what) = denied.filter(|_| kind == FileType::Symlink) {
            // What it leads to may be hidden; the link itself is looked at like any other.
            (self.meet)(&Met { what, folder: here.as_fd(), name: &name, path: &path(), kind, again: false })?;
        }
        let what = denied
            .filter(|_| kind != FileType::Symlink)
            .or_else(|| self.protected(folder, place, is_bare, &name, kind, inside.as_deref()));
        if self.is_skipped(here, &name, folder) {
            return Ok(Step::Pass);
        }
        let is_hidden = what == Some(What::Denied);
        if self.search.writer.is_some_and(|writer| !is_hidden && writer.cannot_hold(here.as_fd(), &name)) {
            let what = What::Foreign;
            (self.meet)(&Met { what, folder: here.as_fd(), name: &name, path: &path(), kind, again: false })?;
        }
        let Place { mut trusted, mut plain, .. } = *place;
        let mut git = inside;
        if let Some(what) = what {
            let met = Met { what, folder: here.as_fd(), name: &name, path: &path(), kind, again: false };
            let step = (self.meet)(&met)?;
            if !matches!(step, Step::Enter | Step::Plain) {
                return Ok(step);
            }
            if what == What::Repository {
                (git, trusted, plain) = (Some(String::new()), true, step == Step::Plain);
            }
        }
        if kind == FileType::Directory {
            let packages = place.packages || name == OsStr::new("node_modules");
            let place = Place { depth: place.depth + 1, git, trusted, plain, packages };
            self.waiting.push(Waiting::Folder { parent: Arc::clone(here), path: path(), name, place });
        }
        Ok(Step::Enter)
    }

    fn is_skipped(&self, here: &OwnedFd, name: &OsStr, folder: &Path) -> bool {
        if self.search.skip.is_empty() {
            return false;
        }
        let path = folder.join(name);
        let first = Seen { path: escaped(&path), id: Id { device: 0, inode: 0 }, born: None };
        let is_there = self.search.skip.range(&first..).next().is_some_and(|skip| skip.path == first.path);
        is_there
            && Seen::entry(here.as_fd(), name, &path).is_some_and(|seen| self.search.skip.contains(&seen))
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
                if place.plain {
                    return None;
                }
                return protected.reason_of_git_part(&folder.join(name)).map(What::Protected);
            }
            if is_bare && place.git.as_deref() == Some("") && name.as_bytes().eq_ignore_ascii_case(b"HEAD") {
                return protected.reason_of_git_part(&folder.join(name)).map(|_| What::Head);
            }
            // Branches may have any name that git allows.
            let may_be_branch = place.trusted && name.is_ascii() && !name.as_bytes().starts_with(b".");
            if may_be_branch && ["refs/", "logs/"].iter().any(|front| inside.starts_with(front)) {
                return None;
            }
        }
        if !protected.suspects(name) {
            return None;
        }
        let path = folder.join(name);
        let below = path.strip_prefix(self.root).unwrap_or(&path);
        let why = match kind {
            FileType::Symlink => protected.reason_of_link(below)?,
            _ => protected.reason_of_entry(below)?,
        };
        let is_git = name.as_bytes().eq_ignore_ascii_case(b".git");
        match kind {
            FileType::Directory if is_git => Some(What::Repository),
            _ if place.packages && !is_git && name != OsStr::new(".envrc") => None,
            _ => Some(What::Protected(why)),
        }
    }
}

/// Opens a folder, and says what is in it.
#[allow(clippy::type_complexity, reason = "a folder and its listing")]
fn open(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    depth: usize,
) -> Result<(Arc<OwnedFd>, Vec<(OsString, FileType)>), Errno> {
    if depth > MOST_DEPTH || path.as_os_str().len() > MOST_PATH {
        return Err(Errno::TOOBIG);
    }
    let here = rustix::fs::openat(parent, name, FOLDER, Mode::empty())?;
    // Reading a listing is not enough: without the other right nothing in there could be looked at, or hidden.
    rustix::fs::accessat(&here, ".", Access::EXEC_OK, AtFlags::EACCESS)?;
    list(&here).map(|entries| (Arc::new(here), entries))
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

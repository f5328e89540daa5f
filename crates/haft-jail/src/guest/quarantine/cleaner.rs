//! Takes what is new out of the way.

use super::{
    Watched,
    shown::{shown, undo},
};
use crate::guest::{
    git_plain, links,
    survey::{self, FOLDER, Id, Met, Search, Step, What},
};
use haft_core::Violation;
use haft_guard::names::ProtectedNames;
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fchmod, fstat, openat, renameat, statat, unlinkat},
    io::Errno,
};
use std::{
    convert::Infallible,
    ffi::OsStr,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::AsRawFd as _,
        unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    },
    path::{Path, PathBuf},
};

/// Looks through everything that a guest could write.
pub(super) fn settle(watched: &Watched, names: &ProtectedNames, folder: &Path) -> Vec<Violation> {
    let mut cleaner = Cleaner { watched, names, folder, into: None, taken: 0, found: Vec::new(), more: 0 };
    for (root, id) in &watched.roots {
        cleaner.put_links_back(root, *id);
        links::changed(root, *id, &watched.awaited, &mut |met, why| cleaner.take(met, why));
        if let Err(error) = cleaner.look(root, *id) {
            let what = match error {
                Errno::STALE => "is not the folder any more that the program was granted".to_owned(),
                error => {
                    format!("cannot be looked into ({error}): what the program made there is still there")
                }
            };
            cleaner.say(root, &what, false);
        }
    }
    cleaner.told()
}

/// More than that are counted, not listed.
const MOST_LISTED: usize = 20;

struct Cleaner<'a> {
    watched: &'a Watched,
    names: &'a ProtectedNames,
    folder: &'a Path,
    /// Where this time's things go, once there are some.
    into: Option<(PathBuf, OwnedFd)>,
    /// How many there were.
    taken: usize,
    found: Vec<Violation>,
    /// How many are not listed.
    more: usize,
}

impl Cleaner<'_> {
    /// Looks through a root. From one handle, which is compared with what was granted: nothing that is put at its path,
    /// or at the path of a folder in it, is meant.
    fn look(&mut self, root: &Path, id: Id) -> Result<(), Errno> {
        let handle =
            openat(CWD, root, HANDLE | OFlags::DIRECTORY, Mode::empty()).map_err(|_| Errno::STALE)?;
        let there = fstat(&handle)?;
        if (there.st_dev, there.st_ino) != (id.device, id.inode) {
            return Err(Errno::STALE);
        }
        let is_shut = there.st_mode & 0o700 != 0o700;
        if is_shut {
            let _ = chmod(&handle, there.st_mode | 0o700);
        }
        let search =
            Search { denied: None, protected: Some(self.names), writer: None, skip: &self.watched.skip };
        let meet = &mut |met: &Met<'_>| Ok::<_, Infallible>(self.meet(met));
        match survey::walk_from(handle.as_fd(), OsStr::new("."), root, search, meet, &mut || Ok(())) {
            Ok(()) => {}
            Err(never) => match never {},
        }
        if is_shut {
            let _ = chmod(&handle, there.st_mode);
        }
        Ok(())
    }

    /// Links to what is hidden are as they were.
    fn put_links_back(&mut self, root: &Path, id: Id) {
        const WHY: &str = "a link was there that says what is hidden from programs";
        let mut done = Vec::new();
        let watched = self.watched;
        let tell = &mut |path: &Path, how: Result<(), Errno>| done.push((path.to_owned(), how));
        watched.hiding.put_back(root, id, &mut |met| self.take(met, WHY), tell);
        for (path, how) in done {
            match how {
                Ok(()) => self.say(
                    &path,
                    "is a link to what is hidden; the program removed it, and haft put it back",
                    true,
                ),
                // That folder is told of once.
                Err(Errno::STALE) => {}
                Err(error) => {
                    let what = format!(
                        "was a link to what is hidden, and cannot be put back ({error}): the next program sees that file"
                    );
                    self.say(&path, &what, false);
                }
            }
        }
    }

    fn meet(&mut self, met: &Met<'_>) -> Step {
        let why = match met.what {
            // Nothing is denied here, and nothing kept apart.
            What::Denied | What::Foreign => return Step::Enter,
            What::Closed => return self.closed(met),
            What::Repository => {
                "git runs programs that its settings name, when its owner next uses git there"
            }
            What::Head => "it makes its folder a repository, whose settings name programs for git to run",
            What::Protected(why) => why,
        };
        let is_repository = met.what == What::Repository;
        match met.seen() {
            None => return Step::Pass,
            Some(seen) if self.watched.known.contains(&seen) => {
                return if is_repository { Step::Enter } else { Step::Pass };
            }
            Some(_) if git_plain::is_harmless_state(met) => return Step::Pass,
            Some(_) if is_repository && git_plain::is_harmless_repository(met) => return Step::Plain,
            Some(_) => {}
        }
        self.take(met, why);
        Step::Taken
    }

    /// A folder that cannot be looked into. Its owner can.
    fn closed(&mut self, met: &Met<'_>) -> Step {
        if met.name == OsStr::new(".") {
            self.say(met.path, "cannot be looked into: what the program made there is still there", false);
            return Step::Pass;
        }
        let opened = || -> Result<Option<Mode>, Errno> {
            let handle = openat(met.folder, met.name, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
            let before = fstat(&handle)?.st_mode;
            if met.again || before & 0o700 == 0o700 {
                return Ok(None);
            }
            chmod(&handle, before | 0o700)?;
            Ok(Some(Mode::from_raw_mode(before)))
        };
        match opened() {
            Ok(Some(before)) => Step::Reopened(before),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Step::Pass,
            Ok(None) | Err(_) => {
                self.take(met, "it is too deep to be looked into, or cannot be");
                Step::Taken
            }
        }
    }

    fn take(&mut self, met: &Met<'_>, why: &str) {
        self.taken += 1;
        let shown = shown(met.path);
        match self.carry_off(met) {
            Ok(to) => {
                let text = format!(
                    "the program made {shown}: {why}. haft moved it to {}. Look at it; `{}` puts it back. \
                     `tools.files.unprotected_names` lets programs make it",
                    self::shown(&to),
                    undo(&to, met.path),
                );
                self.tell(violation(met.path, text, true));
            }
            // Somebody was faster.
            Err(_) if !is_there(met) => {}
            // It stays, so that at least nothing reads it.
            Err(error) => {
                let text = match disarm(met.folder, met.name) {
                    Ok(()) => format!(
                        "was made by the program and could not be moved away ({error}); haft took all rights to it away: {why}"
                    ),
                    Err(_) => format!("was made by the program and is still there ({error}): {why}"),
                };
                self.say(met.path, &text, false);
            }
        }
    }

    fn say(&mut self, path: &Path, what: &str, was_blocked: bool) {
        self.tell(violation(path, format!("{} {what}", shown(path)), was_blocked));
    }

    /// What is still there is listed in any case, as long as there is room.
    fn tell(&mut self, violation: Violation) {
        if self.found.len() < MOST_LISTED {
            return self.found.push(violation);
        }
        self.more += 1;
        let blocked = self.found.iter().rposition(|listed| listed.was_blocked);
        if let Some(listed) = blocked.filter(|_| !violation.was_blocked).and_then(|at| self.found.get_mut(at))
        {
            *listed = violation;
        }
    }

    fn told(mut self) -> Vec<Violation> {
        if self.more > 0 {
            let folder = self.into.map_or_else(|| self.folder.to_owned(), |(folder, _)| folder);
            let is_blocked = self.found.iter().all(|listed| listed.was_blocked);
            let text = format!(
                "the program made {} more of that kind; `list.jsonl` in {} names all that were moved",
                self.more,
                shown(&folder)
            );
            self.found.push(violation(&folder, text, is_blocked));
        }
        self.found
    }

    /// Moves something, never through a link, and says where it is now.
    fn carry_off(&mut self, met: &Met<'_>) -> Result<PathBuf, Errno> {
        // Its own name may be as long as a name can be.
        let name = self.taken.to_string();
        let moved = self.into().and_then(|(to, into)| {
            move_there(met, into.as_fd(), OsStr::new(&name))?;
            let _ = part(into.as_fd(), OsStr::new(&name), 0);
            Ok(to.join(&name))
        });
        let moved = match moved {
            Ok(to) => to,
            // It is on another file system, or haft's own folder has no room.
            Err(_) if is_there(met) => {
                let name = format!("haft-quarantine-{}", short());
                let name = OsStr::new(&name);
                move_there(met, met.folder, name)?;
                let _ = part(met.folder, name, 0);
                if met.kind == FileType::Directory {
                    // A repository is one under any name, and what is in a folder has its own.
                    if let Ok(folder) = openat(met.folder, name, FOLDER, Mode::empty()) {
                        let _ = renameat(&folder, "HEAD", &folder, "HEAD.haft-quarantine");
                    }
                    let _ = disarm(met.folder, name);
                }
                met.path.with_file_name(name)
            }
            Err(error) => return Err(error),
        };
        if let Some((folder, _)) = &self.into {
            let line = serde_json::json!({
                "from": met.path.to_string_lossy(),
                "to": moved.to_string_lossy(),
                "undo": undo(&moved, met.path),
            });
            let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("list.jsonl"));
            let _ = log.and_then(|mut log| io::Write::write_all(&mut log, format!("{line}\n").as_bytes()));
        }
        Ok(moved)
    }

    fn into(&mut self) -> Result<&(PathBuf, OwnedFd), Errno> {
        if self.into.is_none() {
            let as_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let folder = self.folder.join(short());
            DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(as_errno)?;
            let open = openat(CWD, &folder, FOLDER, Mode::empty())?;
            self.into = Some((folder, open));
        }
        self.into.as_ref().ok_or(Errno::IO)
    }
}

fn is_there(met: &Met<'_>) -> bool {
    !matches!(statat(met.folder, met.name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
}

fn short() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let now = jiff::Timestamp::now().as_second();
    format!("{now}-{}", random.get(..8).unwrap_or(&random))
}

/// A handle of something, whatever may be done with it: to be compared, and to change its mode.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Renames what was met. Its owner may first have to allow that to itself: a guest is the same user, and could forbid
/// it.
fn move_there(met: &Met<'_>, into: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match renameat(met.folder, met.name, into, name) {
        Err(Errno::ACCESS | Errno::PERM) => {
            let before = fstat(met.folder)?.st_mode;
            let _ = fchmod(met.folder, Mode::from_raw_mode(before | 0o700));
            if met.kind == FileType::Directory {
                let _ = openat(met.folder, met.name, HANDLE | OFlags::DIRECTORY, Mode::empty())
                    .and_then(|handle| chmod(&handle, 0o700));
            }
            let moved = renameat(met.folder, met.name, into, name);
            let _ = fchmod(met.folder, Mode::from_raw_mode(before));
            moved
        }
        done => done,
    }
}

/// Makes a file its own: one that has another name, too, could be changed after its owner has looked at it. The same
/// for files in a folder.
fn part(folder: BorrowedFd<'_>, name: &OsStr, depth: usize) -> Result<(), Errno> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if depth < MOST_DEPTH => {
            let inside = openat(folder, name, FOLDER, Mode::empty())?;
            for entry in rustix::fs::Dir::read_from(&inside)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    let _ = part(inside.as_fd(), name, depth + 1);
                }
            }
            Ok(())
        }
        FileType::RegularFile if found.st_nlink > 1 => {
            let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let copy = format!("copy-{}", short());
            let mut from = fs::File::from(openat(folder, name, read, Mode::empty())?);
            let mode = Mode::from_raw_mode(found.st_mode & 0o777);
            let mut to = fs::File::from(openat(folder, &*copy, write, mode)?);
            match io::copy(&mut from, &mut to) {
                Ok(_) => renameat(folder, &*copy, folder, name),
                Err(_) => unlinkat(folder, &*copy, AtFlags::empty()),
            }
        }
        _ => Ok(()),
    }
}

/// Folders deeper than this are not looked into: each takes a descriptor while it is.
const MOST_DEPTH: usize = 64;

/// Takes all rights to something away. A link has none; where it leads is not meant, so that it goes.
fn disarm(folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let handle = openat(folder, name, HANDLE, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&handle)?.st_mode) {
        FileType::Symlink => unlinkat(folder, name, AtFlags::empty()),
        _ => chmod(&handle, 0),
    }
}

/// Changes the mode of what a handle is of: nothing that is put in its place meanwhile is meant. The caller knows that
/// it is no link.
fn chmod(handle: &OwnedFd, mode: u32) -> Result<(), Errno> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::from_raw_mode(mode))
}

pub(super) fn violation(path: &Path, description: String, was_blocked: bool) -> Violation {
    Violation {
        kind: "RestrictedResourceAccess".to_owned(),
        resource: shown(path),
        description,
        timestamp: jiff::Timestamp::now(),
        was_blocked,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{super::tests::watched, *};
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_is_opened_by_its_handle_whatever_is_at_its_path() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, outside) = (root.path().join("w/a"), root.path().join("outside"));
        for folder in [&at, &outside] {
            fs::create_dir_all(folder.join("victim")).unwrap();
            set_mode(&folder.join("victim"), 0o077);
        }
        let handle = openat(CWD, &at, FOLDER, Mode::empty()).unwrap();
        fs::rename(&at, root.path().join("w/b")).unwrap();
        std::os::unix::fs::symlink(&outside, &at).unwrap();
        let (watched, names) = (Watched::default(), ProtectedNames::default());
        let folder = state.path();
        let mut cleaner = Cleaner {
            watched: &watched,
            names: &names,
            folder,
            into: None,
            taken: 0,
            found: Vec::new(),
            more: 0,
        };
        let (name, path) = (OsStr::new("victim"), at.join("victim"));
        let (what, kind) = (What::Closed, FileType::Directory);
        let met = Met { what, folder: handle.as_fd(), name, path: &path, kind, again: false };
        assert!(matches!(cleaner.meet(&met), Step::Reopened(_)));
        assert_eq!(mode(&root.path().join("w/b/victim")), 0o777);
        assert_eq!(mode(&outside.join("victim")), 0o077, "what is outside stays as it is");
        // It cannot be looked into even so.
        let met = Met { again: true, ..met };
        assert_eq!(cleaner.meet(&met), Step::Taken);
        assert!(!root.path().join("w/b/victim").exists() && outside.join("victim").exists());
    }

    #[test]
    fn what_cannot_be_moved_away_is_renamed_and_what_cannot_be_renamed_loses_its_rights() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = root.path();
        let watched = watched(at);
        fs::create_dir(at.join(".vscode")).unwrap();
        // Nothing can be made below a file.
        let broken = state.path().join("file");
        fs::write(&broken, "").unwrap();
        let found = settle(&watched, &ProtectedNames::default(), &broken);
        assert!(found.len() == 1 && !at.join(".vscode").exists(), "{found:?}");
        let left: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap()).collect();
        assert!(left.len() == 1 && left[0].file_name().to_str().unwrap().starts_with("haft-quarantine-"));
        assert_eq!(mode(&left[0].path()), 0);
        let handle = openat(CWD, at, FOLDER, Mode::empty()).unwrap();
        fs::write(at.join("f"), "").unwrap();
        std::os::unix::fs::symlink("f", at.join("l")).unwrap();
        let before = mode(&at.join("f"));
        disarm(handle.as_fd(), OsStr::new("l")).unwrap();
        assert!(at.join("l").symlink_metadata().is_err() && mode(&at.join("f")) == before);
        disarm(handle.as_fd(), OsStr::new("f")).unwrap();
        assert_eq!(mode(&at.join("f")), 0);
    }

    #[test]
    fn many_are_counted_and_what_is_still_there_is_listed() {
        let (watched, names) = (Watched::default(), ProtectedNames::default());
        let folder = Path::new("/state");
        let mut cleaner = Cleaner {
            watched: &watched,
            names: &names,
            folder,
            into: None,
            taken: 0,
            found: Vec::new(),
            more: 0,
        };
        (0..5000).for_each(|_| cleaner.say(Path::new("/w/.envrc"), "was moved", true));
        cleaner.say(Path::new("/w/left"), "is still there", false);
        let told = cleaner.told();
        assert_eq!(told.len(), MOST_LISTED + 1);
        assert!(told.iter().any(|told| told.resource == "/w/left"));
        let last = told.last().unwrap();
        assert!(last.description.contains("4981 more") && !last.was_blocked, "{last:?}");
    }

    #[test]
    fn shut_folders_inside_of_each_other_are_looked_into_and_shut_again() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = root.path();
        let watched = watched(at);
        fs::create_dir_all(at.join("o/i/z")).unwrap();
        fs::write(at.join("o/i/z/.envrc"), "evil").unwrap();
        let shut = [("o/i/z", 0o500), ("o/i", 0o000), ("o", 0o000), ("", 0o000)];
        for (name, mode) in shut {
            set_mode(&at.join(name), mode);
        }
        let found = settle(&watched, &ProtectedNames::default(), state.path());
        assert!(found.len() == 1 && found[0].was_blocked, "{found:?}");
        for (name, expected) in shut.into_iter().rev() {
            assert_eq!(mode(&at.join(name)), expected, "{name}");
            set_mode(&at.join(name), 0o755);
        }
        assert!(!at.join("o/i/z/.envrc").exists());
    }

    #[test]
    fn a_root_that_is_another_folder_now_is_not_looked_into() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, outside) = (root.path().join("w"), root.path().join("outside"));
        fs::create_dir(&at).unwrap();
        let watched = watched(&at);
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join(".envrc"), "mine").unwrap();
        fs::rename(&at, root.path().join("old")).unwrap();
        std::os::unix::fs::symlink(&outside, &at).unwrap();
        let found = settle(&watched, &ProtectedNames::default(), state.path());
        assert!(found.len() == 1 && !found[0].was_blocked, "{found:?}");
        assert!(outside.join(".envrc").exists());
    }
}

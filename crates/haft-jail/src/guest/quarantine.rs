//! What a guest left behind that would run programs later: found when it has ended, and taken out of the way before its
//! end is told.
//!
//! A mount can hold what is there, and no mount and no Landlock rule knows names. So what is *new* under a protected name is
//! moved into haft's state folder, which no guest reaches; where that is another file system, it gets another name in its place.
//! What has to be looked at is on record before the guest starts: where haft is killed, the next one does it.

use super::{
    host::Inner,
    links::{self, Awaited},
    mask::{self, Findings, Granted},
    survey::{self, FOLDER, Id, Met, Search, Step, What},
};
use haft_core::Violation;
use haft_guard::names::{ProtectedNames, is_harmless_git_config};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fchmod, openat, renameat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    convert::Infallible,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// What has to be looked at when a guest has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// Folders that it could write.
    roots: Vec<(PathBuf, Id)>,
    /// What was there under a protected name before it was.
    known: BTreeSet<Id>,
    /// What was hidden from it.
    skip: BTreeSet<PathBuf>,
    /// What protected names lead over.
    #[serde(default)]
    awaited: Awaited,
}

impl Watched {
    pub(crate) fn new(granted: &Granted, found: Findings) -> Self {
        let root = |path: &PathBuf| {
            let there = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
            Some((path.clone(), Id { device: there.dev(), inode: there.ino() }))
        };
        let Findings { denied, known, awaited, .. } = found;
        Watched {
            roots: granted.writable.iter().filter_map(root).collect(),
            known,
            skip: denied.into_iter().map(|denied| denied.path).collect(),
            awaited,
        }
    }
}

/// A record of a guest that may run.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The run of haft whose guest it is.
    instance: String,
    watched: Watched,
}

/// Looks at what a guest leaves. Made before it starts.
pub(super) struct Watch {
    watched: Watched,
    record: PathBuf,
    folder: PathBuf,
    names: Arc<ProtectedNames>,
}

impl Watch {
    /// Puts on record what to look at; `None` where a guest can write nothing.
    pub(super) fn begin(host: &Inner, name: &str, watched: Watched) -> io::Result<Option<Self>> {
        if watched.roots.is_empty() {
            return Ok(None);
        }
        let state = &host.options.state;
        let record = records(state).join(format!("{name}.json"));
        let text =
            serde_json::to_vec(&Record { instance: host.instance.name.clone(), watched: watched.clone() })?;
        match fs::write(&record, &text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(records(state))?;
                fs::write(&record, &text)?;
            }
            done => done?,
        }
        let names = Arc::clone(&host.options.names);
        Ok(Some(Watch { watched, record, folder: quarantine(state), names }))
    }

    /// Takes what is new out of the way. Nothing of the guest runs any more.
    pub(super) fn settle(self) -> Vec<Violation> {
        let violations = settle(&self.watched, &self.names, &self.folder);
        let _ = fs::remove_file(&self.record);
        violations
    }

    /// Forgets the record of a guest that never ran.
    pub(super) fn never_ran(self) {
        let _ = fs::remove_file(&self.record);
    }
}

fn records(state: &Path) -> PathBuf {
    state.join("watch")
}

fn quarantine(state: &Path) -> PathBuf {
    state.join("quarantine")
}

/// Takes out of the way what guests of killed runs of haft left on record. To be called at the start: jails do it, too, but not
/// every run makes one.
pub fn recover_quarantine(state: &Path, names: &ProtectedNames) -> Vec<Violation> {
    if fs::read_dir(records(state)).into_iter().flatten().next().is_none() {
        return Vec::new();
    }
    super::instance::end_dead(state);
    catch_up(state, names)
}

/// Does what runs of haft did not come to that were killed. Those whose folder is there still run, or are not ended yet.
pub(super) fn catch_up(state: &Path, names: &ProtectedNames) -> Vec<Violation> {
    let mut all = Vec::new();
    for entry in fs::read_dir(records(state)).into_iter().flatten().flatten() {
        let path = entry.path();
        let read = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        let Some(Record { instance, watched }) = read else { continue };
        if state.join("instances").join(instance).exists() {
            continue;
        }
        all.extend(settle(&watched, names, &quarantine(state)));
        let _ = fs::remove_file(&path);
    }
    all
}

fn settle(watched: &Watched, names: &ProtectedNames, folder: &Path) -> Vec<Violation> {
    let mut cleaner = Cleaner { watched, names, folder, into: None, found: Vec::new(), shut: Vec::new() };
    for (root, id) in &watched.roots {
        let is_same =
            fs::metadata(root).is_ok_and(|there| (there.dev(), there.ino()) == (id.device, id.inode));
        match is_same {
            true => {
                cleaner.look(root);
                links::changed(root, &watched.awaited, &mut |met, why| cleaner.take(met, why));
            }
            false => cleaner.say(root, "is not the folder any more that the program was granted", false),
        }
    }
    // Each was opened by its owner, who is asked only once.
    while let Some((path, mode)) = cleaner.shut.pop() {
        cleaner.look(&path);
        let _ = rustix::fs::chmod(&path, mode);
    }
    cleaner.found
}

struct Cleaner<'a> {
    watched: &'a Watched,
    names: &'a ProtectedNames,
    folder: &'a Path,
    /// Where this time's things go, once there are some.
    into: Option<(PathBuf, OwnedFd)>,
    found: Vec<Violation>,
    /// Folders that were shut, and how.
    shut: Vec<(PathBuf, Mode)>,
}

impl Cleaner<'_> {
    fn look(&mut self, root: &Path) {
        let search = Search { denied: None, protected: Some(self.names), skip: &self.watched.skip };
        let walked =
            survey::walk(root, search, &mut |met| Ok::<_, Infallible>(self.meet(met)), &mut || Ok(()));
        match walked {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    fn meet(&mut self, met: &Met<'_>) -> Step {
        let why = match met.what {
            // Nothing is denied here.
            What::Denied => return Step::Enter,
            What::Closed => return self.closed(met),
            What::Repository => {
                "git runs programs that its settings name, when its owner next uses git there"
            }
            What::Head => "it makes its folder a repository, whose settings name programs for git to run",
            What::Protected(why) => why,
        };
        let is_repository = met.what == What::Repository;
        match met.id() {
            None => return Step::Pass,
            Some(id) if self.watched.known.contains(&id) => {
                return if is_repository { Step::Enter } else { Step::Pass };
            }
            Some(_) if mask::is_harmless_state(met) => return Step::Pass,
            Some(_) if is_repository && is_harmless(met) => return Step::Pass,
            Some(_) => {}
        }
        self.take(met, why);
        Step::Pass
    }

    /// A folder that cannot be looked into. Its owner can.
    fn closed(&mut self, met: &Met<'_>) -> Step {
        let can_be_read = openat(met.folder, met.name, FOLDER, Mode::empty()).is_ok();
        let Ok(stat) = statat(met.folder, met.name, AtFlags::SYMLINK_NOFOLLOW) else { return Step::Pass };
        if can_be_read && stat.st_mode & 0o100 != 0 {
            self.take(met, "it is too deep to be looked into");
        } else if open_up(met.folder, met.name).is_ok() {
            self.shut.push((met.path.to_owned(), Mode::from_raw_mode(stat.st_mode)));
        }
        Step::Pass
    }

    fn take(&mut self, met: &Met<'_>, why: &str) {
        let shown = met.path.display();
        match self.carry_off(met) {
            Ok(to) => {
                let text = format!(
                    "the program made {shown}: {why}. haft moved it to {to}. Look at it; `mv '{to}' '{shown}'` puts it \
                     back. `tools.sandbox.unprotected_names` lets programs make it",
                    to = to.display()
                );
                self.found.push(violation(met.path, text, true));
            }
            // Somebody was faster.
            Err(Errno::NOENT) => {}
            Err(error) => self.say(
                met.path,
                &format!("was made by the program and is still there ({error}): {why}"),
                false,
            ),
        }
    }

    fn say(&mut self, path: &Path, what: &str, was_blocked: bool) {
        self.found.push(violation(path, format!("{} {what}", path.display()), was_blocked));
    }

    /// Moves something, never through a link, and says where it is now.
    fn carry_off(&mut self, met: &Met<'_>) -> Result<PathBuf, Errno> {
        let name = numbered(self.found.len(), met.name);
        let moved = self.into().and_then(|(to, into)| {
            move_there(met, into.as_fd(), &name)?;
            Ok(to.join(&name))
        });
        let moved = match moved {
            Err(Errno::XDEV) => {
                let mut name = met.name.to_owned();
                name.push(format!(".haft-quarantine-{}", short()));
                move_there(met, met.folder, &name)?;
                let to = met.path.with_file_name(&name);
                // A repository is one under any name.
                if met.kind == FileType::Directory {
                    let _ = renameat(
                        met.folder,
                        name_in(&name, "HEAD"),
                        met.folder,
                        name_in(&name, "HEAD.haft-quarantine"),
                    );
                }
                Ok(to)
            }
            done => done,
        };
        if let (Ok(to), Some((folder, _))) = (&moved, &self.into) {
            let line = serde_json::json!({"from": met.path.to_string_lossy(), "to": to.to_string_lossy()});
            let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("list.jsonl"));
            let _ = log.and_then(|mut log| io::Write::write_all(&mut log, format!("{line}\n").as_bytes()));
        }
        moved
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

fn name_in(folder: &OsStr, name: &str) -> PathBuf {
    Path::new(folder).join(name)
}

fn numbered(number: usize, name: &OsStr) -> OsString {
    let mut all = OsString::from(format!("{number}-"));
    all.push(name);
    all
}

fn short() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let now = jiff::Timestamp::now().as_second();
    format!("{now}-{}", random.get(..8).unwrap_or(&random))
}

/// Renames what was met. Its owner may first have to allow that to itself: a guest is the same user, and could forbid it.
fn move_there(met: &Met<'_>, into: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match renameat(met.folder, met.name, into, name) {
        Err(Errno::ACCESS | Errno::PERM) => {
            let before = rustix::fs::fstat(met.folder)?.st_mode;
            let _ = fchmod(met.folder, Mode::from_raw_mode(before | 0o700));
            if met.kind == FileType::Directory {
                let _ = open_up(met.folder, met.name);
            }
            let moved = renameat(met.folder, met.name, into, name);
            let _ = fchmod(met.folder, Mode::from_raw_mode(before));
            moved
        }
        done => done,
    }
}

/// Lets its owner into a folder. By its handle: nothing that is put in its place meanwhile is meant.
fn open_up(folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let handle = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::from_raw_mode(0o700))
}

/// Whether a new repository is such as `git init` and `git clone` make: nothing in it makes git run a program.
fn is_harmless(met: &Met<'_>) -> bool {
    let look = || -> Result<bool, Errno> {
        let git = openat(met.folder, met.name, FOLDER, Mode::empty())?;
        let is_there = |path: &str| statat(&git, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let never = [
            "commondir",
            "gitdir",
            "config.worktree",
            "info/attributes",
            "info/grafts",
            "modules",
            "worktrees",
        ];
        if never.into_iter().chain(["objects/info/alternates", "rebase-merge", "sequencer"]).any(is_there) {
            return Ok(false);
        }
        Ok(has_plain_config(&git)? && has_samples_only(&git)?)
    };
    look().unwrap_or(false)
}

fn has_plain_config(git: &OwnedFd) -> Result<bool, Errno> {
    const MOST: u64 = 64 << 10;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(match openat(git, "config", flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        done => done?,
    });
    let is_file = file.metadata().is_ok_and(|found| found.is_file() && found.len() <= MOST);
    let mut text = String::new();
    let read = file.take(MOST).read_to_string(&mut text);
    Ok(is_file && read.is_ok() && is_harmless_git_config(&text))
}

fn has_samples_only(git: &OwnedFd) -> Result<bool, Errno> {
    let hooks = match openat(git, "hooks", FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        done => done?,
    };
    for entry in rustix::fs::Dir::read_from(&hooks)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && !name.ends_with(b".sample") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn violation(path: &Path, description: String, was_blocked: bool) -> Violation {
    Violation {
        kind: "RestrictedResourceAccess".to_owned(),
        resource: path.display().to_string(),
        description,
        timestamp: jiff::Timestamp::now(),
        was_blocked,
    }
}

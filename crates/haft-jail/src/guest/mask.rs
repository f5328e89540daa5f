//! Which existing paths a guest must not see, and which it must not change or move.

use super::{
    links::{self, Awaited},
    survey::{self, Id, Met, Search, Seen, Step, What},
};
use haft_guard::names::{Anchoring, DeniedPaths, ProtectedNames, git_config_names, is_harmless_git_todo};
use rustix::fs::{FileType, Mode, OFlags};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::Read as _,
    mem,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Something below a granted path, as it was when it was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
    pub(crate) id: Id,
}

impl Found {
    /// What is at a path now, unless it is a link.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let id = Id { device: found.dev(), inode: found.ino() };
        (!found.is_symlink()).then(|| Found { path: path.to_owned(), is_dir: found.is_dir(), id })
    }
}

/// What a guest is granted, as paths without links in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
}

impl Granted {
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.readable.iter().chain(&self.writable)
    }
}

/// What was found below what is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// To be hidden: denied, or folders in which nobody could look for what is.
    pub(crate) denied: Vec<Found>,
    /// To be read-only: what runs programs later.
    pub(crate) fixed: Vec<Found>,
    /// To stay where it is, and be writable: repositories, and folders around what is hidden or read-only.
    pub(crate) held: Vec<Found>,
    /// Everything protected that is there before the guest is.
    pub(crate) known: BTreeSet<Seen>,
    /// What protected names lead over, and has to be as it is when the guest has ended.
    pub(crate) awaited: Awaited,
    /// Protected links.
    links: Vec<PathBuf>,
    /// Settings of git.
    settings: Vec<PathBuf>,
}

/// More entries than this are not looked at: a start must not take minutes.
const MOST_ENTRIES: usize = 2_000_000;

/// Patterns and what they were compiled to.
type Compiled = (Vec<String>, Arc<DeniedPaths>);

/// Compiles patterns, in the words of file tools. Nearly every guest has the same ones as the last, and compiling takes longer than
/// looking through a small folder.
pub(crate) fn compile(patterns: &[String]) -> Result<Arc<DeniedPaths>, String> {
    static LAST: Mutex<Option<Compiled>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, denied)) = last.as_ref().filter(|(compiled, _)| compiled == patterns) {
        return Ok(Arc::clone(denied));
    }
    let denied = DeniedPaths::new(patterns.iter().map(String::as_str), Vec::new(), Anchoring::AnyDepth);
    let denied = Arc::new(denied.map_err(|error| error.to_string())?);
    *last = Some((patterns.to_vec(), Arc::clone(&denied)));
    Ok(denied)
}

/// Looks through everything that is granted.
pub(crate) fn find(
    granted: &Granted,
    denied: &DeniedPaths,
    names: &ProtectedNames,
) -> Result<Findings, String> {
    let mut found = Findings::default();
    let mut left = MOST_ENTRIES;
    let mut count = || {
        left = left.checked_sub(1).ok_or_else(|| {
            format!(
                "there are more than {MOST_ENTRIES} files to compare with the denied patterns; grant less"
            )
        })?;
        Ok::<(), String>(())
    };
    for path in granted.all() {
        if denied.pattern(path, []).is_some() {
            return Err(format!("{} is granted, and a denied pattern matches it", path.display()));
        }
    }
    let writable = granted.writable.iter().map(|root| (root, Some(names)));
    for (root, protected) in granted.readable.iter().map(|root| (root, None)).chain(writable) {
        let search = Search { denied: Some(denied), protected, skip: &BTreeSet::new() };
        survey::walk(root, search, &mut |met| Ok(found.take(met)), &mut count)?;
    }
    found.follow(granted, &mut count)?;
    for list in [&mut found.denied, &mut found.fixed, &mut found.held] {
        list.sort();
        list.dedup();
    }
    Ok(found)
}

impl Findings {
    fn take(&mut self, met: &Met<'_>) -> Step {
        let Some(id) = met.id() else { return Step::Pass };
        let found = Found { path: met.path.to_owned(), is_dir: met.kind == FileType::Directory, id };
        match met.what {
            What::Denied | What::Closed => self.denied.push(found),
            What::Repository => {
                self.known.extend(met.seen());
                // A folder that is not there could be made; an empty one means the same to git.
                let _ = rustix::fs::openat(
                    met.folder,
                    met.name,
                    super::survey::FOLDER,
                    rustix::fs::Mode::empty(),
                )
                .and_then(|git| rustix::fs::mkdirat(git, "hooks", rustix::fs::Mode::from_raw_mode(0o755)));
                self.held.push(found);
                return Step::Enter;
            }
            What::Head => {
                // What commits to it write is as before; only that it is a repository is known.
                self.known.extend(met.seen());
            }
            // Git goes on with it; what a guest makes of it is looked at when it has ended.
            What::Protected(_) if is_harmless_state(met) => {}
            What::Protected(_) => {
                self.known.extend(met.seen());
                let is_settings = ["config", "config.worktree", ".gitconfig"]
                    .iter()
                    .any(|name| met.name == OsStr::new(name));
                if is_settings {
                    self.settings.push(met.path.to_owned());
                }
                match met.kind {
                    // What a link leads to is what runs; the link itself cannot be held.
                    FileType::Symlink => self.links.push(met.path.to_owned()),
                    _ => self.fixed.push(found),
                }
            }
        }
        Step::Pass
    }

    /// Adds what protected names lead to.
    fn follow(
        &mut self,
        granted: &Granted,
        count: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let folders =
            self.fixed.iter().filter(|fixed| fixed.is_dir).map(|fixed| fixed.path.clone()).collect();
        let mut leads = Leads {
            granted,
            count,
            targets: BTreeSet::new(),
            awaited: Awaited::new(),
            folders,
            settings: BTreeSet::new(),
        };
        for link in mem::take(&mut self.links) {
            leads.lead(&link, &link);
        }
        for file in mem::take(&mut self.settings) {
            let bases = file.parent().map(bases).unwrap_or_default();
            leads.settings(&file, &bases, 0);
        }
        leads.search()?;
        let Leads { targets, awaited, .. } = leads;
        self.awaited = awaited;
        let is_fixed = |path: &Path| self.fixed.iter().any(|fixed| path.starts_with(&fixed.path));
        let targets: Vec<Found> = targets.into_iter().filter(|target| !is_fixed(&target.path)).collect();
        let around = folders_around(targets.iter().map(|target| &*target.path), &granted.writable);
        self.fixed.extend(targets);
        // Inside of something fixed nothing can be moved, and a mount of its own would be writable.
        let is_fixed = |path: &Path| self.fixed.iter().any(|fixed| path.starts_with(&fixed.path));
        let around: Vec<Found> =
            around.iter().filter(|path| !is_fixed(path)).filter_map(|path| Found::at(path)).collect();
        self.held.extend(around);
        Ok(())
    }
}

/// What protected names lead to by links and settings. All of it is fixed, and the folders around it stay where they are: its own
/// name says nothing, so that another thing in its place would not be noticed.
struct Leads<'a> {
    granted: &'a Granted,
    count: &'a mut dyn FnMut() -> Result<(), String>,
    targets: BTreeSet<Found>,
    awaited: Awaited,
    /// Folders whose links are still to be followed.
    folders: Vec<PathBuf>,
    /// Settings that were read.
    settings: BTreeSet<PathBuf>,
}

/// What git runs out of a folder of hooks.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

impl Leads<'_> {
    fn is_writable(&self, path: &Path) -> bool {
        self.granted.writable.iter().any(|root| path != root.as_path() && path.starts_with(root))
    }

    /// Follows a path; `around` is where it is named, and cannot be below what is fixed. `false` where that would be so.
    fn lead(&mut self, path: &Path, around: &Path) -> bool {
        let led = links::follow(path);
        let awaited: Vec<_> = led.awaited.into_iter().filter(|(path, _)| self.is_writable(&path.0)).collect();
        self.awaited.extend(awaited);
        let Some(real) = led.real else { return true };
        if around.starts_with(&real) {
            return false;
        }
        if let Some(found) =
            Some(&real).filter(|real| self.is_writable(real)).and_then(|real| Found::at(real))
        {
            if found.is_dir {
                self.folders.push(real);
            }
            self.targets.insert(found);
        }
        true
    }

    /// Follows the links in folders, and what those lead to.
    fn search(&mut self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        while let Some(folder) = self.folders.pop() {
            if !seen.insert(folder.clone()) {
                continue;
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                (self.count)()?;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => self.folders.push(entry.path()),
                    Ok(kind) if kind.is_symlink() => {
                        self.lead(&entry.path(), &entry.path());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// What a repository's settings name: hooks that are kept elsewhere, included settings, programs.
    fn settings(&mut self, file: &Path, bases: &[PathBuf], depth: usize) {
        const MOST: u64 = 1 << 20;
        const MOST_DEPTH: usize = 10;
        let Some(folder) = file.parent().filter(|_| depth < MOST_DEPTH) else { return };
        if !self.settings.insert(file.to_owned()) {
            return;
        }
        let mut text = Vec::new();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let Ok(opened) = rustix::fs::openat(rustix::fs::CWD, file, flags, Mode::empty()) else { return };
        let opened = fs::File::from(opened);
        let is_file = opened.metadata().is_ok_and(|found| found.is_file());
        if !is_file || opened.take(MOST).read_to_end(&mut text).is_err() {
            return;
        }
        let names = git_config_names(&String::from_utf8_lossy(&text));
        let mut bases = bases.to_vec();
        bases.extend(names.worktree.map(|tree| folder.join(tree)));
        for path in &names.paths {
            for base in &bases {
                let path = base.join(at_home(path));
                if !self.lead(&path, file) {
                    // The folder is one of everything; of that only the hooks are fixed.
                    for hook in HOOKS {
                        self.lead(&path.join(hook), file);
                    }
                }
            }
        }
        for path in &names.includes {
            let path = folder.join(at_home(path));
            self.lead(&path, file);
            if let Ok(real) = fs::canonicalize(&path) {
                self.settings(&real, &bases, depth + 1);
            }
        }
        for word in &names.words {
            for base in &bases {
                let path = base.join(at_home(word));
                let real = fs::canonicalize(&path).ok().filter(|real| real.is_file());
                if real.is_some_and(|real| !bases.iter().any(|git| is_written_by_git(&real, git))) {
                    self.lead(&path, file);
                }
            }
        }
    }
}

fn at_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Whether a path is what commits and branches write in a repository: a word such as `HEAD` is no program.
fn is_written_by_git(real: &Path, git: &Path) -> bool {
    let Ok(git) = fs::canonicalize(git) else { return false };
    let Ok(inside) = real.strip_prefix(&git) else { return false };
    if !git.join("HEAD").is_file() {
        return false;
    }
    let first = inside.iter().next().and_then(OsStr::to_str).unwrap_or_default();
    let is_state = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_state || ["refs", "logs", "objects", "index", "packed-refs", "shallow", "info"].contains(&first)
}

/// Where the settings of a repository start to look: its own folder, the one around it, and its other work trees.
fn bases(git: &Path) -> Vec<PathBuf> {
    let mut bases = vec![git.to_owned()];
    bases.extend(git.parent().map(Path::to_owned));
    for tree in fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten() {
        let link = fs::read_to_string(tree.path().join("gitdir")).unwrap_or_default();
        bases.extend(Path::new(link.trim()).parent().filter(|tree| tree.is_absolute()).map(Path::to_owned));
    }
    bases
}

/// Whether this is the state of a rebase, a cherry-pick or a series of patches that runs no program when it goes on.
pub(crate) fn is_harmless_state(met: &Met<'_>) -> bool {
    let is_state =
        ["rebase-merge", "rebase-apply", "sequencer"].iter().any(|name| met.name == OsStr::new(name));
    is_state && met.kind == FileType::Directory && has_harmless_files(met).unwrap_or(false)
}

fn has_harmless_files(met: &Met<'_>) -> Result<bool, rustix::io::Errno> {
    const MOST: u64 = 4 << 20;
    let folder = rustix::fs::openat(met.folder, met.name, survey::FOLDER, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes().to_ascii_lowercase();
        if name == b"." || name == b".." {
            continue;
        }
        let file = fs::File::from(rustix::fs::openat(&folder, entry.file_name(), flags, Mode::empty())?);
        let is_plain = file.metadata().is_ok_and(|found| found.is_file() && found.len() < MOST);
        let mut text = Vec::new();
        if !is_plain || file.take(MOST).read_to_end(&mut text).is_err() {
            return Ok(false);
        }
        let text = String::from_utf8_lossy(&text);
        let is_harmless = match &*name {
            b"git-rebase-todo" | b"todo" => is_harmless_git_todo(&text),
            // Git runs `git-merge-` with this behind it.
            b"strategy" => {
                ["", "ort", "recursive", "resolve", "octopus", "ours", "subtree"].contains(&text.trim())
            }
            b"opts" => !text.to_ascii_lowercase().contains("strategy"),
            _ => true,
        };
        if !is_harmless {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The folders that have to stay where they are, so that these paths do: all that are between a path and a root in which
/// they could be moved.
pub(crate) fn folders_around<'a>(
    paths: impl Iterator<Item = &'a Path>,
    writable: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let mut around = BTreeSet::new();
    for path in paths {
        for root in writable.iter().filter(|root| path.starts_with(root) && path != root.as_path()) {
            let between = path.ancestors().skip(1).take_while(|folder| *folder != root.as_path());
            around.extend(between.map(Path::to_owned));
        }
    }
    around
}

/// Whether a path is another, or below it.
pub(crate) fn is_within(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn make(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn findings(root: &Path, patterns: &[&str]) -> Findings {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let granted = Granted { readable: Vec::new(), writable: vec![root.to_owned()] };
        find(&granted, &compile(&patterns).unwrap(), &ProtectedNames::default()).unwrap()
    }

    fn below(root: &Path, found: &[Found]) -> Vec<String> {
        found.iter().map(|found| found.path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn patterns_find_names_anywhere_and_paths_at_any_depth() {
        let files = [
            ".env",
            "a/.ENV",
            "a/b.key",
            "a/secrets/one",
            "secrets/two",
            "env",
            "a/.env.example",
            "a/.ssh/config",
        ];
        let root = make(&files);
        for (patterns, expected) in [
            (vec![".env"], vec![".env", "a/.ENV"]),
            (vec!["*.key"], vec!["a/b.key"]),
            (vec!["secrets/"], vec!["a/secrets", "secrets"]),
            (vec!["a/secrets/one"], vec!["a/secrets/one"]),
            (vec!["**/.env*"], vec![".env", "a/.ENV", "a/.env.example"]),
            (vec!["**/.ssh/**"], vec!["a/.ssh"]),
            (vec!["nothing"], vec![]),
        ] {
            assert_eq!(
                below(root.path(), &findings(root.path(), &patterns).denied),
                expected,
                "{patterns:?}"
            );
        }
    }

    #[test]
    fn what_is_granted_and_denied_at_once_is_refused() {
        let root = make(&[".env"]);
        let granted = Granted { readable: Vec::new(), writable: vec![root.path().join(".env")] };
        let names = ProtectedNames::default();
        assert!(find(&granted, &compile(&[".env".to_owned()]).unwrap(), &names).is_err());
        assert!(compile(&["a[".to_owned()]).is_err());
    }

    #[test]
    fn what_runs_later_is_found_in_repositories_of_every_kind() {
        let root = make(&[
            ".git/HEAD",
            ".git/config",
            ".git/objects/ab/cd",
            ".git/objects/info/alternates",
            ".git/refs/heads/config",
            ".git/modules/lib/HEAD",
            ".git/modules/lib/config",
            ".git/modules/lib/objects/x",
            ".git/modules/lib/refs/x",
            ".git/worktrees/w/HEAD",
            ".git/worktrees/w/commondir",
            "bare/HEAD",
            "bare/config",
            "bare/objects/x",
            "bare/refs/x",
            "sub/.git",
            "sub/.envrc",
            ".vscode/tasks.json",
            "node_modules/p/.vscode/tasks.json",
            "config",
            "HEAD",
        ]);
        let found = findings(root.path(), &[]);
        let fixed = below(root.path(), &found.fixed);
        let expected = [
            ".git/config",
            ".git/hooks",
            ".git/modules/lib/config",
            ".git/objects/info/alternates",
            ".git/worktrees/w/commondir",
            ".vscode",
            "bare/config",
            "sub/.envrc",
            "sub/.git",
        ];
        assert_eq!(fixed, expected);
        assert_eq!(below(root.path(), &found.held), [".git"]);
        assert_eq!(found.known.len(), expected.len() + 2, "with .git and the head of the bare one");
    }

    #[test]
    fn folders_that_cannot_be_looked_into_are_hidden() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = make(&["shut/.env", "listed/.env", "open/x"]);
        for (name, mode) in [("shut", 0o000), ("listed", 0o444)] {
            fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut deep = root.path().join("deep");
        for _ in 0..140 {
            deep.push("d");
        }
        fs::create_dir_all(deep).unwrap();
        let found = findings(root.path(), &[".env"]);
        let denied = below(root.path(), &found.denied);
        // root reads what nobody may.
        let is_root = rustix::process::geteuid().is_root();
        let first = if is_root { ["listed/.env", "shut/.env"] } else { ["listed", "shut"] };
        assert_eq!(denied.len(), 3, "{denied:?}");
        assert!(denied[0].starts_with("deep/d/d/"), "{denied:?}");
        assert_eq!(denied[1..], first);
        for name in ["shut", "listed"] {
            fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn folders_between_a_path_and_its_root_are_held() {
        let roots = [PathBuf::from("/w"), PathBuf::from("/w/a/b")];
        let held = folders_around(
            [Path::new("/w/a/b/c/d"), Path::new("/w/x"), Path::new("/else/y")].into_iter(),
            &roots,
        );
        assert_eq!(held.into_iter().collect::<Vec<_>>(), ["/w/a", "/w/a/b", "/w/a/b/c"].map(PathBuf::from));
    }
}

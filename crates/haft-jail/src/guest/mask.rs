//! Which existing paths a guest must not see, and which it must not change or move.

use super::{
    denied_links::DeniedLinks,
    git_plain::is_harmless_state,
    leads::{self, Leads},
    links::Awaited,
    other_names,
    staging::Writer,
    survey::{self, Id, Met, Search, Seen, Step, What},
};
use haft_guard::names::{Anchoring, DeniedPaths, ProtectedNames};
use rustix::fs::FileType;
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, mem,
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
    /// Of those, folders that hold too much to be hidden one by one.
    pub(crate) whole: Vec<PathBuf>,
    /// To be read-only: what runs programs later.
    pub(crate) fixed: Vec<Found>,
    /// To stay where it is, and be writable: repositories, and folders around what is hidden or read-only.
    pub(crate) held: Vec<Found>,
    /// Everything protected that is there before the guest is.
    pub(crate) known: BTreeSet<Seen>,
    /// What protected names lead over, and has to be as it is when the guest has ended.
    pub(crate) awaited: Awaited,
    /// The first thing that a layer cannot hold, where that was looked for.
    pub(crate) foreign: Option<PathBuf>,
    /// Links under denied names.
    pub(crate) hiding: DeniedLinks,
    denied_links: Vec<PathBuf>,
    /// Protected links.
    links: Vec<PathBuf>,
    /// Settings of git.
    settings: Vec<PathBuf>,
}

/// More entries than this are not looked at: a start must not take minutes.
const MOST_ENTRIES: usize = 2_000_000;

/// Patterns and what they were compiled to.
type Compiled = (Vec<String>, Arc<DeniedPaths>);

/// Compiles patterns, in the words of file tools. Nearly every guest has the same ones as the last, and compiling takes
/// longer than looking through a small folder.
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
    look(granted, denied, Some(names), None)
}

/// Looks through everything that is granted to a guest whose writes are kept apart: what it must not see, and what of
/// it a layer cannot hold.
pub(crate) fn find_staged(
    granted: &Granted,
    denied: &DeniedPaths,
    writer: Option<Writer>,
) -> Result<Findings, String> {
    look(granted, denied, None, writer)
}

fn look(
    granted: &Granted,
    denied: &DeniedPaths,
    names: Option<&ProtectedNames>,
    writer: Option<Writer>,
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
    let writable = granted.writable.iter().map(|root| (root, names, writer));
    for (root, protected, writer) in granted.readable.iter().map(|root| (root, None, None)).chain(writable) {
        let search = Search { denied: Some(denied), protected, writer, skip: &BTreeSet::new() };
        survey::walk(root, search, &mut |met| Ok(found.take(met)), &mut count)?;
    }
    for link in mem::take(&mut found.denied_links) {
        found.hiding.add(&link, granted);
    }
    let others = other_names::find(granted, &found.denied, &found.fixed, &mut count)?;
    found.denied.extend(others.denied);
    found.follow(granted, others.fixed, &mut count)?;
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
            What::Denied if met.kind == FileType::Symlink => self.denied_links.push(found.path),
            What::Denied | What::Closed => self.denied.push(found),
            What::Foreign => drop(self.foreign.get_or_insert(found.path)),
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

    /// Adds what protected names lead to, and other names of it.
    fn follow(
        &mut self,
        granted: &Granted,
        others: Vec<Found>,
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
            let bases = file.parent().map(leads::bases).unwrap_or_default();
            leads.settings(&file, &bases, 0);
        }
        leads.search()?;
        let Leads { targets, awaited, .. } = leads;
        self.awaited = awaited;
        let is_fixed = |path: &Path| self.fixed.iter().any(|fixed| path.starts_with(&fixed.path));
        let targets: Vec<Found> =
            targets.into_iter().chain(others).filter(|target| !is_fixed(&target.path)).collect();
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

/// The folders that have to stay where they are, so that these paths do: all that are between a path and a root in
/// which they could be moved.
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

//! What protected names lead to, by links and by settings of git.

use super::{
    links::{self, Awaited, Was},
    mask::{Found, Granted},
};
use haft_guard::names::git_config_names;
use rustix::fs::{Mode, OFlags};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// What protected names lead to by links and settings. All of it is fixed, and the folders around it stay where they
/// are: its own name says nothing, so that another thing in its place would not be noticed.
pub(super) struct Leads<'a> {
    pub(super) granted: &'a Granted,
    pub(super) count: &'a mut dyn FnMut() -> Result<(), String>,
    pub(super) targets: BTreeSet<Found>,
    pub(super) awaited: Awaited,
    /// Folders whose links are still to be followed.
    pub(super) folders: Vec<PathBuf>,
    /// Settings that were read.
    pub(super) settings: BTreeSet<PathBuf>,
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

    /// Follows a path; `around` is where it is named, and cannot be below what is fixed. `false` where that would be
    /// so.
    pub(super) fn lead(&mut self, path: &Path, around: &Path) -> bool {
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

    /// A file that a command names and that is not there: made later, it would be run.
    fn await_file(&mut self, path: &Path, bases: &[PathBuf]) {
        for (path, was) in links::follow(path).awaited {
            let is_gits = bases.iter().any(|git| is_written_by_git(&path.0, git));
            if self.is_writable(&path.0) && !is_gits {
                let was = if was == Was::Nothing { Was::NoFile } else { was };
                self.awaited.entry(path).or_insert(was);
            }
        }
    }

    /// Follows the links in folders, and what those lead to.
    pub(super) fn search(&mut self) -> Result<(), String> {
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
    pub(super) fn settings(&mut self, file: &Path, bases: &[PathBuf], depth: usize) {
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
        let words = names.words.iter().map(|word| (word, could_be_program(word)));
        // What an interpreter runs is a file, whatever it is called.
        let scripts = names.scripts.iter().map(|script| (script, true));
        for (word, may_come) in words.chain(scripts) {
            for base in &bases {
                let path = base.join(at_home(word));
                match fs::canonicalize(&path) {
                    Ok(real) if real.is_file() && !bases.iter().any(|git| is_written_by_git(&real, git)) => {
                        self.lead(&path, file);
                    }
                    Err(_) if may_come => self.await_file(&path, &bases),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
}

/// Whether a word of a command could be a file of the project that is not there yet. Most words are names of commands
/// and branches, which are looked for elsewhere: what has neither a folder nor an ending is not taken for a file,
/// unless an interpreter would run it.
fn could_be_program(word: &str) -> bool {
    let has_ending = || {
        let (stem, ending) = word.rsplit_once('.').unwrap_or_default();
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    !word.starts_with('-') && !word.ends_with('/') && (word.contains('/') || has_ending())
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
pub(super) fn bases(git: &Path) -> Vec<PathBuf> {
    let mut bases = vec![git.to_owned()];
    bases.extend(git.parent().map(Path::to_owned));
    for tree in fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten() {
        let link = fs::read_to_string(tree.path().join("gitdir")).unwrap_or_default();
        bases.extend(Path::new(link.trim()).parent().filter(|tree| tree.is_absolute()).map(Path::to_owned));
    }
    bases
}

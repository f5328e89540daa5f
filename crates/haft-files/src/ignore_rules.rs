//! What `.gitignore`, `.ignore` and `.git/info/exclude` leave out.

use super::{
    folder::Folder,
    jail::{PathJail, Spot},
};
use haft_sdk::files::Kind;
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use std::{
    ffi::{OsStr, OsString},
    io::Read as _,
    path::Path,
    sync::Arc,
};

/// The largest ignore file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The rules that hold in a folder: its own, and those of the folders above.
#[derive(Clone, Default)]
pub(crate) struct Rules(Option<Arc<Level>>);

struct Level {
    above: Rules,
    /// From `.ignore`: stronger than all of git's.
    own: Option<Gitignore>,
    /// From `.gitignore`, or `.git/info/exclude`.
    git: Option<Gitignore>,
    /// Whether a repository starts here: git's rules above do not reach into it.
    starts_repository: bool,
}

impl Rules {
    /// The rules of the folders above a spot, as far up as its root.
    pub(crate) fn above(jail: &PathJail, spot: &Spot) -> Self {
        let mut way = Vec::new();
        let mut at = spot.parent();
        while let Some(folder) = at {
            at = folder.parent();
            way.push(folder);
        }
        let mut rules = Rules::default();
        for spot in way.iter().rev() {
            let Ok(folder) = jail.folder_at(spot) else { continue };
            let mut entries = Vec::new();
            for name in [".ignore", ".gitignore", ".git"] {
                let name = OsString::from(name);
                if let Ok(entry) = folder.entry(&name) {
                    entries.push((name, Some(entry.kind)));
                }
            }
            rules = rules.enter(&folder, &jail.full(spot), &entries);
        }
        rules
    }

    /// The rules that hold inside a folder with these entries.
    pub(crate) fn enter(&self, folder: &Folder, path: &Path, entries: &[(OsString, Option<Kind>)]) -> Rules {
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        let starts_repository = has(".git");
        if !starts_repository && !has(".ignore") && !has(".gitignore") {
            return self.clone();
        }
        let own = has(".ignore").then(|| read(folder, path, &[".ignore"])).flatten();
        let mut git = Vec::new();
        if has(".gitignore") {
            git.push(".gitignore");
        }
        // The repository's own list is weaker than its `.gitignore`: a later line wins, so it comes first.
        if starts_repository {
            git.insert(0, ".git/info/exclude");
        }
        let git = if git.is_empty() { None } else { read(folder, path, &git) };
        Rules(Some(Arc::new(Level { above: self.clone(), own, git, starts_repository })))
    }

    /// Whether nothing is ever left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether something is left out.
    pub(crate) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let mut git_verdict = None;
        let mut git_reaches = true;
        let mut at = self;
        while let Some(level) = &at.0 {
            if let Some(verdict) = level.own.as_ref().and_then(|rules| verdict(rules, path, is_folder)) {
                return verdict;
            }
            if git_reaches && git_verdict.is_none() {
                git_verdict = level.git.as_ref().and_then(|rules| verdict(rules, path, is_folder));
            }
            git_reaches &= !level.starts_repository;
            at = &level.above;
        }
        git_verdict.unwrap_or(false)
    }
}

fn verdict(rules: &Gitignore, path: &Path, is_folder: bool) -> Option<bool> {
    match rules.matched(path, is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Reads ignore files of a folder. One that cannot be read, and a line that means nothing, leaves nothing out.
fn read(folder: &Folder, path: &Path, names: &[&str]) -> Option<Gitignore> {
    let mut rules = GitignoreBuilder::new(path);
    for name in names {
        let mut text = Vec::new();
        let Ok(file) = read_name(folder, name) else { continue };
        if file.take(MOST_BYTES).read_to_end(&mut text).is_err() {
            continue;
        }
        for line in String::from_utf8_lossy(&text).lines() {
            let _ = rules.add_line(None, line);
        }
    }
    rules.build().ok().filter(|rules| !rules.is_empty())
}

fn read_name(folder: &Folder, name: &str) -> std::io::Result<std::fs::File> {
    match name.rsplit_once('/') {
        None => folder.read(OsStr::new(name)),
        Some((inner, name)) => {
            folder.folder(Path::new(inner), super::folder::Opener::best())?.read(OsStr::new(name))
        }
    }
}

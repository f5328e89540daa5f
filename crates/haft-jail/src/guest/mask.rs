//! Which existing paths a guest must not see, or must not change.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Something below a granted path that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
}

/// More entries than this are not looked at: a start must not take minutes.
const MOST_ENTRIES: usize = 2_000_000;

/// Compiles patterns. One without a slash matches a name anywhere; one that starts with a slash is a path of the
/// machine; others are relative to each granted path.
pub(crate) fn compile(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_end_matches('/');
        let anchored = match pattern {
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            name if !name.contains('/') => format!("**/{name}"),
            relative => format!("**/{relative}"),
        };
        let glob = GlobBuilder::new(&anchored).literal_separator(true).backslash_escape(true).build();
        set.add(glob.map_err(|error| format!("the denied pattern `{pattern}` is not one: {error}"))?);
    }
    set.build().map_err(|error| format!("the denied patterns cannot be used: {error}"))
}

/// Every existing match below the granted paths. Links are not followed: where they lead is granted, or not there.
pub(crate) fn find(granted: &[PathBuf], patterns: &GlobSet) -> Result<Vec<Denied>, String> {
    let mut found = Vec::new();
    if patterns.is_empty() {
        return Ok(found);
    }
    let mut left = MOST_ENTRIES;
    let mut folders: Vec<PathBuf> = Vec::new();
    for path in granted {
        if patterns.is_match(path) {
            return Err(format!("{} is granted, and a denied pattern matches it", path.display()));
        }
        if path.is_dir() {
            folders.push(path.clone());
        }
    }
    while let Some(folder) = folders.pop() {
        // A folder that haft cannot read, its guest cannot read either: it is the same user.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            left = left.checked_sub(1).ok_or_else(|| {
                format!(
                    "there are more than {MOST_ENTRIES} files to compare with the denied patterns; grant less"
                )
            })?;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if patterns.is_match(&path) {
                if !kind.is_symlink() {
                    found.push(Denied { path, is_dir: kind.is_dir() });
                }
            } else if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup();
    Ok(found)
}

/// What in a repository runs on its owner's behalf, and so must not be written: `.git` itself must stay where it is,
/// hooks and settings must stay as they are. First those to be held in place, then those to be read-only.
pub(crate) fn repository(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let git = root.join(".git");
    if git.is_file() {
        // A worktree or submodule: the file says where the repository is.
        return (Vec::new(), vec![git]);
    }
    if !git.is_dir() {
        return (Vec::new(), Vec::new());
    }
    // A folder that is not there could be made; an empty one means the same to git.
    let _ = fs::create_dir(git.join("hooks"));
    let fixed = ["hooks", "config", "config.worktree"].map(|name| git.join(name));
    (vec![git], fixed.into_iter().filter(|path| path.exists()).collect())
}

/// Whether a path is another, or below it.
pub(crate) fn is_within(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn found(patterns: &[&str], files: &[&str]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let patterns = compile(&patterns).unwrap();
        let found = find(&[root.path().to_owned()], &patterns).unwrap();
        let relative = |denied: Denied| denied.path.strip_prefix(root.path()).unwrap().display().to_string();
        found.into_iter().map(relative).collect()
    }

    #[test]
    fn patterns_find_names_anywhere_and_paths_at_any_depth() {
        let files = [".env", "a/.env", "a/b.key", "a/secrets/one", "secrets/two", "env", "a/.env.example"];
        for (patterns, expected) in [
            (vec![".env"], vec![".env", "a/.env"]),
            (vec!["*.key"], vec!["a/b.key"]),
            (vec!["secrets/"], vec!["a/secrets", "secrets"]),
            (vec!["a/secrets/one"], vec!["a/secrets/one"]),
            (vec!["**/.env*"], vec![".env", "a/.env", "a/.env.example"]),
            (vec!["nothing"], vec![]),
        ] {
            assert_eq!(found(&patterns, &files), expected, "{patterns:?}");
        }
    }

    #[test]
    fn what_is_granted_and_denied_at_once_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let granted = root.path().join(".env");
        fs::write(&granted, "").unwrap();
        assert!(find(&[granted], &compile(&[".env".to_owned()]).unwrap()).is_err());
        assert!(compile(&["a[".to_owned()]).is_err());
    }
}

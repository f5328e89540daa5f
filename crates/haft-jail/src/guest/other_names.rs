//! Other names of files that are hidden or held. A mount covers a name, and a hard link that was made before the file
//! was protected is another one.

use super::mask::{Found, Granted};
use super::survey::Id;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The other names that were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OtherNames {
    /// Of what is hidden.
    pub(super) denied: Vec<Found>,
    /// Of what is read-only.
    pub(super) fixed: Vec<Found>,
}

/// Looks for other names of these files, and of files in these folders. Everything granted is looked through only where
/// one of them has another name at all.
pub(super) fn find(
    granted: &Granted,
    denied: &[Found],
    fixed: &[Found],
    count: &mut dyn FnMut() -> Result<(), String>,
) -> Result<OtherNames, String> {
    let hidden = linked(denied, count)?;
    let held = linked(fixed, count)?;
    let mut others = OtherNames::default();
    if hidden.is_empty() && held.is_empty() {
        return Ok(others);
    }
    let is_in = |list: &[Found], path: &Path| list.iter().any(|found| path.starts_with(&found.path));
    for root in granted.all() {
        let mut meet = |path: PathBuf, id: Id, _: u64| {
            if hidden.contains(&id) && !is_in(denied, &path) {
                others.denied.push(Found { path, is_dir: false, id });
            } else if held.contains(&id) && !is_in(fixed, &path) {
                others.fixed.push(Found { path, is_dir: false, id });
            }
        };
        each_file(root, &mut meet, count)?;
    }
    Ok(others)
}

/// The files among these, and in the folders among these, that have more than one name.
fn linked(found: &[Found], count: &mut dyn FnMut() -> Result<(), String>) -> Result<BTreeSet<Id>, String> {
    let mut linked = BTreeSet::new();
    for found in found {
        let mut meet = |_: PathBuf, id: Id, names: u64| {
            if names > 1 {
                linked.insert(id);
            }
        };
        each_file(&found.path, &mut meet, count)?;
    }
    Ok(linked)
}

/// Calls `meet` with each file at or below a path, following no link. What cannot be looked into is hidden whole, and
/// so is what is too deep.
fn each_file(
    start: &Path,
    meet: &mut dyn FnMut(PathBuf, Id, u64),
    count: &mut dyn FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let mut waiting = vec![start.to_owned()];
    while let Some(path) = waiting.pop() {
        count()?;
        let Ok(there) = fs::symlink_metadata(&path) else { continue };
        if there.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.filter(|entry| !is_link(entry)).map(|entry| entry.path()));
        } else if there.is_file() {
            meet(path, Id { device: there.dev(), inode: there.ino() }, there.nlink());
        }
    }
    Ok(())
}

fn is_link(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_outside_of_what_is_hidden_or_held_are_found() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        for folder in ["hidden", "held", "a/b"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        for (name, other) in
            [("hidden/x", "a/x"), ("held/y", "a/b/y"), (".envrc", "z"), ("held/in", "held/twice")]
        {
            fs::write(at.join(name), "").unwrap();
            fs::hard_link(at.join(name), at.join(other)).unwrap();
        }
        let granted = Granted { readable: Vec::new(), writable: vec![at.to_owned()] };
        let found = |name: &str| Found::at(&at.join(name)).unwrap();
        let count = &mut || Ok(());
        let others = find(&granted, &[found("hidden")], &[found("held"), found(".envrc")], count).unwrap();
        let mut fixed = others.fixed;
        fixed.sort();
        assert_eq!((others.denied, fixed), (vec![found("a/x")], vec![found("a/b/y"), found("z")]));
        fs::remove_file(at.join("a/x")).unwrap();
        let none = find(&granted, &[found("hidden")], &[], count).unwrap();
        assert_eq!(none, OtherNames::default());
    }
}

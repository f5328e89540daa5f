//! How much is hidden one by one. Each mask is a mount, and a start with very many of them takes seconds: then a folder
//! is hidden whole.

use super::mask::{Found, Granted};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// More masks than this are not made.
pub(crate) const MOST_MASKS: usize = 1_000;

/// Folders to hide whole, so that no more than `most` are hidden: as few of the other files with them as can be. An
/// error where what is denied is in a granted folder itself, which cannot be hidden. The paths have no path in another.
pub(crate) fn whole_folders(
    denied: &[Found],
    granted: &Granted,
    most: usize,
) -> Result<Vec<PathBuf>, String> {
    let mut left: Vec<&Path> = denied.iter().map(|denied| &*denied.path).collect();
    let mut whole: Vec<PathBuf> = Vec::new();
    while left.len() + whole.len() > most {
        let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
        for path in &left {
            for folder in path.ancestors().skip(1).take_while(|folder| can_be_hidden(folder, granted)) {
                *counts.entry(folder).or_default() += 1;
            }
        }
        let over = left.len() + whole.len() - most;
        // The smallest that is enough, or else the largest; of two with the same the deeper one.
        let depth = |folder: &Path| folder.components().count();
        let enough = counts.iter().filter(|(_, count)| **count > over);
        let enough = enough.min_by_key(|(folder, count)| (**count, usize::MAX - depth(folder)));
        let largest = || {
            counts
                .iter()
                .filter(|(_, count)| **count > 1)
                .max_by_key(|(folder, count)| (**count, depth(folder)))
        };
        let Some((folder, _)) = enough.or_else(largest) else { return Err(too_many(&left, most)) };
        let folder = folder.to_path_buf();
        left.retain(|path| !path.starts_with(&folder));
        whole.retain(|inner| !inner.starts_with(&folder));
        whole.push(folder);
    }
    Ok(whole)
}

/// Whether a folder is inside of what is granted, and nothing that is granted is in it.
pub(crate) fn can_be_hidden(folder: &Path, granted: &Granted) -> bool {
    granted.all().any(|root| folder != root && folder.starts_with(root))
        && !granted.all().any(|root| root.starts_with(folder))
}

fn too_many(left: &[&Path], most: usize) -> String {
    let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
    left.iter().filter_map(|path| path.parent()).for_each(|folder| *counts.entry(folder).or_default() += 1);
    let (folder, count) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or((Path::new("/"), 0));
    format!(
        "{} holds {count} files that denied patterns hide, and at most {most} can be hidden one by one; move them into a folder of their \
         own, which haft then hides whole, or remove the pattern that names them from `tools.files.denied_patterns`",
        folder.display()
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::guest::survey::Id;

    fn denied(groups: &[(&str, usize)]) -> Vec<Found> {
        let one = |path: String| Found { path: path.into(), is_dir: false, id: Id { device: 1, inode: 1 } };
        groups
            .iter()
            .flat_map(|(folder, count)| (0..*count).map(move |n| one(format!("{folder}/{n}.pem"))))
            .collect()
    }

    fn granted(roots: &[&str]) -> Granted {
        Granted { readable: Vec::new(), writable: roots.iter().map(PathBuf::from).collect() }
    }

    #[test]
    fn the_smallest_folder_that_is_enough_is_hidden_whole() {
        let roots = granted(&["/w"]);
        for (groups, expected) in [
            (vec![("/w", 10)], vec![]),
            (vec![("/w/a", 10), ("/w", 1)], vec!["/w/a"]),
            (vec![("/w/src", 3), ("/w/src/spam", 11)], vec!["/w/src/spam"]),
            (vec![("/w/src/spam/1", 6), ("/w/src/spam/2", 6), ("/w/src", 1)], vec!["/w/src/spam/1"]),
            (vec![("/w/a", 20), ("/w/b", 20), ("/w/c", 5)], vec!["/w/a", "/w/b"]),
        ] {
            let mut whole = whole_folders(&denied(&groups), &roots, 10).unwrap();
            whole.sort();
            assert_eq!(whole, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{groups:?}");
        }
        let one_each: Vec<String> = (0..12).map(|n| format!("/w/spam/{n}")).collect();
        let one_each: Vec<_> = one_each.iter().map(|folder| (&**folder, 1)).collect();
        assert_eq!(whole_folders(&denied(&one_each), &roots, 10).unwrap(), [PathBuf::from("/w/spam")]);
    }

    #[test]
    fn what_is_granted_is_never_hidden() {
        let error = whole_folders(&denied(&[("/w", 11)]), &granted(&["/w"]), 10).unwrap_err();
        assert!(error.contains("/w holds 11 files") && error.contains("denied_patterns"), "{error}");
        let both = granted(&["/w", "/w/a/b"]);
        assert!(whole_folders(&denied(&[("/w/a", 11)]), &both, 10).is_err(), "a granted folder is in it");
        assert_eq!(
            whole_folders(&denied(&[("/w/a/b/c", 11)]), &both, 10).unwrap(),
            [PathBuf::from("/w/a/b/c")]
        );
    }
}

//! A tree of files in memory, and patches on it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use haft_patch::{ApplyError, FileChange, PatchError, apply, parse};

pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

/// The files below a folder; none where there is no folder.
pub(crate) fn read_tree(folder: &Path) -> Tree {
    fn walk(root: &Path, folder: &Path, tree: &mut Tree) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, tree);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                tree.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut tree = Tree::new();
    if folder.exists() {
        walk(folder, folder, &mut tree);
    }
    tree
}

/// What `read` says about a folder.
pub(crate) const IS_A_FOLDER: &str = "is a folder";

pub(crate) fn changes(tree: &Tree, text: &str) -> Result<Vec<FileChange>, ApplyError<&'static str>> {
    let patch = parse(text).map_err(|error: PatchError| ApplyError::Patch(error))?;
    apply(&patch, &mut |path: &str| {
        let inside = format!("{path}/");
        if tree.keys().any(|name| name.starts_with(&inside)) {
            return Err(IS_A_FOLDER);
        }
        Ok(tree.get(path).cloned())
    })
}

/// Carries changes out, and checks on the way that they fit the tree.
pub(crate) fn carry_out(tree: &mut Tree, changes: &[FileChange]) {
    for change in changes {
        match &change.moved_from {
            Some(from) => {
                assert_eq!(tree.remove(from), change.before, "{change:?}");
                assert_eq!(tree.get(&change.path), change.overwritten.as_ref(), "{change:?}");
            }
            None => assert_eq!(tree.get(&change.path), change.before.as_ref(), "{change:?}"),
        }
        match &change.after {
            Some(after) => drop(tree.insert(change.path.clone(), after.clone())),
            None => drop(tree.remove(&change.path)),
        }
    }
}

/// The tree after a patch. Undoing it must give the tree before.
pub(crate) fn run(tree: &Tree, text: &str) -> Result<Tree, ApplyError<&'static str>> {
    let changes = changes(tree, text)?;
    let mut after = tree.clone();
    carry_out(&mut after, &changes);
    let mut undone = after.clone();
    carry_out(&mut undone, &haft_patch::inverse(&changes));
    assert_eq!(&undone, tree, "undoing {changes:?}");
    Ok(after)
}

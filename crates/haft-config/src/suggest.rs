//! "Did you mean …?" for paths of keys and names of variables.

use std::collections::BTreeSet;

use haft_core::suggest::nearest;

use super::keys::{ENV_PREFIX, keys, sections};

/// More than two guesses are no help.
const MOST: usize = 2;

/// The known keys and sections that a person may have meant by this path, best first.
pub(super) fn paths_like(path: &str) -> Vec<String> {
    let path = folded(path);
    let known: Vec<&str> =
        keys().iter().map(|key| key.path()).chain(sections().iter().map(|section| section.path)).collect();
    let (parent, name) = split(&path);

    // A slip of the hand in the right section.
    let siblings = known.iter().filter(|known| split(known).0 == parent).map(|known| split(known).1);
    if let Some(near) = nearest(name, siblings) {
        return vec![if parent.is_empty() { near.to_owned() } else { format!("{parent}.{near}") }];
    }
    // The right name in the wrong section.
    let elsewhere: Vec<String> = with(&known, |known| split(known).1 == name);
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    // Some of the right words: `tools.max_patch_bytes`.
    let words = words(&path);
    if words.len() > 2 {
        let fuller = with(&known, |known| words.is_subset(&self::words(known)));
        if !fuller.is_empty() {
            return fuller;
        }
    }
    nearest(&path, known).map(str::to_owned).into_iter().collect()
}

/// The known environment variables that a person may have meant, best first.
pub(super) fn variables_like(name: &str) -> Vec<String> {
    let known: Vec<String> = keys().iter().map(|key| key.env_name()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if let Some(near) = nearest(name, known.iter().copied()) {
        return vec![near.to_owned()];
    }
    // Without the section: `HAFT_MODE`.
    let end = name.strip_prefix(ENV_PREFIX).map(|rest| format!("_{rest}"));
    end.map_or_else(Vec::new, |end| with(&known, |known| end.len() > 1 && known.ends_with(&end)))
}

fn with(known: &[&str], is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    known.iter().filter(|known| is_meant(known)).take(MOST).map(|&known| known.to_owned()).collect()
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

fn words(path: &str) -> BTreeSet<&str> {
    path.split(['.', '_']).collect()
}

/// `Allow-Parallel` and `allow_parallel` are the same slip.
fn folded(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

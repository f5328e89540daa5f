//! The matches that are kept: the first ones by path, whichever thread found them when.

use super::{Hit, hits::FileHit, shown};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Keeps the matches of the first files, as many as are needed. So the same search gives the same matches, and
/// files that come after those need not be opened.
pub(super) struct Kept {
    most: usize,
    /// Whether there is only room for files that come before the last one.
    is_full: AtomicBool,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    by_path: BTreeMap<String, Vec<FileHit>>,
    matches: usize,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Kept { most, is_full: AtomicBool::new(false), files: Mutex::default() }
    }

    /// Whether matches in that file would be kept.
    pub(super) fn has_room_for(&self, below: &Path) -> bool {
        if !self.is_full.load(Ordering::Relaxed) {
            return true;
        }
        let path = shown(below);
        self.files().by_path.last_key_value().is_none_or(|(last, _)| path <= *last)
    }

    /// Adds the matches of a file, and lets those go that there is no room for any more.
    pub(super) fn add(&self, path: String, hits: Vec<FileHit>) {
        let files = &mut *self.files();
        files.matches += hits.len();
        // Two names can look the same when they are not text.
        files.by_path.entry(path).or_default().extend(hits);
        while let Some(last) = files.by_path.last_entry()
            && files.matches - last.get().len() >= self.most
        {
            let gone = last.remove().len();
            files.matches -= gone;
        }
        if files.matches >= self.most {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first matches, in order.
    pub(super) fn into_hits(self) -> Vec<Hit> {
        let files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        let hits = files.by_path.into_iter().flat_map(|(path, hits)| {
            hits.into_iter().map(move |hit| Hit {
                path: path.clone(),
                line: hit.line,
                text: hit.text,
                before: hit.before,
                after: hit.after,
            })
        });
        hits.take(self.most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(lines: u64) -> Vec<FileHit> {
        (1..=lines).map(|line| FileHit { line, ..FileHit::default() }).collect()
    }

    #[test]
    fn the_first_files_win_whatever_came_first() {
        for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
            let kept = Kept::new(4);
            for path in order {
                kept.add(path.to_owned(), hits(3));
            }
            assert!(!kept.has_room_for(Path::new("b2")) && kept.has_room_for(Path::new("a2")));
            let found: Vec<_> =
                kept.into_hits().into_iter().map(|hit| format!("{}{}", hit.path, hit.line)).collect();
            assert_eq!(found, ["a1", "a2", "a3", "b1"], "{order:?}");
        }
    }
}

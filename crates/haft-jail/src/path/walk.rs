//! Walking over the files below a folder, on several threads.
//!
//! Every folder is opened from the handle of its root by a path without links, so a folder that is swapped for a link
//! to the outside while the walk runs is simply not entered. What ignore files mean is left to the library that
//! ripgrep uses; it walks by path itself, which is why the walk is our own.

use super::{
    folder::Folder,
    ignore_rules::Rules,
    jail::{PathJail, Spot},
};
use haft_sdk::files::{Kind, Step, Visit, Visitor, Walk};
use std::{
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// A folder that is still to be visited.
struct Job {
    spot: Spot,
    /// Its path below the start of the walk.
    below: PathBuf,
    /// What the ignore files above it say.
    rules: Option<Rules>,
}

#[derive(Default)]
struct Open {
    jobs: Vec<Job>,
    /// How many threads are in a folder, and may find more.
    busy: usize,
}

struct Walker<'a> {
    jail: &'a PathJail,
    walk: &'a Walk<'a>,
    visitor: &'a Visitor<'a>,
    open: Mutex<Open>,
    found: Condvar,
    stopped: AtomicBool,
}

/// Visits the files below a folder.
pub(crate) fn walk(jail: &PathJail, walk: &Walk<'_>, start: Spot, visitor: &Visitor<'_>) {
    let rules = walk.ignore_files.then(|| Rules::above(jail, &start));
    let first = Job { spot: start, below: PathBuf::new(), rules };
    let open = Open { jobs: vec![first], busy: 0 };
    let walker = Walker {
        jail,
        walk,
        visitor,
        open: Mutex::new(open),
        found: Condvar::new(),
        stopped: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        for _ in 1..walk.threads.max(1) {
            scope.spawn(|| walker.work());
        }
        walker.work();
    });
}

impl Walker<'_> {
    fn work(&self) {
        while let Some(job) = self.next() {
            let busy = Busy(self);
            if let Ok(folder) = self.jail.folder_at(&job.spot) {
                self.visit_folder(&folder, &job);
            }
            drop(busy);
        }
    }

    /// The next folder; `None` when all are visited or the walk was stopped.
    fn next(&self) -> Option<Job> {
        let mut open = self.open();
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(job) = open.jobs.pop() {
                open.busy += 1;
                return Some(job);
            }
            if open.busy == 0 {
                return None;
            }
            open = self.found.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn visit_folder(&self, folder: &Folder, job: &Job) {
        let mut entries = Vec::new();
        // What could be listed before an error is visited all the same.
        let _ = folder.names(|name, kind| entries.push((name, kind)));
        let rules = job.rules.as_ref().map(|rules| rules.enter(folder, &self.jail.full(&job.spot), &entries));
        let mut folders = Vec::new();
        for (name, kind) in entries {
            if !self.walk.hidden && name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let Some(kind) = kind.or_else(|| folder.entry(&name).ok().map(|entry| entry.kind)) else {
                continue;
            };
            if !matches!(kind, Kind::File | Kind::Folder) || (kind == Kind::Folder && name == ".git") {
                continue;
            }
            let spot = job.spot.join(&name);
            let is_folder = kind == Kind::Folder;
            if rules.as_ref().is_some_and(|rules| rules.ignores(&self.jail.full(&spot), is_folder))
                || self.jail.denies(&spot)
            {
                continue;
            }
            let below = job.below.join(&name);
            if is_folder {
                folders.push(Job { spot, below, rules: rules.clone() });
            } else if self.visit(&spot, &below) == Step::Stop {
                return;
            }
        }
        if !folders.is_empty() {
            self.open().jobs.append(&mut folders);
            self.found.notify_all();
        }
    }

    fn visit(&self, spot: &Spot, below: &Path) -> Step {
        if self.stopped.load(Ordering::Relaxed) {
            return Step::Stop;
        }
        let step = (self.visitor)(&Visit { below, open: &|| self.jail.open_spot(spot) });
        if step == Step::Stop {
            self.stopped.store(true, Ordering::Relaxed);
        }
        step
    }
}

/// A thread that is in a folder. Also when the visitor panics, the others must learn that it left.
struct Busy<'a>(&'a Walker<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.open().busy -= 1;
        self.0.found.notify_all();
    }
}

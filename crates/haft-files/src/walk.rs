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
    ffi::OsStr,
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
        let _ = folder.names(|name, kind| entries.push((name.to_owned(), kind)));
        let full = self.jail.full(&job.spot);
        let rules = job.rules.as_ref().map(|rules| rules.enter(folder, &full, &entries));
        let rules = rules.filter(|rules| !rules.is_empty());
        let mut folders = Vec::new();
        // Filled again for each name: a new path for each would cost as much as the listing.
        let (mut whole, mut below) = (PathBuf::new(), PathBuf::new());
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
            let is_folder = kind == Kind::Folder;
            if let Some(rules) = &rules {
                set(&mut whole, &full, &name);
                if rules.ignores(&whole, is_folder) {
                    continue;
                }
            }
            // The start of the walk is not denied, and a folder that is denied is not entered.
            if self.jail.denies_in(&job.spot, &name) {
                continue;
            }
            set(&mut below, &job.below, &name);
            if is_folder {
                let rules = job.rules.is_some().then(|| rules.clone().unwrap_or_default());
                folders.push(Job { spot: job.spot.join(&name), below: below.clone(), rules });
            } else if self.visit(job, &name, &below) == Step::Stop {
                return;
            }
        }
        if !folders.is_empty() {
            self.open().jobs.append(&mut folders);
            self.found.notify_all();
        }
    }

    fn visit(&self, job: &Job, name: &OsStr, below: &Path) -> Step {
        if self.stopped.load(Ordering::Relaxed) {
            return Step::Stop;
        }
        let open = || Ok(self.jail.open_spot(&job.spot.join(name))?.into());
        let step = (self.visitor)(&Visit { below, open: &open });
        if step == Step::Stop {
            self.stopped.store(true, Ordering::Relaxed);
        }
        step
    }
}

/// Makes a path that of a name in a folder.
fn set(path: &mut PathBuf, folder: &Path, name: &OsStr) {
    path.as_mut_os_string().clear();
    path.push(folder);
    path.push(name);
}

/// A thread that is in a folder. Also when the visitor panics, the others must learn that it left.
struct Busy<'a>(&'a Walker<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.open().busy -= 1;
        self.0.found.notify_all();
    }
}

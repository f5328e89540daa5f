//! Changes that are made whole: all of a set, or none, also when the process is killed in the middle.
//!
//! A set is planned without changing anything. Then a record says what is about to happen, and keeps the bytes that go;
//! it is on disk before the first file is touched. New bytes are written beside their files, and get their names when
//! all are there. A set counts as made when its record says so; one that a crash cut is taken back at the next start.
//! The kept bytes also serve to undo a set later.
//!
//! A change of one file costs three syncs: the record, the new bytes, the folder that has the name.

mod apply;
mod known;
mod manifest;
mod packed;
mod plan;
mod record;
mod recover;
#[cfg(target_os = "linux")]
mod staged;
mod tally;
#[cfg(target_os = "linux")]
mod tree;

#[cfg(target_os = "linux")]
pub use staged::ApplyStaged;

pub use known::{Became, became_of};

use super::{PathError, error::shown, jail::PathJail};
use haft_core::{ErrorCode, ExecutionId, ToolError};
use haft_sdk::files::{ChangeSet, Changed, FileOutcome};
use jiff::Timestamp;
use manifest::{Manifest, State, Step};
use packed::{Images, Packed};
use plan::{Planned, Planner};
use record::Shelf;
use recover::{recover, take_back};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What is kept for undoing, and how large a single file may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How many sets of changes.
    pub records: usize,
    /// How many bytes of files that were changed or deleted.
    pub bytes: u64,
    /// The largest file that is changed or deleted.
    pub file_bytes: u64,
}

impl Default for Keep {
    /// ```
    /// assert_eq!(haft_files::Keep::default().records, 1000);
    /// ```
    fn default() -> Self {
        Keep { records: 1000, bytes: 512 << 20, file_bytes: 128 << 20 }
    }
}

/// A set of changes that was cut by a crash, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// The call that was making them.
    pub by: ExecutionId,
    /// What they were for.
    pub summary: String,
    /// The files that are as they were before. Of what a staged command changed, the first thousand.
    pub paths: Vec<PathBuf>,
    /// Files that somebody else changed since. They were left alone.
    pub left: Vec<PathBuf>,
    /// Why it could not be taken back, where it could not. It is tried again at the next start.
    pub problem: Option<String>,
}

/// A place in the making of changes, for tests that kill there.
type Points = Arc<dyn Fn(&str) + Send + Sync>;

/// Makes sets of changes, and remembers them.
#[derive(Clone)]
pub(crate) struct Changes {
    shelf: Shelf,
    keep: Keep,
    points: Option<Points>,
}

impl Changes {
    /// With records in that folder.
    pub(crate) fn new(folder: &Path, keep: Keep) -> Self {
        Changes { shelf: Shelf::new(folder), keep, points: None }
    }

    /// Calls this at every point at which a process could be killed.
    pub(crate) fn at_points(&mut self, points: Points) {
        self.points = Some(points);
    }

    fn point(&self, name: &str) {
        if let Some(points) = &self.points {
            points(name);
        }
    }

    /// Makes a set of changes.
    pub(crate) fn make(&self, jail: &PathJail, set: &ChangeSet) -> Result<Vec<Changed>, ToolError> {
        let mut planner = Planner::new(jail, tag(set.by), self.keep.file_bytes);
        for change in &set.changes {
            planner.add(change)?;
        }
        let manifest = new_manifest(set.by, &set.reader.tenant, &set.summary);
        self.commit(jail, manifest, planner.steps)
    }

    /// Takes back what a call did, as a set of its own.
    pub(crate) fn undo(
        &self,
        jail: &PathJail,
        of: ExecutionId,
        by: ExecutionId,
        tenant: &str,
    ) -> Result<Vec<Changed>, ToolError> {
        let none = || {
            let text = format!(
                "There is nothing to undo of {of}: it changed no file, or that is too long ago, or it is not known here"
            );
            ToolError::failed(text)
        };
        let unreadable = |error: io::Error| {
            ToolError::failed(format!("what {of} changed cannot be read: {error}. Nothing was undone"))
        };
        let folders = self.shelf.of(of).map_err(unreadable)?;
        let mut records = Vec::new();
        for folder in folders.into_iter().rev() {
            let (manifest, images) = record::read(&folder).map_err(unreadable)?.ok_or_else(none)?;
            if manifest.tenant != tenant {
                return Err(none());
            }
            records.push((folder, manifest, images));
        }
        let summary = records.last().map(|(_, manifest, _)| manifest.summary.clone()).ok_or_else(none)?;
        #[cfg(target_os = "linux")]
        if records.iter().any(|(_, manifest, _)| manifest.version == manifest::TREES) {
            return self.undo_trees(jail, &records, by, tenant);
        }
        let mut planner = Planner::new(jail, tag(by), self.keep.file_bytes);
        for (_, manifest, images) in &records {
            for step in manifest.steps.iter().rev() {
                planner.undo(step, images)?;
            }
        }
        let manifest = new_manifest(by, tenant, &format!("undo: {summary}"));
        self.commit(jail, manifest, planner.steps)
    }

    /// Takes back every set that a crash cut.
    pub(crate) fn recover(&self) -> io::Result<Vec<TakenBack>> {
        recover(&self.shelf)
    }

    fn commit(
        &self,
        jail: &PathJail,
        mut manifest: Manifest,
        mut steps: Vec<Planned<'_>>,
    ) -> Result<Vec<Changed>, ToolError> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        manifest.steps = steps.iter().map(|planned| planned.step.clone()).collect();
        manifest.roots = jail.roots_of(manifest.steps.iter().flat_map(Step::paths));
        let not_begun = |error: io::Error| {
            let text = "The change could not be recorded, so nothing was changed";
            ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error)
        };
        let mut record = Packed::begin(&self.shelf, manifest.by).map_err(not_begun)?;
        if let Err(error) = self.write_down(&mut record, &manifest, &steps) {
            let _ = record.forget();
            return Err(not_begun(error));
        }
        self.point("manifest");
        if let Err(error) = self.carry_out(jail, &mut steps) {
            return Err(give_up(record, &manifest, error));
        }
        self.point("carried out");
        match record.finish(&self.shelf) {
            Ok(bytes) => {
                self.point("done");
                // Old records take up room, no more.
                let _ = self.shelf.prune(bytes, self.keep.records, self.keep.bytes);
            }
            // The record is still where cut ones are: the next start would take it back. So it is done now.
            Err(error) => {
                let text = format!("The change could not be completed: {error}. Nothing was changed");
                let _ = self.recover();
                return Err(ToolError::new(ErrorCode::StoreUnavailable, text));
            }
        }
        Ok(summed_up(jail, &manifest.steps))
    }

    /// Keeps the bytes that go, and writes down what is about to happen.
    fn write_down(&self, record: &mut Packed, manifest: &Manifest, steps: &[Planned<'_>]) -> io::Result<()> {
        let image = |planned: &'_ Planned<'_>| match &planned.step {
            Step::Turn { before: State::File { image: Some(image), .. }, .. } => Some(image.clone()),
            Step::Turn { .. } | Step::Move { .. } => None,
        };
        let named: Vec<_> =
            steps.iter().filter_map(|step| Some((image(step)?, step.old.as_deref()?))).collect();
        let images: Vec<_> = named.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        record.write(manifest, &images, || self.point("image"))
    }

    fn carry_out(&self, jail: &PathJail, steps: &mut [Planned<'_>]) -> Result<(), ToolError> {
        for planned in &mut *steps {
            let Step::Turn { path, before, after, staged } = &planned.step else { continue };
            let text = path.to_string_lossy();
            let fail = |error| ToolError::from(PathError::io(&text, error));
            if let (State::Absent, State::Folder { .. }) = (before, after) {
                let (folder, name) = apply::at(jail, path)?;
                apply::apply(&folder, name, &planned.step).map_err(fail)?;
                folder.sync().map_err(fail)?;
                self.point("folder");
            } else if let (Some(staged), Some(bytes)) = (staged, &mut planned.bytes) {
                let (folder, _) = apply::at(jail, path)?;
                apply::stage(&folder, staged, bytes, after).map_err(fail)?;
                self.point("stage");
            }
        }
        let mut folders = Vec::new();
        for planned in &*steps {
            if let Step::Turn { before: State::Absent, after: State::Folder { .. }, .. } = planned.step {
                continue;
            }
            for path in planned.step.paths() {
                folders.push((path.parent().map(Path::to_path_buf), apply::at(jail, path)?.0));
            }
            self.name(jail, planned)?;
            self.point("name");
        }
        folders.sort_by(|(a, _), (b, _)| a.cmp(b));
        folders.dedup_by(|(a, _), (b, _)| a == b);
        for (_, folder) in folders {
            folder
                .sync()
                .map_err(|error| ToolError::failed(format!("a folder could not be saved: {error}")))?;
        }
        Ok(())
    }

    /// The moment in which one file becomes another.
    fn name(&self, jail: &PathJail, planned: &Planned<'_>) -> Result<(), ToolError> {
        let path = planned.step.paths().next().map(PathBuf::as_path).unwrap_or(Path::new(""));
        let text = path.to_string_lossy();
        let fail = |error| ToolError::from(PathError::io(&text, error));
        let (folder, name) = apply::at(jail, path)?;
        if let Some(seen) = &planned.seen {
            let now = folder.entry(name).map_err(fail)?;
            if now != *seen {
                let reason = "it was changed by somebody else just now";
                let error = format!("Stale file {}: {reason}", shown(&text));
                let error = ToolError::new(ErrorCode::StaleFile, error).with_fact("file", shown(&text));
                return Err(error.with_fact("reason", reason));
            }
        }
        match &planned.step {
            Step::Turn { .. } => apply::apply(&folder, name, &planned.step).map_err(fail),
            Step::Move { to, .. } => {
                let (target, new) = apply::at(jail, to)?;
                folder.rename_new(name, &target, new).map_err(fail)
            }
        }
    }
}

/// Takes back every set that a crash cut, of those whose records are in that folder: for commands that do nothing else
/// with files.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// assert!(haft_files::take_back_cut(folder.path())?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn take_back_cut(records: &Path) -> io::Result<Vec<TakenBack>> {
    recover(&Shelf::new(records))
}

/// A set that could not be made is taken back at once.
fn give_up(record: Packed, manifest: &Manifest, error: ToolError) -> ToolError {
    match record.images().and_then(|images| take_back(manifest, &images)) {
        Ok(left) if left.is_empty() => {
            let _ = record.forget();
            let text = format!("{}. Nothing was changed", error.message.trim_end_matches('.'));
            ToolError { message: text, ..error }
        }
        Ok(left) => {
            let _ = record.forget();
            let left: Vec<_> = left.iter().map(|path| shown(&path.to_string_lossy())).collect();
            let text = format!(
                "{}. What was changed before was taken back, but for what others changed meanwhile: {}",
                error.message.trim_end_matches('.'),
                left.join(", ")
            );
            ToolError { message: text, ..error }
        }
        // Its record stays, unlocked: the next start tries again.
        Err(second) => {
            let text = format!(
                "{}. It could not be taken back whole: {second}. The next start of haft tries again",
                error.message.trim_end_matches('.')
            );
            ToolError { message: text, ..error }
        }
    }
}

fn new_manifest(by: ExecutionId, tenant: &str, summary: &str) -> Manifest {
    Manifest {
        version: manifest::VERSION,
        by,
        tenant: tenant.to_owned(),
        summary: summary.to_owned(),
        at: Timestamp::now(),
        roots: Vec::new(),
        steps: Vec::new(),
        cannot_undo: None,
    }
}

/// A few characters that differ between calls.
fn tag(by: ExecutionId) -> String {
    let text = by.as_uuid().simple().to_string();
    text.get(20..).unwrap_or(&text).to_owned()
}

/// What is different now, for the caller.
fn summed_up(jail: &PathJail, steps: &[Step]) -> Vec<Changed> {
    steps.iter().filter_map(|step| changed(jail, step)).collect()
}

fn changed(jail: &PathJail, step: &Step) -> Option<Changed> {
    let place = |path: &Path| jail.spot_of(path).map(|spot| jail.place(&spot));
    let facts = |state: &State| match state {
        State::File { sha256, len, .. } => (Some(sha256.clone()), *len),
        State::Absent | State::Folder { .. } | State::Link { .. } => (None, 0),
    };
    match step {
        Step::Move { from, to, bytes } => Some(Changed {
            place: place(to)?,
            outcome: FileOutcome::Moved { from: place(from)? },
            before: bytes.as_ref().map(|(sha256, _)| sha256.clone()),
            after: bytes.as_ref().map(|(sha256, _)| sha256.clone()),
            bytes: bytes.as_ref().map_or(0, |(_, len)| *len),
        }),
        // Folders that were made on the way are nobody's news.
        Step::Turn { before: State::Absent, after: State::Folder { .. }, .. } => None,
        Step::Turn { path, before, after, .. } => {
            let ((before_hash, before_bytes), (after_hash, after_bytes)) = (facts(before), facts(after));
            let outcome = match (before, after) {
                (State::Absent, _) => FileOutcome::Created,
                (_, State::Absent) => FileOutcome::Deleted,
                _ => FileOutcome::Modified,
            };
            let bytes = if outcome == FileOutcome::Deleted { before_bytes } else { after_bytes };
            Some(Changed { place: place(path)?, outcome, before: before_hash, after: after_hash, bytes })
        }
    }
}

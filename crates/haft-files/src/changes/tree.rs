//! Sets of changes that are whole trees: what a staged command changed. Linux.
//!
//! Nothing is written in place. Every step gives something another name: what goes is put aside, what comes is taken
//! from where it was made. So a set of any size costs one rename for each file that was there before and one for each
//! new folder, and two `syncfs` for each file system. Steps are a list on disk, read one by one.

mod area;
mod build;
mod carry;
mod plan;
mod step;
mod undo;

pub(super) use area::{Ground, clean_up};
pub(super) use plan::plan;
pub(super) use step::{StepList, TreeStep};
pub(super) use undo::{plan_undo, touched};

use super::{
    Changes, TakenBack,
    manifest::{self, Manifest},
    record::{self, Record, Shelf},
};
use crate::{PathError, jail::PathJail, staged::Restored};
use haft_core::{ErrorCode, ExecutionId, ToolError};
use haft_sdk::files::{Changed, FileOutcome};
use std::{io, path::PathBuf};

/// How many paths are noted as put back. Of more, those that are not count as changed by somebody else.
const MOST_RESTORED: usize = 100_000;

/// How many paths of a set are named when it is taken back.
const MOST_NAMED: usize = 1000;

/// A set that is about to be made, in words.
pub(super) struct Intent {
    pub(super) by: ExecutionId,
    pub(super) tenant: String,
    pub(super) summary: String,
    /// The roots of its paths.
    pub(super) roots: Vec<PathBuf>,
    /// Why it cannot be undone.
    pub(super) cannot_undo: Option<String>,
}

impl Changes {
    /// Makes a set of whole trees. `write` puts its steps on the list, and may copy what it needs meanwhile; it
    /// changes nothing that was there.
    pub(super) fn make_trees(
        &self,
        intent: Intent,
        write: impl FnOnce(&mut build::Builder<'_>) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let not_begun = |error: io::Error| {
            let text = "The change could not be recorded, so nothing was changed";
            ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error)
        };
        let record = self.shelf.begin(intent.by).map_err(not_begun)?;
        let ground = match Ground::new(&self.shelf, &record, &intent.roots, super::tag(intent.by)) {
            Ok(ground) => ground,
            Err(error) => {
                let _ = record.forget();
                return Err(not_begun(error));
            }
        };
        let abandon = |record: Record, error: ToolError| {
            let _ = ground.remove_areas();
            let _ = record.forget();
            error
        };
        let mut manifest = super::new_manifest(intent.by, &intent.tenant, &intent.summary);
        manifest.version = manifest::TREES;
        manifest.roots = intent.roots;
        manifest.cannot_undo = intent.cannot_undo;
        let keeps = manifest.cannot_undo.is_none();
        let point = |name: &str| self.point(name);
        let mut builder = match build::Builder::new(&ground, keeps, &point) {
            Ok(builder) => builder,
            Err(error) => return Err(abandon(record, not_begun(error))),
        };
        if let Err(error) = write(&mut builder) {
            drop(builder);
            return Err(abandon(record, error));
        }
        let count = match builder.finish() {
            Ok(count) => count,
            Err(error) => return Err(abandon(record, not_begun(error))),
        };
        if count == 0 {
            let _ = ground.remove_areas();
            return record.forget().map_err(not_begun);
        }
        // New bytes, kept bytes and the list are on disk before the first name changes.
        if let Err(error) = ground.sync().and_then(|()| record.write(&manifest)) {
            return Err(abandon(record, not_begun(error)));
        }
        self.point("manifest");
        if let Err(error) = self.carry_trees(&ground) {
            return Err(give_up(record, &ground, error));
        }
        if let Err(error) = ground.sync() {
            let error = ToolError::failed(format!("the change could not be saved: {error}"));
            return Err(give_up(record, &ground, error));
        }
        self.point("carried out");
        let name = record.name().to_owned();
        let bytes = match self.shelf.finish(record) {
            Ok(bytes) => bytes,
            Err(error) => {
                let text = format!("The change could not be completed: {error}. Nothing was changed");
                let _ = self.recover();
                return Err(ToolError::new(ErrorCode::StoreUnavailable, text));
            }
        };
        self.point("done");
        // What is left over takes up room, no more: the next start removes it.
        if manifest.cannot_undo.is_some() {
            let _ = self.shelf.drop_kept(&name);
        }
        let _ = ground.remove_areas();
        let _ = self.shelf.prune(bytes, self.keep.records, self.keep.bytes);
        Ok(())
    }

    fn carry_trees(&self, ground: &Ground) -> Result<(), ToolError> {
        let unreadable = |error| ToolError::failed(format!("the list of changes cannot be read: {error}"));
        let mut list = StepList::open(&ground.record).map_err(unreadable)?;
        while let Some(step) = list.next_step().map_err(unreadable)? {
            carry::forward(ground, &step, &|name| self.point(name)).map_err(|error| {
                let path = ground.full(&step);
                match error.kind() {
                    io::ErrorKind::AlreadyExists
                    | io::ErrorKind::NotFound
                    | io::ErrorKind::StaleNetworkFileHandle => {
                        let text = format!("Stale file {}: it was changed by somebody else", path.display());
                        ToolError::new(ErrorCode::StaleFile, text)
                    }
                    _ => PathError::io(&path.to_string_lossy(), error).into(),
                }
            })?;
        }
        Ok(())
    }
}

/// A set that could not be made is taken back at once.
fn give_up(record: Record, ground: &Ground, error: ToolError) -> ToolError {
    let message = error.message.trim_end_matches('.').to_owned();
    let text = match take_back(ground) {
        Ok((_, left)) => {
            let _ = ground.remove_areas();
            let _ = record.forget();
            match left.is_empty() {
                true => format!("{message}. Nothing was changed"),
                false => {
                    let left: Vec<_> = left.iter().map(|path| path.display().to_string()).collect();
                    let left = left.join(", ");
                    format!(
                        "{message}. The changes were taken back, except where others changed files: {left}"
                    )
                }
            }
        }
        // Its record stays, unlocked: the next start tries again.
        Err(second) => format!("{message}. Undoing it failed: {second}. The next start of haft tries again"),
    };
    ToolError { message: text, ..error }
}

/// Takes back what was made of a set: the paths, bounded, and those that somebody else changed. Can be cut and done
/// again. What was put back is noted, so that nobody takes it for a change of somebody else.
fn take_back(ground: &Ground) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut paths, mut left) = (Vec::new(), Vec::new());
    let (mut restored, mut folders) = (Restored::new(), Vec::new());
    let mut list = StepList::open(&ground.record)?;
    for index in (0..list.count()?).rev() {
        let step = list.step(index)?;
        let full = ground.full(&step);
        let back = carry::back(ground, &step)?;
        if back == carry::Back::Restored && restored.len() < MOST_RESTORED {
            let is_folder = ground.note(step.place(), &mut restored)?;
            folders.extend(is_folder.then(|| step.place_of()));
        }
        match back {
            carry::Back::Left => left.push(full),
            carry::Back::Untouched | carry::Back::Restored if paths.len() < MOST_NAMED => paths.push(full),
            carry::Back::Untouched | carry::Back::Restored => {}
        }
    }
    ground.sync()?;
    // What came back into a folder later has changed that folder, too.
    for (root, path) in &folders {
        ground.note((*root, path), &mut restored)?;
    }
    ground.keep_note(restored)?;
    paths.sort();
    paths.dedup();
    Ok((paths, left))
}

/// Takes back a set that a crash cut.
pub(super) fn recover(shelf: &Shelf, record: Record, manifest: Manifest) -> TakenBack {
    let taken = Ground::new(shelf, &record, &manifest.roots, super::tag(manifest.by))
        .and_then(|ground| take_back(&ground).map(|taken| (ground, taken)));
    let (paths, left, problem) = match taken {
        Ok((ground, (paths, left))) => {
            let ended = ground.remove_areas().and_then(|()| record.forget());
            let problem = ended.err().map(|error| error.to_string());
            (if problem.is_some() { Vec::new() } else { paths }, left, problem)
        }
        Err(error) => (Vec::new(), Vec::new(), Some(error.to_string())),
    };
    TakenBack { by: manifest.by, summary: manifest.summary, paths, left, problem }
}

/// The folder in which a record keeps what went.
pub(super) fn kept_folder(record: &std::path::Path) -> PathBuf {
    record.join("kept")
}

/// What the steps of a record changed, for the caller: the first of them.
pub(super) fn changed(jail: &PathJail, record: &std::path::Path) -> io::Result<Vec<Changed>> {
    let Some(manifest) = record::manifest_of(record)? else { return Ok(Vec::new()) };
    let mut list = StepList::open(record)?;
    let mut all = Vec::new();
    while let Some(step) = list.next_step()? {
        let (root, path) = step.place();
        let outcome = match &step {
            TreeStep::Put { old: None, new: Some(_), .. } => FileOutcome::Created,
            TreeStep::Put { old: Some(_), new: None, .. } => FileOutcome::Deleted,
            TreeStep::Put { .. } | TreeStep::Meta { .. } => FileOutcome::Modified,
            TreeStep::Make { .. } | TreeStep::Unmake { .. } => continue,
        };
        let full = manifest.roots.get(root).map(|root| root.join(path)).unwrap_or_default();
        if let Some(spot) = jail.spot_of(&full) {
            all.push(Changed { place: jail.place(&spot), outcome, before: None, after: None, bytes: 0 });
        }
        if all.len() >= MOST_NAMED {
            break;
        }
    }
    Ok(all)
}

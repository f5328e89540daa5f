//! Carrying a patch out on copies in memory: all of it or nothing.

use std::collections::HashMap;

use crate::error::{ApplyError, PatchError, PatchErrorKind};
use crate::lines::Work;
use crate::patch::{FileAction, FileOperation, Patch};
use crate::unified::{FileDiff, Kind};
use crate::{diff, envelope, lp1, unified};

/// What becomes of one file.
///
/// The changes of a patch are about different paths: each path that changes is the `path` or the `moved_from` of
/// exactly one of them. So they can be written in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path, as the patch names it.
    pub path: String,
    /// The content before; `None` where the file was not there. Of a file that moves, the content at `moved_from`.
    pub before: Option<Vec<u8>>,
    /// The content after; `None` where the file goes.
    pub after: Option<Vec<u8>>,
    /// Where the file was. There it is no more.
    pub moved_from: Option<String>,
    /// What stood at `path` before a file was moved there.
    pub overwritten: Option<Vec<u8>>,
    /// What a person should know: offsets of hunks, modes that were not set, files that were replaced.
    pub notes: Vec<String>,
}

/// What a [`FileChange`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The file is new.
    Created,
    /// The file has another content.
    Modified,
    /// The file goes.
    Deleted,
    /// The file has another path, and perhaps another content.
    Moved,
}

impl FileChange {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        match (&self.moved_from, &self.before, &self.after) {
            (Some(_), ..) => ChangeKind::Moved,
            (None, None, _) => ChangeKind::Created,
            (None, Some(_), None) => ChangeKind::Deleted,
            (None, Some(_), Some(_)) => ChangeKind::Modified,
        }
    }

    /// The change as a unified diff, for a preview.
    #[must_use]
    pub fn diff(&self) -> String {
        let from = self.moved_from.as_ref().unwrap_or(&self.path);
        diff::diff(self.before.as_deref(), self.after.as_deref(), from, &self.path)
    }
}

/// How [`apply`] gets the content of a file: `None` for one that is not there.
pub type ReadFile<'a, E> = dyn FnMut(&str) -> Result<Option<Vec<u8>>, E> + 'a;

/// Carries a patch out on what `read` gives, and gives back what has changed, in the order in which the patch names it.
///
/// `read` is asked once for each path, and answers `None` for a file that is not there. Several sections about one file
/// apply one after the other. A patch that changes nothing gives an empty list.
///
/// # Errors
///
/// When `read` fails or a part of the patch does not fit. Then nothing is given back: there is no half of a patch.
///
/// ```
/// let patch = haft_patch::parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")?;
/// let changes = haft_patch::apply(&patch, &mut |_: &str| Ok::<_, String>(Some(b"old\n".to_vec())))?;
/// assert_eq!(changes[0].after.as_deref(), Some(&b"new\n"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply<E>(patch: &Patch, read: &mut ReadFile<'_, E>) -> Result<Vec<FileChange>, ApplyError<E>> {
    let mut stage = Stage { slots: Vec::new(), by_path: HashMap::new(), work: Work::new() };
    for operation in &patch.operations {
        // What an operation is about is read first, so that carrying it out needs nothing from outside.
        stage.load(&operation.path, operation.line, read)?;
        if let Some(to) = target(operation) {
            stage.load(to, operation.line, read)?;
        }
        stage.carry_out(operation).map_err(|error| error.in_file(&operation.path))?;
    }
    Ok(stage.changes())
}

fn target(operation: &FileOperation) -> Option<&str> {
    match &operation.action {
        FileAction::Envelope(envelope::Action::Update { move_to, .. }) => move_to.as_deref(),
        FileAction::Unified(FileDiff { kind: Kind::Rename { to }, .. }) => Some(to),
        FileAction::Envelope(_) | FileAction::Unified(_) | FileAction::Lp1(_) => None,
    }
}

/// One path: what was there and what is there now.
#[derive(Debug)]
struct Slot {
    path: String,
    original: Option<Vec<u8>>,
    current: Option<Vec<u8>>,
    /// The path of the file that this content comes from.
    origin: Option<String>,
    notes: Vec<String>,
}

struct Stage {
    slots: Vec<Slot>,
    by_path: HashMap<String, usize>,
    work: Work,
}

impl Stage {
    fn load<E>(&mut self, path: &str, line: usize, read: &mut ReadFile<'_, E>) -> Result<(), ApplyError<E>> {
        if self.by_path.contains_key(path) {
            return Ok(());
        }
        let original = read(path).map_err(|error| ApplyError::Read { path: path.to_owned(), line, error })?;
        self.by_path.insert(path.to_owned(), self.slots.len());
        self.slots.push(Slot {
            path: path.to_owned(),
            current: original.clone(),
            origin: original.is_some().then(|| path.to_owned()),
            original,
            notes: Vec::new(),
        });
        Ok(())
    }

    fn slot(&mut self, path: &str, line: usize) -> Result<&mut Slot, PatchError> {
        let slot = self.by_path.get(path).and_then(|index| self.slots.get_mut(*index));
        slot.ok_or_else(|| missing(line))
    }

    fn carry_out(&mut self, operation: &FileOperation) -> Result<(), PatchError> {
        let FileOperation { path, line, action } = operation;
        // Taken out, so that the content and the stage can be used at once; put back below.
        let mut work = std::mem::replace(&mut self.work, Work::new());
        let size = self.slot(path, *line)?.current.as_ref().map_or(0, Vec::len);
        work.spend(Work::of(1, size), *line)?;
        match action {
            FileAction::Lp1(operations) if operations.is_empty() => {}
            FileAction::Lp1(operations) => {
                let slot = self.slot(path, *line)?;
                let after = lp1::apply(slot.current.as_deref(), operations, &mut work)?;
                if slot.current.is_none() && !after.is_empty() && !after.ends_with(b"\n") {
                    slot.notes.push("the new file has no newline at its end; add `N +` for one".to_owned());
                }
                slot.current = Some(after);
            }
            FileAction::Envelope(envelope::Action::Add(content)) => {
                let slot = self.slot(path, *line)?;
                if slot.current.is_some() {
                    slot.notes.push("replaces a file that was there".to_owned());
                }
                slot.current = Some(content.clone().into_bytes());
            }
            FileAction::Envelope(envelope::Action::Delete) => self.slot(path, *line)?.delete(*line)?,
            FileAction::Envelope(envelope::Action::Update { chunks, move_to }) => {
                let slot = self.slot(path, *line)?;
                let before = slot.current.as_ref().ok_or_else(|| missing(*line))?;
                slot.current = Some(envelope::apply(before, chunks, &mut work)?);
                if let Some(to) = move_to {
                    self.relocate(path, to, *line)?;
                }
            }
            FileAction::Unified(diff) => self.unified(path, *line, diff, &mut work)?,
        }
        self.work = work;
        Ok(())
    }

    fn unified(
        &mut self,
        path: &str,
        line: usize,
        diff: &FileDiff,
        work: &mut Work,
    ) -> Result<(), PatchError> {
        let slot = self.slot(path, line)?;
        let before = match (&diff.kind, &slot.current) {
            (Kind::Create, None) => &Vec::new(),
            (Kind::Create, Some(_)) => return Err(exists(line, path)),
            (_, Some(before)) => before,
            (_, None) => return Err(missing(line)),
        };
        let (after, notes) = unified::apply(before, &diff.hunks, work)?;
        slot.notes.extend(notes);
        slot.notes.extend(diff.notes.iter().cloned());
        match &diff.kind {
            Kind::Delete if !after.is_empty() => Err(PatchError::new(
                PatchErrorKind::NoMatch,
                line,
                "The diff deletes the file, but the file has more lines than the diff removes",
            )
            .help("make the diff from the file as it is now")),
            Kind::Delete => slot.delete(line),
            Kind::Create | Kind::Modify => {
                if after.is_empty() && diff.kind == Kind::Modify && !before.is_empty() {
                    slot.notes.push("the file is left empty; `+++ /dev/null` would delete it".to_owned());
                }
                slot.current = Some(after);
                Ok(())
            }
            Kind::Rename { to } => {
                slot.current = Some(after);
                if self.slot(to, line)?.current.is_some() {
                    return Err(exists(line, to));
                }
                self.relocate(path, to, line)
            }
        }
    }

    fn relocate(&mut self, from: &str, to: &str, line: usize) -> Result<(), PatchError> {
        let source = self.slot(from, line)?;
        let (content, origin, notes) =
            (source.current.take(), source.origin.take(), std::mem::take(&mut source.notes));
        let target = self.slot(to, line)?;
        if target.current.is_some() {
            target.notes.push("replaces a file that was there".to_owned());
        }
        target.notes.extend(notes);
        (target.current, target.origin) = (content, origin);
        Ok(())
    }

    fn changes(self) -> Vec<FileChange> {
        // A file has moved where its content is elsewhere and nothing took its place.
        let moved_from = |slot: &Slot| {
            let origin =
                slot.origin.as_ref().filter(|origin| **origin != slot.path && slot.current.is_some())?;
            let source = self.by_path.get(origin)?;
            self.slots[*source].current.is_none().then_some(*source)
        };
        let sources: Vec<Option<usize>> = self.slots.iter().map(moved_from).collect();
        let mut is_source = vec![false; self.slots.len()];
        sources.iter().flatten().for_each(|source| is_source[*source] = true);
        let mut originals: Vec<Option<Vec<u8>>> = Vec::new();
        let mut rest = Vec::new();
        for Slot { path, original, current, notes, .. } in self.slots {
            originals.push(original);
            rest.push((path, current, notes));
        }
        let paths: Vec<String> = rest.iter().map(|(path, ..)| path.clone()).collect();
        let mut changes = Vec::new();
        for (index, (path, after, notes)) in rest.into_iter().enumerate() {
            if let Some(source) = sources[index] {
                let (before, overwritten) = (originals[source].clone(), originals[index].clone());
                let moved_from = Some(paths[source].clone());
                changes.push(FileChange { path, before, after, moved_from, overwritten, notes });
            } else if originals[index] != after && !is_source[index] {
                let before = originals[index].clone();
                changes.push(FileChange { path, before, after, moved_from: None, overwritten: None, notes });
            }
        }
        changes
    }
}

impl Slot {
    fn delete(&mut self, line: usize) -> Result<(), PatchError> {
        self.origin = None;
        self.current.take().map(drop).ok_or_else(|| missing(line))
    }
}

fn missing(line: usize) -> PatchError {
    PatchError::new(PatchErrorKind::FileMissing, line, "File does not exist")
        .help("check the path, and whether an earlier part of the patch deletes or moves the file")
}

fn exists(line: usize, path: &str) -> PatchError {
    PatchError::new(PatchErrorKind::FileExists, line, format!("File exists already: {path}"))
        .help("make the diff against the file as it is now, or delete that file first")
}

/// The changes that undo `changes`: carried out after them, every file is as it was.
///
/// ```
/// use haft_patch::{ChangeKind, apply, inverse, parse};
///
/// let patch = parse("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n")?;
/// let changes = apply(&patch, &mut |_: &str| Ok::<_, String>(None))?;
/// assert_eq!(inverse(&changes)[0].kind(), ChangeKind::Deleted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn inverse(changes: &[FileChange]) -> Vec<FileChange> {
    let plain = |path: &String, before: &Option<Vec<u8>>, after: &Option<Vec<u8>>| FileChange {
        path: path.clone(),
        before: before.clone(),
        after: after.clone(),
        moved_from: None,
        overwritten: None,
        notes: Vec::new(),
    };
    let mut undone = Vec::new();
    for change in changes.iter().rev() {
        match (&change.moved_from, &change.overwritten) {
            (None, _) => undone.push(plain(&change.path, &change.after, &change.before)),
            (Some(from), None) => undone.push(FileChange {
                moved_from: Some(change.path.clone()),
                ..plain(from, &change.after, &change.before)
            }),
            // Both paths have a file afterwards, so that is no move.
            (Some(from), Some(_)) => {
                undone.push(plain(from, &None, &change.before));
                undone.push(plain(&change.path, &change.after, &change.overwritten));
            }
        }
    }
    undone
}

//! Looking at a change set: what it does, and what is decided about it.

use super::{
    StageRules,
    judge::{self, Ask, CHANGED, Conflict, Protection, Violation, ViolationKind},
    walk::{At, Layer, Next, Touch, Visitor, lower_tree},
};
use crate::{
    folder::{Folder, Opener},
    tree::{Digest, Known, Marks, What},
};
use haft_core::{ChangeSummary, ChangedEntry, EntryChange, EntryKind};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// The first of some, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// The first of them.
    pub first: Vec<T>,
    /// How many there are.
    pub total: u64,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Listed { first: Vec::new(), total: 0 }
    }
}

impl<T> Listed<T> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn add(&mut self, one: T, most: usize) {
        self.total += 1;
        if self.first.len() < most {
            self.first.push(one);
        }
    }
}

/// Whether a change set can be undone after it was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UndoFit {
    /// It can.
    #[default]
    Fits,
    /// What goes is larger than what is kept for undoing.
    TooLarge {
        /// How many bytes go.
        bytes: u64,
        /// How many bytes the largest file has that goes.
        largest: u64,
    },
}

/// What was found out about a change set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What it changes.
    pub summary: ChangeSummary,
    /// Why it is not applied. With one of them it cannot be.
    pub violations: Listed<Violation>,
    /// What needs an approval of its own.
    pub asks: Listed<Ask>,
    /// What somebody else changed while the command ran. With one of them it cannot be applied.
    pub conflicts: Listed<Conflict>,
    /// Whether it can be undone.
    pub undo: UndoFit,
    /// A value that differs between change sets: what was looked at is what is applied.
    pub fingerprint: String,
}

/// Goes through the layers of a set, and notes what it meets.
pub(crate) struct Looker<'a> {
    rules: &'a StageRules,
    layer: &'a Layer,
    hidden: BTreeSet<PathBuf>,
    findings: &'a mut Findings,
    digest: &'a mut Digest,
    undo_bytes: &'a mut (u64, u64),
}

/// Looks at every layer.
pub(crate) fn look(layers: &[Layer], rules: &StageRules) -> io::Result<Findings> {
    let (mut findings, mut digest, mut undo_bytes) = (Findings::default(), Digest::default(), (0, 0));
    for layer in layers {
        digest.bytes(layer.spec.root.as_os_str().as_encoded_bytes());
        let mut looker = Looker {
            rules,
            layer,
            hidden: layer.spec.hidden.iter().cloned().collect(),
            findings: &mut findings,
            digest: &mut digest,
            undo_bytes: &mut undo_bytes,
        };
        layer.walk(&mut looker)?;
    }
    let (bytes, largest) = undo_bytes;
    if bytes > rules.keep.bytes || largest > rules.keep.file_bytes {
        findings.undo = UndoFit::TooLarge { bytes, largest };
    }
    findings.fingerprint = digest.finish();
    Ok(findings)
}

impl Visitor for Looker<'_> {
    fn meet(&mut self, at: &At<'_>, touch: &Touch<'_>) -> io::Result<Next> {
        let removes = match touch {
            Touch::Put { low, .. } | Touch::Moved { low, .. } => low.is_some(),
            Touch::Gone { .. } => true,
            Touch::Meta { .. } | Touch::Lost { .. } | Touch::Unknown { .. } => false,
        };
        self.places(at.path, removes);
        match touch {
            Touch::Put { up, low, marks } => self.put(at, up, *low, marks)?,
            Touch::Gone { low } => {
                self.note(at, b"gone", low, None);
                self.removed(at, low, true)?;
            }
            Touch::Meta { up, low } => {
                self.note(at, b"meta", up, None);
                self.ask(at.path, up.what == What::Link, at.repositories);
                self.conflict(at.path, low);
                if !up.is_like(low) || up.is_folder() {
                    self.count(at.path, EntryChange::Modified, up);
                }
                if !up.is_like(low) {
                    self.privileged(at, up, &Marks::default());
                }
            }
            Touch::Moved { from, source, up, low } => {
                self.note(at, b"moved", up, Some(from.as_os_str()));
                self.moved(at, from, source)?;
                if let Some(low) = low {
                    self.removed(at, low, true)?;
                }
                let from = EntryChange::Moved(self.shown(from));
                self.count(at.path, from, up);
            }
            Touch::Lost { why } => {
                let conflict = Conflict { path: self.full(at.path), why };
                self.findings.conflicts.add(conflict, self.rules.most_listed);
            }
            Touch::Unknown { why } => self.violation(at.path, ViolationKind::Unknown { why }),
        }
        Ok(Next::Inside)
    }
}

impl Looker<'_> {
    fn put(&mut self, at: &At<'_>, up: &Known, low: Option<&Known>, marks: &Marks) -> io::Result<()> {
        let target = (up.what == What::Link).then(|| at.upper.link_target(at.name)).transpose()?;
        self.note(at, b"put", up, target.as_deref());
        self.privileged(at, up, marks);
        self.ask(at.path, up.what == What::Link, at.repositories);
        if let Some(target) = &target {
            self.link(at.path, Path::new(target))?;
        }
        let same_kind = low.is_some_and(|low| low.what == up.what && !up.is_folder());
        if let Some(low) = low {
            self.removed(at, low, !same_kind)?;
        }
        if !matches!(up.what, What::Special(_)) {
            self.count(at.path, if same_kind { EntryChange::Modified } else { EntryChange::Created }, up);
        }
        Ok(())
    }

    /// What is taken away at a path: its bytes are kept for undoing, and nobody else may have changed it.
    fn removed(&mut self, at: &At<'_>, low: &Known, counts: bool) -> io::Result<()> {
        self.taken_away(at.path, low, counts);
        if low.device != self.layer.device {
            let why = "another file system is mounted there";
            self.violation(at.path, ViolationKind::Unknown { why });
        }
        let (true, Some(lower), Some(below)) = (low.is_folder(), at.lower, at.lower_path) else {
            return Ok(());
        };
        let folder = lower.folder(Path::new(at.name), Opener::best())?;
        let layer = self.layer;
        lower_tree(layer, &folder, (at.path, below), &mut |path, _, _, _, known| {
            self.taken_away(path, known, counts);
            Ok(())
        })
    }

    fn taken_away(&mut self, path: &Path, low: &Known, counts: bool) {
        self.conflict(path, low);
        self.ask(path, low.what == What::Link, &[]);
        if low.what == What::File {
            self.undo_bytes.0 += low.len;
            self.undo_bytes.1 = self.undo_bytes.1.max(low.len);
        }
        if counts {
            self.count(path, EntryChange::Deleted, low);
        }
    }

    /// A folder that gets another name: what is in it is judged by both names.
    fn moved(&mut self, at: &At<'_>, from: &Path, source: &Known) -> io::Result<()> {
        self.places(from, true);
        for path in [from, at.path] {
            self.ask(path, false, at.repositories);
        }
        self.conflict(from, source);
        let layer = self.layer;
        let folder = layer.lower.folder(from, Opener::best())?;
        lower_tree(layer, &folder, (at.path, from), &mut |path, _, folder, name, known| {
            let below = path.strip_prefix(at.path).unwrap_or(path);
            let old = from.join(below);
            self.conflict(&old, known);
            let is_link = known.what == What::Link;
            self.ask(&old, is_link, &[]);
            self.ask(path, is_link, at.repositories);
            self.moved_link(path, folder, name, known)
        })
    }

    /// A link with a way of its own leads elsewhere from another place.
    fn moved_link(&mut self, path: &Path, folder: &Folder, name: &OsStr, known: &Known) -> io::Result<()> {
        if known.what == What::Link {
            let target = PathBuf::from(folder.link_target(name)?);
            if target.is_relative() {
                self.link(path, &target)?;
            }
        }
        Ok(())
    }

    fn places(&mut self, path: &Path, removes: bool) {
        let full = self.full(path);
        let found = judge::hidden(&self.hidden, path, removes)
            .or_else(|| judge::read_only(&self.rules.read_only, &full, removes));
        if let Some(kind) = found {
            self.violation(path, kind);
        }
    }

    fn privileged(&mut self, at: &At<'_>, up: &Known, marks: &Marks) {
        if let Some(kind) = judge::made(up, marks) {
            self.violation(at.path, kind);
        }
    }

    fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        let is_allowed = |target: &Path| {
            let is_plain = target.components().all(|part| !matches!(part, std::path::Component::ParentDir));
            is_plain && self.rules.link_targets.iter().any(|folder| target.starts_with(folder))
        };
        let stays = match judge::lands(&self.layer.spec.root, path, target) {
            Some(landed) => self.layer.stays_inside(&landed, &is_allowed)?,
            None => is_allowed(target),
        };
        if !stays {
            self.violation(path, ViolationKind::LeadsOut { target: target.to_path_buf() });
        }
        Ok(())
    }

    fn ask(&mut self, path: &Path, is_link: bool, repositories: &[PathBuf]) {
        let protection = Protection { names: &self.rules.names, git: self.rules.git };
        if let Some(why) = protection.asks(path, is_link, repositories) {
            let ask = Ask { path: self.full(path), why };
            self.findings.asks.add(ask, self.rules.most_listed);
        }
    }

    fn conflict(&mut self, path: &Path, low: &Known) {
        let is_newer = judge::is_newer(low, self.layer.spec.since);
        if is_newer && !self.rules.restored.contains(&(low.number, low.changed)) {
            let conflict = Conflict { path: self.full(path), why: CHANGED };
            self.findings.conflicts.add(conflict, self.rules.most_listed);
        }
    }

    fn violation(&mut self, path: &Path, kind: ViolationKind) {
        let violation = Violation { path: self.full(path), kind };
        self.findings.violations.add(violation, self.rules.most_listed);
    }

    fn count(&mut self, path: &Path, change: EntryChange, known: &Known) {
        let (kind, bytes) = match known.what {
            What::File => (EntryKind::File, known.len),
            What::Folder => (EntryKind::Folder, 0),
            What::Link | What::Nothing | What::Special(_) => (EntryKind::Link, 0),
        };
        let entry = ChangedEntry { path: self.shown(path), change, kind, bytes };
        self.findings.summary.add(entry, self.rules.most_listed);
    }

    fn note(&mut self, at: &At<'_>, what: &[u8], known: &Known, target: Option<&OsStr>) {
        self.digest.bytes(what);
        self.digest.add(at.path.as_os_str(), known, target);
    }

    fn full(&self, path: &Path) -> PathBuf {
        self.layer.spec.root.join(path)
    }

    fn shown(&self, path: &Path) -> String {
        self.full(path).to_string_lossy().into_owned()
    }
}

//! From what a tool wants to the steps that make it so. Reads; changes nothing.

use super::{
    apply::{self, Bytes},
    manifest::{State, Step},
    packed::Images,
};
use crate::{
    PathError,
    entry::Entry,
    error::shown,
    folder::{Folder, entry_of_file},
    jail::{PathJail, Spot, special},
};
use haft_core::{ErrorCode, ToolError};
use haft_sdk::files::{Access, Change, Expect, Kind};
use std::{
    collections::HashSet,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

mod undo;

/// How deep folders in folders are looked through: each one takes a part of the stack, and an open folder.
const DEEPEST: usize = 256;
/// How much may be deleted at once.
const MOST_DELETED: usize = 10_000;

/// A step, with what is needed to make it.
pub(super) struct Planned<'a> {
    pub(super) step: Step,
    /// The new bytes, of a step that has some.
    pub(super) bytes: Option<Bytes<'a>>,
    /// The bytes that go, of a step in which some do.
    pub(super) old: Option<Vec<u8>>,
    /// What was there when it was planned: if that is another file now, or changed, nothing is done.
    pub(super) seen: Option<Entry>,
}

/// What a plan is made with.
pub(super) struct Planner<'a> {
    pub(super) jail: &'a PathJail,
    /// Part of the names under which new bytes are staged.
    pub(super) tag: String,
    /// The largest file whose old bytes are kept.
    pub(super) most_bytes: u64,
    pub(super) steps: Vec<Planned<'a>>,
    /// Folders that steps make.
    folders: HashSet<PathBuf>,
    touched: HashSet<PathBuf>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(jail: &'a PathJail, tag: String, most_bytes: u64) -> Self {
        Planner { jail, tag, most_bytes, steps: Vec::new(), folders: HashSet::new(), touched: HashSet::new() }
    }

    pub(super) fn add(&mut self, change: &'a Change) -> Result<(), ToolError> {
        match change {
            Change::Write { path, expect, bytes, like } => self.write(path, expect, bytes, like.as_deref()),
            Change::Delete { path, expect } => self.delete(path, expect),
            Change::Move { from, to, replace } => self.rename(from, to, *replace),
            Change::Copy { from, to, replace } => self.copy(from, to, *replace),
        }
    }

    fn write(
        &mut self,
        path: &str,
        expect: &Expect,
        bytes: &'a [u8],
        like: Option<&str>,
    ) -> Result<(), ToolError> {
        let spot = self.jail.spot(path, Access::Write)?;
        let full = self.claim(path, &spot)?;
        self.make_folders(path, &spot)?;
        let there = self.existing_file(path, &full)?;
        expected(path, expect, there.as_ref())?;
        if there.as_ref().is_some_and(|there| there.bytes == bytes) {
            return Ok(());
        }
        let model = match (&there, like) {
            (Some(there), _) => Some(there.entry),
            (None, Some(like)) => self.jail.look(like)?.1,
            (None, None) => None,
        };
        let (mode, owner) = model.map(|model| (model.mode, model.owner)).unzip();
        let after =
            State::File { sha256: apply::sha256(bytes), len: bytes.len() as u64, mode, owner, image: None };
        self.turn_file(full, there, after, Some(Bytes::Memory(bytes)));
        Ok(())
    }

    fn delete(&mut self, path: &str, expect: &Expect) -> Result<(), ToolError> {
        let spot = self.jail.spot_itself(path, Access::Write)?;
        let full = self.claim(path, &spot)?;
        let (folder, name) = apply::at(self.jail, &full)?;
        let entry = folder.entry(name).map_err(|error| PathError::io(path, error))?;
        match entry.kind {
            Kind::File => {
                let there = self.read(path, &folder, name)?;
                expected(path, expect, Some(&there))?;
                self.turn_file(full, Some(there), State::Absent, None);
            }
            Kind::Folder => {
                self.refuse_roots(path, &spot)?;
                self.delete_tree(path, &spot, &folder, name, entry)?;
            }
            Kind::Link => {
                let target = folder.link_target(name).map_err(|error| PathError::io(path, error))?.into();
                self.turn(full, State::Link { target }, State::Absent);
            }
            Kind::Other => return Err(special(path).into()),
        }
        Ok(())
    }

    fn delete_tree(
        &mut self,
        path: &str,
        spot: &Spot,
        parent: &Folder,
        name: &OsStr,
        entry: Entry,
    ) -> Result<(), ToolError> {
        self.jail.permit(path, spot, Access::Write)?;
        refuse_deep(path, spot)?;
        let fail = |error| ToolError::from(PathError::io(path, error));
        let folder = parent.folder(Path::new(name), self.jail.opener()).map_err(fail)?;
        let mut names = Vec::new();
        folder.names(|name, _| names.push(name.to_owned())).map_err(fail)?;
        for name in names {
            let spot = spot.join(&name);
            self.jail.permit(path, &spot, Access::Write)?;
            let full = self.claim(path, &spot)?;
            let entry = folder.entry(&name).map_err(fail)?;
            match entry.kind {
                Kind::File => {
                    let there = self.read(path, &folder, &name)?;
                    self.turn_file(full, Some(there), State::Absent, None);
                }
                Kind::Folder => self.delete_tree(path, &spot, &folder, &name, entry)?,
                Kind::Link => {
                    let target = folder.link_target(&name).map_err(fail)?.into();
                    self.turn(full, State::Link { target }, State::Absent);
                }
                Kind::Other => return Err(special(&full.to_string_lossy()).into()),
            }
            if self.steps.len() > MOST_DELETED {
                let text = format!(
                    "'{}' holds more than {MOST_DELETED} files, which is the most at once. Delete what is in it first",
                    shown(path)
                );
                return Err(ToolError::new(ErrorCode::LimitExceeded, text));
            }
        }
        self.turn(self.jail.full(spot), State::Folder { mode: Some(entry.mode) }, State::Absent);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str, replace: bool) -> Result<(), ToolError> {
        let source = self.jail.spot(from, Access::Write)?;
        let entry = self.jail.entry_at(from, &source)?.ok_or_else(|| missing(from))?;
        let target = self.target(to, &source, replace)?;
        let (old, new) = (self.claim(from, &source)?, self.claim(to, &target)?);
        match entry.kind {
            Kind::File => {}
            Kind::Folder if new.starts_with(&old) => {
                let text = format!(
                    "'{}' is inside '{}': a folder cannot be moved into itself",
                    shown(to),
                    shown(from)
                );
                return Err(ToolError::bad_args(text));
            }
            // Under another name a pattern may not know them any more, or may know them only then.
            Kind::Folder => {
                self.refuse_roots(from, &source)?;
                self.refuse_denied_inside(from, &source, &target)?;
            }
            Kind::Link | Kind::Other => return Err(special(from).into()),
        }
        self.make_folders(to, &target)?;
        let there = self.existing_file(to, &new)?;
        if self.device_of(&target)? != Some(entry.id.0) {
            if entry.kind == Kind::Folder {
                let text = "a folder cannot be moved to another file system; move its files one by one";
                return Err(ToolError::failed(text));
            }
            let (folder, name) = apply::at(self.jail, &old)?;
            let source = self.read(from, &folder, name)?;
            let file = folder.read(name).map_err(|error| PathError::io(from, error))?;
            let after = source.state(None);
            self.turn_file(new, there, after, Some(Bytes::whole(file)));
            self.turn_file(old, Some(source), State::Absent, None);
            return Ok(());
        }
        if let Some(there) = there {
            self.turn_file(new.clone(), Some(there), State::Absent, None);
        }
        let bytes = match entry.kind {
            Kind::File => {
                let (folder, name) = apply::at(self.jail, &old)?;
                let mut file = folder.read(name).map_err(|error| PathError::io(from, error))?;
                Some(apply::hash(&mut file).map_err(|error| PathError::io(from, error))?)
            }
            Kind::Folder | Kind::Link | Kind::Other => None,
        };
        let step = Step::Move { from: old, to: new, bytes };
        self.steps.push(Planned { step, bytes: None, old: None, seen: Some(entry) });
        Ok(())
    }

    fn copy(&mut self, from: &str, to: &str, replace: bool) -> Result<(), ToolError> {
        let mut opened = self.jail.open(from)?;
        let fail = |error| ToolError::from(PathError::io(from, error));
        let entry = entry_of_file(&opened.file).map_err(fail)?;
        let source = self.jail.spot(from, Access::Read)?;
        let target = self.target(to, &source, replace)?;
        let new = self.claim(to, &target)?;
        self.make_folders(to, &target)?;
        let there = self.existing_file(to, &new)?;
        // As long as it was when it was opened: one that grows all the time would never end.
        let (sha256, len) = apply::hash(&mut io::Read::take(&opened.file, entry.len)).map_err(fail)?;
        io::Seek::rewind(&mut opened.file).map_err(fail)?;
        let after = State::File { sha256, len, mode: Some(entry.mode), owner: None, image: None };
        self.turn_file(new, there, after, Some(Bytes::whole(opened.file)));
        Ok(())
    }

    /// Where something goes: into a folder that is there under that name, or to that name.
    fn target(&self, to: &str, source: &Spot, replace: bool) -> Result<Spot, ToolError> {
        let spot = self.jail.spot(to, Access::Write)?;
        let target = match self.jail.entry_at(to, &spot)?.map(|entry| entry.kind) {
            Some(Kind::Folder) => spot.join(source.below.file_name().unwrap_or_default()),
            _ => spot,
        };
        self.jail.permit(to, &target, Access::Write)?;
        if target == *source {
            return Err(ToolError::bad_args(format!("'{}' is where it already is", shown(to))));
        }
        match self.jail.entry_at(to, &target)?.map(|entry| entry.kind) {
            None => Ok(target),
            Some(Kind::File) if replace => Ok(target),
            Some(Kind::File) => {
                let place = self.jail.place(&target);
                let text = format!("'{}' already exists. Set overwrite to true to replace it", place.shown);
                Err(ToolError::failed(text))
            }
            Some(Kind::Folder) => Err(PathError::Folder { attempted: shown(to) }.into()),
            Some(Kind::Link) => Err(PathError::Link { attempted: shown(to), target: None }.into()),
            Some(Kind::Other) => Err(special(to).into()),
        }
    }

    /// The steps that make the folders which are missing above a spot.
    fn make_folders(&mut self, path: &str, spot: &Spot) -> Result<(), ToolError> {
        let mut missing = Vec::new();
        let mut at = spot.parent();
        while let Some(folder) = at {
            match self.jail.entry_at(path, &folder) {
                Ok(Some(entry)) if entry.kind == Kind::Folder => break,
                Ok(Some(_)) => return Err(PathError::NotFolder { attempted: shown(path) }.into()),
                Ok(None) => {}
                Err(error) => return Err(error.into()),
            }
            at = folder.parent();
            missing.push(self.jail.full(&folder));
        }
        for folder in missing.into_iter().rev() {
            if self.touched.contains(&folder) {
                return Err(two_things_at_once(&folder));
            }
            if self.folders.insert(folder.clone()) {
                self.turn(folder, State::Absent, State::Folder { mode: None });
            }
        }
        Ok(())
    }

    /// The regular file at a path, read; `None` where nothing is.
    fn existing_file(&self, path: &str, full: &Path) -> Result<Option<There>, ToolError> {
        if self.has_new_folder(full) {
            return Ok(None);
        }
        let (folder, name) = apply::at(self.jail, full)?;
        match folder.entry(name) {
            Ok(entry) => match entry.kind {
                Kind::File => self.read(path, &folder, name).map(Some),
                Kind::Folder => Err(PathError::Folder { attempted: shown(path) }.into()),
                Kind::Link => Err(PathError::Link { attempted: shown(path), target: None }.into()),
                Kind::Other => Err(special(path).into()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PathError::io(path, error).into()),
        }
    }

    fn read(&self, path: &str, folder: &Folder, name: &OsStr) -> Result<There, ToolError> {
        match apply::read_file(folder, name, self.most_bytes) {
            Ok((bytes, entry)) => Ok(There { sha256: apply::sha256(&bytes), bytes, entry }),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let text = format!(
                    "'{}' is larger than {} bytes: it could not be put back, so it is not changed",
                    shown(path),
                    self.most_bytes
                );
                Err(ToolError::new(ErrorCode::LimitExceeded, text))
            }
            Err(error) => Err(PathError::io(path, error).into()),
        }
    }

    fn refuse_roots(&self, path: &str, spot: &Spot) -> Result<(), ToolError> {
        match self.jail.holds_root(spot) {
            true => {
                Err(PathError::malformed(path, "a root itself is not changed, nor what holds one").into())
            }
            false => Ok(()),
        }
    }

    /// Refuses to move a folder that holds something denied, where it is or where it would be.
    fn refuse_denied_inside(&self, path: &str, spot: &Spot, target: &Spot) -> Result<(), ToolError> {
        refuse_deep(path, spot)?;
        let fail = |error| ToolError::from(PathError::io(path, error));
        let folder = self.jail.folder_at(spot).map_err(fail)?;
        let mut names = Vec::new();
        folder.names(|name, kind| names.push((name.to_owned(), kind))).map_err(fail)?;
        for (name, kind) in names {
            let (inside, there) = (spot.join(&name), target.join(&name));
            self.jail.permit(path, &inside, Access::Write)?;
            self.jail.permit(path, &there, Access::Write)?;
            let is_folder = match kind {
                Some(kind) => kind == Kind::Folder,
                None => folder.entry(&name).map_err(fail)?.kind == Kind::Folder,
            };
            if is_folder {
                self.refuse_denied_inside(path, &inside, &there)?;
            }
        }
        Ok(())
    }

    /// The file system that something at a spot is, or would be, on.
    fn device_of(&self, spot: &Spot) -> Result<Option<u64>, ToolError> {
        let mut at = spot.parent();
        while let Some(folder) = at {
            if let Some(entry) = self.jail.entry_at("", &folder)? {
                return Ok(Some(entry.id.0));
            }
            at = folder.parent();
        }
        Ok(None)
    }

    /// A path for one change only: two at once would depend on their order.
    fn claim(&mut self, path: &str, spot: &Spot) -> Result<PathBuf, ToolError> {
        let full = self.jail.full(spot);
        if full.to_str().is_none() {
            let text = format!("'{}' is not Unicode; files with such names are not changed", shown(path));
            return Err(ToolError::failed(text));
        }
        if self.folders.contains(&full) {
            return Err(two_things_at_once(&full));
        }
        match self.touched.insert(full.clone()) {
            true => Ok(full),
            false => Err(ToolError::bad_args(format!("'{}' is changed twice at once", shown(path)))),
        }
    }

    fn turn(&mut self, path: PathBuf, before: State, after: State) {
        let step = Step::Turn { path, before, after, staged: None };
        self.steps.push(Planned { step, bytes: None, old: None, seen: None });
    }

    pub(super) fn turn_file(
        &mut self,
        path: PathBuf,
        there: Option<There>,
        after: State,
        bytes: Option<Bytes<'a>>,
    ) {
        let number = self.steps.len();
        let before = match &there {
            Some(there) => there.state(Some(format!("before-{number}"))),
            None => State::Absent,
        };
        let staged = bytes.as_ref().map(|_| format!(".haft-{}-{number}.tmp", self.tag));
        let (old, seen) = there.map(|there| (there.bytes, there.entry)).unzip();
        self.steps.push(Planned { step: Step::Turn { path, before, after, staged }, bytes, old, seen });
    }
}

/// A file that is there, read.
pub(super) struct There {
    bytes: Vec<u8>,
    sha256: String,
    entry: Entry,
}

impl There {
    fn state(&self, image: Option<String>) -> State {
        State::File {
            sha256: self.sha256.clone(),
            len: self.bytes.len() as u64,
            mode: Some(self.entry.mode),
            owner: Some(self.entry.owner),
            image,
        }
    }
}

fn expected(path: &str, expect: &Expect, there: Option<&There>) -> Result<(), ToolError> {
    match (expect, there) {
        (Expect::Anything, _) | (Expect::Absent, None) => Ok(()),
        (Expect::Absent, Some(_)) => Err(ToolError::failed(format!("'{}' already exists", shown(path)))),
        (Expect::Sha256(sha256), Some(there)) if there.sha256.eq_ignore_ascii_case(sha256) => Ok(()),
        (Expect::Sha256(_), Some(_)) => Err(stale(path, "File content changed since last read")),
        (Expect::Sha256(_), None) => Err(stale(path, "File does not exist any more")),
    }
}

fn stale(path: &str, reason: &str) -> ToolError {
    let text = format!("Stale file {}: {reason}. Read it again, then repeat the change", shown(path));
    ToolError::new(ErrorCode::StaleFile, text).with_fact("file", shown(path)).with_fact("reason", reason)
}

/// Folders can lie deeper than there is room to follow them.
fn refuse_deep(path: &str, spot: &Spot) -> Result<(), ToolError> {
    match spot.below.components().count() > DEEPEST {
        true => {
            let text = format!(
                "'{}' holds folders in folders, deeper than {DEEPEST}. Move or delete those first",
                shown(path)
            );
            Err(ToolError::new(ErrorCode::LimitExceeded, text))
        }
        false => Ok(()),
    }
}

fn two_things_at_once(path: &Path) -> ToolError {
    let path = shown(&path.to_string_lossy());
    ToolError::bad_args(format!(
        "'{path}' would be changed itself, and be a folder for another change, at once"
    ))
}

fn missing(path: &str) -> ToolError {
    PathError::NotFound { attempted: shown(path) }.into()
}

fn changed_since(path: &Path) -> ToolError {
    let file = shown(&path.to_string_lossy());
    let reason = "somebody changed it since, or it was undone before";
    let text = format!("'{file}' is not as the call left it, so nothing was undone: {reason}");
    ToolError::new(ErrorCode::StaleFile, text).with_fact("file", file).with_fact("reason", reason)
}

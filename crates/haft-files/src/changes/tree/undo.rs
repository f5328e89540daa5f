//! The way back of a set of trees that was made.

use super::{
    build::{Builder, meta},
    carry,
    step::{New, Old, Spot, StepList, TreeStep},
};
use crate::{
    PathError,
    folder::Folder,
    jail::PathJail,
    tree::{Known, digest, enter},
};
use haft_core::{ErrorCode, ToolError};
use haft_sdk::files::Scope;
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// Puts the steps on the list that take back what a record made. Each step is the opposite of one of its own, last one
/// first: what it put somewhere is put aside, what it put aside comes back.
pub(crate) fn plan_undo(jail: &PathJail, record: &Path, builder: &mut Builder<'_>) -> Result<(), ToolError> {
    let unreadable =
        |error: io::Error| ToolError::failed(format!("the list of changes cannot be read: {error}"));
    let mut list = StepList::open(record).map_err(unreadable)?;
    let count = list.count().map_err(unreadable)?;
    let name = record.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let has_moves = has_moves(&mut list, count).map_err(unreadable)?;
    let mut undo =
        Undo { jail, record: name, builder, places: BTreeMap::new(), moved: Vec::new(), has_moves };
    for index in (0..count).rev() {
        let step = list.step(index).map_err(unreadable)?;
        undo.step(step)?;
    }
    Ok(())
}

/// Whether something only passed through a place: then what is in folders depends on the order of steps.
fn has_moves(list: &mut StepList, count: usize) -> io::Result<bool> {
    for index in 0..count {
        if let TreeStep::Put {
            new: Some(New { from: Spot::Kept { .. } | Spot::Area { .. }, digest: None, .. }),
            ..
        } = list.step(index)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Undo<'a, 'b> {
    jail: &'a PathJail,
    record: String,
    builder: &'a mut Builder<'b>,
    /// What passes through a place of haft's own: where it is put meanwhile, its number, and where it is now.
    places: BTreeMap<Spot, Passing>,
    /// Folders that steps so far move: where they are to be, and where they are now.
    moved: Vec<(usize, PathBuf, PathBuf)>,
    has_moves: bool,
}

struct Passing {
    to: Spot,
    number: u64,
    now: PathBuf,
}

impl Undo<'_, '_> {
    /// Where something is now that has that path after the steps so far.
    fn now(&self, root: usize, path: &Path) -> PathBuf {
        let around = self.moved.iter().filter(|(of, to, _)| *of == root && path.starts_with(to));
        match around.max_by_key(|(_, to, _)| to.as_os_str().len()) {
            Some((_, to, now)) if path == to => now.clone(),
            Some((_, to, now)) => now.join(path.strip_prefix(to).unwrap_or(path)),
            None => path.to_path_buf(),
        }
    }

    fn step(&mut self, step: TreeStep) -> Result<(), ToolError> {
        let (root, path) = step.place();
        let path = path.to_path_buf();
        let full = self.builder.ground.root_path(root).join(&path);
        self.permit(&full)?;
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => changed_since(&full),
            _ => ToolError::from(PathError::io(&full.to_string_lossy(), error)),
        };
        match step {
            TreeStep::Put { old, new, .. } => {
                let goes = match new {
                    Some(new) => Some(self.goes(root, &path, &full, new)?),
                    None => None,
                };
                let comes = match old {
                    Some(old) => Some(self.comes(root, &path, &full, &old)?),
                    None => None,
                };
                self.builder.put(root, &path, goes, comes).map_err(fail)
            }
            TreeStep::Make { path, meta, root } => {
                self.builder.add(&TreeStep::Unmake { root, path, meta }).map_err(fail)
            }
            TreeStep::Unmake { path, meta, root } => {
                self.builder.add(&TreeStep::Make { root, path, meta }).map_err(fail)
            }
            TreeStep::Meta { root, path, number, before, after } => {
                let now = self.now(root, &path.0);
                let (reached, known) = carry::look(self.builder.ground, root, &now).map_err(fail)?;
                let name = now.file_name().unwrap_or_default();
                let known =
                    known.filter(|known| known.number == number).ok_or_else(|| changed_since(&full))?;
                let now = meta(reached.folder(), name, &known).map_err(fail)?;
                if (now.mode, now.owner) != (after.mode, after.owner) || now.others != after.others {
                    return Err(changed_since(&full));
                }
                let step = TreeStep::Meta { root, path, number, before: after, after: before };
                self.builder.add(&step).map_err(fail)
            }
        }
    }

    /// What the record put there goes, where it is still that.
    fn goes(&mut self, root: usize, path: &Path, full: &Path, new: New) -> Result<Old, ToolError> {
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => changed_since(full),
            _ => ToolError::from(PathError::io(&full.to_string_lossy(), error)),
        };
        let now = self.now(root, path);
        let (reached, known) = carry::look(self.builder.ground, root, &now).map_err(fail)?;
        let known = known.ok_or_else(|| changed_since(full))?;
        let name = now.file_name().unwrap_or_default();
        if is_other(reached.folder(), name, &known, &new).map_err(fail)? {
            return Err(changed_since(full));
        }
        let full_now = self.builder.ground.root_path(root).join(&now);
        if !self.jail.is_named(&full_now)
            && let Some(why) = self.jail.protects(&full_now, Scope::Everything)
        {
            return Err(protected(&why));
        }
        let passes = matches!(new.from, Spot::Kept { .. } | Spot::Area { .. }) && new.digest.is_none();
        let old = match passes {
            true => {
                let to = self.builder.transit(root).map_err(fail)?;
                Old { number: known.number, to, copy: None, changed: None, protected: false }
            }
            false => self.builder.goes(root, (reached.folder(), name), &known, false).map_err(fail)?,
        };
        if passes {
            let (to, number) = (old.to.clone(), known.number);
            self.places.insert(new.from, Passing { to, number, now });
        }
        // Steps in between may change what is in it, and so its time.
        Ok(Old { changed: None, ..old })
    }

    /// What the record put aside comes back.
    fn comes(&mut self, root: usize, path: &Path, full: &Path, old: &Old) -> Result<New, ToolError> {
        if old.protected && !self.is_agreed_to(root, full, old) {
            return Err(protected(&format!("{} is or holds something protected", full.display())));
        }
        if let Some(Passing { to: from, number, now }) = self.places.remove(&old.to) {
            self.moved.push((root, path.to_path_buf(), now));
            return Ok(New { number, from, digest: None, strip: false, opaque: None });
        }
        let name = match (&old.to, &old.copy) {
            (Spot::Kept { name }, _) | (_, Some(name)) => name.clone(),
            _ => return Err(changed_since(full)),
        };
        let spot = Spot::Other { record: self.record.clone(), name };
        self.builder.comes_from(root, spot, !self.has_moves).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => changed_since(full),
            _ => PathError::io(&full.to_string_lossy(), error).into(),
        })
    }

    /// Whether the decision was about what comes back: everything protected in it was named, and is known by its name.
    fn is_agreed_to(&self, root: usize, full: &Path, old: &Old) -> bool {
        let Some(name) = kept_name(old) else { return self.jail.is_named(full) };
        let spot = Spot::Other { record: self.record.clone(), name: name.to_owned() };
        let inside = self.builder.ground.own(&spot).and_then(|(reached, name)| {
            protected_inside(self.jail, reached.folder(), &name, full, self.builder.ground.root_path(root))
        });
        inside.is_ok_and(|paths| !paths.is_empty() && paths.iter().all(|path| self.jail.is_named(path)))
    }

    /// Undoing changes what is below a root that may be changed, and what runs programs later only by name.
    fn permit(&self, full: &Path) -> Result<(), ToolError> {
        let text = full.to_string_lossy();
        let spot = self.jail.spot_of(full).ok_or_else(|| PathError::outside(&text, Some(full)))?;
        self.jail.permit_root(&text, &spot)?;
        match self.jail.reason(full).filter(|_| !self.jail.is_named(full)) {
            Some(why) => Err(protected(&format!("{} is protected: {why}", full.display()))),
            None => Ok(()),
        }
    }
}

/// The name under which a record has what went; none where it only passed.
fn kept_name(old: &Old) -> Option<&str> {
    match (&old.to, &old.copy) {
        (Spot::Kept { name }, _) | (_, Some(name)) => Some(name),
        _ => None,
    }
}

/// The paths that are protected by their names in something that is kept, as they are when it is back at `full`.
fn protected_inside(
    jail: &PathJail,
    folder: &Folder,
    name: &OsStr,
    full: &Path,
    root: &Path,
) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if full.strip_prefix(root).is_ok_and(|below| jail.names().reason(below).is_some()) {
        found.push(full.to_path_buf());
    }
    let known = folder.known(name)?.ok_or(io::ErrorKind::NotFound)?;
    if known.is_folder() {
        let inner = enter(folder, name)?;
        for name in inner.sorted()? {
            found.extend(protected_inside(jail, &inner, &name, &full.join(&name), root)?);
        }
    }
    Ok(found)
}

/// Every path that taking back what a record made would change: those of its steps, and what is protected in what comes
/// back. `None` where there are more than that.
pub(crate) fn touched(
    jail: &PathJail,
    record: &Path,
    roots: &[PathBuf],
    most: usize,
) -> io::Result<Option<Vec<PathBuf>>> {
    let mut list = StepList::open(record)?;
    let mut paths = Vec::new();
    while let Some(step) = list.next_step()? {
        let (root, path) = step.place();
        let root = roots.get(root).map(PathBuf::as_path).unwrap_or(Path::new(""));
        let full = root.join(path);
        if let TreeStep::Put { old: Some(old @ Old { protected: true, .. }), .. } = &step
            && let Some(name) = kept_name(old)
        {
            let kept = Folder::open(&super::kept_folder(record))?;
            paths.extend(protected_inside(jail, &kept, OsStr::new(name), &full, root)?);
        }
        paths.push(full);
        if paths.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(paths))
}

fn is_other(folder: &Folder, name: &std::ffi::OsStr, known: &Known, new: &New) -> io::Result<bool> {
    match &new.digest {
        Some(expected) => Ok(digest(folder, name, known)? != *expected),
        None => Ok(known.number != new.number),
    }
}

fn protected(why: &str) -> ToolError {
    let text = format!("{why}. Undoing does not change it; use write_file or delete_file, which asks");
    ToolError::new(ErrorCode::FilesystemPolicyViolation, text)
}

fn changed_since(path: &Path) -> ToolError {
    let text = format!(
        "'{}' is not as the call left it, so nothing was undone: somebody changed it since, or it was undone before",
        path.display()
    );
    ToolError::new(ErrorCode::StaleFile, text)
}

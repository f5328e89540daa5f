//! Taking back sets of changes that were cut, or could not be made.

#[cfg(target_os = "linux")]
use super::tree;
use super::{
    TakenBack,
    apply::{self, Bytes},
    manifest::{self, Manifest, State, Step},
    packed::{self, Images, Left},
    record::{self, Shelf},
};
use crate::{
    PathError,
    folder::Folder,
    jail::{JailSpec, PathJail, RootSpec},
};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// One set that cannot be taken back keeps nobody from working.
pub(super) fn recover(shelf: &Shelf) -> io::Result<Vec<TakenBack>> {
    let mut taken_back = Vec::new();
    for record in shelf.cut()? {
        let Some(manifest) = record::manifest_of(&record.folder)? else {
            record.forget()?;
            continue;
        };
        #[cfg(target_os = "linux")]
        if manifest.version == manifest::TREES {
            taken_back.push(tree::recover(shelf, record, manifest));
            continue;
        }
        let images = Images::Folder(record.folder.clone());
        taken_back.push(took_back(manifest, &images, || record.forget()));
    }
    // The newest first: a file that two sets changed gets the bytes from before both.
    for Left { record, manifest, is_made, is_of_another_boot } in packed::left(shelf)?.into_iter().rev() {
        if is_made || (is_of_another_boot && was_made(&manifest)?) {
            record.shelve(shelf)?;
            continue;
        }
        let images = record.images()?;
        taken_back.push(took_back(manifest, &images, || record.forget()));
    }
    taken_back.sort_by_key(|set| set.by);
    // What could not be removed takes up room, no more: the next start tries again.
    #[cfg(target_os = "linux")]
    let _ = tree::clean_up(shelf);
    Ok(taken_back)
}

/// Whether a set was made whose mark a power cut may have taken. A single change is made in one moment, after its new
/// bytes were on disk: unless the path is as before, it was, and somebody may have changed it since.
fn was_made(manifest: &Manifest) -> io::Result<bool> {
    let Some(Step::Turn { path, before, .. }) = packed::only_turn(manifest) else { return Ok(false) };
    let jail = jail_of(manifest)?;
    match there(&jail, path)? {
        Some((folder, name)) => Ok(!apply::is(&folder, name, before)?),
        None => Ok(*before != State::Absent),
    }
}

/// Takes back a set that a crash cut, and its record with it.
fn took_back(manifest: Manifest, images: &Images, forget: impl FnOnce() -> io::Result<()>) -> TakenBack {
    let mut paths: BTreeSet<_> = manifest.steps.iter().flat_map(Step::paths).cloned().collect();
    let (left, problem) = match take_back(&manifest, images) {
        Ok(left) => (left, forget().err().map(|error| error.to_string())),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    match &problem {
        Some(_) => paths.clear(),
        None => paths.retain(|path| !left.contains(path)),
    }
    let paths = paths.into_iter().collect();
    TakenBack { by: manifest.by, summary: manifest.summary, paths, left, problem }
}

/// Takes back what was made of a set. Gives the paths that are neither as before nor as they were to be: somebody
/// else changed them, and they are left alone. Can be cut and done again.
pub(super) fn take_back(manifest: &Manifest, images: &Images) -> io::Result<Vec<PathBuf>> {
    let jail = jail_of(manifest)?;
    let mut left = Vec::new();
    for step in manifest.steps.iter().rev() {
        let is_back = match step {
            Step::Turn { path, before, after, staged } => {
                let Some((folder, name)) = there(&jail, path)? else { continue };
                if let Some(staged) = staged {
                    remove_if_there(&folder, OsStr::new(staged))?;
                }
                turn_back(&folder, name, before, after, staged.as_deref(), images)?
            }
            Step::Move { from, to, .. } => {
                let (Some((source, old)), Some((target, new))) = (there(&jail, from)?, there(&jail, to)?)
                else {
                    continue;
                };
                match (source.entry(old).is_ok(), target.entry(new).is_ok()) {
                    (false, true) => target.rename_new(new, &source, old).map(|()| true)?,
                    (true, _) => true,
                    (false, false) => false,
                }
            }
        };
        if !is_back {
            left.extend(step.paths().cloned());
        }
    }
    Ok(left)
}

fn jail_of(manifest: &Manifest) -> io::Result<PathJail> {
    let roots = manifest.roots.iter().map(|path| RootSpec { path: path.clone(), read_only: false }).collect();
    PathJail::new(JailSpec { roots, ..JailSpec::default() }).map_err(io::Error::other)
}

/// The folder of a path with its last name; `None` where the folder is not there, and so nothing in it was changed.
fn there<'p>(jail: &PathJail, path: &'p Path) -> io::Result<Option<(Folder, &'p OsStr)>> {
    match apply::at(jail, path) {
        Ok(there) => Ok(Some(there)),
        Err(PathError::NotFound { .. }) => Ok(None),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Turns one path back. Whether it is as before now.
fn turn_back(
    folder: &Folder,
    name: &OsStr,
    before: &State,
    after: &State,
    staged: Option<&str>,
    images: &Images,
) -> io::Result<bool> {
    if apply::is(folder, name, before)? {
        return Ok(true);
    }
    if !apply::is(folder, name, after)? {
        return Ok(false);
    }
    let mut back =
        Step::Turn { path: PathBuf::new(), before: after.clone(), after: before.clone(), staged: None };
    if let (State::File { image: Some(image), .. }, Step::Turn { staged: name, .. }) = (before, &mut back) {
        let stage = staged.map_or_else(|| format!(".haft-{image}.tmp"), str::to_owned);
        remove_if_there(folder, OsStr::new(&stage))?;
        let mut bytes = Bytes::File(images.open(image)?);
        apply::stage(folder, &stage, &mut bytes, before)?;
        *name = Some(stage);
    }
    match apply::apply(folder, name, &back) {
        // Somebody uses the folder that was made: it stays.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(true),
        Err(error) => Err(error),
        Ok(()) => folder.sync().map(|()| true),
    }
}

fn remove_if_there(folder: &Folder, name: &OsStr) -> io::Result<()> {
    match folder.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

//! Making one step, and taking it back.

use super::{
    area::{Ground, Reached},
    step::{Marked, Meta, New, Old, Spot, TreeStep},
};
use crate::{
    folder::Folder,
    tree::{Known, What, digest, enter, mark_opaque, set_meta, strip_tree},
};
use haft_core::port::LayerMarks;
use std::{ffi::OsStr, io, path::Path};

/// Makes a step.
pub(super) fn forward(ground: &Ground, step: &TreeStep, point: &dyn Fn(&str)) -> io::Result<()> {
    let (root, path) = step.place();
    let (reached, name) = ground.live(root, path)?;
    let live = reached.folder();
    match step {
        TreeStep::Put { old, new, .. } => {
            if let Some(old) = old {
                let there = live.known(name)?.ok_or(io::ErrorKind::NotFound)?;
                let is_other = old.changed.is_some_and(|changed| changed != there.changed);
                if there.number != old.number || is_other {
                    return Err(io::ErrorKind::StaleNetworkFileHandle.into());
                }
                let (to, kept) = ground.own(&old.to)?;
                carry(live, name, to.folder(), &kept)?;
                point("kept");
            }
            if let Some(new) = new {
                let (from, own) = ground.own(&new.from)?;
                if new.strip {
                    strip_tree(from.folder(), &own)?;
                    point("strip");
                }
                carry(from.folder(), &own, live, name)?;
                point("put");
            }
            Ok(())
        }
        TreeStep::Make { meta, .. } => {
            live.create_folder(name, 0o700)?;
            point("make");
            apply_meta(live, name, meta)
        }
        TreeStep::Unmake { .. } => unmake(live, name).map(|_| ()),
        TreeStep::Meta { number, after, .. } => {
            let there = live.known(name)?.ok_or(io::ErrorKind::NotFound)?;
            if there.number != *number {
                return Err(io::ErrorKind::StaleNetworkFileHandle.into());
            }
            apply_meta(live, name, after)?;
            point("meta");
            Ok(())
        }
    }
}

/// What became of a step that is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// It was not made: what is there was not touched.
    Untouched,
    /// What was there is there again.
    Restored,
    /// Somebody else changed what is there, and it is left alone.
    Left,
}

impl Back {
    fn when(is_back: bool) -> Self {
        if is_back { Back::Untouched } else { Back::Left }
    }
}

/// Takes a step back, whether it was made, half made or not begun.
pub(super) fn back(ground: &Ground, step: &TreeStep) -> io::Result<Back> {
    let (root, path) = step.place();
    let (reached, name) = match ground.live(root, path) {
        // Its folder was not made, or is taken back: then nothing is there.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Back::Untouched);
        }
        reached => reached?,
    };
    let live = reached.folder();
    match step {
        TreeStep::Put { old, new, .. } => {
            if let Some(new) = new
                && !put_back(ground, live, name, new)?
            {
                return Ok(Back::Left);
            }
            match old {
                Some(old) => bring_back(ground, live, name, old),
                None => Ok(Back::Untouched),
            }
        }
        TreeStep::Make { .. } => unmake(live, name).map(Back::when),
        TreeStep::Unmake { meta, .. } => match live.known(name)? {
            Some(_) => Ok(Back::Untouched),
            None => {
                live.create_folder(name, 0o700)?;
                apply_meta(live, name, meta).map(|()| Back::Restored)
            }
        },
        TreeStep::Meta { number, before, .. } => match live.known(name)? {
            Some(there) if there.number == *number => apply_meta(live, name, before).map(|()| Back::Restored),
            _ => Ok(Back::Left),
        },
    }
}

/// What came goes back to where it was.
fn put_back(ground: &Ground, live: &Folder, name: &OsStr, new: &New) -> io::Result<bool> {
    let there = live.known(name)?;
    let is_it = there.filter(|there| there.number == new.number);
    let (from, own) = match ground.own(&new.from) {
        // The place that it came from is gone: among what is forgotten with the record it does no harm.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_it.is_some() => {
            let name = format!("back-{}", new.number);
            ground.own(&Spot::Kept { name })?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        reached => reached?,
    };
    let is_there_still = from.folder().known(&own)?.is_some();
    if let (Some(there), false) = (is_it, is_there_still) {
        if is_other(live, name, &there, new)? {
            return Ok(false);
        }
        carry(live, name, from.folder(), &own)?;
    }
    if let (Some(marked), Some(_)) = (new.opaque, from.folder().known(&own)?) {
        let marks = match marked {
            Marked::Trusted => LayerMarks::Trusted,
            Marked::User => LayerMarks::User,
        };
        mark_opaque(from.folder(), &own, marks)?;
    }
    Ok(true)
}

fn is_other(live: &Folder, name: &OsStr, there: &Known, new: &New) -> io::Result<bool> {
    match &new.digest {
        Some(expected) => Ok(digest(live, name, there)? != *expected),
        None => Ok(false),
    }
}

/// What went comes back.
fn bring_back(ground: &Ground, live: &Folder, name: &OsStr, old: &Old) -> io::Result<Back> {
    let (to, kept) = match ground.own(&old.to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Back::Untouched),
        reached => reached?,
    };
    match (to.folder().known(&kept)?, live.known(name)?) {
        (Some(kept_there), None) if kept_there.number == old.number => {
            carry(to.folder(), &kept, live, name).map(|()| Back::Restored)
        }
        // It never went.
        (None, _) => Ok(Back::Untouched),
        (Some(_), _) => Ok(Back::Left),
    }
}

/// Gives something another name, where nothing has that. A folder whose own permissions are against it gets others for
/// as long as it takes: its entry for the folder around it changes.
pub(super) fn carry(from: &Folder, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
    match from.rename_new(name, to, new) {
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && from.known(name)?.is_some_and(|known| known.is_folder()) =>
        {
            let _opened = enter(from, name)?;
            from.rename_new(name, to, new)
        }
        done => done,
    }
}

fn unmake(live: &Folder, name: &OsStr) -> io::Result<bool> {
    match live.remove_folder(name) {
        Ok(()) => Ok(true),
        // Somebody uses the folder: it stays.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

fn apply_meta(live: &Folder, name: &OsStr, meta: &Meta) -> io::Result<()> {
    let there = live.known(name)?.ok_or(io::ErrorKind::NotFound)?;
    let wanted = Known { mode: meta.mode, owner: meta.owner, modified: meta.modified, ..there };
    if !matches!(there.what, What::File | What::Folder) {
        return Err(io::Error::other("it is neither a file nor a folder any more"));
    }
    let others = meta.others.iter().cloned().collect();
    set_meta(live, name, &wanted, Some(&others))
}

/// The folder that a place is in, for those who only look.
pub(super) fn look(ground: &Ground, root: usize, path: &Path) -> io::Result<(Reached, Option<Known>)> {
    let (reached, name) = ground.live(root, path)?;
    let known = reached.folder().known(name)?;
    Ok((reached, known))
}

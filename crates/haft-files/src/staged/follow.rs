//! Following a link through a folder as it is when a layer is applied. Changes nothing.

use super::walk::{Layer, redirected};
use crate::{
    folder::Opener,
    tree::{Entered, What, enter, marks},
};
use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// What is at a path.
enum Met {
    Nothing,
    Folder,
    Link(PathBuf),
    Other,
}

impl Layer {
    /// Whether a path below the root stays below it, whatever links are on the way: those of the folder and those of
    /// the layer, as they are when it is applied. `is_allowed`: where else a link may lead.
    pub(super) fn stays_inside(&self, landed: &Path, is_allowed: &dyn Fn(&Path) -> bool) -> io::Result<bool> {
        let mut at = PathBuf::new();
        let mut ahead: Vec<OsString> = parts(landed);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                if !at.pop() {
                    return Ok(false);
                }
                continue;
            }
            at.push(&part);
            match self.met(&at)? {
                Met::Folder => {}
                // It leads nowhere: from what somebody makes there later it could go on to anywhere.
                Met::Nothing | Met::Other => return Ok(!ahead.iter().any(|part| part == "..")),
                Met::Link(target) => {
                    at.pop();
                    links += 1;
                    let below = match (target.is_absolute(), target.strip_prefix(&self.spec.root)) {
                        (false, _) => target.as_path(),
                        (true, Ok(below)) => {
                            at.clear();
                            below
                        }
                        (true, Err(_)) => {
                            let whole: PathBuf = std::iter::once(target.as_os_str())
                                .chain(ahead.iter().rev().map(OsString::as_os_str))
                                .collect();
                            return Ok(is_allowed(&whole));
                        }
                    };
                    if links > MOST_LINKS {
                        return Ok(false);
                    }
                    ahead.extend(parts(below));
                }
            }
        }
        Ok(true)
    }

    /// What is at a path when the layer is applied. The folders around it are no links.
    fn met(&self, path: &Path) -> io::Result<Met> {
        let mut entered: Option<Entered> = None;
        let mut is_in_layer = true;
        let mut lower = Some(PathBuf::new());
        let mut met = Met::Folder;
        for name in path {
            let around = lower.take();
            let below = around.as_ref().map(|around| around.join(name)).filter(|below| !self.is_taken(below));
            let upper = entered.as_deref().unwrap_or(&self.upper);
            let known = if is_in_layer { upper.known(name)? } else { None };
            let Some(known) = known else {
                is_in_layer = false;
                let Some(below) = below else { return Ok(Met::Nothing) };
                met = self.met_below(&below)?;
                lower = Some(below);
                continue;
            };
            let marks = marks(upper, name, self.spec.marks)?;
            match known.what {
                What::Nothing => return Ok(Met::Nothing),
                _ if marks.is_whiteout => return Ok(Met::Nothing),
                What::Link => return Ok(Met::Link(upper.link_target(name)?.into())),
                What::File | What::Special(_) => return Ok(Met::Other),
                What::Folder => met = Met::Folder,
            }
            lower = match (&marks.redirect, marks.is_opaque, below) {
                (Some(mark), ..) => redirected(mark, around.as_deref()),
                (None, false, Some(below)) if matches!(self.met_below(&below)?, Met::Folder) => Some(below),
                (None, ..) => None,
            };
            let inner = enter(upper, name)?;
            entered = Some(inner);
        }
        Ok(met)
    }

    /// What is at a path of the folder below the layer.
    fn met_below(&self, path: &Path) -> io::Result<Met> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Met::Folder) };
        let folder = match self.lower.folder(parent, Opener::best()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Met::Nothing),
            folder => folder?,
        };
        Ok(match folder.known(name)?.map(|known| known.what) {
            None => Met::Nothing,
            Some(What::Folder) => Met::Folder,
            Some(What::Link) => Met::Link(folder.link_target(name)?.into()),
            Some(What::File | What::Nothing | What::Special(_)) => Met::Other,
        })
    }
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

//! From the layers of a command to the steps that apply them.

use super::{
    build::{Builder, FromLayer, meta},
    step::{New, Raw, Spot, TreeStep},
};
use crate::{
    folder::Folder,
    jail::PathJail,
    staged::{At, Layer, Next, Touch, Visitor},
    tree::{Known, Marks, What, enter, marks},
};
use haft_core::port::LayerMarks;
use haft_sdk::files::Scope;
use std::{
    collections::HashMap,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// Puts the steps on the list that apply these layers, which were looked at.
pub(crate) fn plan(jail: &PathJail, layers: &[Layer], builder: &mut Builder<'_>) -> io::Result<()> {
    for (root, layer) in layers.iter().enumerate() {
        let mut planner = Planner { jail, builder, layer, root, taken: HashMap::new() };
        planner.take_moved()?;
        layer.walk(&mut planner)?;
    }
    Ok(())
}

struct Planner<'a, 'b> {
    jail: &'a PathJail,
    builder: &'a mut Builder<'b>,
    layer: &'a Layer,
    root: usize,
    /// Where folders are that were taken from their old places.
    taken: HashMap<PathBuf, (Spot, u64)>,
}

impl Planner<'_, '_> {
    /// Folders that get other names are taken from their places first, inner ones before outer ones: so their new
    /// names may be anywhere, also in each other's places.
    fn take_moved(&mut self) -> io::Result<()> {
        for from in self.layer.moves.keys().rev() {
            let (parent, name) =
                (from.parent().unwrap_or(Path::new("")), from.file_name().unwrap_or_default());
            let folder = self.layer.lower.folder(parent, crate::folder::Opener::best())?;
            let known = folder.known(name)?.ok_or(io::ErrorKind::NotFound)?;
            let to = self.builder.transit(self.root)?;
            let number = known.number;
            let protected = self.is_protected(from);
            let old = super::step::Old { number, to: to.clone(), copy: None, changed: None, protected };
            self.builder.put(self.root, from, Some(old), None)?;
            self.taken.insert(from.clone(), (to, number));
        }
        Ok(())
    }

    /// What is there goes, and `new` comes.
    fn replace(&mut self, at: &At<'_>, low: Option<&Known>, new: Option<New>) -> io::Result<()> {
        let old = match (low, at.lower) {
            (Some(low), Some(lower)) => {
                let protected = self.is_protected(at.lower_path.unwrap_or(at.path));
                Some(self.builder.goes(self.root, (lower, at.name), low, protected)?)
            }
            _ => None,
        };
        self.builder.put(self.root, at.path, old, new)
    }

    fn is_protected(&self, path: &Path) -> bool {
        let full = self.layer.spec.root.join(path);
        self.jail.protects(&full, Scope::Everything).is_some()
    }

    fn put(&mut self, at: &At<'_>, up: &Known, low: Option<&Known>, marks: &Marks) -> io::Result<Next> {
        let inside = match up.what {
            What::Folder => look_through(at.upper, at.name, self.layer.spec.marks)?,
            _ => Inside { is_whole: true, has_marks: false },
        };
        if inside.is_whole {
            let from = FromLayer {
                layer: &self.layer.spec.upper,
                path: at.path,
                folder: at.upper,
                name: at.name,
                known: up,
                has_marks: marks.any || inside.has_marks,
                opaque: marks.is_opaque.then_some(self.layer.spec.marks),
            };
            let new = self.builder.comes(self.root, &from)?;
            self.replace(at, low, Some(new))?;
            return Ok(Next::Past);
        }
        if low.is_some() {
            self.replace(at, low, None)?;
        }
        let meta = meta(at.upper, at.name, up)?;
        self.builder.add(&TreeStep::Make { root: self.root, path: Raw(at.path.into()), meta })?;
        Ok(Next::Inside)
    }
}

impl Visitor for Planner<'_, '_> {
    fn meet(&mut self, at: &At<'_>, touch: &Touch<'_>) -> io::Result<Next> {
        match touch {
            Touch::Put { up, low, marks } => return self.put(at, up, *low, marks),
            Touch::Gone { low } => self.replace(at, Some(low), None)?,
            Touch::Moved { from, low, .. } => {
                let (from, number) = self.taken.get(*from).cloned().ok_or(io::ErrorKind::NotFound)?;
                let new = New { number, from, digest: None, strip: false, opaque: None };
                self.replace(at, *low, Some(new))?;
            }
            Touch::Meta { up, low } => {
                let number = low.number;
                // Of a folder that is moved, what is below is elsewhere.
                let lower_path = self.layer.lower_of(at.path);
                let parent = self
                    .layer
                    .lower
                    .folder(lower_path.parent().unwrap_or(Path::new("")), crate::folder::Opener::best())?;
                let before = meta(&parent, lower_path.file_name().unwrap_or_default(), low)?;
                let after = meta(at.upper, at.name, up)?;
                let path = Raw(at.path.into());
                self.builder.add(&TreeStep::Meta { root: self.root, path, number, before, after })?;
            }
            Touch::Lost { why } | Touch::Unknown { why } => return Err(io::Error::other(*why)),
        }
        Ok(Next::Inside)
    }
}

/// What is in a new folder of a layer.
struct Inside {
    /// It is as it is to be: no folder in it has contents of elsewhere.
    is_whole: bool,
    has_marks: bool,
}

fn look_through(folder: &Folder, name: &OsStr, by: LayerMarks) -> io::Result<Inside> {
    let inner = enter(folder, name)?;
    let mut found = Inside { is_whole: true, has_marks: false };
    for name in inner.sorted()? {
        let known = inner.known(&name)?.ok_or(io::ErrorKind::NotFound)?;
        let marks = marks(&inner, &name, by)?;
        found.has_marks |= marks.any;
        let is_plain = matches!(known.what, What::File | What::Folder | What::Link);
        found.is_whole &= is_plain && !marks.is_whiteout && marks.redirect.is_none();
        if known.is_folder() && found.is_whole {
            let deeper = look_through(&inner, &name, by)?;
            found.is_whole &= deeper.is_whole;
            found.has_marks |= deeper.has_marks;
        }
        if !found.is_whole {
            break;
        }
    }
    Ok(found)
}

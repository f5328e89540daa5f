//! Putting steps on the list: where what goes is kept, and where what comes is taken from.

use super::{
    area::{Ground, make_private},
    kept_folder,
    step::{Marked, Meta, New, Old, Raw, Spot, StepWriter, TreeStep},
};
use crate::{
    folder::Folder,
    tree::{Copier, Known, digest, others},
};
use haft_core::port::LayerMarks;
use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

/// Writes the steps of a set. Copies what cannot be renamed; changes nothing else.
pub(crate) struct Builder<'a> {
    pub(super) ground: &'a Ground,
    writer: StepWriter,
    /// Whether what goes is kept for undoing.
    keeps: bool,
    /// Copies into what the record keeps.
    kept: Copier,
    /// Copies into haft's own folder below a root.
    areas: HashMap<usize, Copier>,
    number: u64,
    point: &'a dyn Fn(&str),
}

/// What comes from a layer.
pub(crate) struct FromLayer<'a> {
    /// The path of the layer itself.
    pub(crate) layer: &'a Path,
    /// Below it.
    pub(crate) path: &'a Path,
    /// The folder that it is in.
    pub(crate) folder: &'a Folder,
    pub(crate) name: &'a OsStr,
    pub(crate) known: &'a Known,
    /// Whether there are marks on it, or on anything in it.
    pub(crate) has_marks: bool,
    /// Whether the layer hides what is below.
    pub(crate) opaque: Option<LayerMarks>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(ground: &'a Ground, keeps: bool, point: &'a dyn Fn(&str)) -> io::Result<Self> {
        let kept = kept_folder(&ground.record);
        make_private(&kept)?;
        Ok(Builder {
            ground,
            writer: StepWriter::create(&ground.record)?,
            keeps,
            kept: Copier::new(Folder::open(&kept)?),
            areas: HashMap::new(),
            number: 0,
            point,
        })
    }

    pub(super) fn finish(self) -> io::Result<u64> {
        self.writer.finish()
    }

    fn next(&mut self) -> String {
        self.number += 1;
        self.number.to_string()
    }

    /// Whether what is below a root can be renamed into the record.
    fn reaches_record(&self, root: usize) -> io::Result<bool> {
        self.ground.root(root)?.shares_mount(&Folder::open(&kept_folder(&self.ground.record))?)
    }

    fn area(&mut self, root: usize) -> io::Result<&mut Copier> {
        if !self.areas.contains_key(&root) {
            let area = self.ground.make_area(root)?;
            self.areas.insert(root, Copier::new(area));
        }
        self.areas.get_mut(&root).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A place for something that only passes.
    pub(crate) fn transit(&mut self, root: usize) -> io::Result<Spot> {
        let name = self.next();
        if self.reaches_record(root)? {
            return Ok(Spot::Kept { name });
        }
        self.area(root)?;
        Ok(Spot::Area { root, name })
    }

    /// What goes, from that folder under that name.
    pub(crate) fn goes(
        &mut self,
        root: usize,
        (folder, name): (&Folder, &OsStr),
        known: &Known,
        protected: bool,
    ) -> io::Result<Old> {
        // One with several names changes with the first of them that goes.
        let changed = (!known.is_folder() && known.names == 1).then_some(known.changed);
        let number = known.number;
        let to = self.transit(root)?;
        let copy = match &to {
            Spot::Area { name: new, .. } if self.keeps => {
                self.kept.copy(folder, name, OsStr::new(new))?;
                (self.point)("image");
                Some(new.clone())
            }
            _ => None,
        };
        Ok(Old { number, to, copy, changed, protected })
    }

    /// What comes from a layer: itself, or a copy where it is on another file system.
    pub(crate) fn comes(&mut self, root: usize, from: &FromLayer<'_>) -> io::Result<New> {
        if self.ground.root(root)?.shares_mount(from.folder)? {
            let opaque = from.opaque.map(|marks| match marks {
                LayerMarks::Trusted => Marked::Trusted,
                LayerMarks::User => Marked::User,
            });
            let spot = Spot::Layer { layer: Raw(from.layer.into()), path: Raw(from.path.into()) };
            let digest = Some(digest(from.folder, from.name, from.known)?);
            let strip = from.has_marks;
            return Ok(New { number: from.known.number, from: spot, digest, strip, opaque });
        }
        self.copied(root, from.folder, from.name, true)
    }

    /// What comes from a place of haft's own: itself, or a copy where it is on another file system.
    pub(crate) fn comes_from(&mut self, root: usize, spot: Spot, with_digest: bool) -> io::Result<New> {
        let (reached, name) = self.ground.own(&spot)?;
        let folder = reached.folder();
        if !self.ground.root(root)?.shares_mount(folder)? {
            return self.copied(root, folder, &name, with_digest);
        }
        let known = folder.known(&name)?.ok_or(io::ErrorKind::NotFound)?;
        let digest = with_digest.then(|| digest(folder, &name, &known)).transpose()?;
        Ok(New { number: known.number, from: spot, digest, strip: false, opaque: None })
    }

    fn copied(&mut self, root: usize, folder: &Folder, name: &OsStr, with_digest: bool) -> io::Result<New> {
        let new = self.next();
        let own = OsString::from(&new);
        self.area(root)?.copy(folder, name, &own)?;
        (self.point)("stage");
        let spot = Spot::Area { root, name: new };
        let (reached, own) = self.ground.own(&spot)?;
        let known = reached.folder().known(&own)?.ok_or(io::ErrorKind::NotFound)?;
        let digest = with_digest.then(|| digest(reached.folder(), &own, &known)).transpose()?;
        Ok(New { number: known.number, from: spot, digest, strip: false, opaque: None })
    }

    pub(crate) fn put(
        &mut self,
        root: usize,
        path: &Path,
        old: Option<Old>,
        new: Option<New>,
    ) -> io::Result<()> {
        self.writer.add(&TreeStep::Put { root, path: Raw(path.into()), old, new })
    }

    pub(crate) fn add(&mut self, step: &TreeStep) -> io::Result<()> {
        self.writer.add(step)
    }
}

/// All that belongs to an entry beside its contents.
pub(crate) fn meta(folder: &Folder, name: &OsStr, known: &Known) -> io::Result<Meta> {
    Ok(Meta::of(known, others(folder, name)?))
}

//! Reading a layer beside the folder that it was put above. Changes nothing.

use crate::{
    folder::{Folder, Opener},
    tree::{Known, Marks, What, enter, marks, same_others},
};
use haft_core::port::{LayerMarks, StagedRoot};
use haft_guard::names::GitEntries;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

/// How deep folders in folders are looked through: each takes a part of the stack, and open folders.
const DEEPEST: usize = 256;

/// A layer, and the folder that it was put above, both open.
pub(crate) struct Layer {
    pub(crate) spec: StagedRoot,
    pub(crate) upper: Folder,
    pub(crate) lower: Folder,
    /// The file system of the folder.
    pub(crate) device: u64,
    /// Folders that were given another name: where they are in the folder, and where they are to be.
    pub(crate) moves: BTreeMap<PathBuf, PathBuf>,
}

/// What a layer does to one path.
pub(crate) enum Touch<'a> {
    /// Something is there now, and something else or nothing before.
    Put { up: &'a Known, low: Option<&'a Known>, marks: &'a Marks },
    /// Nothing is there any more.
    Gone { low: &'a Known },
    /// It has other permissions, another owner or another time, and the same contents.
    Meta { up: &'a Known, low: &'a Known },
    /// A folder of another place is there now.
    Moved { from: &'a Path, source: &'a Known, up: &'a Known, low: Option<&'a Known> },
    /// It cannot be told what the guest did there: the folder below changed under it.
    Lost { why: &'static str },
    /// This is no layer that haft reads.
    Unknown { why: &'static str },
}

/// Where a layer does something.
pub(crate) struct At<'a> {
    /// Below the root.
    pub(crate) path: &'a Path,
    pub(crate) name: &'a OsStr,
    /// The folder of the layer that it is in.
    pub(crate) upper: &'a Folder,
    /// The folder below, and what has the same name in there: where the path is of a folder that was moved, it is
    /// another one.
    pub(crate) lower: Option<&'a Folder>,
    /// Where that is, below the root.
    pub(crate) lower_path: Option<&'a Path>,
    /// Whether a folder around it is new.
    pub(crate) is_in_new: bool,
    /// Folders around it that git takes for repositories, by what is in them.
    pub(crate) repositories: &'a [PathBuf],
}

/// Whether to go on with what is in a new folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Inside,
    Past,
}

/// Takes what a layer does, parents first, in the order of names.
pub(crate) trait Visitor {
    fn meet(&mut self, at: &At<'_>, touch: &Touch<'_>) -> io::Result<Next>;
}

/// The folder around what is looked at.
struct Around<'a> {
    path: &'a Path,
    upper: &'a Folder,
    lower: Option<(&'a Folder, &'a Path)>,
    is_in_new: bool,
    repositories: &'a [PathBuf],
}

impl Layer {
    pub(crate) fn open(spec: &StagedRoot) -> io::Result<Self> {
        let (upper, lower) = (Folder::open(&spec.upper)?, Folder::open(&spec.root)?);
        let device = lower.known_itself()?.device;
        let mut layer = Layer { spec: spec.clone(), upper, lower, device, moves: BTreeMap::new() };
        // Only a layer of root's has such marks.
        if spec.marks == LayerMarks::Trusted {
            let mut moves = BTreeMap::new();
            layer.find_moves(&layer.upper, Path::new(""), Some(Path::new("")), &mut moves)?;
            layer.moves = moves;
        }
        Ok(layer)
    }

    /// Whether what is at that path of the folder below is moved elsewhere: then nothing is there any more.
    pub(crate) fn is_taken(&self, lower: &Path) -> bool {
        self.moves.contains_key(lower)
    }

    /// Where in the folder below is what has that path when the layer is applied.
    pub(crate) fn lower_of(&self, path: &Path) -> PathBuf {
        let around = self.moves.iter().filter(|(_, to)| path.starts_with(to));
        match around.max_by_key(|(_, to)| to.as_os_str().len()) {
            Some((from, to)) => from.join(path.strip_prefix(to).unwrap_or(Path::new(""))),
            None => path.to_path_buf(),
        }
    }

    fn find_moves(
        &self,
        upper: &Folder,
        path: &Path,
        lower: Option<&Path>,
        moves: &mut BTreeMap<PathBuf, PathBuf>,
    ) -> io::Result<()> {
        refuse_deep(path)?;
        let mut folders = Vec::new();
        upper.names(|name, kind| {
            if kind.is_none_or(|kind| kind == haft_sdk::files::Kind::Folder) {
                folders.push(name.to_owned());
            }
        })?;
        for name in folders {
            if !upper.known(&name)?.is_some_and(|known| known.is_folder()) {
                continue;
            }
            let marks = marks(upper, &name, self.spec.marks)?;
            let path = path.join(&name);
            let from = match &marks.redirect {
                Some(redirect) => redirected(redirect, lower)
                    .filter(|from| is_move(from, &path, lower.map(|lower| lower.join(&name)).as_deref())),
                None => None,
            };
            if let Some(from) = &from
                && moves.insert(from.clone(), path.clone()).is_some()
            {
                return Err(io::Error::other("two folders of the layer have the contents of the same one"));
            }
            let below = match (&from, marks.is_opaque, lower) {
                (Some(from), ..) => Some(from.clone()),
                (None, false, Some(lower)) => Some(lower.join(&name)),
                (None, ..) => None,
            };
            self.find_moves(&*enter(upper, &name)?, &path, below.as_deref(), moves)?;
        }
        Ok(())
    }

    /// Tells everything that the layer does.
    pub(crate) fn walk(&self, visitor: &mut dyn Visitor) -> io::Result<()> {
        let around = Around {
            path: Path::new(""),
            upper: &self.upper,
            lower: Some((&self.lower, Path::new(""))),
            is_in_new: false,
            repositories: &[],
        };
        self.folder(&around, visitor)
    }

    fn folder(&self, around: &Around<'_>, visitor: &mut dyn Visitor) -> io::Result<()> {
        refuse_deep(around.path)?;
        let names = around.upper.sorted()?;
        let mut repositories = around.repositories;
        let mut more;
        if is_repository(around, &names)? {
            more = repositories.to_vec();
            more.push(around.path.to_path_buf());
            repositories = &more;
        }
        let around = Around { repositories, ..*around };
        names.iter().try_for_each(|name| self.entry(&around, name, visitor))
    }

    fn entry(&self, around: &Around<'_>, name: &OsStr, visitor: &mut dyn Visitor) -> io::Result<()> {
        let path = around.path.join(name);
        let up = around.upper.known(name)?.ok_or(io::ErrorKind::NotFound)?;
        let lower_path = around.lower.map(|(_, lower)| lower.join(name));
        let low = match (&lower_path, around.lower) {
            (Some(path), Some((lower, _))) if !self.is_taken(path) => lower.known(name)?,
            _ => None,
        };
        let at = At {
            path: &path,
            name,
            upper: around.upper,
            lower: around.lower.map(|(lower, _)| lower),
            lower_path: lower_path.as_deref(),
            is_in_new: around.is_in_new,
            repositories: around.repositories,
        };
        if up.what == What::Nothing {
            return gone(&at, low.as_ref(), visitor);
        }
        let marks = marks(around.upper, name, self.spec.marks)?;
        if marks.is_whiteout {
            return gone(&at, low.as_ref(), visitor);
        }
        if marks.is_metacopy {
            visitor.meet(&at, &Touch::Unknown { why: "a file in it has no bytes of its own" })?;
            return Ok(());
        }
        match up.what {
            What::Folder => self.meet_folder(around, &at, (&up, low.as_ref()), &marks, visitor),
            _ => self.meet_other(&at, (&up, low.as_ref()), &marks, visitor),
        }
    }

    fn meet_folder(
        &self,
        around: &Around<'_>,
        at: &At<'_>,
        (up, low): (&Known, Option<&Known>),
        marks: &Marks,
        visitor: &mut dyn Visitor,
    ) -> io::Result<()> {
        let redirect = marks.redirect.as_deref();
        let from = redirect.map(|mark| redirected(mark, around.lower.map(|(_, lower)| lower)));
        match from {
            Some(None) => {
                visitor.meet(at, &Touch::Unknown { why: "a folder in it has contents of nowhere" })?;
                return Ok(());
            }
            Some(Some(from)) if is_move(&from, at.path, at.lower_path) => {
                let Ok(lower) = self.lower.folder(&from, Opener::best()) else {
                    visitor.meet(at, &Touch::Lost { why: "the folder that was moved there is gone" })?;
                    return Ok(());
                };
                let source = lower.known_itself()?;
                visitor.meet(at, &Touch::Moved { from: &from, source: &source, up, low })?;
                let differs = !up.is_like(&source) || !same_itself(at, &lower)?;
                if differs {
                    visitor.meet(at, &Touch::Meta { up, low: &source })?;
                }
                return self.inside(around, at, Some((&lower, &from)), false, visitor);
            }
            _ => {}
        }
        let merged = low.filter(|low| low.is_folder() && !marks.is_opaque);
        let (Some(low), Some(parent), Some(below)) = (merged, at.lower, at.lower_path) else {
            if !marks.is_opaque && low.is_some_and(|low| !low.is_folder()) {
                visitor.meet(at, &Touch::Lost { why: "it is no folder any more" })?;
                return Ok(());
            }
            if !marks.is_opaque && low.is_none() && marks.has_origin && !at.is_in_new {
                visitor.meet(at, &Touch::Lost { why: "it is gone" })?;
                return Ok(());
            }
            return match visitor.meet(at, &Touch::Put { up, low, marks })? {
                Next::Inside => self.inside(around, at, None, true, visitor),
                Next::Past => Ok(()),
            };
        };
        if low.device != self.device {
            visitor.meet(at, &Touch::Unknown { why: "another file system is mounted there" })?;
            return Ok(());
        }
        let lower = parent.folder(Path::new(at.name), Opener::best())?;
        if !up.is_like(low) || !same_others((at.upper, at.name), (parent, at.name))? {
            visitor.meet(at, &Touch::Meta { up, low })?;
        }
        self.inside(around, at, Some((&lower, below)), around.is_in_new, visitor)
    }

    fn inside(
        &self,
        around: &Around<'_>,
        at: &At<'_>,
        lower: Option<(&Folder, &Path)>,
        is_in_new: bool,
        visitor: &mut dyn Visitor,
    ) -> io::Result<()> {
        // Only now: its permissions may have to be others for that.
        let upper = enter(at.upper, at.name)?;
        let repositories = around.repositories;
        self.folder(&Around { path: at.path, upper: &upper, lower, is_in_new, repositories }, visitor)
    }

    fn meet_other(
        &self,
        at: &At<'_>,
        (up, low): (&Known, Option<&Known>),
        marks: &Marks,
        visitor: &mut dyn Visitor,
    ) -> io::Result<()> {
        if let (Some(low), Some(lower)) = (low, at.lower)
            && is_same(at, (up, low), lower)?
        {
            if up.modified != low.modified && up.what == What::File {
                visitor.meet(at, &Touch::Meta { up, low })?;
            }
            return Ok(());
        }
        // A file that was changed, in a folder in which others changed names since: was it there, it is gone.
        let is_lost = low.is_none()
            && marks.has_origin
            && match at.lower {
                Some(lower) => lower.known_itself()?.modified > self.spec.since,
                None => false,
            };
        match is_lost {
            true => visitor.meet(at, &Touch::Lost { why: "it may be gone" })?,
            false => visitor.meet(at, &Touch::Put { up, low, marks })?,
        };
        Ok(())
    }
}

fn gone(at: &At<'_>, low: Option<&Known>, visitor: &mut dyn Visitor) -> io::Result<()> {
    if let Some(low) = low {
        visitor.meet(at, &Touch::Gone { low })?;
    }
    Ok(())
}

/// Whether a folder of a layer has the same attributes as an open folder.
fn same_itself(at: &At<'_>, lower: &Folder) -> io::Result<bool> {
    same_others((at.upper, at.name), (lower, OsStr::new(".")))
}

/// Whether a copy in the layer is equal to what it was made of, but for its time.
fn is_same(at: &At<'_>, (up, low): (&Known, &Known), lower: &Folder) -> io::Result<bool> {
    if !up.is_like(low) {
        return Ok(false);
    }
    let same = match up.what {
        What::File => up.len == low.len && same_bytes(at.upper, lower, at.name)?,
        What::Link => {
            up.modified == low.modified && at.upper.link_target(at.name)? == lower.link_target(at.name)?
        }
        What::Folder | What::Nothing | What::Special(_) => false,
    };
    Ok(same && same_others((at.upper, at.name), (lower, at.name))?)
}

fn same_bytes(a: &Folder, b: &Folder, name: &OsStr) -> io::Result<bool> {
    // One that cannot be read is not known to be the same.
    let (Ok(mut a), Ok(mut b)) = (a.read(name), b.read(name)) else { return Ok(false) };
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    loop {
        of_a.clear();
        of_b.clear();
        (&mut a).take(64 << 10).read_to_end(&mut of_a)?;
        (&mut b).take(64 << 10).read_to_end(&mut of_b)?;
        if of_a != of_b {
            return Ok(false);
        }
        if of_a.is_empty() {
            return Ok(true);
        }
    }
}

/// Whether git would take a folder for a repository when the layer is applied.
fn is_repository(around: &Around<'_>, names: &[OsString]) -> io::Result<bool> {
    let mut entries = GitEntries::default();
    for name in names {
        if matches!(name.to_ascii_lowercase().as_bytes(), b"head" | b"objects" | b"refs" | b"commondir") {
            let known = around.upper.known(name)?;
            if known.is_some_and(|known| known.what != What::Nothing) {
                entries.meet(name.as_bytes());
            }
        }
    }
    if let Some((lower, _)) = around.lower {
        for name in ["HEAD", "objects", "refs", "commondir"].map(OsStr::new) {
            if !names.iter().any(|upper| upper == name) && lower.known(name)?.is_some() {
                entries.meet(name.as_bytes());
            }
        }
    }
    Ok(entries.is_repository())
}

/// Whether a folder at that path with the contents of `from` was moved there. `below` is what would be there without
/// its mark: where a new folder is around it, nothing is, also where the path is the same.
fn is_move(from: &Path, path: &Path, below: Option<&Path>) -> bool {
    from != path || below != Some(from)
}

/// Which folder of the lower layer a mark names: from the root, or beside the one that has the mark.
pub(super) fn redirected(mark: &[u8], parent: Option<&Path>) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(mark));
    let path = match path.strip_prefix("/") {
        Ok(below) => below.to_path_buf(),
        Err(_) => parent?.join(path),
    };
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && path != Path::new("")).then_some(path)
}

fn refuse_deep(path: &Path) -> io::Result<()> {
    match path.components().count() > DEEPEST {
        true => Err(io::Error::other(format!("its folders are deeper than {DEEPEST}"))),
        false => Ok(()),
    }
}

/// An entry of a folder below a layer: its path, where it is below, its folder, its name, and what it is.
pub(crate) type EachLower<'a> = dyn FnMut(&Path, &Path, &Folder, &OsStr, &Known) -> io::Result<()> + 'a;

/// Goes through what is in a folder below a layer: each entry with its path, which is `path` and what comes after.
/// What is moved elsewhere is left out. A folder comes before what is in it.
pub(crate) fn lower_tree(
    layer: &Layer,
    folder: &Folder,
    (path, lower_path): (&Path, &Path),
    each: &mut EachLower<'_>,
) -> io::Result<()> {
    refuse_deep(lower_path)?;
    for name in folder.sorted()? {
        let (path, lower_path) = (path.join(&name), lower_path.join(&name));
        if layer.is_taken(&lower_path) {
            continue;
        }
        // Gone between being listed and being looked at: who took it is found by the time of the folder.
        let Some(known) = folder.known(&name)? else { continue };
        each(&path, &lower_path, folder, &name, &known)?;
        if known.is_folder() && known.device == layer.device {
            let inner = folder.folder(Path::new(&name), Opener::best())?;
            lower_tree(layer, &inner, (&path, &lower_path), each)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_names_a_folder_of_the_root_or_nothing() {
        let cases = [
            ("/a/b", None, Some("a/b")),
            ("b", Some("a"), Some("a/b")),
            ("b", Some(""), Some("b")),
            ("b", None, None),
            ("/../etc", None, None),
            ("/a/../../etc", None, None),
            ("/", None, None),
        ];
        for (mark, parent, expected) in cases {
            let found = redirected(mark.as_bytes(), parent.map(Path::new));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{mark}");
        }
    }
}

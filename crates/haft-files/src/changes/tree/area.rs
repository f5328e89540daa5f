//! Where things are before they come and after they went.

use super::{
    super::record::{Record, Shelf},
    kept_folder,
    step::{Spot, TreeStep},
};
use crate::{
    folder::{Folder, Opener},
    staged::Restored,
    tree::{Entered, enter, remove_tree},
};
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

/// The folders that a set works with.
pub(crate) struct Ground {
    /// The folder of its record.
    pub(crate) record: PathBuf,
    name: String,
    shelf: Shelf,
    roots: Vec<(PathBuf, Folder)>,
    /// The name of haft's own folder below a root.
    area: String,
}

/// A folder that was reached, with the ones on the way that had to be opened up for it.
pub(crate) struct Reached {
    way: Vec<Entered>,
    first: Folder,
}

impl Reached {
    pub(crate) fn folder(&self) -> &Folder {
        self.way.last().map_or(&self.first, |last| last)
    }
}

impl Ground {
    pub(crate) fn new(shelf: &Shelf, record: &Record, roots: &[PathBuf], tag: String) -> io::Result<Self> {
        let roots = roots.iter().map(|path| Ok((path.clone(), Folder::open(path)?)));
        Ok(Ground {
            record: record.folder.clone(),
            name: record.name().to_owned(),
            shelf: shelf.clone(),
            roots: roots.collect::<io::Result<_>>()?,
            area: format!(".haft-{tag}.tmp"),
        })
    }

    pub(crate) fn root(&self, index: usize) -> io::Result<&Folder> {
        let no_root = || io::Error::other("the record names a root that it does not have");
        self.roots.get(index).map(|(_, folder)| folder).ok_or_else(no_root)
    }

    pub(crate) fn root_path(&self, index: usize) -> &Path {
        self.roots.get(index).map_or(Path::new(""), |(path, _)| path)
    }

    pub(crate) fn full(&self, step: &TreeStep) -> PathBuf {
        let (root, path) = step.place();
        self.root_path(root).join(path)
    }

    /// The folder of a path below a root, and its last name. Links on the way are refused.
    pub(crate) fn live<'p>(&self, root: usize, path: &'p Path) -> io::Result<(Reached, &'p OsStr)> {
        let name = path.file_name().ok_or_else(|| io::Error::other("a root itself is not changed"))?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let root = self.root(root)?;
        match (parent.parent(), parent.file_name()) {
            (Some(around), Some(last)) => {
                let first = root.folder(around, Opener::best())?;
                let way = vec![enter(&first, last)?];
                Ok((Reached { way, first }, name))
            }
            _ => Ok((Reached { way: Vec::new(), first: root.folder(Path::new(""), Opener::best())? }, name)),
        }
    }

    /// The folder of a place of haft's own, and its last name.
    pub(crate) fn own(&self, spot: &Spot) -> io::Result<(Reached, OsString)> {
        let plain = |folder: PathBuf, name: &str| {
            Ok((Reached { way: Vec::new(), first: Folder::open(&folder)? }, OsString::from(name)))
        };
        match spot {
            Spot::Kept { name } => plain(kept_folder(&self.record), name),
            Spot::Other { record, name } => plain(kept_folder(&self.shelf.done_folder(record)), name),
            Spot::Area { root, name } => {
                let first = self.root(*root)?.folder(Path::new(&self.area), Opener::best())?;
                Ok((Reached { way: Vec::new(), first }, OsString::from(name)))
            }
            Spot::Layer { layer, path } => {
                let first = Folder::open(&layer.0)?;
                let mut way: Vec<Entered> = Vec::new();
                let name = path.0.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
                for part in path.0.parent().unwrap_or(Path::new("")).iter() {
                    let entered = enter(way.last().map_or(&first, |last| last), part)?;
                    way.push(entered);
                }
                Ok((Reached { way, first }, name))
            }
        }
    }

    /// Makes the folder of haft's own below a root, and opens it. It is on record before: a crash leaves none of them.
    pub(crate) fn make_area(&self, root: usize) -> io::Result<Folder> {
        let areas: Vec<_> = self.roots.iter().map(|(path, _)| path.join(&self.area)).collect();
        self.shelf.note_left(&self.name, &areas)?;
        let folder = self.root(root)?;
        match folder.create_folder(OsStr::new(&self.area), 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        folder.folder(Path::new(&self.area), Opener::best())
    }

    /// Removes them, and the note about them.
    pub(crate) fn remove_areas(&self) -> io::Result<()> {
        for (_, folder) in &self.roots {
            remove_tree(folder, OsStr::new(&self.area))?;
        }
        self.shelf.forget_left(&self.name)
    }

    /// Notes what is at a path as put back, as it is now. Whether that is a folder.
    pub(crate) fn note(&self, (root, path): (usize, &Path), restored: &mut Restored) -> io::Result<bool> {
        let Ok((reached, name)) = self.live(root, path) else { return Ok(false) };
        let Some(known) = reached.folder().known(name)? else { return Ok(false) };
        restored.insert((known.number, known.changed));
        Ok(known.is_folder())
    }

    /// Keeps what was noted.
    pub(crate) fn keep_note(&self, restored: Restored) -> io::Result<()> {
        self.shelf.note_restored(&self.name, restored)
    }

    /// Writes every file system that is used to disk, each once.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let record = Folder::open(&self.record)?;
        let mut seen = Vec::new();
        for folder in self.roots.iter().map(|(_, folder)| folder).chain([&record]) {
            let device = folder.known_itself()?.device;
            if !seen.contains(&device) {
                seen.push(device);
                folder.sync_all_files()?;
            }
        }
        Ok(())
    }
}

/// Removes folders that sets left below roots, when the process that made them ended in between.
pub(crate) fn clean_up(shelf: &Shelf) -> io::Result<()> {
    for (name, areas) in shelf.left()? {
        for area in areas {
            let is_own = |name: &str| name.starts_with(".haft-") && name.ends_with(".tmp");
            let (Some(parent), Some(last)) = (area.parent(), area.file_name()) else { continue };
            if last.to_str().is_some_and(is_own)
                && let Ok(folder) = Folder::open(parent)
            {
                remove_tree(&folder, last)?;
            }
        }
        shelf.forget_left(&name)?;
    }
    for name in shelf.dropped()? {
        remove_tree(&Folder::open(&shelf.left_folder())?, &name)?;
    }
    Ok(())
}

/// Makes a folder that only its owner may enter.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

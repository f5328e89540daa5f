//! The path jail: which file a path means, opened so that nothing can lead out.
//!
//! There is one way to open anything: from the handle of a root, by a path in which the kernel refuses every link.
//! A path with links in it is resolved first, checked again, and then opened by its resolved form in the same way.
//! So the path that was checked *is* the path of the handle, whatever is swapped meanwhile.

use super::{
    entry::Entry,
    error::{PathError, shown},
    folder::{Folder, Opener, entry_of_file, is_system_file, says_link},
    held::Held,
    lexical,
    worker::Described,
};
use haft_core::Footprint;
use haft_guard::names::{Anchoring, BadPattern, DeniedPaths, ProtectedNames};
use haft_sdk::files::{Access, Kind, Place};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

mod resolve;

use resolve::real_path;

/// How often a path is resolved again when it changes between being resolved and being opened.
const TRIES: usize = 8;

/// A folder whose files can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootSpec {
    /// The folder.
    pub path: PathBuf,
    /// Whether its files can only be read.
    pub read_only: bool,
}

/// What a path jail is made of.
#[derive(Clone, Debug, Default)]
pub struct JailSpec {
    /// The folders; relative paths start at the first one.
    pub roots: Vec<RootSpec>,
    /// Patterns of files that are denied all the same.
    pub denied_patterns: Vec<String>,
    /// Whether a path may be absolute; it must lead into a root all the same.
    pub allow_absolute: bool,
    /// Files, and folders with all that is in them, that are denied whether they are there or not: haft's own.
    pub private: Vec<PathBuf>,
    /// Names of files that run programs later: changing one needs an approval of its own.
    pub names: Arc<ProtectedNames>,
    /// Opens name by name even where the kernel could do it at once. Slower, never less safe.
    pub step_by_step: bool,
    /// Takes roots that can be passed through and not listed, as a jail around them may leave only a part of one.
    pub only_pass_through: bool,
}

/// Why a path jail could not be made.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// A root cannot be used.
    #[error(
        "the root '{path}' cannot be opened: {source}. Set tools.files.allowed_roots to folders that are there"
    )]
    Root {
        /// Which one.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is none.
    #[error("there is no root: tools.files.allowed_roots is empty")]
    NoRoots,
    /// A denied pattern cannot be read.
    #[error(transparent)]
    Pattern(#[from] BadPattern),
}

#[derive(Debug)]
struct Root {
    /// Resolved.
    path: PathBuf,
    folder: Folder,
    /// The file system that it is on.
    device: u64,
    read_only: bool,
    /// Whether a name in its own path is one that could be denied.
    is_suspected: bool,
}

/// Keeps paths inside their roots.
///
/// ```
/// use haft_files::{JailSpec, PathJail, RootSpec};
/// # let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let root = RootSpec { path: folder.path().into(), read_only: false };
/// let jail = PathJail::new(JailSpec { roots: vec![root], ..JailSpec::default() })?;
///
/// assert!(jail.open("notes.txt").is_ok());
/// let error = jail.open("../outside.txt").unwrap_err();
/// assert_eq!(error.to_string(), "Path outside sandbox (attempted: ../outside.txt)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PathJail {
    roots: Arc<[Root]>,
    denied: Arc<DeniedPaths>,
    names: Arc<ProtectedNames>,
    allow_absolute: bool,
    opener: Opener,
    /// What was decided on, where it is for one call.
    held: Option<Held>,
    /// From which a worker makes the same.
    spec: Arc<Described>,
}

/// A path that was checked: below which root, and how. It holds no link, or names what is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    root: usize,
    pub(crate) below: PathBuf,
}

/// A regular file that was opened, and where.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: File,
    /// Where it is.
    pub place: Place,
    /// How long it was then.
    pub len: u64,
}

impl PathJail {
    /// A jail of these roots.
    pub fn new(spec: JailSpec) -> Result<Self, JailError> {
        if spec.roots.is_empty() {
            return Err(JailError::NoRoots);
        }
        let described = Described {
            denied_patterns: spec.denied_patterns.clone(),
            private: spec.private.clone(),
            step_by_step: spec.step_by_step,
        };
        let open_root = if spec.only_pass_through { Folder::open_way } else { Folder::open };
        let mut roots =
            spec.roots.into_iter().map(|root| Root::open(root, open_root)).collect::<Result<Vec<_>, _>>()?;
        // Where haft's own folders are links or lie behind some, their real place is what a handle would have. They
        // may be made later.
        let real = |path: &PathBuf| real_path(path).ok().map(|(path, _)| path);
        let private: Vec<_> =
            spec.private.iter().filter_map(real).chain(spec.private.iter().cloned()).collect();
        let patterns = spec.denied_patterns.iter().map(String::as_str);
        let denied = DeniedPaths::new(patterns, private, Anchoring::AtRoots)?;
        for root in &mut roots {
            root.is_suspected = root.path.iter().any(|name| denied.suspects(name));
        }
        #[cfg(unix)]
        let opener = if spec.step_by_step { Opener::StepByStep } else { Opener::best() };
        #[cfg(not(unix))]
        let opener = Opener::best();
        Ok(PathJail {
            roots: roots.into(),
            denied: Arc::new(denied),
            names: spec.names,
            allow_absolute: spec.allow_absolute,
            opener,
            held: None,
            spec: Arc::new(described),
        })
    }

    /// The same jail for one call, in which only what was decided on can be used.
    #[must_use]
    pub fn held_to(&self, footprint: &Footprint) -> Self {
        PathJail {
            roots: Arc::clone(&self.roots),
            denied: Arc::clone(&self.denied),
            names: Arc::clone(&self.names),
            allow_absolute: self.allow_absolute,
            opener: self.opener,
            held: Some(Held::to(footprint)),
            spec: Arc::clone(&self.spec),
        }
    }

    /// Whether a checked path is among what was decided on. To be asked of the path that is used, after every link on
    /// it was followed: what is opened after that is opened without following any.
    pub(crate) fn hold(&self, attempted: &str, spot: &Spot, access: Access) -> Result<(), PathError> {
        let Some(held) = &self.held else { return Ok(()) };
        let full = self.full(spot);
        if held.covers(&full, access) { Ok(()) } else { Err(PathError::moved(attempted, &full)) }
    }

    /// Whether a change of a resolved path was decided about by name, for the call that this jail is for.
    pub(crate) fn is_named(&self, full: &Path) -> bool {
        self.held.as_ref().is_some_and(|held| held.names(full))
    }

    /// Whether a place is among what was decided on, for what is remembered about it.
    pub(crate) fn hold_place(&self, place: &Place) -> Result<(), PathError> {
        let path = Path::new(&place.path);
        let is_held = self.held.as_ref().is_none_or(|held| held.covers(path, Access::Read));
        if is_held { Ok(()) } else { Err(PathError::moved(&place.shown, path)) }
    }

    /// What it is made of, for a worker that makes the same in a jail.
    pub(crate) fn parts_for_worker(&self) -> (Vec<RootSpec>, bool, &Described, Option<&Held>) {
        let root = |root: &Root| RootSpec { path: root.path.clone(), read_only: root.read_only };
        (self.roots.iter().map(root).collect(), self.allow_absolute, &self.spec, self.held.as_ref())
    }

    /// The same jail, held to that.
    #[must_use]
    pub(crate) fn holding(self, held: Option<Held>) -> Self {
        PathJail { held, ..self }
    }

    /// Where a path leads, and whether it may be used like that. It need not exist.
    pub fn locate(&self, path: &str, access: Access) -> Result<Place, PathError> {
        Ok(self.place(&self.spot(path, access)?))
    }

    /// Opens a regular file for reading. Links that stay inside are followed.
    pub fn open(&self, path: &str) -> Result<Opened, PathError> {
        let mut spot = self.literal(path)?;
        for _ in 0..TRIES {
            self.permit(path, &spot, Access::Read)?;
            let (root, below) = self.parts(&spot);
            match root.folder.file(below, self.opener) {
                Ok(file) => {
                    self.hold(path, &spot, Access::Read)?;
                    return self.regular(path, file, &spot);
                }
                Err(error) if says_link(&error) => spot = self.resolve_existing(path, &spot)?,
                Err(error) => return Err(PathError::io(path, error)),
            }
        }
        Err(restless(path))
    }

    /// Opens a file by a spot that was found on a walk; a link anywhere on it is refused.
    pub(crate) fn open_spot(&self, spot: &Spot) -> io::Result<File> {
        let (root, below) = self.parts(spot);
        let file = root.folder.file(below, self.opener)?;
        let entry = entry_of_file(&file)?;
        match entry.kind {
            Kind::File if self.is_of_the_system(&file, &entry, spot) => {
                Err(io::ErrorKind::PermissionDenied.into())
            }
            Kind::File => Ok(file),
            Kind::Folder | Kind::Link | Kind::Other => Err(io::Error::other("not a regular file")),
        }
    }

    /// Opens a folder for reading. Links that stay inside are followed.
    pub(crate) fn open_folder(&self, path: &str) -> Result<(Folder, Spot), PathError> {
        let spot = self.literal(path)?;
        self.open_folder_at(path, spot)
    }

    fn open_folder_at(&self, path: &str, mut spot: Spot) -> Result<(Folder, Spot), PathError> {
        for _ in 0..TRIES {
            self.permit(path, &spot, Access::Read)?;
            match self.folder_at(&spot) {
                Ok(folder) => return Ok((folder, spot)),
                Err(error) if says_link(&error) => spot = self.resolve_existing(path, &spot)?,
                Err(error) => return Err(PathError::io(path, error)),
            }
        }
        Err(restless(path))
    }

    /// Opens a folder by its checked path; a link anywhere on it is refused.
    pub(crate) fn folder_at(&self, spot: &Spot) -> io::Result<Folder> {
        let (root, below) = self.parts(spot);
        root.folder.folder(below, self.opener)
    }

    /// What is at a path; a link at the end is not followed.
    pub(crate) fn look(&self, path: &str) -> Result<(Spot, Option<Entry>), PathError> {
        let spot = self.spot_unless_link(path)?;
        self.permit(path, &spot, Access::Read)?;
        self.hold(path, &spot, Access::Read)?;
        let entry = self.entry_at(path, &spot)?;
        Ok((spot, entry))
    }

    /// What is at a checked path.
    pub(crate) fn entry_at(&self, attempted: &str, spot: &Spot) -> Result<Option<Entry>, PathError> {
        let (root, below) = self.parts(spot);
        match root.folder.entry_below(below, self.opener) {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PathError::io(attempted, error)),
        }
    }

    /// The checked path that a path means, for reading or writing.
    pub(crate) fn spot(&self, path: &str, access: Access) -> Result<Spot, PathError> {
        let spot = match access {
            Access::Read => self.follow(path)?,
            Access::Write => {
                let spot = self.spot_unless_link(path)?;
                self.refuse_link(path, &spot)?;
                spot
            }
        };
        self.permit(path, &spot, access)?;
        self.hold(path, &spot, access)?;
        Ok(spot)
    }

    /// The checked path of what is named itself, be it a link.
    pub(crate) fn spot_itself(&self, path: &str, access: Access) -> Result<Spot, PathError> {
        let spot = self.spot_unless_link(path)?;
        self.permit(path, &spot, access)?;
        self.hold(path, &spot, access)?;
        Ok(spot)
    }

    /// Which names run programs later.
    pub(crate) fn names(&self) -> &ProtectedNames {
        &self.names
    }

    /// A resolved path without its root, for each root that it is below.
    pub(crate) fn below_roots<'p>(&'p self, full: &'p Path) -> impl Iterator<Item = &'p Path> {
        self.roots.iter().filter_map(move |root| full.strip_prefix(&root.path).ok())
    }

    /// How paths are opened.
    pub(crate) fn opener(&self) -> Opener {
        self.opener
    }

    /// The roots that resolved paths are below.
    pub(crate) fn roots_of<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
        let mut indexes: Vec<_> = paths.filter_map(|path| self.spot_of(path)).map(|spot| spot.root).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|index| self.roots[index].path.clone()).collect()
    }

    /// Whether a checked path may be used like that.
    pub(crate) fn permit(&self, attempted: &str, spot: &Spot, access: Access) -> Result<(), PathError> {
        let (root, below) = self.parts(spot);
        // Of what is denied, the first folder on the way that is denied has a name that could be: nearly every path
        // has none, and need not be compared with the patterns.
        if root.is_suspected || below.iter().any(|name| self.denied.suspects(name)) {
            let full = self.full(spot);
            if let Some(pattern) = self.pattern_against(&full) {
                return Err(PathError::denied(attempted, &full, pattern));
            }
        }
        if access == Access::Write {
            let full = self.full(spot);
            if !self.deepest_root(&full).unwrap_or(root).read_only {
                return Ok(());
            }
            let resolved = shown(&full.to_string_lossy());
            return Err(PathError::ReadOnly { attempted: shown(attempted), resolved });
        }
        Ok(())
    }

    /// Whether what is below a checked path may be changed, whatever it is called.
    #[cfg(target_os = "linux")]
    pub(crate) fn permit_root(&self, attempted: &str, spot: &Spot) -> Result<(), PathError> {
        let full = self.full(spot);
        match self.deepest_root(&full).is_none_or(|root| root.read_only) {
            true => {
                let resolved = shown(&full.to_string_lossy());
                Err(PathError::ReadOnly { attempted: shown(attempted), resolved })
            }
            false => Ok(()),
        }
    }

    /// The roots whose files can only be read.
    #[cfg(target_os = "linux")]
    pub(crate) fn read_only_roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().filter(|root| root.read_only).map(|root| root.path.as_path())
    }

    /// Whether a pattern denies what is at a checked path.
    pub(crate) fn denies(&self, spot: &Spot) -> bool {
        self.pattern_against(&self.full(spot)).is_some()
    }

    /// The pattern that denies a whole path. One that starts at a root counts from every root that the path is below.
    fn pattern_against(&self, full: &Path) -> Option<&str> {
        let below = self.roots.iter().filter_map(|root| full.strip_prefix(&root.path).ok());
        self.denied.pattern(full, below)
    }

    /// Whether a root is there, or inside: what holds one is neither moved nor deleted.
    pub(crate) fn holds_root(&self, spot: &Spot) -> bool {
        let full = self.full(spot);
        self.roots.iter().any(|root| root.path.starts_with(&full))
    }

    /// The root that counts for a path: of several, the deepest one.
    fn deepest_root(&self, full: &Path) -> Option<&Root> {
        match &*self.roots {
            [only] => Some(only),
            roots => self.spot_of(full).map(|spot| &roots[spot.root]),
        }
    }

    /// Whether a pattern denies what has that name in a folder that is not denied itself.
    pub(crate) fn denies_in(&self, folder: &Spot, name: &OsStr) -> bool {
        self.denied.suspects(name) && self.denies(&folder.join(name))
    }

    /// The place of a checked path.
    pub(crate) fn place(&self, spot: &Spot) -> Place {
        let full = self.full(spot);
        let path = slashed(&full);
        // Also of a root inside the first one: relative paths start there.
        let shown = match self.roots.first().and_then(|first| full.strip_prefix(&first.path).ok()) {
            Some(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Some(below) => slashed(below),
            None => path.clone(),
        };
        Place { path, shown }
    }

    /// The spot of a resolved path, where it is below a root: the deepest one counts.
    pub(crate) fn spot_of(&self, resolved: &Path) -> Option<Spot> {
        let inside = self.roots.iter().enumerate().filter_map(|(index, root)| {
            let below = resolved.strip_prefix(&root.path).ok()?;
            Some(Spot { root: index, below: below.to_path_buf() })
        });
        // Of two roots at the same place the one that is read-only counts.
        inside.min_by_key(|spot| (spot.below.as_os_str().len(), !self.roots[spot.root].read_only))
    }

    /// The whole path of a spot.
    pub(crate) fn full(&self, spot: &Spot) -> PathBuf {
        self.parts(spot).0.path.join(&spot.below)
    }

    fn parts<'a>(&'a self, spot: &'a Spot) -> (&'a Root, &'a Path) {
        // A spot is only ever made with the index of a root of this jail.
        (&self.roots[spot.root], &spot.below)
    }
}

impl PathJail {
    /// Whether a file is how the kernel shows processes or itself. `/proc` and `/sys` are denied by their path; they
    /// can be mounted elsewhere, too. What is on the same file system as its root need not be asked.
    fn is_of_the_system(&self, file: &File, entry: &Entry, spot: &Spot) -> bool {
        entry.id.0 != self.parts(spot).0.device && is_system_file(file)
    }
}

impl Spot {
    /// What is in this folder under that name.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Spot {
        Spot { root: self.root, below: self.below.join(name) }
    }

    /// The folder that this is in; of a root, none.
    pub(crate) fn parent(&self) -> Option<Spot> {
        Some(Spot { root: self.root, below: self.below.parent()?.to_path_buf() })
    }
}

impl Root {
    fn open(spec: RootSpec, open: fn(&Path) -> io::Result<Folder>) -> Result<Self, JailError> {
        let fail = |source| JailError::Root { path: spec.path.to_string_lossy().into_owned(), source };
        let path = spec.path.canonicalize().map_err(fail)?;
        let folder = open(&path).map_err(fail)?;
        let device = folder.itself().map_err(fail)?.id.0;
        Ok(Root { path, folder, device, read_only: spec.read_only, is_suspected: true })
    }
}

pub(crate) fn special(path: &str) -> PathError {
    PathError::Special { attempted: shown(path), kind: "pipe, device or socket" }
}

/// It is swapped faster than it can be opened.
fn restless(path: &str) -> PathError {
    let source = io::Error::other("it keeps changing while it is opened");
    PathError::Io { attempted: shown(path), source }
}

fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}

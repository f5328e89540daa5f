//! The folders of a guest's layers, made before it starts.

use super::{Bounds, Parts, Root, Staging, attributes, mount, unstageable};
use crate::guest::{
    host::{broken, failed},
    survey::{FOLDER, Id},
    wire::{Bind, Layers},
};
use haft_core::{
    ToolError,
    port::{LayerMarks, StagedRoot},
};
use rustix::{
    fd::{AsFd as _, OwnedFd},
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, futimens, makedev, mkdirat, mknodat, openat2},
    io::Errno,
    thread::CapabilitySet,
};
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

/// What the guest wrote.
pub(crate) const UPPER: &str = "upper";
/// What the kernel works in.
pub(crate) const WORK: &str = "work";
/// What hides.
pub(crate) const MASKS: &str = "masks";
/// A message takes so many descriptors, of which the guest's own and a file are a few.
pub(super) const MOST_ROOTS: usize = 32;

/// Layers that are ready for a guest.
pub(crate) struct Prepared {
    pub(crate) roots: Vec<StagedRoot>,
    /// Mounts to hand in.
    pub(crate) mounts: Vec<OwnedFd>,
    pub(crate) bounds: Bounds,
}

/// How layers that haft makes here are marked. `trusted` attributes are for root of the machine alone, not for that of
/// a container with users of its own.
pub(super) fn marks() -> LayerMarks {
    static MARKS: LazyLock<LayerMarks> = LazyLock::new(|| {
        const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";
        let is_first =
            fs::read_link("/proc/self/ns/user").is_ok_and(|name| name == Path::new(FIRST_USER_NAMESPACE));
        let may_mount = rustix::thread::capabilities(None)
            .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::CHOWN));
        if is_first && may_mount { LayerMarks::Trusted } else { LayerMarks::User }
    });
    *MARKS
}

/// Makes the layers of every root, says in the binds where they are, and mounts them where haft does that itself.
pub(crate) fn prepare(staging: &Staging, binds: &mut [Bind]) -> Result<Prepared, ToolError> {
    let layers = &staging.spec.layers;
    let not_made = |error: io::Error| broken("no folder for what it writes", error);
    own(layers).map_err(not_made)?;
    let since = Clock::start(layers).map_err(not_made)?;
    let mut prepared = Prepared { roots: Vec::new(), mounts: Vec::new(), bounds: Bounds::default() };
    for root in &staging.roots {
        let folder = new_folder(layers).map_err(not_made)?;
        let mounted = make(root, &folder)?;
        let has_masks = !root.hidden.is_empty();
        let number = mounted.is_some().then_some(prepared.mounts.len());
        prepared.mounts.extend(mounted);
        if let Some(bind) = binds.iter_mut().find(|bind| bind.path == root.path) {
            bind.layers = Some(Layers { folder: folder.clone(), has_masks, mounted: number });
        }
        let below = |found: &PathBuf| found.strip_prefix(&root.path).map(Path::to_owned).ok();
        prepared.roots.push(StagedRoot {
            root: root.path.clone(),
            upper: folder.join(UPPER),
            marks: marks(),
            hidden: root.hidden.iter().filter_map(|hidden| below(&hidden.path)).collect(),
            since: since.at,
        });
    }
    prepared.bounds =
        Bounds::of(&staging.spec, prepared.roots.iter().map(|root| root.upper.clone()).collect());
    since.wait_until_past().map_err(not_made)?;
    Ok(prepared)
}

/// Nobody but this user may get in: what a guest marks as another's program is one on this file system, too.
fn own(layers: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(layers)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("{} is no folder of haft's own", layers.display())));
    }
    fs::set_permissions(layers, fs::Permissions::from_mode(0o700))
}

/// A new folder with a number for its name. An earlier attempt may have left some.
fn new_folder(layers: &Path) -> io::Result<PathBuf> {
    for number in 0..10_000_u32 {
        let folder = layers.join(number.to_string());
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::Error::other(format!("{} is full", layers.display())))
}

fn make(root: &Root, folder: &Path) -> Result<Option<OwnedFd>, ToolError> {
    let shown = root.path.display();
    let failed_at = |what: &str, errno: Errno| failed(&format!("{what} {shown}"), errno.raw_os_error());
    let open = |path: &Path| rustix::fs::open(path, FOLDER, Mode::empty());
    let lower = open(&root.path).map_err(|errno| failed_at("open", errno))?;
    let is = fstat(&lower).map_err(|errno| failed_at("look at", errno))?;
    if (Id { device: is.st_dev, inode: is.st_ino }) != root.id {
        return Err(failed_at("stage", Errno::STALE));
    }
    let layers = open(folder).map_err(|errno| failed_at("open the layers of", errno))?;
    for name in [UPPER, WORK].into_iter().chain((!root.hidden.is_empty()).then_some(MASKS)) {
        mkdirat(&layers, name, Mode::RWXU).map_err(|errno| failed_at("make the layers of", errno))?;
    }
    let below = |name: &str| {
        attributes::open(&layers, Path::new(name)).map_err(|errno| failed_at("open the layers of", errno))
    };
    let upper = below(UPPER)?;
    if let Err(errno) = attributes::copy(&lower, &upper) {
        let why = format!("a folder cannot be made that is like {shown}: {errno}");
        return Err(unstageable(&root.path, why, "let the command write to the files themselves").error());
    }
    let masks = if root.hidden.is_empty() { None } else { Some(below(MASKS)?) };
    if let Some(masks) = &masks {
        hide(root, &lower, masks).map_err(|errno| failed_at("hide denied files in", errno))?;
    }
    if marks() == LayerMarks::User {
        return Ok(None);
    }
    let work = below(WORK)?;
    let lowers: Vec<_> = masks.iter().chain([&lower]).map(|layer| layer.as_fd()).collect();
    let parts = Parts {
        lowers: &lowers,
        upper: upper.as_fd(),
        work: work.as_fd(),
        marks: LayerMarks::Trusted,
        proc: "/proc",
    };
    let mounted = mount(&parts).map_err(|errno| {
        let why = format!("the kernel does not put a layer above {shown}: {errno}");
        unstageable(&root.path, why, "let the command write to the files themselves").error()
    });
    mounted.map(Some)
}

/// Makes a whiteout for everything that is hidden below a root, in folders like those of the root.
fn hide(root: &Root, lower: &OwnedFd, masks: &OwnedFd) -> Result<(), Errno> {
    let hidden = root.hidden.iter().filter_map(|hidden| hidden.path.strip_prefix(&root.path).ok());
    let hidden: Vec<&Path> = hidden.collect();
    let folders: BTreeSet<&Path> = hidden
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    // Those around others come first.
    for folder in &folders {
        mkdirat(masks, *folder, Mode::RWXU)?;
    }
    for path in hidden {
        mknodat(masks, path, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))?;
    }
    for folder in folders.into_iter().rev() {
        attributes::copy(&open_below(lower, folder)?, &attributes::open(masks, folder)?)?;
    }
    Ok(())
}

/// A folder of the root, where it still is one.
fn open_below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let mut tries = 0;
    loop {
        match openat2(root, path, flags, Mode::empty(), strict) {
            Err(Errno::AGAIN) if tries < 10_000 => tries += 1,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(Errno::STALE),
            done => return done,
        }
    }
}

/// The clock that files get their times from. It may tick only every few milliseconds.
struct Clock {
    layers: OwnedFd,
    at: (i64, u32),
}

impl Clock {
    /// Touches the folder of the layers, and takes the time that it got for it.
    fn start(layers: &Path) -> io::Result<Self> {
        let layers = rustix::fs::open(layers, FOLDER, Mode::empty())?;
        futimens(&layers, &now())?;
        let at = changed(&layers)?;
        Ok(Clock { layers, at })
    }

    /// Until whatever changes is changed later than the start. Kernels that give finer times to files that were looked
    /// at (6.13) do so at the first try.
    fn wait_until_past(&self) -> io::Result<()> {
        const TRIES: u32 = 10_000;
        for _ in 0..TRIES {
            futimens(&self.layers, &now())?;
            if changed(&self.layers)? > self.at {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Err(io::Error::other("the clock of file times does not go on"))
    }
}

fn now() -> rustix::fs::Timestamps {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    rustix::fs::Timestamps { last_access: now, last_modification: now }
}

fn changed(folder: &OwnedFd) -> io::Result<(i64, u32)> {
    let found = fstat(folder)?;
    Ok((found.st_ctime as i64, u32::try_from(found.st_ctime_nsec).unwrap_or(0)))
}

impl Prepared {
    /// Whether nothing was written. What cannot be looked at may have been.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none());
        self.roots.iter().all(|root| is_empty(&root.upper))
    }

    /// Opens what the kernel shut for itself, so that everybody whose layers these are can remove them.
    pub(crate) fn tidy(&self) {
        if marks() == LayerMarks::Trusted {
            return;
        }
        for folder in self.roots.iter().filter_map(|root| root.upper.parent()) {
            open_up(&folder.join(WORK));
        }
    }
}

/// Opens a folder and those in it to their owner. Nothing of a guest runs any more that could put a link there.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Removes the layers of a guest that has ended, with their folder. The kernel and the guest may have shut folders in
/// them, so that removing them as ever fails for everybody but root.
pub fn remove_layers(layers: &Path) -> io::Result<()> {
    if fs::symlink_metadata(layers)?.is_dir() {
        open_up(layers);
    }
    fs::remove_dir_all(layers)
}

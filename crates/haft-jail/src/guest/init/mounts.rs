//! The tree of a guest in namespaces: system, settings, scratch, and what the request grants. Nothing else is there.

use super::{Failure, INNER_ID, Stage as _, system};
use crate::guest::{
    rules::{Right, Rules},
    survey::Id,
    sys::{self, mount_attr},
    wire::{Bind, InitRequest, Mask},
};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, readlinkat, symlinkat},
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
        mount_remount, move_mount, open_tree, unmount,
    },
    path::Arg,
    process::{chdir, pivot_root},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

mod container;
mod staged;

pub(crate) use container::bind_place;
pub(super) use container::{fix_devices, place, still_placed};

/// The guest's home.
pub(crate) const HOME: &str = "/home/haft";

/// What a private scratch space is mounted as.
const SCRATCH: [(&str, &str); 4] =
    [("tmp", "/tmp"), ("vartmp", "/var/tmp"), ("home", HOME), ("shm", "/dev/shm")];

/// What in `/proc` is about the kernel rather than about processes, and is open to every process to which root's files
/// are open.
pub(crate) const PROC_HIDDEN: [&str; 14] = [
    "acpi",
    "asound",
    "interrupts",
    "iomem",
    "kallsyms",
    "kcore",
    "keys",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
];

/// Who mounts `/proc`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Proc {
    /// The init, at once: its processes are those that are shown.
    Now,
    /// A container runtime, when the guest has processes of its own.
    Later,
}

/// A tree in the making: `/old` is the machine's, `/new` will be the guest's.
pub(super) struct Tree {
    old: OwnedFd,
    new: OwnedFd,
    pub(super) has_proc: bool,
}

const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

impl Tree {
    /// Makes what every guest has.
    pub(super) fn prepare(proc: Proc) -> Result<Self, Failure> {
        own_view().stage("keep mounts to itself")?;
        let base = ["/tmp", "/mnt", "/run", "/usr"]
            .into_iter()
            .find(|path| fs::metadata(path).is_ok_and(|at| at.is_dir()));
        let base = base.ok_or(Errno::NOENT).stage("find a folder to mount on")?;
        mount("haft", base, "tmpfs", SAFE, c"mode=755,size=1m").stage("mount a base")?;
        chdir(base).stage("enter the base")?;
        for folder in ["old", "new", "scratch", "hidden"] {
            fs::create_dir(folder).stage("make the base")?;
        }
        fs::write("hidden-file", "").stage("make the base")?;
        for path in ["hidden", "hidden-file"] {
            rustix::fs::chmod(path, Mode::empty()).stage("make the base")?;
        }
        pivot_root(".", "old").stage("turn to the base")?;
        chdir("/").stage("enter the base")?;
        mount("haft", "/new", "tmpfs", SAFE, c"mode=755,size=4m").stage("mount a root")?;
        mount("haft", "/scratch", "tmpfs", SAFE, c"mode=700,size=1m").stage("mount scratch space")?;
        let open_dir = |path: &str| rustix::fs::open(path, PATH | OFlags::DIRECTORY, Mode::empty());
        let mut tree = Tree {
            old: open_dir("/old").stage("open the machine's tree")?,
            new: open_dir("/new").stage("open the guest's tree")?,
            has_proc: false,
        };
        tree.system()?;
        tree.settings()?;
        tree.devices()?;
        tree.scratch()?;
        fs::create_dir("/new/proc").stage("make /proc")?;
        // Read-only: a guest of root is root to the files of `/proc/sys`. Not there where the machine's own is hidden
        // in part, as in some containers: the kernel then shows nobody a whole one.
        let flags = SAFE | MountFlags::NOEXEC | MountFlags::RDONLY;
        tree.has_proc = proc == Proc::Now && mount("proc", "/new/proc", "proc", flags, None).is_ok();
        if tree.has_proc {
            for name in PROC_HIDDEN {
                if let Ok(found) = fs::metadata(format!("/new/proc/{name}")) {
                    let path = format!("/proc/{name}").into();
                    tree.mask(&Mask { path, is_dir: found.is_dir(), exactly: None })?;
                }
            }
        }
        Ok(tree)
    }

    /// Rules that allow reading all of the tree, and writing to scratch and devices.
    pub(super) fn rules(&self) -> Result<Rules, Failure> {
        let mut rules = Rules::new(true).stage("make Landlock rules")?;
        rules = rules.allow(&self.new, Right::Read, true).stage("allow the tree")?;
        for (_, at) in SCRATCH {
            rules = rules.allow_path(&format!("/new{at}"), Right::Own).stage("allow scratch space")?;
        }
        for device in system::DEVICES.iter().chain(&["/dev/tty"]) {
            rules = rules.allow_path(&format!("/new{device}"), Right::Use).stage("allow devices")?;
        }
        Ok(rules)
    }

    fn system(&self) -> Result<(), Failure> {
        for path in system::PROGRAMS {
            let name = path.trim_start_matches('/');
            match readlinkat(&self.old, name, Vec::new()) {
                Ok(target) => symlinkat(target.as_c_str(), &self.new, name).stage(format!("link {path}"))?,
                Err(Errno::INVAL) => drop(self.bind(
                    Path::new(path),
                    mount_attr::RDONLY | mount_attr::NOSUID | mount_attr::NODEV,
                    None,
                )?),
                // Not every machine has every one.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn settings(&self) -> Result<(), Failure> {
        for path in system::SETTINGS {
            match self.bind(
                Path::new(path),
                mount_attr::RDONLY | mount_attr::NOSUID | mount_attr::NODEV,
                None,
            ) {
                Ok(_) | Err(Failure { errno: Errno::NOENT, .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        let files = [
            (
                "passwd",
                format!("haft:x:{INNER_ID}:{INNER_ID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
            ),
            ("group", format!("haft:x:{INNER_ID}:\nnogroup:x:65534:\n")),
            ("hosts", "127.0.0.1 localhost haft\n::1 localhost\n".to_owned()),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
        ];
        for (name, text) in files {
            fs::write(format!("/new/etc/{name}"), text).stage(format!("write /etc/{name}"))?;
        }
        Ok(())
    }

    fn devices(&self) -> Result<(), Failure> {
        for path in system::DEVICES.iter().chain(&["/dev/tty"]) {
            // They are the machine's: on a read-only mount they are read and written as ever, and their modes, owners
            // and times stay as they are.
            match self.bind(
                Path::new(path),
                mount_attr::RDONLY | mount_attr::NOSUID | mount_attr::NOEXEC,
                None,
            ) {
                Ok(_) | Err(Failure { errno: Errno::NOENT, .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        let links = [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];
        for (name, target) in links {
            std::os::unix::fs::symlink(target, format!("/new/dev/{name}")).stage("make /dev")?;
        }
        Ok(())
    }

    fn scratch(&self) -> Result<(), Failure> {
        for (name, at) in SCRATCH {
            let from = format!("/scratch/{name}");
            fs::create_dir(&from).stage("make scratch space")?;
            let to = self.target(Path::new(at), true)?;
            self.attach(&from, &to, 0)?;
        }
        fs::create_dir_all("/new/run").stage("make /run")
    }

    /// Puts something of the machine where it is, into the guest's tree.
    fn bind(&self, path: &Path, attributes: u64, exactly: Option<&Bind>) -> Result<(OwnedFd, bool), Failure> {
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let shown = path.display();
        let source = open_inside(&self.old, below_root(path), inside).stage(format!("open {shown}"))?;
        let is_dir = match exactly {
            Some(bind) => system::is_exactly(&source, bind)?,
            None => {
                let stat = fstat(&source).stage(format!("look at {shown}"))?;
                FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            }
        };
        let target = self.target(path, is_dir)?;
        let copy = open_tree(&source, "", copy_flags()).stage(format!("copy the mount of {shown}"))?;
        sys::mount_setattr(copy.as_fd(), attributes, true).stage(format!("restrict the mount of {shown}"))?;
        move_onto(&copy, &target).stage(format!("mount {shown}"))?;
        Ok((copy, is_dir))
    }

    /// Puts something of the base into the guest's tree.
    fn attach(&self, from: &str, to: &OwnedFd, attributes: u64) -> Result<(), Failure> {
        let source = rustix::fs::open(from, PATH, Mode::empty()).stage(format!("open {from}"))?;
        let copy = open_tree(&source, "", copy_flags()).stage(format!("copy the mount of {from}"))?;
        sys::mount_setattr(copy.as_fd(), attributes | mount_attr::NOSUID | mount_attr::NODEV, true)
            .stage(format!("restrict the mount of {from}"))?;
        move_onto(&copy, to).stage(format!("mount {from}"))
    }

    /// The place of a path in the guest's tree, made where it is missing. Follows no link on the way.
    fn target(&self, path: &Path, is_dir: bool) -> Result<OwnedFd, Failure> {
        let relative = below_root(path);
        if relative == Path::new(".") {
            return Err(Errno::INVAL).stage("mount /: grant folders below it instead");
        }
        let mut at: Option<OwnedFd> = None;
        let mut names = relative.iter().peekable();
        while let Some(name) = names.next() {
            let here = at.as_ref().unwrap_or(&self.new);
            let folder = names.peek().is_some() || is_dir;
            if folder {
                // Where it cannot be made and is not there, opening it says why.
                let _ = mkdirat(here, name, Mode::from_raw_mode(0o755));
            } else {
                let flags =
                    OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let _ = openat(here, name, flags, Mode::from_raw_mode(0o644));
            }
            let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
            let next = open_inside(here, name, strict);
            at = Some(next.stage(format!("make a place for {}", path.display()))?);
        }
        at.ok_or(Errno::INVAL).stage("make a place for a mount")
    }

    fn mask(&self, mask: &Mask) -> Result<(), Failure> {
        let shown = mask.path.display();
        let target = find(&self.new, &mask.path, mask.exactly).stage(format!("find {shown} to hide it"))?;
        let Some(target) = target else { return Ok(()) };
        self.attach(if mask.is_dir { "/hidden" } else { "/hidden-file" }, &target, mount_attr::RDONLY)
    }

    /// Adds what the request grants.
    fn fill(
        &self,
        request: &InitRequest,
        mounts: &[OwnedFd],
        mut rules: Option<Rules>,
    ) -> Result<Option<Rules>, Failure> {
        let size = format!("size={},mode=700", request.scratch_bytes);
        mount_remount("/scratch", SAFE, size.as_str()).stage("bound the scratch space")?;
        for bind in &request.binds {
            let read_only = if bind.writable { 0 } else { mount_attr::RDONLY };
            let attributes = read_only | mount_attr::NOSUID | mount_attr::NODEV;
            let (mounted, is_dir) = match &bind.layers {
                Some(layers) => (self.stage(bind, layers, mounts)?, true),
                None => self.bind(&bind.path, attributes, Some(bind))?,
            };
            if bind.writable {
                rules = rules
                    .map(|rules| rules.allow(&mounted, Right::Write, is_dir))
                    .transpose()
                    .stage(format!("allow {}", bind.path.display()))?;
            }
        }
        for pin in &request.pins {
            pin_in(&self.new, &pin.path, pin, Some(Id { device: pin.device, inode: pin.inode }))?;
        }
        for pin in &request.merged_pins {
            pin_in(&self.new, &pin.path, pin, None)?;
        }
        for mask in &request.masks {
            self.mask(mask)?;
        }
        self.still_hidden(&request.whiteouts)?;
        Ok(rules)
    }

    /// Adds what the request grants, and turns to the tree for good.
    pub(super) fn finish(
        self,
        request: &InitRequest,
        mounts: &[OwnedFd],
        rules: Option<Rules>,
    ) -> Result<Option<Rules>, Failure> {
        let rules = self.fill(request, mounts, rules)?;
        sys::mount_setattr(self.new.as_fd(), mount_attr::RDONLY, false).stage("make the root read-only")?;
        rustix::process::fchdir(&self.new).stage("enter the root")?;
        pivot_root(".", ".").stage("turn to the root")?;
        unmount(".", UnmountFlags::DETACH).stage("let go of the machine's tree")?;
        chdir("/").stage("enter the root")?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .stage("keep mounts to itself")?;
        Ok(rules)
    }
}

/// What is mounted later on the machine appears here, and what is unmounted goes; nothing goes out.
pub(super) fn own_view() -> Result<(), Errno> {
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

/// What is at a path of a tree. Where it is gone, or another file than the one that was looked at, everything has to be
/// looked at again. `None` where only another user gets: the guest does not either, and cannot change that.
fn find(tree: &OwnedFd, path: &Path, exactly: Option<Id>) -> Result<Option<OwnedFd>, Errno> {
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let found = open_inside(tree, below_root(path), strict);
    let Some(id) = exactly else { return found.map(Some) };
    let found = match found {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(Errno::STALE),
        Err(Errno::ACCESS) => return Ok(None),
        done => done?,
    };
    let stat = fstat(&found)?;
    match (Id { device: stat.st_dev, inode: stat.st_ino }) == id {
        true => Ok(Some(found)),
        false => Err(Errno::STALE),
    }
}

/// Mounts something of a tree on itself: it stays where it is, and can be made read-only.
fn pin_in(tree: &OwnedFd, path: &Path, pin: &Bind, exactly: Option<Id>) -> Result<(), Failure> {
    let shown = pin.path.display();
    let target = find(tree, path, exactly).stage(format!("find {shown} to hold it"))?;
    let Some(target) = target else { return Ok(()) };
    let copy = open_tree(&target, "", copy_flags()).stage(format!("copy the mount of {shown}"))?;
    if !pin.writable {
        sys::mount_setattr(copy.as_fd(), mount_attr::RDONLY, true)
            .stage(format!("make {shown} read-only"))?;
    }
    move_onto(&copy, &target).stage(format!("hold {shown}"))
}

/// A path as it is said inside of a tree.
fn below_root(path: &Path) -> &Path {
    match path.strip_prefix("/").unwrap_or(path) {
        root if root.as_os_str().is_empty() => Path::new("."),
        below => below,
    }
}

/// Mounts a file or folder on another, with attributes.
fn put(source: &OwnedFd, target: &OwnedFd, attributes: u64) -> Result<(), Errno> {
    let copy = open_tree(source, "", copy_flags())?;
    sys::mount_setattr(copy.as_fd(), attributes, true)?;
    move_onto(&copy, target)
}

fn is_file(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Opens a path below a folder. The kernel gives up when something is renamed or mounted anywhere at the same moment,
/// and says so; then it is tried again.
fn open_inside(folder: &OwnedFd, path: impl Arg + Copy, how: ResolveFlags) -> Result<OwnedFd, Errno> {
    let mut tries = 0;
    loop {
        match openat2(folder, path, PATH, Mode::empty(), how) {
            Err(Errno::AGAIN) if tries < 10_000 => tries += 1,
            done => return done,
        }
    }
}

fn copy_flags() -> OpenTreeFlags {
    OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE
}

fn move_onto(mount: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let by_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", target, "", by_descriptor)
}

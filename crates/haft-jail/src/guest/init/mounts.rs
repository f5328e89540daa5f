//! The tree of a guest in namespaces: system, settings, scratch, and what the request grants. Nothing else is there.

use super::{Failure, INNER_ID, Stage as _, system};
use crate::guest::{
    interpreter,
    rules::{Right, Rules},
    survey::Id,
    sys::{self, mount_attr},
    wire::{Bind, CgroupTree, Container, InitRequest, Mask},
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
    fn fill(&self, request: &InitRequest, mut rules: Option<Rules>) -> Result<Option<Rules>, Failure> {
        let size = format!("size={},mode=700", request.scratch_bytes);
        mount_remount("/scratch", SAFE, size.as_str()).stage("bound the scratch space")?;
        for bind in &request.binds {
            let read_only = if bind.writable { 0 } else { mount_attr::RDONLY };
            let attributes = read_only | mount_attr::NOSUID | mount_attr::NODEV;
            let (mounted, is_dir) = self.bind(&bind.path, attributes, Some(bind))?;
            if bind.writable {
                rules = rules
                    .map(|rules| rules.allow(&mounted, Right::Write, is_dir))
                    .transpose()
                    .stage(format!("allow {}", bind.path.display()))?;
            }
        }
        for pin in &request.pins {
            pin_in(&self.new, &pin.path, pin)?;
        }
        for mask in &request.masks {
            self.mask(mask)?;
        }
        Ok(rules)
    }

    /// Adds what the request grants, and turns to the tree for good.
    pub(super) fn finish(
        self,
        request: &InitRequest,
        rules: Option<Rules>,
    ) -> Result<Option<Rules>, Failure> {
        let rules = self.fill(request, rules)?;
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

/// For a container runtime, which runs in the machine's own tree and makes the guest's its root.
impl Tree {
    /// Adds what the request grants, puts the tree where the runtime looks for it, and turns back to the machine's.
    pub(super) fn hand_over(self, request: &InitRequest, container: &Container) -> Result<(), Failure> {
        self.fill(request, None)?;
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let at = |path: &str| open_inside(&self.new, below_root(Path::new(path)), inside);
        let found = container.programs.iter().any(|path| at(path).is_ok_and(|file| is_file(&file)));
        found.then_some(()).ok_or(Errno::NOENT).stage("start the program")?;
        let open = |path: &Path, how| openat2(&self.new, below_root(path), how, Mode::empty(), inside).ok();
        if let Some(missing) = interpreter::missing(&container.programs, open) {
            return Err(Failure { stage: format!("{}{missing}", interpreter::STEP), errno: Errno::NOENT });
        }
        let folder = at(&container.working_dir).stage("enter the working folder")?;
        (!is_file(&folder)).then_some(()).ok_or(Errno::NOTDIR).stage("enter the working folder")?;
        let root = open_inside(&self.old, below_root(Path::new(&container.root)), inside)
            .stage("find the place of the root")?;
        move_onto(&self.new, &root).stage("put the root in its place")?;
        rustix::process::fchdir(&self.old).stage("enter the machine's tree")?;
        pivot_root(".", ".").stage("turn back to the machine's tree")?;
        unmount(".", UnmountFlags::DETACH).stage("let go of the base")?;
        chdir("/").stage("enter the machine's tree")?;
        // crun binds the machine's over those of the tree.
        fix_devices()?;
        keep_from_cgroups(container.cgroups)
    }
}

/// What is mounted later on the machine appears here, and what is unmounted goes; nothing goes out.
pub(super) fn own_view() -> Result<(), Errno> {
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

/// Makes the machine's devices read-only where they are, in this init's mounts: whatever a container runtime hands on
/// of them is read and written as ever, and its mode, owner and times stay as they are.
pub(super) fn fix_devices() -> Result<(), Failure> {
    for path in system::DEVICES.iter().chain(&["/dev/tty"]) {
        let device = match rustix::fs::open(*path, PATH, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            open => open.stage(format!("open {path}"))?,
        };
        put(&device, &device, mount_attr::RDONLY).stage(format!("fix {path}"))?;
    }
    Ok(())
}

/// Puts what is granted where a container runtime that makes the guest's tree itself is told to take it from: just
/// those files that were looked at, whatever is done to their names meanwhile.
pub(super) fn place(request: &InitRequest) -> Result<(), Failure> {
    for (number, bind) in request.binds.iter().enumerate() {
        let (file, _) = system::open_exactly(bind)?;
        let shown = bind.path.display();
        let place = format!("{}/{}", request.working_dir, bind_place(number));
        let target = rustix::fs::open(&place, PATH | OFlags::NOFOLLOW, Mode::empty())
            .stage(format!("find the place of {shown}"))?;
        let read_only = if bind.writable { 0 } else { mount_attr::RDONLY };
        put(&file, &target, read_only | mount_attr::NOSUID | mount_attr::NODEV)
            .stage(format!("mount {shown}"))?;
    }
    for pin in &request.pins {
        let (folder, below) = placed(request, &pin.path)?;
        pin_in(&folder, &below, pin)?;
    }
    for mask in &request.masks {
        let (folder, below) = placed(request, &mask.path)?;
        let shown = mask.path.display();
        let target = find(&folder, &below, mask.exactly).stage(format!("find {shown} to hide it"))?;
        let Some(target) = target else { continue };
        let nothing =
            format!("{}/{}", request.working_dir, if mask.is_dir { "hidden" } else { "hidden-file" });
        let nothing = rustix::fs::open(&nothing, PATH | OFlags::NOFOLLOW, Mode::empty())
            .stage(format!("open {nothing}"))?;
        put(&nothing, &target, mount_attr::RDONLY | mount_attr::NOSUID | mount_attr::NODEV)
            .stage(format!("hide {shown}"))?;
    }
    Ok(())
}

/// The place of the grant that a path is in, and the path there. A runtime is told of grants only: it takes just so
/// many mounts, and in JSON, which has no word for a name that is not UTF-8.
fn placed(request: &InitRequest, path: &Path) -> Result<(OwnedFd, PathBuf), Failure> {
    let shown = path.display();
    let around = request
        .binds
        .iter()
        .enumerate()
        .filter(|(_, bind)| path != bind.path && path.starts_with(&bind.path));
    let (number, bind) = around
        .max_by_key(|(_, bind)| bind.path.as_os_str().len())
        .ok_or(Errno::NOENT)
        .stage(format!("find the grant around {shown}"))?;
    let place = format!("{}/{}", request.working_dir, bind_place(number));
    let folder = rustix::fs::open(&place, PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
        .stage(format!("find the place of {}", bind.path.display()))?;
    Ok((folder, path.strip_prefix(&bind.path).unwrap_or(path).to_owned()))
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
fn pin_in(tree: &OwnedFd, path: &Path, pin: &Bind) -> Result<(), Failure> {
    let shown = pin.path.display();
    let id = Id { device: pin.device, inode: pin.inode };
    let target = find(tree, path, Some(id)).stage(format!("find {shown} to hold it"))?;
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

/// Where the grant of that number is, in a runtime's bundle.
pub(crate) fn bind_place(number: usize) -> String {
    format!("binds/{number}")
}

/// Mounts a file or folder on another, with attributes.
fn put(source: &OwnedFd, target: &OwnedFd, attributes: u64) -> Result<(), Errno> {
    let copy = open_tree(source, "", copy_flags())?;
    sys::mount_setattr(copy.as_fd(), attributes, true)?;
    move_onto(&copy, target)
}

/// Only this init's mounts change.
fn keep_from_cgroups(how: CgroupTree) -> Result<(), Failure> {
    const CGROUPS: &str = "/sys/fs/cgroup";
    match how {
        CgroupTree::ReadOnly => {
            let folder = rustix::fs::open(CGROUPS, PATH, Mode::empty()).stage("open cgroups")?;
            sys::mount_setattr(folder.as_fd(), mount_attr::RDONLY, true).stage("make cgroups read-only")
        }
        CgroupTree::Hidden => {
            mount("haft", CGROUPS, "tmpfs", SAFE, c"mode=755,size=64k").stage("hide cgroups")
        }
    }
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

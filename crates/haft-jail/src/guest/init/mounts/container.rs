//! What a container runtime finds, which makes the guest's tree its root or makes that tree itself.

use super::*;
use crate::guest::{
    interpreter,
    wire::{CgroupTree, Container},
};

/// For a container runtime, which runs in the machine's own tree and makes the guest's its root.
impl Tree {
    /// Adds what the request grants, puts the tree where the runtime looks for it, and turns back to the machine's.
    pub(in crate::guest::init) fn hand_over(
        self,
        request: &InitRequest,
        container: &Container,
    ) -> Result<(), Failure> {
        self.fill(request, &[], None)?;
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

/// Makes the machine's devices read-only where they are, in this init's mounts: whatever a container runtime hands on
/// of them is read and written as ever, and its mode, owner and times stay as they are.
pub(in crate::guest::init) fn fix_devices() -> Result<(), Failure> {
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
pub(in crate::guest::init) fn place(request: &InitRequest) -> Result<(), Failure> {
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
        pin_in(&folder, &below, pin, Some(Id { device: pin.device, inode: pin.inode }))?;
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

/// Looks whether what [`place`] mounted is where it was: the same grants, held and hidden. A file that is removed takes
/// along what was mounted on it, in the mounts of everybody.
pub(in crate::guest::init) fn still_placed(request: &InitRequest) -> Result<(), Failure> {
    let own = |name: &str| {
        let file = rustix::fs::open(
            format!("{}/{name}", request.working_dir),
            PATH | OFlags::NOFOLLOW,
            Mode::empty(),
        );
        file.and_then(|file| id_of(&file)).stage(format!("look at {name}"))
    };
    let same = |found: Id, expected: Id, shown: &Path| match found == expected {
        true => Ok(()),
        false => Err(Errno::STALE).stage(format!("find {} as it was", shown.display())),
    };
    for (number, bind) in request.binds.iter().enumerate() {
        same(own(&bind_place(number))?, Id { device: bind.device, inode: bind.inode }, &bind.path)?;
    }
    for pin in &request.pins {
        let id = Id { device: pin.device, inode: pin.inode };
        let Some(held) = mounted_at(request, &pin.path)? else { continue };
        same(id_of(&held).stage("look at what is held")?, id, &pin.path)?;
        let is_held = is_mount(&held) && (pin.writable || is_read_only(&held));
        is_held.then_some(()).ok_or(Errno::STALE).stage(format!("hold {}", pin.path.display()))?;
    }
    for mask in &request.masks {
        let Some(hidden) = mounted_at(request, &mask.path)? else { continue };
        let nothing = own(if mask.is_dir { "hidden" } else { "hidden-file" })?;
        same(id_of(&hidden).stage("look at what is hidden")?, nothing, &mask.path)?;
    }
    Ok(())
}

/// What is at a path that was held or hidden; `None` where only another user gets.
fn mounted_at(request: &InitRequest, path: &Path) -> Result<Option<OwnedFd>, Failure> {
    let (folder, below) = placed(request, path)?;
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let found = match open_inside(&folder, below_root(&below), strict) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Errno::STALE),
        Err(Errno::ACCESS) => return Ok(None),
        found => found,
    };
    found.map(Some).stage(format!("find {}", path.display()))
}

fn id_of(file: &OwnedFd) -> Result<Id, Errno> {
    fstat(file).map(|stat| Id { device: stat.st_dev, inode: stat.st_ino })
}

/// Whether something is mounted just here.
fn is_mount(file: &OwnedFd) -> bool {
    let found = rustix::fs::statx(file, "", rustix::fs::AtFlags::EMPTY_PATH, rustix::fs::StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(rustix::fs::StatxAttributes::MOUNT_ROOT))
}

fn is_read_only(file: &OwnedFd) -> bool {
    let found = rustix::fs::fstatvfs(file);
    found.is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
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

/// Where the grant of that number is, in a runtime's bundle.
pub(crate) fn bind_place(number: usize) -> String {
    format!("binds/{number}")
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

//! The mount itself.

use haft_core::port::LayerMarks;
use rustix::{
    fd::{AsRawFd as _, BorrowedFd, OwnedFd},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
        fsmount, fsopen,
    },
};

/// What an overlay is made of, all by descriptors: whatever is done to names meanwhile.
pub(crate) struct Parts<'a> {
    /// The upper one first.
    pub(crate) lowers: &'a [BorrowedFd<'a>],
    pub(crate) upper: BorrowedFd<'a>,
    pub(crate) work: BorrowedFd<'a>,
    pub(crate) marks: LayerMarks,
    /// Where `/proc` is: descriptors have names there.
    pub(crate) proc: &'a str,
}

/// Makes an overlay that is mounted nowhere yet. What it wrote is not synced when it goes: a layer of a machine that
/// crashed is never used, and what is taken from one is synced then.
pub(crate) fn mount(parts: &Parts<'_>) -> Result<OwnedFd, Errno> {
    let name = |fd: &BorrowedFd<'_>| format!("{}/self/fd/{}", parts.proc, fd.as_raw_fd());
    let lowers: Vec<String> = parts.lowers.iter().map(name).collect();
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&overlay, "source", "haft")?;
    fsconfig_set_string(&overlay, "lowerdir", lowers.join(":"))?;
    fsconfig_set_string(&overlay, "upperdir", name(&parts.upper))?;
    fsconfig_set_string(&overlay, "workdir", name(&parts.work))?;
    fsconfig_set_string(&overlay, "index", "off")?;
    fsconfig_set_string(&overlay, "metacopy", "off")?;
    match parts.marks {
        LayerMarks::Trusted => fsconfig_set_string(&overlay, "redirect_dir", "on")?,
        LayerMarks::User => fsconfig_set_flag(&overlay, "userxattr")?,
    }
    fsconfig_set_flag(&overlay, "volatile")?;
    fsconfig_create(&overlay)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

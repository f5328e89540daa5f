//! Folders of a layer look like those below them.

use rustix::{
    fd::OwnedFd,
    fs::{
        Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr,
        fsetxattr, fstat, futimens, openat,
    },
    io::Errno,
};

/// Gives a folder of a layer the owner, mode, attributes and times of the folder that it is above. To be called when
/// everything is in it: what is made in there changes its times.
pub(super) fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let stat = fstat(from)?;
    let is = fstat(to)?;
    if (is.st_uid, is.st_gid) != (stat.st_uid, stat.st_gid) {
        fchown(to, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    }
    for name in names(from)? {
        copy_attribute(from, to, &name)?;
    }
    fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(stat.st_atime as _, stat.st_atime_nsec as _),
        last_modification: time(stat.st_mtime as _, stat.st_mtime_nsec as _),
    };
    futimens(to, &times)
}

/// The attributes that are part of what a folder is: those of users, and who else may reach it.
fn names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut list = Vec::with_capacity(64 << 10);
    match flistxattr(folder, rustix::buffer::spare_capacity(&mut list)) {
        Ok(_) => {}
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    }
    let all = list.split(|byte| *byte == 0).filter(|name| is_copied(name));
    Ok(all.map(<[u8]>::to_vec).collect())
}

/// The marks of layers say something else on another one.
fn is_copied(name: &[u8]) -> bool {
    (name.starts_with(b"user.") && !name.starts_with(b"user.overlay."))
        || name == b"system.posix_acl_access"
        || name == b"system.posix_acl_default"
}

fn copy_attribute(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let mut value = Vec::with_capacity(64 << 10);
    match fgetxattr(from, name, rustix::buffer::spare_capacity(&mut value)) {
        // It is gone.
        Err(Errno::NODATA) => return Ok(()),
        got => got.map(drop)?,
    }
    fsetxattr(to, name, &value, XattrFlags::empty())
}

/// Opens a folder to look at it and to change it.
pub(super) fn open(folder: &OwnedFd, path: &std::path::Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_layers_are_not_copied() {
        let names: [(&[u8], bool); 6] = [
            (b"user.note", true),
            (b"user.overlay.opaque", false),
            (b"trusted.overlay.redirect", false),
            (b"system.posix_acl_default", true),
            (b"security.selinux", false),
            (b"", false),
        ];
        for (name, expected) in names {
            assert_eq!(is_copied(name), expected, "{}", name.escape_ascii());
        }
    }
}

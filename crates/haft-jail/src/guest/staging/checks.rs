//! What cannot be kept apart, found before a guest starts.

use super::{
    Root,
    layers::{self, marks},
    owners::writer,
    unstageable,
};
use crate::guest::mask::{Findings, is_within};
use haft_core::port::{LayerMarks, StageSpec, Unstageable};
use rustix::{
    fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr, stat, statfs},
    io::Errno,
};
use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

/// File systems that the kernel takes for no upper layer, by the number that `statfs` gives.
const NO_UPPER: [(i64, &str); 7] = [
    (0x794c_7630, "overlayfs, as in most containers"),
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0xff53_4d42, "CIFS"),
    (0x0102_1997, "9p"),
    (0x4d44, "FAT"),
    (0xf15f, "eCryptfs"),
];

const ELSEWHERE: &str = "put haft's state folder on ext4, xfs, btrfs or tmpfs (`HAFT_STATE_DIR`), or let the command \
                         write to the files themselves";

/// Looks for everything that is in the way of these roots.
pub(super) fn check(spec: &StageSpec, roots: &[Root], found: &Findings) -> Result<(), Unstageable> {
    if roots.is_empty() {
        return Ok(());
    }
    if roots.len() > layers::MOST_ROOTS {
        let why =
            format!("{} folders are writable, and at most {} can be staged", roots.len(), layers::MOST_ROOTS);
        return Err(Unstageable { path: None, reason: why, fix: "grant the folder that they are in".into() });
    }
    let folder = nearest(&spec.layers);
    let real = fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
    if let Some(root) = roots.iter().find(|root| is_within(&real, &root.path)) {
        let why = format!("haft's state is below {}, whose writes it would hold", root.path.display());
        return Err(unstageable(&root.path, why, "grant a folder without haft's state in it"));
    }
    if let Some(name) = statfs(&folder).ok().and_then(|found| no_upper(found.f_type as _)) {
        let why = format!("{} is on {name}, which cannot hold what a command writes", folder.display());
        return Err(unstageable(&folder, why, ELSEWHERE));
    }
    let mounts = mounts();
    for root in roots {
        if let Some(mount) = mounts.iter().find(|mount| *mount != &root.path && is_within(mount, &root.path))
        {
            let why = format!("{} is another file system inside of a writable folder", mount.display());
            let fix = "grant folders that no file system is mounted in, or let the command write to the files \
                       themselves";
            return Err(unstageable(mount, why, fix));
        }
    }
    owners(roots, found)
}

fn owners(roots: &[Root], found: &Findings) -> Result<(), Unstageable> {
    let Some(writer) = writer() else { return Ok(()) };
    let foreign = |path: &Path| stat(path).is_ok_and(|stat| writer.is_foreign(&stat));
    let mut around = roots.iter().flat_map(|root| {
        let hidden = root.hidden.iter().flat_map(move |hidden| {
            hidden.path.ancestors().skip(1).take_while(move |folder| *folder != root.path)
        });
        hidden.chain([root.path.as_path()])
    });
    let first = around.find(|path| foreign(path)).or(found.foreign.as_deref());
    match first {
        None => Ok(()),
        Some(path) => {
            let why = format!(
                "{} belongs to another user or group, and only root can stage writes to it",
                path.display()
            );
            let fix = "change its owner and group to your own (`chown -R \"$(id -u):$(id -g)\"`), or let the command \
                       write to the files themselves";
            Err(unstageable(path, why, fix))
        }
    }
}

fn no_upper(kind: i64) -> Option<&'static str> {
    NO_UPPER.iter().find(|(number, _)| *number == kind & 0xffff_ffff).map(|(_, name)| *name)
}

/// The nearest folder that is there.
fn nearest(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Where file systems are mounted.
fn mounts() -> Vec<PathBuf> {
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(mount_point).collect()
}

/// The lines of `mountinfo` about what is mounted in these folders, or on them.
pub(crate) fn mounts_within<'a>(folders: impl Iterator<Item = &'a Path> + Clone) -> Vec<Vec<u8>> {
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let is_within = |line: &&[u8]| {
        mount_point(line).is_some_and(|place| folders.clone().any(|folder| place.starts_with(folder)))
    };
    lines.filter(is_within).map(<[u8]>::to_vec).collect()
}

/// The place that a line of `mountinfo` names.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::new();
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        let escaped = match (first, more) {
            (b'\\', [a, b, c, ..]) => {
                std::str::from_utf8(&[*a, *b, *c]).ok().and_then(|text| u8::from_str_radix(text, 8).ok())
            }
            _ => None,
        };
        path.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { more.get(3..).unwrap_or_default() } else { more };
    }
    Some(OsString::from_vec(path).into())
}

/// Tries whether layers can be made where they would be. Leaves nothing there.
pub(crate) fn probe(spec: &StageSpec) -> Result<(), Unstageable> {
    let folder = nearest(&spec.layers);
    let at = folder.join(format!(".haft-probe-{}", uuid::Uuid::new_v4().simple()));
    let tried = try_in(&at);
    let _ = fs::remove_dir_all(&at);
    tried.map_err(|errno| {
        let why = format!("{} cannot hold what a command writes: {errno}", folder.display());
        unstageable(&folder, why, ELSEWHERE)
    })
}

fn try_in(at: &Path) -> Result<(), Errno> {
    let made = fs::DirBuilder::new().mode(0o700).create(at);
    made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mark = match marks() {
        LayerMarks::Trusted => "trusted.overlay.haft",
        LayerMarks::User => "user.overlay.haft",
    };
    setxattr(at, mark, b"y", XattrFlags::empty())?;
    mknodat(CWD, at.join("whiteout"), FileType::CharacterDevice, Mode::empty(), makedev(0, 0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_whatever_its_name() {
        let line =
            br"36 35 98:0 /mnt1 /w/a\040b\134c rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(mount_point(line).unwrap(), Path::new("/w/a b\\c"));
        assert_eq!(mount_point(b""), None);
        assert!(mounts().iter().any(|mount| mount == Path::new("/")), "{:?}", mounts());
    }

    #[test]
    fn file_systems_that_hold_no_layer_are_known() {
        assert!(no_upper(0x794c_7630).is_some() && no_upper(0xff53_4d42).is_some());
        assert_eq!((no_upper(0xef53), no_upper(0x0102_1994)), (None, None), "ext4 and tmpfs do");
    }

    #[test]
    fn a_probe_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spec = StageSpec { layers: folder.path().join("not/there/yet"), ..StageSpec::default() };
        probe(&spec).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

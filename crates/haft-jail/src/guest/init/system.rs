//! What of the machine every guest may read, so that programs start at all.

use super::{Failure, Stage as _};
use crate::guest::{
    rules::{Right, Rules},
    wire::Bind,
};
use landlock::RulesetError;
use rustix::{
    fd::OwnedFd,
    fs::{FileType, Mode, OFlags, fstat, open},
    io::Errno,
};

/// Programs and libraries. Links among them are made again, the others are bound.
pub(super) const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Settings that programs need and that say nothing about this machine's users.
pub(super) const SETTINGS: [&str; 19] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/tls",
    "/etc/pki/ca-trust",
    "/etc/protocols",
    "/etc/python3",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Devices that are the same for everybody.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Only where programs are among the users of this machine: names for the numbers of users.
const NAMES: [&str; 3] = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"];

/// Only with a network.
const NETWORK: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf"];

/// Rules for a guest among the processes of this machine.
pub(super) fn rules() -> Result<Rules, RulesetError> {
    let mut rules = Rules::new(true)?;
    for path in PROGRAMS.iter().chain(&SETTINGS).chain(&NAMES) {
        rules = rules.allow_path(path, Right::Read)?;
    }
    rules = rules.allow_path("/proc", Right::Read)?;
    for path in DEVICES.iter().chain(&["/dev/tty"]) {
        rules = rules.allow_path(path, Right::Use)?;
    }
    Ok(rules)
}

/// These rules, with what finding other machines by name takes.
pub(super) fn with_network(rules: Rules) -> Result<Rules, RulesetError> {
    NETWORK.iter().try_fold(rules, |rules, path| rules.allow_path(path, Right::Read))
}

/// Opens just what the request was made for, and says whether it is a folder.
pub(super) fn open_exactly(bind: &Bind) -> Result<(OwnedFd, bool), Failure> {
    let path = &bind.path;
    let file = open(path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
        .stage(format!("open {}", path.display()))?;
    let is_dir = is_exactly(&file, bind)?;
    Ok((file, is_dir))
}

/// Whether it is a folder; an error when it is not what the request was made for.
pub(super) fn is_exactly(file: &OwnedFd, bind: &Bind) -> Result<bool, Failure> {
    let stat = fstat(file).stage(format!("look at {}", bind.path.display()))?;
    if (stat.st_dev, stat.st_ino) != (bind.device, bind.inode) {
        return Err(Errno::STALE).stage(format!("open {}, which is another file now", bind.path.display()));
    }
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

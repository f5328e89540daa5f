//! What `/proc` says of this process and those that it started.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _},
};

/// The number of this process on the machine, as long as the machine's `/proc` is in its place.
pub(super) fn own_number() -> io::Result<i32> {
    let name = fs::read_link("/proc/self")?;
    let number = name.to_str().and_then(|name| name.parse().ok());
    number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The children of this process.
pub(super) fn children() -> Vec<i32> {
    let list = fs::read_to_string("/proc/thread-self/children");
    if let Ok(list) = list {
        return list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let parent_of = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(own)).collect()
}

/// What this process and those whose end it waited for read and wrote.
pub(super) fn read_io(io: &mut File) -> Option<[u64; 3]> {
    let mut text = String::new();
    io.rewind().ok()?;
    io.read_to_string(&mut text).ok()?;
    let field = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
    };
    Some([field("rchar")?, field("wchar")?, field("syscr")? + field("syscw")?])
}

//! Making one change, and finding out whether it was made.

use super::manifest::{State, Step};
use crate::{
    entry::Entry,
    error::PathError,
    folder::{Folder, entry_of_file, says_link},
    jail::PathJail,
};
use haft_sdk::files::{Access, Kind};
use sha2::{Digest as _, Sha256};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write as _},
    path::Path,
};

/// Where the bytes of a file come from.
pub(super) enum Bytes<'a> {
    /// From memory.
    Memory(&'a [u8]),
    /// From an open file, or a part of one.
    File(io::Take<File>),
}

impl Bytes<'_> {
    /// All bytes of a file.
    pub(super) fn whole(file: File) -> Self {
        Bytes::File(file.take(u64::MAX))
    }
}

/// The folder that a resolved path is in, open, with its last name. Checked: inside, not denied, writable.
pub(super) fn at<'p>(jail: &PathJail, path: &'p Path) -> Result<(Folder, &'p OsStr), PathError> {
    let attempted = path.to_string_lossy();
    let spot = jail.spot_of(path).ok_or_else(|| PathError::outside(&attempted, Some(path)))?;
    jail.permit(&attempted, &spot, Access::Write)?;
    let (Some(parent), Some(name)) = (spot.parent(), path.file_name()) else {
        return Err(PathError::malformed(&attempted, "a root itself is not changed"));
    };
    let folder = jail.folder_at(&parent).map_err(|error| PathError::io(&attempted, error))?;
    Ok((folder, name))
}

/// Writes new bytes under their staging name.
pub(super) fn stage(folder: &Folder, staged: &str, bytes: &mut Bytes<'_>, after: &State) -> io::Result<()> {
    let State::File { mode, owner, sha256, len, .. } = after else { return Ok(()) };
    // Nobody else can look into it before it has the permissions that it is to have.
    let mut file = folder.create(OsStr::new(staged), mode.map_or(0o666, |_| 0o600))?;
    match bytes {
        Bytes::Memory(bytes) => file.write_all(bytes)?,
        Bytes::File(from) => {
            let mut hash = Sha256::new();
            // No more than was seen: what grows without end would be copied without end.
            copy(&mut from.take(len.saturating_add(1)), |chunk| {
                hash.update(chunk);
                file.write_all(chunk)
            })?;
            if hex(&hash.finalize()) != *sha256 {
                return Err(io::Error::other("it changed while it was copied"));
            }
        }
    }
    if let Some(mode) = mode {
        Folder::set_owner_and_mode(&file, *owner, *mode)?;
    }
    file.sync_all()
}

/// Makes one change. New bytes were staged before.
pub(super) fn apply(folder: &Folder, name: &OsStr, step: &Step) -> io::Result<()> {
    let Step::Turn { before, after, staged, .. } = step else { return Ok(()) };
    match (before, after, staged) {
        (State::Absent, State::File { .. }, Some(staged)) => {
            folder.rename_new(OsStr::new(staged), folder, name)
        }
        (State::File { .. }, State::File { .. }, Some(staged)) => {
            folder.rename(OsStr::new(staged), folder, name)
        }
        (State::File { .. } | State::Link { .. }, State::Absent, _) => folder.remove(name),
        (State::Absent, State::Folder { mode }, _) => {
            folder.create_folder(name, mode.unwrap_or(0o777))?;
            // What it had before counts, not what new folders get.
            mode.map_or(Ok(()), |mode| folder.set_folder_mode(name, mode))
        }
        (State::Folder { .. }, State::Absent, _) => folder.remove_folder(name),
        (State::Absent, State::Link { target }, _) => folder.create_link(name, target.as_os_str()),
        _ => Err(io::Error::other("there is no such change")),
    }
}

/// Whether what is at a path is that.
pub(super) fn is(folder: &Folder, name: &OsStr, state: &State) -> io::Result<bool> {
    let entry = match folder.entry(name) {
        Ok(entry) => entry,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(*state == State::Absent),
        Err(error) => return Err(error),
    };
    Ok(match state {
        State::Absent => false,
        State::Folder { .. } => entry.kind == Kind::Folder,
        State::Link { target } => {
            entry.kind == Kind::Link && folder.link_target(name)? == *target.as_os_str()
        }
        State::File { sha256, len, .. } => {
            entry.kind == Kind::File && entry.len == *len && has_bytes(folder, name, *len, sha256)?
        }
    })
}

/// Whether the file of that name has these bytes. It may be another one by now, such as a pipe.
fn has_bytes(folder: &Folder, name: &OsStr, len: u64, sha256: &str) -> io::Result<bool> {
    let file = match folder.read(name) {
        Ok(file) => file,
        Err(error) if says_link(&error) || error.kind() == io::ErrorKind::InvalidInput => return Ok(false),
        Err(error) => return Err(error),
    };
    let entry = entry_of_file(&file)?;
    Ok(entry.kind == Kind::File
        && entry.len == len
        && hash(&mut file.take(len.saturating_add(1)))?.0 == sha256)
}

/// Reads a regular file whole, with what is known about it.
pub(super) fn read_file(folder: &Folder, name: &OsStr, most: u64) -> io::Result<(Vec<u8>, Entry)> {
    let file = folder.read(name)?;
    let entry = entry_of_file(&file)?;
    if entry.kind != Kind::File {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(entry.len.min(most)).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((bytes, entry))
}

/// The SHA-256 of a file's bytes, in hex, and how many these are.
pub(super) fn hash(file: &mut impl Read) -> io::Result<(String, u64)> {
    let (mut hash, mut len) = (Sha256::new(), 0);
    copy(file, |chunk| {
        hash.update(chunk);
        len += chunk.len() as u64;
        Ok(())
    })?;
    Ok((hex(&hash.finalize()), len))
}

fn copy(from: &mut impl Read, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => each(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

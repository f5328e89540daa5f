//! What of git's own files makes it run no program.

use super::survey::{FOLDER, Met};
use haft_guard::names::{is_harmless_git_bisect_names, is_harmless_git_config, is_harmless_git_todo};
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
};

/// Whether this is the state of a rebase, a cherry-pick, a series of patches or a bisection that runs no program when
/// it goes on.
pub(super) fn is_harmless_state(met: &Met<'_>) -> bool {
    if met.name == OsStr::new("BISECT_NAMES") {
        let file = openat(met.folder, met.name, READ, Mode::empty()).map(File::from);
        return file.ok().and_then(text_of).is_some_and(|text| is_harmless_git_bisect_names(&text));
    }
    let is_state =
        ["rebase-merge", "rebase-apply", "sequencer"].iter().any(|name| met.name == OsStr::new(name));
    is_state && met.kind == FileType::Directory && has_harmless_files(met).unwrap_or(false)
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// The text of a file; `None` where it is none, or too long.
fn text_of(file: File) -> Option<String> {
    const MOST: u64 = 4 << 20;
    let is_plain = file.metadata().is_ok_and(|found| is_only_name(&found) && found.len() < MOST);
    let mut text = Vec::new();
    let is_read = is_plain && file.take(MOST).read_to_end(&mut text).is_ok();
    is_read.then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Whether it is a file that has no other name, by which it could be changed later.
fn is_only_name(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1
}

fn has_harmless_files(met: &Met<'_>) -> Result<bool, Errno> {
    let folder = openat(met.folder, met.name, FOLDER, Mode::empty())?;
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes().to_ascii_lowercase();
        if name == b"." || name == b".." {
            continue;
        }
        let file = File::from(openat(&folder, entry.file_name(), READ, Mode::empty())?);
        let Some(text) = text_of(file) else { return Ok(false) };
        let is_harmless = match &*name {
            b"git-rebase-todo" | b"todo" => is_harmless_git_todo(&text),
            // Git runs `git-merge-` with this behind it.
            b"strategy" => {
                ["", "ort", "recursive", "resolve", "octopus", "ours", "subtree"].contains(&text.trim())
            }
            b"opts" => !text.to_ascii_lowercase().contains("strategy"),
            _ => true,
        };
        if !is_harmless {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a new repository is such as `git init` and `git clone` make: nothing in it makes git run a program.
pub(super) fn is_harmless_repository(met: &Met<'_>) -> bool {
    let look = || -> Result<bool, Errno> {
        let git = openat(met.folder, met.name, FOLDER, Mode::empty())?;
        if has_link(&git)? {
            return Ok(false);
        }
        let is_there = |path: &str| statat(&git, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let never = [
            "commondir",
            "gitdir",
            "config.worktree",
            "info/attributes",
            "info/grafts",
            "modules",
            "worktrees",
            "BISECT_NAMES",
        ];
        if never.into_iter().chain(["objects/info/alternates", "rebase-merge", "sequencer"]).any(is_there) {
            return Ok(false);
        }
        Ok(has_plain_config(&git)? && has_samples_only(&git)?)
    };
    look().unwrap_or(false)
}

/// Whether anything in a repository's folder leads elsewhere.
fn has_link(git: &OwnedFd) -> Result<bool, Errno> {
    let is_link = |path: &OsStr| {
        statat(git, path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    for entry in rustix::fs::Dir::read_from(git)? {
        if is_link(OsStr::from_bytes(entry?.file_name().to_bytes())) {
            return Ok(true);
        }
    }
    Ok(is_link(OsStr::new("objects/info")))
}

fn has_plain_config(git: &OwnedFd) -> Result<bool, Errno> {
    const MOST: u64 = 64 << 10;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(match openat(git, "config", flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        done => done?,
    });
    let is_file = file.metadata().is_ok_and(|found| is_only_name(&found) && found.len() <= MOST);
    let mut text = String::new();
    let read = file.take(MOST).read_to_string(&mut text);
    Ok(is_file && read.is_ok() && is_harmless_git_config(&text))
}

fn has_samples_only(git: &OwnedFd) -> Result<bool, Errno> {
    let hooks = match openat(git, "hooks", FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        done => done?,
    };
    for entry in rustix::fs::Dir::read_from(&hooks)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && !name.ends_with(b".sample") {
            return Ok(false);
        }
    }
    Ok(true)
}

//! What runs a script: the program that its first line names.
//!
//! The kernel says of a script whose interpreter is missing what it says of a missing file. People then look for a file
//! that is there.

use haft_core::text;
use rustix::{fd::OwnedFd, fs::OFlags};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

/// How much of a file is looked at.
pub(super) const HEAD: usize = 128;
/// The step that a script without its interpreter fails at; the interpreter comes after it.
pub(super) const STEP: &str = "find the interpreter ";

/// The interpreter that the first bytes of a file name.
pub(super) fn named(head: &[u8]) -> Option<&[u8]> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let name = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    (!name.is_empty()).then_some(name)
}

/// The interpreter that the first of these programs names, where it cannot be opened. `open` opens what the guest will
/// see.
pub(super) fn missing(
    programs: &[String],
    open: impl Fn(&Path, OFlags) -> Option<OwnedFd>,
) -> Option<String> {
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let program = programs.iter().find_map(|path| open(Path::new(path), how))?;
    let mut head = [0; HEAD];
    // A folder or a pipe has nothing to read.
    let length = rustix::io::read(&program, &mut head).ok()?;
    let name = named(&head[..length])?;
    let path = Path::new(OsStr::from_bytes(name));
    let is_missing = path.is_absolute() && open(path, OFlags::PATH | OFlags::CLOEXEC).is_none();
    is_missing.then(|| shown(name))
}

/// The name as it is shown: it comes from a file that anybody may have written.
pub(super) fn shown(name: &[u8]) -> String {
    text::one_line(&String::from_utf8_lossy(name).escape_debug().to_string(), HEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_is_the_first_word_of_the_first_line() {
        for (head, name) in [
            (&b"#!/bin/sh\necho"[..], Some("/bin/sh")),
            (b"#! /usr/bin/env python3\n", Some("/usr/bin/env")),
            (b"#!/bin/sh\r\n", Some("/bin/sh\\r")),
            (b"#!/opt/x", Some("/opt/x")),
            (b"#!\n", None),
            (b"\x7fELF", None),
            (b"", None),
        ] {
            assert_eq!(named(head).map(shown).as_deref(), name, "{head:?}");
        }
    }
}

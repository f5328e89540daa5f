//! What runs a script: the program that its first line names.
//!
//! The kernel says of a script whose interpreter is missing what it says of a missing file. People then look for a file
//! that is there.

use haft_core::text;

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

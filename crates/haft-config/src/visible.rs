//! Text from files, made safe to show to a person.
//!
//! A `haft.toml` may come with a cloned repository. What it says is repeated in notes and errors, so nothing
//! in it may move the cursor, change a colour, or hide behind a direction mark.

use std::fmt::Write as _;
use std::path::Path;

use haft_core::text;

/// How many characters of one value a note or an error repeats.
const SHOWN_CHARS: usize = 120;
/// Paths and messages are shown whole, within reason.
const LINE_CHARS: usize = 4096;

/// The text as a TOML basic string, with everything that cannot be seen spelled out as an escape.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_plain(c) => out.push(c),
            // Writing to a string cannot fail.
            c if u32::from(c) <= 0xFFFF => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// The text without quotes, on one line.
pub(super) fn plain(text: &str) -> String {
    text::one_line(text, LINE_CHARS)
}

/// A path as a person reads it.
pub(super) fn path(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

/// The first [`SHOWN_CHARS`] characters, and an ellipsis where more was left out.
pub(super) fn shortened(text: &str) -> String {
    text::one_line(text, SHOWN_CHARS)
}

/// Whether a person sees the character as itself.
fn is_plain(c: char) -> bool {
    let mut buffer = [0; 4];
    let alone: &str = c.encode_utf8(&mut buffer);
    if c.is_ascii() { !c.is_ascii_control() } else { text::people_text(alone) == alone }
}

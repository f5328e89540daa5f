//! From bytes to text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How text is written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// One to four bytes a character.
    #[serde(rename = "utf-8")]
    Utf8,
    /// One byte a character, of which there are 128.
    Ascii,
    /// Two bytes, or twice two. A mark at the start says in which order; without one the lower byte comes first.
    #[serde(rename = "utf-16")]
    Utf16,
}

impl Encoding {
    /// Its name in arguments and results.
    ///
    /// ```
    /// assert_eq!(haft_tools::Encoding::Utf16.as_str(), "utf-16");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Ascii => "ascii",
            Encoding::Utf16 => "utf-16",
        }
    }
}

/// Text, and whether something in the bytes was not of the encoding and stands there as U+FFFD.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) is_lossy: bool,
}

/// The text of all bytes, whatever they are.
pub(super) fn decode(bytes: Vec<u8>, encoding: Encoding) -> Decoded {
    match encoding {
        Encoding::Utf8 => match String::from_utf8(bytes) {
            Ok(text) => Decoded { text, is_lossy: false },
            Err(error) => {
                Decoded { text: String::from_utf8_lossy(error.as_bytes()).into_owned(), is_lossy: true }
            }
        },
        Encoding::Ascii => match String::from_utf8(bytes) {
            Ok(text) if text.is_ascii() => Decoded { text, is_lossy: false },
            Ok(text) => ascii_lossy(text.as_bytes()),
            Err(error) => ascii_lossy(error.as_bytes()),
        },
        Encoding::Utf16 => utf16(&bytes),
    }
}

fn ascii_lossy(bytes: &[u8]) -> Decoded {
    let shown = |&byte: &u8| if byte.is_ascii() { char::from(byte) } else { char::REPLACEMENT_CHARACTER };
    Decoded { text: bytes.iter().map(shown).collect(), is_lossy: true }
}

/// A last odd byte is left out: the caller knows whether it is a mistake or the end of a part.
fn utf16(bytes: &[u8]) -> Decoded {
    let (bytes, unit): (_, fn([u8; 2]) -> u16) = match bytes {
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        rest => (rest, u16::from_le_bytes),
    };
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let mut is_lossy = false;
    let text = char::decode_utf16(units)
        .map(|c| {
            c.unwrap_or_else(|_| {
                is_lossy = true;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    Decoded { text, is_lossy }
}

/// How much of a file is looked at to tell text from other bytes.
pub(super) const SNIFFED_BYTES: usize = 8 * 1024;

/// Whether the start of a file shows that it is not UTF-8 text. `is_all` says that it has nothing more.
pub(super) fn looks_binary(start: &[u8], is_all: bool) -> bool {
    let is_cut = start.len() > SNIFFED_BYTES || !is_all;
    let start = &start[..start.len().min(SNIFFED_BYTES)];
    if memchr::memchr(0, start).is_some() {
        return true;
    }
    match std::str::from_utf8(start) {
        Ok(_) => false,
        // A character that goes on behind the part that was looked at is no mistake.
        Err(error) => !(is_cut && error.error_len().is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], encoding: Encoding) -> (String, bool) {
        let decoded = decode(bytes.to_vec(), encoding);
        (decoded.text, decoded.is_lossy)
    }

    #[test]
    fn utf_16_is_read_in_both_orders_with_and_without_a_mark() {
        for bytes in [&b"\xff\xfeh\0i\0"[..], b"\xfe\xff\0h\0i", b"h\0i\0"] {
            assert_eq!(text(bytes, Encoding::Utf16), ("hi".into(), false), "{bytes:?}");
        }
        assert_eq!(text(b"\x3d\xd8\x42\xde", Encoding::Utf16), ("🙂".into(), false));
        assert_eq!(text(b"\x3d\xd8a\0", Encoding::Utf16), ("\u{fffd}a".into(), true));
    }

    #[test]
    fn what_is_not_of_the_encoding_is_marked() {
        assert_eq!(text(b"a\xffb", Encoding::Utf8), ("a\u{fffd}b".into(), true));
        assert_eq!(text("aü".as_bytes(), Encoding::Ascii), ("a\u{fffd}\u{fffd}".into(), true));
        assert_eq!(text(b"a\xff", Encoding::Ascii), ("a\u{fffd}".into(), true));
        assert_eq!(text(b"abc", Encoding::Ascii), ("abc".into(), false));
    }

    #[test]
    fn a_character_that_is_cut_where_looking_ends_is_text() {
        let mut start = vec![b'a'; SNIFFED_BYTES - 1];
        start.extend("ü and more".bytes());
        assert!(!looks_binary(&start, true));
        assert!(!looks_binary(&start[..SNIFFED_BYTES], false));
        assert!(looks_binary(&start[..SNIFFED_BYTES], true), "the file ends in half a character");
        assert!(looks_binary(b"a\0b", true));
        assert!(looks_binary(b"\xff", true));
        assert!(!looks_binary(b"", true));
    }
}

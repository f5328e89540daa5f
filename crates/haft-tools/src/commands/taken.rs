//! What a program put out, as far as it is kept.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use haft_sdk::ToolCtx;
use std::collections::VecDeque;

/// The most that is kept of each stream: what a tool may put out at all.
pub(super) const MOST: usize = 10 << 20;

/// What was put out on one stream: all of it, or its beginning and its end.
#[derive(Default)]
pub(super) struct Taken {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Taken {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let room = (MOST / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let over = self.tail.len().saturating_sub(MOST / 2);
        self.tail.drain(..over);
        self.left_out += over;
    }

    /// Whether something is missing in the middle.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// The bytes, with a word about what is missing where something is.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.head);
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        bytes.extend(std::mem::take(&mut self.tail));
        bytes
    }

    /// The output for a model and for programs.
    pub(super) fn put_out(&mut self, cx: &ToolCtx) -> PutOut {
        PutOut::new(self.bytes(), |bytes| cx.without_secrets(bytes))
    }
}

/// What a program put out on one stream: text, or bytes in base64.
pub(super) struct PutOut {
    /// For programs: the text, or the bytes in base64.
    pub(super) value: String,
    /// For a model: the text, also where some bytes of it are no text; in base64 what is not text at all.
    pub(super) shown: String,
    /// Whether the value is base64.
    pub(super) is_base64: bool,
}

/// Of so many characters one may be none, for the rest to be read as text.
const MOSTLY: usize = 10;

impl PutOut {
    fn new(bytes: Vec<u8>, without_secrets: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return PutOut { shown: text.clone(), value: text, is_base64: false },
            Err(error) => without_secrets(error.into_bytes()),
        };
        let value = STANDARD.encode(&bytes);
        let shown = match String::from_utf8_lossy(&bytes) {
            text if is_mostly_text(&text) => {
                format!("{text}\n[not UTF-8; its {} bytes are in the value, in base64]", bytes.len())
            }
            _ => format!("[binary:base64]\n{value}"),
        };
        PutOut { value, shown, is_base64: true }
    }
}

impl PutOut {
    /// The text of a result that has no value beside it.
    pub(super) fn alone(self) -> String {
        if self.is_base64 { format!("[binary:base64]\n{}", self.value) } else { self.value }
    }
}

/// Whether a text with marks for what is no text can still be read.
fn is_mostly_text(text: &str) -> bool {
    let unreadable = text.chars().filter(|char| *char == char::REPLACEMENT_CHARACTER).count();
    !text.contains('\0') && unreadable * MOSTLY <= text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_of_long_output_are_kept() {
        let mut taken = Taken::default();
        taken.take(b"first ");
        for _ in 0..300 {
            taken.take(&vec![b'x'; 64 << 10]);
        }
        taken.take(b" last");
        assert!(taken.is_cut());
        let text = PutOut::new(taken.bytes(), |bytes| bytes).value;
        assert!(text.starts_with("first x") && text.ends_with("x last"));
        assert!(text.contains(&format!("[{} bytes left out]", 11 + 300 * (64 << 10) - MOST)), "exactly");
        assert!(text.len() < MOST + 100);
    }

    #[test]
    fn fr_exe_06_what_is_not_utf_8_is_base64_and_says_so() {
        let put_out = |bytes: &[u8]| PutOut::new(bytes.to_vec(), |bytes| bytes);
        let text = put_out("größe\n".as_bytes());
        assert_eq!((text.value.as_str(), text.shown.as_str(), text.is_base64), ("größe\n", "größe\n", false));
        let old = put_out(b"the size of a \xe9t\xe9 in an old encoding");
        assert!(old.is_base64 && old.value == STANDARD.encode(b"the size of a \xe9t\xe9 in an old encoding"));
        assert!(
            old.shown.starts_with("the size of a \u{fffd}t\u{fffd} in") && old.shown.contains("in base64]")
        );
        let binary = put_out(&[0, 159, 146, 150, 255, 254, 1, 2]);
        assert!(binary.is_base64 && binary.shown == "[binary:base64]\nAJ+Slv/+AQI=");
    }

    #[test]
    fn secrets_are_taken_out_before_bytes_are_encoded() {
        let hidden = PutOut::new(b"\xff secret".to_vec(), |_| b"\xff gone".to_vec());
        assert_eq!(hidden.value, STANDARD.encode(b"\xff gone"));
        assert!(!hidden.shown.contains("secret"));
    }
}

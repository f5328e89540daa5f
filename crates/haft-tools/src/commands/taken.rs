//! What a program put out, as far as it is kept.

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

    /// The output as text.
    pub(super) fn text(&mut self) -> String {
        match String::from_utf8(self.bytes()) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
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
        let text = taken.text();
        assert!(text.starts_with("first x") && text.ends_with("x last"));
        assert!(text.contains(&format!("[{} bytes left out]", 11 + 300 * (64 << 10) - MOST)), "exactly");
        assert!(text.len() < MOST + 100);
    }
}

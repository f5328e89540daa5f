//! What a background command put out: the last of it, with exact counts of what is gone.

use haft_core::OutputStream;
use std::collections::VecDeque;

/// The longest piece that is kept as one.
const PIECE: usize = 8 << 10;

/// A bounded record of two streams, in the order in which they came. Places in it are counts of bytes since the start,
/// over both streams.
#[derive(Debug)]
pub(super) struct Log {
    pieces: VecDeque<Piece>,
    /// Where the first piece begins: what was before it is gone.
    first: u64,
    /// Where the next byte goes.
    end: u64,
    most: usize,
    /// The beginning of a character whose rest is still to come, for each stream.
    halves: [Vec<u8>; 2],
}

#[derive(Debug)]
struct Piece {
    stream: OutputStream,
    bytes: Vec<u8>,
}

/// A part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Where to go on.
    pub(super) cursor: u64,
    /// Bytes that came after the place that was asked for, and are gone.
    pub(super) dropped: u64,
    /// Bytes that are there after this part.
    pub(super) more: u64,
}

impl Log {
    /// An empty one that keeps that many bytes.
    pub(super) fn new(most: usize) -> Self {
        Log { pieces: VecDeque::new(), first: 0, end: 0, most, halves: Default::default() }
    }

    /// Where the next byte goes.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Takes bytes. A character that is not whole yet is held back, so that no part ever cuts one.
    pub(super) fn take(&mut self, stream: OutputStream, bytes: &[u8]) {
        let mut all = std::mem::take(&mut self.halves[stream as usize]);
        all.extend_from_slice(bytes);
        let half = all.split_off(all.len() - unfinished(&all));
        self.halves[stream as usize] = half;
        self.keep(stream, &all);
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let half = std::mem::take(&mut self.halves[stream as usize]);
            self.keep(stream, &half);
        }
    }

    fn keep(&mut self, stream: OutputStream, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(boundary(rest, PIECE));
            match self.pieces.back_mut() {
                Some(last) if last.stream == stream && last.bytes.len() + piece.len() <= PIECE => {
                    last.bytes.extend_from_slice(piece);
                }
                _ => self.pieces.push_back(Piece { stream, bytes: piece.to_vec() }),
            }
            rest = after;
        }
        self.end += bytes.len() as u64;
        self.forget();
    }

    /// Lets the oldest go, whole pieces at a time and a part of the last that has to.
    fn forget(&mut self) {
        while let Some(over) = self.end.checked_sub(self.first + self.most as u64).filter(|over| *over > 0) {
            let Some(oldest) = self.pieces.front_mut() else { return };
            let over = usize::try_from(over).unwrap_or(usize::MAX);
            if over >= oldest.bytes.len() {
                self.first += oldest.bytes.len() as u64;
                self.pieces.pop_front();
            } else {
                let gone = forward(&oldest.bytes, over);
                oldest.bytes.drain(..gone);
                self.first += gone as u64;
            }
        }
    }

    /// What came after `cursor`, at most that many bytes (and at least one character).
    pub(super) fn after(&self, cursor: u64, most: usize) -> Part {
        let cursor = cursor.min(self.end);
        let start = cursor.max(self.first);
        let mut part = Part { dropped: start - cursor, cursor: start, ..Part::default() };
        let [mut stdout, mut stderr] = [Vec::new(), Vec::new()];
        let (mut at, mut room) = (self.first, most.max(4));
        for piece in &self.pieces {
            let begins = at;
            at += piece.bytes.len() as u64;
            if at <= start || room == 0 {
                continue;
            }
            let skip = usize::try_from(start.saturating_sub(begins)).unwrap_or(usize::MAX);
            let wanted = piece.bytes.get(skip..).unwrap_or_default();
            let count = boundary(wanted, room);
            let taken = wanted.get(..count).unwrap_or_default();
            match piece.stream {
                OutputStream::Stdout => stdout.extend_from_slice(taken),
                OutputStream::Stderr => stderr.extend_from_slice(taken),
            }
            part.cursor += count as u64;
            room = if count < wanted.len() { 0 } else { room - count };
        }
        part.more = self.end - part.cursor;
        part.stdout = String::from_utf8_lossy(&stdout).into_owned();
        part.stderr = String::from_utf8_lossy(&stderr).into_owned();
        part
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let needs = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if needs > back { back } else { 0 };
    }
    0
}

const fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The longest beginning of at most that many bytes that cuts no character.
fn boundary(bytes: &[u8], most: usize) -> usize {
    if bytes.len() <= most {
        return bytes.len();
    }
    let back = (0..=most.min(3)).find(|back| !continues(bytes[most - back]));
    most - back.unwrap_or(0)
}

/// The shortest beginning of at least that many bytes that cuts no character.
fn forward(bytes: &[u8], least: usize) -> usize {
    (least..bytes.len().min(least + 3))
        .find(|at| !continues(bytes[*at]))
        .unwrap_or(bytes.len().min(least + 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutputStream::{Stderr, Stdout};

    #[test]
    fn what_came_since_a_cursor() {
        let mut log = Log::new(1 << 20);
        log.take(Stdout, b"one\n");
        log.take(Stderr, b"oops\n");
        log.take(Stdout, b"two\n");
        let part = log.after(0, 1000);
        assert_eq!((part.stdout.as_str(), part.stderr.as_str()), ("one\ntwo\n", "oops\n"));
        assert_eq!((part.cursor, part.dropped, part.more), (13, 0, 0));
        assert_eq!(log.after(4, 1000).stdout, "two\n");
        assert_eq!(log.after(13, 1000), Part { cursor: 13, ..Part::default() });
        assert_eq!(log.after(99, 1000).cursor, 13, "a place that is not there yet");
        let part = log.after(0, 6);
        assert_eq!(
            (part.stdout.as_str(), part.stderr.as_str(), part.cursor, part.more),
            ("one\n", "oo", 6, 7)
        );
    }

    #[test]
    fn what_is_gone_is_counted() {
        let mut log = Log::new(10);
        for _ in 0..10 {
            log.take(Stdout, b"abcdefg");
        }
        let part = log.after(0, 1000);
        assert_eq!((part.stdout.as_str(), part.dropped, part.cursor), ("efgabcdefg", 60, 70));
        assert_eq!(log.after(65, 1000).dropped, 0);
        let mut log = Log::new(10);
        log.take(Stdout, &vec![b'x'; 100_000]);
        assert_eq!((log.after(0, 1000).dropped, log.after(0, 1000).stdout.len()), (99_990, 10));
    }

    #[test]
    fn no_character_is_cut() {
        let mut log = Log::new(1 << 20);
        for byte in "a😀é".bytes() {
            log.take(Stdout, &[byte]);
            let text = log.after(0, 1000).stdout;
            assert!("a😀é".starts_with(&text), "{text:?}");
        }
        assert_eq!(log.after(0, 1000).stdout, "a😀é");
        assert_eq!(log.after(0, 4).stdout, "a", "the next one does not fit");
        assert_eq!(log.after(1, 0).stdout, "😀", "but there is always some progress");
        let mut log = Log::new(1 << 20);
        log.take(Stdout, b"x\xF0\x9F");
        assert_eq!(log.after(0, 1000).stdout, "x");
        log.finish();
        assert_eq!(log.after(0, 1000).stdout, "x\u{FFFD}");
        let mut log = Log::new(5);
        log.take(Stdout, "ééé".as_bytes());
        assert_eq!((log.after(0, 10).stdout.as_str(), log.after(0, 10).dropped), ("éé", 2));
    }

    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(7),
            ..ProptestConfig::default()
        })]

        /// A reader that goes on from cursor to cursor gets every byte once, or is told that it is gone; and no text is
        /// cut.
        #[test]
        fn every_byte_is_given_or_counted(
            writes in prop::collection::vec((any::<bool>(), "[aé😀]{0,12}", 0_usize..6), 0..40),
            most in 4_usize..60,
            looks in prop::collection::vec(0_usize..30, 1..8),
        ) {
            let mut log = Log::new(most);
            let (mut cursor, mut given, mut gone, mut written) = (0, 0, 0, 0);
            let mut looks = looks.iter().cycle();
            let mut look = |log: &Log, cursor: &mut u64, given: &mut u64, gone: &mut u64| {
                let part = log.after(*cursor, *looks.next().unwrap_or(&1));
                prop_assert!(!part.stdout.contains('\u{FFFD}') && !part.stderr.contains('\u{FFFD}'), "{:?}", part);
                let count = (part.stdout.len() + part.stderr.len()) as u64;
                prop_assert_eq!(part.cursor, *cursor + part.dropped + count);
                prop_assert_eq!(part.cursor + part.more, log.end());
                *cursor = part.cursor;
                *given += count;
                *gone += part.dropped;
                Ok(count)
            };
            for (is_stdout, text, cut) in writes {
                let stream = if is_stdout { Stdout } else { Stderr };
                let (one, other) = text.as_bytes().split_at(cut.min(text.len()));
                log.take(stream, one);
                look(&log, &mut cursor, &mut given, &mut gone)?;
                log.take(stream, other);
                written += text.len() as u64;
                prop_assert!(log.end() - log.first <= most as u64);
            }
            log.finish();
            while look(&log, &mut cursor, &mut given, &mut gone)? > 0 {}
            prop_assert_eq!((given + gone, cursor), (written, written));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_too() {
        let mut log = Log::new(1 << 20);
        log.take(Stdout, &[0xFF, 0x80, 0x80, 0x80, 0x80, b'a']);
        let part = log.after(0, 1000);
        assert_eq!((part.cursor, part.more), (6, 0));
        let mut at = 0;
        while at < 6 {
            let next = log.after(at, 1).cursor;
            assert!(next > at, "no progress at {at}");
            at = next;
        }
    }
}

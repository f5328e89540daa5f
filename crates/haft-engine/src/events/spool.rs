//! Where a tool's bytes go while it runs: counted, limited, redacted, kept for events and for the result.

use crate::redaction::Held;
use haft_core::{
    OutputStream,
    port::{Redactor, RunningOutput},
    text::ModelText,
};
use std::collections::VecDeque;

/// What a tool has put out so far.
///
/// All of it is kept up to a limit. Beyond it, the first and the last half of the limit stay, because the end of a
/// long output is where the error is, and what is missing between them is counted.
pub(crate) struct Spool {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    total: u64,
    /// The bytes that events were made of.
    told: u64,
    streams: [Stream; 2],
    /// Gets every byte, too, where a crash must not lose it.
    running: Option<Box<dyn RunningOutput>>,
}

/// What is taken out of the result, and out of events.
#[derive(Clone, Copy)]
pub(crate) struct Redactors<'a> {
    pub(crate) result: Option<&'a dyn Redactor>,
    pub(crate) events: Option<&'a dyn Redactor>,
    /// They are the same.
    pub(crate) is_one: bool,
}

#[derive(Default)]
struct Stream {
    raw: Held,
    /// What is held back of the events, where more is taken out of them than of the result.
    events: Held,
    model_text: ModelText,
    /// An escape may stand in the middle of a secret, so it is looked for again when the escapes are gone.
    shown: Held,
}

/// A piece that is safe to show, and where it begins in the spool.
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl Spool {
    pub(crate) fn new(limit: usize, running: Option<Box<dyn RunningOutput>>) -> Self {
        Spool {
            head: Vec::new(),
            tail: VecDeque::new(),
            limit,
            total: 0,
            told: 0,
            streams: Default::default(),
            running,
        }
    }

    /// Takes bytes, and gives what can be shown of them now.
    pub(crate) fn write(
        &mut self,
        stream: OutputStream,
        bytes: &[u8],
        redactors: Redactors<'_>,
    ) -> Option<Piece> {
        let offset = self.told;
        let free = self.streams[stream as usize].raw.push(bytes, redactors.result);
        self.keep(&free);
        let state = &mut self.streams[stream as usize];
        let free = if redactors.is_one { free } else { state.events.push(bytes, redactors.events) };
        put(self.running.as_deref_mut(), &free);
        self.told += free.len() as u64;
        let mut text = String::new();
        state.model_text.push(&free, &mut text);
        let redactor = redactors.events;
        let text = shown(text, |text| state.shown.push(text, redactor).into_owned(), redactor);
        (!text.is_empty()).then_some(Piece { offset, text })
    }

    /// The streams have ended: everything that was held can go.
    pub(crate) fn finish(&mut self, redactors: Redactors<'_>) -> Vec<(OutputStream, Piece)> {
        let mut pieces = Vec::new();
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let offset = self.told;
            let rest = self.streams[stream as usize].raw.finish(redactors.result);
            self.keep(&rest);
            let state = &mut self.streams[stream as usize];
            let redactor = redactors.events;
            let rest = if redactors.is_one { rest } else { state.events.finish(redactor) };
            put(self.running.as_deref_mut(), &rest);
            self.told += rest.len() as u64;
            let mut text = String::new();
            state.model_text.push(&rest, &mut text);
            state.model_text.finish(&mut text);
            let all = |text: &[u8]| {
                let mut all = state.shown.push(text, redactor).into_owned();
                all.extend(state.shown.finish(redactor));
                all
            };
            let text = shown(text, all, redactor);
            if !text.is_empty() {
                pieces.push((stream, Piece { offset, text }));
            }
        }
        pieces
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let head_limit = self.limit / 2;
        let (first, rest) = bytes.split_at(bytes.len().min(head_limit.saturating_sub(self.head.len())));
        self.head.extend_from_slice(first);
        let tail_limit = self.limit - head_limit;
        let last = &rest[rest.len().saturating_sub(tail_limit)..];
        let over = (self.tail.len() + last.len()).saturating_sub(tail_limit);
        self.tail.drain(..over);
        self.tail.extend(last);
    }

    /// Bytes put out, kept or not.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What was kept, in order, with a line in place of what was not.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head;
        if missing > 0 {
            bytes.extend_from_slice(format!("\n... [{missing} bytes not kept]\n").as_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

/// What is kept while a call runs is redacted as everything that is kept: like events, not like a result.
fn put(running: Option<&mut (dyn RunningOutput + 'static)>, bytes: &[u8]) {
    if let Some(running) = running.filter(|_| !bytes.is_empty()) {
        running.put(bytes);
    }
}

/// Text through a redaction of bytes; untouched where there is nothing to look for.
fn shown(text: String, redact: impl FnOnce(&[u8]) -> Vec<u8>, redactor: Option<&dyn Redactor>) -> String {
    match redactor {
        None => text,
        Some(_) => String::from_utf8(redact(text.as_bytes()))
            .unwrap_or_else(|cut| String::from_utf8_lossy(cut.as_bytes()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Redactors<'_> = Redactors { result: None, events: None, is_one: true };

    fn one(redactor: &dyn Redactor) -> Redactors<'_> {
        Redactors { result: Some(redactor), events: Some(redactor), is_one: true }
    }

    #[test]
    fn head_and_tail_stay_and_the_rest_is_counted() {
        let mut spool = Spool::new(10, None);
        for chunk in ["abc", "defgh", "", "ijklmnopq", "z"] {
            spool.write(OutputStream::Stdout, chunk.as_bytes(), NONE);
        }
        assert_eq!(spool.total(), 18);
        assert_eq!(spool.into_bytes(), b"abcde\n... [8 bytes not kept]\nnopqz");
    }

    #[test]
    fn below_the_limit_every_byte_stays() {
        let mut spool = Spool::new(10, None);
        spool.write(OutputStream::Stdout, b"0123456789", NONE);
        assert_eq!(spool.into_bytes(), b"0123456789");
    }

    #[test]
    fn a_secret_cut_between_two_chunks_is_seen() {
        let secrets = haft_guard::KnownSecrets::new([("TOKEN", "s3cr3t-value")]);
        let text = b"before s3cr3t-value after";
        for cut in 0..=text.len() {
            let mut spool = Spool::new(1000, None);
            let mut shown = String::new();
            for chunk in [&text[..cut], &text[cut..]] {
                let piece = spool.write(OutputStream::Stdout, chunk, one(&secrets));
                shown.extend(piece.map(|piece| piece.text));
            }
            shown.extend(spool.finish(one(&secrets)).into_iter().map(|(_, piece)| piece.text));
            assert_eq!(shown, "before [redacted:TOKEN] after", "cut at {cut}");
            assert_eq!(spool.into_bytes(), shown.as_bytes(), "cut at {cut}");
        }
    }

    #[test]
    fn a_secret_on_one_stream_is_seen_through_the_other() {
        let secrets = haft_guard::KnownSecrets::new([("TOKEN", "s3cr3t-value")]);
        let mut spool = Spool::new(1000, None);
        for (stream, chunk) in [
            (OutputStream::Stdout, "s3cr3t"),
            (OutputStream::Stderr, "working\n"),
            (OutputStream::Stdout, "-value\n"),
        ] {
            spool.write(stream, chunk.as_bytes(), one(&secrets));
        }
        spool.finish(one(&secrets));
        assert_eq!(spool.into_bytes(), b"working\n[redacted:TOKEN]\n");
    }
}

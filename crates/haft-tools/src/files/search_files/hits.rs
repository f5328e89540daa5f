//! The matches of one file.

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use std::io;

/// The most bytes that are shown of a line.
const MOST_LINE_BYTES: usize = 500;
/// How much of a long line is shown before the match.
const LEAD_BYTES: usize = 100;

/// A match without its path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileHit {
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

/// Takes the matches of one file from the searcher.
pub(super) struct FileHits<'a> {
    matcher: &'a RegexMatcher,
    most: usize,
    hits: Vec<FileHit>,
    before: Vec<String>,
    is_binary: bool,
}

impl<'a> FileHits<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, most: usize) -> Self {
        FileHits { matcher, most, hits: Vec::new(), before: Vec::new(), is_binary: false }
    }

    /// What matched; nothing in a file that is not text.
    pub(super) fn finish(self) -> Vec<FileHit> {
        if self.is_binary { Vec::new() } else { self.hits }
    }
}

impl Sink for FileHits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = without_end(found.bytes());
        let first = if line.len() > MOST_LINE_BYTES {
            self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
        } else {
            0
        };
        let before = std::mem::take(&mut self.before);
        let line_number = found.line_number().unwrap_or(0);
        self.hits.push(FileHit { line: line_number, text: shown(line, first), before, after: Vec::new() });
        // The last one gets nothing of what comes after it: it only tells that there are more, and is not shown.
        Ok(self.hits.len() < self.most)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let text = shown(without_end(context.bytes()), 0);
        match (context.kind(), self.hits.last_mut()) {
            (SinkContextKind::After, Some(hit)) => hit.after.push(text),
            _ => self.before.push(text),
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as it is shown. Of a long one, the part around the match, and how long it is.
fn shown(line: &[u8], first: usize) -> String {
    if line.len() <= MOST_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = boundary(line, first.saturating_sub(LEAD_BYTES).min(line.len() - MOST_LINE_BYTES));
    let to = boundary(line, (from + MOST_LINE_BYTES).min(line.len()));
    let part = String::from_utf8_lossy(&line[from..to]);
    let before = if from > 0 { "…" } else { "" };
    let after = if to < line.len() { "…" } else { "" };
    format!("{before}{part}{after} [{} of {} bytes]", to - from, line.len())
}

/// The same place, or a little before it, so that no character is cut.
fn boundary(line: &[u8], at: usize) -> usize {
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|&at| !is_inside(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_its_match_without_cutting_a_character() {
        let line = format!("{}needle{}", "ü".repeat(1000), "x".repeat(1000));
        let text = shown(line.as_bytes(), 2000);
        assert!(text.contains("ünee") && !text.contains('\u{fffd}'), "{text}");
        assert!(text.starts_with('…') && text.ends_with("of 3006 bytes]"), "{text}");
        let text = shown("y".repeat(501).as_bytes(), 0);
        assert_eq!(text, format!("{}… [500 of 501 bytes]", "y".repeat(500)));
        assert_eq!(shown(b"short", 0), "short");
        assert_eq!(without_end(b"a\r\n"), b"a");
    }
}

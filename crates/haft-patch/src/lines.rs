//! Lines, their ends, and where a run of lines occurs.

use crate::error::{PatchError, PatchErrorKind};

/// The lines of a patch: ended by LF or CRLF, the last one perhaps by nothing.
pub(crate) fn patch_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n')
        .map(|line| {
            let line = line.strip_suffix('\n').unwrap_or(line);
            line.strip_suffix('\r').unwrap_or(line)
        })
        .collect()
}

/// A line of a file and what ends it: `"\n"`, `"\r\n"`, `"\r"` or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    pub(crate) end: &'a str,
}

impl AsRef<str> for Line<'_> {
    fn as_ref(&self) -> &str {
        self.text
    }
}

/// Whether a carriage return alone ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoneCr {
    EndsLine,
    IsContent,
}

/// Splits a text into lines. Joining texts and ends gives the text again.
pub(crate) fn split(text: &str, lone_cr: LoneCr) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for piece in text.split_inclusive('\n') {
        let (mut body, end) = match (piece.strip_suffix("\r\n"), piece.strip_suffix('\n')) {
            (Some(body), _) => (body, "\r\n"),
            (None, Some(body)) => (body, "\n"),
            (None, None) => (piece, ""),
        };
        if lone_cr == LoneCr::EndsLine {
            while let Some((text, rest)) = body.split_once('\r') {
                lines.push(Line { text, end: "\r" });
                body = rest;
            }
            // What follows the last lone CR of a text is a line only if there is something.
            if body.is_empty() && end.is_empty() {
                continue;
            }
        }
        lines.push(Line { text: body, end });
    }
    lines
}

/// The line end that most lines have; of several, the one that comes first. LF where there is none.
pub(crate) fn usual_end(lines: &[Line<'_>]) -> &'static str {
    let mut best = ("\n", 0, usize::MAX);
    for end in ["\n", "\r\n", "\r"] {
        let count = lines.iter().filter(|line| line.end == end).count();
        let first = lines.iter().position(|line| line.end == end).unwrap_or(usize::MAX);
        if count > best.1 || (count == best.1 && first < best.2) {
            best = (end, count, first);
        }
    }
    best.0
}

/// Every place where `needle` occurs in `lines`, overlapping ones too. An empty needle occurs nowhere.
///
/// Knuth, Morris and Pratt's way: a patch and a file with many equal lines cost their sum, not their product.
pub(crate) fn find_runs<H: AsRef<str>, N: AsRef<str>>(lines: &[H], needle: &[N]) -> Vec<usize> {
    if needle.is_empty() || needle.len() > lines.len() {
        return Vec::new();
    }
    let at = |index: usize| needle[index].as_ref();
    let mut border = vec![0; needle.len()];
    let mut matched = 0;
    for index in 1..needle.len() {
        while matched > 0 && at(index) != at(matched) {
            matched = border[matched - 1];
        }
        if at(index) == at(matched) {
            matched += 1;
        }
        border[index] = matched;
    }
    let mut found = Vec::new();
    matched = 0;
    for (index, line) in lines.iter().enumerate() {
        while matched > 0 && line.as_ref() != at(matched) {
            matched = border[matched - 1];
        }
        if line.as_ref() == at(matched) {
            matched += 1;
        }
        if matched == needle.len() {
            found.push(index + 1 - needle.len());
            matched = border[matched - 1];
        }
    }
    found
}

/// How many lines a patch may make us look at: about a second of work, far above any honest patch.
const MOST_LINES: usize = 100_000_000;

/// What is left of the work that one patch may cause. Many operations on a long file would else take minutes.
#[derive(Debug)]
pub(crate) struct Work {
    left: usize,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self { left: MOST_LINES }
    }

    /// What it costs to go once through so many lines and bytes, counted in lines.
    pub(crate) fn of(lines: usize, bytes: usize) -> usize {
        lines.saturating_add(bytes / 32).saturating_add(1)
    }

    /// Takes `lines` off, or says that there is not enough left.
    pub(crate) fn spend(&mut self, lines: usize, patch_line: usize) -> Result<(), PatchError> {
        self.left = self.left.checked_sub(lines).ok_or_else(|| {
            PatchError::new(
                PatchErrorKind::TooMuchWork,
                patch_line,
                "The patch has too many operations for files of this length",
            )
            .help("split it into several patches")
        })?;
        Ok(())
    }
}

/// The text of a file, or the error that it is none.
pub(crate) fn utf8(bytes: &[u8], patch_line: usize) -> Result<&str, PatchError> {
    std::str::from_utf8(bytes).map_err(|error| {
        PatchError::new(
            PatchErrorKind::NotUtf8,
            patch_line,
            format!("Invalid UTF-8 in file, at byte {}", error.valid_up_to()),
        )
        .help("only UTF-8 text can be patched; write the whole file instead")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(lines: &[Line<'_>]) -> String {
        lines.iter().flat_map(|line| [line.text, line.end]).collect()
    }

    #[test]
    fn splitting_loses_nothing() {
        for text in ["", "a", "a\n", "a\r\nb", "\r", "a\rb\n", "\r\r\n", "\n\n", "a\r"] {
            for lone_cr in [LoneCr::EndsLine, LoneCr::IsContent] {
                assert_eq!(joined(&split(text, lone_cr)), text, "{text:?} {lone_cr:?}");
            }
        }
        assert_eq!(split("a\rb\n", LoneCr::EndsLine).len(), 2);
        assert_eq!(split("a\rb\n", LoneCr::IsContent).len(), 1);
    }

    #[test]
    fn the_usual_end_is_the_most_frequent_then_the_first() {
        for (text, end) in
            [("", "\n"), ("a", "\n"), ("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\nb\r\nc\r\n", "\r\n")]
        {
            assert_eq!(usual_end(&split(text, LoneCr::EndsLine)), end, "{text:?}");
        }
    }

    #[test]
    fn runs_overlap() {
        assert_eq!(find_runs(&["a", "a", "a"], &["a", "a"]), [0, 1]);
        assert_eq!(find_runs(&["a", "b", "a", "b", "a"], &["a", "b", "a"]), [0, 2]);
        assert_eq!(find_runs(&["a"], &["a", "a"]), [0; 0]);
        assert_eq!(find_runs(&["a", "a", "b", "a", "a", "c"], &["a", "a", "c"]), [3]);
        assert_eq!(find_runs::<_, &str>(&["a"], &[]), [0; 0]);
    }

    #[test]
    fn work_runs_out() {
        let mut work = Work::new();
        assert!(work.spend(MOST_LINES, 1).is_ok());
        assert_eq!(work.spend(1, 7).unwrap_err().line, Some(7));
    }
}

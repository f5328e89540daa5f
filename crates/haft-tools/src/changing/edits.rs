//! Edits of a text. Pure: text in, text out.

use haft_core::{ErrorCode, ToolError, text::one_line};
use haft_patch::nearest;

/// Which of several matches is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// There must be only one.
    Only,
    /// That one, counted from 1.
    Nth(u32),
    /// Every one.
    All,
}

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) text: String,
    /// The lines at which something is different, counted from 1.
    pub(super) lines: Vec<usize>,
}

/// A text as it looks with LF at the end of every line, and where each byte of that is in the text.
struct LfView<'a> {
    original: &'a str,
    text: std::borrow::Cow<'a, str>,
    /// For each CR that was left out: the place in the view of the LF after it.
    left_out: Vec<usize>,
}

impl<'a> LfView<'a> {
    fn new(original: &'a str) -> Self {
        if !original.contains("\r\n") {
            return LfView { original, text: original.into(), left_out: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut left_out = Vec::new();
        for (index, part) in original.split("\r\n").enumerate() {
            if index > 0 {
                left_out.push(text.len());
                text.push('\n');
            }
            text.push_str(part);
        }
        LfView { original, text: text.into(), left_out }
    }

    /// The place in the original of a place in the view. A place at a line end is before its CR.
    fn original_place(&self, place: usize) -> usize {
        place + self.left_out.partition_point(|lf| *lf < place)
    }

    /// What most lines end with; CRLF where as many end with it.
    fn line_end(&self) -> &'static str {
        let crlf = self.left_out.len();
        let lf = self.text.matches('\n').count() - crlf;
        if crlf > 0 && crlf >= lf { "\r\n" } else { "\n" }
    }

    /// New text with the line ends of this one.
    fn in_its_line_ends(&self, text: &str) -> String {
        let text = text.replace("\r\n", "\n");
        if self.line_end() == "\n" { text } else { text.replace('\n', "\r\n") }
    }
}

/// Replaces a snippet.
pub(super) fn snippet(original: &str, old: &str, new: &str, which: Which) -> Result<Edited, ToolError> {
    let view = LfView::new(original);
    let old = old.replace("\r\n", "\n");
    let new = view.in_its_line_ends(new);
    let found: Vec<usize> = view.text.match_indices(&*old).map(|(at, _)| at).collect();
    let line_of = |at: usize| view.text[..at].matches('\n').count() + 1;
    let chosen = match (which, found.len()) {
        (_, 0) => return Err(no_match(&view.text, &old)),
        (Which::Only, 1) | (Which::All, _) => found,
        (Which::Only, count) => {
            let lines: Vec<_> = found.iter().take(10).map(|at| line_of(*at).to_string()).collect();
            let more = if count > 10 { ", …" } else { "" };
            let text = format!(
                "old_text was found {count} times (lines {}{more}). Add lines around it until it is unique, or set \
                 occurrence to the one that is meant, or all to true",
                lines.join(", ")
            );
            return Err(ToolError::new(ErrorCode::PatchFailed, text));
        }
        (Which::Nth(number), count) => match found.get(number as usize - 1) {
            Some(at) => vec![*at],
            None => {
                let text = format!("old_text was found {count} times, so there is no occurrence {number}");
                return Err(ToolError::new(ErrorCode::PatchFailed, text));
            }
        },
    };
    let mut text = String::with_capacity(original.len() + new.len());
    let mut done = 0;
    for at in &chosen {
        let (from, to) = (view.original_place(*at), view.original_place(at + old.len()));
        text.push_str(&view.original[done..from]);
        text.push_str(&new);
        done = to;
    }
    text.push_str(&view.original[done..]);
    Ok(Edited { text, lines: chosen.into_iter().map(line_of).collect() })
}

fn no_match(text: &str, old: &str) -> ToolError {
    let message = match nearest(text, old) {
        Some(near) => {
            let shown: Vec<_> = near
                .text
                .lines()
                .take(12)
                .enumerate()
                .map(|(index, line)| format!("{:>5} | {}", near.line + index, one_line_keeping_tabs(line)))
                .collect();
            format!(
                "old_text was not found. The nearest lines ({}):\n{}\nCopy the text exactly as it is in the file",
                near.why,
                shown.join("\n")
            )
        }
        None => "old_text was not found, and nothing in the file is like it. Read the file again".to_owned(),
    };
    ToolError::new(ErrorCode::PatchFailed, message)
}

fn one_line_keeping_tabs(line: &str) -> String {
    line.split('\t')
        .map(|part| if part.chars().count() > 200 { one_line(part, 200) } else { part.to_owned() })
        .collect::<Vec<_>>()
        .join("\t")
}

/// Replaces whole lines, `from` to `to`, counted from 1 and both included; with `to` one less than `from`, puts lines
/// before `from`.
pub(super) fn lines(original: &str, from: usize, to: usize, new: &str) -> Result<Edited, ToolError> {
    let view = LfView::new(original);
    let mut starts = vec![0];
    starts.extend(original.match_indices('\n').map(|(at, _)| at + 1));
    if original.ends_with('\n') || original.is_empty() {
        starts.pop();
    }
    let count = starts.len();
    if from > count + 1 || to > count {
        let text =
            format!("The file has {}, so lines {from}-{to} are not there", super::plural(count, "line"));
        return Err(ToolError::new(ErrorCode::PatchFailed, text));
    }
    let place = |line: usize| starts.get(line - 1).copied().unwrap_or(original.len());
    let (begin, end) = (place(from), place(to + 1));
    let mut new = view.in_its_line_ends(new);
    let is_last = end == original.len();
    // Lines stay lines: what follows must not be glued to the last new one.
    if !new.is_empty() && !new.ends_with('\n') && (!is_last || original.ends_with('\n')) {
        new.push_str(view.line_end());
    }
    let mut text = String::with_capacity(original.len() + new.len());
    text.push_str(&original[..begin]);
    // Lines after a last line that has no end: it gets one.
    if begin == original.len() && !new.is_empty() && !text.is_empty() && !text.ends_with('\n') {
        text.push_str(view.line_end());
    }
    text.push_str(&new);
    text.push_str(&original[end..]);
    // The file had no newline at its end and still has none.
    if is_last && new.is_empty() && !original.ends_with('\n') && text.ends_with('\n') {
        text.truncate(text.trim_end_matches(['\n', '\r']).len().max(text.len() - view.line_end().len()));
    }
    Ok(Edited { text, lines: vec![from] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(edited: Result<Edited, ToolError>) -> String {
        edited.unwrap().text
    }

    #[test]
    fn a_snippet_must_be_unique_unless_it_is_said_which() {
        assert_eq!(ok(snippet("a b c", "b", "x", Which::Only)), "a x c");
        assert_eq!(ok(snippet("b b b", "b", "x", Which::Nth(2))), "b x b");
        assert_eq!(ok(snippet("b b b", "b", "x", Which::All)), "x x x");
        let error = snippet("b\nb\n", "b", "x", Which::Only).unwrap_err();
        assert!(error.message.contains("2 times (lines 1, 2)"), "{}", error.message);
        let error = snippet("b\nb\n", "b", "x", Which::Nth(3)).unwrap_err();
        assert!(error.message.contains("no occurrence 3"), "{}", error.message);
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        assert_eq!(ok(snippet("a\r\nb\r\nc\r\n", "a\nb", "x\ny", Which::Only)), "x\r\ny\r\nc\r\n");
        assert_eq!(ok(snippet("a\nb\n", "a\r\nb", "x\r\ny", Which::Only)), "x\ny\n");
        assert_eq!(ok(snippet("a\r\nb", "\n", "", Which::Only)), "ab", "CR and LF go together");
        assert_eq!(
            ok(snippet("a\r\nb\nc\r\n", "c", "x\ny", Which::Only)),
            "a\r\nb\nx\r\ny\r\n",
            "mixed ones, too"
        );
    }

    #[test]
    fn what_is_nearest_is_shown() {
        let error = snippet("fn main() {\n    let x = 1;\n}\n", "  let x = 1;", "y", Which::Only);
        let text = "fn main() {\n\tlet total = count + 1;\n}\n";
        assert!(error.is_ok(), "a part of a line is found");
        let error = snippet(text, "    let total = count + 1;", "", Which::Only).unwrap_err();
        assert!(error.message.contains("    2 | \tlet total = count + 1;"), "{}", error.message);
        assert!(error.message.contains("indentation"), "{}", error.message);
        assert_eq!(error.code, ErrorCode::PatchFailed);
    }

    #[test]
    fn lines_are_replaced_put_before_and_taken_out() {
        let text = "1\n2\n3\n";
        assert_eq!(ok(lines(text, 2, 2, "x")), "1\nx\n3\n");
        assert_eq!(ok(lines(text, 2, 3, "x\ny\n")), "1\nx\ny\n");
        assert_eq!(ok(lines(text, 2, 1, "x")), "1\nx\n2\n3\n");
        assert_eq!(ok(lines(text, 4, 3, "x")), "1\n2\n3\nx\n");
        assert_eq!(ok(lines(text, 1, 2, "")), "3\n");
        assert_eq!(ok(lines("1\n2", 2, 2, "x")), "1\nx", "no final newline is made");
        assert_eq!(ok(lines("1\n2", 3, 2, "x")), "1\n2\nx");
        assert_eq!(ok(lines("1\n2", 2, 2, "")), "1");
        assert_eq!(ok(lines("1\r\n2\r\n", 2, 2, "x\ny")), "1\r\nx\r\ny\r\n");
        assert_eq!(ok(lines("", 1, 0, "x")), "x");
        assert!(lines(text, 3, 4, "").unwrap_err().message.contains("has 3 lines"));
        assert!(lines(text, 5, 4, "").is_err());
    }
}

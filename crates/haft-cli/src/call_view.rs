//! Everything that a yes covers, on a terminal or in a pipe. Pure: a view and a width give text.
//!
//! Long lines are broken here and not by the terminal, so that no text can begin a row and pass for another line of the
//! view. What is broken goes on behind `┆`.

use super::console::{BAD, GOOD, QUIET};
use anstyle::{AnsiColor, Style};
use haft_core::{ApprovalView, ViewKind, ViewLine};

/// Where in a file a change is.
const PLACE: Style = AnsiColor::Cyan.on_default();
/// How wide labels are, where there is room for them beside the text.
const LABEL: usize = 12;
/// Before a label, between it and the text, and the sign there.
const AROUND: usize = 5;

/// The view as rows of at most `width` columns; as long as they are where there is none.
pub(super) fn rows(view: &ApprovalView, width: Option<usize>) -> String {
    let mut out = String::new();
    view.lines.iter().for_each(|line| push(line, width, &mut out));
    out
}

fn push(line: &ViewLine, width: Option<usize>, out: &mut String) {
    // Without room for a column of labels the text goes on below its label.
    let column = if super::layout::is_narrow(width) { 0 } else { LABEL };
    let room = |taken: usize| width.map_or(usize::MAX, |width| width.saturating_sub(taken).max(8));
    // A label that is too wide has rows of its own.
    let is_beside = columns(&line.label) <= LABEL;
    if !is_beside {
        for part in broken(&line.label, room(2), room(2)) {
            out.push_str(&format!("  {QUIET}{part}{QUIET:#}\n"));
        }
    }
    let beside = if is_beside { &*line.label } else { "" };
    let style = match line.kind {
        ViewKind::Added => GOOD,
        ViewKind::Removed => BAD,
        ViewKind::Place => PLACE,
        ViewKind::Text | ViewKind::Value | ViewKind::Context => Style::new(),
    };
    let parts = broken(&line.text, room(column.max(columns(beside)) + AROUND), room(column + AROUND));
    for (row, part) in parts.into_iter().enumerate() {
        let (label, sign) = if row == 0 { (beside, line.sign()) } else { ("", '┆') };
        let label = format!("{QUIET}{label:<column$}{QUIET:#}");
        out.push_str(format!("  {label} {QUIET}{sign}{QUIET:#} {style}{part}{style:#}").trim_end());
        out.push('\n');
    }
}

/// The most columns that a text takes: one for ASCII, two for what may be wide.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// A text in parts that fit: the first into `first` columns, all others into `rest`.
fn broken(text: &str, first: usize, rest: usize) -> Vec<&str> {
    let (mut parts, mut begin, mut taken, mut room) = (Vec::new(), 0, 0, first);
    for (at, c) in text.char_indices() {
        let wide = if c.is_ascii() { 1 } else { 2 };
        if taken + wide > room && at > begin {
            // A blank at the end of a row would not be seen, so it begins the next one.
            let kept = text[begin..at].trim_end_matches(' ').len();
            let end = if kept == 0 { at } else { begin + kept };
            parts.push(&text[begin..end]);
            (begin, taken, room) = (end, at - end, rest);
        }
        taken += wide;
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, text: &str) -> ViewLine {
        ViewLine { label: label.into(), text: text.into(), kind: ViewKind::Text }
    }

    fn plain(lines: Vec<ViewLine>, width: Option<usize>) -> String {
        anstream::adapter::strip_str(&rows(&ApprovalView { lines }, width)).to_string()
    }

    #[test]
    fn no_text_begins_a_row() {
        // Eighty columns, then what looks like another line of the view.
        let hostile = format!("{}  isolation    │ none", "x".repeat(63));
        let lines = vec![line("  command", &hostile), line("isolation", "strict")];
        assert_eq!(
            plain(lines, Some(80)),
            format!(
                "    command    │ {}\n               ┆   isolation    │ none\n  isolation    │ strict\n",
                "x".repeat(63)
            )
        );
    }

    #[test]
    fn everything_is_there_at_every_width() {
        let text = "echo größe 名前 ⟨ESC⟩]0;touch X;⟨BEL⟩ and more words than fit into a row";
        for width in 12..120 {
            let shown =
                plain(vec![line("  a_rather_long_name_of_an_argument", text), line("", "x")], Some(width));
            let rows = shown.lines().map(|row| row.split_once(['│', '┆']).map_or("", |(_, text)| &text[1..]));
            assert_eq!(rows.collect::<String>(), format!("{text}x"), "{width}: {shown}");
            for row in shown.lines().filter(|_| width >= 20) {
                assert!(columns(row) <= width + 1, "{width}: {row:?}");
            }
        }
        assert_eq!(plain(vec![line("tool", text)], None), format!("  tool         │ {text}\n"));
    }
}

//! Text in columns, for terminals of any width.

use super::console::STRONG;

/// Below this, columns would be too narrow to read: things stand below each other instead.
const NARROW: usize = 60;

/// Whether there is room for columns. A pipe has any room.
pub(super) fn is_narrow(width: Option<usize>) -> bool {
    width.is_some_and(|width| width < NARROW)
}

/// Names with what is to be said about them: in two columns, or below each other where there is little room.
pub(super) fn list(rows: &[(String, String)], width: Option<usize>) -> String {
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, text) in rows {
        let indent = if is_narrow(width) { 2 } else { widest + 2 };
        let body = indented(text, indent, width);
        if is_narrow(width) || body.is_empty() {
            out.push_str(&format!("{STRONG}{name}{STRONG:#}\n{body}"));
        } else {
            let gap = " ".repeat(indent - name.chars().count());
            out.push_str(&format!("{STRONG}{name}{STRONG:#}{gap}{}", body.trim_start()));
        }
    }
    out
}

/// The text, wrapped to the width and moved in.
pub(super) fn indented(text: &str, indent: usize, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(16));
    let margin = " ".repeat(indent);
    let mut out = String::new();
    for line in text.lines().flat_map(|line| wrapped(line, room)) {
        out.push_str(format!("{margin}{line}").trim_end());
        out.push('\n');
    }
    out
}

/// A line as lines of at most so many characters, where its words allow; all moved in as far as the first.
fn wrapped(line: &str, room: usize) -> Vec<String> {
    let (margin, words) = line.split_at(line.len() - line.trim_start().len());
    let mut lines = Vec::new();
    let mut current = margin.to_owned();
    for word in words.split(' ') {
        let length = current.chars().count();
        if length > margin.len() && length + 1 + word.chars().count() > room {
            lines.push(std::mem::replace(&mut current, margin.to_owned()));
        } else if length > margin.len() {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn two_columns_where_there_is_room_and_one_where_there_is_not() {
        let rows = [("a".to_owned(), "one two three".to_owned()), ("long_name".to_owned(), String::new())];
        assert_eq!(plain(&list(&rows, None)), "a          one two three\nlong_name\n");
        assert_eq!(plain(&list(&rows, Some(30))), "a\n  one two three\nlong_name\n");
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable word", 4), ["unbreakable", "word"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("  one two", 6), ["  one", "  two"], "moved in as far as the first");
        assert_eq!(indented("a\n\nb", 2, Some(40)), "  a\n\n  b\n");
    }
}

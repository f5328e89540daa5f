//! Columns that fit: the last one gives way where there is little room.

use crate::console::STRONG;
use haft_core::text::one_line;

/// How a column stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Rows under a heading. Every cell but those of the last column keeps its width; the last is cut to what is left of
/// the line.
pub(super) fn table(heading: &[(&str, Side)], rows: &[Vec<String>], width: Option<usize>) -> String {
    let last = heading.len().saturating_sub(1);
    let count = |text: &str| text.chars().count();
    let widths: Vec<usize> = heading
        .iter()
        .enumerate()
        .map(|(place, (name, _))| {
            rows.iter()
                .filter_map(|row| row.get(place))
                .map(|cell| count(cell))
                .max()
                .unwrap_or(0)
                .max(count(name))
        })
        .collect();
    let before: usize = widths[..last].iter().map(|width| width + 2).sum();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(8));
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (place, cell) in cells.enumerate() {
            let gap = " ".repeat(widths[place].saturating_sub(count(cell)));
            match heading[place].1 {
                _ if place == last && heading[place].1 == Side::Left => line.push_str(&one_line(cell, room)),
                Side::Left => line.push_str(&format!("{cell}{gap}  ")),
                Side::Right => line.push_str(&format!("{gap}{cell}  ")),
            }
        }
        line.trim_end().to_owned()
    };
    let mut out = format!("{STRONG}{}{STRONG:#}\n", line(&mut heading.iter().map(|(name, _)| *name)));
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let row = |id: &str, time: &str, tool: &str| vec![id.to_owned(), time.to_owned(), tool.to_owned()];
        let rows = [
            row(
                "0197f3a2-1c5b-7def-8a90-123456789abc",
                "1.2 s",
                "a_tool_with_quite_a_long_name EXECUTION_FAILED",
            ),
            row("0197f3a2-1c5b-7def-8a90-123456789abd", "10 ms", "é"),
        ];
        let heading = [("execution", Side::Left), ("time", Side::Right), ("tool", Side::Left)];
        for width in [60, 80, 200] {
            let text = anstream::adapter::strip_str(&table(&heading, &rows, Some(width))).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert_eq!(text.lines().count(), 3);
        }
        let text = anstream::adapter::strip_str(&table(&heading, &rows, None)).to_string();
        assert!(text.contains("EXECUTION_FAILED"), "in a pipe nothing is cut: {text}");
    }
}

//! Lines of an output: all of them, or those that match.

use haft_core::port::{FoundLines, OutputSearch};
use regex::bytes::{Regex, RegexBuilder};

/// Picks lines out of an output that comes in pieces.
pub(crate) struct Lines<'a> {
    pub(crate) found: FoundLines,
    search: &'a OutputSearch,
    pattern: Option<Regex>,
    from: u64,
    number: u64,
    bytes: usize,
}

impl<'a> Lines<'a> {
    /// Ready for the pieces of an output of `total` bytes. The error is what is wrong with the expression.
    pub(crate) fn new(search: &'a OutputSearch, total: u64) -> Result<Self, String> {
        let pattern = search.pattern.as_deref().map(compile).transpose()?;
        let found = FoundLines { total, ..FoundLines::default() };
        Ok(Lines { found, search, pattern, from: search.from_line.max(1), number: 1, bytes: 0 })
    }

    /// Counts from a later line on, where earlier pieces were left out.
    #[cfg(feature = "sql")]
    pub(crate) fn at_line(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// Looks at the next line; whether there is no room for it.
    pub(crate) fn is_full(&mut self, line: &[u8]) -> bool {
        let number = self.number;
        self.number += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if number < self.from || self.pattern.as_ref().is_some_and(|pattern| !pattern.is_match(line)) {
            return false;
        }
        let is_first = self.found.lines.is_empty();
        let room = self.search.max_bytes.saturating_sub(self.bytes);
        if self.found.lines.len() >= self.search.max_lines || (line.len() > room && !is_first) {
            self.found.next_line = Some(number);
            return true;
        }
        // One line alone may be too long: what fits is better than nothing, and the bytes can be read by range.
        let line = &line[..line.len().min(room.max(1))];
        self.bytes += line.len();
        self.found.lines.push((number, line.to_vec()));
        false
    }
}

/// Bounded in size and time: the expression comes from a model.
fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20)
        .build()
        .map_err(|error| format!("the regular expression cannot be used: {error}"))
}

/// The lines of an output that is there as a whole.
pub(crate) fn search(bytes: &[u8], search: &OutputSearch) -> Result<FoundLines, String> {
    let mut lines = Lines::new(search, bytes.len() as u64)?;
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if !bytes.is_empty() {
        // Stops at the first line that has no room.
        let _ = whole.split(|byte| *byte == b'\n').find(|line| lines.is_full(line));
    }
    Ok(lines.found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_whole_output() {
        let numbers = |text: &str, search_for: &OutputSearch| {
            let found = search(text.as_bytes(), search_for).unwrap();
            (found.lines.iter().map(|(number, _)| *number).collect::<Vec<_>>(), found.next_line)
        };
        let all = OutputSearch::default();
        assert_eq!(numbers("", &all), (vec![], None));
        assert_eq!(numbers("a\n\nb", &all), (vec![1, 2, 3], None));
        assert_eq!(numbers("a\nb\n", &all), (vec![1, 2], None));
        let some = OutputSearch { pattern: Some("^b".into()), max_lines: 1, ..all.clone() };
        assert_eq!(numbers("a\nb\nb2\nc\n", &some), (vec![2], Some(3)));
        assert_eq!(numbers("a\nb\nc\n", &OutputSearch { from_line: 3, ..all.clone() }), (vec![3], None));
        assert!(search(b"a", &OutputSearch { pattern: Some("(".into()), ..all }).is_err());
    }
}

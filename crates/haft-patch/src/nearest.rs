//! When something is not found: what comes closest, and what is different there.

use std::collections::HashMap;
use std::fmt;

/// The lines of a text that come closest to what was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The first of them, counted from 1.
    pub line: usize,
    /// The lines as they are, joined by LF.
    pub text: String,
    /// What is different.
    pub why: Why,
}

/// What is different between lines that were looked for and the nearest ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Nothing in the lines themselves; only what ends them, or where they stand.
    OnlyLineEnds,
    /// The white space at the beginning of lines.
    Indentation,
    /// One has tabs at the beginning of lines where the other has spaces.
    TabsOrSpaces,
    /// The white space at the end of lines.
    TrailingSpace,
    /// White space elsewhere in the lines.
    WhiteSpace,
    /// Capital and small letters.
    Case,
    /// What was looked for is a part of this line, not all of it.
    PartOfLine,
    /// One line only.
    OneLine {
        /// Its number, counted from 1.
        line: usize,
        /// What was looked for.
        wanted: String,
        /// What stands there.
        found: String,
    },
    /// Several lines.
    SeveralLines {
        /// How many are different.
        different: usize,
        /// Of how many.
        of: usize,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyLineEnds => f.write_str("the lines are equal; only their line ends differ"),
            Self::Indentation => f.write_str("only the indentation differs"),
            Self::TabsOrSpaces => {
                f.write_str("only the indentation differs: tabs in one, spaces in the other")
            }
            Self::TrailingSpace => f.write_str("only white space at the end of lines differs"),
            Self::WhiteSpace => f.write_str("only white space differs"),
            Self::Case => f.write_str("only capital and small letters differ"),
            Self::PartOfLine => f.write_str("what was looked for is only a part of this line"),
            Self::OneLine { line, wanted, found } => {
                write!(f, "line {line} differs: wanted `{}`, found `{}`", short(wanted), short(found))
            }
            Self::SeveralLines { different, of } => write!(f, "{different} of {of} lines differ"),
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.text.split('\n').collect();
        write!(f, "line {}, {}", self.line, self.why)?;
        for (index, line) in lines.iter().take(SHOWN_LINES).enumerate() {
            write!(f, "\n    {}: {}", self.line + index, short(line))?;
        }
        if lines.len() > SHOWN_LINES {
            write!(f, "\n    … {} more", lines.len() - SHOWN_LINES)?;
        }
        Ok(())
    }
}

const SHOWN_LINES: usize = 6;
const SHOWN_CHARS: usize = 160;
/// What of a needle and of a text is looked at: enough to help, little enough to be quick.
const NEEDLE_LINES: usize = 200;
const TEXT_LINES: usize = 100_000;
const SIMILAR_CHARS: usize = 200;

fn short(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The lines of `text` that come closest to those of `needle`, and what is different there.
///
/// `None` where nothing resembles the needle at all. Costs a bounded time: of a very long text the beginning is
/// looked at.
///
/// ```
/// use haft_patch::{Why, nearest};
///
/// let near = nearest("fn a() {\n    run();\n}\n", "  run();").unwrap();
/// assert_eq!((near.line, near.why), (2, Why::Indentation));
/// assert_eq!(nearest("fn a() {}\n", "completely else"), None);
/// ```
#[must_use]
pub fn nearest(text: &str, needle: &str) -> Option<Nearest> {
    let lines: Vec<&str> = text.lines().take(TEXT_LINES).collect();
    let wanted: Vec<&str> = needle.lines().take(NEEDLE_LINES).collect();
    if wanted.iter().all(|line| line.trim().is_empty()) || lines.is_empty() {
        return None;
    }
    let start = best_start(&lines, &wanted)?;
    let window = &lines[start..(start + wanted.len()).min(lines.len())];
    Some(Nearest { line: start + 1, text: window.join("\n"), why: why(window, &wanted, start) })
}

/// Where most of the needle's lines, weighed by length, stand as they should; else where its longest line has something
/// similar.
fn best_start(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut ids = HashMap::new();
    let mut id = |line: &str| {
        let next = ids.len();
        *ids.entry(squashed(line)).or_insert(next)
    };
    let wanted_ids: Vec<usize> = wanted.iter().map(|line| id(line)).collect();
    let line_ids: Vec<usize> = lines.iter().map(|line| id(line)).collect();
    let weights: Vec<usize> = wanted.iter().map(|line| line.trim().len()).collect();
    let mut best = (0, 0);
    for start in 0..lines.len() {
        let score = wanted_ids
            .iter()
            .zip(&line_ids[start..])
            .zip(&weights)
            .filter(|((wanted, line), _)| wanted == line)
            .map(|(_, weight)| weight)
            .sum();
        if score > best.0 {
            best = (score, start);
        }
    }
    // A closing brace in the right place is not yet a likeness.
    if best.0 * 3 >= weights.iter().sum::<usize>() {
        return Some(best.1);
    }
    let (offset, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let longest = pairs(longest);
    let mut similar = (0.0, 0);
    for (index, line) in lines.iter().enumerate() {
        let likeness = dice(&longest, &pairs(line));
        if likeness > similar.0 {
            similar = (likeness, index);
        }
    }
    (similar.0 >= 0.5).then(|| similar.1.saturating_sub(offset))
}

fn why(window: &[&str], wanted: &[&str], start: usize) -> Why {
    let same = |change: fn(&str) -> String| {
        window.len() == wanted.len() && window.iter().zip(wanted).all(|(a, b)| change(a) == change(b))
    };
    if same(str::to_owned) {
        return Why::OnlyLineEnds;
    }
    if same(|line| line.trim_start().to_owned()) {
        let tabs = |lines: &[&str]| lines.iter().any(|line| line.starts_with('\t'));
        return if tabs(window) == tabs(wanted) { Why::Indentation } else { Why::TabsOrSpaces };
    }
    if same(|line| line.trim_end().to_owned()) {
        return Why::TrailingSpace;
    }
    if same(without_space) {
        return Why::WhiteSpace;
    }
    if same(str::to_lowercase) {
        return Why::Case;
    }
    if let ([line], [part]) = (window, wanted)
        && line.contains(part)
    {
        return Why::PartOfLine;
    }
    let mut different = (0..wanted.len()).filter(|index| window.get(*index) != Some(&wanted[*index]));
    match (different.next(), different.count()) {
        (Some(index), 0) if wanted.len() > 1 || window.len() == 1 => Why::OneLine {
            line: start + index + 1,
            wanted: wanted[index].to_owned(),
            found: window.get(index).copied().unwrap_or_default().to_owned(),
        },
        (_, more) => Why::SeveralLines { different: more + 1, of: wanted.len() },
    }
}

fn without_space(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

fn squashed(line: &str) -> String {
    without_space(line).to_lowercase()
}

/// The pairs of neighbouring letters of a line, sorted.
fn pairs(line: &str) -> Vec<(char, char)> {
    let letters: Vec<char> = line
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(SIMILAR_CHARS)
        .flat_map(char::to_lowercase)
        .collect();
    let mut pairs: Vec<_> = letters.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.sort_unstable();
    pairs
}

/// Dice's coefficient: how many of the pairs two lines share, from 0 to 1.
fn dice(a: &[(char, char)], b: &[(char, char)]) -> f64 {
    let (mut left, mut right, mut shared) = (a.iter().peekable(), b.iter().peekable(), 0_u32);
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                shared += 1;
                left.next();
                right.next();
            }
        }
    }
    let total = u32::try_from(a.len() + b.len()).unwrap_or(u32::MAX);
    if total == 0 { 0.0 } else { f64::from(shared) * 2.0 / f64::from(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn first() {\n\tlet total = 1;\n\tprint(total);\n}\n\nfn second() {\n    let Total = 2;\n    print(total);   \n}\n";

    fn near(needle: &str) -> (usize, Why) {
        let near = nearest(TEXT, needle).unwrap();
        (near.line, near.why)
    }

    #[test]
    fn says_where_and_why() {
        assert_eq!(near("  let total = 1;\n  print(total);"), (2, Why::TabsOrSpaces));
        assert_eq!(near("      let Total = 2;"), (7, Why::Indentation));
        assert_eq!(near("fn first() { "), (1, Why::TrailingSpace));
        assert_eq!(near("fn second(){"), (6, Why::WhiteSpace));
        assert_eq!(near("FN second() {"), (6, Why::Case));
        assert_eq!(near("fn second()"), (6, Why::PartOfLine));
        assert_eq!(near("fn first() {\n\tlet total = 1;\n"), (1, Why::OnlyLineEnds));
        assert_eq!(
            near("fn second() {\n    let Total = 3;\n    print(total);   \n}"),
            (
                6,
                Why::OneLine {
                    line: 7,
                    wanted: "    let Total = 3;".into(),
                    found: "    let Total = 2;".into()
                }
            )
        );
        assert_eq!(near("fn second() {\n  one;\n  two;\n}"), (6, Why::SeveralLines { different: 2, of: 4 }));
        assert_eq!(near("fn secnd() {").0, 6);
    }

    #[test]
    fn a_needle_that_runs_over_the_end() {
        assert_eq!(
            nearest("a b c\n", "a b c\nd").unwrap().why,
            Why::OneLine { line: 2, wanted: "d".into(), found: String::new() }
        );
    }

    #[test]
    fn nothing_alike_is_none() {
        for (text, needle) in
            [("", "a"), ("a\n", ""), ("a\n", " \n"), ("let x;\n", "SELECT 42"), ("}\n", "}}")]
        {
            assert_eq!(nearest(text, needle), None, "{text:?} {needle:?}");
        }
    }

    #[test]
    fn long_lines_are_cut_when_shown() {
        let text = format!("{}\n", "ä".repeat(1000));
        let shown = nearest(&text, &"ä".repeat(999)).unwrap().to_string();
        assert!(shown.chars().count() < 600, "{shown}");
    }
}

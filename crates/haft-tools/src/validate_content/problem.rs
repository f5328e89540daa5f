//! What is wrong with a content, where, and the report that lists it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::Format;

/// The most problems that a report lists.
pub(super) const MAX_LISTED: usize = 1000;

/// One thing that is wrong with the content.
///
/// ```
/// use haft_tools::validate_content::{Args, validate};
///
/// let report = validate(&Args::json("{\"a\": 1,}"))?;
/// let problem = &report.problems[0];
/// assert_eq!((problem.line, problem.column, problem.rule.as_str()), (1, 8, "trailing_comma"));
/// assert_eq!(problem.hint.as_deref(), Some("remove the comma before `}`"));
/// # Ok::<(), haft_tools::validate_content::BadSchema>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Offset in bytes, from 0.
    pub offset: usize,
    /// JSON pointer of the value that has the problem; empty for the whole content. Absent where the content
    /// could not be read far enough to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Name of the rule that was broken: a keyword of the schema (`type`, `required`, …) or one of `syntax`,
    /// `duplicate_key`, `trailing_comma`, `extra_comma`, `missing_comma`, `comment`, `quotes`, `unquoted_key`,
    /// `literal`, `number`, `unterminated_string`, `control_character`, `escape`, `surrogate`, `blank`,
    /// `byte_order_mark`, `trailing_data`, `unexpected_end`, `depth`.
    pub rule: String,
    /// What was expected and what was found, in one sentence.
    pub message: String,
    /// What to do about it, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if let Some(pointer) = self.pointer.as_deref().filter(|pointer| !pointer.is_empty()) {
            write!(f, "{pointer}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The outcome of one validation.
///
/// Its text form is for models and people:
///
/// ```
/// use haft_tools::validate_content::{Args, validate};
///
/// let report = validate(&Args::json("{\n  \"a\": 1,\n}"))?;
/// assert_eq!(
///     report.to_string(),
///     "invalid JSON: 1 problem\n\
///      line 2, column 9: expected a key after the comma, got `}`\n  hint: remove the comma before `}`"
/// );
/// # Ok::<(), haft_tools::validate_content::BadSchema>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Whether the content is well-formed and, where a schema was given, matches it.
    pub valid: bool,
    /// The format the content was read as.
    pub format: Format,
    /// The problems in the order of their places, at most `max_problems` of them.
    pub problems: Vec<Problem>,
    /// How many problems were found, those that are not listed included.
    pub total: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.valid {
            return write!(f, "valid {}", self.format);
        }
        let plural = if self.total == 1 { "" } else { "s" };
        write!(f, "invalid {}: {} problem{plural}", self.format, self.total)?;
        for problem in &self.problems {
            write!(f, "\n{problem}")?;
            if let Some(hint) = &problem.hint {
                write!(f, "\n  hint: {hint}")?;
            }
        }
        let left = self.total.saturating_sub(self.problems.len());
        if left > 0 {
            write!(f, "\n{left} more not listed")?;
        }
        Ok(())
    }
}

/// A problem as its finder knows it: the place is still an offset.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) offset: usize,
    pub(super) pointer: Option<String>,
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// Collects problems, keeps as many as a report may list, and counts them all.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Found>,
    last_kept: bool,
    total: usize,
}

impl Findings {
    pub(super) fn push(&mut self, found: Found) -> &mut Self {
        self.total += 1;
        self.last_kept = self.has_room();
        if self.last_kept {
            self.kept.push(found);
        }
        self
    }

    /// Whether the next problem would be kept, so that its words are worth finding.
    pub(super) fn has_room(&self) -> bool {
        self.kept.len() < MAX_LISTED
    }

    /// Counts problems that are known by their number only.
    pub(super) fn count_unlisted(&mut self, number: usize) {
        self.total += number;
    }

    /// Adds what to do about the problem pushed last.
    pub(super) fn hint(&mut self, hint: impl Into<String>) {
        if self.last_kept
            && let Some(last) = self.kept.last_mut()
        {
            last.hint = Some(hint.into());
        }
    }

    /// The report, listing the first `listed` problems by place.
    pub(super) fn into_report(mut self, format: Format, lines: &Lines<'_>, listed: usize) -> Report {
        self.kept.sort_by_key(|found| found.offset);
        self.kept.truncate(listed);
        let problems = self.kept.into_iter().map(|found| {
            let (line, column) = lines.place(found.offset);
            Problem {
                line,
                column,
                offset: found.offset,
                pointer: found.pointer,
                rule: found.rule,
                message: found.message,
                hint: found.hint,
            }
        });
        Report { valid: self.total == 0, format, problems: problems.collect(), total: self.total }
    }
}

/// Turns byte offsets into lines and columns.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Line of `offset`, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// Line and column of `offset`, both from 1; the column counts characters.
    pub(super) fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.line(offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..offset.min(self.text.len())).unwrap_or_default();
        // Every byte that does not continue a character starts one.
        let characters = before.iter().filter(|byte| (**byte & 0b1100_0000) != 0b1000_0000).count();
        (line, characters + 1)
    }

    /// `line 3, column 5`
    pub(super) fn words(&self, offset: usize) -> String {
        let (line, column) = self.place(offset);
        format!("line {line}, column {column}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_not_bytes() {
        let lines = Lines::new("äb\n\nc");
        for (offset, place) in [(0, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 1)), (5, (3, 1)), (6, (3, 2))]
        {
            assert_eq!(lines.place(offset), place, "offset {offset}");
        }
        assert_eq!(lines.place(99), (3, 2), "past the end is the end");
        assert_eq!(Lines::new("").place(0), (1, 1));
    }

    #[test]
    fn what_is_not_listed_is_counted() {
        let text = "x";
        let mut findings = Findings::default();
        for rule in ["one", "two", "three"] {
            findings.push(Found {
                offset: 0,
                pointer: None,
                rule: rule.into(),
                message: format!("rule {rule}"),
                hint: None,
            });
        }
        let report = findings.into_report(Format::Json, &Lines::new(text), 1);
        assert_eq!((report.problems.len(), report.total), (1, 3));
        assert_eq!(
            report.to_string(),
            "invalid JSON: 3 problems\nline 1, column 1: rule one\n2 more not listed"
        );
    }
}

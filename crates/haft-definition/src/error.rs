//! What is wrong with the text of a definition.

use std::fmt;

/// How many problems are shown; more are counted.
const SHOWN: usize = 20;

/// A place in a text. Both count from one; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    /// That of a byte of the text.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Position {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One thing that is wrong with the text.
///
/// ```
/// use haft_definition::{Format, read};
/// let errors = read("{\"name\": \"ping\",\n\"description\": \"Answers\", \"paramters\": []}", Format::Json).unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "error: unknown field `paramters` at line 2, column 27\n  help: did you mean `parameters`?"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Where in the file the problem is.
    pub position: Position,
    /// What, in one sentence without a full stop.
    pub problem: String,
    /// What to do, where that can be told.
    pub help: Option<String>,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {} at {}", self.problem, self.position)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with the text, in its order; at least one.
///
/// ```
/// use haft_definition::{Format, read};
/// let errors = read("name = 5", Format::Toml).unwrap_err();
/// assert_eq!(errors.errors()[0].problem, "missing field `description`");
/// assert_eq!(errors.errors()[1].problem, "`name`: expected a string, got the number 5");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadErrors(Vec<ReadError>);

impl ReadErrors {
    /// They need not be in order. There is to be at least one: none at all reads as if nothing were wrong.
    #[must_use]
    pub fn new(mut errors: Vec<ReadError>) -> Self {
        errors.sort_by_key(|error| error.position);
        errors.dedup();
        ReadErrors(errors)
    }

    pub(crate) fn one(position: Position, problem: impl Into<String>, help: Option<String>) -> Self {
        ReadErrors(vec![ReadError { position, problem: problem.into(), help }])
    }

    /// Each of them.
    #[must_use]
    pub fn errors(&self) -> &[ReadError] {
        &self.0
    }
}

impl fmt::Display for ReadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().take(SHOWN).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ReadErrors {}

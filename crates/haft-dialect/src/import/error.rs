//! What is wrong with a list of tools.

use haft_core::text;
use std::fmt;

/// The most problems that are told; the rest is counted.
const MOST: usize = 10;

/// One thing that is wrong: where, what, and what to do.
///
/// ```
/// let error = haft_dialect::import(&serde_json::json!([{"name": 5}])).unwrap_err();
/// assert_eq!(error.problems[0].place, "tools[0].name");
/// assert_eq!(error.problems[0].problem, "it is a number");
/// assert_eq!(error.problems[0].fix, "use a text");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportProblem {
    /// Where in the list, such as `tools[2].function.parameters`.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

impl fmt::Display for ImportProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; {}",
            self.place,
            text::one_line(&self.problem, 300),
            text::one_line(&self.fix, 300)
        )
    }
}

/// A list of tools that cannot be imported: the first ten problems, and how many more there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.in_words())]
pub struct ImportError {
    /// The first problems, in the order of the list.
    pub problems: Vec<ImportProblem>,
    /// How many more there are.
    pub more: usize,
}

impl ImportError {
    fn in_words(&self) -> String {
        let all = self.problems.len() + self.more;
        let mut words = match all {
            1 => "1 problem in the list of tools:".to_owned(),
            _ => format!("{all} problems in the list of tools:"),
        };
        for problem in &self.problems {
            words.push_str(&format!("\n  {problem}"));
        }
        if self.more > 0 {
            words.push_str(&format!("\n  and {} more", self.more));
        }
        words
    }
}

/// Collects problems.
#[derive(Default)]
pub(super) struct Problems {
    first: Vec<ImportProblem>,
    more: usize,
}

impl Problems {
    pub(super) fn add(&mut self, place: &str, problem: impl Into<String>, fix: impl Into<String>) {
        if self.first.len() < MOST {
            let place = place.to_owned();
            self.first.push(ImportProblem { place, problem: problem.into(), fix: fix.into() });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn count(&self) -> usize {
        self.first.len() + self.more
    }

    pub(super) fn into_error(self) -> Option<ImportError> {
        (!self.first.is_empty()).then_some(ImportError { problems: self.first, more: self.more })
    }
}

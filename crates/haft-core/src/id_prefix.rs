//! Ids by a prefix: what a person types when a whole id is too long.
//!
//! ```
//! use haft_core::id_prefix::{IdMatch, is_prefix, only};
//! let fits = |id: &str| IdMatch { id: id.to_owned(), what: "write_file".to_owned() };
//! assert!(is_prefix("apr_5d41", "apr_"));
//! assert_eq!(only("apr_5d41", &[fits("apr_5d4140"), ]).unwrap(), Some("apr_5d4140"));
//! assert!(only("apr_5d41", &[fits("apr_5d4140"), fits("apr_5d4141")]).is_err());
//! ```

use crate::text;
use std::fmt;

/// The fewest characters of an id: a shorter prefix would only match by chance.
pub const FEWEST: usize = 4;
/// How many matches an error lists.
pub const LISTED: usize = 10;

/// An id that a prefix fits, and what it is the id of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMatch {
    /// The whole id.
    pub id: String,
    /// What it is the id of, in a few words.
    pub what: String,
}

/// Several ids begin with what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousId {
    /// What was typed.
    pub typed: String,
    /// The ids that begin so.
    pub matches: Vec<IdMatch>,
}

impl fmt::Display for AmbiguousId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text::one_line(text, 200);
        write!(f, "several ids begin with `{}`:", shown(&self.typed))?;
        for IdMatch { id, what } in self.matches.iter().take(LISTED) {
            write!(f, "\n  {}  {}", shown(id), shown(what))?;
        }
        if self.matches.len() > LISTED {
            f.write_str("\n  …")?;
        }
        Ok(())
    }
}

impl std::error::Error for AmbiguousId {}

/// The one id that fits; `None` where none does. An id that is there as a whole is meant, whatever else begins like it.
///
/// # Errors
///
/// Where several fit.
pub fn only<'a>(typed: &str, fitting: &'a [IdMatch]) -> Result<Option<&'a str>, AmbiguousId> {
    let typed = typed.trim();
    if let Some(exact) = fitting.iter().find(|found| found.id == typed) {
        return Ok(Some(&exact.id));
    }
    match fitting {
        [] => Ok(None),
        [one] => Ok(Some(&one.id)),
        several => Err(AmbiguousId { typed: typed.to_owned(), matches: several.to_vec() }),
    }
}

/// Whether something typed can be a prefix of ids that all begin with `kind`, such as `apr_`.
pub fn is_prefix(typed: &str, kind: &str) -> bool {
    typed.trim().strip_prefix(kind).is_some_and(|rest| rest.len() >= FEWEST)
}

/// The digits of a prefix of the id of an execution or a batch, with or without its dashes.
///
/// ```
/// assert_eq!(haft_core::id_prefix::digits("0197F3A2-1c5b").as_deref(), Some("0197f3a21c5b"));
/// ```
pub fn digits(typed: &str) -> Option<String> {
    let digits: String = typed.trim().chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
    let fits = (FEWEST..=32).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit());
    fits.then_some(digits)
}

/// Whether the id of an execution or a batch begins with these digits.
pub fn begins(id: &str, digits: &str) -> bool {
    id.replace('-', "").starts_with(digits)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn found<T: AsRef<str>>(ids: &[T]) -> Vec<IdMatch> {
        let of = |id: &T| IdMatch { id: id.as_ref().to_owned(), what: "a call".to_owned() };
        ids.iter().map(of).collect()
    }

    #[test]
    fn one_match_is_meant_and_several_are_listed() {
        assert_eq!(only("apr_12", &found::<&str>(&[])).unwrap(), None);
        assert_eq!(only("apr_12", &found(&["apr_1234"])).unwrap(), Some("apr_1234"));
        assert_eq!(only(" apr_12 ", &found(&["apr_1234", "apr_12"])).unwrap(), Some("apr_12"));
        let several = only("apr_12", &found(&["apr_1234", "apr_1256"])).unwrap_err();
        assert_eq!(
            several.to_string(),
            "several ids begin with `apr_12`:\n  apr_1234  a call\n  apr_1256  a call"
        );
        let many: Vec<String> = (10..40).map(|n| format!("apr_12{n}")).collect();
        let many = only("apr_12", &found(&many)).unwrap_err().to_string();
        assert_eq!(many.lines().count(), 1 + LISTED + 1, "{many}");
    }

    #[test]
    fn a_prefix_of_a_call_is_some_digits() {
        assert_eq!(digits("0197F3A2-1c5b").as_deref(), Some("0197f3a21c5b"));
        assert_eq!(digits("0197f3a21c").as_deref(), Some("0197f3a21c"));
        for wrong in ["", "019", "nothing", "0197f3a2-1c5b-7def-8a90-123456789abcd", "tsk_0197f3"] {
            assert_eq!(digits(wrong), None, "{wrong}");
        }
        assert!(begins("0197f3a2-1c5b-7def-8a90-123456789abc", "0197f3a21c"));
        assert!(!begins("0197f3a2-1c5b-7def-8a90-123456789abc", "97f3a21c"));
        assert!(is_prefix("apr_5d41", "apr_") && !is_prefix("apr_5d4", "apr_") && !is_prefix("5d41", "apr_"));
    }
}

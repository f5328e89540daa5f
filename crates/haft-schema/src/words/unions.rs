//! Words for `anyOf` and `oneOf`: what all alternatives ask for where that is short, else what the closest one asks.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::hints::near_option;
use super::show::{count, got, list, listed, quoted, shown, unescape};
use super::{Mismatch, Words};

/// Unions inside unions that are followed for a message.
const MAX_NESTED: usize = 3;
/// Alternatives that are listed where each is short.
const MAX_LISTED: usize = 8;

type Branch = Vec<ValidationError<'static>>;

impl Words<'_> {
    /// No alternative of a union matches.
    pub(super) fn no_alternative(
        &self,
        error: &ValidationError<'_>,
        branches: &[Branch],
        value: &Value,
    ) -> Mismatch {
        let here = error.instance_path().as_str();
        if let Some(expected) = self.short_alternatives(here, branches) {
            return Mismatch::new(expected, got(value));
        }
        if let Some(said) = self.wrong_tag(here, branches) {
            return said;
        }
        let all = count(branches.len() as u64, "alternative");
        let expected = format!("one of the {all} of `{}`", error.kind().keyword());
        let said = Mismatch::new(expected, got(value));
        let none = format!("matches none of the {all} of `{}`", error.kind().keyword());
        let closest = branches.iter().enumerate().min_by_key(|(_, branch)| farness(here, branch));
        let Some((index, branch)) = closest.filter(|_| self.nested < MAX_NESTED) else {
            return said.message(none);
        };
        let Some(first) = branch.iter().min_by_key(|problem| problem.instance_path().as_str().len()) else {
            return said.message(none);
        };
        let problem = Words { nested: self.nested + 1, ..*self }.describe(first);
        let place = match problem.pointer.strip_prefix(here) {
            Some("") | None => String::new(),
            Some(_) => format!("{}: ", problem.pointer),
        };
        let more = match branch.len() {
            1 => String::new(),
            several => format!(" (and {} more)", several - 1),
        };
        let message =
            format!("{none}; the closest is number {}: {place}{}{more}", index + 1, problem.message);
        said.message(message).hint(problem.hint)
    }

    /// Where a member tells the alternatives apart, and has none of their values: which it may have.
    fn wrong_tag(&self, here: &str, branches: &[Branch]) -> Option<Mismatch> {
        let (first, others) = branches.split_first().filter(|(_, others)| !others.is_empty())?;
        let tag = first.iter().filter(|error| is_tag(here, error)).find(|tag| {
            let same = |error: &ValidationError<'_>| {
                is_tag(here, error) && error.instance_path() == tag.instance_path()
            };
            others.iter().all(|branch| branch.iter().any(same))
        })?;
        let pointer = tag.instance_path();
        let mut options: Vec<Value> = Vec::new();
        for error in branches.iter().flatten().filter(|error| error.instance_path() == pointer) {
            match error.kind() {
                Kind::Constant { expected_value } => options.push(Value::clone(expected_value)),
                Kind::Enum { options: several } => {
                    options.extend(several.as_array().into_iter().flatten().cloned())
                }
                _ => {}
            }
        }
        let value = self.value(tag);
        let expected = format!("one of {}", listed(options.iter(), shown));
        let name = unescape(pointer.as_str().rsplit('/').next().unwrap_or_default());
        let message = format!("expected {} to be {expected}, got {}", quoted(&name), shown(value));
        Some(Mismatch::new(expected, shown(value)).message(message).hint(near_option(&options, value)))
    }

    /// What each alternative asks of the value itself, if each asks for just a type or for certain values.
    fn short_alternatives(&self, here: &str, branches: &[Branch]) -> Option<String> {
        let mut asked: Vec<String> = Vec::new();
        for branch in branches {
            let own = |error: &&ValidationError<'_>| {
                error.instance_path().as_str() == here
                    && matches!(error.kind(), Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. })
            };
            let expected = self.say(branch.iter().find(own)?).expected;
            if !asked.contains(&expected) {
                asked.push(expected);
            }
        }
        (!asked.is_empty() && asked.len() <= MAX_LISTED).then(|| list(asked.into_iter(), "or"))
    }
}

/// How far a value is from an alternative: another type is farthest, then another tag, then the number of problems.
fn farness(here: &str, branch: &Branch) -> (bool, bool, usize) {
    let own = |error: &&ValidationError<'_>| error.instance_path().as_str() == here;
    let wrong_type = branch.iter().filter(own).any(|error| matches!(error.kind(), Kind::Type { .. }));
    let wrong_tag = branch.iter().any(|error| own(&error) && is_choice(error) || is_tag(here, error));
    (wrong_type, wrong_tag, branch.len())
}

fn is_choice(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
}

/// Whether a member of the value has not the value, or one of those, that it must have.
fn is_tag(here: &str, error: &ValidationError<'_>) -> bool {
    let below = error.instance_path().as_str().get(here.len()..).unwrap_or_default();
    below.matches('/').count() == 1 && is_choice(error)
}

/// More than one alternative of `oneOf` matches.
pub(super) fn several_alternatives(branches: &[Branch], value: &Value) -> Mismatch {
    let matching = branches.iter().enumerate().filter(|(_, branch)| branch.is_empty());
    let numbers: Vec<String> = matching.map(|(index, _)| (index + 1).to_string()).collect();
    let all = count(branches.len() as u64, "alternative");
    let which = match numbers.len() {
        0 => "more than one".to_owned(),
        several => {
            format!("{several} of the {all} of `oneOf` (numbers {})", list(numbers.into_iter(), "and"))
        }
    };
    let message = format!("matches {which}, but has to match exactly one");
    Mismatch::new(format!("exactly one of the {all} of `oneOf`"), got(value)).message(message)
}

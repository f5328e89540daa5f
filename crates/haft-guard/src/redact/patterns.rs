//! Shapes of secrets that an operator adds.

use super::scan::{LONGEST, Machine};
use aho_corasick::{AhoCorasick, MatchKind};
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use std::sync::Arc;

/// Expressions for secrets that nobody else has, each with the name that is put in its place.
///
/// An expression is tried only where one of its beginnings stands, so that a long text costs one pass. So it must begin
/// with at least three fixed letters: `acme_[a-z0-9]{32}`, not `[a-z0-9]{32}`.
///
/// ```
/// use haft_core::port::Redactor;
/// use haft_guard::{KnownSecrets, SecretPatterns, Secrets};
/// let patterns = SecretPatterns::new(["acme-token: acme_[a-z0-9]{8}"])?;
/// let secrets = Secrets::results(KnownSecrets::default()).with_patterns(patterns);
/// assert_eq!(&*secrets.redact(b"use acme_a1b2c3d4!"), b"use [redacted:acme-token]!");
/// assert!(SecretPatterns::new(["all: .*"]).is_err());
/// # Ok::<(), haft_guard::PatternProblem>(())
/// ```
#[derive(Clone, Default)]
pub struct SecretPatterns(Option<Arc<Patterns>>);

struct Patterns {
    /// The name and the automaton of each.
    machines: Vec<(String, Machine)>,
    /// Beginnings, in lower case, and whose they are.
    beginnings: Vec<(Vec<u8>, usize)>,
    finder: AhoCorasick,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` cannot be used: {why}")]
pub struct PatternProblem {
    /// The pattern, as it was given.
    pub pattern: String,
    /// Why the expression cannot be used.
    pub why: String,
}

/// The most that are taken: every one may cost some memory and time.
const MOST: usize = 100;
/// The most memory that one takes.
const LARGEST: usize = 256 << 10;
/// The fewest letters that a beginning has.
const SHORTEST: usize = 3;

impl SecretPatterns {
    /// Whether another one is a copy of these.
    pub(super) fn is_same(&self, other: &SecretPatterns) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Patterns, each as `name: expression`.
    pub fn new<T: AsRef<str>>(patterns: impl IntoIterator<Item = T>) -> Result<Self, PatternProblem> {
        let (mut machines, mut beginnings) = (Vec::new(), Vec::new());
        for text in patterns {
            let text = text.as_ref();
            let problem = |why: &str| PatternProblem { pattern: text.to_owned(), why: why.to_owned() };
            if machines.len() == MOST {
                return Err(problem("there are more than 100"));
            }
            let (name, expression) = text
                .split_once(':')
                .map(|(name, expression)| (name.trim(), expression.trim()))
                .ok_or_else(|| problem("write `name: expression`"))?;
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
                return Err(problem("its name is up to 64 letters, digits, `-`, `_` and `.`"));
            }
            let literals = literals(expression).map_err(|why| problem(&why))?;
            let machine = Machine::within(expression, LARGEST).ok_or_else(|| problem("it is too large"))?;
            beginnings.extend(literals.into_iter().map(|literal| (literal, machines.len())));
            machines.push((name.to_owned(), machine));
        }
        if machines.is_empty() {
            return Ok(SecretPatterns(None));
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(beginnings.iter().map(|(literal, _)| literal))
            .map_err(|error| PatternProblem {
                pattern: "redaction.patterns".into(),
                why: error.to_string(),
            })?;
        Ok(SecretPatterns(Some(Arc::new(Patterns { machines, beginnings, finder }))))
    }

    /// Where they are, and from where on more bytes could matter.
    pub(super) fn scan<'a>(&'a self, bytes: &[u8]) -> (Vec<(usize, usize, &'a str)>, usize) {
        let Some(patterns) = &self.0 else { return (Vec::new(), bytes.len()) };
        let (mut spans, mut open) = (Vec::new(), bytes.len());
        for hit in patterns.finder.find_overlapping_iter(bytes) {
            let (_, owner) = patterns.beginnings[hit.pattern().as_usize()];
            let (name, machine) = &patterns.machines[owner];
            let start = hit.start();
            let mut best = None;
            let is_open = machine.run(bytes, start, LONGEST, |end| best = Some(end));
            if let Some(end) = best.filter(|end| *end > start) {
                spans.push((start, end, name.as_str()));
            }
            if is_open {
                open = open.min(start);
            }
        }
        (spans, open.min(patterns.begun(bytes)))
    }
}

impl Patterns {
    /// Where a beginning begins that the bytes end in the middle of.
    fn begun(&self, bytes: &[u8]) -> usize {
        let longest = |(literal, _): &(Vec<u8>, usize)| {
            (1..literal.len())
                .rev()
                .find(|&length| {
                    let tail = bytes.len().checked_sub(length).map(|at| &bytes[at..]);
                    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(&literal[..length]))
                })
                .unwrap_or(0)
        };
        bytes.len() - self.beginnings.iter().map(longest).max().unwrap_or(0)
    }
}

/// Letters that every match begins with, in lower case.
fn literals(expression: &str) -> Result<Vec<Vec<u8>>, String> {
    let parsed = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(expression)
        .map_err(|error| error.to_string())?;
    let mut extractor = Extractor::new();
    extractor.kind(ExtractKind::Prefix).limit_total(512);
    let found = extractor.extract(&parsed);
    let short = || format!("it must begin with at least {SHORTEST} fixed letters");
    let mut literals: Vec<Vec<u8>> = found
        .literals()
        .ok_or_else(short)?
        .iter()
        .map(|literal| literal.as_bytes().to_ascii_lowercase())
        .collect();
    literals.sort_unstable();
    literals.dedup();
    match literals.is_empty() || literals.iter().any(|literal| literal.len() < SHORTEST) {
        true => Err(short()),
        false => Ok(literals),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KnownSecrets, Secrets};
    use haft_core::port::Redactor;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_used_is_refused() {
        let cases = [
            ("no name", "write `name: expression`"),
            (": abc", "its name is"),
            ("a b: abcd", "its name is"),
            ("x: [a-z]{32}", "must begin with"),
            ("x: ab[a-z]", "must begin with"),
            ("x: (?:abc|d)x", "must begin with"),
            ("x: .*", "must begin with"),
            ("x: ", "must begin with"),
            ("x: abc(", "unclosed group"),
            ("x: abc[a-z]{1,9999}[0-9]{1,9999}x{1,9999}", "too large"),
        ];
        for (pattern, why) in cases {
            let problem = SecretPatterns::new([pattern]).err().map(|problem| problem.to_string());
            assert!(problem.as_ref().is_some_and(|problem| problem.contains(why)), "{pattern}: {problem:?}");
        }
        assert!(SecretPatterns::new(["x: (?i)acme-[0-9]{3}", "y: (?:abc|dbc)[0-9]+"]).is_ok());
    }

    proptest! {
        #[test]
        fn piece_by_piece_is_the_same_as_the_whole(text in "(?:ac|me|acme_|[0-9a ]|ghp_){0,30}", cuts in prop::collection::vec(1_usize..9, 1..20)) {
            let patterns = SecretPatterns::new(["acme: acme_[0-9a]{3,6}", "me: meac[0-9]+"]).unwrap();
            let secrets = Secrets::results(KnownSecrets::default()).with_patterns(patterns);
            let (mut out, mut held, mut rest) = (Vec::new(), Vec::new(), text.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                rest = after;
                held.extend_from_slice(piece);
                let (free, shown) = secrets.let_go(&held);
                out.extend_from_slice(&shown);
                held.drain(..free);
            }
            out.extend_from_slice(&secrets.redact(&held));
            prop_assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(secrets.redact(text.as_bytes()).into_owned()).unwrap());
        }
    }
}

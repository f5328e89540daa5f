//! Redaction: secrets that are known by value, by look, by name, or by how random they are.
//!
//! There are two strengths. [`Secrets::full`] is for what people and files keep: summaries, events, logs, records,
//! stored input and output. [`Secrets::results`] is for what a model gets back: only what has a look of its own,
//! because names and randomness would also take out hashes, images and code.

mod encoded;
mod entropy;
mod framed;
mod known;
mod literals;
mod own;
mod patterns;
mod scan;
mod shape;
mod table;

pub use known::KnownSecrets;
pub use patterns::{PatternProblem, SecretPatterns};

use haft_core::port::Redactor;
use scan::{Scanner, Span, cut};
use std::borrow::Cow;

/// Finds secrets and puts `[redacted:…]` in their place.
///
/// The shapes are compiled when they are first needed, once for a process.
///
/// ```
/// use haft_core::port::Redactor;
/// use haft_guard::{KnownSecrets, Secrets};
/// let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
/// let secrets = Secrets::full(KnownSecrets::default());
/// assert_eq!(&*secrets.redact(format!("use {token}!").as_bytes()), b"use [redacted:github-token]!");
/// assert_eq!(&*secrets.redact(br#"{"password": "hunter2"}"#), br#"{"password": "[redacted:named]"}"#);
/// assert!(secrets.hides_member("dbPassword"));
///
/// let results = Secrets::results(KnownSecrets::default());
/// assert_eq!(&*results.redact(br#"{"password": "hunter2"}"#), br#"{"password": "hunter2"}"#);
/// assert_eq!(results.decided(b"see ghp_a1B2"), 4, "more of it may come");
/// ```
pub struct Secrets {
    known: KnownSecrets,
    patterns: SecretPatterns,
    is_full: bool,
}

impl Secrets {
    /// For what is kept: by value, look, name and randomness.
    pub fn full(known: KnownSecrets) -> Self {
        Secrets { known, patterns: SecretPatterns::default(), is_full: true }
    }

    /// For results: by value, and by a look of their own.
    pub fn results(known: KnownSecrets) -> Self {
        Secrets { known, patterns: SecretPatterns::default(), is_full: false }
    }

    /// These secrets, with shapes of an operator's own as well.
    #[must_use]
    pub fn with_patterns(mut self, patterns: SecretPatterns) -> Self {
        self.patterns = patterns;
        self
    }

    /// Made with the first bytes that are looked at: most programs that start look at few, or at none.
    fn scanner(&self) -> &'static Scanner {
        if self.is_full { Scanner::full() } else { Scanner::results() }
    }

    /// The rules that it goes by, by the names that the collection of rules has for them.
    pub fn rules(&self) -> Vec<&'static str> {
        let mut ids: Vec<&'static str> = self.scanner().ids().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Compiles everything now instead of when it is first needed. Gives the rules that could not be: none.
    pub fn warm_up(&self) -> Vec<&'static str> {
        self.scanner().build_all()
    }
}

impl Secrets {
    /// The bytes without these secrets, which may overlap.
    fn without<'a>(bytes: &'a [u8], mut spans: Vec<(usize, usize, &str)>) -> Cow<'a, [u8]> {
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        spans.sort_by_key(|&(start, end, _)| (start, std::cmp::Reverse(end)));
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for (start, end, kind) in spans {
            if start >= done {
                out.extend_from_slice(&bytes[done..start]);
                out.extend_from_slice(format!("[redacted:{kind}]").as_bytes());
            }
            // Where two overlap, both are gone under the mark of the first.
            done = done.max(end);
        }
        out.extend_from_slice(&bytes[done..]);
        Cow::Owned(out)
    }
}

impl Redactor for Secrets {
    fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let spans = self.scanner().scan(bytes).spans;
        let shaped = spans.into_iter().map(|span| (span.start, span.end, span.kind));
        let own = self.patterns.scan(bytes).0;
        Secrets::without(bytes, shaped.chain(self.known.spans(bytes)).chain(own).collect())
    }

    fn decided(&self, bytes: &[u8]) -> usize {
        self.let_go(bytes).0
    }

    /// Both answers from one look at the bytes.
    fn let_go<'a>(&self, bytes: &'a [u8]) -> (usize, Cow<'a, [u8]>) {
        let scan::Scan { mut spans, open } = self.scanner().scan(bytes);
        let mut known = self.known.spans(bytes);
        let (own, own_open) = self.patterns.scan(bytes);
        let open = open.min(self.known.decided_but(bytes, &known)).min(own_open);
        known.extend(own);
        let places = known.iter().map(|&(start, end, _)| Span { from: start, start, end, kind: "" });
        spans.extend(places);
        let cut = cut(bytes, open, &mut spans);
        let shaped =
            spans.iter().filter(|span| !span.kind.is_empty()).map(|span| (span.start, span.end, span.kind));
        let gone = shaped.chain(known).filter(|&(_, end, _)| end <= cut).collect();
        (cut, Secrets::without(&bytes[..cut], gone))
    }

    fn hides_member(&self, name: &str) -> bool {
        if !self.is_full {
            return false;
        }
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        framed::MEMBERS.iter().any(|member| plain.ends_with(member))
    }

    /// The full strength has every shape of the other one, and looks in the same way.
    fn finds_all_of(&self, other: &dyn Redactor) -> bool {
        let other = other.as_any().and_then(|other| other.downcast_ref::<Secrets>());
        other.is_some_and(|other| {
            (self.is_full || !other.is_full)
                && self.known.has_all_of(&other.known)
                && self.patterns.is_same(&other.patterns)
        })
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

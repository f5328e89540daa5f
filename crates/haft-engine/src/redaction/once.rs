//! Looking at a long text once, however often it stands in a result: as text, in its value, in what is kept of both.

use super::{Redaction, RedactionLevels};
use haft_core::port::Redactor;
use haft_sdk::ToolOutput;
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

/// Shorter texts are looked at again: that costs less than remembering them.
const SHORTEST: usize = 4096;
/// How many texts are remembered for a call.
const MOST: usize = 4;

/// The two levels of redaction, lent.
#[derive(Clone, Copy)]
pub(crate) struct Levels<'a> {
    /// For what the caller gets.
    pub(crate) results: &'a Redaction,
    /// For what is kept.
    pub(crate) kept: &'a Redaction,
}

/// The two levels of redaction for one result. Both remember what became of its long texts.
pub(crate) struct Once {
    /// For what the caller gets.
    pub(crate) results: Redaction,
    /// For what is kept.
    pub(crate) kept: Redaction,
}

impl Once {
    /// Whether an output has a text that is worth it.
    pub(crate) fn is_worth_it(output: &ToolOutput) -> bool {
        let is_long = |value: &Value| value.as_str().is_some_and(|text| text.len() >= SHORTEST);
        let members = output.structured.as_ref().and_then(Value::as_object);
        output.text.as_ref().is_some_and(|text| text.len() >= SHORTEST)
            || members.is_some_and(|members| members.values().any(is_long))
    }

    pub(crate) fn levels(&self) -> Levels<'_> {
        Levels { results: &self.results, kept: &self.kept }
    }

    /// `kept` says whether what is kept of this result is held to more than the result itself.
    pub(crate) fn new(kept: &Redaction, levels: &RedactionLevels, is_kept: bool) -> Self {
        let (Some(strict), true) = (&kept.0, is_kept && !levels.is_one) else {
            return Once { results: levels.results.clone(), kept: kept.clone() };
        };
        let seen = Arc::new(Seen {
            strict: Arc::clone(strict),
            results: levels.results.0.clone(),
            is_strict_enough: levels.results.0.as_ref().is_none_or(|results| strict.finds_all_of(&**results)),
            texts: Mutex::default(),
        });
        let view = |is_strict| -> Redaction {
            Redaction(Some(Arc::new(View { seen: Arc::clone(&seen), is_strict })))
        };
        Once {
            results: if levels.results.0.is_some() { view(false) } else { Redaction::default() },
            kept: view(true),
        }
    }
}

/// A text, and what it is without secrets: `None` where that is the same.
struct Text {
    raw: Vec<u8>,
    kept: Outcome,
    results: Outcome,
}

#[derive(Clone)]
enum Outcome {
    Unknown,
    Same,
    Other(Vec<u8>),
}

impl Outcome {
    #[allow(clippy::ptr_arg, reason = "whether it is borrowed is what is asked")]
    fn of(redacted: &Cow<'_, [u8]>) -> Self {
        match redacted {
            Cow::Borrowed(_) => Outcome::Same,
            Cow::Owned(other) => Outcome::Other(other.clone()),
        }
    }
}

struct Seen {
    strict: Arc<dyn Redactor>,
    results: Option<Arc<dyn Redactor>>,
    /// A text in which the strict one finds nothing holds nothing for the other one either.
    is_strict_enough: bool,
    texts: Mutex<Vec<Text>>,
}

impl Seen {
    fn outcome(&self, bytes: &[u8], is_strict: bool) -> Outcome {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = texts.iter().find(|text| text.raw == bytes);
        known.map_or(Outcome::Unknown, |text| if is_strict { &text.kept } else { &text.results }.clone())
    }

    fn remember(&self, bytes: &[u8], kept: Outcome, results: Outcome) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|text| text.raw != bytes);
        if texts.len() == MOST {
            texts.remove(0);
        }
        texts.push(Text { raw: bytes.to_vec(), kept, results });
    }

    fn look<'a>(&self, bytes: &'a [u8], is_strict: bool) -> Cow<'a, [u8]> {
        let other = |results: &Arc<dyn Redactor>| results.redact(bytes);
        if is_strict {
            let kept = self.strict.redact(bytes);
            let results = match &kept {
                Cow::Borrowed(_) if self.is_strict_enough => Outcome::Same,
                _ => Outcome::Unknown,
            };
            self.remember(bytes, Outcome::of(&kept), results);
            return kept;
        }
        let Some(results) = &self.results else { return Cow::Borrowed(bytes) };
        if !self.is_strict_enough {
            let found = other(results);
            self.remember(bytes, Outcome::Unknown, Outcome::of(&found));
            return found;
        }
        // What is kept is looked at anyway, and mostly there is nothing to find.
        let kept = self.strict.redact(bytes);
        let found = match &kept {
            Cow::Borrowed(_) => Cow::Borrowed(bytes),
            Cow::Owned(_) => other(results),
        };
        self.remember(bytes, Outcome::of(&kept), Outcome::of(&found));
        found
    }
}

/// One level of it.
struct View {
    seen: Arc<Seen>,
    is_strict: bool,
}

impl View {
    fn inner(&self) -> &dyn Redactor {
        match &self.seen.results {
            Some(results) if !self.is_strict => &**results,
            _ => &*self.seen.strict,
        }
    }
}

impl Redactor for View {
    fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if bytes.len() < SHORTEST {
            return self.inner().redact(bytes);
        }
        match self.seen.outcome(bytes, self.is_strict) {
            Outcome::Same => Cow::Borrowed(bytes),
            Outcome::Other(other) => Cow::Owned(other),
            Outcome::Unknown => self.seen.look(bytes, self.is_strict),
        }
    }

    fn decided(&self, bytes: &[u8]) -> usize {
        self.inner().decided(bytes)
    }

    fn let_go<'a>(&self, bytes: &'a [u8]) -> (usize, Cow<'a, [u8]>) {
        self.inner().let_go(bytes)
    }

    fn hides_member(&self, name: &str) -> bool {
        self.inner().hides_member(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Takes out a word, and counts how often it looks.
    struct Counting {
        words: &'static [&'static str],
        looks: Arc<AtomicUsize>,
        finds_all: bool,
    }

    impl Redactor for Counting {
        fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            let text = String::from_utf8_lossy(bytes).into_owned();
            let gone = self.words.iter().fold(text.clone(), |text, word| text.replace(word, "-"));
            if gone == text { Cow::Borrowed(bytes) } else { Cow::Owned(gone.into_bytes()) }
        }

        fn decided(&self, bytes: &[u8]) -> usize {
            bytes.len()
        }

        fn hides_member(&self, name: &str) -> bool {
            name == "password" && self.words.len() > 1
        }

        fn finds_all_of(&self, _other: &dyn Redactor) -> bool {
            self.finds_all
        }
    }

    fn once(finds_all: bool) -> (Once, Arc<AtomicUsize>) {
        let looks = Arc::new(AtomicUsize::new(0));
        let redactor = |words| -> Arc<dyn Redactor> {
            Arc::new(Counting { words, looks: Arc::clone(&looks), finds_all })
        };
        let strict = redactor(&["token", "random"]);
        let levels = RedactionLevels::new(Some(&strict), Some(redactor(&["token"])), false);
        (Once::new(&Redaction(Some(strict)), &levels, true), looks)
    }

    #[test]
    fn a_long_text_is_looked_at_once_wherever_it_stands() {
        for (word, looks_needed, result, kept) in [
            ("plain", 1, "plain", "plain"),
            // What only the strict one takes out: both look.
            ("random", 2, "random", "-"),
            // What the result does not have either is another text by then.
            ("token", 3, "-", "-"),
        ] {
            let (once, looks) = once(true);
            let long = |word: &str| format!("{word}{}", " x".repeat(4000));
            let mut value = serde_json::json!({"content": long(word), "password": "p", "short": "s"});
            looks.store(0, Ordering::Relaxed);
            let text = once.results.string(long(word));
            if let Some(content) = value.get_mut("content") {
                once.results.value(content);
                assert_eq!(*content, long(result));
                once.kept.value(content);
                assert_eq!(*content, long(kept), "{word}");
            }
            assert_eq!((text.as_str(), once.kept.string(text.clone())), (long(result).as_str(), long(kept)));
            assert_eq!(looks.load(Ordering::Relaxed), looks_needed, "{word}");
            once.kept.value(&mut value);
            assert_eq!(value["password"], "[redacted:named]");
        }
    }

    #[test]
    fn a_strict_one_that_may_miss_something_replaces_no_look() {
        let (once, looks) = once(false);
        let text = "plain".repeat(2000);
        looks.store(0, Ordering::Relaxed);
        assert_eq!(once.results.string(text.clone()), text);
        assert_eq!(once.kept.string(text.clone()), text);
        assert_eq!(looks.load(Ordering::Relaxed), 2);
        assert_eq!(once.results.string("token".repeat(2000)), "-".repeat(2000));
    }
}

//! Secrets that are known by value.

use aho_corasick::{AhoCorasick, MatchKind};
use haft_core::port::Redactor;
use std::borrow::Cow;

/// Replaces secrets whose values are known, such as those of filtered environment variables.
///
/// ```
/// use haft_core::port::Redactor;
/// let secrets = haft_guard::KnownSecrets::new([("API_TOKEN", "hunter2-hunter2")]);
/// assert_eq!(&*secrets.redact(b"token=hunter2-hunter2;"), b"token=[redacted:API_TOKEN];");
/// assert_eq!(secrets.decided(b"token=hunter2-h"), "token=".len());
/// ```
#[derive(Clone, Debug, Default)]
pub struct KnownSecrets {
    /// Longest first, so that a secret which contains another is marked as a whole.
    secrets: Vec<(String, Vec<u8>)>,
    /// Finds all of them in one pass. Absent where there are none.
    finder: Option<AhoCorasick>,
}

/// Shorter values would match ordinary text and damage it.
const SHORTEST: usize = 8;

impl KnownSecrets {
    /// Those secrets, each with the name that is put in its place. Values of fewer than 8 bytes are left out.
    pub fn new<N: Into<String>, V: Into<Vec<u8>>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut secrets: Vec<(String, Vec<u8>)> = secrets
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .filter(|(_, value)| value.len() >= SHORTEST)
            .collect();
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let values = secrets.iter().map(|(_, value)| value);
        let finder = match secrets.is_empty() {
            true => None,
            false => AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values).ok(),
        };
        KnownSecrets { secrets, finder }
    }

    /// Whether every secret of another one is among these.
    pub(super) fn has_all_of(&self, other: &KnownSecrets) -> bool {
        other.secrets.iter().all(|(_, value)| self.secrets.iter().any(|(_, known)| known == value))
    }

    fn at<'a>(&'a self, bytes: &[u8]) -> Option<(&'a str, usize)> {
        let found = self.secrets.iter().find(|(_, value)| bytes.starts_with(value))?;
        Some((&found.0, found.1.len()))
    }

    /// Where they are, from left to right.
    pub(super) fn spans<'a>(&'a self, bytes: &[u8]) -> Vec<(usize, usize, &'a str)> {
        if let Some(finder) = &self.finder {
            let named = |index: usize| self.secrets.get(index).map_or("secret", |(name, _)| name);
            return finder
                .find_iter(bytes)
                .map(|hit| (hit.start(), hit.end(), named(hit.pattern().as_usize())))
                .collect();
        }
        // Only without secrets, or with so many that no automaton could be built.
        let mut spans = Vec::new();
        let mut place = 0;
        while !self.secrets.is_empty() && place < bytes.len() {
            match self.at(&bytes[place..]) {
                Some((name, length)) => {
                    spans.push((place, place + length, name));
                    place += length;
                }
                None => place += 1,
            }
        }
        spans
    }
}

impl Redactor for KnownSecrets {
    fn hides_member(&self, _name: &str) -> bool {
        false
    }

    fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let spans = self.spans(bytes);
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for (start, end, name) in spans {
            out.extend_from_slice(&bytes[done..start]);
            out.extend_from_slice(format!("[redacted:{name}]").as_bytes());
            done = end;
        }
        out.extend_from_slice(&bytes[done..]);
        Cow::Owned(out)
    }

    fn decided(&self, bytes: &[u8]) -> usize {
        self.decided_but(bytes, &self.spans(bytes))
    }
}

impl KnownSecrets {
    /// How many bytes are settled, where it is known already what is in them.
    pub(super) fn decided_but(&self, bytes: &[u8], spans: &[(usize, usize, &str)]) -> usize {
        let longest = self.secrets.first().map_or(0, |(_, value)| value.len());
        // What begins before cannot go on beyond the last byte.
        let mut place = bytes.len().saturating_sub(longest.saturating_sub(1));
        if let Some((_, end, _)) = spans.iter().find(|(start, end, _)| *start < place && place < *end) {
            place = *end;
        }
        while place < bytes.len() {
            let rest = &bytes[place..];
            let may_go_on = rest.len() < longest
                && self.secrets.iter().any(|(_, value)| value.len() > rest.len() && value.starts_with(rest));
            if may_go_on {
                break;
            }
            place += self.at(rest).map_or(1, |(_, length)| length);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_that_overlaps_its_own_beginning_is_not_cut() {
        let secrets = KnownSecrets::new([("S", "abcdabcdab")]);
        assert_eq!(secrets.decided(b"xabcdabcdab"), 11, "whole, although its end is also its beginning");
        assert_eq!(secrets.decided(b"xabcdabcda"), 1);
    }

    proptest! {
        #[test]
        fn piece_by_piece_is_the_same_as_the_whole(text in "[ab]{0,60}", cuts in prop::collection::vec(1_usize..9, 1..20)) {
            let secrets = KnownSecrets::new([("A", "abababab"), ("B", "aabbaabbab"), ("C", "bbbbbbbbb")]);
            let mut out = Vec::new();
            let mut held = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                rest = after;
                held.extend_from_slice(piece);
                let free = secrets.decided(&held);
                out.extend_from_slice(&secrets.redact(&held[..free]));
                held.drain(..free);
            }
            out.extend_from_slice(&secrets.redact(&held));
            prop_assert_eq!(out, secrets.redact(text.as_bytes()).into_owned());
        }
    }
}

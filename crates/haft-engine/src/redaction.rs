//! Taking secrets out of everything that leaves.

mod once;

pub(crate) use once::{Levels, Once};

use haft_core::{
    Arguments, ContentPart, GrantOffer, Problem, SideEffect, ToolError, ToolResult, json, port::Redactor,
    text,
};
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};

/// Takes secrets out, where there are any to know.
#[derive(Clone, Default)]
pub(crate) struct Redaction(pub(crate) Option<Arc<dyn Redactor>>);

impl Redaction {
    /// Bytes without secrets.
    pub(crate) fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.0.as_ref().map_or(Cow::Borrowed(bytes), |redactor| redactor.redact(bytes))
    }

    /// A text without secrets, otherwise as it is.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.document(text) {
            Some(document) => Cow::Owned(self.plain(&document).into_owned()),
            None => self.plain(text),
        }
    }

    /// A text by what stands in it, whatever it means.
    pub(crate) fn plain<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// A JSON document whose strings hold secrets once they are decoded: `key\t= …` is `key\\t= …` in it, which looks
    /// like something else. `None` where there is nothing of the kind.
    fn document(&self, text: &str) -> Option<String> {
        if self.0.is_none() || !text.contains('\\') || !text.trim_start().starts_with(['{', '[', '"']) {
            return None;
        }
        let before = json::parse(text).ok()?;
        let mut after = before.clone();
        self.value(&mut after);
        (after != before).then(|| after.to_string())
    }

    /// An owned text without secrets: untouched where there is nothing to take out.
    pub(crate) fn string(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// A text for a model: without secrets, escape sequences and control characters. Secrets are looked for before
    /// and after the escapes are gone, because an escape may stand in the middle of one.
    pub(crate) fn model_string(&self, text: String) -> String {
        let text = self.string(text);
        match text::model_str(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(shown) => self.string(shown),
        }
    }

    /// Arguments to show. What a tool gets is what was sent. Every string is looked at by itself: what begins in one
    /// member and ends in another is no secret, and would hide what stands between.
    pub(crate) fn arguments(&self, arguments: &Arguments) -> Arguments {
        if self.0.is_none() {
            return arguments.clone();
        }
        let text = arguments.as_str();
        if let Ok(before) = json::parse(text) {
            let mut after = before.clone();
            self.value(&mut after);
            self.members(&mut after);
            return if after == before { arguments.clone() } else { Arguments::from_text(after.to_string()) };
        }
        let shown = self.text(text);
        if text.contains('\\') {
            // No document, so nobody knows what its escapes mean. A reader may decode them all the same.
            let decoded = unescaped(text);
            let redacted = self.plain(&decoded);
            if redacted != decoded && redacted != unescaped(&shown) {
                return Arguments::from_text(redacted);
            }
        }
        match shown {
            Cow::Borrowed(_) => arguments.clone(),
            Cow::Owned(redacted) => Arguments::from_text(redacted),
        }
    }

    /// Secrets that only the name of their member gives away.
    fn members(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.members(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    match member {
                        Value::String(text) => {
                            if let Some(redacted) = self.member(name, text) {
                                *text = redacted;
                            }
                        }
                        other => self.members(other),
                    }
                }
            }
            Value::String(_) | Value::Number(_) | Value::Null | Value::Bool(_) => {}
        }
    }

    /// The text of a member without secrets that are seen beside its name. `None` where there are none.
    pub(crate) fn member(&self, name: &str, text: &str) -> Option<String> {
        let pair = Value::Object(Map::from_iter([(name.to_owned(), Value::from(text))])).to_string();
        let Cow::Owned(redacted) = self.plain(&pair) else { return None };
        match json::parse(&redacted).ok()?.as_object_mut()?.remove(name)? {
            Value::String(redacted) => (redacted != text).then_some(redacted),
            _ => None,
        }
    }

    /// What a call would do, in words that often hold its arguments as they came. For a person, who is shown its
    /// control characters: they stay. Where a secret is to be seen only without them, they go, and the secret with
    /// them.
    pub(crate) fn summary(&self, said: String, arguments: &Arguments) -> String {
        let said = match self.arguments(arguments) {
            shown if shown == *arguments => said,
            shown => said.replace(arguments.as_str(), shown.as_str()),
        };
        self.for_people(said).unwrap_or_else(|said| self.model_string(said))
    }

    /// A text without secrets, otherwise as it is; the text itself, as an error, where a secret is to be seen only once
    /// its control characters are gone.
    pub(crate) fn for_people(&self, text: String) -> Result<String, String> {
        let shown = self.string(text);
        let hidden = match text::model_str(&shown) {
            Cow::Borrowed(_) => false,
            Cow::Owned(plain) => matches!(self.text(&plain), Cow::Owned(_)),
        };
        if hidden { Err(shown) } else { Ok(shown) }
    }

    /// Whether an offer holds a secret. It cannot be taken out: the offer would be another one.
    pub(crate) fn hides_offer(&self, offer: &GrantOffer) -> bool {
        let GrantOffer { covers, words } = offer;
        let mut shown = covers.clone();
        self.value(&mut shown);
        shown != *covers || matches!(self.text(words), Cow::Owned(_))
    }

    /// A value without secrets: in strings, names of members, and numbers.
    pub(crate) fn value(&self, value: &mut Value) {
        if self.0.is_none() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Number(number) => {
                if let Cow::Owned(redacted) = self.text(&number.to_string()) {
                    *value = Value::String(redacted);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                let names = members.keys().any(|name| matches!(self.text(name), Cow::Owned(_)));
                if names {
                    let renamed = std::mem::take(members).into_iter();
                    *members =
                        renamed.map(|(name, member)| (self.string(name), member)).collect::<Map<_, _>>();
                }
                for (name, member) in members {
                    match self.hides(name) && !member.is_null() {
                        true => *member = Value::String("[redacted:named]".to_owned()),
                        false => self.value(member),
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    pub(crate) fn hides(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|redactor| redactor.hides_member(name))
    }

    pub(crate) fn part(&self, part: &mut ContentPart) {
        match part {
            ContentPart::Text { text } => *text = self.model_string(std::mem::take(text)),
            ContentPart::Image { mime_type, .. } | ContentPart::Audio { mime_type, .. } => {
                *mime_type = self.string(std::mem::take(mime_type));
            }
            ContentPart::Resource { uri, mime_type, text, .. } => {
                *uri = self.string(std::mem::take(uri));
                for field in [mime_type, text].into_iter().flatten() {
                    *field = self.string(std::mem::take(field));
                }
            }
        }
    }

    pub(crate) fn side_effect(&self, effect: &mut SideEffect) {
        effect.resource = self.string(std::mem::take(&mut effect.resource));
        if let Some(description) = &mut effect.description {
            *description = self.string(std::mem::take(description));
        }
        for value in [&mut effect.previous_value, &mut effect.new_value].into_iter().flatten() {
            self.value(value);
        }
    }

    pub(crate) fn error(&self, mut error: ToolError) -> ToolError {
        error.message = self.model_string(error.message);
        error.diagnostics = error.diagnostics.map(|diagnostics| self.string(diagnostics));
        error.problems.iter_mut().for_each(|problem| self.problem(problem));
        if let Some(data) = &mut error.data {
            self.value(data);
        }
        error
    }

    pub(crate) fn problem(&self, problem: &mut Problem) {
        problem.pointer = self.string(std::mem::take(&mut problem.pointer));
        problem.rule = self.string(std::mem::take(&mut problem.rule));
        problem.message = self.model_string(std::mem::take(&mut problem.message));
    }
}

/// A text with the escapes of JSON decoded, as far as they are any.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match escape.as_bytes().get(1) {
            Some(b'u') => 6,
            _ => 2,
        };
        let decoded = escape.get(..length).and_then(|escape| {
            serde_json::from_str::<String>(&format!("\"{escape}\"")).ok().map(|decoded| (decoded, length))
        });
        let (decoded, length) = decoded.unwrap_or_else(|| ("\\".to_owned(), 1));
        out.push_str(&decoded);
        rest = &escape[length..];
    }
    out + rest
}

/// The levels of redaction: what is kept is held to more than what a caller gets back, where names and randomness
/// would also take out hashes, images and code.
#[derive(Clone, Default)]
pub(crate) struct RedactionLevels {
    /// Results, as the caller gets them.
    pub(crate) results: Redaction,
    /// Results as they are stored: redacted also where callers get them as they are.
    pub(crate) stored: Redaction,
    /// Whether results are held to the same as what is kept.
    pub(crate) is_one: bool,
}

impl RedactionLevels {
    /// `kept` is for what people and files keep.
    pub(crate) fn new(
        kept: Option<&Arc<dyn Redactor>>,
        results: Option<Arc<dyn Redactor>>,
        show_results_as_they_are: bool,
    ) -> Self {
        let is_one = results.is_none() && !show_results_as_they_are;
        let stored = Redaction(results.or_else(|| kept.cloned()));
        let results = if show_results_as_they_are { Redaction::default() } else { stored.clone() };
        RedactionLevels { results, stored, is_one }
    }
}

impl Redaction {
    /// A result without secrets.
    pub(crate) fn result(&self, mut result: ToolResult) -> ToolResult {
        if self.0.is_none() {
            return result;
        }
        if let Some(output) = &mut result.output {
            self.value(output);
        }
        result.content.iter_mut().for_each(|part| self.part(part));
        if let Some(error) = &mut result.error {
            error.message = self.string(std::mem::take(&mut error.message));
            error.problems.iter_mut().for_each(|problem| self.problem(problem));
            if let Some(data) = &mut error.data {
                self.value(data);
            }
        }
        result
    }
}

/// A stream of bytes on its way out: what may be the beginning of a secret is held until more has come.
#[derive(Default)]
pub(crate) struct Held(Vec<u8>);

impl Held {
    /// Takes bytes, and gives what can go now.
    pub(crate) fn push<'a>(&mut self, bytes: &'a [u8], redactor: Option<&dyn Redactor>) -> Cow<'a, [u8]> {
        let Some(redactor) = redactor else { return Cow::Borrowed(bytes) };
        self.0.extend_from_slice(bytes);
        let (decided, free) = redactor.let_go(&self.0);
        let free = free.into_owned();
        self.0.drain(..decided.min(self.0.len()));
        Cow::Owned(free)
    }

    /// The stream has ended: what was held cannot become a secret any more than it is one now.
    pub(crate) fn finish(&mut self, redactor: Option<&dyn Redactor>) -> Vec<u8> {
        let held = std::mem::take(&mut self.0);
        redactor.map_or_else(Vec::new, |redactor| redactor.redact(&held).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows one secret: what stands after `key`, a tab and `=`.
    struct AfterTab;

    impl Redactor for AfterTab {
        fn hides_member(&self, _name: &str) -> bool {
            false
        }

        fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            match text.split_once("key\t=") {
                Some((before, after)) => {
                    let end = after.find(['"', '\n', '}']).unwrap_or(after.len());
                    Cow::Owned(format!("{before}key\t=[gone]{}", &after[end..]).into_bytes())
                }
                None => Cow::Borrowed(bytes),
            }
        }

        fn decided(&self, bytes: &[u8]) -> usize {
            bytes.len()
        }
    }

    #[test]
    fn a_secret_is_seen_behind_escapes() {
        let redaction = Redaction(Some(Arc::new(AfterTab)));
        let cases = [
            // A document: its strings are decoded, and those of documents in them.
            (r#"{"a": "key\t=hunter2"}"#, r#"{"a":"key\t=[gone]"}"#),
            (r#"{"a": "{\"b\": \"key\\t=hunter2\"}"}"#, r#"{"a":"{\"b\":\"key\\t=[gone]\"}"}"#),
            // None: not JSON, or the same key twice.
            (r#"{"a": "key\t=hunter2"#, "{\"a\": \"key\t=[gone]"),
            (r#"{"a": "key\t=hunter2", "a": 1}"#, "{\"a\": \"key\t=[gone]\", \"a\": 1}"),
            (r#"{"a": "key\u0009=hunter2", "a": 1}"#, "{\"a\": \"key\t=[gone]\", \"a\": 1}"),
            // Nothing to take out: as it came.
            (r#"{"a":  "C:\\temp\n"}"#, r#"{"a":  "C:\\temp\n"}"#),
            (r#"{"a": "\q", "b": \"#, r#"{"a": "\q", "b": \"#),
            (r#"{"a": "\u12"#, r#"{"a": "\u12"#),
        ];
        for (arguments, expected) in cases {
            let arguments = Arguments::from_text(arguments.to_owned());
            assert_eq!(redaction.arguments(&arguments).as_str(), expected);
            let said = redaction.summary(format!("tool {}", arguments.as_str()), &arguments);
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}

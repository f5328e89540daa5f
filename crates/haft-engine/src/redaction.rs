//! Taking secrets out of everything that leaves.

use haft_core::{Arguments, ContentPart, Problem, SideEffect, ToolError, ToolResult, port::Redactor, text};
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
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same for text that is owned: untouched where there is nothing to take out.
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

    /// Arguments to show. What a tool gets is what was sent.
    pub(crate) fn arguments(&self, arguments: &Arguments) -> Arguments {
        match self.text(arguments.as_str()) {
            Cow::Borrowed(_) => arguments.clone(),
            Cow::Owned(redacted) => Arguments::from_text(redacted),
        }
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

    fn hides(&self, name: &str) -> bool {
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

/// The strengths of redaction: what is kept is held to more than what a caller gets back, where names and randomness
/// would also take out hashes, images and code.
#[derive(Clone, Default)]
pub(crate) struct Strengths {
    /// Results, as the caller gets them.
    pub(crate) results: Redaction,
    /// The same as they are stored: also where results go out as they are.
    pub(crate) stored: Redaction,
    /// Whether results are held to the same as what is kept.
    pub(crate) is_one: bool,
}

impl Strengths {
    /// `kept` is for what people and files keep.
    pub(crate) fn new(
        kept: Option<&Arc<dyn Redactor>>,
        results: Option<Arc<dyn Redactor>>,
        show_results_as_they_are: bool,
    ) -> Self {
        let is_one = results.is_none() && !show_results_as_they_are;
        let stored = Redaction(results.or_else(|| kept.cloned()));
        let results = if show_results_as_they_are { Redaction::default() } else { stored.clone() };
        Strengths { results, stored, is_one }
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

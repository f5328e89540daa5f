//! A strict reader of JSON (RFC 8259) that knows where everything stands.
//!
//! It goes on after a mistake whose meaning is plain (a comma too many, a comment, single quotes), so that one
//! look finds them all; after any other it stops. It never goes deeper than [`MAX_DEPTH`].
//!
//! Stricter than the RFC, on purpose: repeated keys, lone surrogates and a byte order mark are problems.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::problem::{Findings, Found, Lines};
use super::spans::{Inside, Member, Node};
use haft_schema::pointer::push_segment;

mod scalar;
mod text;

#[cfg(test)]
mod tests;

/// How many arrays and objects may be inside each other.
pub(super) const MAX_DEPTH: usize = 128;

/// What was read.
#[derive(Debug)]
pub(super) struct Scan {
    /// The value, where all of it could be read and nothing in it had to be guessed.
    pub(super) value: Option<Value>,
    /// The places, where all of the content could be read.
    pub(super) places: Option<Node>,
}

/// Reads `lines`' text and puts what is wrong with it into `findings`.
pub(super) fn scan(text: &str, lines: &Lines<'_>, findings: &mut Findings) -> Scan {
    let mut scanner = Scanner { text, lines, findings, at: 0, path: Vec::new(), exact: true };
    match scanner.document() {
        Ok((value, places)) => Scan { value: scanner.exact.then_some(value), places: Some(places) },
        Err(Stop) => Scan { value: None, places: None },
    }
}

/// A mistake after which reading on would only guess. It has been reported.
struct Stop;

type Reading<T> = Result<T, Stop>;

/// One step from the content to the value being read.
enum Step {
    Key(String),
    Item(usize),
}

struct Scanner<'t, 'f> {
    text: &'t str,
    lines: &'f Lines<'t>,
    findings: &'f mut Findings,
    at: usize,
    /// Its length is the depth.
    path: Vec<Step>,
    /// Whether all that was read so far has one plain meaning.
    exact: bool,
}

/// An array or object being read.
struct Open {
    at: usize,
    close: u8,
    /// `a value` or `a key`
    wants: &'static str,
}

impl Scanner<'_, '_> {
    fn document(&mut self) -> Reading<(Value, Node)> {
        if self.rest().starts_with('\u{feff}') {
            self.report(0, "byte_order_mark", "expected a JSON value, got a byte order mark (U+FEFF)")
                .hint("remove the first character, which is invisible");
            self.at = '\u{feff}'.len_utf8();
        }
        self.skip_blank()?;
        if self.rest().starts_with("```") {
            self.report(self.at, "syntax", "expected a JSON value, got a Markdown fence")
                .hint("give what is between the fences, without them");
            return Err(Stop);
        }
        let read = self.value()?;
        self.skip_blank()?;
        if self.at == self.text.len() {
            return Ok(read);
        }
        let message = format!("expected the end of the content, got {}", self.got());
        let hint = match self.byte() {
            Some(b'}' | b']') => "remove it: nothing is open here",
            _ => "JSON is one value: put several into an array",
        };
        self.report(self.at, "trailing_data", message).hint(hint);
        Err(Stop)
    }

    fn value(&mut self) -> Reading<(Value, Node)> {
        let start = self.at;
        let value = match self.byte() {
            Some(b'{') => return self.object(),
            Some(b'[') => return self.array(),
            Some(quote @ (b'"' | b'\'')) => Value::String(self.string(quote)?),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(),
            _ if self.word().is_some() => self.literal(),
            _ => {
                let wanted = match self.path.last() {
                    None => "a JSON value".to_owned(),
                    Some(Step::Item(_)) => "a value or `]`".to_owned(),
                    Some(Step::Key(name)) => format!("a value for the key {}", text::quoted(name)),
                };
                return Err(self.unexpected(&wanted));
            }
        };
        Ok((value, Node::leaf(start..self.at)))
    }

    fn array(&mut self) -> Reading<(Value, Node)> {
        let open = self.open(b']', "a value")?;
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let mut closed = self.first(&open)?;
        while !closed {
            self.path.push(Step::Item(values.len()));
            let (value, place) = self.value()?;
            self.path.pop();
            values.push(value);
            places.push(place);
            closed = self.next(&open)?;
        }
        Ok((Value::Array(values), Node { span: open.at..self.at, inside: Inside::Items(places) }))
    }

    fn object(&mut self) -> Reading<(Value, Node)> {
        let open = self.open(b'}', "a key")?;
        let mut values = Map::new();
        let mut places: BTreeMap<String, Member> = BTreeMap::new();
        let mut closed = self.first(&open)?;
        while !closed {
            let (name, key) = self.key()?;
            if let Some(first) = places.get(&name).map(|member| member.key.start) {
                self.repeated(&name, key.start, first);
            }
            self.colon(&name)?;
            self.path.push(Step::Key(name));
            let (value, place) = self.value()?;
            if let Some(Step::Key(name)) = self.path.pop() {
                // The last of two equal keys wins, as in most readers.
                values.insert(name.clone(), value);
                places.insert(name, Member { key, value: place });
            }
            closed = self.next(&open)?;
        }
        Ok((Value::Object(values), Node { span: open.at..self.at, inside: Inside::Members(places) }))
    }

    fn open(&mut self, close: u8, wants: &'static str) -> Reading<Open> {
        if self.path.len() >= MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} arrays and objects inside each other, got more");
            self.report(self.at, "depth", message);
            return Err(Stop);
        }
        let at = self.at;
        self.at += 1;
        Ok(Open { at, close, wants })
    }

    /// Moves to the first entry; true when there is none and the end was read.
    fn first(&mut self, open: &Open) -> Reading<bool> {
        self.skip_blank()?;
        self.skip_extra_commas(open)?;
        Ok(self.close(open))
    }

    /// Moves from the end of one entry to the next; true when the end was read instead.
    fn next(&mut self, open: &Open) -> Reading<bool> {
        self.skip_blank()?;
        if self.close(open) {
            return Ok(true);
        }
        let close = char::from(open.close);
        match self.byte() {
            Some(b',') => {
                let comma = self.at;
                self.at += 1;
                self.skip_blank()?;
                self.skip_extra_commas(open)?;
                if self.byte() == Some(open.close) {
                    let message = format!("expected {} after the comma, got `{close}`", open.wants);
                    self.report(comma, "trailing_comma", message)
                        .hint(format!("remove the comma before `{close}`"));
                }
                Ok(self.close(open))
            }
            Some(byte) if self.may_start_entry(open, byte) => {
                let message = format!("expected `,` or `{close}`, got {}", self.got());
                self.report(self.at, "missing_comma", message).hint("put a comma before it");
                Ok(false)
            }
            _ => {
                let wanted = format!("`,` or `{close}`");
                Err(self.unclosed(open, &wanted))
            }
        }
    }

    fn may_start_entry(&self, open: &Open, byte: u8) -> bool {
        let object = open.close == b'}';
        match byte {
            b'"' | b'\'' => true,
            b'{' | b'[' | b'-' | b'0'..=b'9' => !object,
            _ => self.word().is_some(),
        }
    }

    fn skip_extra_commas(&mut self, open: &Open) -> Reading<()> {
        while self.byte() == Some(b',') {
            let message = format!("expected {}, got a comma", open.wants);
            self.report(self.at, "extra_comma", message).hint("remove this comma");
            self.at += 1;
            self.skip_blank()?;
        }
        if self.byte().is_none() {
            let wanted = format!("{} or `{}`", open.wants, char::from(open.close));
            return Err(self.unclosed(open, &wanted));
        }
        Ok(())
    }

    fn close(&mut self, open: &Open) -> bool {
        let closes = self.byte() == Some(open.close);
        self.at += usize::from(closes);
        closes
    }

    fn key(&mut self) -> Reading<(String, Range<usize>)> {
        let start = self.at;
        let name = match self.byte() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote)?,
            _ => {
                let Some(word) = self.word().map(str::to_owned) else {
                    return Err(self.unexpected("a key in double quotes or `}`"));
                };
                self.report(start, "unquoted_key", format!("expected a key in double quotes, got `{word}`"))
                    .hint(format!("write {}", text::quoted(&word)));
                self.at += word.len();
                word
            }
        };
        Ok((name, start..self.at))
    }

    fn colon(&mut self, name: &str) -> Reading<()> {
        self.skip_blank()?;
        if self.byte() != Some(b':') {
            let instead = self.byte() == Some(b'=');
            let stop = self.unexpected(&format!("`:` after the key {}", text::quoted(name)));
            if instead {
                self.findings.hint("write `:` instead of `=`");
            }
            return Err(stop);
        }
        self.at += 1;
        self.skip_blank()
    }

    fn repeated(&mut self, name: &str, at: usize, first: usize) {
        if !self.findings.has_room() {
            self.findings.count_unlisted(1);
            return;
        }
        let first = self.lines.words(first);
        let mut pointer = self.pointer();
        push_segment(&mut pointer, name);
        let name = text::quoted(name);
        let message = format!("expected each key once, got {name} again: it is first at {first}");
        self.report_at(at, pointer, "duplicate_key", message)
            .hint("keep one of the two: most readers take the last");
    }
}

/// Reporting.
impl Scanner<'_, '_> {
    /// Reports what is here instead of `wanted`.
    fn unexpected(&mut self, wanted: &str) -> Stop {
        let rule = if self.byte().is_some() { "syntax" } else { "unexpected_end" };
        let message = format!("expected {wanted}, got {}", self.got());
        let hint = self.rest().chars().next().and_then(text::hint_for);
        let findings = self.report(self.at, rule, message);
        if let Some(hint) = hint {
            findings.hint(hint);
        }
        Stop
    }

    /// The same, where an array or object is open that this does not close.
    fn unclosed(&mut self, open: &Open, wanted: &str) -> Stop {
        let stop = self.unexpected(wanted);
        let what = if open.close == b']' { "array" } else { "object" };
        if matches!(self.byte(), None | Some(b']' | b'}')) {
            let (close, place) = (char::from(open.close), self.lines.words(open.at));
            self.findings.hint(format!("close the {what} that starts at {place} with `{close}`"));
        }
        stop
    }

    fn report(&mut self, at: usize, rule: &str, message: impl Into<String>) -> &mut Findings {
        let pointer = self.pointer();
        self.report_at(at, pointer, rule, message)
    }

    fn report_at(
        &mut self,
        offset: usize,
        pointer: String,
        rule: &str,
        message: impl Into<String>,
    ) -> &mut Findings {
        let (rule, message) = (rule.to_owned(), message.into());
        self.findings.push(Found { offset, pointer: Some(pointer), rule, message, hint: None })
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Key(name) => push_segment(&mut pointer, name),
                Step::Item(index) => push_segment(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}

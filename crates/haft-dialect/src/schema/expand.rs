//! References put in place, and `allOf` made one.

use super::{DEEPEST, merge};
use crate::{
    Change,
    remark::{Notes, child},
};
use haft_core::text;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A reference to something that is being expanded already.
#[derive(Debug)]
pub(crate) struct Recursion {
    pub(crate) reference: String,
    /// The type of what it points to, where that is one.
    pub(crate) kind: Option<String>,
}

/// Follows the local references of one schema.
pub(crate) struct Expander<'a> {
    root: &'a Value,
    open: Vec<String>,
    depth: usize,
    why: &'static str,
}

impl<'a> Expander<'a> {
    /// `why` is the reason that a remark gives.
    pub(crate) fn new(root: &'a Value, why: &'static str) -> Self {
        Expander { root, open: Vec::new(), depth: 0, why }
    }

    /// How many references are open; [`close`](Self::close) with it once the parts of a schema are done.
    pub(crate) fn mark(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn close(&mut self, mark: usize) {
        self.open.truncate(mark);
    }

    /// The schema without `$ref` and `allOf` at its top. What it points to stays open until it is closed.
    pub(crate) fn expand<'s>(
        &mut self,
        schema: &'s Map<String, Value>,
        at: &str,
        notes: &mut Notes,
    ) -> Result<Cow<'s, Map<String, Value>>, Recursion>
    where
        'a: 's,
    {
        let mut current = Cow::Borrowed(schema);
        loop {
            if current.contains_key("$ref") {
                current = self.follow(current, at, notes)?;
            } else if current.contains_key("allOf") {
                current = Cow::Owned(self.merge_all(current.into_owned(), at, notes));
            } else {
                return Ok(current);
            }
        }
    }

    fn follow<'s>(
        &mut self,
        schema: Cow<'s, Map<String, Value>>,
        at: &str,
        notes: &mut Notes,
    ) -> Result<Cow<'s, Map<String, Value>>, Recursion>
    where
        'a: 's,
    {
        let mut beside = schema.into_owned();
        let removed = beside.remove("$ref");
        let reference = removed.as_ref().and_then(Value::as_str).unwrap_or_default();
        let target = resolve(self.root, reference);
        if self.open.iter().any(|open| open == reference) {
            let kind =
                target.and_then(|target| target.get("type")).and_then(Value::as_str).map(str::to_owned);
            return Err(Recursion { reference: reference.to_owned(), kind });
        }
        match target {
            Some(Value::Object(_)) if !notes.spend() => too_large(&child(at, "$ref"), notes),
            Some(Value::Object(target)) => {
                notes.inlined(at, reference, self.why);
                self.open.push(reference.to_owned());
                if beside.is_empty() {
                    return Ok(Cow::Borrowed(target));
                }
                merge::both(&mut beside, target, at, notes);
            }
            Some(Value::Bool(true)) => {}
            _ => unresolved(reference, at, notes),
        }
        Ok(Cow::Owned(beside))
    }

    fn merge_all(&mut self, mut base: Map<String, Value>, at: &str, notes: &mut Notes) -> Map<String, Value> {
        let at = child(at, "allOf");
        let Some(Value::Array(parts)) = base.remove("allOf") else {
            notes.add(&at, Change::Loosened, "`allOf` is left out", "it is not a list");
            return base;
        };
        notes.add(&at, Change::Rewritten, "its parts are one schema", self.why);
        self.depth += 1;
        for (index, part) in parts.iter().enumerate() {
            let at = format!("{at}/{index}");
            match part {
                Value::Bool(true) => {}
                Value::Object(part) if notes.spend() && self.depth < DEEPEST => {
                    match self.expand(part, &at, notes) {
                        Ok(part) => merge::both(&mut base, &part, &at, notes),
                        Err(recursion) => cut(&recursion, &at, notes),
                    }
                }
                Value::Object(_) => too_large(&at, notes),
                _ => {
                    notes.add(&at, Change::Loosened, "this part is left out", "it is not a schema for values")
                }
            }
        }
        self.depth -= 1;
        base
    }
}

/// Says that a recursion ends here.
pub(crate) fn cut(recursion: &Recursion, at: &str, notes: &mut Notes) {
    notes.add(
        &child(at, "$ref"),
        Change::Loosened,
        format!("`{}` within itself is not said again", text::one_line(&recursion.reference, 80)),
        "a schema that contains itself has no end when references are put in place",
    );
}

/// Says that a reference is gone.
pub(crate) fn unresolved(reference: &str, at: &str, notes: &mut Notes) {
    notes.add(
        &child(at, "$ref"),
        Change::Loosened,
        format!("the reference `{}` is left out", text::one_line(reference, 80)),
        "it does not point to a part of this schema",
    );
}

/// Says that the rest of a schema is not looked at.
pub(crate) fn too_large(at: &str, notes: &mut Notes) {
    notes.add(at, Change::Loosened, "what stands here is not said", "the schema is too large or too deep");
}

/// What a reference within the document points to.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') { root.pointer(&percent_decoded(pointer)?) } else { root.pointer(pointer) }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

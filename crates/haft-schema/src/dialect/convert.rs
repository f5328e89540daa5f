//! The conversion of one schema, keyword by keyword.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde_json::{Map, Value};

use super::pointers::{self, Moved};
use super::{Converted, Draft, OURS, Unconvertible};
use crate::keywords::{Holds, each_schema, holds};
use crate::pointer::push_segment;

/// The name of the anchor that stands for `$recursiveAnchor`, the same in all documents.
const RECURSIVE: &str = "haft-recursive";

type Object = Map<String, Value>;

/// Keywords that older drafts do not have: the last draft without them. They say nothing there.
const UNKNOWN_UP_TO: [(&str, Draft); 21] = [
    ("$id", Draft::Four),
    ("const", Draft::Four),
    ("contains", Draft::Four),
    ("propertyNames", Draft::Four),
    ("if", Draft::Six),
    ("then", Draft::Six),
    ("else", Draft::Six),
    ("$anchor", Draft::Seven),
    ("$recursiveRef", Draft::Seven),
    ("$recursiveAnchor", Draft::Seven),
    ("$vocabulary", Draft::Seven),
    ("dependentRequired", Draft::Seven),
    ("dependentSchemas", Draft::Seven),
    ("unevaluatedItems", Draft::Seven),
    ("unevaluatedProperties", Draft::Seven),
    ("minContains", Draft::Seven),
    ("maxContains", Draft::Seven),
    ("contentSchema", Draft::Seven),
    ("$dynamicRef", Draft::Nineteen),
    ("$dynamicAnchor", Draft::Nineteen),
    ("prefixItems", Draft::Nineteen),
];
/// What stays beside a `$ref` up to draft-07, where nothing else counts: what others refer to, and words.
const BESIDE_REFERENCE: [&str; 6] = ["$schema", "definitions", "$defs", "title", "description", "$comment"];
/// Keywords whose values are no schemas, whatever refers to them.
const VALUES: [&str; 5] = ["const", "enum", "default", "examples", "required"];
/// The formats that came with each draft. One that a draft does not have was not checked.
const FORMATS: [(Draft, &[&str]); 3] = [
    (Draft::Four, &["date-time", "email", "hostname", "ipv4", "ipv6", "uri"]),
    (Draft::Six, &["uri-reference", "uri-template", "json-pointer"]),
    (
        Draft::Seven,
        &[
            "date",
            "time",
            "regex",
            "relative-json-pointer",
            "idn-email",
            "idn-hostname",
            "iri",
            "iri-reference",
        ],
    ),
];

/// Converts a schema that is wholly in `draft`.
pub(super) fn whole(source: &Value, draft: Draft) -> Result<Converted<'static>, Unconvertible> {
    let mut found = Found::default();
    each_schema(source, &mut |pointer, part| found.note(pointer, part, draft));
    if draft == Draft::Nineteen
        && let (Some(pointer), true) = (&found.contains, found.unevaluated_items)
    {
        let message = "`contains` and `unevaluatedItems` in one schema mean something else since 2020-12; write the \
                       schema in 2020-12";
        return Err(Unconvertible::new(pointer, message));
    }
    if let Some(pointer) = found.taken_anchor {
        let message = format!(
            "expected another name than {RECURSIVE:?}, which stands for `$recursiveAnchor`; rename it"
        );
        return Err(Unconvertible::new(pointer, message));
    }
    let mut conversion = Conversion {
        draft,
        parts_with_address: found.parts_with_address,
        elsewhere: found.elsewhere,
        places: BTreeMap::new(),
        checks_formats: false,
    };
    let schema = conversion
        .schema(source, Spot { from: String::new(), to: String::new(), recursive: false, renamed: false })?;
    let Conversion { places, checks_formats, .. } = conversion;
    Ok(Converted { schema: Cow::Owned(schema), draft, checks_formats, places })
}

/// What must be known about the whole before a part can be converted.
#[derive(Default)]
struct Found {
    /// Where the name that stands for `$recursiveAnchor` is taken.
    taken_anchor: Option<String>,
    /// Whether a part has an address of its own, from which `#/…` starts then.
    parts_with_address: bool,
    /// The pointers that references give to places where no keyword holds a schema.
    elsewhere: BTreeSet<String>,
    contains: Option<String>,
    unevaluated_items: bool,
}

impl Found {
    fn note(&mut self, pointer: &str, part: &Value, draft: Draft) {
        let text = |keyword: &str| part.get(keyword).and_then(Value::as_str);
        if text("$anchor") == Some(RECURSIVE) {
            self.taken_anchor.get_or_insert_with(|| format!("{pointer}/$anchor"));
        }
        let id = text(id_of(draft)).filter(|id| !id.starts_with('#'));
        self.parts_with_address |= id.is_some() && !pointer.is_empty();
        if let Some(("", fragment)) = text("$ref")
            .map(pointers::split)
            .as_ref()
            .map(|(address, fragment)| (*address, fragment.as_str()))
            && fragment.starts_with('/')
            && !pointers::moved(fragment, draft).to_schema
        {
            self.elsewhere.insert(fragment.to_owned());
        }
        if part.get("contains").is_some() {
            self.contains.get_or_insert_with(|| format!("{pointer}/contains"));
        }
        self.unevaluated_items |= part.get("unevaluatedItems").is_some();
    }
}

fn id_of(draft: Draft) -> &'static str {
    if draft == Draft::Four { "id" } else { "$id" }
}

/// Where a part is: in the source, and in what comes out.
#[derive(Clone)]
struct Spot {
    from: String,
    to: String,
    /// Whether the document that it is in has a `$recursiveAnchor`.
    recursive: bool,
    /// Whether a step has another name now, since the schema around it.
    renamed: bool,
}

impl Spot {
    fn below(&self, from: &str, to: &str) -> Self {
        let mut below = self.clone();
        push_segment(&mut below.from, from);
        push_segment(&mut below.to, to);
        below.renamed |= from != to;
        below
    }

    fn refused(&self, keyword: &str, message: impl Into<String>) -> Unconvertible {
        let mut pointer = self.from.clone();
        push_segment(&mut pointer, keyword);
        Unconvertible::new(pointer, message)
    }
}

struct Conversion {
    draft: Draft,
    parts_with_address: bool,
    elsewhere: BTreeSet<String>,
    places: BTreeMap<String, String>,
    checks_formats: bool,
}

impl Conversion {
    fn schema(&mut self, source: &Value, mut at: Spot) -> Result<Value, Unconvertible> {
        if std::mem::take(&mut at.renamed) {
            self.places.insert(at.to.clone(), at.from.clone());
        }
        let Value::Object(object) = source else { return Ok(source.clone()) };
        let alone = self.draft.reference_alone() && object.get("$ref").is_some_and(Value::is_string);
        let counts = |keyword: &str| {
            let unknown = |(name, last): &(&str, Draft)| *name == keyword && self.draft <= *last;
            let beside = !alone || keyword == "$ref" || BESIDE_REFERENCE.contains(&keyword);
            beside && !UNKNOWN_UP_TO.iter().any(unknown)
        };
        let object: Object = object
            .iter()
            .filter(|(keyword, _)| counts(keyword))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let id = object.get(id_of(self.draft)).and_then(Value::as_str);
        if at.from.is_empty() || id.is_some_and(|id| !id.starts_with('#')) {
            at.recursive = object.get("$recursiveAnchor") == Some(&Value::Bool(true));
        }
        let mut out = Object::new();
        for (keyword, value) in &object {
            self.keyword(keyword, value, &object, &mut out, &at)?;
        }
        if let Some(value) = object.get("$recursiveRef") {
            recursive(value, &mut out, &at)?;
        }
        Ok(Value::Object(out))
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        object: &Object,
        out: &mut Object,
        at: &Spot,
    ) -> Result<(), Unconvertible> {
        match (keyword, value) {
            ("$schema", _) => {
                if at.from.is_empty() {
                    out.insert(keyword.to_owned(), OURS.into());
                }
            }
            (_, Value::String(id)) if keyword == id_of(self.draft) => self.address(keyword, id, out, at)?,
            ("$ref", Value::String(reference)) => {
                let reference = self.reference(reference, at)?;
                out.insert(keyword.to_owned(), reference.into());
            }
            // After the others, which may have an `allOf` that it is put into.
            ("$recursiveRef", _) => {}
            ("$recursiveAnchor", _) => recursive_anchor(value, object, out, at)?,
            ("definitions" | "$defs", Value::Object(map)) => {
                for (name, part) in map {
                    let below = at.below(keyword, "$defs").below(name, name);
                    let part = self.schema(part, below)?;
                    let defs = out.entry("$defs").or_insert_with(|| Object::new().into());
                    if defs.as_object_mut().is_some_and(|defs| defs.insert(name.clone(), part).is_some()) {
                        let message =
                            format!("{name:?} is in `definitions` and in `$defs`; rename one of them");
                        return Err(at.refused("definitions", message));
                    }
                }
            }
            ("items", Value::Array(list)) => {
                let parts = self.list(list, &at.below(keyword, "prefixItems"))?;
                if !list.is_empty() {
                    out.insert("prefixItems".to_owned(), parts);
                }
            }
            ("additionalItems", part) => {
                // Without a list of the first items it says nothing.
                if object.get("items").is_some_and(Value::is_array) {
                    let part = self.schema(part, at.below(keyword, "items"))?;
                    out.insert("items".to_owned(), part);
                }
            }
            ("dependencies", Value::Object(map)) if self.draft <= Draft::Seven => {
                self.dependencies(map, out, at)?;
            }
            ("exclusiveMinimum" | "exclusiveMaximum", _) if self.draft == Draft::Four => {
                exclusive(keyword, value, object, out, at)?;
            }
            ("minimum" | "maximum", _) if self.draft == Draft::Four => {
                let exclusive = if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                if object.get(exclusive) != Some(&Value::Bool(true)) {
                    out.insert(keyword.to_owned(), value.clone());
                }
            }
            ("format", Value::String(format)) if self.draft <= Draft::Seven => {
                let known = FORMATS.iter().filter(|(draft, _)| *draft <= self.draft);
                if known.flat_map(|(_, formats)| *formats).any(|known| known == format) {
                    self.checks_formats = true;
                    out.insert(keyword.to_owned(), value.clone());
                }
            }
            _ => {
                let below = at.below(keyword, keyword);
                if VALUES.contains(&keyword) && self.refers_below(&below.from) {
                    let message =
                        "expected no reference to a value; move what it refers to into `definitions`";
                    return Err(at.refused(keyword, message));
                }
                let part = match (holds(keyword), value) {
                    (Some(Holds::Several), Value::Array(list)) => self.list(list, &below)?,
                    (Some(Holds::Several), Value::Object(map)) if keyword != "items" => {
                        self.map(map, &below)?
                    }
                    (Some(_), one) => self.schema(one, below)?,
                    (None, other) => self.other(other, below)?,
                };
                out.insert(keyword.to_owned(), part);
            }
        }
        Ok(())
    }

    fn list(&mut self, list: &[Value], at: &Spot) -> Result<Value, Unconvertible> {
        let numbered = list.iter().enumerate().map(|(index, part)| (index.to_string(), part));
        numbered.map(|(index, part)| self.schema(part, at.below(&index, &index))).collect()
    }

    fn map(&mut self, map: &Object, at: &Spot) -> Result<Value, Unconvertible> {
        let converted =
            map.iter().map(|(name, part)| Ok((name.clone(), self.schema(part, at.below(name, name))?)));
        Ok(Value::Object(converted.collect::<Result<Object, Unconvertible>>()?))
    }

    /// Whether a reference leads to a place whose pointer begins so.
    fn refers_below(&self, start: &str) -> bool {
        let next = self.elsewhere.range::<str, _>((Bound::Included(start), Bound::Unbounded)).next();
        next.is_some_and(|pointer| pointer.starts_with(start))
    }

    /// What no keyword holds as a schema, but a reference may: those places are schemas, too.
    fn other(&mut self, value: &Value, at: Spot) -> Result<Value, Unconvertible> {
        if self.elsewhere.contains(&at.from) {
            return self.schema(value, at);
        }
        let start = format!("{}/", at.from);
        if !self.refers_below(&start) {
            return Ok(value.clone());
        }
        Ok(match value {
            Value::Object(map) => {
                let parts = map
                    .iter()
                    .map(|(name, part)| Ok((name.clone(), self.other(part, at.below(name, name))?)));
                Value::Object(parts.collect::<Result<Object, Unconvertible>>()?)
            }
            Value::Array(list) => {
                let parts = list.iter().enumerate().map(|(index, part)| {
                    let index = index.to_string();
                    self.other(part, at.below(&index, &index))
                });
                parts.collect::<Result<Value, Unconvertible>>()?
            }
            scalar => scalar.clone(),
        })
    }

    /// The address of a schema; what follows its `#` is the name of an anchor.
    fn address(&self, keyword: &str, id: &str, out: &mut Object, at: &Spot) -> Result<(), Unconvertible> {
        let (address, name) = id.split_once('#').unwrap_or((id, ""));
        if !address.is_empty() {
            out.insert("$id".to_owned(), address.into());
        }
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        match (name.is_empty(), plain && self.draft <= Draft::Seven) {
            (true, _) => {}
            (false, true) => {
                out.insert("$anchor".to_owned(), name.into());
            }
            (false, false) => {
                let message = format!(
                    "expected an address, or `#` and a name of letters, digits, `-`, `_` and `.`, got {id:?}; choose \
                     another name"
                );
                return Err(at.refused(keyword, message));
            }
        }
        Ok(())
    }

    fn reference(&self, reference: &str, at: &Spot) -> Result<String, Unconvertible> {
        let (address, fragment) = pointers::split(reference);
        if Draft::at(address).is_some_and(|draft| draft != Draft::Newest) {
            let message = format!(
                "expected no reference to the meta-schema of another draft, got {reference:?}; refer to {OURS:?}, or \
                 put what you need into `definitions`"
            );
            return Err(at.refused("$ref", message));
        }
        if !fragment.starts_with('/') || address == OURS {
            return Ok(reference.to_owned());
        }
        let Moved { pointer, to_schema } = pointers::moved(&fragment, self.draft);
        if !to_schema && (self.parts_with_address || !address.is_empty()) {
            let message = format!(
                "expected a reference to a schema, got {reference:?}, which is none in {}; move it to `definitions`",
                self.draft
            );
            return Err(at.refused("$ref", message));
        }
        Ok(if pointer == fragment { reference.to_owned() } else { pointers::join(address, &pointer) })
    }

    fn dependencies(&mut self, map: &Object, out: &mut Object, at: &Spot) -> Result<(), Unconvertible> {
        let (mut names, mut schemas) = (Object::new(), Object::new());
        for (name, dependency) in map {
            if dependency.is_array() {
                names.insert(name.clone(), dependency.clone());
            } else {
                let below = at.below("dependencies", "dependentSchemas").below(name, name);
                schemas.insert(name.clone(), self.schema(dependency, below)?);
            }
        }
        for (keyword, found) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
            if !found.is_empty() {
                out.insert(keyword.to_owned(), found.into());
            }
        }
        Ok(())
    }
}

/// In draft-04 a bound and whether it is excluded are two keywords.
fn exclusive(
    keyword: &str,
    value: &Value,
    object: &Object,
    out: &mut Object,
    at: &Spot,
) -> Result<(), Unconvertible> {
    let bound = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
    match (value, object.get(bound)) {
        (Value::Bool(false), _) => Ok(()),
        (Value::Bool(true), Some(bound)) => {
            out.insert(keyword.to_owned(), bound.clone());
            Ok(())
        }
        _ => Err(at.refused(keyword, format!("expected true or false beside `{bound}`, as draft-04 has it"))),
    }
}

fn recursive(value: &Value, out: &mut Object, at: &Spot) -> Result<(), Unconvertible> {
    if value != "#" {
        return Err(at.refused("$recursiveRef", "expected \"#\", the only value of it in 2019-09"));
    }
    if at.recursive {
        out.insert("$dynamicRef".to_owned(), format!("#{RECURSIVE}").into());
        return Ok(());
    }
    let whole: Value = Object::from_iter([("$ref".to_owned(), "#".into())]).into();
    match out.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(whole),
        _ => {
            out.insert("allOf".to_owned(), Value::Array(vec![whole]));
        }
    }
    Ok(())
}

fn recursive_anchor(
    value: &Value,
    object: &Object,
    out: &mut Object,
    at: &Spot,
) -> Result<(), Unconvertible> {
    match value {
        Value::Bool(false) => Ok(()),
        Value::Bool(true) if at.from.is_empty() || object.contains_key("$id") => {
            out.insert("$dynamicAnchor".to_owned(), RECURSIVE.into());
            Ok(())
        }
        _ => Err(at.refused("$recursiveAnchor", "expected true or false, beside an `$id`")),
    }
}

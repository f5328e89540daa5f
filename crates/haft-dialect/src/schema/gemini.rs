//! The `Schema` of Gemini: a part of OpenAPI 3.0. One type for each value, `nullable` for null, no references.

use super::{
    DEEPEST,
    expand::{Expander, cut, too_large},
    gemini_unions::{any_of, anything, anything_branches, is_null, map, set_nullable},
    gemini_values as values, hints,
    keywords::{self, meant_type, note_the_rest, types},
    list, merge, only_requires, strings,
};
use crate::{
    Change,
    remark::{Notes, child},
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

const OWNER: &str = "Gemini";
pub(crate) const WHY_INLINE: &str = "Gemini has no references and no `allOf`";

/// What every value may have, whatever its type.
const COMMON: [&str; 4] = ["type", "title", "description", "default"];

/// Writes one schema, and all that is in it.
pub(crate) struct Writer<'a, 'n> {
    pub(crate) expander: Expander<'a>,
    pub(crate) notes: &'n mut Notes,
}

impl Writer<'_, '_> {
    /// The schema in Gemini's words.
    pub(crate) fn schema(&mut self, schema: &Value, at: &str, depth: usize) -> Map<String, Value> {
        if depth >= DEEPEST || !self.notes.spend() {
            too_large(at, self.notes);
            return self.anything(&Map::new(), at);
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(true) => return self.anything(&Map::new(), at),
            _ => {
                let why = "no value, or none that Gemini could be told, fits";
                self.notes.add(at, Change::Loosened, "it takes any value", why);
                return anything();
            }
        };
        let mark = self.expander.mark();
        let written = match self.expander.expand(schema, at, self.notes) {
            Ok(schema) => self.expanded(schema, at, depth),
            Err(recursion) => {
                cut(&recursion, at, self.notes);
                match recursion.kind.as_deref() {
                    Some(kind @ ("object" | "string" | "number" | "integer" | "boolean")) => {
                        let mut stub = map(json!({"type": kind}));
                        hints(schema, &mut stub);
                        stub
                    }
                    _ => self.anything(&Map::new(), at),
                }
            }
        };
        self.expander.close(mark);
        written
    }

    fn expanded(
        &mut self,
        schema: Cow<'_, Map<String, Value>>,
        at: &str,
        depth: usize,
    ) -> Map<String, Value> {
        for key in ["anyOf", "oneOf"] {
            if schema.contains_key(key) {
                return self.alternatives(schema.into_owned(), key, at, depth);
            }
        }
        match types(&schema) {
            Some(types) => self.of_types(&schema, types, at, depth),
            None => self.untyped(&schema, at, depth),
        }
    }

    /// `anyOf` must stand alone, so that what stands beside it goes into each alternative.
    fn alternatives(
        &mut self,
        mut base: Map<String, Value>,
        key: &str,
        at: &str,
        depth: usize,
    ) -> Map<String, Value> {
        let here = child(at, key);
        let Some(Value::Array(branches)) = base.remove(key) else {
            self.notes.add(&here, Change::Loosened, format!("`{key}` is left out"), "it is not a list");
            return self.expanded(Cow::Owned(base), at, depth);
        };
        if let Some(whole) = merge::choices(&base, &branches) {
            self.notes.add(&here, Change::Rewritten, "its choices are one `enum`", "Gemini has no `const`");
            return self.expanded(Cow::Owned(whole), at, depth);
        }
        if key == "oneOf" {
            let why = "Gemini has no `oneOf`";
            self.notes.add(&here, Change::Loosened, "it is `anyOf`, so several may fit at once", why);
        } else if base.remove("oneOf").is_some() {
            let why = "Gemini has no `oneOf` beside `anyOf`";
            self.notes.add(&child(at, "oneOf"), Change::Loosened, "`oneOf` is left out", why);
        }
        let some: Vec<&Value> = branches.iter().filter(|branch| !is_null(branch)).collect();
        if some.is_empty() && !branches.is_empty() {
            return self.of_types(&base, vec!["null".to_owned()], at, depth);
        }
        let base_takes_null = types(&base).is_none_or(|types| types.iter().any(|kind| kind == "null"));
        let nullable = some.len() < branches.len() && base_takes_null;
        if some.iter().all(|branch| only_requires(branch)) {
            if !some.is_empty() {
                let what = format!("`{key}` is left out, so none of its choices is required");
                self.notes.add(
                    &here,
                    Change::Loosened,
                    what,
                    "Gemini needs a whole schema for each alternative",
                );
            }
            let mut written = self.expanded(Cow::Owned(base), at, depth);
            set_nullable(&mut written, nullable);
            return written;
        }
        if nullable {
            self.notes.add(
                &here,
                Change::Rewritten,
                "null is said with `nullable`",
                "Gemini has no type for null",
            );
        }
        let mut rules = base.clone();
        rules.retain(|key, _| !matches!(keywords::class(key), keywords::Class::Hint));
        let mut written: Vec<Map<String, Value>> = Vec::new();
        for (index, branch) in some.iter().enumerate() {
            let at = format!("{here}/{index}");
            let whole = match branch {
                Value::Object(branch) if !rules.is_empty() => {
                    let mut whole = branch.clone();
                    // A branch that is a reference has to be followed before anything can be added to it.
                    if whole.contains_key("$ref") {
                        whole = map(json!({"allOf": [whole]}));
                    }
                    merge::both(&mut whole, &rules, &at, self.notes);
                    Value::Object(whole)
                }
                Value::Bool(true) => Value::Object(rules.clone()),
                branch => (*branch).clone(),
            };
            written.push(self.schema(&whole, &at, depth + 1));
        }
        let mut written = any_of(written, &base);
        set_nullable(&mut written, nullable);
        written
    }

    fn untyped(&mut self, schema: &Map<String, Value>, at: &str, depth: usize) -> Map<String, Value> {
        match meant_type(schema) {
            Some(kind) => {
                let what = format!("it is of type `{kind}`");
                self.notes.add(
                    &child(at, "type"),
                    Change::Tightened,
                    what,
                    "Gemini needs a type for each value",
                );
                self.of_types(schema, vec![kind.to_owned()], at, depth)
            }
            None => self.anything(schema, at),
        }
    }

    fn anything(&mut self, schema: &Map<String, Value>, at: &str) -> Map<String, Value> {
        let what = "it is a text, a number, a boolean, an object or a list of texts";
        self.notes.add(&child(at, "type"), Change::Tightened, what, "Gemini needs a type for each value");
        note_the_rest(schema, &[], |key| key == "description", OWNER, at, self.notes);
        any_of(anything_branches(), schema)
    }

    fn of_types(
        &mut self,
        schema: &Map<String, Value>,
        mut types: Vec<String>,
        at: &str,
        depth: usize,
    ) -> Map<String, Value> {
        let before = types.len();
        types.retain(|kind| kind != "null");
        let nullable = types.len() < before && before > 1;
        if types.iter().any(|kind| kind == "number") {
            types.retain(|kind| kind != "integer");
        }
        let mut written = match types.as_slice() {
            [] => {
                self.notes.add(
                    &child(at, "type"),
                    Change::Loosened,
                    "it may be a text, too",
                    "Gemini has no null",
                );
                map(json!({"type": "string", "nullable": true}))
            }
            [kind] => {
                if nullable && schema.get("type").is_some_and(Value::is_array) {
                    let what = format!("it is `{kind}` and `nullable`");
                    self.notes.add(&child(at, "type"), Change::Rewritten, what, "Gemini takes one type only");
                }
                self.of_type(schema, kind, at, depth)
            }
            several => {
                let here = child(at, "type");
                let what = "each type is an alternative of `anyOf`";
                self.notes.add(&here, Change::Rewritten, what, "Gemini takes one type only");
                let branches = several.iter().map(|kind| {
                    let mut one = values::only_of_type(schema, kind);
                    one.insert("type".into(), kind.clone().into());
                    self.of_type(&one, kind, at, depth)
                });
                any_of(branches.collect(), schema)
            }
        };
        if types.is_empty() {
            hints(schema, &mut written);
        }
        set_nullable(&mut written, nullable);
        written
    }

    fn of_type(
        &mut self,
        schema: &Map<String, Value>,
        kind: &str,
        at: &str,
        depth: usize,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("type".into(), kind.into());
        hints(schema, &mut out);
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            out.insert("default".into(), default.clone());
        }
        let carried: &[&str] = match kind {
            "string" => {
                values::choices(schema, kind, &mut out, at, self.notes);
                values::format(schema, &["enum", "date-time"], &mut out, at, self.notes);
                values::copy_counts(schema, &["minLength", "maxLength"], &mut out, at, self.notes);
                values::copy_pattern(schema, &mut out, at, self.notes);
                &["enum", "const", "format", "minLength", "maxLength", "pattern"]
            }
            "number" | "integer" => {
                values::bounds(schema, kind, &mut out, at, self.notes);
                values::choices(schema, kind, &mut out, at, self.notes);
                let formats: &[&str] =
                    if kind == "number" { &["float", "double"] } else { &["int32", "int64"] };
                values::format(schema, formats, &mut out, at, self.notes);
                &["enum", "const", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
            }
            "array" => {
                values::choices(schema, kind, &mut out, at, self.notes);
                self.items(schema, &mut out, at, depth);
                values::copy_counts(schema, &["minItems", "maxItems"], &mut out, at, self.notes);
                &["enum", "const", "items", "prefixItems", "minItems", "maxItems"]
            }
            "object" => {
                values::choices(schema, kind, &mut out, at, self.notes);
                self.properties(schema, &mut out, at, depth);
                values::copy_counts(schema, &["minProperties", "maxProperties"], &mut out, at, self.notes);
                &["enum", "const", "properties", "required", "minProperties", "maxProperties"]
            }
            _ => {
                values::choices(schema, kind, &mut out, at, self.notes);
                &["enum", "const"]
            }
        };
        let is_carried = |key: &str| COMMON.contains(&key) || carried.contains(&key);
        note_the_rest(schema, &[kind], is_carried, OWNER, at, self.notes);
        out
    }

    fn items(&mut self, schema: &Map<String, Value>, out: &mut Map<String, Value>, at: &str, depth: usize) {
        let first = list(schema, "prefixItems");
        let here = child(at, "items");
        let items = if first.is_empty() {
            let items = schema.get("items").unwrap_or(&Value::Bool(true));
            self.schema(items, &here, depth + 1)
        } else {
            let here = child(at, "prefixItems");
            let what = "any of them may stand at any place";
            self.notes.add(&here, Change::Loosened, what, "Gemini has one schema for all items");
            let mut branches: Vec<Map<String, Value>> = Vec::new();
            for (index, item) in first.iter().enumerate() {
                branches.push(self.schema(item, &format!("{here}/{index}"), depth + 1));
            }
            if let Some(rest) = schema.get("items").filter(|rest| rest.is_object()) {
                branches.push(self.schema(rest, &child(at, "items"), depth + 1));
            }
            any_of(branches, &Map::new())
        };
        out.insert("items".into(), items.into());
    }

    fn properties(
        &mut self,
        schema: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
        depth: usize,
    ) {
        let mut written = Map::new();
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let here = child(at, "properties");
            for (name, property) in properties {
                let property = self.schema(property, &child(&here, name), depth + 1);
                written.insert(name.clone(), property.into());
            }
        }
        let mut required = strings(schema, "required");
        let before = required.len();
        required.retain(|name| written.contains_key(*name));
        if required.len() < before {
            let what = "names without a property are left out";
            let why = "Gemini wants a property for each required name";
            self.notes.add(&child(at, "required"), Change::Loosened, what, why);
        }
        if schema.contains_key("required") {
            out.insert("required".into(), required.into());
        }
        if schema.get("properties").is_some_and(Value::is_object) {
            out.insert("properties".into(), written.into());
        }
    }
}

//! Strict mode of OpenAI: every property required, no others, and only the keywords that its decoder knows.
//!
//! What may be absent becomes what may be null; [`Back`] remembers where, so that such a null is taken out again.

use super::{
    DEEPEST,
    expand::Expander,
    hints,
    keywords::{self, meant_type, note_the_rest, types},
    list, merge, only_requires, strings,
};
use crate::{
    Change,
    back::Back,
    remark::{Notes, child},
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

const OWNER: &str = "strict mode";
pub(crate) const WHY_INLINE: &str = "strict mode has no `allOf`, and nothing beside a reference";

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const CARRIED: [&str; 15] = [
    "type",
    "title",
    "description",
    "enum",
    "const",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "minItems",
    "maxItems",
];

/// Why a tool cannot be strict.
pub(crate) struct Refusal {
    pub(crate) at: String,
    pub(crate) why: &'static str,
}

type Written = Result<Map<String, Value>, Refusal>;

fn refuse(at: &str, why: &'static str) -> Written {
    Err(Refusal { at: at.to_owned(), why })
}

/// Writes one schema, and all that is in it.
pub(crate) struct Writer<'a, 'n> {
    pub(crate) expander: Expander<'a>,
    pub(crate) notes: &'n mut Notes,
}

impl Writer<'_, '_> {
    /// The schema in strict words, or why there are none.
    pub(crate) fn schema(&mut self, schema: &Value, at: &str, depth: usize, back: &mut Back) -> Written {
        if depth >= DEEPEST || !self.notes.spend() {
            return refuse(at, "the schema is too large or too deep");
        }
        let Value::Object(schema) = schema else {
            return refuse(at, "it takes any value, and strict mode needs a type");
        };
        let mark = self.expander.mark();
        let written = match self.expander.expand(schema, at, self.notes) {
            Ok(schema) => self.expanded(schema, at, depth, back),
            Err(_) => refuse(at, "it contains itself"),
        };
        self.expander.close(mark);
        written
    }

    fn expanded(
        &mut self,
        schema: Cow<'_, Map<String, Value>>,
        at: &str,
        depth: usize,
        back: &mut Back,
    ) -> Written {
        for key in ["anyOf", "oneOf"] {
            if schema.contains_key(key) {
                return self.alternatives(schema.into_owned(), key, at, depth, back);
            }
        }
        let types = match (types(&schema), meant_type(&schema)) {
            (Some(types), _) => types,
            (None, Some(kind)) => {
                let what = format!("it is of type `{kind}`");
                let why = "strict mode needs a type for each value";
                self.notes.add(&child(at, "type"), Change::Tightened, what, why);
                vec![kind.to_owned()]
            }
            (None, None) => return refuse(at, "it takes any value, and strict mode needs a type"),
        };
        self.of_types(&schema, &types, at, depth, back)
    }

    fn alternatives(
        &mut self,
        mut base: Map<String, Value>,
        key: &str,
        at: &str,
        depth: usize,
        back: &mut Back,
    ) -> Written {
        let here = child(at, key);
        let Some(Value::Array(branches)) = base.remove(key) else {
            self.notes.add(&here, Change::Loosened, format!("`{key}` is left out"), "it is not a list");
            return self.expanded(Cow::Owned(base), at, depth, back);
        };
        if let Some(whole) = merge::choices(&base, &branches) {
            self.notes.add(
                &here,
                Change::Rewritten,
                "its choices are one `enum`",
                "strict mode takes one list of choices",
            );
            return self.expanded(Cow::Owned(whole), at, depth, back);
        }
        if key == "oneOf" {
            let why = "strict mode has no `oneOf`";
            self.notes.add(&here, Change::Loosened, "it is `anyOf`, so several may fit at once", why);
        } else if base.remove("oneOf").is_some() {
            let why = "strict mode has no `oneOf`";
            self.notes.add(&child(at, "oneOf"), Change::Loosened, "`oneOf` is left out", why);
        }
        if branches.iter().all(only_requires) {
            let what = format!("`{key}` is left out, so none of its choices is required");
            self.notes.add(
                &here,
                Change::Loosened,
                what,
                "strict mode needs a whole schema for each alternative",
            );
            return self.expanded(Cow::Owned(base), at, depth, back);
        }
        let mut rules = base.clone();
        rules.retain(|key, _| matches!(keywords::class(key), keywords::Class::Rule(_)));
        let mut written: Vec<Value> = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = format!("{here}/{index}");
            let branch = match branch {
                Value::Object(branch) if !rules.is_empty() => {
                    let mut whole = Map::from_iter([("allOf".to_owned(), json!([branch]))]);
                    merge::both(&mut whole, &rules, &at, self.notes);
                    Cow::Owned(Value::Object(whole))
                }
                Value::Bool(true) => Cow::Owned(Value::Object(rules.clone())),
                branch => Cow::Borrowed(branch),
            };
            let branch = Value::Object(self.schema(&branch, &at, depth + 1, back)?);
            if !written.contains(&branch) {
                written.push(branch);
            }
        }
        let mut out = Map::from_iter([("anyOf".to_owned(), written.into())]);
        hints(&base, &mut out);
        note_the_rest(&base, &[], |key| CARRIED.contains(&key), OWNER, at, self.notes);
        Ok(out)
    }

    fn of_types(
        &mut self,
        schema: &Map<String, Value>,
        types: &[String],
        at: &str,
        depth: usize,
        back: &mut Back,
    ) -> Written {
        let mut out = Map::new();
        let kind = match types {
            [one] => json!(one),
            several => json!(several),
        };
        out.insert("type".into(), kind);
        hints(schema, &mut out);
        for key in ["enum", "const"] {
            if let Some(value) = schema.get(key).filter(|value| key == "const" || value.is_array()) {
                out.insert(key.into(), value.clone());
            }
        }
        for kind in types {
            match kind.as_str() {
                "string" => self.text(schema, &mut out, at),
                "number" | "integer" => {
                    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
                        if let Some(Value::Number(number)) = schema.get(key) {
                            out.insert(key.into(), number.clone().into());
                        }
                    }
                    if schema.contains_key("format") && !types.iter().any(|kind| kind == "string") {
                        let why = "strict mode has formats for texts only";
                        self.notes.add(&child(at, "format"), Change::Dropped, "`format` is left out", why);
                    }
                }
                "array" => self.items(schema, &mut out, at, depth, back)?,
                "object" => self.object(schema, &mut out, at, depth, back)?,
                _ => {}
            }
        }
        let carried = |key: &str| {
            CARRIED.contains(&key)
                || matches!(key, "properties" | "required" | "additionalProperties" | "prefixItems")
        };
        let kinds: Vec<&str> = types.iter().map(String::as_str).collect();
        note_the_rest(schema, &kinds, carried, OWNER, at, self.notes);
        Ok(out)
    }

    fn text(&mut self, schema: &Map<String, Value>, out: &mut Map<String, Value>, at: &str) {
        match schema.get("pattern") {
            Some(Value::String(pattern)) if !looks_around(pattern) => {
                out.insert("pattern".into(), pattern.clone().into());
            }
            Some(_) => {
                let why = "strict mode has no patterns that look around";
                self.notes.add(&child(at, "pattern"), Change::Loosened, "`pattern` is left out", why);
            }
            None => {}
        }
        match schema.get("format") {
            Some(Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                out.insert("format".into(), format.clone().into());
            }
            Some(_) => {
                let why = format!("strict mode knows only {}", FORMATS.join(", "));
                self.notes.add(&child(at, "format"), Change::Loosened, "`format` is left out", why);
            }
            None => {}
        }
    }

    fn items(
        &mut self,
        schema: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
        depth: usize,
        back: &mut Back,
    ) -> Result<(), Refusal> {
        let mut inner = back.items.take().map(|items| *items).unwrap_or_default();
        let first = list(schema, "prefixItems");
        let items = if first.is_empty() {
            let items = schema.get("items").unwrap_or(&Value::Null);
            self.schema(items, &child(at, "items"), depth + 1, &mut inner)?
        } else {
            let here = child(at, "prefixItems");
            let what = "any of them may stand at any place";
            self.notes.add(&here, Change::Loosened, what, "strict mode has one schema for all items");
            let mut branches: Vec<Value> = Vec::new();
            for (index, item) in first.iter().enumerate() {
                let item = self.schema(item, &format!("{here}/{index}"), depth + 1, &mut inner)?;
                if !branches.contains(&Value::Object(item.clone())) {
                    branches.push(item.into());
                }
            }
            Map::from_iter([("anyOf".to_owned(), branches.into())])
        };
        if !inner.is_empty() {
            back.items = Some(Box::new(inner));
        }
        out.insert("items".into(), items.into());
        for key in ["minItems", "maxItems"] {
            if let Some(count) = schema.get(key).filter(|count| count.is_u64()) {
                out.insert(key.into(), count.clone());
            }
        }
        Ok(())
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
        depth: usize,
        back: &mut Back,
    ) -> Result<(), Refusal> {
        const FREE: &str = "it has members of any name, and strict mode needs all names";
        let empty = Map::new();
        let properties = match schema.get("properties") {
            Some(Value::Object(properties)) => properties,
            _ => &empty,
        };
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let of_a_kind = schema.get("additionalProperties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        if of_a_kind.is_some_and(|kind| !kind.is_empty())
            || patterns.is_some_and(|patterns| !patterns.is_empty())
            || (properties.is_empty() && !closed && depth > 0)
        {
            return refuse(at, FREE).map(|_| ());
        }
        if !closed {
            let what = "no other members are allowed";
            let why = "strict mode needs `additionalProperties: false`";
            self.notes.add(&child(at, "additionalProperties"), Change::Tightened, what, why);
        }
        let required = strings(schema, "required");
        if required.iter().any(|name| !properties.contains_key(*name)) {
            return refuse(at, "it requires a member without saying what it is").map(|_| ());
        }
        let mut written = Map::new();
        let here = child(at, "properties");
        for (name, property) in properties {
            let at = child(&here, name);
            let mut inner = back.members.remove(name).unwrap_or_default();
            let mut property = self.schema(property, &at, depth + 1, &mut inner)?;
            back.member(name, inner);
            if !required.contains(&name.as_str()) && !takes_null(&property) {
                back.optional.insert(name.clone());
                make_nullable(&mut property);
                let what = "it is required and may be null, which stands for its absence";
                self.notes.add(&at, Change::Rewritten, what, "strict mode has no optional properties");
            }
            written.insert(name.clone(), property.into());
        }
        let names: Vec<&String> = written.keys().collect();
        out.insert("required".into(), json!(names));
        out.insert("properties".into(), written.into());
        out.insert("additionalProperties".into(), false.into());
        Ok(())
    }
}

fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look))
}

fn takes_null(schema: &Map<String, Value>) -> bool {
    let chosen = |values: &Value| values.as_array().is_none_or(|values| values.contains(&Value::Null));
    if !schema.get("enum").is_none_or(chosen) || !schema.get("const").is_none_or(Value::is_null) {
        return false;
    }
    match (schema.get("anyOf"), schema.get("type")) {
        (Some(Value::Array(branches)), _) => {
            branches.iter().any(|branch| branch.as_object().is_some_and(takes_null))
        }
        (_, Some(Value::String(kind))) => kind == "null",
        (_, Some(Value::Array(kinds))) => kinds.iter().any(|kind| kind == "null"),
        _ => false,
    }
}

fn make_nullable(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
        return;
    }
    if schema.contains_key("const") {
        let mut whole = Map::new();
        for key in ["title", "description"] {
            if let Some(text) = schema.remove(key) {
                whole.insert(key.into(), text);
            }
        }
        whole.insert("anyOf".into(), json!([std::mem::take(schema), {"type": "null"}]));
        *schema = whole;
        return;
    }
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) if kinds.contains(&"null".into()) => {}
        Some(Value::Array(kinds)) => kinds.push("null".into()),
        Some(kind) if kind == "null" => {}
        Some(kind) => *kind = json!([kind.take(), "null"]),
        None => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

//! Schemas and values by chance, such that many of the values fit.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// Names of members: few, so that schemas and values meet.
pub fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c", "d"]).prop_map(Into::into)
}

/// Scalars that are near to each other: the same number as integer, float and text.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        (-3i64..4).prop_map(|n| Value::from(n as f64)),
        (-3i64..4).prop_map(|n| Value::from(n as f64 / 2.0)),
        (-3i64..4).prop_map(|n| Value::from(n.to_string())),
        select(vec!["true", "false", "null", "[1]", "[]", "{}", "{\"a\": \"1\"}", "1.5", "x", ""])
            .prop_map(Value::from),
    ]
}

pub fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

pub fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    vec((name(), value()), 0..4).prop_map(|members| members.into_iter().collect())
}

fn types() -> impl Strategy<Value = Value> {
    let word = || {
        select(vec!["null", "boolean", "integer", "number", "string", "array", "object"])
            .prop_map(String::from)
    };
    prop_oneof![
        3 => word().prop_map(Value::from),
        1 => proptest::collection::btree_set(word(), 1..3).prop_map(|words| json!(words)),
    ]
}

/// One keyword that asks for something.
fn plain_keyword() -> impl Strategy<Value = (String, Value)> {
    let pair = |name: &'static str, value: BoxedStrategy<Value>| {
        value.prop_map(move |value| (name.to_owned(), value))
    };
    prop_oneof![
        6 => pair("type", types().boxed()),
        1 => pair("enum", vec(scalar(), 1..4).prop_map(Value::from).boxed()),
        1 => pair("const", scalar().boxed()),
        1 => pair("minimum", (-2i64..3).prop_map(Value::from).boxed()),
        1 => pair("maxLength", (0u64..3).prop_map(Value::from).boxed()),
        1 => pair("maxProperties", (0u64..3).prop_map(Value::from).boxed()),
        1 => pair("minItems", (0u64..3).prop_map(Value::from).boxed()),
        1 => pair("required", proptest::collection::btree_set(name(), 0..2).prop_map(|names| json!(names)).boxed()),
        3 => pair("default", value().boxed()),
        1 => pair("dependentRequired", (name(), name()).prop_map(|(a, b)| json!({a: [b]})).boxed()),
        1 => pair("additionalProperties", any::<bool>().prop_map(Value::from).boxed()),
        1 => pair("propertyNames", (0u64..2).prop_map(|least| json!({"minLength": least})).boxed()),
    ]
}

fn object(keywords: Vec<(String, Value)>) -> Value {
    Value::Object(keywords.into_iter().collect())
}

/// Alternatives that differ only in the type of a member, and of an item.
fn alternatives() -> impl Strategy<Value = (String, Value)> {
    (any::<bool>(), any::<bool>(), name(), vec(types(), 2..4)).prop_map(|(one, list, name, types)| {
        let branch = |kind: Value| match list {
            true => json!({"items": {"type": kind}}),
            false => json!({"properties": {name.clone(): {"type": kind}}}),
        };
        let keyword = if one { "oneOf" } else { "anyOf" };
        (keyword.to_owned(), types.into_iter().map(branch).collect())
    })
}

/// A schema whose references lead to `#/$defs/0` and `#/$defs/1`.
fn part() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        8 => vec(plain_keyword(), 0..3).prop_map(object),
        1 => any::<bool>().prop_map(Value::from),
        1 => (0..2u8).prop_map(|n| json!({"$ref": format!("#/$defs/{n}")})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let list = |name: &'static str| {
            vec(inner.clone(), 1..4).prop_map(move |parts| (name.to_owned(), Value::from(parts))).boxed()
        };
        let one = |name: &'static str| inner.clone().prop_map(move |part| (name.to_owned(), part)).boxed();
        let map = |name: &'static str| {
            vec((super::common::name(), inner.clone()), 1..4)
                .prop_map(move |parts| (name.to_owned(), Value::Object(parts.into_iter().collect())))
                .boxed()
        };
        let keyword = prop_oneof![
            4 => map("properties"),
            2 => one("items"),
            1 => list("prefixItems"),
            1 => list("allOf"),
            2 => list("anyOf"),
            2 => list("oneOf"),
            1 => one("not"),
            1 => one("if"),
            1 => one("then"),
            1 => one("else"),
            1 => one("additionalProperties"),
            1 => one("contains"),
            1 => one("unevaluatedProperties"),
            1 => map("dependentSchemas"),
            2 => alternatives(),
            3 => plain_keyword(),
        ];
        vec(keyword, 1..4).prop_map(object)
    })
    .boxed()
}

/// A whole schema of arguments.
pub fn schema() -> impl Strategy<Value = Value> {
    let draft = prop_oneof![
        4 => Just(None),
        1 => Just(Some("https://json-schema.org/draft/2020-12/schema")),
        1 => Just(Some("http://json-schema.org/draft-07/schema#")),
    ];
    (vec((name(), part()), 1..4), vec(plain_keyword(), 0..2), vec(part(), 2), draft).prop_map(
        |(properties, more, defs, draft)| {
            let mut schema = object(more);
            schema["properties"] = Value::Object(properties.into_iter().collect());
            schema["$defs"] = json!({"0": defs[0], "1": defs[1]});
            if let Some(draft) = draft {
                schema["$schema"] = draft.into();
            }
            schema
        },
    )
}

/// A schema of arguments, and arguments that likely fit it.
pub fn schema_and_arguments() -> impl Strategy<Value = (Value, Map<String, Value>)> {
    (schema(), vec(any::<u8>(), 120)).prop_map(|(schema, chance)| {
        let mut guess = Guess { root: &schema, chance: &chance };
        let members = match guess.value(&schema, 0) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        (schema, members)
    })
}

/// Guesses values from what a schema says about types, members, items and alternatives.
struct Guess<'a> {
    root: &'a Value,
    chance: &'a [u8],
}

impl Guess<'_> {
    fn below(&mut self, end: usize) -> usize {
        match self.chance.split_first() {
            Some((first, rest)) => {
                self.chance = rest;
                usize::from(*first) % end.max(1)
            }
            None => 0,
        }
    }

    fn one<'v>(&mut self, of: &'v [Value]) -> Option<&'v Value> {
        let index = self.below(of.len());
        of.get(index)
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let said =
            |keyword: &str| schema.get(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if depth == 0 {
            return self.object(schema, depth);
        }
        if let Some(one) = schema.get("const").cloned().or_else(|| self.one(said("enum")).cloned()) {
            return one;
        }
        let target = schema.get("$ref").and_then(|reference| self.root.pointer(&reference.as_str()?[1..]));
        for part in [target, self.one(said("anyOf")), self.one(said("oneOf")), said("allOf").first()] {
            if let Some(part) = part.filter(|_| depth < 6) {
                return self.value(part, depth + 1);
            }
        }
        let word = match schema.get("type") {
            Some(Value::Array(words)) => self.one(words).and_then(Value::as_str).map(str::to_owned),
            Some(word) => word.as_str().map(str::to_owned),
            None if schema.get("properties").is_some() => Some("object".to_owned()),
            None if schema.get("items").is_some() || schema.get("prefixItems").is_some() => {
                Some("array".to_owned())
            }
            None => None,
        };
        let number = self.below(7) as i64 - 3;
        let texts = ["1", "-2", "1.5", "true", "null", "[1]", "{}", "x", ""];
        match word.as_deref() {
            Some("null") => Value::Null,
            Some("boolean") => (number > 0).into(),
            Some("integer") if self.below(2) == 0 => Value::from(number as f64),
            Some("integer") => number.into(),
            Some("number") => Value::from(number as f64 / 2.0),
            Some("array") => {
                let first = said("prefixItems").to_vec();
                let more = schema.get("items").cloned();
                let count = self.below(4);
                (0..count)
                    .map(|at| {
                        first
                            .get(at)
                            .or(more.as_ref())
                            .map_or(Value::from(at), |part| self.value(part, depth + 1))
                    })
                    .collect()
            }
            Some("object") => self.object(schema, depth),
            Some(_) => texts[self.below(texts.len())].into(),
            None => [
                json!(number),
                json!(texts[self.below(texts.len())]),
                json!([texts[0]]),
                json!({"a": texts[0]}),
            ][self.below(4)]
            .clone(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        members.extend(required.filter_map(|name| Some((name.as_str()?.to_owned(), json!("1")))));
        for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if self.below(4) > 0 {
                let value = self.value(part, depth + 1);
                members.insert(name.clone(), value);
            }
        }
        Value::Object(members)
    }
}

/// The same to JSON Schema, for which 1 is 1.0.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

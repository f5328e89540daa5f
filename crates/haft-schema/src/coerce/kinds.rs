//! Which kinds of values a schema allows at all.

use std::ops::{BitAnd, BitOr};

use serde_json::{Map, Value};

use super::Walk;

/// How far references and unions are followed for one value.
const MAX_NESTED: usize = 32;

/// A set of kinds of values. A number with a fraction and one without are two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const INTEGER: Self = Self(1 << 2);
    pub(super) const FRACTION: Self = Self(1 << 3);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const ALL: Self = Self(0x7f);

    /// The kind of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => Self::FRACTION,
                _ => Self::INTEGER,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Those of a word of `type`.
    fn named(name: &Value) -> Self {
        match name.as_str() {
            Some("null") => Self::NULL,
            Some("boolean") => Self::BOOLEAN,
            Some("integer") => Self::INTEGER,
            Some("number") => Self::INTEGER | Self::FRACTION,
            Some("string") => Self::STRING,
            Some("array") => Self::ARRAY,
            Some("object") => Self::OBJECT,
            _ => Self::ALL,
        }
    }

    /// Whether both have a kind.
    pub(super) fn has(self, other: Self) -> bool {
        self & other != Self::NONE
    }
}

impl BitAnd for Kinds {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Kinds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl<'s> Walk<'s> {
    /// Whether one more schema may be looked at.
    fn pays(&self, nested: usize) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0 && nested < MAX_NESTED
    }

    /// The kinds that a schema may allow; those that are not among them it surely refuses.
    pub(super) fn allowed(&self, schema: &'s Value, nested: usize) -> Kinds {
        let schema = match schema {
            Value::Object(schema) if self.pays(nested) => schema,
            Value::Bool(false) => return Kinds::NONE,
            _ => return Kinds::ALL,
        };
        let target = self.local.target(schema);
        let mut allowed = target.map_or(Kinds::ALL, |target| self.allowed(target, nested + 1));
        allowed = allowed
            & match schema.get("type") {
                Some(Value::Array(names)) => union(names.iter().map(Kinds::named)),
                Some(name) => Kinds::named(name),
                None => Kinds::ALL,
            };
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            allowed = allowed & union(options.iter().map(Kinds::of));
        }
        for part in list(schema, "allOf") {
            allowed = allowed & self.allowed(part, nested + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if schema.contains_key(keyword) {
                let branches = list(schema, keyword).iter().map(|branch| self.allowed(branch, nested + 1));
                allowed = allowed & union(branches);
            }
        }
        allowed
    }

    /// The schemas that surely hold for a value of this kind, if `schemas` do.
    pub(super) fn parts(&self, schemas: &[&'s Value], kind: Kinds) -> Vec<&'s Map<String, Value>> {
        let mut parts = Vec::new();
        for schema in schemas {
            self.flatten(schema, kind, 0, &mut parts);
        }
        parts
    }

    fn flatten(
        &self,
        schema: &'s Value,
        kind: Kinds,
        nested: usize,
        parts: &mut Vec<&'s Map<String, Value>>,
    ) {
        let Value::Object(schema) = schema else { return };
        if !self.pays(nested) {
            return;
        }
        if let Some(target) = self.local.target(schema) {
            self.flatten(target, kind, nested + 1, parts);
        }
        parts.push(schema);
        for part in list(schema, "allOf") {
            self.flatten(part, kind, nested + 1, parts);
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut open = list(schema, keyword).iter().filter(|branch| self.allowed(branch, 0).has(kind));
            if let (Some(only), None) = (open.next(), open.next()) {
                self.flatten(only, kind, nested + 1, parts);
            }
        }
    }
}

fn union(kinds: impl Iterator<Item = Kinds>) -> Kinds {
    kinds.fold(Kinds::NONE, |all, one| all | one)
}

fn list<'s>(schema: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

//! `"5"` where 5 was meant: models send strings where numbers belong.
//!
//! A value changes only where its type is surely wrong there, so a value that fits its schema stays as it is; and only
//! to one that says the same, so nothing is lost.

mod kinds;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use self::kinds::Kinds;
use crate::bounds::MAX_DEPTH;
use crate::dialect::to_2020_12;
use crate::local::Local;
use crate::pointer::push_segment;

/// How many schemas may be looked at, over all values. Where that is not enough, the rest stays as it is.
const BUDGET: u32 = 1_000_000;
/// The longest string that is taken for a number.
const LONGEST_SCALAR: usize = 64;

/// Turns members into the type that the schema asks for, where nothing is lost, and gives the pointers of those that
/// it changed.
///
/// - A string that is the JSON text of an allowed value becomes that value: `"5"`, `"true"`, `"null"`, `"[1, 2]"`.
///   A number must be written the one way that JSON writes it, so `"05"` and `"1.50"` stay.
/// - An integer becomes a string where only a string will do: `5` becomes `"5"`.
/// - A float without a fraction becomes the same integer where only integers will do: `5.0` becomes `5`. (To JSON
///   Schema the two are the same value; to a program that reads an integer they are not.)
///
/// References into the schema are followed, and unions where only one alternative allows the type of the value, such
/// as "an object or null". A value that fits the schema never changes, but for floats as said.
///
/// ```
/// use serde_json::json;
/// let schema = json!({"properties": {
///     "n": {"type": "integer"}, "s": {"type": "string"}, "list": {"items": {"type": "integer"}, "type": "array"}
/// }});
/// let mut arguments = json!({"n": "5", "s": "5", "list": "[1, \"2\"]"}).as_object().unwrap().clone();
/// assert_eq!(haft_schema::coerce(&schema, &mut arguments), ["/list", "/list/1", "/n"]);
/// assert_eq!(arguments, *json!({"n": 5, "s": "5", "list": [1, 2]}).as_object().unwrap());
/// ```
pub fn coerce(schema: &Value, arguments: &mut Map<String, Value>) -> Vec<String> {
    let Ok(converted) = to_2020_12(schema) else { return Vec::new() };
    let schema = &*converted.schema;
    let Some(local) = Local::of(schema) else {
        return Vec::new();
    };
    let mut walk = Walk { local, budget: Cell::new(BUDGET), changed: Vec::new() };
    let parts = walk.parts(&[schema], Kinds::OBJECT);
    walk.members(&parts, arguments, "", 1);
    walk.changed
}

struct Walk<'s> {
    local: Local<'s>,
    budget: Cell<u32>,
    changed: Vec<String>,
}

impl<'s> Walk<'s> {
    /// `parts` are schemas that hold for the object itself.
    fn members(
        &mut self,
        parts: &[&'s Map<String, Value>],
        object: &mut Map<String, Value>,
        at: &str,
        depth: usize,
    ) {
        for (name, value) in object {
            let schemas: Vec<&Value> = parts.iter().filter_map(|part| member(part, name)).collect();
            if !schemas.is_empty() {
                let mut pointer = at.to_owned();
                push_segment(&mut pointer, name);
                self.one(&schemas, value, pointer, depth + 1);
            }
        }
    }

    fn items(&mut self, parts: &[&'s Map<String, Value>], items: &mut [Value], at: &str, depth: usize) {
        for (index, value) in items.iter_mut().enumerate() {
            let schemas: Vec<&Value> = parts.iter().filter_map(|part| item(part, index)).collect();
            if !schemas.is_empty() {
                self.one(&schemas, value, format!("{at}/{index}"), depth + 1);
            }
        }
    }

    /// `schemas` all hold for the value.
    fn one(&mut self, schemas: &[&'s Value], value: &mut Value, pointer: String, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let allowed = schemas.iter().fold(Kinds::ALL, |allowed, schema| allowed & self.allowed(schema, 0));
        if let Some(better) = meant(value, allowed) {
            *value = better;
            self.changed.push(pointer.clone());
        }
        match value {
            Value::Object(object) => {
                let parts = self.parts(schemas, Kinds::OBJECT);
                self.members(&parts, object, &pointer, depth);
            }
            Value::Array(items) => {
                let parts = self.parts(schemas, Kinds::ARRAY);
                self.items(&parts, items, &pointer, depth);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The schema of an item.
fn item(part: &Map<String, Value>, index: usize) -> Option<&Value> {
    let first = part.get("prefixItems").and_then(Value::as_array);
    let first = first.map_or(&[][..], Vec::as_slice);
    first.get(index).or_else(|| part.get("items"))
}

/// The schema of a member.
fn member<'s>(part: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    let named = part.get("properties").and_then(|properties| properties.get(name));
    // Whether a pattern takes the member out of `additionalProperties` is not looked at.
    named.or_else(|| part.get("additionalProperties").filter(|_| !part.contains_key("patternProperties")))
}

/// The value that was meant, where this one is not allowed and that one is and says the same.
fn meant(value: &Value, allowed: Kinds) -> Option<Value> {
    match value {
        Value::Number(number) if number.is_f64() && !allowed.has(Kinds::FRACTION) => {
            if allowed.has(Kinds::INTEGER) { whole(number) } else { None }
        }
        value if allowed.has(Kinds::of(value)) => None,
        Value::String(text) => read(text).filter(|read| {
            // 5.0 is an integer, and "5.0" is not how one is written.
            let fits = !read.is_f64() || allowed.has(Kinds::FRACTION);
            fits && allowed.has(Kinds::of(read))
        }),
        // A float may have been written in another way than it would be now: 1.10 is 1.1 here.
        Value::Number(number) if allowed.has(Kinds::STRING) && !number.is_f64() => {
            Some(Value::String(number.to_string()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value whose JSON text this is.
fn read(text: &str) -> Option<Value> {
    match text.trim_start().as_bytes().first() {
        Some(b'[' | b'{') => haft_core::json::parse(text).ok(),
        Some(_) if text.len() <= LONGEST_SCALAR => {
            let value: Value = serde_json::from_str(text).ok()?;
            let written = value.to_string();
            (written == text && !value.is_string()).then_some(value)
        }
        _ => None,
    }
}

/// The same number as an integer of 64 bits.
fn whole(number: &Number) -> Option<Value> {
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // Without a fraction and within bounds, the casts are exact.
    match float {
        zero if zero == 0.0 && zero.is_sign_negative() => None,
        _ if (0.0..2.0 * I64_END).contains(&float) => Some(Value::from(float as u64)),
        _ if (-I64_END..0.0).contains(&float) => Some(Value::from(float as i64)),
        _ => None,
    }
}

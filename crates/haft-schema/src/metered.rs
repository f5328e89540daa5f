//! JSON values that count how often a validator looks at them, and end the validation when it is too often.
//!
//! The time a JSON Schema takes is not bounded by its size: `{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}` under a
//! property doubles the work at each level of the content. The library has no limit of its own, so the limit sits in
//! what it reads: once the budget is spent, every value looks like null and every property is there, so that the
//! validation ends at once. Its outcome is then thrown away.
//!
//! Errors inside of a union hold a copy of the value that they are about, so a union with many branches could copy
//! the content thousands of times. Where it is safe they get a short stand-in instead; else the copies are paid for.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Number, Value};

/// Looks that an error costs: it takes far more memory than a look.
const ERROR_COST: u64 = 50;
/// Looks that each value in the copy that an error may take costs.
const COPY_COST: u64 = 8;
/// Looks that a string costs where a pattern may go over it again and again.
const BACKTRACK_COST: u64 = 500;
/// Characters of a string in a stand-in.
const KEPT: usize = 100;

static NULL: Value = Value::Null;
/// For values that are not part of the content: names of properties. They are short, so errors hold them whole.
static UNMETERED: Meter = Meter { left: AtomicU64::new(u64::MAX), patterns: Patterns::Backtracking };

/// Which patterns the schema has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patterns {
    /// Those that take one pass over a string. Errors may then hold stand-ins.
    Linear,
    /// Some with look-around or back-references. When one of them gives up, the library looks up errors' values in
    /// the content, so the values must be the real ones.
    Backtracking,
}

/// How many looks are left.
pub(crate) struct Meter {
    left: AtomicU64,
    patterns: Patterns,
}

impl Meter {
    pub(crate) fn new(budget: u64, patterns: Patterns) -> Self {
        Self { left: AtomicU64::new(budget), patterns }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    /// Takes `cost`; false when nothing is left.
    fn take(&self, cost: u64) -> bool {
        let left = self.left.load(Relaxed).saturating_sub(cost);
        self.left.store(left, Relaxed);
        left > 0
    }
}

/// The representation, for `jsonschema::options_for::<Metered>()`.
pub(crate) struct Metered;

/// A value and the meter that counts looks at it.
#[derive(Clone, Copy)]
pub(crate) struct MeteredValue<'a> {
    value: &'a Value,
    meter: &'a Meter,
}

impl<'a> MeteredValue<'a> {
    pub(crate) fn new(value: &'a Value, meter: &'a Meter) -> Self {
        Self { value, meter }
    }

    /// The value, or null when the budget is spent.
    fn look(&self) -> &'a Value {
        if self.meter.take(1) { self.value } else { &NULL }
    }

    fn with(&self, value: &'a Value) -> Self {
        Self { value, meter: self.meter }
    }
}

impl Json for Metered {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(MeteredValue<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(MeteredValue { value: buffer, meter: &UNMETERED })
    }
}

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        let members = self.look().as_object()?;
        Some(MeteredObject { whole: *self, members })
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        let items = self.look().as_array()?;
        Some(MeteredArray { whole: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let string = self.look().as_str()?;
        self.meter.take(match self.meter.patterns {
            Patterns::Linear => string.len() as u64 / 64,
            Patterns::Backtracking => BACKTRACK_COST,
        });
        Some(Cow::Borrowed(string))
    }

    fn as_number(&self) -> Option<&'a Number> {
        match self.look() {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn json_type(&self) -> JsonType {
        match self.look() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        !self.meter.take(1) || cmp::equal(self.value, expected)
    }

    /// For errors only.
    fn to_value(&self) -> Cow<'a, Value> {
        if self.meter.patterns == Patterns::Backtracking {
            if !self.meter.is_spent() {
                self.meter.take(ERROR_COST + COPY_COST * size(self.value));
            }
            return Cow::Borrowed(self.value);
        }
        self.meter.take(ERROR_COST);
        Cow::Owned(match self.value {
            Value::Array(_) => Value::Array(Vec::new()),
            Value::Object(_) => Value::Object(Map::new()),
            Value::String(string) => Value::String(string.chars().take(KEPT).collect()),
            scalar => scalar.clone(),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.meter.take(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

/// How many values are in `value`. Only for values whose depth is known to be bounded.
fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<u64>(),
        _ => 1,
    }
}

#[derive(Clone, Copy)]
pub(crate) struct MeteredObject<'a> {
    whole: MeteredValue<'a>,
    members: &'a Map<String, Value>,
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    /// Once the budget is spent every property is there: a missing one would be one more error.
    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        if self.whole.meter.take(1) {
            self.members.get(key).map(|value| self.whole.with(value))
        } else {
            Some(self.whole.with(&NULL))
        }
    }

    fn members(&self) -> MeteredMembers<'a> {
        MeteredMembers { whole: self.whole, members: self.members.iter() }
    }
}

pub(crate) struct MeteredMembers<'a> {
    whole: MeteredValue<'a>,
    members: serde_json::map::Iter<'a>,
}

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.whole.meter.take(1) {
            return None;
        }
        self.members.next().map(|(key, value)| (key.as_str(), self.whole.with(value)))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct MeteredArray<'a> {
    whole: MeteredValue<'a>,
    items: &'a [Value],
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = MeteredItems<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> MeteredItems<'a> {
        MeteredItems { whole: self.whole, items: self.items.iter() }
    }

    fn is_unique(&self) -> bool {
        !self.whole.meter.take(self.items.len() as u64) || unique::is_unique(self.items)
    }
}

pub(crate) struct MeteredItems<'a> {
    whole: MeteredValue<'a>,
    items: std::slice::Iter<'a, Value>,
}

impl<'a> Iterator for MeteredItems<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.whole.meter.take(1) {
            return None;
        }
        self.items.next().map(|value| self.whole.with(value))
    }
}

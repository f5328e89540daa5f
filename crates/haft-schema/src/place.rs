//! Where in a schema something is, and by what address others can refer to it.

use jsonschema::{Uri, uri};
use serde_json::Value;

use crate::pointer::push_segment;

/// The root of a schema that has no `$id`.
pub(crate) const NO_ID: &str = "json-schema:///";

/// A schema, and the address of what it is in.
#[derive(Clone)]
pub(crate) struct Place<'s> {
    pub(crate) schema: &'s Value,
    pub(crate) base: String,
    pub(crate) pointer: String,
    pub(crate) dialect: Dialect,
}

/// How a schema names its address.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) id: &'static str,
    /// Whether nothing beside a `$ref` counts.
    reference_alone: bool,
}

impl<'s> Place<'s> {
    /// The whole of a schema that has no other address.
    pub(crate) fn root(schema: &'s Value) -> Self {
        Self::whole(schema, NO_ID.to_owned(), String::new())
    }

    /// The whole of a document that was given under `address`. Pointers into it begin with that.
    pub(crate) fn document(schema: &'s Value, address: &str) -> Self {
        Self::whole(schema, address.to_owned(), format!("{address}#"))
    }

    fn whole(schema: &'s Value, base: String, pointer: String) -> Self {
        let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let dialect = Dialect {
            id: if draft.contains("draft-04") { "id" } else { "$id" },
            reference_alone: draft.contains("draft-0"),
        };
        Self { schema, base, pointer, dialect }
    }

    /// The address of the schema itself, which is that of what is in it.
    pub(crate) fn address(&self) -> String {
        let Value::Object(object) = self.schema else {
            return self.base.clone();
        };
        match object.get(self.dialect.id) {
            Some(Value::String(id)) if !id.starts_with('#') => {
                let ignored = self.dialect.reference_alone && object.contains_key("$ref");
                if ignored { self.base.clone() } else { join(&self.base, id) }
            }
            _ => self.base.clone(),
        }
    }

    /// What is under `name` in it.
    pub(crate) fn below(&self, name: &str, schema: &'s Value, base: String) -> Self {
        let mut pointer = self.pointer.clone();
        push_segment(&mut pointer, name);
        Self { schema, base, pointer, dialect: self.dialect }
    }
}

/// What is in it, schema or not.
pub(crate) fn children<'s>(place: &Place<'s>) -> impl Iterator<Item = Place<'s>> + use<'s> {
    let named: Box<dyn Iterator<Item = (String, &'s Value)>> = match place.schema {
        Value::Object(object) => Box::new(object.iter().map(|(name, value)| (name.clone(), value))),
        Value::Array(items) => Box::new(items.iter().enumerate().map(|(at, value)| (at.to_string(), value))),
        _ => Box::new(std::iter::empty()),
    };
    let (place, base) = (place.clone(), place.address());
    named
        .filter(|(_, value)| value.is_object() || value.is_array())
        .map(move |(name, schema)| place.below(&name, schema, base.clone()))
}

/// The absolute form of `address`, without what follows `#`.
pub(crate) fn join(base: &str, address: &str) -> String {
    let address = address.split('#').next().unwrap_or_default();
    if address.is_empty() {
        return base.to_owned();
    }
    let base = uri::from_str(base);
    let joined = base.and_then(|base: Uri<String>| uri::resolve_against(&base.borrow(), address));
    joined.map_or_else(|_| address.to_owned(), |uri| uri.as_str().to_owned())
}

/// Undoes percent-encoding.
pub(crate) fn decode(fragment: &str) -> String {
    let mut decoded = Vec::new();
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let encoded = match rest {
            [b'%', high, low, ..] => char::from(*high).to_digit(16).zip(char::from(*low).to_digit(16)),
            _ => None,
        };
        match encoded.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &rest[3..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

//! One dialect inside: JSON Schema 2020-12. A schema that names an older draft is converted before it is compiled.
//!
//! What a caller stored, signed or compares stays as it came; the converted schema lives only in here.

mod convert;
mod pointers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use haft_core::ToolDefinition;
use serde_json::Value;

use crate::BadSchema;
use crate::bounds::{MAX_DEPTH, depth_and_size};
use crate::keywords::each_schema;

/// The address of the dialect that haft checks with.
pub(crate) const OURS: &str = "https://json-schema.org/draft/2020-12/schema";

/// A draft of JSON Schema that haft can read.
///
/// ```
/// use haft_schema::Draft;
/// let schema = serde_json::json!({"$schema": "http://json-schema.org/draft-07/schema#"});
/// assert_eq!(haft_schema::to_2020_12(&schema).unwrap().draft, Draft::Seven);
/// assert!(Draft::Four < Draft::Newest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    /// draft-04.
    Four,
    /// draft-06.
    Six,
    /// draft-07.
    Seven,
    /// 2019-09.
    Nineteen,
    /// 2020-12, which is what a schema is in that names no draft.
    Newest,
}

impl Draft {
    /// The draft that has this address; none where haft does not know it.
    fn at(address: &str) -> Option<Self> {
        let address = address.trim_end_matches('#');
        let plain = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
        Some(match plain {
            "json-schema.org/draft-04/schema" => Self::Four,
            "json-schema.org/draft-06/schema" => Self::Six,
            "json-schema.org/draft-07/schema" => Self::Seven,
            "json-schema.org/draft/2019-09/schema" => Self::Nineteen,
            "json-schema.org/draft/2020-12/schema" => Self::Newest,
            _ => return None,
        })
    }

    /// Whether nothing beside a `$ref` counts.
    pub(crate) fn reference_alone(self) -> bool {
        self <= Self::Seven
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Four => "draft-04",
            Self::Six => "draft-06",
            Self::Seven => "draft-07",
            Self::Nineteen => "2019-09",
            Self::Newest => "2020-12",
        })
    }
}

/// A schema in 2020-12 that accepts what it accepted in its own draft.
///
/// ```
/// use serde_json::json;
/// let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
/// let converted = haft_schema::to_2020_12(&old).unwrap();
/// assert_eq!(converted.schema["prefixItems"], json!([{"type": "string"}]));
/// assert_eq!(converted.source_pointer("/prefixItems/0/type"), "/items/0/type");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Converted<'s> {
    /// The schema; the one that came, where it was in 2020-12 already.
    pub schema: Cow<'s, Value>,
    /// The draft that it came in.
    pub draft: Draft,
    /// Whether `format` is checked: up to draft-07 it was, since then it is a note.
    pub checks_formats: bool,
    /// The pointers of its schemas whose last step has another name than in the source, each with that.
    places: BTreeMap<String, String>,
}

impl<'s> Converted<'s> {
    fn unchanged(schema: &'s Value) -> Self {
        let schema = Cow::Borrowed(schema);
        Self { schema, draft: Draft::Newest, checks_formats: false, places: BTreeMap::new() }
    }

    /// Where in the source a place of the converted schema came from.
    #[must_use]
    pub fn source_pointer(&self, pointer: &str) -> String {
        let mut end = pointer.len();
        loop {
            if let Some(source) = self.places.get(&pointer[..end]) {
                return format!("{source}{}", &pointer[end..]);
            }
            match pointer[..end].rfind('/') {
                Some(start) => end = start,
                None => return pointer.to_owned(),
            }
        }
    }

    /// The same problem, at its place in the source.
    pub(crate) fn at_source(&self, error: BadSchema) -> BadSchema {
        BadSchema { pointer: self.source_pointer(&error.pointer), ..error }
    }
}

/// Why a schema cannot be converted: it would accept other values than in its own draft.
///
/// ```
/// let part = serde_json::json!({"items": {"$schema": "http://json-schema.org/draft-04/schema#"}});
/// let refused = haft_schema::to_2020_12(&part).unwrap_err();
/// assert_eq!(refused.pointer, "/items/$schema");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconvertible {
    /// JSON pointer of the place in the source.
    pub pointer: String,
    /// What is there, and what to write instead.
    pub message: String,
}

impl Unconvertible {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

impl From<Unconvertible> for BadSchema {
    fn from(why: Unconvertible) -> Self {
        BadSchema::new(why.pointer, why.message)
    }
}

/// The same schema in JSON Schema 2020-12.
///
/// A schema that names no draft is in 2020-12 already. One that names an address that is not of json-schema.org stays as
/// it is, too: whether its meta-schema is known is found out when it is compiled.
///
/// # Errors
///
/// When it names a draft that haft does not know, or cannot say the same in 2020-12.
///
/// ```
/// use serde_json::json;
/// let old = json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true});
/// let converted = haft_schema::to_2020_12(&old).unwrap();
/// let expected = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "exclusiveMinimum": 1});
/// assert_eq!(*converted.schema, expected);
/// ```
pub fn to_2020_12(schema: &Value) -> Result<Converted<'_>, Unconvertible> {
    convert_as(schema, Draft::Newest)
}

/// The same, for a document that is in the draft `otherwise` where it names none.
pub(crate) fn convert_as(schema: &Value, otherwise: Draft) -> Result<Converted<'_>, Unconvertible> {
    let Some(draft) = draft_of(schema, otherwise)? else { return Ok(Converted::unchanged(schema)) };
    // How deep it may be is told when it is compiled; here it only must not exhaust the stack.
    if depth_and_size(schema).0 > MAX_DEPTH {
        return Ok(Converted::unchanged(schema));
    }
    one_draft(schema, draft)?;
    if draft == Draft::Newest {
        return Ok(Converted::unchanged(schema));
    }
    convert::whole(schema, draft)
}

/// The draft of a schema; none where its address is not one of json-schema.org.
fn draft_of(schema: &Value, otherwise: Draft) -> Result<Option<Draft>, Unconvertible> {
    let Some(Value::String(address)) = schema.get("$schema") else { return Ok(Some(otherwise)) };
    let known = Draft::at(address);
    if known.is_none() && address.contains("//json-schema.org/") {
        let message = format!(
            "expected draft-04, -06, -07, 2019-09 or 2020-12, got {address:?}; write the schema in 2020-12, \
             and {OURS:?} here"
        );
        return Err(Unconvertible::new("/$schema", message));
    }
    Ok(known)
}

/// Refuses parts that name another draft than the whole: the same words would mean two things in one schema.
fn one_draft(schema: &Value, draft: Draft) -> Result<(), Unconvertible> {
    let mut other = None;
    each_schema(schema, &mut |pointer, part| {
        let named = part.get("$schema").and_then(Value::as_str).filter(|_| !pointer.is_empty());
        if let Some(address) = named.filter(|address| Draft::at(address).is_some_and(|own| own != draft)) {
            other.get_or_insert_with(|| (format!("{pointer}/$schema"), address.to_owned()));
        }
    });
    match other {
        Some((pointer, address)) => {
            let message = format!(
                "expected one draft in the whole schema ({draft}), got {address:?}; write this part in {draft}, too"
            );
            Err(Unconvertible::new(pointer, message))
        }
        None => Ok(()),
    }
}

/// What a person should know about a definition's schemas: those that were read as another draft than they name.
///
/// ```
/// use haft_core::{Parameters, ToolDefinition};
/// let mut definition = ToolDefinition::new("count", "Counts");
/// definition.parameters =
///     Parameters::Schema(serde_json::json!({"$schema": "http://json-schema.org/draft-07/schema#"}));
/// let notes = haft_schema::dialect_notes(&definition);
/// assert_eq!(notes, ["parameters: written in JSON Schema draft-07, read as 2020-12"]);
/// ```
#[must_use]
pub fn dialect_notes(definition: &ToolDefinition) -> Vec<String> {
    let parameters = definition.parameters.to_schema();
    let schemas = [
        ("parameters", Some(&parameters)),
        ("outputSchema", definition.output_schema.as_ref()),
        ("settingsSchema", definition.settings_schema.as_ref()),
    ];
    let note = |(place, schema): (&str, Option<&Value>)| {
        let draft = draft_of(schema?, Draft::Newest).ok()??;
        (draft != Draft::Newest)
            .then(|| format!("{place}: written in JSON Schema {draft}, read as {}", Draft::Newest))
    };
    schemas.into_iter().filter_map(note).collect()
}

#[cfg(test)]
mod tests;

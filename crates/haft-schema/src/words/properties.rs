//! Words for properties that are missing, or that nobody knows.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use super::show::{got, listed, quoted, unescape};
use super::{Mismatch, Place, SchemaProblem, Words, rule};
use haft_core::suggest::nearest;

impl Words<'_> {
    pub(super) fn missing(&self, error: &ValidationError<'_>, name: &str, value: &Value) -> Mismatch {
        let known = self.known_properties(error);
        let unknown = value.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let unknown = unknown.filter(|name| known.is_none_or(|known| !known.contains_key(*name)));
        let hint = nearest(name, unknown.clone())
            .map(|near| format!("rename {} to {}", quoted(near), quoted(name)))
            .or_else(|| wrapped(name, value, unknown));
        let message = match self.dependent_on(error, name, value) {
            Some(other) => {
                format!("missing property {}, required as {} is there", quoted(name), quoted(other))
            }
            None => format!("missing required property {}", quoted(name)),
        };
        Mismatch::new(format!("the property {}", quoted(name)), got(value)).message(message).hint(hint)
    }

    /// What to do about a null where it is not allowed, and nothing would be.
    pub(super) fn may_be_absent(&self, error: &ValidationError<'_>) -> Option<String> {
        let (property, _) = error.schema_path().as_str().rsplit_once('/')?;
        let (object, name) = property.rsplit_once("/properties/")?;
        let required = self.schema?.pointer(object)?.get("required").and_then(Value::as_array);
        let name = unescape(name);
        let is_required = required.into_iter().flatten().any(|one| *one == *name);
        (!is_required).then(|| format!("leave {} out", quoted(&name)))
    }

    /// The property whose presence makes `name` required.
    fn dependent_on(&self, error: &ValidationError<'_>, name: &str, value: &Value) -> Option<&str> {
        let dependencies = self.schema?.pointer(error.schema_path().as_str())?.as_object()?;
        let requires =
            |names: &Value| names.as_array().is_some_and(|names| names.iter().any(|one| one == name));
        let mut present = dependencies.iter().filter(|(other, _)| value.get(other).is_some());
        present.find(|(_, names)| requires(names)).map(|(other, _)| other.as_str())
    }

    /// The properties that an error says are unknown.
    pub(super) fn unknown_properties(&self, error: &ValidationError<'_>) -> Option<Vec<String>> {
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                Some(unexpected.clone())
            }
            // With no `properties` beside it, the validator takes it for a schema that nothing matches.
            Kind::FalseSchema if rule(error) == "additionalProperties" => {
                let object = self.whole?.pointer(error.instance_path().as_str())?.as_object()?;
                Some(object.keys().cloned().collect())
            }
            _ => None,
        }
    }

    pub(super) fn unknown_property(&self, error: &ValidationError<'_>, name: &str) -> SchemaProblem {
        let known = self.known_properties(error).into_iter().flat_map(Map::keys).map(String::as_str);
        let shown_name = quoted(name);
        let (expected, more) = match (nearest(name, known.clone()), known.clone().count()) {
            (Some(near), _) => (quoted(near), format!("; did you mean {}?", quoted(near))),
            (None, 0) => ("only known properties".to_owned(), String::new()),
            (None, several) => {
                let one_of = if several == 1 { "" } else { "one of " };
                let expected = format!("{one_of}{}", listed(known, quoted));
                (expected.clone(), format!("; expected {expected}"))
            }
        };
        SchemaProblem {
            pointer: pointer_to(error.instance_path().as_str(), name),
            place: Place::Key,
            rule: rule(error).to_owned(),
            expected,
            message: format!("{shown_name} is not a known property{more}"),
            got: shown_name,
            hint: None,
        }
    }

    /// The `properties` beside the keyword that failed.
    fn known_properties(&self, error: &ValidationError<'_>) -> Option<&Map<String, Value>> {
        let (parent, keyword) = error.schema_path().as_str().rsplit_once('/')?;
        let schema = self.schema?.pointer(parent)?.as_object()?;
        // In a schema with an `$id` inside this one, paths start there; then this is not the place.
        schema.get(keyword)?;
        schema.get("properties")?.as_object()
    }
}

/// What to do about a property that is one level too deep.
fn wrapped<'v>(name: &str, value: &Value, mut unknown: impl Iterator<Item = &'v str>) -> Option<String> {
    let around = unknown.find(|other| value.get(other).is_some_and(|inner| inner.get(name).is_some()))?;
    Some(format!("it is inside of {}: put it directly here", quoted(around)))
}

/// The pointer of a property of the object at `object`.
pub(super) fn pointer_to(object: &str, name: &str) -> String {
    format!("{object}/{}", name.replace('~', "~0").replace('/', "~1"))
}

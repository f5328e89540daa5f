//! Words for properties that are missing, or that nobody knows.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use super::show::{got, listed, quoted};
use super::{Place, Said, SchemaProblem, Words, rule};
use haft_core::suggest::nearest;

impl Words<'_> {
    pub(super) fn missing(&self, error: &ValidationError<'_>, name: &str, value: &Value) -> Said {
        let known = self.known_properties(error);
        let unknown = value.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let unknown = unknown.filter(|name| known.is_none_or(|known| !known.contains_key(*name)));
        let hint = nearest(name, unknown).map(|near| format!("rename {} to {}", quoted(near), quoted(name)));
        let message = match self.dependent_on(error, name, value) {
            Some(other) => {
                format!("missing property {}, required as {} is there", quoted(name), quoted(other))
            }
            None => format!("missing required property {}", quoted(name)),
        };
        Said::new(format!("the property {}", quoted(name)), got(value)).message(message).hint(hint)
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

/// The pointer of a property of the object at `object`.
pub(super) fn pointer_to(object: &str, name: &str) -> String {
    format!("{object}/{}", name.replace('~', "~0").replace('/', "~1"))
}

//! Words for what a JSON Schema validator finds.
//!
//! The validator's own messages name keywords; these say what was expected and what was got, where, and where it
//! can be told, what to do. They go to models and to people.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

mod hints;
mod show;
mod unions;

#[cfg(test)]
mod tests;

use show::{count, got, list, listed, quoted, type_name, unescape};
pub use show::{nearest, shown};

/// One problem of a value, in words.
///
/// ```
/// use haft_tools::validate_content::schema_words::{describe, Place};
/// use serde_json::json;
///
/// let validator = jsonschema::validator_for(&json!({"properties": {"level": {"enum": ["low", "high"]}}}))?;
/// let value = json!({"level": "hihg"});
/// let error = validator.validate(&value).unwrap_err();
/// let problem = describe(&error);
/// assert_eq!((problem.pointer.as_str(), problem.rule.as_str()), ("/level", "enum"));
/// assert_eq!(problem.message, "expected one of \"low\", \"high\", got \"hihg\"");
/// assert_eq!(problem.hint.as_deref(), Some("did you mean \"high\"?"));
/// assert_eq!(problem.place, Place::Value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaProblem {
    /// JSON pointer of the value; empty for the whole.
    pub pointer: String,
    /// Whether the problem is with the value at `pointer` or with the key that leads to it.
    pub place: Place,
    /// The keyword of the schema that the value breaks.
    pub rule: String,
    /// What the schema asks for.
    pub expected: String,
    /// What is there.
    pub got: String,
    /// Both in one sentence.
    pub message: String,
    /// What to do, where that can be told.
    pub hint: Option<String>,
}

/// The pointer and the message.
impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.message)
    }
}

/// What at a pointer has the problem.
///
/// ```
/// use haft_tools::validate_content::schema_words::{describe, Place};
/// use serde_json::json;
///
/// let validator = jsonschema::validator_for(&json!({"properties": {}, "additionalProperties": false}))?;
/// let value = json!({"extra": 1});
/// let problem = describe(&validator.validate(&value).unwrap_err());
/// assert_eq!((problem.pointer.as_str(), problem.place), ("/extra", Place::Key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The value.
    Value,
    /// The key: it should not be there, or should have another name.
    Key,
}

/// Puts an error of the validator into words.
///
/// Several unknown properties of one object become one problem here; [`describe_all`] tells them apart, and knows
/// more, as it has the schema and the whole value.
///
/// ```
/// use haft_tools::validate_content::schema_words::describe;
/// use serde_json::json;
///
/// let validator = jsonschema::validator_for(&json!({"properties": {"age": {"type": "integer"}}}))?;
/// let value = json!({"age": "12"});
/// let problem = describe(&validator.validate(&value).unwrap_err());
/// assert_eq!(problem.to_string(), "/age: expected an integer, got the string \"12\"");
/// assert_eq!(problem.hint.as_deref(), Some("write 12 without quotes"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn describe(error: &ValidationError<'_>) -> SchemaProblem {
    Words {
        schema: None,
        whole: None,
        nested: 0,
    }
    .describe(error)
}

/// The same for an error that was found in `whole` by `schema`, one problem for each unknown property.
///
/// ```
/// use haft_tools::validate_content::schema_words::describe_all;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"color": {}, "size": {}}, "additionalProperties": false});
/// let value = json!({"colour": 1, "size": 2, "weight": 3});
/// let validator = jsonschema::validator_for(&schema)?;
/// let error = validator.validate(&value).unwrap_err();
/// let messages: Vec<String> = describe_all(&error, &schema, &value).into_iter().map(|p| p.message).collect();
/// assert_eq!(messages, [
///     "\"colour\" is not a known property; did you mean \"color\"?",
///     "\"weight\" is not a known property; known are \"color\", \"size\"",
/// ]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn describe_all(error: &ValidationError<'_>, schema: &Value, whole: &Value) -> Vec<SchemaProblem> {
    let words = Words {
        schema: Some(schema),
        whole: Some(whole),
        nested: 0,
    };
    match words.unknown_properties(error) {
        Some(names) => names
            .iter()
            .map(|name| words.unknown_property(error, name))
            .collect(),
        None => vec![words.describe(error)],
    }
}

/// What is known besides the error.
#[derive(Clone, Copy)]
struct Words<'a> {
    schema: Option<&'a Value>,
    whole: Option<&'a Value>,
    /// How many unions this error is inside.
    nested: usize,
}

/// Expected, got; for most keywords the message is made of them.
struct Said {
    expected: String,
    got: String,
    message: Option<String>,
    hint: Option<String>,
}

impl Said {
    fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            got: got.into(),
            message: None,
            hint: None,
        }
    }

    fn message(self, message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..self
        }
    }

    fn hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

impl Words<'_> {
    fn describe(&self, error: &ValidationError<'_>) -> SchemaProblem {
        if let Some([name]) = self.unknown_properties(error).as_deref() {
            return self.unknown_property(error, name);
        }
        let said = self.say(error);
        let message = said
            .message
            .unwrap_or_else(|| format!("expected {}, got {}", said.expected, said.got));
        let object = error.instance_path().as_str();
        let (pointer, place) = match error.kind() {
            Kind::PropertyNames { error: inner } => (
                pointer_to(object, inner.instance().as_str().unwrap_or_default()),
                Place::Key,
            ),
            _ => (object.to_owned(), Place::Value),
        };
        SchemaProblem {
            pointer,
            place,
            rule: rule(error).to_owned(),
            expected: said.expected,
            got: said.got,
            message,
            hint: said.hint,
        }
    }

    fn say(&self, error: &ValidationError<'_>) -> Said {
        let value = self.value(error);
        let items = value.as_array().map_or(0, Vec::len);
        let properties = value.as_object().map_or(0, serde_json::Map::len);
        let characters = value.as_str().map_or(0, |string| string.chars().count());
        match error.kind() {
            Kind::Type { kind } => {
                let expected = match kind {
                    TypeKind::Single(one) => type_name(*one).to_owned(),
                    TypeKind::Multiple(several) => {
                        list(several.iter().map(|one| type_name(one).to_owned()), "or")
                    }
                };
                let hint = hints::wrong_type(kind, value);
                Said::new(expected, got(value)).hint(hint)
            }
            Kind::Required { property } => self.missing(error, property.as_str().unwrap_or_default(), value),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let names = listed(unexpected.iter().map(|name| quoted(name)));
                Said::new("only known properties", names.clone())
                    .message(format!("{names} are not known properties"))
            }
            Kind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                let hint = hints::near_option(options, value);
                match options {
                    [only] => Said::new(shown(only), shown(value)).hint(hint),
                    _ => Said::new(
                        format!("one of {}", listed(options.iter().map(shown))),
                        shown(value),
                    )
                    .hint(hint),
                }
            }
            Kind::Constant { expected_value } => Said::new(shown(expected_value), shown(value)),
            Kind::Minimum { limit } => Said::new(format!("at least {limit}"), shown(value)),
            Kind::Maximum { limit } => Said::new(format!("at most {limit}"), shown(value)),
            Kind::ExclusiveMinimum { limit } => Said::new(format!("more than {limit}"), shown(value)),
            Kind::ExclusiveMaximum { limit } => Said::new(format!("less than {limit}"), shown(value)),
            Kind::MultipleOf { multiple_of } => {
                Said::new(format!("a multiple of {multiple_of}"), shown(value))
            }
            Kind::MinLength { limit } => {
                let expected = format!("a string of at least {}", count(*limit, "character"));
                Said::new(expected, format!("{characters} in {}", shown(value)))
            }
            Kind::MaxLength { limit } => {
                let expected = format!("a string of at most {}", count(*limit, "character"));
                Said::new(expected, format!("{characters} in {}", shown(value)))
            }
            Kind::MinItems { limit } => {
                Said::new(format!("at least {}", count(*limit, "item")), items.to_string())
            }
            Kind::MaxItems { limit } => {
                Said::new(format!("at most {}", count(*limit, "item")), items.to_string())
            }
            Kind::MinProperties { limit } => Said::new(
                format!("at least {}", count(*limit, "property")),
                properties.to_string(),
            ),
            Kind::MaxProperties { limit } => Said::new(
                format!("at most {}", count(*limit, "property")),
                properties.to_string(),
            ),
            Kind::Pattern { pattern } => Said::new(
                format!("a string that matches the pattern `{}`", show::cut(pattern)),
                shown(value),
            ),
            Kind::Format { format } => {
                Said::new(format!("a string in the format {}", quoted(format)), shown(value))
            }
            Kind::UniqueItems => Said::new("items that differ from each other", hints::equal_items(value)),
            Kind::Contains => self.contains(error, items),
            Kind::AdditionalItems { limit } => Said::new(
                format!("at most {}", count(*limit as u64, "item")),
                items.to_string(),
            ),
            Kind::UnevaluatedItems { unexpected } => {
                Said::new("no other items", format!("{} more", unexpected.len()))
            }
            Kind::FalseSchema => self.forbidden(error, value),
            Kind::Not { schema } => {
                let expected = format!("a value that does not match {}", shown(schema));
                Said::new(expected, got(value))
            }
            Kind::AnyOf { context } => self.no_alternative(error, context, value),
            Kind::OneOfNotValid { context } => self.no_alternative(error, context, value),
            Kind::OneOfMultipleValid { context } => unions::several_alternatives(context, value),
            Kind::PropertyNames { error: inner } => {
                let said = Words { whole: None, ..*self }.describe(inner);
                let name = shown(inner.instance());
                let message = format!(
                    "{name} is not allowed as the name of a property: {}",
                    said.message
                );
                Said::new(said.expected, said.got)
                    .message(message)
                    .hint(said.hint)
            }
            Kind::ContentEncoding { content_encoding } => Said::new(
                format!("a string in the encoding {}", quoted(content_encoding)),
                shown(value),
            ),
            Kind::ContentMediaType { content_media_type } => Said::new(
                format!("a string that holds {}", quoted(content_media_type)),
                shown(value),
            ),
            Kind::FromUtf8 { error } => {
                Said::new("text in UTF-8 inside the encoded string", error.to_string())
            }
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
                let message = format!("the pattern takes too long to match against {}", shown(value));
                Said::new("a string that the pattern can be matched against", shown(value)).message(message)
            }
            Kind::Custom { message, .. } => Said::new("", shown(value)).message(message.clone()),
            Kind::Referencing(error) => Said::new("", "").message(error.to_string()),
        }
    }

    /// The value that has the problem. Errors may hold a stand-in, so the whole is asked first.
    fn value<'v>(&'v self, error: &'v ValidationError<'_>) -> &'v Value {
        let there = self
            .whole
            .and_then(|whole| whole.pointer(error.instance_path().as_str()));
        there.unwrap_or_else(|| error.instance())
    }

    fn missing(&self, error: &ValidationError<'_>, name: &str, value: &Value) -> Said {
        let there: Vec<&str> = value
            .as_object()
            .into_iter()
            .flat_map(|o| o.keys())
            .map(String::as_str)
            .collect();
        let got = match there.as_slice() {
            [] => "an empty object".to_owned(),
            names => format!("an object with {}", listed(names.iter().map(|name| quoted(name)))),
        };
        let known = self.known_properties(error);
        let unknown = there.iter().copied().filter(|name| !known.contains(name));
        let hint = nearest(name, unknown).map(|near| format!("rename {} to {}", quoted(near), quoted(name)));
        let message = match error
            .schema_path()
            .as_str()
            .rsplit('/')
            .find(|step| step.parse::<usize>().is_err())
        {
            Some("dependentRequired" | "dependencies") => {
                format!(
                    "missing property {}, which the other properties require",
                    quoted(name)
                )
            }
            _ => format!("missing required property {}", quoted(name)),
        };
        Said::new(format!("the property {}", quoted(name)), got)
            .message(message)
            .hint(hint)
    }

    fn contains(&self, error: &ValidationError<'_>, items: usize) -> Said {
        let limit = self
            .schema
            .and_then(|schema| schema.pointer(error.schema_path().as_str()));
        let number = limit.and_then(Value::as_u64);
        let found = format!("{} and too few that do", count(items as u64, "item"));
        match (rule(error), number) {
            ("maxContains", Some(limit)) => Said::new(
                format!("at most {limit} items that match `contains`"),
                "more".to_owned(),
            ),
            ("maxContains", None) => Said::new("fewer items that match `contains`", "more"),
            ("minContains", Some(limit)) => {
                Said::new(format!("at least {limit} items that match `contains`"), found)
            }
            _ => Said::new(
                "an item that matches `contains`",
                format!("{} and none that does", count(items as u64, "item")),
            ),
        }
    }

    fn forbidden(&self, error: &ValidationError<'_>, value: &Value) -> Said {
        let path = error.schema_path().as_str();
        let name = error
            .instance_path()
            .as_str()
            .rsplit('/')
            .next()
            .map(unescape)
            .unwrap_or_default();
        if path.rsplit('/').nth(1) == Some("properties") {
            let message = format!("the property {} is not allowed here", quoted(&name));
            return Said::new(format!("no property {}", quoted(&name)), got(value)).message(message);
        }
        if matches!(
            rule(error),
            "additionalProperties" | "propertyNames" | "unevaluatedProperties"
        ) {
            return Said::new("an empty object", got(value));
        }
        let message = format!("no value is allowed here, got {}", got(value));
        Said::new("no value", got(value)).message(message)
    }

    /// The properties that an error says are unknown.
    fn unknown_properties(&self, error: &ValidationError<'_>) -> Option<Vec<String>> {
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

    fn unknown_property(&self, error: &ValidationError<'_>, name: &str) -> SchemaProblem {
        let known = self.known_properties(error);
        let shown_name = quoted(name);
        let (expected, more) = match (nearest(name, known.iter().copied()), known.as_slice()) {
            (Some(near), _) => (quoted(near), format!("; did you mean {}?", quoted(near))),
            (None, []) => ("only known properties".to_owned(), String::new()),
            (None, names) => {
                let names = listed(names.iter().map(|name| quoted(name)));
                (format!("one of {names}"), format!("; known are {names}"))
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

    /// The names in `properties` beside the keyword that failed.
    fn known_properties(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let path = error.schema_path().as_str();
        let beside = || {
            let (parent, keyword) = path.rsplit_once('/')?;
            let schema = self.schema?.pointer(parent)?.as_object()?;
            // In a schema with an `$id` inside this one, paths start there; then this is not the place.
            schema
                .contains_key(keyword)
                .then_some(schema.get("properties")?.as_object()?)
        };
        beside()
            .into_iter()
            .flat_map(|properties| properties.keys())
            .map(String::as_str)
            .collect()
    }
}

/// The pointer of a property of the object at `object`.
fn pointer_to(object: &str, name: &str) -> String {
    format!("{object}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The keyword that failed.
fn rule<'e>(error: &'e ValidationError<'_>) -> &'e str {
    let path = error.schema_path().as_str();
    match error.kind() {
        // The validator names these by what they do, not by the keyword.
        Kind::FalseSchema | Kind::Contains => {
            let mut steps = path.rsplit('/');
            let (last, before) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
            // Below these, the last step is a name or a number.
            let whole = [
                "properties",
                "patternProperties",
                "prefixItems",
                "dependentSchemas",
                "allOf",
                "$defs",
            ];
            match (whole.contains(&before), last) {
                (true, _) => before,
                (false, "") => "false",
                (false, last) => last,
            }
        }
        kind => kind.keyword(),
    }
}

//! Words for what a JSON Schema validator finds.
//!
//! The validator's own messages name keywords; these say what was expected and what was got, where, and where it
//! can be told, what to do. They go to models and to people.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value};

mod hints;
mod properties;
mod show;
mod unions;

#[cfg(test)]
mod tests;

use properties::pointer_to;
pub use show::shown;
use show::{count, got, list, listed, quoted, type_name, unescape};

/// One problem of a value, in words.
///
/// ```
/// use haft_schema::words::{describe, Place};
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
/// use haft_schema::words::{describe, Place};
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
/// use haft_schema::words::describe;
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
    Words { schema: None, whole: None, nested: 0 }.describe(error)
}

/// Describes an error that was found in `whole` by `schema`, one problem for each unknown property.
///
/// ```
/// use haft_schema::words::describe_all;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"color": {}, "size": {}}, "additionalProperties": false});
/// let value = json!({"colour": 1, "size": 2, "weight": 3});
/// let validator = jsonschema::validator_for(&schema)?;
/// let error = validator.iter_errors(&value).next().unwrap();
/// let messages: Vec<String> = describe_all(&error, &schema, &value).map(|p| p.message).collect();
/// assert_eq!(messages, [
///     "\"colour\" is not a known property; did you mean \"color\"?",
///     "\"weight\" is not a known property; expected one of \"color\", \"size\"",
/// ]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn describe_all<'a>(
    error: &'a ValidationError<'a>,
    schema: &'a Value,
    whole: &'a Value,
) -> impl ExactSizeIterator<Item = SchemaProblem> + 'a {
    let words = Words { schema: Some(schema), whole: Some(whole), nested: 0 };
    let names = match words.unknown_properties(error) {
        Some(names) => names.into_iter().map(Some).collect(),
        None => vec![None],
    };
    names.into_iter().map(move |name| match name {
        Some(name) => words.unknown_property(error, &name),
        None => words.describe(error),
    })
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
struct Mismatch {
    expected: String,
    got: String,
    message: Option<String>,
    hint: Option<String>,
}

impl Mismatch {
    fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { expected: expected.into(), got: got.into(), message: None, hint: None }
    }

    fn message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
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
        let message = said.message.unwrap_or_else(|| format!("expected {}, got {}", said.expected, said.got));
        let object = error.instance_path().as_str();
        let (pointer, place) = match error.kind() {
            Kind::PropertyNames { error: inner } => {
                (pointer_to(object, inner.instance().as_str().unwrap_or_default()), Place::Key)
            }
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

    fn say(&self, error: &ValidationError<'_>) -> Mismatch {
        let value = self.value(error);
        let items = value.as_array().map_or(0, Vec::len);
        let properties = value.as_object().map_or(0, Map::len);
        let characters = value.as_str().map_or(0, |string| string.chars().count());
        match error.kind() {
            Kind::Type { kind } => {
                let expected = match kind {
                    TypeKind::Single(one) => type_name(*one).to_owned(),
                    TypeKind::Multiple(several) => {
                        let mut types: Vec<JsonType> = several.iter().collect();
                        types.sort_by_key(|one| *one == JsonType::Null);
                        list(types.into_iter().map(|one| type_name(one).to_owned()), "or")
                    }
                };
                let hint = hints::wrong_type(kind, value);
                let hint = hint.or_else(|| value.is_null().then(|| self.may_be_absent(error)).flatten());
                Mismatch::new(expected, got(value)).hint(hint)
            }
            Kind::Required { property } => self.missing(error, property.as_str().unwrap_or_default(), value),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let names = listed(unexpected.iter(), |name| quoted(name));
                Mismatch::new("only known properties", names.clone())
                    .message(format!("{names} are not known properties"))
            }
            Kind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                let hint = hints::near_option(options, value);
                match options {
                    [only] => Mismatch::new(shown(only), shown(value)).hint(hint),
                    _ => Mismatch::new(format!("one of {}", listed(options.iter(), shown)), shown(value))
                        .hint(hint),
                }
            }
            Kind::Constant { expected_value } => Mismatch::new(shown(expected_value), shown(value)),
            Kind::Minimum { limit } => Mismatch::new(format!("at least {limit}"), shown(value)),
            Kind::Maximum { limit } => Mismatch::new(format!("at most {limit}"), shown(value)),
            Kind::ExclusiveMinimum { limit } => Mismatch::new(format!("more than {limit}"), shown(value)),
            Kind::ExclusiveMaximum { limit } => Mismatch::new(format!("less than {limit}"), shown(value)),
            Kind::MultipleOf { multiple_of } => {
                Mismatch::new(format!("a multiple of {multiple_of}"), shown(value))
            }
            Kind::MinLength { limit } => {
                let expected = format!("a string of at least {}", count(*limit, "character"));
                Mismatch::new(expected, format!("{characters} in {}", shown(value)))
            }
            Kind::MaxLength { limit } => {
                let expected = format!("a string of at most {}", count(*limit, "character"));
                Mismatch::new(expected, format!("{characters} in {}", shown(value)))
            }
            Kind::MinItems { limit } => {
                Mismatch::new(format!("at least {}", count(*limit, "item")), items.to_string())
            }
            Kind::MaxItems { limit } => {
                Mismatch::new(format!("at most {}", count(*limit, "item")), items.to_string())
            }
            Kind::MinProperties { limit } => {
                Mismatch::new(format!("at least {}", count(*limit, "property")), properties.to_string())
            }
            Kind::MaxProperties { limit } => {
                Mismatch::new(format!("at most {}", count(*limit, "property")), properties.to_string())
            }
            Kind::Pattern { pattern } => Mismatch::new(
                format!("a string that matches the pattern `{}`", show::cut(pattern)),
                shown(value),
            ),
            Kind::Format { format } => {
                Mismatch::new(format!("a string in the format {}", quoted(format)), shown(value))
            }
            Kind::UniqueItems => {
                Mismatch::new("items that differ from each other", hints::equal_items(value))
            }
            Kind::Contains => self.contains(error, items),
            Kind::AdditionalItems { limit } => {
                Mismatch::new(format!("at most {}", count(*limit as u64, "item")), items.to_string())
            }
            Kind::UnevaluatedItems { unexpected } => {
                Mismatch::new("no other items", format!("{} more", unexpected.len()))
            }
            Kind::FalseSchema => self.forbidden(error, value),
            Kind::Not { schema } => {
                let expected = format!("a value that does not match {}", shown(schema));
                Mismatch::new(expected, got(value))
            }
            Kind::AnyOf { context } => self.no_alternative(error, context, value),
            Kind::OneOfNotValid { context } => self.no_alternative(error, context, value),
            Kind::OneOfMultipleValid { context } => unions::several_alternatives(context, value),
            Kind::PropertyNames { error: inner } => {
                let said = Words { whole: None, ..*self }.describe(inner);
                let name = shown(inner.instance());
                let message = format!("{name} is not allowed as the name of a property: {}", said.message);
                Mismatch::new(said.expected, said.got).message(message).hint(said.hint)
            }
            Kind::ContentEncoding { content_encoding } => {
                Mismatch::new(format!("a string in the encoding {}", quoted(content_encoding)), shown(value))
            }
            Kind::ContentMediaType { content_media_type } => {
                Mismatch::new(format!("a string that holds {}", quoted(content_media_type)), shown(value))
            }
            Kind::FromUtf8 { error } => {
                Mismatch::new("text in UTF-8 inside the encoded string", error.to_string())
            }
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
                let message = format!("the pattern takes too long to match against {}", shown(value));
                Mismatch::new("a string that the pattern can be matched against", shown(value))
                    .message(message)
            }
            Kind::Custom { message, .. } => Mismatch::new("", shown(value)).message(message.clone()),
            Kind::Referencing(error) => Mismatch::new("", "").message(error.to_string()),
        }
    }

    /// The value that has the problem. Errors may hold a stand-in, so the whole is asked first.
    fn value<'v>(&'v self, error: &'v ValidationError<'_>) -> &'v Value {
        let there = self.whole.and_then(|whole| whole.pointer(error.instance_path().as_str()));
        there.unwrap_or_else(|| error.instance())
    }

    fn contains(&self, error: &ValidationError<'_>, items: usize) -> Mismatch {
        let limit = self.schema.and_then(|schema| schema.pointer(error.schema_path().as_str()));
        let limit = limit.and_then(Value::as_u64).map(|limit| count(limit, "item"));
        match (rule(error), limit, items) {
            ("maxContains", Some(limit), _) => {
                Mismatch::new(format!("at most {limit} to match `contains`"), "more")
            }
            ("maxContains", None, _) => Mismatch::new("fewer items to match `contains`", "more"),
            ("minContains", Some(limit), _) => {
                Mismatch::new(format!("at least {limit} to match `contains`"), "fewer")
            }
            (_, _, 0) => Mismatch::new("an item that matches `contains`", "an empty array"),
            (_, _, _) => Mismatch::new("an item that matches `contains`", "none"),
        }
    }

    fn forbidden(&self, error: &ValidationError<'_>, value: &Value) -> Mismatch {
        let what = match rule(error) {
            "additionalProperties" | "propertyNames" => return Mismatch::new("an empty object", got(value)),
            "properties" => {
                let name =
                    error.instance_path().as_str().rsplit('/').next().map(unescape).unwrap_or_default();
                let message = format!("the property {} is not allowed here", quoted(&name));
                return Mismatch::new(format!("no property {}", quoted(&name)), got(value)).message(message);
            }
            "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" => "no item",
            _ => "no value",
        };
        Mismatch::new(what, got(value)).message(format!("{what} is allowed here, got {}", got(value)))
    }
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
            let whole =
                ["properties", "patternProperties", "prefixItems", "dependentSchemas", "allOf", "$defs"];
            match (whole.contains(&before), last) {
                (true, _) => before,
                (false, "") => "false",
                (false, last) => last,
            }
        }
        Kind::Required { .. } => match path.rsplit('/').next() {
            Some(keyword @ ("dependentRequired" | "dependencies")) => keyword,
            _ => "required",
        },
        kind => kind.keyword(),
    }
}

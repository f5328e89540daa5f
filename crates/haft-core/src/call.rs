//! What somebody asks for.

use crate::{Problem, json, json_fit, text};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};
use std::{fmt, sync::Arc};

/// The arguments of a call as they came: the original text, parsed once when the call is planned.
///
/// ```
/// use haft_core::Arguments;
/// use serde_json::json;
/// assert_eq!(Arguments::from(json!({"a": 1})).as_str(), r#"{"a":1}"#);
/// assert!(Arguments::from_text("{not json").parse().is_err()); // kept as it is, refused when planned
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Arguments(Arc<str>);

impl Arguments {
    /// Arguments of that text, whatever it is.
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Arguments(text.into())
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many bytes the text has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing at all: models send an empty text for tools without arguments.
    pub fn is_empty(&self) -> bool {
        matches!(self.0.trim(), "" | "null")
    }

    /// These arguments in at most so many bytes: an object with its long texts cut, or the beginning of what is no JSON.
    ///
    /// ```
    /// use haft_core::Arguments;
    /// let long = Arguments::from(serde_json::json!({"path": "a.txt", "content": "x".repeat(5000)}));
    /// let short = long.within(1000);
    /// assert!(short.len() <= 1000 && short.as_str().contains("a.txt"));
    /// ```
    #[must_use]
    pub fn within(&self, room: usize) -> Arguments {
        if self.len() <= room {
            return self.clone();
        }
        let fitting = json::parse(&self.0).ok().and_then(|value| json_fit::fit(&value, room));
        fitting
            .map_or_else(|| Arguments::from_text(text::truncate(&self.0, room, None).text), Arguments::from)
    }

    /// The object that the text stands for. Nothing at all counts as an object without members.
    pub fn parse(&self) -> Result<Map<String, Value>, Problem> {
        match json::parse(&self.0) {
            Ok(Value::Object(map)) => Ok(map),
            _ if self.is_empty() => Ok(Map::new()),
            Ok(other) => Err(Problem::new(
                "",
                "type",
                format!("arguments must be a JSON object, got {}", name_of(&other)),
            )),
            Err(problem) => Err(problem),
        }
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments(Arc::from("{}"))
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Arguments(value.to_string().into())
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            // Not JSON, so it can only be shown as the text that it is.
            Err(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The bytes are kept as they stand, so that what is hashed and shown is what was sent, and so that
        // arguments that are no object spoil one call and not the document around it.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Arguments(Box::<str>::from(raw).into()))
    }
}

/// One call, as a model, a client or a person made it.
///
/// ```
/// use haft_core::ToolCall;
/// use serde_json::json;
/// let call = ToolCall::new("validate_content", json!({"content": "{}"})).with_id("call_1");
/// let same: ToolCall = serde_json::from_str(
///     r#"{"id":"call_1","name":"validate_content","arguments":{"content":"{}"}}"#,
/// ).unwrap();
/// assert_eq!(call, same);
/// let short = r#"{"id":"call_1","tool":"validate_content","args":{"content":"{}"}}"#;
/// assert_eq!(serde_json::from_str::<ToolCall>(short).unwrap(), call);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCall {
    /// The caller's own name for it. It comes back on the result, and is never trusted to be unique.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub id: Arc<str>,
    /// The tool's name or one of its aliases. `tool` is read as well.
    #[serde(alias = "tool")]
    pub name: Arc<str>,
    /// The arguments. `args` is read as well.
    #[serde(default, alias = "args")]
    pub arguments: Arguments,
    /// The same key means the same call: it has an effect once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Arc<str>>,
    /// Passed through to the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Arc<Map<String, Value>>>,
}

fn str_is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl ToolCall {
    /// A call of the tool `name`.
    pub fn new(name: impl Into<Arc<str>>, arguments: impl Into<Arguments>) -> Self {
        ToolCall {
            id: Arc::default(),
            name: name.into(),
            arguments: arguments.into(),
            idempotency_key: None,
            metadata: None,
        }
    }

    /// This call with the caller's own id for it.
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = id.into();
        self
    }

    /// This call with an idempotency key.
    pub fn with_idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

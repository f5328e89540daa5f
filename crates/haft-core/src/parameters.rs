//! What a tool takes: a declarative list, or a JSON Schema. Each converts to the other.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::{Map, Value, json};
use std::fmt;

/// The type of a declared parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ParameterType {
    /// Text.
    String,
    /// A whole number of 64 bits.
    Integer,
    /// Any number.
    Number,
    /// Yes or no.
    Boolean,
    /// A list.
    Array,
    /// Named members.
    Object,
}

impl ParameterType {
    /// The word of JSON Schema for it.
    ///
    /// ```
    /// assert_eq!(haft_core::ParameterType::Integer.schema_name(), "integer");
    /// ```
    pub const fn schema_name(self) -> &'static str {
        match self {
            ParameterType::String => "string",
            ParameterType::Integer => "integer",
            ParameterType::Number => "number",
            ParameterType::Boolean => "boolean",
            ParameterType::Array => "array",
            ParameterType::Object => "object",
        }
    }

    /// The type of that word.
    ///
    /// ```
    /// use haft_core::ParameterType;
    /// assert_eq!(ParameterType::from_schema_name("integer"), Some(ParameterType::Integer));
    /// assert_eq!(ParameterType::from_schema_name("null"), None);
    /// ```
    pub fn from_schema_name(name: &str) -> Option<Self> {
        Some(match name {
            "string" => ParameterType::String,
            "integer" => ParameterType::Integer,
            "number" => ParameterType::Number,
            "boolean" => ParameterType::Boolean,
            "array" => ParameterType::Array,
            "object" => ParameterType::Object,
            _ => return None,
        })
    }

    /// Whether a value is of this type.
    ///
    /// ```
    /// use haft_core::ParameterType;
    /// assert!(ParameterType::Number.fits(&1.into()));
    /// assert!(!ParameterType::Integer.fits(&1.5.into()));
    /// ```
    pub fn fits(self, value: &Value) -> bool {
        match self {
            ParameterType::String => value.is_string(),
            ParameterType::Integer => value.is_i64() || value.is_u64(),
            ParameterType::Number => value.is_number(),
            ParameterType::Boolean => value.is_boolean(),
            ParameterType::Array => value.is_array(),
            ParameterType::Object => value.is_object(),
        }
    }
}

/// One declared parameter.
///
/// ```
/// let text = r#"{"name": "path", "description": "Where to look", "type": "String", "required": true}"#;
/// let parameter: haft_core::Parameter = serde_json::from_str(text).unwrap();
/// assert!(parameter.required && parameter.default.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameter {
    /// snake_case, unique within the tool.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The type of the parameter.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// Whether it must be there.
    #[serde(default)]
    pub required: bool,
    /// What it is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values that it may have.
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<Value>>,
    /// A JSON Schema with the rest, for lists and objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// What a tool takes.
///
/// ```
/// use haft_core::Parameters;
/// use serde_json::json;
/// let list: Parameters = serde_json::from_value(json!([
///     {"name": "path", "description": "Where", "type": "String", "required": true}
/// ])).unwrap();
/// let schema = list.to_schema();
/// assert_eq!(schema["properties"]["path"], json!({"type": "string", "description": "Where"}));
/// assert_eq!(Parameters::Schema(schema).to_list(), list.to_list());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameters {
    /// A list of declared parameters.
    List(Vec<Parameter>),
    /// A JSON Schema of the whole object.
    Schema(Value),
}

impl<'de> Deserialize<'de> for Parameters {
    /// By shape: a list must be a list of parameters, so that an error names the parameter that is wrong.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Parameters;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of parameters or a JSON Schema object")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Parameters, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Parameters::List)
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Parameters, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(entries)).map(Parameters::Schema)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters::List(Vec::new())
    }
}

impl Parameters {
    /// The JSON Schema of the arguments object. A list allows no members that it does not name.
    ///
    /// ```
    /// use haft_core::Parameters;
    /// assert_eq!(Parameters::default().to_schema()["additionalProperties"], false);
    /// ```
    pub fn to_schema(&self) -> Value {
        let list = match self {
            Parameters::Schema(schema) => return schema.clone(),
            Parameters::List(list) => list,
        };
        let properties: Map<String, Value> =
            list.iter().map(|parameter| (parameter.name.clone(), property(parameter))).collect();
        let required: Vec<&str> = list.iter().filter(|p| p.required).map(|p| p.name.as_str()).collect();
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// The declared parameters, where the schema is one that a list can say; `None` where it says more, or less.
    ///
    /// Nothing is lost: [`to_schema`](Parameters::to_schema) of the list means the same as this schema. A list made
    /// from a schema is in the order of the names, as JSON objects have no order.
    ///
    /// ```
    /// use haft_core::Parameters;
    /// use serde_json::json;
    /// let closed = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    /// assert_eq!(Parameters::Schema(closed).to_list().unwrap()[0].name, "n");
    /// // A list cannot say that other members are allowed.
    /// let open = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    /// assert_eq!(Parameters::Schema(open).to_list(), None);
    /// ```
    pub fn to_list(&self) -> Option<Vec<Parameter>> {
        let schema = match self {
            Parameters::List(list) => return Some(list.clone()),
            Parameters::Schema(schema) => schema.as_object()?,
        };
        let sayable = schema.iter().all(|(keyword, value)| match keyword.as_str() {
            "type" => value == "object",
            "additionalProperties" => *value == Value::Bool(false),
            "properties" | "required" => true,
            _ => false,
        });
        if !sayable || !schema.contains_key("type") || !schema.contains_key("additionalProperties") {
            return None;
        }
        let none = Map::new();
        let properties = schema.get("properties").map_or(Some(&none), Value::as_object)?;
        let required = required(schema.get("required"), properties)?;
        properties.iter().map(|(name, property)| parameter(name, property, &required)).collect()
    }

    /// The names of the parameters, where they are known.
    ///
    /// ```
    /// use haft_core::Parameters;
    /// let schema = Parameters::Schema(serde_json::json!({"properties": {"b": {}, "a": {}}}));
    /// assert_eq!(schema.names(), ["a", "b"]);
    /// ```
    pub fn names(&self) -> Vec<String> {
        match self {
            Parameters::List(list) => list.iter().map(|parameter| parameter.name.clone()).collect(),
            Parameters::Schema(schema) => schema
                .get("properties")
                .and_then(Value::as_object)
                .map(|properties| properties.keys().cloned().collect())
                .unwrap_or_default(),
        }
    }
}

/// What a list says of one parameter. Its own words win over those of its schema; that they differ is a problem that
/// [`ToolDefinition::check`](crate::ToolDefinition::check) names.
fn property(parameter: &Parameter) -> Value {
    let mut property = match &parameter.schema {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    property.insert("type".into(), parameter.kind.schema_name().into());
    if !parameter.description.is_empty() {
        property.insert("description".into(), parameter.description.clone().into());
    }
    if let Some(default) = &parameter.default {
        property.insert("default".into(), default.clone());
    }
    if let Some(choices) = &parameter.choices {
        property.insert("enum".into(), choices.clone().into());
    }
    Value::Object(property)
}

/// The names that must be there, each once and each a property; `None` where a list cannot say them.
fn required<'s>(names: Option<&'s Value>, properties: &Map<String, Value>) -> Option<Vec<&'s str>> {
    let mut required: Vec<&str> = Vec::new();
    let names = match names {
        Some(names) => names.as_array()?.as_slice(),
        None => &[],
    };
    for name in names {
        let name = name.as_str().filter(|name| properties.contains_key(*name) && !required.contains(name))?;
        required.push(name);
    }
    Some(required)
}

fn parameter(name: &str, property: &Value, required: &[&str]) -> Option<Parameter> {
    let mut rest = property.as_object()?.clone();
    let kind = ParameterType::from_schema_name(rest.remove("type")?.as_str()?)?;
    // An empty text and none at all are the same in a list, and so are `null` and no default.
    let description = match rest.remove("description") {
        Some(Value::String(text)) if !text.is_empty() => text,
        Some(_) => return None,
        None => String::new(),
    };
    let default = match rest.remove("default") {
        Some(Value::Null) => return None,
        default => default,
    };
    let choices = match rest.remove("enum") {
        Some(Value::Array(choices)) => Some(choices),
        Some(_) => return None,
        None => None,
    };
    // A list or an object needs a schema, even one that says nothing more.
    let structured = matches!(kind, ParameterType::Array | ParameterType::Object);
    let schema = (!rest.is_empty() || (structured && choices.is_none())).then_some(Value::Object(rest));
    let required = required.contains(&name);
    Some(Parameter { name: name.to_owned(), description, kind, required, default, choices, schema })
}

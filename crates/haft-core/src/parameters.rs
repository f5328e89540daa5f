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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameter {
    /// snake_case, unique within the tool.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its type.
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
    /// The JSON Schema of the arguments object.
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

    /// The declared parameters, where the schema is one that a list can say; `None` where it says more.
    pub fn to_list(&self) -> Option<Vec<Parameter>> {
        let schema = match self {
            Parameters::List(list) => return Some(list.clone()),
            Parameters::Schema(schema) => schema.as_object()?,
        };
        let known = |key: &String| {
            matches!(
                key.as_str(),
                "type" | "properties" | "required" | "additionalProperties" | "$schema" | "title"
            )
        };
        if schema.get("type")? != "object" || !schema.keys().all(known) {
            return None;
        }
        let required: Vec<&str> = match schema.get("required") {
            Some(names) => names.as_array()?.iter().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        let empty = Map::new();
        let properties = schema.get("properties").map_or(Some(&empty), Value::as_object)?;
        let list = properties.iter().map(|(name, property)| parameter(name, property, &required)).collect();
        list
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

fn property(parameter: &Parameter) -> Value {
    let mut property = match &parameter.schema {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    property.insert("type".into(), parameter.kind.schema_name().into());
    property.insert("description".into(), parameter.description.clone().into());
    if let Some(default) = &parameter.default {
        property.insert("default".into(), default.clone());
    }
    if let Some(choices) = &parameter.choices {
        property.insert("enum".into(), choices.clone().into());
    }
    Value::Object(property)
}

fn parameter(name: &str, property: &Value, required: &[&str]) -> Option<Parameter> {
    let mut rest = property.as_object()?.clone();
    let kind = ParameterType::from_schema_name(rest.remove("type")?.as_str()?)?;
    let description = match rest.remove("description") {
        Some(text) => text.as_str()?.to_owned(),
        None => String::new(),
    };
    let default = rest.remove("default");
    let choices = match rest.remove("enum") {
        Some(choices) => Some(choices.as_array()?.clone()),
        None => None,
    };
    let schema = (!rest.is_empty()).then_some(Value::Object(rest));
    Some(Parameter {
        name: name.to_owned(),
        description,
        kind,
        required: required.contains(&name),
        default,
        choices,
        schema,
    })
}

//! What a member is when nobody said.

use serde_json::{Map, Value};

/// The defaults of a schema's members.
///
/// ```
/// use haft_schema::Defaults;
/// use serde_json::json;
/// let defaults = Defaults::of(&json!({"properties": {"encoding": {"default": "utf-8"}, "path": {}}}));
/// let mut arguments = serde_json::Map::new();
/// defaults.apply(&mut arguments);
/// assert_eq!(arguments["encoding"], "utf-8");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults(Vec<(String, Value)>);

impl Defaults {
    /// Those that the schema's members declare.
    pub fn of(schema: &Value) -> Self {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Defaults::default();
        };
        let declared = properties.iter().filter_map(|(name, property)| {
            // `null` as a default says what absence says already, and the type often does not allow it.
            let default = property.get("default").filter(|default| !default.is_null())?;
            Some((name.clone(), default.clone()))
        });
        Defaults(declared.collect())
    }

    /// Adds those that are absent.
    pub fn apply(&self, arguments: &mut Map<String, Value>) {
        for (name, default) in &self.0 {
            if !arguments.contains_key(name) {
                arguments.insert(name.clone(), default.clone());
            }
        }
    }
}

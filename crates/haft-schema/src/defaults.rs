//! What a member is when nobody said.

use serde_json::{Map, Value};

use crate::dialect::to_2020_12;
use crate::local::Local;
use crate::pointer::push_segment;

/// How deep defaults may be inside each other, and how many members are looked at: references can unfold into many.
const MAX_NESTED: usize = 32;
const MAX_MEMBERS: usize = 2000;

/// The defaults of a schema's members, and of theirs.
///
/// Those of an object inside another are added where that object is there, and those of a list's items to each item.
/// References into the schema are followed, but not back to where they came from. Alternatives (`anyOf`, `oneOf`, `if`)
/// are not looked into: which of them is meant may depend on what is absent.
///
/// ```
/// use haft_schema::Defaults;
/// use serde_json::json;
/// let defaults = Defaults::of(&json!({"properties": {
///     "encoding": {"default": "utf-8"},
///     "path": {},
///     "range": {"properties": {"start": {"default": 1}}},
/// }}));
/// let mut arguments = serde_json::Map::new();
/// defaults.apply(&mut arguments);
/// assert_eq!(arguments["encoding"], "utf-8");
/// assert!(!arguments.contains_key("range"));
///
/// let mut arguments = json!({"range": {}}).as_object().unwrap().clone();
/// defaults.apply(&mut arguments);
/// assert_eq!(arguments["range"]["start"], 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    members: Box<[Member]>,
    items: Option<Box<Defaults>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    name: Box<str>,
    default: Option<Value>,
    inside: Defaults,
}

/// A member that was added: the pointer of the object, and the name.
pub(crate) struct Added<'d>(String, &'d str);

impl Defaults {
    /// Those that the schema's members declare.
    pub fn of(schema: &Value) -> Self {
        let Ok(converted) = to_2020_12(schema) else { return Self::default() };
        let schema = &*converted.schema;
        Local::of(schema)
            .map(|local| Builder { local, open: vec![schema], left: MAX_MEMBERS }.inside(&[schema], 0))
            .unwrap_or_default()
    }

    /// Adds those that are absent. Whether the arguments still fit the schema then is not looked at: see
    /// [`ArgumentSchema`](crate::ArgumentSchema) for that.
    pub fn apply(&self, arguments: &mut Map<String, Value>) {
        self.add(arguments, "", &mut Vec::new());
    }

    /// Fills in defaults as above, and returns what [`undo`] takes.
    pub(crate) fn apply_noted(&self, arguments: &mut Map<String, Value>) -> Vec<Added<'_>> {
        let mut added = Vec::new();
        self.add(arguments, "", &mut added);
        added
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.items.is_none()
    }

    fn add<'d>(&'d self, object: &mut Map<String, Value>, at: &str, added: &mut Vec<Added<'d>>) {
        for Member { name, default, inside } in &self.members {
            if let Some(default) = default
                && !object.contains_key(&**name)
            {
                object.insert(name.clone().into(), default.clone());
                added.push(Added(at.to_owned(), name));
            }
            if !inside.is_empty()
                && let Some(value) = object.get_mut(&**name)
            {
                let mut at = at.to_owned();
                push_segment(&mut at, name);
                inside.add_to(value, &at, added);
            }
        }
    }

    fn add_to<'d>(&'d self, value: &mut Value, at: &str, added: &mut Vec<Added<'d>>) {
        match (value, &self.items) {
            (Value::Object(object), _) => self.add(object, at, added),
            (Value::Array(items), Some(inside)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    inside.add_to(item, &format!("{at}/{index}"), added);
                }
            }
            _ => {}
        }
    }
}

/// Takes out of `arguments` what was added.
pub(crate) fn undo(added: &[Added<'_>], arguments: &mut Value) {
    // The last first: it may be inside of an earlier one.
    for Added(at, name) in added.iter().rev() {
        if let Some(Value::Object(object)) = arguments.pointer_mut(at) {
            object.remove(*name);
        }
    }
}

struct Builder<'s> {
    local: Local<'s>,
    /// What references have led to on the way here.
    open: Vec<&'s Value>,
    /// How many members may still be looked at.
    left: usize,
}

impl<'s> Builder<'s> {
    /// The defaults inside of a value for which all of `schemas` hold.
    fn inside(&mut self, schemas: &[&'s Value], nested: usize) -> Defaults {
        if nested > MAX_NESTED {
            return Defaults::default();
        }
        let before = self.open.len();
        let parts = self.parts(schemas);
        let mut named: Vec<(&str, Vec<&'s Value>)> = Vec::new();
        for (name, schema) in parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten() {
            match named.iter_mut().find(|(known, _)| known == name) {
                Some((_, schemas)) => schemas.push(schema),
                None => named.push((name, vec![schema])),
            }
        }
        let mut members = Vec::new();
        for (name, schemas) in named {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let default = self.default(&schemas);
            let inside = self.inside(&schemas, nested + 1);
            if default.is_some() || !inside.is_empty() {
                members.push(Member { name: name.into(), default, inside });
            }
        }
        let items: Vec<&'s Value> = parts.iter().filter_map(|part| items(part)).collect();
        let items = if items.is_empty() { Defaults::default() } else { self.inside(&items, nested + 1) };
        self.open.truncate(before);
        Defaults { members: members.into(), items: (!items.is_empty()).then(|| Box::new(items)) }
    }

    /// The first one that is not null: that says what absence says already, and the type often does not allow it.
    fn default(&mut self, schemas: &[&'s Value]) -> Option<Value> {
        let before = self.open.len();
        let parts = self.parts(schemas);
        self.open.truncate(before);
        parts.iter().filter_map(|part| part.get("default")).find(|default| !default.is_null()).cloned()
    }

    /// The schemas that hold where all of `schemas` do, each of these before what it refers to.
    fn parts(&mut self, schemas: &[&'s Value]) -> Vec<&'s Map<String, Value>> {
        let mut parts = Vec::new();
        let mut waiting: Vec<&'s Value> = schemas.iter().rev().copied().collect();
        while let Some(schema) = waiting.pop() {
            let Value::Object(schema) = schema else { continue };
            parts.push(schema);
            let all = schema.get("allOf").and_then(Value::as_array);
            waiting.extend(all.into_iter().flatten().rev());
            let target = self.local.target(schema);
            if let Some(target) =
                target.filter(|target| !self.open.iter().any(|open| std::ptr::eq(*open, *target)))
            {
                self.open.push(target);
                waiting.push(target);
            }
        }
        parts
    }
}

/// The schema of each item; none where the first ones have schemas of their own.
fn items(part: &Map<String, Value>) -> Option<&Value> {
    part.get("items").filter(|items| items.is_object() && !part.contains_key("prefixItems"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn applied(schema: &Value, arguments: Value) -> Value {
        let Value::Object(mut arguments) = arguments else { panic!("arguments are an object") };
        Defaults::of(schema).apply(&mut arguments);
        Value::Object(arguments)
    }

    #[test]
    fn where_the_parent_is_there() {
        let inner = json!({"properties": {"b": {"default": 1}, "c": {"default": null}}});
        for (schema, before, after) in [
            (json!({"properties": {"a": {"default": 1}}}), json!({}), json!({"a": 1})),
            (json!({"properties": {"a": {"default": 1}}}), json!({"a": null}), json!({"a": null})),
            (json!({"properties": {"a": inner}}), json!({}), json!({})),
            (json!({"properties": {"a": inner}}), json!({"a": {}}), json!({"a": {"b": 1}})),
            (json!({"properties": {"a": inner}}), json!({"a": {"b": 2}}), json!({"a": {"b": 2}})),
            (json!({"properties": {"a": inner}}), json!({"a": [1]}), json!({"a": [1]})),
            (
                json!({"properties": {"a": {"items": inner}}}),
                json!({"a": [{}, {"b": 2}, 3]}),
                json!({"a": [{"b": 1}, {"b": 2}, 3]}),
            ),
            (
                json!({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}),
                json!({}),
                json!({"a": {"b": 1}}),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"default": 1}}}),
                json!({}),
                json!({"a": 1}),
            ),
            (
                json!({"allOf": [{"properties": {"a": {"default": 1}}}, {"properties": {"a": {"default": 2}}}]}),
                json!({}),
                json!({"a": 1}),
            ),
            // Which alternative is meant may depend on what is absent.
            (json!({"anyOf": [{"properties": {"a": {"default": 1}}}]}), json!({}), json!({})),
        ] {
            assert_eq!(applied(&schema, before.clone()), after, "{schema} {before}");
        }
    }

    #[test]
    fn a_schema_inside_itself_is_followed_once() {
        let tree = json!({
            "properties": {"root": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"properties": {"name": {"default": "x"}, "next": {"$ref": "#/$defs/node"}}}},
        });
        let before = json!({"root": {"next": {}}});
        assert_eq!(applied(&tree, before), json!({"root": {"name": "x", "next": {}}}));
        let mut wide: Vec<Value> = (0..40)
            .map(|n| json!({"properties": {"l": {"$ref": format!("#/$defs/{}", n + 1)}, "r": {"$ref": format!("#/$defs/{}", n + 1)}}}))
            .collect();
        wide.push(json!({"default": 1}));
        let defs: Map<String, Value> =
            wide.into_iter().enumerate().map(|(n, one)| (n.to_string(), one)).collect();
        let wide = json!({"$ref": "#/$defs/0", "$defs": defs});
        assert_eq!(applied(&wide, json!({"l": {}})), json!({"l": {}}), "two to the power of 40 places");
    }

    #[test]
    fn what_was_added_can_be_taken_out() {
        let schema = json!({"properties": {
            "a": {"default": {}, "properties": {"b": {"default": 1}}},
            "l": {"items": {"properties": {"x/y": {"default": 1}}}},
            "m": {"properties": {"n": {"default": 1}}},
        }});
        let before = json!({"l": [{}, {"x/y": 1}], "m": {"o": 1}});
        let defaults = Defaults::of(&schema);
        let mut arguments = before.clone();
        let added = defaults.apply_noted(arguments.as_object_mut().unwrap());
        assert_eq!(added.len(), 4);
        assert_ne!(arguments, before);
        undo(&added, &mut arguments);
        assert_eq!(arguments, before);
    }
}

//! Which keywords hold schemas, and of what they speak.

use serde_json::Value;

use crate::pointer::push_segment;

/// Keywords whose subschemas apply to the same value: one schema, a list of them, or a map.
pub(crate) const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
pub(crate) const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
pub(crate) const SAME_MAP: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose subschemas apply to parts of the value, the same.
pub(crate) const PART_ONE: [&str; 8] = [
    "additionalProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "contentSchema",
    "unevaluatedItems",
    "unevaluatedProperties",
];
pub(crate) const PART_SEVERAL: [&str; 4] = ["properties", "patternProperties", "prefixItems", "items"];
/// Keywords whose subschemas apply to nothing until something refers to them.
const KEPT: [&str; 2] = ["$defs", "definitions"];
pub(crate) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that only describe. Without them a schema accepts the same values.
const NOTES: [&str; 8] =
    ["title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"];

/// How the value of a keyword holds schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// It is one.
    One,
    /// It is a list or a map of them; where it is neither, one.
    Several,
}

/// How the value of a keyword holds schemas, if it does.
pub(crate) fn holds(keyword: &str) -> Option<Holds> {
    // In old drafts `items` may be a list.
    let several = keyword == "items"
        || SAME_LIST.contains(&keyword)
        || SAME_MAP.contains(&keyword)
        || PART_SEVERAL.contains(&keyword)
        || KEPT.contains(&keyword);
    let one = SAME_ONE.contains(&keyword) || PART_ONE.contains(&keyword);
    match (several, one) {
        (true, _) => Some(Holds::Several),
        (false, true) => Some(Holds::One),
        (false, false) => None,
    }
}

/// The same schema without the keywords that only describe. For schemas without references: their pointers may
/// lead through what is left out.
pub(crate) fn without_notes(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let kept = object.iter().filter(|(keyword, _)| !NOTES.contains(&keyword.as_str()));
    let stripped = kept.map(|(keyword, value)| {
        let value = match (holds(keyword), value) {
            (None, _) => value.clone(),
            (Some(Holds::Several), Value::Array(list)) => list.iter().map(without_notes).collect(),
            (Some(Holds::Several), Value::Object(map)) if keyword != "items" => {
                map.iter().map(|(name, schema)| (name.clone(), without_notes(schema))).collect()
            }
            (Some(_), one) => without_notes(one),
        };
        (keyword.clone(), value)
    });
    Value::Object(stripped.collect())
}

/// Calls `see` with each schema in `schema`, itself included, and its pointer.
pub(crate) fn each_schema<'s>(schema: &'s Value, see: &mut impl FnMut(&str, &'s Value)) {
    let mut open = vec![(String::new(), schema)];
    while let Some((pointer, schema)) = open.pop() {
        see(&pointer, schema);
        let Value::Object(object) = schema else { continue };
        for (keyword, value) in object {
            let Some(holds) = holds(keyword) else { continue };
            let mut below = pointer.clone();
            push_segment(&mut below, keyword);
            match value {
                Value::Array(list) if holds == Holds::Several => {
                    open.extend(list.iter().enumerate().map(|(at, one)| (format!("{below}/{at}"), one)));
                }
                Value::Object(map) if holds == Holds::Several && keyword != "items" => {
                    open.extend(map.iter().map(|(name, one)| {
                        let mut below = below.clone();
                        push_segment(&mut below, name);
                        (below, one)
                    }));
                }
                one => open.push((below, one)),
            }
        }
    }
}

/// Whether a schema refers to any schema, itself included.
pub(crate) fn has_references(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Array(items) => open.extend(items),
            Value::Object(object) => {
                if REFERENCES.iter().any(|keyword| object.contains_key(*keyword)) {
                    return true;
                }
                open.extend(object.values());
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_values_that_look_like_notes_stay() {
        let schema = json!({
            "title": "T", "$comment": "c", "type": "object", "required": ["title"],
            "properties": {
                "title": {"type": "string", "description": "d", "default": "x"},
                "default": {"enum": [{"title": "kept"}], "examples": [1]},
                "list": {"items": {"description": "d", "const": {"default": 1}}, "prefixItems": [{"title": "t"}]},
            },
            "additionalProperties": {"description": "d", "not": {"title": "t", "type": "null"}},
            "anyOf": [{"description": "d"}, true],
            "x-other": {"description": "kept"},
        });
        let expected = json!({
            "type": "object", "required": ["title"],
            "properties": {
                "title": {"type": "string"},
                "default": {"enum": [{"title": "kept"}]},
                "list": {"items": {"const": {"default": 1}}, "prefixItems": [{}]},
            },
            "additionalProperties": {"not": {"type": "null"}},
            "anyOf": [{}, true],
            "x-other": {"description": "kept"},
        });
        assert_eq!(without_notes(&schema), expected);
    }

    #[test]
    fn each_schema_is_seen_once_with_its_pointer() {
        let schema = json!({
            "properties": {"a/b": {"items": {}}, "default": {"default": {"items": {}}}},
            "$defs": {"x": {"anyOf": [true, {}]}},
            "items": [{}],
        });
        let mut seen = Vec::new();
        each_schema(&schema, &mut |pointer, _| seen.push(pointer.to_owned()));
        seen.sort();
        let expected = [
            "",
            "/$defs/x",
            "/$defs/x/anyOf/0",
            "/$defs/x/anyOf/1",
            "/items/0",
            "/properties/a~1b",
            "/properties/a~1b/items",
            "/properties/default",
        ];
        assert_eq!(seen, expected);
    }
}

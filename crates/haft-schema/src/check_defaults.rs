//! Whether the defaults that a schema declares satisfy it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::dialect::to_2020_12;
use crate::keywords::each_schema;
use crate::place::Place;
use crate::pointer::encoded;
use crate::words::SchemaProblem;
use crate::{Checker, Formats, Options};

/// Where a schema without an address is while its parts are checked.
const HERE: &str = "haft:///schema";
/// How many defaults are checked.
const MOST: usize = 1000;

/// The defaults in a schema that do not satisfy the schema beside them: their pointers, and what is wrong.
///
/// A default of `null` stands for absence, and is not looked at; nor is one in a part that has an address (`$id`) of
/// its own. Where the schema cannot be compiled nothing is said: compiling it says what is wrong.
///
/// ```
/// use serde_json::json;
/// let schema = json!({"properties": {
///     "encoding": {"type": "string", "default": "utf-8"},
///     "depth": {"type": "integer", "maximum": 10, "default": 20},
/// }});
/// let problems = haft_schema::check_defaults(&schema);
/// assert_eq!(problems, [("/properties/depth/default".to_owned(), "expected at most 10, got 20".to_owned())]);
/// ```
pub fn check_defaults(schema: &Value) -> Vec<(String, String)> {
    let Ok(converted) = to_2020_12(schema) else { return Vec::new() };
    let schema = &*converted.schema;
    let declared = declared(schema);
    if declared.is_empty() {
        return Vec::new();
    }
    // All at once, as the members of one value: the first for the first default, and so on.
    let address = Place::document(schema, HERE).address();
    let (mut properties, mut value) = (Map::new(), Map::new());
    for (index, (pointer, default)) in declared.iter().enumerate() {
        let reference = format!("{address}#{}", encoded(pointer));
        properties.insert(index.to_string(), json!({"$ref": reference}));
        value.insert(index.to_string(), (*default).clone());
    }
    let mut all = json!({"properties": properties});
    if let Some(draft) = schema.get("$schema") {
        all["$schema"] = draft.clone();
    }
    let formats = if converted.checks_formats { Formats::Checked } else { Formats::OfTheDraft };
    let problems = problems(&address, schema, formats, &all, &Value::Object(value)).unwrap_or_default();
    let mut by_default: BTreeMap<usize, Vec<SchemaProblem>> = BTreeMap::new();
    for mut problem in problems {
        let (index, below) = split(&problem.pointer);
        problem.pointer = below;
        by_default.entry(index).or_default().push(problem);
    }
    by_default
        .into_iter()
        .filter_map(|(index, problems)| {
            let (pointer, _) = declared.get(index)?;
            let more = match problems.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let first = problems.into_iter().min_by(|a, b| a.pointer.cmp(&b.pointer))?;
            Some((format!("{}/default", converted.source_pointer(pointer)), format!("{first}{more}")))
        })
        .collect()
}

/// The defaults to look at, each with the pointer of its schema, in the order of those.
fn declared(schema: &Value) -> Vec<(String, &Value)> {
    let (mut declared, mut apart) = (Vec::new(), Vec::new());
    each_schema(schema, &mut |pointer, part| {
        if !pointer.is_empty() && part.get("$id").is_some() {
            apart.push(pointer.to_owned());
        }
        if let Some(default) = part.get("default").filter(|default| !default.is_null()) {
            declared.push((pointer.to_owned(), default));
        }
    });
    declared.retain(|(pointer, _)| !apart.iter().any(|apart| pointer.starts_with(apart.as_str())));
    declared.sort_by(|a, b| a.0.cmp(&b.0));
    declared.truncate(MOST);
    declared
}

fn problems(
    address: &str,
    schema: &Value,
    formats: Formats,
    all: &Value,
    value: &Value,
) -> Option<Vec<SchemaProblem>> {
    let mut options = Options { formats, ..Options::default() };
    options.documents.add(address, schema.clone()).ok()?;
    Some(Checker::with_options(all, &options).ok()?.check(value).ok()?.problems)
}

/// Which default a problem is about, and the pointer into that.
fn split(pointer: &str) -> (usize, String) {
    let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
    let end = pointer.find('/').unwrap_or(pointer.len());
    (pointer[..end].parse().unwrap_or(usize::MAX), pointer[end..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_default_is_held_against_the_schema_beside_it() {
        let table: &[(Value, &[(&str, &str)])] = &[
            (json!({}), &[]),
            (json!(true), &[]),
            (json!({"default": 1}), &[]),
            (json!({"type": "string", "default": null}), &[]),
            (json!({"type": "string", "default": 1}), &[("/default", "expected a string, got the number 1")]),
            (
                json!({"properties": {"a b": {"items": {"enum": ["x"], "default": "y"}}}}),
                &[("/properties/a b/items/default", "expected \"x\", got \"y\"")],
            ),
            (
                json!({"items": {"type": "integer"}, "default": [1, "2", "3"]}),
                &[("/default", "/1: expected an integer, got the string \"2\" (and 1 more)")],
            ),
            // Names and values that look like defaults.
            (
                json!({"properties": {"default": {"type": "string"}}, "const": {"type": "null", "default": 1}}),
                &[],
            ),
            // Through references.
            (
                json!({"$defs": {"n": {"type": "integer"}}, "properties": {"a%/b": {"$ref": "#/$defs/n", "default": "x"}}}),
                &[("/properties/a%~1b/default", "expected an integer, got the string \"x\"")],
            ),
            (
                json!({"$id": "http://example.com/me", "$defs": {"n": {"$anchor": "n", "type": "integer"}},
                       "properties": {"a": {"$ref": "#n", "default": 1}, "b": {"$ref": "me#n", "default": "x"}}}),
                &[("/properties/b/default", "expected an integer, got the string \"x\"")],
            ),
            (
                json!({"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "default": {"next": {"n": "x"}}}),
                &[("/default", "/next/n: expected an integer, got the string \"x\"")],
            ),
            // Older drafts: `exclusiveMinimum` was a boolean.
            (
                json!({"$schema": "http://json-schema.org/draft-04/schema#",
                       "properties": {"n": {"minimum": 1, "exclusiveMinimum": true, "default": 1}}}),
                &[("/properties/n/default", "expected more than 1, got 1")],
            ),
            (
                json!({"properties": {"a": {"$id": "http://example.com/a", "type": "string", "default": 1}}}),
                &[],
            ),
            // What cannot be compiled is somebody else's problem.
            (json!({"type": "strin", "default": 1}), &[]),
            (json!({"$ref": "http://example.com/other", "default": 1}), &[]),
        ];
        for (schema, expected) in table {
            let found = check_defaults(schema);
            let found: Vec<(&str, &str)> =
                found.iter().map(|(at, what)| (at.as_str(), what.as_str())).collect();
            assert_eq!(found, *expected, "{schema}");
        }
    }
}

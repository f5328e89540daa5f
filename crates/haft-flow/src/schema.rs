//! What a JSON Schema says about a path into the values that it describes.

use crate::Step;
use haft_core::{suggest::nearest, text::one_line};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// References that lead to references are followed so often.
const MOST_REFERENCES: usize = 16;
/// Ways through a schema that are followed at once.
const MOST_WAYS: usize = 64;

/// What is known about a value.
#[derive(Clone, Debug)]
pub(crate) struct Outline<'s> {
    root: &'s Value,
    /// It is described by one of these; by none where nothing is known about it.
    ways: Vec<&'s Value>,
}

/// A path leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nowhere {
    step: Step,
    /// The names that there are.
    names: Vec<String>,
    /// What is there instead of something with parts.
    kind: Option<String>,
}

impl Nowhere {
    pub(crate) fn problem(&self, whose: &str) -> String {
        match (&self.step, &self.kind) {
            (Step::Name(name), None) => format!("{whose} has no `{}`", one_line(name, 80)),
            (Step::Name(name), Some(kind)) => {
                format!("{whose} has {kind} there, which has no `{}`", one_line(name, 80))
            }
            (Step::Index(index), Some(kind)) => {
                format!("{whose} has {kind} there, which has no place {index}")
            }
            (Step::Index(index), None) => format!("{whose} has no place {index} there"),
        }
    }

    pub(crate) fn help(&self, otherwise: &str) -> String {
        let near = match &self.step {
            Step::Name(name) => nearest(name, self.names.iter().map(String::as_str)),
            Step::Index(_) => None,
        };
        match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.names.is_empty() => otherwise.to_owned(),
            None => {
                let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
                format!("there are {}", one_line(&names.join(", "), 300))
            }
        }
    }
}

impl<'s> Outline<'s> {
    /// Of a value that a schema describes.
    pub(crate) fn of(schema: &'s Value) -> Self {
        let mut outline = Outline { root: schema, ways: Vec::new() };
        outline.ways = outline.ways_of(schema, MOST_REFERENCES).unwrap_or_default();
        outline
    }

    /// What is known about the value that a path leads to.
    pub(crate) fn follow(&self, steps: &[Step]) -> Result<Self, Nowhere> {
        let mut at = self.clone();
        for step in steps {
            if at.ways.is_empty() {
                return Ok(at);
            }
            at = at.step(step)?;
        }
        Ok(at)
    }

    fn step(&self, step: &Step) -> Result<Self, Nowhere> {
        let mut ways = Vec::new();
        let (mut names, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        for way in &self.ways {
            let next = match (way, step) {
                (Value::Object(way), Step::Name(name)) => member(way, name, &mut names, &mut kinds),
                (Value::Object(way), Step::Index(index)) => item(way, *index, &mut kinds),
                (Value::Bool(false), _) => Next::Nothing,
                _ => Next::Unknown,
            };
            match next {
                Next::Nothing => {}
                Next::Unknown => return Ok(Outline { root: self.root, ways: Vec::new() }),
                Next::Schema(schema) => match self.ways_of(schema, MOST_REFERENCES) {
                    Some(more) => ways.extend(more),
                    None => return Ok(Outline { root: self.root, ways: Vec::new() }),
                },
            }
        }
        if ways.is_empty() {
            let kind = (names.is_empty() && kinds.len() == 1).then(|| kinds.pop_first()).flatten();
            return Err(Nowhere { step: step.clone(), names: names.into_iter().collect(), kind });
        }
        ways.truncate(MOST_WAYS);
        Ok(Outline { root: self.root, ways })
    }

    /// The types that the value may have; `None` for any.
    pub(crate) fn types(&self) -> Option<BTreeSet<&'s str>> {
        let mut all = BTreeSet::new();
        for &way in &self.ways {
            let values = way.get("enum").and_then(Value::as_array).map(Vec::as_slice);
            match (way.get("type"), way.get("const").map(std::slice::from_ref).or(values)) {
                (Some(Value::String(kind)), _) => {
                    all.insert(kind.as_str());
                }
                (Some(Value::Array(kinds)), _) => all.extend(kinds.iter().filter_map(Value::as_str)),
                (_, Some(values)) => values.iter().for_each(|value| {
                    all.insert(type_of(value));
                }),
                (_, None) => return None,
            }
        }
        if all.contains("number") {
            all.insert("integer");
        }
        (!all.is_empty()).then_some(all)
    }

    /// A schema taken apart into the ways in which a value can fit it; `None` where that is not known.
    fn ways_of(&self, schema: &'s Value, references: usize) -> Option<Vec<&'s Value>> {
        let Value::Object(table) = schema else { return Some(vec![schema]) };
        // What is put together, or changes with the value, is not taken apart.
        let unknown = ["allOf", "$dynamicRef", "if", "not", "dependentSchemas", "unevaluatedProperties"];
        if unknown.iter().any(|name| table.contains_key(*name)) {
            return None;
        }
        if let Some(reference) = table.get("$ref") {
            let target = reference.as_str()?.strip_prefix('#')?;
            return self.ways_of(self.root.pointer(target)?, references.checked_sub(1)?);
        }
        let Some(branches) = table.get("anyOf").or_else(|| table.get("oneOf")) else {
            return Some(vec![schema]);
        };
        if table.contains_key("properties") {
            return None;
        }
        let mut ways = Vec::new();
        for branch in branches.as_array()? {
            ways.extend(self.ways_of(branch, references.checked_sub(1)?)?);
        }
        (ways.len() <= MOST_WAYS).then_some(ways)
    }
}

enum Next<'s> {
    Nothing,
    Unknown,
    Schema(&'s Value),
}

fn allows(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(_) => true,
    }
}

fn member<'s>(
    schema: &'s Map<String, Value>,
    name: &str,
    names: &mut BTreeSet<String>,
    kinds: &mut BTreeSet<String>,
) -> Next<'s> {
    if !allows(schema, "object") {
        kinds.extend(kind_of(schema));
        return Next::Nothing;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(found) = properties.and_then(|properties| properties.get(name)) {
        return Next::Schema(found);
    }
    if schema.contains_key("patternProperties") {
        return Next::Unknown;
    }
    match (schema.get("additionalProperties"), properties) {
        (Some(Value::Bool(true)), _) => Next::Unknown,
        (Some(Value::Bool(false)), _) => {
            names.extend(properties.into_iter().flat_map(Map::keys).cloned());
            Next::Nothing
        }
        (Some(rest), _) => Next::Schema(rest),
        // A schema that names members and says nothing of others means those that it names.
        (None, Some(properties)) if !properties.is_empty() => {
            names.extend(properties.keys().cloned());
            Next::Nothing
        }
        (None, _) => Next::Unknown,
    }
}

fn item<'s>(schema: &'s Map<String, Value>, index: usize, kinds: &mut BTreeSet<String>) -> Next<'s> {
    if !allows(schema, "array") {
        kinds.extend(kind_of(schema));
        return Next::Nothing;
    }
    let first = schema.get("prefixItems").and_then(Value::as_array);
    match first.and_then(|first| first.get(index)).or_else(|| schema.get("items")) {
        Some(Value::Bool(false)) => Next::Nothing,
        Some(found) => Next::Schema(found),
        None => Next::Unknown,
    }
}

/// The type that a schema names, in words; null is no type to have parts of.
fn kind_of(schema: &Map<String, Value>) -> Option<String> {
    match schema.get("type").and_then(Value::as_str)? {
        "null" => None,
        kind => Some(in_words(kind)),
    }
}

/// A type with its article.
pub(crate) fn in_words(kind: &str) -> String {
    match kind {
        "integer" => "a whole number".to_owned(),
        "array" => "a list".to_owned(),
        "object" => "an object".to_owned(),
        "null" => "null".to_owned(),
        kind => format!("a {kind}"),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(path: &str) -> Vec<Step> {
        let step = |step: &str| step.parse().map_or_else(|_| Step::Name(step.to_owned()), Step::Index);
        path.split('.').filter(|step| !step.is_empty()).map(step).collect()
    }

    #[test]
    fn a_path_is_known_unknown_or_leads_nowhere() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "maybe": {"anyOf": [{"$ref": "#/$defs/entry"}, {"type": "null"}]},
                "list": {"type": "array", "items": {"$ref": "#/$defs/entry"}},
                "open": {"type": "object"},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "loop": {"$ref": "#/$defs/loop"},
                "both": {"allOf": [{"type": "object"}]},
                "pair": {"prefixItems": [{"type": "string"}], "items": false},
            },
            "$defs": {
                "entry": {"type": "object", "properties": {"size": {"type": ["integer", "null"]}}},
                "loop": {"$ref": "#/$defs/loop"},
            },
        });
        let types = |path: &str| match Outline::of(&schema).follow(&steps(path)) {
            Ok(found) => found
                .types()
                .map_or("any".to_owned(), |types| types.into_iter().collect::<Vec<_>>().join(" ")),
            Err(wrong) => format!("{}; {}", wrong.problem("it"), wrong.help("none")),
        };
        for (path, expected) in [
            ("", "object"),
            ("text", "string"),
            ("maybe.size", "integer null"),
            ("list.0.size", "integer null"),
            ("open.anything.at.all", "any"),
            ("map.x", "integer"),
            ("loop.x", "any"),
            ("both.x", "any"),
            ("pair.0", "string"),
            ("txet", "it has no `txet`; did you mean `text`?"),
            ("text.x", "it has a string there, which has no `x`; none"),
            ("text.0", "it has a string there, which has no place 0; none"),
            ("list.size", "it has a list there, which has no `size`; none"),
            ("list.0.weight", "it has no `weight`; there are `size`"),
            ("pair.1", "it has no place 1 there; none"),
        ] {
            assert_eq!(types(path), expected, "{path}");
        }
    }
}

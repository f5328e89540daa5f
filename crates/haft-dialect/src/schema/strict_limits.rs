//! How large a schema strict mode takes.

use serde_json::{Map, Value};

const PROPERTIES: usize = 5_000;
const CHOICES: usize = 1_000;
const LETTERS: usize = 120_000;
const LEVELS: usize = 10;
/// A list with more choices than this may have only [`LONG_LIST_LETTERS`].
const LONG_LIST: usize = 250;
const LONG_LIST_LETTERS: usize = 15_000;

#[derive(Default)]
struct Size {
    properties: usize,
    choices: usize,
    letters: usize,
    levels: usize,
    long_list: bool,
}

/// Why a schema is too large for strict mode; `None` where it is not.
pub(crate) fn exceeded(schema: &Map<String, Value>) -> Option<&'static str> {
    let mut size = Size::default();
    measure(schema, 1, &mut size);
    if size.levels > LEVELS {
        Some("strict mode takes at most 10 levels of objects and lists")
    } else if size.properties > PROPERTIES {
        Some("strict mode takes at most 5000 properties")
    } else if size.choices > CHOICES {
        Some("strict mode takes at most 1000 choices")
    } else if size.letters > LETTERS {
        Some("strict mode takes at most 120000 characters of names and choices")
    } else if size.long_list {
        Some("strict mode takes at most 15000 characters in a list of more than 250 choices")
    } else {
        None
    }
}

fn measure(schema: &Map<String, Value>, level: usize, size: &mut Size) {
    size.levels = size.levels.max(level);
    let letters = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
    if let Some(Value::Array(values)) = schema.get("enum") {
        let sum: usize = values.iter().map(letters).sum();
        size.choices += values.len();
        size.letters += sum;
        size.long_list |= values.len() > LONG_LIST && sum > LONG_LIST_LETTERS;
    }
    size.letters += schema.get("const").map_or(0, letters);
    if let Some(Value::Object(properties)) = schema.get("properties") {
        size.properties += properties.len();
        for (name, property) in properties {
            size.letters += name.chars().count();
            if let Value::Object(property) = property {
                let deeper = usize::from(is_nest(property));
                measure(property, level + deeper, size);
            }
        }
    }
    if let Some(Value::Object(items)) = schema.get("items") {
        measure(items, level + usize::from(is_nest(items)), size);
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        for branch in branches.iter().filter_map(Value::as_object) {
            measure(branch, level + usize::from(is_nest(branch)), size);
        }
    }
}

fn is_nest(schema: &Map<String, Value>) -> bool {
    schema.contains_key("properties") || schema.contains_key("items")
}

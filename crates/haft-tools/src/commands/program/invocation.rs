//! From the arguments of a call to a command line.

use haft_core::{CommandSource, ToolError};
use serde_json::{Map, Value};

/// The arguments as flags: `--name value`, `--name` for what is true, repeated for lists; positional ones after `--`.
pub(super) fn flags(
    command: &CommandSource,
    parameters: &Value,
    args: &Map<String, Value>,
) -> Result<Vec<String>, ToolError> {
    let none = Map::new();
    let known = parameters.get("properties").and_then(Value::as_object).unwrap_or(&none);
    // In the order of the definition; what it does not name comes after that.
    let in_order = known.keys().filter_map(|name| args.get_key_value(name));
    let others = args.iter().filter(|(name, _)| !known.contains_key(*name));
    let mut words = Vec::new();
    for (name, value) in in_order.chain(others).filter(|(name, _)| !command.positional.contains(name)) {
        let flag =
            command.flags.get(name).cloned().unwrap_or_else(|| format!("--{}", name.replace('_', "-")));
        match value {
            Value::Bool(true) => words.push(flag),
            Value::Bool(false) => {}
            value => texts(value).into_iter().for_each(|text| words.extend(with_value(&flag, text))),
        }
    }
    let positional: Vec<String> =
        command.positional.iter().filter_map(|name| args.get(name)).flat_map(texts).collect();
    if !positional.is_empty() {
        words.push("--".to_owned());
        words.extend(positional);
    }
    match words.iter().any(|word| word.contains('\0')) {
        true => Err(ToolError::bad_args("Bad args: a NUL character cannot stand on a command line")),
        false => Ok(words),
    }
}

/// A flag with its value. A value that looks like a flag must not become one.
fn with_value(flag: &str, value: String) -> Vec<String> {
    match (value.starts_with('-'), flag.starts_with("--")) {
        (false, _) => vec![flag.to_owned(), value],
        (true, true) => vec![format!("{flag}={value}")],
        (true, false) => vec![format!("{flag}{value}")],
    }
}

/// A value as words: each of a list, nothing for null, and JSON for what is no plain value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().map(one).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![one(value)],
    }
}

fn one(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A word as one would type it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn words(args: Value) -> Vec<String> {
        let command = CommandSource {
            flags: [("limit".to_owned(), "-n".to_owned())].into(),
            positional: vec!["paths".to_owned()],
            ..CommandSource::new("x")
        };
        let parameters = json!({"properties": {
            "max_count": {}, "all": {}, "limit": {}, "tags": {}, "filter": {}, "paths": {}
        }});
        flags(&command, &parameters, args.as_object().unwrap()).unwrap()
    }

    #[test]
    fn arguments_become_flags() {
        let cases = [
            (json!({}), vec![]),
            (json!({"max_count": 3, "all": true}), vec!["--all", "--max-count", "3"]),
            (json!({"all": false, "max_count": null}), vec![]),
            (json!({"limit": 5}), vec!["-n", "5"]),
            (json!({"tags": ["a", "b c"]}), vec!["--tags", "a", "--tags", "b c"]),
            (json!({"filter": {"a": [1]}}), vec!["--filter", "{\"a\":[1]}"]),
            (json!({"paths": ["a", "-rf"], "all": true}), vec!["--all", "--", "a", "-rf"]),
            (json!({"filter": "--all"}), vec!["--filter=--all"]),
            (json!({"limit": -5}), vec!["-n-5"]),
            (json!({"tags": [true, 1.5]}), vec!["--tags", "true", "--tags", "1.5"]),
        ];
        for (args, expected) in cases {
            assert_eq!(words(args.clone()), expected, "{args}");
        }
        let nul = json!({"filter": "a\0b"});
        assert!(flags(&CommandSource::new("x"), &json!({}), nul.as_object().unwrap()).is_err());
    }

    #[test]
    fn words_are_quoted_for_people() {
        for (word, expected) in [("a", "a"), ("a b", "'a b'"), ("", "''"), ("it's", "'it'\\''s'")] {
            assert_eq!(quoted(word), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        /// No value of a call ever stands where a program would take it for a flag of its own.
        #[test]
        fn no_value_becomes_a_flag(filter in "[-a-z= ]{0,6}", paths in prop::collection::vec("[-a-z ]{0,6}", 0..4)) {
            let words = words(json!({"filter": filter, "paths": paths}));
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let mut before = words[..end].iter();
            while let Some(word) = before.next() {
                prop_assert!(word == "--filter" || *word == format!("--filter={filter}"), "{words:?}");
                if word == "--filter" {
                    prop_assert_eq!(before.next(), Some(&filter));
                    prop_assert!(!filter.starts_with('-'));
                }
            }
            prop_assert_eq!(words.get(end + 1..).unwrap_or_default(), &paths[..]);
        }
    }
}

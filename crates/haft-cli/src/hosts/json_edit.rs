//! Members and elements of a JSON file, changed where they stand: everything else keeps its bytes, comments included.

use super::json_text::{Items, indent_of, read, shown, skip_blank};
use serde_json::{Map, Value, json};

/// Why a text was left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is not JSON, not even with comments.
    NotJson,
    /// What should be an object, or a list, is something else.
    WrongKind(String),
}

/// The text with the member at that path set to the value. Objects on the way are made; an empty text counts as one
/// without members.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, Unfit> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let mut expected = read(text).ok_or(Unfit::NotJson)?;
    put(&mut expected, path, value)?;
    checked(write_member(text, path, value), &expected)
}

/// The text with one more element in the list at that path; as it is, where the element is there.
pub(super) fn push(text: &str, path: &[String], value: &Value) -> Result<String, Unfit> {
    let now = read(if text.trim().is_empty() { "{}" } else { text }).ok_or(Unfit::NotJson)?;
    match at(&now, path) {
        None => set(text, path, &json!([value])),
        Some(Value::Array(elements)) if elements.contains(value) => Ok(text.to_owned()),
        Some(Value::Array(_)) => {
            let mut expected = now.clone();
            if let Some(Value::Array(elements)) = at_mut(&mut expected, path) {
                elements.push(value.clone());
            }
            let edited = items_at(text, path).map(|items| items.with(text, None, value));
            checked(edited, &expected)
        }
        Some(_) => Err(Unfit::WrongKind(path.join("."))),
    }
}

/// The text without the member at that path, where it still has that value; `None` where it has not.
pub(super) fn unset(text: &str, path: &[String], value: &Value) -> Result<Option<String>, Unfit> {
    let mut expected = read(text).ok_or(Unfit::NotJson)?;
    let Some((last, above)) = path.split_last() else { return Ok(None) };
    if at(&expected, path) != Some(value) {
        return Ok(None);
    }
    if let Some(Value::Object(members)) = at_mut(&mut expected, above) {
        members.remove(last);
    }
    let edited = items_at(text, above).and_then(|items| {
        let place = items.place_of(last)?;
        Some(items.without(text, place))
    });
    checked(edited, &expected).map(Some)
}

/// The text without that element in the list at that path; `None` where it is not there.
pub(super) fn pull(text: &str, path: &[String], value: &Value) -> Result<Option<String>, Unfit> {
    let mut expected = read(text).ok_or(Unfit::NotJson)?;
    let Some(Value::Array(elements)) = at_mut(&mut expected, path) else { return Ok(None) };
    let Some(place) = elements.iter().position(|element| element == value) else { return Ok(None) };
    elements.remove(place);
    let edited = items_at(text, path).map(|items| items.without(text, place));
    checked(edited, &expected).map(Some)
}

/// The value at that path.
pub(super) fn get(text: &str, path: &[String]) -> Option<Value> {
    at(&read(text)?, path).cloned()
}

/// What would be written is read again: if it were not exactly what was meant, nothing is.
fn checked(edited: Option<String>, expected: &Value) -> Result<String, Unfit> {
    edited.filter(|edited| read(edited).as_ref() == Some(expected)).ok_or(Unfit::NotJson)
}

fn at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.as_object()?.get(key))
}

fn at_mut<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| value.as_object_mut()?.get_mut(key))
}

fn put(value: &mut Value, path: &[String], new: &Value) -> Result<(), Unfit> {
    let Some((last, above)) = path.split_last() else { return Err(Unfit::NotJson) };
    let mut slot = value;
    let mut name = "the file".to_owned();
    for key in above {
        let Value::Object(members) = slot else { return Err(Unfit::WrongKind(name)) };
        slot = members.entry(key.as_str()).or_insert_with(|| Value::Object(Map::new()));
        name.clone_from(key);
    }
    let Value::Object(members) = slot else { return Err(Unfit::WrongKind(name)) };
    members.insert(last.clone(), new.clone());
    Ok(())
}

/// The object or list at that path of the text.
fn items_at(text: &str, path: &[String]) -> Option<Items> {
    let mut items = Items::at(text, skip_blank(text, 0))?;
    for key in path {
        let start = items.value_of(key)?.start;
        items = Items::at(text, start)?;
    }
    Some(items)
}

fn write_member(text: &str, path: &[String], value: &Value) -> Option<String> {
    let mut items = Items::at(text, skip_blank(text, 0))?;
    for (depth, key) in path.iter().enumerate() {
        let is_last = depth + 1 == path.len();
        match items.value_of(key) {
            Some(old) if is_last => {
                let indent = indent_of(text, old.start);
                return Some(format!("{}{}{}", &text[..old.start], shown(value, &indent), &text[old.end..]));
            }
            Some(found) => items = Items::at(text, found.start)?,
            None => {
                let whole =
                    path[depth + 1..].iter().rev().fold(value.clone(), |inner, key| json!({key: inner}));
                return Some(items.with(text, Some(key), &whole));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    fn haft() -> Value {
        json!({"command": "haft"})
    }

    fn put_in(text: &str) -> Result<String, Unfit> {
        set(text, &path("mcpServers.haft"), &haft())
    }

    #[test]
    fn an_entry_is_put_in_and_nothing_else_moves() {
        for (before, after) in [
            ("", "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"haft\"\n    }\n  }\n}\n"),
            (
                "{\n  \"zebra\": 1,\n  \"mcpServers\": {\n    \"other\": {}\n  },\n  \"apple\": [1, 2]\n}\n",
                "{\n  \"zebra\": 1,\n  \"mcpServers\": {\n    \"other\": {},\n    \"haft\": {\n      \"command\": \"haft\"\n    }\n  },\n  \"apple\": [1, 2]\n}\n",
            ),
            (
                "{\"mcpServers\": {\"haft\": {\"command\": \"old\"}}, \"b\": \"}\"}",
                "{\"mcpServers\": {\"haft\": {\n  \"command\": \"haft\"\n}}, \"b\": \"}\"}",
            ),
            (
                "// mine\n{\n\t\"a\": 1, // one\n\t/* servers */ \"mcpServers\": {\n\t\t\"x\": {}, // last\n\t},\n}\n",
                "// mine\n{\n\t\"a\": 1, // one\n\t/* servers */ \"mcpServers\": {\n\t\t\"x\": {},\n\t\t\"haft\": {\n\t\t  \"command\": \"haft\"\n\t\t} // last\n\t},\n}\n",
            ),
        ] {
            assert_eq!(put_in(before).as_deref(), Ok(after), "{before}");
        }
    }

    #[test]
    fn elements_are_added_once_and_taken_out_again() {
        for (before, after) in [
            ("{}", "{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}"),
            ("{\"a\": {\"b\": []}}", "{\"a\": {\"b\": [\n  1\n]}}"),
            ("{\"a\": {\"b\": [0]}}", "{\"a\": {\"b\": [0,\n  1\n]}}"),
            (
                "{\n  \"a\": {\n    \"b\": [\n      0, // keep\n    ]\n  }\n}",
                "{\n  \"a\": {\n    \"b\": [\n      0,\n      1 // keep\n    ]\n  }\n}",
            ),
        ] {
            let added = push(before, &path("a.b"), &json!(1));
            assert_eq!(added.as_deref(), Ok(after), "{before}");
            let added = added.unwrap();
            assert_eq!(push(&added, &path("a.b"), &json!(1)).as_deref(), Ok(added.as_str()), "twice is once");
            let taken = pull(&added, &path("a.b"), &json!(1)).unwrap().unwrap();
            assert_eq!(pull(&taken, &path("a.b"), &json!(1)), Ok(None), "{taken}");
        }
        assert_eq!(push("{\"a\": 3}", &path("a"), &json!(1)), Err(Unfit::WrongKind("a".to_owned())));
    }

    #[test]
    fn what_somebody_changed_since_is_not_taken_out() {
        let text = put_in("{\"a\": 1}").unwrap();
        let changed = text.replace("haft\"\n", "mine\"\n");
        assert_eq!(unset(&changed, &path("mcpServers.haft"), &haft()), Ok(None));
        assert_eq!(unset("{}", &path("mcpServers.haft"), &haft()), Ok(None));
    }

    #[test]
    fn comments_stay_when_a_neighbour_goes() {
        for (before, after) in [
            (
                "{\n  // of a\n  \"a\": 1,\n  // of b\n  \"b\": 2 // two\n}",
                "{\n  // of a\n  \"a\": 1\n  // of b\n // two\n}",
            ),
            ("{\n  \"b\": 2,\n  // of a\n  \"a\": 1,\n}", "{\n  // of a\n  \"a\": 1,\n}"),
            ("{\"b\": 2}", "{}"),
            ("{ \"b\": 2, }", "{ }"),
        ] {
            assert_eq!(unset(before, &path("b"), &json!(2)), Ok(Some(after.to_owned())), "{before}");
        }
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for (text, section) in [("[]", "the file"), ("{\"mcpServers\": []}", "mcpServers"), ("3", "the file")]
        {
            assert_eq!(put_in(text), Err(Unfit::WrongKind(section.to_owned())), "{text}");
        }
        for text in [
            "{",
            "{\"a\" 1}",
            "{'a': 1}",
            "{\"a\": 1} x",
            "nonsense",
            "{\"a\": \"",
            "/*",
            "{\"a\":}",
            "\u{0}",
            "{/",
        ] {
            assert_eq!(put_in(text), Err(Unfit::NotJson), "{text}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..Default::default() })]
        #[test]
        fn nothing_that_is_read_breaks_it(text in "[\\{\\}\\[\\]\",:/* a\\\\\n1é]{0,40}") {
            if let Ok(edited) = put_in(&text) {
                proptest::prop_assert_eq!(get(&edited, &path("mcpServers.haft")), Some(haft()));
                let taken = unset(&edited, &path("mcpServers.haft"), &haft());
                proptest::prop_assert!(matches!(taken, Ok(Some(_))), "{:?}", taken);
            }
        }

        #[test]
        fn what_was_put_in_and_taken_out_leaves_the_rest(
            keys in proptest::collection::vec("[a-d]{1,2}", 0..4),
            gaps in proptest::collection::vec("( |\n|\t|// x\n|/\\* y \\*/){0,3}", 12),
            trailing in proptest::bool::ANY,
        ) {
            let gap = |at: usize| gaps[at % gaps.len()].as_str();
            let mut text = format!("{{{}", gap(0));
            for (at, key) in keys.iter().enumerate() {
                let comma = if at + 1 < keys.len() || trailing { "," } else { "" };
                text += &format!("\"{key}{at}\"{}:{}[{at}, {{}}]{}{comma}{}", gap(at), gap(at + 1), gap(at + 2), gap(at + 3));
            }
            text += "}";
            let before = read(&text).expect("it is JSON with comments");
            let with = push(&text, &path("new.list"), &haft()).expect("it can be added");
            let without = pull(&with, &path("new.list"), &haft()).unwrap().unwrap();
            let without = unset(&without, &path("new.list"), &json!([])).unwrap().unwrap();
            let without = unset(&without, &path("new"), &json!({})).unwrap().unwrap();
            proptest::prop_assert_eq!(read(&without), Some(before));
            for comment in ["// x", "/* y */"] {
                proptest::prop_assert_eq!(without.matches(comment).count(), text.matches(comment).count());
            }
        }
    }
}

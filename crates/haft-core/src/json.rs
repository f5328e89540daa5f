//! Strict reading of JSON that came from outside.
//!
//! `serde_json` silently keeps the last of two equal keys. A check that reads one and a program that reads the
//! other would then see different calls, so here the second one is an error.

use crate::Problem;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads one JSON value: no duplicate keys, nothing after it, at most 128 levels deep.
///
/// ```
/// assert!(haft_core::json::parse(r#"{"a": 1}"#).is_ok());
/// let problem = haft_core::json::parse(r#"{"a": 1, "a": 2}"#).unwrap_err();
/// assert_eq!(problem.message, "the key \"a\" is there twice (line 1 column 12)");
/// ```
pub fn parse(text: &str) -> Result<Value, Problem> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = Strict.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let text = error.to_string();
        let what = text.strip_suffix(&place).unwrap_or(&text);
        Problem::new("", "json", format!("{what} (line {} column {})", error.line(), error.column()))
    })
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            match map.entry(key) {
                serde_json::map::Entry::Vacant(slot) => {
                    slot.insert(entries.next_value_seed(Strict)?);
                }
                serde_json::map::Entry::Occupied(slot) => {
                    return Err(A::Error::custom(format_args!("the key {:?} is there twice", slot.key())));
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn bad_input_gets_a_place_and_never_panics() {
        for (text, message) in [
            ("", "EOF while parsing a value (line 1 column 0)"),
            ("{\"a\":1}x", "trailing characters (line 1 column 8)"),
            ("{\"a\":{\"b\":1,\"b\":2}}", "the key \"b\" is there twice (line 1 column 15)"),
            ("[1e999]", "number out of range (line 1 column 6)"),
            (
                "\"a\u{0}b\"",
                "control character (\\u0000-\\u001F) found while parsing a string (line 1 column 3)",
            ),
        ] {
            assert_eq!(parse(text).map_err(|problem| problem.message), Err(message.to_owned()), "{text:?}");
        }
        let bomb = "[".repeat(100_000);
        assert_eq!(
            parse(&bomb).map_err(|problem| problem.message),
            Err("recursion limit exceeded (line 1 column 128)".to_owned())
        );
    }

    #[test]
    fn agrees_with_serde_json_on_ordinary_values() {
        let text = r#"{"s":"aé\n","n":-3,"u":18446744073709551615,"f":1.5,"l":[null,true,{}]}"#;
        assert_eq!(parse(text), Ok(serde_json::from_str(text).unwrap()));
    }
}

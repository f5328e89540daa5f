//! From TOML text to a tree.

use serde_json::{Number, Value};
use toml::de::{DeTable, DeValue};

use crate::error::{Position, ReadError, ReadErrors};
use crate::tree::{Key, Kind, Node};

/// The name under which a value is written as JSON text, where TOML cannot say it.
pub(crate) const JSON_KEY: &str = "$json";

/// The tree of a text.
pub(crate) fn parse(text: &str) -> Result<Node, ReadErrors> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let wrong = errors.iter().map(|error| {
            let at = text.floor_char_boundary(error.span().map_or(0, |span| span.start));
            let before = text[..at].trim_end_matches([' ', '\t']);
            // A value that begins with a letter, such as `name = ping`.
            let bare = before.ends_with('=') && text[at..].starts_with(char::is_alphabetic);
            ReadError {
                position: Position::of(text, at),
                problem: format!("this is not TOML: {}", error.message()),
                help: bare.then(|| "texts are written in quotes".to_owned()),
            }
        });
        return Err(ReadErrors::new(wrong.collect()));
    }
    let mut reader = Reader { text, errors: Vec::new() };
    let kind = reader.table(table.get_ref());
    if reader.errors.is_empty() { Ok(Node { at: 0, kind }) } else { Err(ReadErrors::new(reader.errors)) }
}

struct Reader<'t> {
    text: &'t str,
    errors: Vec<ReadError>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>) -> Kind {
        let members = table.iter().map(|(key, value)| {
            let key = Key { name: key.get_ref().to_string(), at: key.span().start };
            (key, self.node(value.get_ref(), value.span().start))
        });
        let mut members: Vec<(Key, Node)> = members.collect();
        if let [(key, value)] = members.as_slice()
            && key.name == JSON_KEY
            && let Kind::Scalar(Value::String(json)) = &value.kind
        {
            return self.json(json, value.at);
        }
        members.sort_by_key(|(key, _)| key.at);
        Kind::Table(members)
    }

    /// A value that is written as JSON text: all of it is where the text is.
    fn json(&mut self, text: &str, at: usize) -> Kind {
        match haft_core::json::parse(text) {
            Ok(value) => placed(value, at),
            Err(problem) => self.refuse(at, format!("`{JSON_KEY}`: {}", problem.message), None),
        }
    }

    fn node(&mut self, value: &DeValue<'_>, at: usize) -> Node {
        let kind = match value {
            DeValue::String(text) => Kind::Scalar(text.as_ref().into()),
            DeValue::Boolean(on) => Kind::Scalar((*on).into()),
            DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => match (i64::try_from(number), u64::try_from(number)) {
                    (Ok(number), _) => Kind::Scalar(number.into()),
                    (_, Ok(number)) => Kind::Scalar(number.into()),
                    (Err(_), Err(_)) => self.refuse(at, "the number is too large", None),
                },
                Err(_) => self.refuse(at, "the number is too large", None),
            },
            DeValue::Float(float) => {
                let number = float.as_str().parse().ok().and_then(Number::from_f64);
                let help = "infinity and \"not a number\" have no form in JSON";
                number.map_or_else(
                    || self.refuse(at, "this number cannot be used", Some(help)),
                    |number| Kind::Scalar(Value::Number(number)),
                )
            }
            DeValue::Datetime(_) => {
                self.refuse(at, "a date has no form in JSON", Some("put it in quotes, as a string"))
            }
            DeValue::Array(items) => {
                Kind::List(items.iter().map(|item| self.node(item.get_ref(), item.span().start)).collect())
            }
            DeValue::Table(table) => self.table(table),
        };
        Node { at, kind }
    }

    fn refuse(&mut self, at: usize, problem: impl Into<String>, help: Option<&str>) -> Kind {
        let position = Position::of(self.text, at);
        self.errors.push(ReadError { position, problem: problem.into(), help: help.map(str::to_owned) });
        Kind::Scalar(Value::Null)
    }
}

fn placed(value: Value, at: usize) -> Kind {
    match value {
        Value::Array(items) => {
            Kind::List(items.into_iter().map(|item| Node { at, kind: placed(item, at) }).collect())
        }
        Value::Object(members) => Kind::Table(
            members
                .into_iter()
                .map(|(name, value)| (Key { name, at }, Node { at, kind: placed(value, at) }))
                .collect(),
        ),
        scalar => Kind::Scalar(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_value() {
        let text = "s = 'x'\ni = -5\nh = 0xff\nbig = 18_446_744_073_709_551_615\nf = 1.5\nb = true\n\
                    l = [1, { a = 2 }]\nn = { \"$json\" = \"null\" }\n[t.u]\nv = { \"$json\" = '{\"w\": [null]}' }\n[[p]]\nx = 1\n[[p]]\nx = 2\n";
        let expected = json!({
            "s": "x", "i": -5, "h": 255, "big": u64::MAX, "f": 1.5, "b": true, "l": [1, {"a": 2}], "n": null,
            "t": {"u": {"v": {"w": [null]}}}, "p": [{"x": 1}, {"x": 2}],
        });
        assert_eq!(parse(text).unwrap().to_value(), expected);
    }

    #[test]
    fn what_json_cannot_say_is_refused_with_its_place() {
        for (text, message) in [
            (
                "a = 1\nb = 1979-05-27",
                "error: a date has no form in JSON at line 2, column 5\n  help: put it in quotes, as a string",
            ),
            (
                "a = inf",
                "error: this number cannot be used at line 1, column 5\n  help: infinity and \"not a number\" have no form in JSON",
            ),
            ("a = 18446744073709551616", "error: the number is too large at line 1, column 5"),
            (
                "a = { \"$json\" = \"{\" }",
                "error: `$json`: EOF while parsing an object (line 1 column 1) at line 1, column 17",
            ),
            ("a = 1\na = 2", "error: this is not TOML: duplicate key at line 2, column 1"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text:?}");
        }
    }
}

//! TOML: its problems, the same content as JSON, and where everything stands.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::json::MAX_DEPTH;
use super::problem::{Findings, Found, Lines};
use super::spans::{Inside, Member, Node, push_segment};

#[cfg(test)]
mod tests;

/// What was read.
#[derive(Debug)]
pub(super) struct Scan {
    /// The content as JSON, where all of it could be read: dates and times are strings, as are `nan` and `inf`.
    pub(super) value: Option<Value>,
    /// The places.
    pub(super) places: Node,
}

/// Reads `text` and puts what is wrong with it into `findings`.
pub(super) fn scan(text: &str, lines: &Lines<'_>, findings: &mut Findings) -> Scan {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        lines,
        findings,
        pointer: String::new(),
        depth: 0,
        exact: true,
    };
    let (value, places) = reader.table(table.get_ref(), 0..0);
    // One mistake often makes several errors on its line.
    let mut errors: Vec<(Range<usize>, String)> = errors
        .iter()
        .map(|error| {
            (
                error.span().unwrap_or(text.len()..text.len()),
                error.message().to_owned(),
            )
        })
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    errors.dedup_by_key(|(span, _)| lines.place(span.start).0);
    for (span, message) in &errors {
        reader.syntax(span, message, &places);
    }
    Scan {
        value: reader.exact.then_some(value),
        places,
    }
}

struct Reader<'t, 'f> {
    text: &'t str,
    lines: &'f Lines<'t>,
    findings: &'f mut Findings,
    pointer: String,
    depth: usize,
    /// Whether all that was read so far is what was meant.
    exact: bool,
}

impl Reader<'_, '_> {
    fn value(&mut self, value: &Spanned<DeValue<'_>>) -> (Value, Node) {
        let span = value.span();
        let read = match value.get_ref() {
            DeValue::String(string) => Value::String(string.to_string()),
            DeValue::Boolean(boolean) => Value::Bool(*boolean),
            DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => Value::from(integer),
                Err(_) => self.number(&span, "an integer from -2^63 to 2^63-1"),
            },
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => Value::from(number),
                Ok(_) if float.as_str().contains(['n', 'N']) => Value::String(float.as_str().to_owned()),
                _ => self.number(&span, "a number that fits into 64 bits"),
            },
            DeValue::Array(items) => {
                return self.inside(span.clone(), |reader| {
                    let mut values = Vec::new();
                    let mut places = Vec::new();
                    for (index, item) in items.iter().enumerate() {
                        let (value, place) = reader.step(&index.to_string(), |reader| reader.value(item));
                        values.push(value);
                        places.push(place);
                    }
                    (
                        Value::Array(values),
                        Node {
                            span,
                            inside: Inside::Items(places),
                        },
                    )
                });
            }
            DeValue::Table(table) => {
                return self.inside(span.clone(), |reader| reader.table(table, span));
            }
        };
        (read, Node::leaf(span))
    }

    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>) -> (Value, Node) {
        let mut values = Map::new();
        let mut places = BTreeMap::new();
        for (key, value) in table.iter() {
            let name = key.get_ref().to_string();
            let (value, place) = self.step(&name, |reader| reader.value(value));
            values.insert(name.clone(), value);
            places.insert(
                name,
                Member {
                    key: key.span(),
                    value: place,
                },
            );
        }
        (
            Value::Object(values),
            Node {
                span,
                inside: Inside::Members(places),
            },
        )
    }

    fn step<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        push_segment(&mut self.pointer, name);
        let done = read(self);
        self.pointer.truncate(length);
        done
    }

    fn inside(&mut self, span: Range<usize>, read: impl FnOnce(&mut Self) -> (Value, Node)) -> (Value, Node) {
        // The table that is the content counts as a level.
        if self.depth + 1 >= MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} arrays and tables inside each other, got more");
            self.report(span.start, "depth", message);
            return (Value::Null, Node::leaf(span));
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    fn number(&mut self, span: &Range<usize>, expected: &str) -> Value {
        let message = format!("expected {expected}, got `{}`", self.shown(span));
        self.report(span.start, "number", message);
        Value::Null
    }

    fn report(&mut self, offset: usize, rule: &str, message: String) -> &mut Findings {
        self.exact = false;
        let pointer = Some(self.pointer.clone());
        self.findings.push(Found {
            offset,
            pointer,
            rule: rule.to_owned(),
            message,
            hint: None,
        })
    }

    fn syntax(&mut self, span: &Range<usize>, message: &str, places: &Node) {
        self.exact = false;
        let shown = self.shown(span);
        let (rule, message) = if message == "duplicate key" {
            let first = first_place(places, &shown, span.start).map(|at| self.lines.words(at));
            let first = first.map_or(String::new(), |place| format!(": it is first at {place}"));
            (
                "duplicate_key",
                format!("expected each key once, got `{shown}` again{first}"),
            )
        } else if message.contains("recursion") || message.contains("recurse") {
            (
                "depth",
                "expected fewer arrays and tables inside each other".to_owned(),
            )
        } else if span.is_empty() {
            let end = if span.start >= self.text.len() {
                "the end of the content"
            } else {
                "something else"
            };
            ("syntax", sentence(message, end))
        } else if shown.is_empty() {
            ("syntax", sentence(message, "a line break"))
        } else {
            ("syntax", sentence(message, &format!("`{shown}`")))
        };
        let hint = hint(&message, &shown);
        let found = Found {
            offset: span.start,
            pointer: None,
            rule: rule.to_owned(),
            message,
            hint,
        };
        self.findings.push(found);
    }

    /// The content at `span`: its first line, cut where it is long.
    fn shown(&self, span: &Range<usize>) -> String {
        let line = self
            .text
            .get(span.clone())
            .and_then(|text| text.lines().next())
            .unwrap_or_default();
        match line.char_indices().nth(40) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

/// `unclosed array, expected `]`` becomes `unclosed array: expected `]`, got …`.
fn sentence(message: &str, got: &str) -> String {
    match message.split_once(", expected ") {
        Some((what, expected)) => format!("{what}: expected {expected}, got {got}"),
        None => format!("{message}, got {got}"),
    }
}

fn hint(message: &str, shown: &str) -> Option<String> {
    let word = shown.trim();
    if message.starts_with("string values must be quoted") {
        return Some(match word {
            "True" | "TRUE" => "write `true`".to_owned(),
            "False" | "FALSE" => "write `false`".to_owned(),
            "null" | "None" | "nil" => "TOML has no null: leave the key out".to_owned(),
            _ => format!("write {}", Value::from(word)),
        });
    }
    let hint = match message.split(':').next().unwrap_or_default() {
        "key with no value" if word.starts_with(':') => "write `=` instead of `:`",
        "key with no value" => "write `key = value`",
        "duplicate key" => "keep one of the two",
        "unclosed array" => "close the array with `]`",
        "unclosed table" => "close the name of the table with `]`",
        "unclosed inline table" => "close the table with `}`",
        _ if message.starts_with("expected each key once") => "keep one of the two",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Where the key that is written as `written` at `at` was first.
fn first_place(places: &Node, written: &str, at: usize) -> Option<usize> {
    let name = written.trim_matches(['"', '\'']);
    let mut found = Vec::new();
    let mut open = vec![places];
    while let Some(node) = open.pop() {
        match &node.inside {
            Inside::Nothing => {}
            Inside::Items(items) => open.extend(items),
            Inside::Members(members) => {
                found.extend(
                    members
                        .get(name)
                        .map(|member| member.key.start)
                        .filter(|start| *start < at),
                );
                open.extend(members.values().map(|member| &member.value));
            }
        }
    }
    // With several tables that have such a key, it cannot be told which.
    match found.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

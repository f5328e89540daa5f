//! TOML: its problems, the same content as JSON, and where everything stands.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::json::MAX_DEPTH;
use super::problem::{Findings, Found, Lines};
use super::spans::{Inside, Member, Node};
use haft_schema::pointer::push_segment;

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
    let (pointer, exact) = (String::new(), errors.is_empty());
    let mut reader = Reader { text, lines, findings, pointer, depth: 0, well_formed: exact, exact };
    let (value, places) = reader.table(table.get_ref(), 0..0);
    let end = text.len()..text.len();
    let mut errors: Vec<(Range<usize>, String)> = errors
        .iter()
        .map(|error| (error.span().unwrap_or(end.clone()), error.message().to_owned()))
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    // One mistake often makes several errors on its line.
    errors.dedup_by_key(|(span, _)| lines.line(span.start));
    for (span, message) in &errors {
        reader.syntax(span, message, &places);
    }
    Scan { value: reader.exact.then_some(value), places }
}

struct Reader<'t, 'f> {
    text: &'t str,
    lines: &'f Lines<'t>,
    findings: &'f mut Findings,
    pointer: String,
    depth: usize,
    /// Whether the text is TOML. If not, values may be wrong because of that.
    well_formed: bool,
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
                    (Value::Array(values), Node { span, inside: Inside::Items(places) })
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
            places.insert(name, Member { key: key.span(), value: place });
        }
        (Value::Object(values), Node { span, inside: Inside::Members(places) })
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

    fn report(&mut self, offset: usize, rule: &str, message: String) {
        self.exact = false;
        if self.well_formed {
            let pointer = Some(self.pointer.clone());
            self.findings.push(Found { offset, pointer, rule: rule.to_owned(), message, hint: None });
        }
    }

    fn syntax(&mut self, span: &Range<usize>, message: &str, places: &Node) {
        if !self.findings.has_room() {
            self.findings.count_unlisted(1);
            return;
        }
        let shown = self.shown(span);
        let word = shown.trim();
        let got = if word.is_empty() { self.character(span.start) } else { format!("`{shown}`") };
        let (rule, message, hint) = if message == "duplicate key" {
            let first = self.first_place(places, word, span.start).map(|at| self.lines.words(at));
            let first = first.map_or(String::new(), |place| format!(": it is first at {place}"));
            let hint = Some("keep one of the two".to_owned());
            ("duplicate_key", format!("expected each key once, got {got} again{first}"), hint)
        } else if message.contains("recursion") || message.contains("recurse") {
            ("depth", "expected at most 80 levels of arrays and tables, got more".to_owned(), None)
        } else if self.text.trim_start().starts_with('{') {
            let hint = Some("this looks like JSON: say so with `format`".to_owned());
            ("syntax", sentence(message, &got), hint)
        } else if matches!(word, "null" | "None" | "nil") || message.starts_with(UNQUOTED) {
            ("syntax", format!("expected a value, got {got}"), hint(message, word))
        } else {
            ("syntax", sentence(message, &got), hint(message, word))
        };
        self.findings.push(Found { offset: span.start, pointer: None, rule: rule.to_owned(), message, hint });
    }

    /// What is at `offset`.
    fn character(&self, offset: usize) -> String {
        match self.text.get(offset..).unwrap_or_default().chars().next() {
            None => "the end of the content".to_owned(),
            Some('\n' | '\r') => "a line break".to_owned(),
            Some(other) if other.is_control() => format!("the character U+{:04X}", u32::from(other)),
            Some(other) => format!("`{other}`"),
        }
    }

    /// Where the key that is written as `written` at `at` was first.
    fn first_place(&self, places: &Node, written: &str, at: usize) -> Option<usize> {
        let line = self.text.get(..at)?.rsplit('\n').next().unwrap_or_default();
        if line.trim_start().starts_with('[') {
            // The name of a table is a path of keys, of which this is only the last.
            return None;
        }
        let name = written.trim_matches(['"', '\'']);
        let mut last = None;
        let mut open = vec![places];
        while let Some(node) = open.pop() {
            match &node.inside {
                Inside::Nothing => {}
                Inside::Items(items) => open.extend(items),
                Inside::Members(members) => {
                    // That of the same table is the nearest before this one.
                    let start = members.get(name).map(|member| member.key.start).filter(|start| *start < at);
                    last = last.max(start);
                    open.extend(members.values().map(|member| &member.value));
                }
            }
        }
        last
    }

    /// The content at `span`: its first line, cut where it is long.
    fn shown(&self, span: &Range<usize>) -> String {
        let line = self.text.get(span.clone()).and_then(|text| text.lines().next()).unwrap_or_default();
        match line.char_indices().nth(40) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

/// How the parser says that a value is no value.
const UNQUOTED: &str = "string values must be quoted";

/// ``unclosed array, expected `]` `` becomes ``unclosed array: expected `]`, got …``.
fn sentence(message: &str, got: &str) -> String {
    match message.split_once(", expected ") {
        Some((what, "nothing")) => format!("{what}, got {got}"),
        Some((what, expected)) => format!("{what}: expected {expected}, got {got}"),
        None => format!("{message}, got {got}"),
    }
}

/// What to do about an error of the parser, which is at `word`.
fn hint(message: &str, word: &str) -> Option<String> {
    if message == "invalid basic string, expected `\"`" {
        return Some("close the string with `\"`, or use `\"\"\"` for several lines".to_owned());
    }
    if message == "invalid literal string, expected `'`" {
        return Some("close the string with `'`, or use `'''` for several lines".to_owned());
    }
    let hint = match (message.split(", expected").next().unwrap_or_default(), word) {
        (_, "True" | "TRUE") => "write `true`",
        (_, "False" | "FALSE") => "write `false`",
        (_, "null" | "None" | "nil") => "TOML has no null: leave the key out",
        (_, word) if word.starts_with(':') => "write `=` between key and value",
        (_, word) if word.starts_with("//") => "comments start with `#`",
        (UNQUOTED, "") => return None,
        (UNQUOTED, word) => return Some(format!("put a string in quotes: {}", Value::from(word))),
        ("key with no value", _) => "write `key = value`, and put a key with spaces in quotes",
        ("invalid unquoted key", _) => "put the key in quotes",
        ("unclosed array", _) => "close the array with `]`",
        ("unclosed table" | "unclosed array table", _) => "close the name of the table with `]`",
        ("unclosed inline table", _) => "close the table with `}`",
        ("missing escaped value", _) => "write a backslash itself as `\\\\`, or use single quotes",
        _ => return None,
    };
    Some(hint.to_owned())
}

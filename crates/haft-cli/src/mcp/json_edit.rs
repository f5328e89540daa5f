//! One entry of a JSON file, changed where it stands: everything else keeps its bytes, comments included.

use serde_json::{Map, Value};

/// Why a text was left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is not JSON, not even with comments.
    NotJson,
    /// What should be an object is something else.
    NotAnObject(String),
}

/// The text with `section.name` set to the value. An empty text counts as an object without members.
pub(super) fn set(text: &str, section: &str, name: &str, value: &Value) -> Result<String, Unfit> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let before = read(text).ok_or(Unfit::NotJson)?;
    let Value::Object(mut expected) = before else { return Err(Unfit::NotAnObject("the file".to_owned())) };
    let slot = expected.entry(section).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(servers) = slot else { return Err(Unfit::NotAnObject(section.to_owned())) };
    servers.insert(name.to_owned(), value.clone());

    let edited = edit(text, section, name, value).ok_or(Unfit::NotJson)?;
    // What would be written is read again: if it were not exactly what was meant, nothing is.
    match read(&edited) {
        Some(after) if after == Value::Object(expected) => Ok(edited),
        _ => Err(Unfit::NotJson),
    }
}

/// The value of `section.name`, where there is one.
#[cfg(test)]
pub(super) fn get(text: &str, section: &str, name: &str) -> Option<Value> {
    read(text)?.get(section)?.get(name).cloned()
}

fn edit(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    let root = Object::at(text, skip_blank(text, 0))?;
    if let Some(found) = root.value_of(section) {
        let servers = Object::at(text, found.start)?;
        if let Some(old) = servers.value_of(name) {
            let depth = indent_of(text, old.start);
            return Some(format!("{}{}{}", &text[..old.start], shown(value, &depth), &text[old.end..]));
        }
        return Some(servers.with(text, name, value));
    }
    let mut section_value = Map::new();
    section_value.insert(name.to_owned(), value.clone());
    Some(root.with(text, section, &Value::Object(section_value)))
}

/// The value over several lines, indented to where it stands.
fn shown(value: &Value, indent: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    pretty.replace('\n', &format!("\n{indent}"))
}

/// The blanks at the beginning of the line that a place is on.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// Where the members of an object are.
struct Object {
    open: usize,
    members: Vec<(String, std::ops::Range<usize>)>,
    /// After the last member and a comma behind it.
    end: usize,
    has_last_comma: bool,
    close: usize,
}

impl Object {
    fn at(text: &str, open: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.get(open) != Some(&b'{') {
            return None;
        }
        let mut object = Object { open, members: Vec::new(), end: open + 1, has_last_comma: true, close: 0 };
        let mut at = skip_blank(text, open + 1);
        loop {
            match bytes.get(at)? {
                b'}' => {
                    object.close = at;
                    return Some(object);
                }
                b'"' => {}
                _ => return None,
            }
            let key_end = skip_value(text, at)?;
            let key: String = serde_json::from_str(&text[at..key_end]).ok()?;
            at = skip_blank(text, key_end);
            if bytes.get(at) != Some(&b':') {
                return None;
            }
            let start = skip_blank(text, at + 1);
            let end = skip_value(text, start)?;
            object.members.push((key, start..end));
            object.end = end;
            object.has_last_comma = false;
            at = skip_blank(text, end);
            if bytes.get(at) == Some(&b',') {
                object.end = at + 1;
                object.has_last_comma = true;
                at = skip_blank(text, at + 1);
            } else if bytes.get(at) != Some(&b'}') {
                return None;
            }
        }
    }

    /// The last one is in effect, as it is for programs that read the file.
    fn value_of(&self, key: &str) -> Option<std::ops::Range<usize>> {
        self.members.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    /// The text with one more member.
    fn with(&self, text: &str, key: &str, value: &Value) -> String {
        let outer = indent_of(text, self.open);
        let inner = match self.members.first() {
            // As the others are, if they have lines of their own.
            Some((_, first)) if text[self.open..first.start].contains('\n') => indent_of(text, first.start),
            _ => format!("{outer}  "),
        };
        let key = Value::String(key.to_owned());
        let member = format!("{key}: {}", shown(value, &inner));
        let comma = if self.has_last_comma { "" } else { "," };
        let rest = &text[self.end..self.close];
        // What stands between the last member and the brace, such as a comment, stays there.
        let tail = if rest.trim().is_empty() { format!("\n{outer}") } else { rest.to_owned() };
        format!("{}{comma}\n{inner}{member}{tail}{}", &text[..self.end], &text[self.close..])
    }
}

/// The first place that is neither blank nor in a comment.
fn skip_blank(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(at..) {
            Some([b' ' | b'\t' | b'\r' | b'\n', ..]) => at += 1,
            Some([0xef, 0xbb, 0xbf, ..]) if at == 0 => at += 3,
            Some([b'/', b'/', ..]) => at = text[at..].find('\n').map_or(text.len(), |end| at + end),
            Some([b'/', b'*', ..]) => {
                at = text[at + 2..].find("*/").map_or(text.len(), |end| at + 2 + end + 2)
            }
            _ => return at,
        }
    }
}

/// The end of the value that begins there.
fn skip_value(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' => at += 1,
            b'/' | b' ' | b'\t' | b'\r' | b'\n' => {
                let next = skip_blank(text, at);
                if next == at {
                    return None;
                }
                at = next;
                continue;
            }
            _ => {
                let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let length = bytes[at..].iter().take_while(|byte| plain(byte)).count();
                if length == 0 {
                    return None;
                }
                at += length;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// JSON, with comments and commas before a closing bracket let through, as most editors do.
fn read(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let next = skip_blank(text, at);
        if next > at {
            plain.push(' ');
            at = next;
            continue;
        }
        match bytes[at] {
            b'"' => {
                let end = skip_value(text, at)?;
                plain.push_str(text.get(at..end)?);
                at = end;
            }
            b',' if matches!(bytes.get(skip_blank(text, at + 1)), Some(b'}' | b']')) => at += 1,
            _ => {
                let c = text.get(at..)?.chars().next()?;
                plain.push(c);
                at += c.len_utf8();
            }
        }
    }
    serde_json::from_str(&plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn haft() -> Value {
        json!({"command": "haft"})
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
            assert_eq!(set(before, "mcpServers", "haft", &haft()).as_deref(), Ok(after), "{before}");
        }
    }

    #[test]
    fn twice_is_the_same_as_once() {
        let once = set("{\"a\": {}}", "mcpServers", "haft", &haft()).unwrap();
        assert_eq!(set(&once, "mcpServers", "haft", &haft()), Ok(once.clone()));
        assert_eq!(get(&once, "mcpServers", "haft"), Some(haft()));
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for (text, section) in [("[]", "the file"), ("{\"mcpServers\": []}", "mcpServers"), ("3", "the file")]
        {
            assert_eq!(
                set(text, "mcpServers", "haft", &haft()),
                Err(Unfit::NotAnObject(section.to_owned())),
                "{text}"
            );
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
            assert_eq!(set(text, "mcpServers", "haft", &haft()), Err(Unfit::NotJson), "{text}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..Default::default() })]
        #[test]
        fn nothing_that_is_read_breaks_it(text in "[\\{\\}\\[\\]\",:/* a\\\\\n1é]{0,40}") {
            if let Ok(edited) = set(&text, "mcpServers", "haft", &haft()) {
                proptest::prop_assert_eq!(get(&edited, "mcpServers", "haft"), Some(haft()));
            }
        }
    }
}

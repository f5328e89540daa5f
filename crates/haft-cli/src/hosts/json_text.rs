//! JSON with comments, as text: where its members and elements stand.

use serde_json::Value;
use std::ops::Range;

/// The value over several lines, indented to where it stands.
pub(super) fn shown(value: &Value, indent: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    pretty.replace('\n', &format!("\n{indent}"))
}

/// The blanks at the beginning of the line that a place is on.
pub(super) fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// A member of an object, or an element of a list.
struct Item {
    key: Option<String>,
    /// Where it begins: at its key, where it has one.
    start: usize,
    value: Range<usize>,
    /// The comma behind it.
    comma: Option<usize>,
}

/// Where the members of an object, or the elements of a list, are.
pub(super) struct Items {
    open: usize,
    items: Vec<Item>,
    close: usize,
}

impl Items {
    pub(super) fn at(text: &str, open: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let (closing, has_keys) = match bytes.get(open)? {
            b'{' => (b'}', true),
            b'[' => (b']', false),
            _ => return None,
        };
        let mut items = Items { open, items: Vec::new(), close: 0 };
        let mut at = skip_blank(text, open + 1);
        loop {
            if *bytes.get(at)? == closing {
                items.close = at;
                return Some(items);
            }
            let start = at;
            let key = match has_keys {
                false => None,
                true => {
                    let end = (bytes[at] == b'"').then(|| skip_value(text, at))??;
                    let key: String = serde_json::from_str(&text[at..end]).ok()?;
                    at = skip_blank(text, end);
                    if bytes.get(at) != Some(&b':') {
                        return None;
                    }
                    at = skip_blank(text, at + 1);
                    Some(key)
                }
            };
            let value = at..skip_value(text, at)?;
            at = skip_blank(text, value.end);
            let comma = (bytes.get(at) == Some(&b',')).then_some(at);
            if comma.is_none() && bytes.get(at) != Some(&closing) {
                return None;
            }
            items.items.push(Item { key, start, value, comma });
            if comma.is_some() {
                at = skip_blank(text, at + 1);
            }
        }
    }

    /// The last one is in effect, as it is for programs that read the file.
    pub(super) fn place_of(&self, key: &str) -> Option<usize> {
        self.items.iter().rposition(|item| item.key.as_deref() == Some(key))
    }

    pub(super) fn value_of(&self, key: &str) -> Option<Range<usize>> {
        self.place_of(key).map(|place| self.items[place].value.clone())
    }

    /// The text with one more member, or element.
    pub(super) fn with(&self, text: &str, key: Option<&str>, value: &Value) -> String {
        let outer = indent_of(text, self.open);
        let inner = match self.items.first() {
            // As the others are, if they have lines of their own.
            Some(first) if text[self.open..first.start].contains('\n') => indent_of(text, first.start),
            _ => format!("{outer}  "),
        };
        let key = key.map(|key| format!("{}: ", Value::String(key.to_owned()))).unwrap_or_default();
        let item = format!("{key}{}", shown(value, &inner));
        let (end, comma) = match self.items.last() {
            None => (self.open + 1, ""),
            Some(Item { comma: Some(comma), .. }) => (comma + 1, ""),
            Some(item) => (item.value.end, ","),
        };
        let rest = &text[end..self.close];
        // What stands between the last one and the bracket, such as a comment, stays there.
        let tail = if rest.trim().is_empty() { format!("\n{outer}") } else { rest.to_owned() };
        format!("{}{comma}\n{inner}{item}{tail}{}", &text[..end], &text[self.close..])
    }

    /// The text without one of them. Comments stay.
    pub(super) fn without(&self, text: &str, place: usize) -> String {
        let Some(item) = self.items.get(place) else { return text.to_owned() };
        let blank = |from: usize| text[from..].len() - text[from..].trim_start().len();
        // A comment that goes to the end of its line keeps that end.
        let kept = |between: &str| match between.trim() {
            "" => String::new(),
            _ => between.trim_end_matches([' ', '\t']).to_owned(),
        };
        match (item.comma, place.checked_sub(1).and_then(|before| self.items.get(before))) {
            // Up to what follows.
            (Some(comma), _) => {
                let between = kept(&text[item.value.end..comma]);
                let rest = comma + 1 + blank(comma + 1);
                format!("{}{between}{}", &text[..item.start], &text[rest..])
            }
            // The comma before it goes, too.
            (None, Some(Item { comma: Some(comma), .. })) => {
                let between = kept(&text[comma + 1..item.start]);
                format!("{}{between}{}", &text[..*comma], &text[item.value.end..])
            }
            (None, _) => {
                let between = kept(&text[self.open + 1..item.start]);
                let rest = kept(&text[item.value.end..self.close]);
                format!("{}{between}{rest}{}", &text[..=self.open], &text[self.close..])
            }
        }
    }
}

/// The first place that is neither blank nor in a comment.
pub(super) fn skip_blank(text: &str, mut at: usize) -> usize {
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
pub(super) fn read(text: &str) -> Option<Value> {
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

//! Strings, numbers and the three words of JSON.

use serde_json::{Number, Value};

use super::text::{cut, name, quoted};
use super::{Reading, Scanner, Stop};

impl Scanner<'_, '_> {
    /// Reads a string that starts here with `quote`.
    pub(super) fn string(&mut self, quote: u8) -> Reading<String> {
        let start = self.at;
        self.at += 1;
        let mut read = String::new();
        let mut control_seen = false;
        loop {
            let plain = self.rest();
            let run = plain.bytes().position(|byte| byte == quote || byte == b'\\' || byte < 0x20);
            read.push_str(&plain[..run.unwrap_or(plain.len())]);
            self.at += run.unwrap_or(plain.len());
            match self.byte() {
                Some(byte) if byte == quote => break,
                Some(b'\\') => self.escape(start, &mut read)?,
                None | Some(b'\n' | b'\r') => return Err(self.unterminated(start)),
                Some(control) => {
                    let control = char::from(control);
                    if !control_seen {
                        control_seen = true;
                        let escape = escaped(control);
                        let message = format!("expected `{escape}` in the string, got {}", name(control));
                        self.report(self.at, "control_character", message)
                            .hint(format!("write it as `{escape}`"));
                    }
                    read.push(control);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        if quote == b'\'' {
            self.report(start, "quotes", "expected double quotes around the string, got single quotes")
                .hint(format!("write {}", quoted(&read)));
        }
        Ok(read)
    }

    fn unterminated(&mut self, start: usize) -> Stop {
        let (end, hint) = match self.byte() {
            None => ("the end of the content", "close the string with `\"`"),
            Some(_) => ("a line break", "close the string with `\"`, or write the line break in it as `\\n`"),
        };
        let message = format!("expected `\"` at the end of the string that starts here, got {end}");
        self.report(start, "unterminated_string", message).hint(hint);
        Stop
    }

    fn escape(&mut self, start: usize, read: &mut String) -> Reading<()> {
        let at = self.at;
        self.at += 1;
        let Some(character) = self.rest().chars().next() else {
            return Err(self.unterminated(start));
        };
        self.at += character.len_utf8();
        let plain = match character {
            '"' | '\\' | '/' => character,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                read.push(self.unicode(at));
                return Ok(());
            }
            '\'' if self.text.as_bytes().get(start) == Some(&b'\'') => '\'',
            '\n' | '\r' => {
                self.at = at + 1;
                return Err(self.unterminated(start));
            }
            other => {
                let found = if other.is_control() { name(other) } else { format!("`\\{other}`") };
                let message = format!("expected an escape such as `\\n`, `\\\"` or `\\u00e9`, got {found}");
                self.report(at, "escape", message).hint("write a backslash itself as `\\\\`");
                self.exact = false;
                other
            }
        };
        read.push(plain);
        Ok(())
    }

    /// Reads what follows `\u`; `at` is the place of the backslash.
    fn unicode(&mut self, at: usize) -> char {
        let Some(first) = self.four_digits(at) else {
            return char::REPLACEMENT_CHARACTER;
        };
        if let Some(character) = char::from_u32(first) {
            return character;
        }
        if first < 0xdc00 && self.rest().starts_with("\\u") {
            let after_first = self.at;
            self.at += 2;
            let Some(second) = self.four_digits(after_first) else {
                return char::REPLACEMENT_CHARACTER;
            };
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            // Not its other half: read it on its own.
            self.at = after_first;
        }
        let half = &self.text[at..self.at];
        let message = format!("expected a pair of surrogates, got `{half}` alone, which is no character");
        self.report(at, "surrogate", message)
            .hint("write the character itself, or both halves, as in `\\ud83d\\ude00`");
        self.exact = false;
        char::REPLACEMENT_CHARACTER
    }

    fn four_digits(&mut self, at: usize) -> Option<u32> {
        let digits = self.rest().bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
        self.at += digits;
        let read = &self.text[self.at - digits..self.at];
        if digits < 4 {
            let message = format!("expected four hexadecimal digits after `\\u`, got {}", quoted(read));
            self.report(at, "escape", message).hint("write `\\u` and four digits, as in `\\u00e9`");
            self.exact = false;
            return None;
        }
        u32::from_str_radix(read, 16).ok()
    }

    /// Reads a word that is a value, or should be one.
    pub(super) fn literal(&mut self) -> Value {
        let word = self.word().unwrap_or_default();
        let start = self.at;
        self.at += word.len();
        let meant = match word {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            "null" => return Value::Null,
            "True" | "TRUE" => Some(("true", Value::Bool(true))),
            "False" | "FALSE" => Some(("false", Value::Bool(false))),
            "None" | "Null" | "NULL" | "nil" | "undefined" => Some(("null", Value::Null)),
            _ => None,
        };
        let hint = match (&meant, word) {
            (Some((plain, _)), _) => format!("write `{plain}`"),
            (None, "NaN" | "nan" | "Infinity" | "inf") => {
                "JSON has neither NaN nor infinity: write null, or a string".to_owned()
            }
            (None, _) => match ["true", "false", "null"].iter().find(|plain| plain.starts_with(word)) {
                Some(plain) => format!("write `{plain}`"),
                None => format!("put a string in double quotes: {}", quoted(word)),
            },
        };
        self.report(start, "literal", format!("expected a JSON value, got `{}`", cut(word))).hint(hint);
        self.exact &= meant.is_some();
        meant.map_or(Value::Null, |(_, value)| value)
    }

    /// Reads a number, or what should be one.
    pub(super) fn number(&mut self) -> Value {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')));
        let token = &rest[..end.unwrap_or(rest.len())];
        let start = self.at;
        self.at += token.len();
        if is_number(token) {
            return value_of(token);
        }
        let (what, hint) = explain(token);
        let message = format!("expected {what}, got `{}`", cut(token));
        self.report(start, "number", message).hint(hint);
        self.exact = false;
        Value::Null
    }
}

/// A control character as JSON writes it.
fn escaped(control: char) -> String {
    serde_json::Value::from(control.to_string()).to_string().trim_matches('"').to_owned()
}

/// Whether `token` is a number by the grammar of RFC 8259.
fn is_number(token: &str) -> bool {
    let whole = token.strip_prefix('-').unwrap_or(token);
    let (mantissa, exponent) = match whole.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (whole, None),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (mantissa, None),
    };
    digits(integer)
        && (integer.len() == 1 || !integer.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The value of a number; one too large for a float becomes the largest.
fn value_of(token: &str) -> Value {
    let largest = if token.starts_with('-') { f64::MIN } else { f64::MAX };
    match serde_json::from_str::<Number>(token) {
        Ok(number) => Value::Number(number),
        Err(_) => Value::from(largest),
    }
}

/// What was expected instead of `token`, and what to do.
fn explain(token: &str) -> (&'static str, String) {
    let unsigned = token.trim_start_matches(['+', '-']);
    let sign = if token.starts_with('-') { "-" } else { "" };
    let lower = unsigned.to_ascii_lowercase();
    let fixed = |text: String| is_number(&text).then(|| format!("write {text}"));
    let hexadecimal = lower.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let without_zeros = unsigned.trim_start_matches('0');
    let (what, fix) = if lower.starts_with("nan") || lower.starts_with("inf") {
        ("a number", Some("JSON has neither NaN nor infinity: write null, or a string".to_owned()))
    } else if let Some(value) = hexadecimal {
        ("a decimal number", Some(format!("write {sign}{value}")))
    } else if unsigned.contains('_') {
        ("a number without `_`", fixed(token.replace('_', "")))
    } else if token.starts_with('+') {
        ("a number without `+` before it", fixed(unsigned.to_owned()))
    } else if unsigned.starts_with('.') {
        ("a digit before the point", fixed(format!("{sign}0{unsigned}")))
    } else if unsigned.ends_with('.') {
        ("a digit after the point", fixed(format!("{sign}{unsigned}0")))
    } else if unsigned.starts_with('0') && is_number(without_zeros) {
        let fix = format!("write {sign}{without_zeros}, or {} if the zeros matter", quoted(token));
        ("a number without leading zeros", Some(fix))
    } else if unsigned.is_empty() {
        ("digits after the sign", None)
    } else {
        ("a number", None)
    };
    (
        what,
        fix.unwrap_or_else(|| {
            "write a number such as 12, -0.5 or 1e9, or put text in double quotes".to_owned()
        }),
    )
}

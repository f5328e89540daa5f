//! Moving over the text, and words for what is there.

use super::{Reading, Scanner, Stop};

/// Longer pieces of content are cut in messages.
const SHOWN: usize = 40;

impl<'t> Scanner<'t, '_> {
    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The word that starts here, as in `true` or an unquoted key.
    pub(super) fn word(&self) -> Option<&'t str> {
        let rest = self.rest();
        let starts = rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
        let ends = || rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-')));
        starts.then(|| &rest[..ends().unwrap_or(rest.len())])
    }

    /// Skips what may stand between two tokens, and reports what people put there that may not.
    pub(super) fn skip_blank(&mut self) -> Reading<()> {
        while let Some(character) = self.rest().chars().next() {
            match character {
                ' ' | '\t' | '\n' | '\r' => self.at += 1,
                '#' => self.comment(1),
                '/' if self.rest().starts_with("//") => self.comment(2),
                '/' if self.rest().starts_with("/*") => self.block_comment()?,
                other if is_blank(other) => {
                    let message = format!("expected a space, a tab or a line break, got {}", name(other));
                    self.report(self.at, "blank", message).hint("replace it by a plain space, or remove it");
                    self.at += other.len_utf8();
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn comment(&mut self, mark: usize) {
        let mark = &self.rest()[..mark];
        self.report(self.at, "comment", format!("expected JSON, which has no comments, got `{mark}`"))
            .hint("remove the comment");
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn block_comment(&mut self) -> Reading<()> {
        let end = self.rest().find("*/");
        let findings = self.report(self.at, "comment", "expected JSON, which has no comments, got `/*`");
        match end {
            Some(end) => {
                findings.hint("remove the comment");
                self.at += end + 2;
                Ok(())
            }
            None => {
                findings.hint("remove the comment; it is not closed");
                Err(Stop)
            }
        }
    }

    /// What is here, for a message.
    pub(super) fn got(&self) -> String {
        match (self.word(), self.rest().chars().next()) {
            (_, None) => "the end of the content".to_owned(),
            (Some(word), _) => format!("`{}`", cut(word)),
            (None, Some(character)) => name(character),
        }
    }
}

/// Characters that look like nothing, but are not white space to JSON.
fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// A character in words.
pub(super) fn name(character: char) -> String {
    match character {
        '`' => "a backtick".to_owned(),
        '\u{a0}' => "a no-break space (U+00A0)".to_owned(),
        '\u{200b}' => "a zero width space (U+200B)".to_owned(),
        '\u{feff}' => "a byte order mark (U+FEFF)".to_owned(),
        '\t' => "a tab".to_owned(),
        '\n' | '\r' => "a line break".to_owned(),
        other if is_blank(other) => format!("the character U+{:04X}", u32::from(other)),
        other => format!("`{other}`"),
    }
}

/// What to do about a character that starts nothing in JSON.
pub(super) fn hint_for(character: char) -> Option<&'static str> {
    match character {
        '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '`' => Some("use plain double quotes: `\"`"),
        '(' => Some("use `[` and `]` for lists"),
        _ => None,
    }
}

/// A string as it is written in JSON, cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(cut(text)).to_string()
}

/// At most [`SHOWN`] characters of `text`.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

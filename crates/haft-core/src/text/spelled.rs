//! Text that shows everything: what a person reads before they agree to something.
//!
//! The other doors of this module take out what would harm a reader. Somebody who is asked whether a command may run
//! must not be spared anything: a title that a terminal would have swallowed is a part of the command. So nothing is
//! taken out here; what would not be seen, or would be seen as something else, is written out between `⟨` and `⟩`. The
//! outcome can be read back, so no two texts have the same.

use super::invisible::{is_hidden, is_shaping};
use std::fmt::Write as _;

/// Blanks in a row within a line that the eye still counts.
const BLANKS: usize = 8;
/// Blanks at the start of a line: what code is indented by.
const INDENT: usize = 40;
/// How often one character may be repeated before the repetitions are counted.
const REPEATED: usize = 80;
/// Line ends in a row: three empty lines.
const LINE_ENDS: usize = 4;
/// Marks of one script on one letter, as Hebrew, Arabic, Thai or Devanagari have them.
const MARKS: usize = 4;

/// Where line ends go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// They stay.
    Many,
    /// They are `⏎`.
    One,
}

/// A text with everything in it to be seen, line by line. Line ends stay; every other control character, everything
/// invisible or that changes the order of a line, blanks that look like a space and are none, and letters that look
/// like those of another alphabet are written out. Long runs are counted.
///
/// No two texts look the same: the outcome can be read back.
///
/// ```
/// use haft_core::text::spelled;
///
/// assert_eq!(spelled("echo hello \x1b]0;touch X;\x07"), "echo hello ⟨ESC⟩]0;touch X;⟨BEL⟩");
/// assert_eq!(spelled(&format!("ls{}; rm x", " ".repeat(200))), "ls⟨space×200⟩; rm x");
/// assert_eq!(spelled("a\u{202e}b\u{a0}c "), "a⟨U+202E⟩b⟨U+00A0⟩c⟨space⟩");
/// assert_eq!(spelled("if x:\r\n\treturn"), "if x:␍\n⇥return");
/// assert_eq!(spelled("größe, 名前, имя"), "größe, 名前, имя");
/// ```
#[must_use]
pub fn spelled(text: &str) -> String {
    spell(text, Lines::Many)
}

/// The text in one line: line ends are `⏎`.
///
/// ```
/// use haft_core::text::spelled_line;
///
/// assert_eq!(spelled_line("one\ntwo⏎"), "one⏎two⟨U+23CE⟩");
/// ```
#[must_use]
pub fn spelled_line(text: &str) -> String {
    spell(text, Lines::One)
}

/// The start of a text in one line of at most `max_chars` characters; what is too long ends with `…`, which counts. It
/// says what a text is about. It does not show the text: for that see [`spelled`].
///
/// ```
/// use haft_core::text::spelled_summary;
///
/// assert_eq!(spelled_summary("cargo test\n--all", 200), "cargo test⏎--all");
/// assert_eq!(spelled_summary("cargo \x1btest", 9), "cargo ⟨E…");
/// ```
#[must_use]
pub fn spelled_summary(text: &str, max_chars: usize) -> String {
    // Every character is written as one at least, save in runs, which are counted whole. One more run cannot matter.
    let line = spell(text, Lines::One);
    match line.char_indices().nth(max_chars) {
        None => line,
        Some(_) => {
            line.chars().take(max_chars.saturating_sub(1)).chain("…".chars().take(max_chars)).collect()
        }
    }
}

fn spell(text: &str, lines: Lines) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut place = Place { line_start: true, ..Place::default() };
    while let Some(c) = rest.chars().next() {
        let after = rest.trim_start_matches(c);
        let count = (rest.len() - after.len()) / c.len_utf8();
        place.look_at_word(c, rest);
        match c {
            '\n' => place.line_end(count, lines, &mut out),
            ' ' => place.blanks(count, after, &mut out),
            _ => place.others(c, count, &mut out),
        }
        rest = after;
    }
    out
}

/// The characters before and after the current one.
#[derive(Default)]
struct Place {
    line_start: bool,
    /// Marks that the last letter still has room for; none where there is no letter.
    marks: usize,
    /// How many bytes of the present word are left, and whether there is an ASCII letter in it.
    word: usize,
    word_has_ascii: bool,
}

impl Place {
    /// Looks ahead to the end of a word when one begins.
    fn look_at_word(&mut self, c: char, rest: &str) {
        if self.word == 0 && is_word(c) {
            let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            self.word = word.len();
            self.word_has_ascii = word.bytes().any(|byte| byte.is_ascii_alphabetic());
        }
    }

    fn line_end(&mut self, count: usize, lines: Lines, out: &mut String) {
        match lines {
            _ if count > LINE_ENDS => {
                let _ = write!(out, "⟨newline×{count}⟩");
                // Where lines are shown as such the next text begins on one of its own.
                if lines == Lines::Many {
                    out.push('\n');
                }
            }
            Lines::Many => out.extend(std::iter::repeat_n('\n', count)),
            Lines::One => out.extend(std::iter::repeat_n('⏎', count)),
        }
        self.line_start = true;
        self.marks = 0;
    }

    fn blanks(&mut self, count: usize, after: &str, out: &mut String) {
        let most = if self.line_start { INDENT } else { BLANKS };
        let is_last = after.is_empty() || after.starts_with(['\n', '\r']);
        match count <= most && !is_last {
            true => out.extend(std::iter::repeat_n(' ', count)),
            false => named("space", count, out),
        }
        self.line_start = false;
        self.marks = 0;
    }

    fn others(&mut self, c: char, count: usize, out: &mut String) {
        let mixed = self.word > 0 && self.word_has_ascii && has_twins(c);
        self.word = self.word.saturating_sub(c.len_utf8() * count);
        self.line_start = self.line_start && c == '\t';
        match c {
            '\t' | '\r' if count <= INDENT => {
                out.extend(std::iter::repeat_n(if c == '\t' { '⇥' } else { '␍' }, count));
                self.marks = 0;
            }
            ' '..='~' => self.kept(c, count, out),
            _ if mixed || is_spelled(c) => self.written_out(c, count, out),
            _ if is_mark(c) => {
                let shown = if is_for_any_letter(c) { 0 } else { count.min(self.marks) };
                out.extend(std::iter::repeat_n(c, shown));
                match count - shown {
                    0 => self.marks -= shown,
                    left => self.written_out(c, left, out),
                }
            }
            _ => {
                self.kept(c, count, out);
                self.marks = MARKS;
            }
        }
    }

    fn kept(&mut self, c: char, count: usize, out: &mut String) {
        match count <= REPEATED {
            true => out.extend(std::iter::repeat_n(c, count)),
            false => {
                let _ = write!(out, "⟨{c}×{count}⟩");
            }
        }
        // A mark on an ASCII letter looks like the one letter that has it already.
        self.marks = 0;
    }

    fn written_out(&mut self, c: char, count: usize, out: &mut String) {
        match name(c) {
            Some(name) => named(name, count, out),
            None => named(&format!("U+{:04X}", u32::from(c)), count, out),
        }
        self.marks = 0;
    }
}

// Writing to a `String` cannot fail.
fn named(name: &str, count: usize, out: &mut String) {
    let _ = match count {
        1 => write!(out, "⟨{name}⟩"),
        count => write!(out, "⟨{name}×{count}⟩"),
    };
}

/// Controls that people know by name.
const fn name(c: char) -> Option<&'static str> {
    Some(match c {
        '\0' => "NUL",
        '\x07' => "BEL",
        '\x08' => "BS",
        '\t' => "tab",
        '\x0b' => "VT",
        '\x0c' => "FF",
        '\r' => "CR",
        '\x1b' => "ESC",
        '\x7f' => "DEL",
        '\u{85}' => "NEL",
        _ => return None,
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

/// Whether a character is written out wherever it stands.
fn is_spelled(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let is_sign_of_ours = matches!(c, '⟨' | '⟩' | '⏎' | '␍' | '⇥');
    is_sign_of_ours
        || c.is_whitespace()
        || is_hidden(c)
        || is_shaping(c)
        || looks_ascii(c)
        || !is_printable(c)
}

/// Braille's empty cell, and signs that look like those that a shell acts on.
const fn looks_ascii(c: char) -> bool {
    matches!(
        c,
        '\u{2800}' // the empty cell
        | '\u{01C0}' | '\u{01C3}' | '\u{2223}' | '\u{2758}' // | and !
        | '\u{037E}' | '\u{0589}' | '\u{05C3}' | '\u{2236}' | '\u{A789}' // ; and :
        | '\u{2010}'
            ..='\u{2012}' | '\u{2043}' | '\u{2212}' // -
        | '\u{2024}' // .
        | '\u{2044}' | '\u{2215}' | '\u{29F8}' // /
        | '\u{2216}' | '\u{29F5}' | '\u{29F9}' // \
        | '\u{02BC}' | '\u{2032}' // '
        | '\u{2217}' | '\u{204E}' // *
        | '\u{223C}' | '\u{02DC}' // ~
        | '\u{02CB}' | '\u{1FEF}' // `
        | '\u{2039}' | '\u{203A}' | '\u{276E}' | '\u{276F}' // < and >
    )
}

/// Letters of alphabets that share shapes with the Latin one.
const fn has_twins(c: char) -> bool {
    matches!(
        c,
        '\u{0370}'..='\u{058F}'         // Greek, Coptic, Cyrillic, Armenian
        | '\u{10A0}'..='\u{10FF}'       // Georgian
        | '\u{13A0}'..='\u{13FF}'       // Cherokee
        | '\u{1C80}'..='\u{1CBF}'       // more Cyrillic and Georgian
        | '\u{1D00}'..='\u{1DBF}'       // phonetic letters
        | '\u{1F00}'..='\u{1FFF}'       // more Greek
        | '\u{2100}'..='\u{218F}'       // letters as signs, Roman numbers
        | '\u{2C80}'..='\u{2DFF}'       // Coptic, more Georgian and Cyrillic
        | '\u{A4D0}'..='\u{A4FF}'       // Lisu
        | '\u{A640}'..='\u{A69F}'       // more Cyrillic
        | '\u{AB30}'..='\u{ABBF}'       // more Latin, Cherokee
        | '\u{FF10}'..='\u{FF5A}'       // letters as wide as Han
        | '\u{10280}'..='\u{104FF}'     // old alphabets
        | '\u{1D400}'..='\u{1D7FF}'     // letters of formulas
    )
}

/// Whether a character is one that Unicode has assigned a shape.
fn is_printable(c: char) -> bool {
    // The library's own table, which it has for debugging. It writes out marks at the start of a text only.
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..=length]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

/// Whether a character is drawn onto the one before it.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.escape_debug().next() == Some('\\')
}

/// Marks that go onto any letter, in any number. Most letters that have one are a character of their own, too.
const fn is_for_any_letter(c: char) -> bool {
    matches!(
        c,
        '\u{0300}'..='\u{036F}'
        | '\u{0483}'..='\u{0489}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}'
    )
}

//! Text that is safe to show to a person.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::invisible::{
    BLACK_FLAG, FLAG_TAGS, ZWJ, ZWNJ, is_arabic_letter, is_hidden, is_joining_script, is_picture, is_shaping,
    is_virama, is_visible, selects,
};
use super::model::{ModelText, model_str};

/// Makes a text safe to show to a person: in a terminal, on an approval card, on a page.
///
/// All that [`model_text`](super::model_text) removes is removed. Then what a person could not see, or what
/// would make them see something else, is shown by name, as `⟨U+202E⟩`:
///
/// - bidi controls, which reorder the line;
/// - zero-width and invisible characters: spaces of no width, soft hyphens, fillers, tag characters,
///   annotations, line separators;
/// - a carriage return that no line feed follows (`␍`): in a terminal it overwrites the line from its start.
///
/// Characters that shape their neighbour are shown by name only where they have none to shape:
///
/// - a **zero-width joiner** (U+200D) stays between two pictures (skin tones and variation selectors count as
///   part of the first), between two characters of a joining script, and after a virama or an Arabic letter;
/// - a **zero-width non-joiner** (U+200C) stays before a character of a joining script if a visible character
///   is before it, and after a virama;
/// - a **variation selector** stays right after a character it can apply to: one, not a row of them;
/// - **tag characters** stay in the flags of England, Scotland and Wales, and nowhere else.
///
/// Text with nothing to change is borrowed. The name is plain text and anyone may write it, so `⟨U+202E⟩` may
/// also stand in the original: it then warns of nothing, but it never hides anything.
///
/// ```
/// use haft_core::text::people_text;
///
/// assert_eq!(people_text("rm \u{202E}txt.exe"), "rm ⟨U+202E⟩txt.exe");
/// assert_eq!(people_text("safe\rrm -rf /\r\n"), "safe␍rm -rf /\r\n");
/// assert_eq!(people_text("می‌خواهم 👩‍👩‍👧 क्‍ष"), "می‌خواهم 👩‍👩‍👧 क्‍ष");
/// ```
#[must_use]
pub fn people_text(text: &str) -> Cow<'_, str> {
    let safe = model_str(text);
    if !safe.contains(is_suspect) {
        return safe;
    }
    let mut out = String::with_capacity(safe.len() + 16);
    show(&mut None, &safe, Ending::Here, &mut out);
    if *out == *safe { safe } else { Cow::Owned(out) }
}

/// Makes raw bytes into text that is safe to show to a person, chunk by chunk; [`people_text`] says what that
/// means.
///
/// Where the next character decides about the last one, the last one is held back: at most five characters.
///
/// ```
/// use haft_core::text::PeopleText;
///
/// let (mut filter, mut out) = (PeopleText::new(), String::new());
/// filter.push(b"50%\r", &mut out);
/// assert_eq!(out, "50%", "a line feed may still follow");
/// filter.push(b"100%\r\n", &mut out);
/// filter.finish(&mut out);
/// assert_eq!(out, "50%␍100%\r\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeopleText {
    model: ModelText,
    /// The last character written as it was, or none at the start and after one shown by name.
    before: Option<char>,
    /// Text of which the first character is not decided yet.
    held: String,
}

impl PeopleText {
    /// A filter at the start of a text.
    ///
    /// ```
    /// # use haft_core::text::PeopleText;
    /// let mut out = String::new();
    /// PeopleText::new().push("zero\u{200B}width".as_bytes(), &mut out);
    /// assert_eq!(out, "zero⟨U+200B⟩width");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and appends to `out` what of the text is decided by now.
    ///
    /// ```
    /// # use haft_core::text::PeopleText;
    /// let (mut filter, mut out) = (PeopleText::new(), String::new());
    /// filter.push("👩\u{200D}".as_bytes(), &mut out);
    /// filter.push("👧".as_bytes(), &mut out);
    /// assert_eq!(out, "👩\u{200D}👧");
    /// ```
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.model.push(bytes, &mut self.held);
        let decided = show(&mut self.before, &self.held, Ending::Later, out);
        self.held.drain(..decided);
    }

    /// Ends the text and writes what was held back. The filter is then as new.
    ///
    /// ```
    /// # use haft_core::text::PeopleText;
    /// let (mut filter, mut out) = (PeopleText::new(), String::new());
    /// filter.push(b"lone\r", &mut out);
    /// filter.finish(&mut out);
    /// assert_eq!(out, "lone␍");
    /// ```
    pub fn finish(&mut self, out: &mut String) {
        self.model.finish(&mut self.held);
        show(&mut self.before, &self.held, Ending::Here, out);
        *self = Self::default();
    }
}

/// Whether the text given is the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Here,
    Later,
}

/// What becomes of a suspect character.
enum Verdict {
    /// It stays, with what belongs to it: this many bytes.
    Keep(usize),
    /// It is shown by name.
    Show,
    /// What comes after it decides, and that is not there yet.
    Wait,
}

/// Writes as much of `text` as can be decided, and says how many bytes that was: all of it if it ends here.
fn show(before: &mut Option<char>, text: &str, ending: Ending, out: &mut String) -> usize {
    let mut rest = text;
    loop {
        let (plain, suspect) = rest.split_at(rest.find(is_suspect).unwrap_or(rest.len()));
        out.push_str(plain);
        *before = plain.chars().next_back().or(*before);
        rest = suspect;
        let Some(c) = rest.chars().next() else { break };
        match judge(*before, c, rest, ending) {
            Verdict::Keep(len) => {
                let (kept, after) = rest.split_at(len);
                out.push_str(kept);
                *before = kept.chars().next_back();
                rest = after;
            }
            Verdict::Show => {
                name(c, out);
                *before = None;
                rest = &rest[c.len_utf8()..];
            }
            Verdict::Wait => break,
        }
    }
    text.len() - rest.len()
}

fn is_suspect(c: char) -> bool {
    // Most text is ASCII, and of that only CR is in question.
    if c.is_ascii() { c == '\r' } else { is_hidden(c) || is_shaping(c) }
}

/// Decides about the suspect character `c`, the first of `rest`. It leans only on neighbours that stay as
/// they are: that is what makes showing a text twice the same as showing it once.
fn judge(before: Option<char>, c: char, rest: &str, ending: Ending) -> Verdict {
    let keep_if = |keep: bool| {
        if keep { Verdict::Keep(c.len_utf8()) } else { Verdict::Show }
    };
    let keep_if_next = |keep: &dyn Fn(char) -> bool| match rest.chars().nth(1) {
        Some(next) => keep_if(keep(next)),
        None if ending == Ending::Later => Verdict::Wait,
        None => Verdict::Show,
    };
    match (before, c) {
        (_, '\r') => keep_if_next(&|next| next == '\n'),
        (None, _) => Verdict::Show,
        (Some(before), ZWNJ | ZWJ) if is_virama(before) => keep_if(true),
        (Some(before), ZWJ) if is_arabic_letter(before) => keep_if(true),
        (Some(before), ZWNJ | ZWJ) => keep_if_next(&|next| joins(before, c, next)),
        (Some(BLACK_FLAG), '\u{E0000}'..='\u{E007F}') => judge_flag(rest, ending),
        (Some(before), _) => keep_if(selects(c, before)),
    }
}

/// Whether a joiner between these two has something to do.
fn joins(before: char, joiner: char, next: char) -> bool {
    if joiner == ZWNJ {
        // Not only between letters of one script: Persian endings follow Latin words and quotation marks.
        return is_visible(before) && is_joining_script(next);
    }
    let picture_before = is_picture(before) || before == '\u{FE0F}';
    (picture_before && is_picture(next)) || (is_joining_script(before) && is_joining_script(next))
}

/// Decides about tag characters after a black flag.
fn judge_flag(rest: &str, ending: Ending) -> Verdict {
    if let Some(tags) = FLAG_TAGS.iter().find(|tags| rest.starts_with(**tags)) {
        Verdict::Keep(tags.len())
    } else if ending == Ending::Later && FLAG_TAGS.iter().any(|tags| tags.starts_with(rest)) {
        Verdict::Wait
    } else {
        Verdict::Show
    }
}

fn name(c: char, out: &mut String) {
    if c == '\r' {
        out.push('␍');
    } else {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
    }
}

/// One line of at most `max_chars` characters for a summary, safe to show to a person.
///
/// It is [`people_text`] with line ends as `⏎` and tabs as spaces. What is too long ends with `…`, which
/// counts; the cut leaves no half of a joined character. Only as much of a long text is read as the line
/// needs.
///
/// ```
/// use haft_core::text::one_line;
///
/// assert_eq!(one_line("cargo test\r\n\t--all", 200), "cargo test⏎ --all");
/// assert_eq!(one_line("cargo test --all", 8), "cargo t…");
/// assert_eq!(one_line("cargo", 0), "");
/// ```
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let (mut filter, mut shown, mut chars) = (PeopleText::new(), String::new(), 0);
    let mut pieces = text.as_bytes().chunks(1024);
    let mut more = true;
    while more && chars <= max_chars {
        match pieces.next() {
            Some(piece) => filter.push(piece, &mut shown),
            None => {
                filter.finish(&mut shown);
                more = false;
            }
        }
        for c in shown.drain(..) {
            match c {
                // Only a CR that belongs to a CRLF comes here; its LF stands for both.
                '\r' => continue,
                '\n' => line.push('⏎'),
                '\t' => line.push(' '),
                _ => line.push(c),
            }
            chars += 1;
        }
    }
    cut_line(&mut line, max_chars);
    line
}

/// Cuts a line to `max_chars`, the ellipsis included.
fn cut_line(line: &mut String, max_chars: usize) {
    let Some(room) = max_chars.checked_sub(1) else {
        return line.clear();
    };
    let mut ends = line.char_indices().map(|(at, _)| at).skip(room);
    let (Some(end), Some(_)) = (ends.next(), ends.next()) else {
        return;
    };
    line.truncate(end);
    // A joiner with nothing after it, or a part of a flag, would be invisible characters again.
    let is_open = |c: char| matches!(c, ZWNJ | ZWJ) || is_hidden(c);
    line.truncate(line.trim_end_matches(is_open).len());
    line.push('…');
}

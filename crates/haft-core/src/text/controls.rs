//! The terminal parser: finds where control sequences begin and end, and drops them.
//!
//! The states are those of the VT500 parser (Paul Williams, <https://vt100.net/emu/dec_ansi_parser>), which
//! is what terminals follow, so that what we drop is what a terminal would have obeyed and what we keep is
//! what it would have shown. States that differ only in how parameters are collected are one state here, as
//! nothing is collected.
//!
//! It reads decoded code points, never raw bytes: a raw byte 9B in the middle of a UTF-8 character is not
//! CSI.

use super::scan::clean_len;

/// The longest control sequence that is dropped, in bytes.
///
/// A string sequence (a window title, a picture) that never ends would swallow all the output after it, and a
/// program could hide what it did that way. Nor can what was swallowed be printed: it was never meant as
/// text. So a sequence also ends when this many bytes were dropped, and what follows is kept. Titles, links
/// and clipboard writes of ordinary size fit; of a larger picture the rest shows as harmless base64 or sixel
/// text.
///
/// ```
/// use haft_core::text::{MAX_SEQUENCE_BYTES, model_str};
///
/// let endless = format!("\x1b]0;{}", "x".repeat(2 * MAX_SEQUENCE_BYTES));
/// // `0;` and the first 4094 of the rest are lost.
/// assert_eq!(model_str(&endless).len(), MAX_SEQUENCE_BYTES + 2);
/// ```
pub const MAX_SEQUENCE_BYTES: usize = 4096;

/// Where in a control sequence the text stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Ordinary text.
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and at least one of 20–2F (`ESC ( B`, `ESC # 8`): one final character is still to come.
    EscapeIntermediate,
    /// In CSI: parameters and intermediates up to a final of 40–7E.
    Csi,
    /// In OSC, a string that ends at ST or BEL.
    Osc,
    /// In DCS, SOS, PM or APC, strings that end at ST alone.
    ControlString,
}

/// Drops control sequences and control characters from decoded text, in pieces of any size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlFilter {
    state: State,
    /// Bytes of the present sequence dropped so far, its introducer aside.
    dropped: usize,
}

impl ControlFilter {
    /// Appends to `out` what stays of `text`.
    pub(super) fn feed(&mut self, mut text: &str, out: &mut String) {
        loop {
            if self.state == State::Ground {
                let (clean, rest) = text.split_at(clean_len(text));
                out.push_str(clean);
                text = rest;
            }
            let mut chars = text.chars();
            let Some(c) = chars.next() else { return };
            text = chars.as_str();
            self.step(c, out);
        }
    }

    /// Takes one character, and writes it if it stays.
    pub(super) fn step(&mut self, c: char, out: &mut String) {
        match c {
            // These mean the same in every state, and end whatever sequence was under way. ESC ends a string
            // too: with the `\` after it it is ST, and with anything else a terminal starts the new sequence.
            '\x1b' => self.enter(State::Escape),
            '\u{9b}' => self.enter(State::Csi),
            '\u{9d}' => self.enter(State::Osc),
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => self.enter(State::ControlString),
            '\x18' | '\x1a' | '\u{80}'..='\u{9f}' => self.enter(State::Ground),
            _ => match self.state {
                State::Ground => keep(c, out),
                State::Escape => self.after_escape(c, out),
                State::EscapeIntermediate => self.in_sequence(c, '0'..='~', out),
                State::Csi => self.in_sequence(c, '@'..='~', out),
                State::Osc => match c {
                    '\x07' => self.enter(State::Ground),
                    _ => self.in_string(c, out),
                },
                State::ControlString => self.in_string(c, out),
            },
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.dropped = 0;
    }

    fn after_escape(&mut self, c: char, out: &mut String) {
        match c {
            ' '..='/' => self.enter(State::EscapeIntermediate),
            '[' => self.enter(State::Csi),
            ']' => self.enter(State::Osc),
            'P' | 'X' | '^' | '_' => self.enter(State::ControlString),
            _ => self.in_sequence(c, '0'..='~', out),
        }
    }

    /// One character of a sequence that ends with one of `finals`.
    fn in_sequence(&mut self, c: char, finals: std::ops::RangeInclusive<char>, out: &mut String) {
        match c {
            _ if finals.contains(&c) => self.enter(State::Ground),
            // A terminal obeys a control inside a sequence at once and reads on, so `ESC NUL [ 31 m` is still
            // one sequence, and the line end in `ESC [ LF 31 m` is a line end.
            '\0'..='\x1f' | '\x7f' => keep(c, out),
            ' '..='~' => self.drop_or_give_up(c, out),
            // Not a character any sequence may hold: the sequence was broken off, and this is text.
            _ => {
                self.enter(State::Ground);
                keep(c, out);
            }
        }
    }

    fn in_string(&mut self, c: char, out: &mut String) {
        match c {
            // Terminals read on, but an unended string must not take more than its own line with it. CR
            // counts too, so that a CRLF line end stays whole.
            '\n' | '\r' => {
                self.enter(State::Ground);
                keep(c, out);
            }
            _ => self.drop_or_give_up(c, out),
        }
    }

    fn drop_or_give_up(&mut self, c: char, out: &mut String) {
        let dropped = self.dropped + c.len_utf8();
        if dropped > MAX_SEQUENCE_BYTES {
            self.enter(State::Ground);
            keep(c, out);
        } else {
            self.dropped = dropped;
        }
    }
}

/// Writes a character met outside any sequence, unless it is a control that nobody is to get. The C1 controls
/// never come this far: each of them begins or ends a sequence.
fn keep(c: char, out: &mut String) {
    match c {
        '\n' | '\t' | '\r' => out.push(c),
        '\0'..='\x1f' | '\x7f' => {}
        _ => out.push(c),
    }
}

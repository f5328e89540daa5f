//! Text that is safe to give to a model.

use std::borrow::Cow;
use std::str;

use super::controls::ControlFilter;
use super::scan::clean_len;

/// Makes raw bytes into text that is safe for a model, chunk by chunk.
///
/// **Removed**, with everything that belongs to them:
///
/// - CSI sequences (`ESC [ … m`), whatever their parameters;
/// - OSC strings (window titles, links, clipboard writes) up to BEL or ST;
/// - DCS, SOS, PM and APC strings up to ST;
/// - all other escapes, with one character or more after ESC;
/// - the one-character forms of these, U+0080–U+009F, as *decoded* code points;
/// - C0 controls but `\n`, `\t` and `\r`; DEL.
///
/// **Replaced**: bytes that are not UTF-8 become U+FFFD, just as [`String::from_utf8_lossy`] does it. So a
/// raw byte 9B is never read as CSI: in UTF-8 text it has no such meaning, and terminals agree.
///
/// **Kept** as it is: everything else. CRLF, emoji with joiners and variation selectors, all scripts, bidi
/// controls. A model has to be able to quote a file back exactly.
///
/// **Broken sequences.** A string that is not ended also stops at CAN, SUB, ESC (a terminal starts the new
/// sequence there), any C1 control, at a line end, and after
/// [`MAX_SEQUENCE_BYTES`](super::MAX_SEQUENCE_BYTES); what it swallowed until then is dropped, what follows
/// is kept. Otherwise one `ESC ]` would hide the rest of the output. A CSI or another escape stops at its
/// final character, at CAN, SUB, ESC or a C1 control, and at any character outside ASCII, which is kept.
/// Controls inside it are obeyed at once, as terminals do.
///
/// The outcome is the same for every way to cut the bytes into chunks, be it inside a character or a
/// sequence.
///
/// ```
/// use haft_core::text::ModelText;
///
/// let (mut filter, mut out) = (ModelText::new(), String::new());
/// filter.push(b"\x1b[3", &mut out);
/// filter.push(b"1mred\x1b[0m caf\xC3", &mut out);
/// filter.push(b"\xA9\r\n", &mut out);
/// filter.finish(&mut out);
/// assert_eq!(out, "red café\r\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelText {
    filter: ControlFilter,
    /// The start of a character whose end is in the next chunk. Unused places stay zero, so that two values
    /// that will behave alike are equal.
    cut: [u8; 3],
    cut_len: usize,
}

impl ModelText {
    /// A filter at the start of a text.
    ///
    /// ```
    /// # use haft_core::text::ModelText;
    /// let mut out = String::new();
    /// ModelText::new().push(b"bell\x07", &mut out);
    /// assert_eq!(out, "bell");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and appends to `out` what of the text is decided by now.
    ///
    /// ```
    /// # use haft_core::text::ModelText;
    /// let (mut filter, mut out) = (ModelText::new(), String::new());
    /// filter.push(b"title: \x1b]0;never", &mut out);
    /// filter.push(b" ended\nnext line", &mut out);
    /// assert_eq!(out, "title: \nnext line");
    /// ```
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let bytes = self.mend(bytes, out);
        // Most chunks are UTF-8 from end to end, and this check is several times as fast as the loop below.
        let bad_from = match str::from_utf8(bytes) {
            Ok(text) => return self.filter.feed(text, out),
            Err(error) => error.valid_up_to(),
        };
        let (good, rest) = bytes.split_at(bad_from);
        self.filter.feed(str::from_utf8(good).unwrap_or_default(), out);
        let mut pieces = rest.utf8_chunks().peekable();
        while let Some(piece) = pieces.next() {
            self.filter.feed(piece.valid(), out);
            let invalid = piece.invalid();
            if pieces.peek().is_none() && is_cut_short(invalid) {
                self.cut[..invalid.len()].copy_from_slice(invalid);
                self.cut_len = invalid.len();
            } else if !invalid.is_empty() {
                self.filter.step(char::REPLACEMENT_CHARACTER, out);
            }
        }
    }

    /// Ends the text: a character cut off in the middle becomes U+FFFD, a sequence cut off is dropped. The
    /// filter is then as new.
    ///
    /// ```
    /// # use haft_core::text::ModelText;
    /// let (mut filter, mut out) = (ModelText::new(), String::new());
    /// filter.push(b"caf\xC3", &mut out);
    /// assert_eq!(out, "caf");
    /// filter.finish(&mut out);
    /// assert_eq!(out, "caf\u{FFFD}");
    /// assert_eq!(filter, ModelText::new());
    /// ```
    pub fn finish(&mut self, out: &mut String) {
        if self.cut_len > 0 {
            self.filter.step(char::REPLACEMENT_CHARACTER, out);
        }
        *self = Self::default();
    }

    /// Ends a character that the last chunk cut, and gives back the bytes after it.
    fn mend<'a>(&mut self, mut bytes: &'a [u8], out: &mut String) -> &'a [u8] {
        while self.cut_len > 0 {
            let Some((&next, rest)) = bytes.split_first() else {
                break;
            };
            let mut character = [0; 4];
            character[..self.cut_len].copy_from_slice(&self.cut[..self.cut_len]);
            character[self.cut_len] = next;
            match str::from_utf8(&character[..=self.cut_len]) {
                Ok(whole) => {
                    self.filter.feed(whole, out);
                    self.forget_cut();
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.cut[self.cut_len] = next;
                    self.cut_len += 1;
                    bytes = rest;
                }
                // `next` does not go on with the character; it is read again as the start of something new.
                Err(_) => {
                    self.filter.step(char::REPLACEMENT_CHARACTER, out);
                    self.forget_cut();
                }
            }
        }
        bytes
    }

    fn forget_cut(&mut self) {
        self.cut = [0; 3];
        self.cut_len = 0;
    }
}

/// Whether `bytes`, which are not UTF-8, are the start of a character that more bytes could complete.
fn is_cut_short(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Makes a whole text of raw bytes safe for a model; see [`ModelText`] for what that means.
///
/// Text with nothing to remove is borrowed, after a look that costs a few nanoseconds for a short one.
///
/// ```
/// use haft_core::text::model_text;
/// use std::borrow::Cow;
///
/// assert_eq!(model_text(b"\x1b[1mbold\x1b[0m \xFF"), "bold \u{FFFD}");
/// assert!(matches!(model_text("clean: می‌خواهم 👩‍👩‍👧\r\n".as_bytes()), Cow::Borrowed(_)));
/// ```
#[must_use]
pub fn model_text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => model_str(text),
        Err(_) => {
            let mut out = String::with_capacity(bytes.len());
            let mut filter = ModelText::new();
            filter.push(bytes, &mut out);
            filter.finish(&mut out);
            Cow::Owned(out)
        }
    }
}

/// Makes a text that is already decoded safe for a model; see [`ModelText`] for what that means.
///
/// ```
/// use haft_core::text::model_str;
///
/// assert_eq!(model_str("a\u{9b}31mb\u{9d}0;title\u{9c}c\0"), "abc");
/// ```
#[must_use]
pub fn model_str(text: &str) -> Cow<'_, str> {
    let clean = clean_len(text);
    if clean == text.len() {
        return Cow::Borrowed(text);
    }
    let (clean, rest) = text.split_at(clean);
    let mut out = String::with_capacity(text.len());
    out.push_str(clean);
    ControlFilter::default().feed(rest, &mut out);
    Cow::Owned(out)
}

//! Text that fits: what was cut out is counted, and the reader is told.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The shortest marker that still says something; of this even a part is given if nothing else fits
/// (FR-OUT-04).
const SHORT_MARKER: &str = "... [output truncated]";

/// The head and the tail each give up at most one part in so many of their room to end at a line end.
const LINE_REACH: usize = 5;

/// A text made to fit by [`truncate`], and what it lost. It always holds that
/// `head_bytes + omitted_bytes + tail_bytes` is the length of the original.
///
/// ```
/// use haft_core::text::{Truncated, truncate};
///
/// let whole: Truncated<'_> = truncate("fits", 100, None);
/// assert!(!whole.is_truncated());
/// assert_eq!((whole.head_bytes, whole.omitted_bytes, whole.tail_bytes), (4, 0, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated<'a> {
    /// The text to give: the original, or its head, a marker and its tail.
    pub text: Cow<'a, str>,
    /// Bytes of the original that were left out.
    pub omitted_bytes: usize,
    /// Lines of the original that were left out, whole or in part.
    pub omitted_lines: usize,
    /// Bytes kept from the start of the original: all of them if nothing was left out.
    pub head_bytes: usize,
    /// Bytes kept from the end of the original.
    pub tail_bytes: usize,
}

impl Truncated<'_> {
    /// Whether anything was left out.
    ///
    /// ```
    /// use haft_core::text::truncate;
    ///
    /// assert!(truncate("too long", 3, None).is_truncated());
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.omitted_bytes > 0
    }
}

/// Makes `text` fit into `limit` bytes: keeps its head and its tail, and says between them what was left out.
///
/// - The marker is inside the limit (FR-OUT-04a): the outcome is never longer than `limit`, whatever that is.
/// - Head and tail get half of the room each. The start says what was run; the end of a build log holds the
///   error.
/// - The cuts are between characters, never inside a CRLF, and at a line end if there is one in the last
///   fifth of the head or the first fifth of the tail.
/// - `handle` names the stored whole, for the reader to go on with.
/// - If the marker does not fit it loses first the handle, then the counts; a limit below that gets the start
///   of `... [output truncated]` and nothing of the text. The counts in [`Truncated`] are exact in every
///   case.
///
/// ```
/// use haft_core::text::truncate;
///
/// let log: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
/// let cut = truncate(&log, 150, Some("out_7"));
/// assert_eq!(
///     cut.text,
///     "line 1\nline 2\nline 3\n\n\
///      ... [output truncated: 8844 bytes in 994 lines left out; read the rest with read_output out_7]\n\n\
///      line 998\nline 999\nline 1000\n"
/// );
/// assert!(cut.text.len() <= 150);
/// assert_eq!(cut.head_bytes + cut.omitted_bytes + cut.tail_bytes, log.len());
/// ```
#[must_use]
pub fn truncate<'a>(text: &'a str, limit: usize, handle: Option<&str>) -> Truncated<'a> {
    if text.len() <= limit {
        return Truncated {
            text: Cow::Borrowed(text),
            omitted_bytes: 0,
            omitted_lines: 0,
            head_bytes: text.len(),
            tail_bytes: 0,
        };
    }
    let notes = [Note::CountsAndHandle(handle.unwrap_or_default()), Note::Counts, Note::Bare];
    let notes = if handle.is_some() { &notes[..] } else { &notes[1..] };
    // The counts are not known before the cuts are, so the room is reserved for the largest they could be.
    let (most_bytes, most_lines) = (text.len(), count_lines(text));
    let fitting = notes.iter().find_map(|note| {
        let room = limit.checked_sub(marker("x", note, most_bytes, most_lines, "x").len())?;
        Some((note, room))
    });
    let (head, tail, note) = match fitting {
        Some((note, room)) => {
            let head = head_of(text, room.div_ceil(2));
            (head, tail_of(text, room - head.len()), Some(note))
        }
        None => ("", "", None),
    };
    let omitted = &text[head.len()..text.len() - tail.len()];
    let (omitted_bytes, omitted_lines) = (omitted.len(), count_lines(omitted));
    let text = match note {
        Some(note) => format!("{head}{}{tail}", marker(head, note, omitted_bytes, omitted_lines, tail)),
        None => SHORT_MARKER[..limit.min(SHORT_MARKER.len())].to_owned(),
    };
    Truncated {
        text: Cow::Owned(text),
        omitted_bytes,
        omitted_lines,
        head_bytes: head.len(),
        tail_bytes: tail.len(),
    }
}

/// How much the marker says.
enum Note<'a> {
    CountsAndHandle(&'a str),
    Counts,
    Bare,
}

/// The marker, with one empty line between it and the text on either side.
fn marker(head: &str, note: &Note<'_>, bytes: usize, lines: usize, tail: &str) -> String {
    let mut marker = String::new();
    if !head.is_empty() {
        marker.push_str(if head.ends_with('\n') { "\n" } else { "\n\n" });
    }
    let (b, l) = (if bytes == 1 { "byte" } else { "bytes" }, if lines == 1 { "line" } else { "lines" });
    let counts = format!("... [output truncated: {bytes} {b} in {lines} {l} left out");
    // Writing to a `String` cannot fail.
    let _ = match note {
        Note::CountsAndHandle(handle) => write!(marker, "{counts}; read the rest with read_output {handle}]"),
        Note::Counts => write!(marker, "{counts}]"),
        Note::Bare => write!(marker, "{SHORT_MARKER}"),
    };
    if !tail.is_empty() {
        marker.push_str("\n\n");
    }
    marker
}

/// The longest start of `text` of at most `room` bytes that ends well.
fn head_of(text: &str, room: usize) -> &str {
    let end = text.floor_char_boundary(room);
    let head = &text[..end];
    let line_end = head.rfind('\n').map_or(0, |at| at + 1);
    if line_end > 0 && end - line_end <= room / LINE_REACH {
        return &text[..line_end];
    }
    if head.ends_with('\r') && text[end..].starts_with('\n') { &text[..end - 1] } else { head }
}

/// The longest end of `text` of at most `room` bytes that starts well.
fn tail_of(text: &str, room: usize) -> &str {
    let start = text.ceil_char_boundary(text.len() - room);
    let (before, tail) = text.split_at(start);
    if before.ends_with('\n') {
        return tail;
    }
    match tail.find('\n') {
        Some(at) if at < room / LINE_REACH => &tail[at + 1..],
        // Half of a CRLF goes in any case.
        _ => tail.strip_prefix('\n').unwrap_or(tail),
    }
}

/// Lines in `text`, a part of a line counting as one.
fn count_lines(text: &str) -> usize {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The first `max_chars` characters of `text`, and how many were left out.
///
/// This is the cut of `format_for_context`: head only, and the note comes on top of the `max_chars`, as its
/// source has it. Characters are Unicode code points. For a limit that must hold see [`truncate`].
///
/// ```
/// use haft_core::text::truncate_chars;
///
/// let (text, omitted) = truncate_chars("naïve café", 5);
/// assert_eq!(text, "naïve\n... (truncated, 5 characters omitted)");
/// assert_eq!(omitted, 5);
/// assert_eq!(truncate_chars("short", 5), ("short".into(), 0));
/// ```
#[must_use]
pub fn truncate_chars(text: &str, max_chars: usize) -> (Cow<'_, str>, usize) {
    // A text has no more characters than bytes, which spares most texts the count.
    if text.len() <= max_chars {
        return (Cow::Borrowed(text), 0);
    }
    let Some((end, _)) = text.char_indices().nth(max_chars) else {
        return (Cow::Borrowed(text), 0);
    };
    let (head, rest) = text.split_at(end);
    let omitted = rest.chars().count();
    (Cow::Owned(format!("{head}\n... (truncated, {omitted} characters omitted)")), omitted)
}

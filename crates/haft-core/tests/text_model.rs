//! What a model gets: FR-OUT-02, on the side of the control characters.

use std::borrow::Cow;

use haft_core::text::{MAX_SEQUENCE_BYTES, ModelText, model_str, model_text};
use proptest::prelude::*;

fn in_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut filter, mut out) = (ModelText::new(), String::new());
    chunks.into_iter().for_each(|chunk| filter.push(chunk, &mut out));
    filter.finish(&mut out);
    assert_eq!(filter, ModelText::new(), "a finished filter is as new");
    out
}

/// Whether nothing is left that could drive a terminal.
fn is_safe(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
}

/// Checks one case in one piece, in chunks of one byte, and cut in two at every place.
fn check(raw: &[u8], expected: &str) {
    assert_eq!(model_text(raw), expected, "{:?} in one piece", raw.escape_ascii().to_string());
    assert_eq!(in_chunks(raw.chunks(1)), expected, "{:?} byte by byte", raw.escape_ascii().to_string());
    for cut in 0..=raw.len() {
        let (head, tail) = raw.split_at(cut);
        let shown = (head.escape_ascii().to_string(), tail.escape_ascii().to_string());
        assert_eq!(in_chunks([head, tail]), expected, "cut in two as {shown:?}");
    }
}

#[test]
fn t_out_02_terminal_controls_are_removed() {
    let cases: &[(&[u8], &str)] = &[
        // CSI
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"a\x1b[?25;1;2;3:4lb", "ab"),
        (b"a\x1b[38:2::255:128:64mb", "ab"),
        (b"a\x1b[>64;2500;0cb", "ab"),
        (b"a\x1b[ Mb", "ab"),
        (b"a\x1b[!pb", "ab"),
        (b"a\x1b[1;2;3", "a"),
        (b"a\x1b[2J\x1b[Hb", "ab"),
        // OSC, to BEL or ST
        (b"a\x1b]0;title\x07b", "ab"),
        (b"a\x1b]0;title\x1b\\b", "ab"),
        (b"a\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        (b"a\x1b]52;c;cm0gLXJm\x07b", "ab"),
        (b"a\x1b]11;rgb:000\x7f/fff/000\x1b\\b", "ab"),
        // DCS, SOS, PM, APC, to ST: BEL is part of the string
        (b"a\x1bP1;2;3|data\x1b\\b", "ab"),
        (b"a\x1bPq#0;2;0\x07still\x1b\\b", "ab"),
        (b"a\x1bXsos\x1b\\b", "ab"),
        (b"a\x1b^pm\x1b\\b", "ab"),
        (b"a\x1b_Gi=1;AAAA\x1b\\b", "ab"),
        // Other escapes
        (b"a\x1b(Bb\x1b)0c\x1b*Cd\x1b+Ce", "abcde"),
        (b"a\x1b#8b\x1b%Gc\x1b Fd\x1b$(Ce", "abcde"),
        (b"a\x1b7b\x1b8c\x1bcd\x1bDe\x1bEf\x1bHg\x1bMh", "abcdefgh"),
        (b"a\x1bNb\x1bOc\x1bZd\x1b=e\x1b>f\x1b<g\x1b|h\x1b}i\x1b~j", "abcdefghij"),
        (b"a\x1b", "a"),
        // C1 as code points
        ("a\u{9b}31mb".as_bytes(), "ab"),
        ("a\u{9d}0;title\u{9c}b".as_bytes(), "ab"),
        ("a\u{9d}0;title\x07b".as_bytes(), "ab"),
        ("a\u{90}q data\u{9c}b\u{98}sos\u{9c}c\u{9e}pm\u{9c}d\u{9f}apc\u{9c}e".as_bytes(), "abcde"),
        ("a\u{90}q data\x1b\\b".as_bytes(), "ab"),
        ("a\u{80}b\u{84}c\u{85}d\u{8d}e\u{99}f\u{9a}g\u{9c}h".as_bytes(), "abcdefgh"),
        // C0 and DEL
        (b"a\0b\x01c\x07d\x08e\x0bf\x0cg\x0eh\x0fi\x1fj\x7fk", "abcdefghijk"),
        (b"a\tb\nc\r\nd\re", "a\tb\nc\r\nd\re"),
        (b"", ""),
    ];
    for (raw, expected) in cases {
        check(raw, expected);
    }
}

#[test]
fn t_out_02_bytes_that_are_not_utf8_are_replaced_and_never_read_as_controls() {
    let cases: &[(&[u8], &str)] = &[
        (b"a\x9b31mb", "a\u{FFFD}31mb"),
        (b"a\x9d0;title\x9cb", "a\u{FFFD}0;title\u{FFFD}b"),
        (b"a\xffb\xc0\x9bc", "a\u{FFFD}b\u{FFFD}\u{FFFD}c"),
        // One for each maximal part of a character.
        (b"\xe2\x82", "\u{FFFD}"),
        (b"\xe2\x82a", "\u{FFFD}a"),
        (b"\xe2\x82\xe2\x82\xac", "\u{FFFD}€"),
        (b"\xf0\x9f\x99", "\u{FFFD}"),
        (b"\xf0\x9f\x99\x1b[31mx", "\u{FFFD}x"),
        (b"\xed\xa0\x80", "\u{FFFD}\u{FFFD}\u{FFFD}"),
        (b"\xc2\x1b[0m\x9b5mx", "\u{FFFD}\u{FFFD}5mx"),
    ];
    for (raw, expected) in cases {
        check(raw, expected);
    }
}

#[test]
fn t_out_02_removing_a_control_never_builds_a_new_one() {
    let cases: &[(&[u8], &str)] = &[
        (b"\x1b\x1b[31mx", "x"),
        (b"\x1b\x1b\x1b[31mx", "x"),
        // Controls inside a sequence are obeyed at once, and the sequence goes on.
        (b"\x1b\x00[31mx", "x"),
        (b"\x1b[3\x001mx", "x"),
        (b"\x1b[\r M|\x1b[ \rM|\x1b[1;\n1M|", "\r|\r|\n|"),
        (b"\x1b\x7f[31mx", "x"),
        (b"\x1b(\x08Bx", "x"),
        // A sequence around a sequence: what is left is words, not a sequence.
        (b"\x1b\x1b[0m[31mx", "[31mx"),
        (b"\x1b[3\x1b[0m1mx", "1mx"),
        (b"\x1b]0;a\x1b]0;b\x07c\x07d", "cd"),
        ("\u{9b}\u{9b}31mx".as_bytes(), "x"),
        ("\x1b[\u{9b}31mx".as_bytes(), "x"),
        ("\x1b\u{9d}0;t\x07x".as_bytes(), "x"),
        // The halves of U+009B with a sequence between them.
        (b"\xc2\x1b[m\x9b", "\u{FFFD}\u{FFFD}"),
    ];
    for (raw, expected) in cases {
        check(raw, expected);
    }
}

#[test]
fn a_broken_sequence_stops_where_a_terminal_would_stop_it() {
    let cases: &[(&[u8], &str)] = &[
        // CAN and SUB
        (b"\x1b[31\x18mx", "mx"),
        (b"\x1b[31\x1amx", "mx"),
        (b"\x1b]0;title\x18x", "x"),
        (b"\x1bPdata\x1ax", "x"),
        (b"\x1b\x18[31mx", "[31mx"),
        // ESC begins a new sequence, also inside a string
        (b"\x1b]0;title\x1b[31mx", "x"),
        (b"\x1bPdata\x1b\x1bdata\x1b\\x", "atax"),
        // A C1 control ends a string
        ("\x1b]0;title\u{85}x".as_bytes(), "x"),
        // What no sequence may hold is text
        ("\x1b[31éx".as_bytes(), "éx"),
        ("\x1béx".as_bytes(), "éx"),
        ("\x1b(🙂x".as_bytes(), "🙂x"),
        (b"\x1b[3\xffx", "\u{FFFD}x"),
        // but a string may hold any
        ("a\x1b]0;título 🙂 \u{a0}\x07b".as_bytes(), "ab"),
        (b"a\x1b]0;\xff\xe2\x82\x07b", "ab"),
    ];
    for (raw, expected) in cases {
        check(raw, expected);
    }
}

#[test]
fn a_string_that_never_ends_takes_no_more_than_its_line() {
    check(b"a\x1b]0;hidden\nb", "a\nb");
    check(b"a\x1b]0;hidden\r\nb", "a\r\nb");
    check(b"a\x1bPhidden\r\nb\r\n", "a\r\nb\r\n");
    check("a\u{9f}hidden\nb".as_bytes(), "a\nb");
    check(b"a\x1b]0;hidden", "a");
}

#[test]
fn a_string_that_never_ends_takes_no_more_than_the_maximum() {
    for introducer in ["\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\u{9d}", "\u{90}"] {
        let text = format!("{introducer}{}seen", "x".repeat(MAX_SEQUENCE_BYTES));
        assert_eq!(model_str(&text), "seen", "{introducer:?}");
        assert_eq!(in_chunks(text.as_bytes().chunks(7)), "seen", "{introducer:?}");
        // A character that does not fit is not cut in two.
        let text = format!("{introducer}{}éseen", "x".repeat(MAX_SEQUENCE_BYTES - 1));
        assert_eq!(model_str(&text), "éseen", "{introducer:?}");
    }
    // Parameters without end are a string too, in effect.
    for (introducer, filler) in [("\x1b[", ";"), ("\u{9b}", "1"), ("\x1b(", " ")] {
        let text = format!("{introducer}{}\n{filler}", filler.repeat(MAX_SEQUENCE_BYTES));
        assert_eq!(model_str(&text), format!("\n{filler}"), "{introducer:?}");
    }
}

#[test]
fn clean_text_is_borrowed() {
    for text in ["", "a", "plain words\r\n\tand more", "é\u{a0}€ 🙂", &"long line\n".repeat(1000)] {
        assert!(matches!(model_str(text), Cow::Borrowed(same) if same == text));
        assert!(matches!(model_text(text.as_bytes()), Cow::Borrowed(same) if same == text));
    }
}

/// Bytes that meet the parser's corners far more often than evenly random ones would.
fn terminal_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..6),
        proptest::sample::select(vec![
            &b"\x1b"[..],
            b"[",
            b"]",
            b"P",
            b"\\",
            b"31m",
            b"\x07",
            b"\x18",
            b"\n",
            b"\r",
            b"(",
            b"\x7f",
            b"\0",
            b"\xc2\x9b",
            b"\xc2\x9d",
            b"\xc2\x9c",
            b"\xc2",
            b"\x9b",
            b"\xe2\x82",
            b"\xac",
            b"\xf0\x9f",
            b"text",
        ])
        .prop_map(<[u8]>::to_vec),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunks_give_the_same_text(
        raw in terminal_bytes(),
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (raw.len() + 1)).collect();
        cuts.extend([0, raw.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &raw[pair[0]..pair[1]]);
        prop_assert_eq!(in_chunks(chunks), model_text(&raw));
    }

    #[test]
    fn no_control_is_left_and_twice_is_once(raw in terminal_bytes()) {
        let once = model_text(&raw);
        prop_assert!(is_safe(&once));
        prop_assert_eq!(model_str(&once), &*once);
        let decoded = String::from_utf8_lossy(&raw);
        prop_assert_eq!(&*once, model_str(&decoded), "bytes are decoded first");
    }

    #[test]
    fn text_without_controls_is_unchanged(text in "\\PC*") {
        prop_assert_eq!(model_str(&text), &*text);
    }
}

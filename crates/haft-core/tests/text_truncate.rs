//! Text that fits: FR-OUT-04 and the cut of `format_for_context`.

use std::borrow::Cow;

use haft_core::text::{Truncated, truncate, truncate_chars};
use proptest::prelude::*;

/// Everything that must hold for every text and every limit.
fn check(text: &str, limit: usize, handle: Option<&str>) -> Truncated<'static> {
    let cut = truncate(text, limit, handle);
    let shown = format!("{} bytes to {limit}, handle {handle:?}: {cut:?}", text.len());
    assert!(cut.text.len() <= limit, "too long: {shown}");
    assert_eq!(cut.head_bytes + cut.omitted_bytes + cut.tail_bytes, text.len(), "{shown}");
    assert_eq!(cut.is_truncated(), text.len() > limit, "{shown}");
    let (head, rest) = text.split_at(cut.head_bytes);
    let (omitted, tail) = rest.split_at(cut.omitted_bytes);
    assert!(cut.text.starts_with(head) && cut.text.ends_with(tail), "{shown}");
    assert_eq!(cut.omitted_lines, omitted.split_inclusive('\n').count(), "{shown}");
    assert!(!(head.ends_with('\r') && omitted.starts_with('\n')), "a CRLF was cut: {shown}");
    assert!(!(omitted.ends_with('\r') && tail.starts_with('\n')), "a CRLF was cut: {shown}");
    if cut.is_truncated() {
        let marker = &cut.text[head.len()..cut.text.len() - tail.len()];
        assert!(
            "... [output truncated".starts_with(marker.trim()) || marker.contains("... [output truncated")
        );
        if marker.contains("left out") {
            assert!(marker.contains(&format!(" {} byte", cut.omitted_bytes)), "{shown}");
            assert!(marker.contains(&format!(" {} line", cut.omitted_lines)), "{shown}");
        }
    }
    Truncated { text: Cow::Owned(cut.text.into_owned()), ..cut }
}

#[test]
fn t_out_01_marker_is_inside_the_limit() {
    let lines: String = (0..60).map(|n| format!("line {n}\r\n")).collect();
    let texts =
        ["", "a", "short", &"x".repeat(500), &"é".repeat(250), &"🙂".repeat(125), &"\n".repeat(500), &lines];
    for text in texts {
        for handle in [None, Some("out_1"), Some("")] {
            for limit in 0..=text.len() + 1 {
                check(text, limit, handle);
            }
        }
    }
}

#[test]
fn t_out_01_a_limit_below_the_marker_gets_the_start_of_the_marker() {
    let text = "x".repeat(500);
    for limit in 0..=22 {
        let cut = check(&text, limit, Some("out_1"));
        assert_eq!(cut.text, "... [output truncated]"[..limit]);
        assert_eq!((cut.head_bytes, cut.omitted_bytes, cut.omitted_lines, cut.tail_bytes), (0, 500, 1, 0));
    }
}

#[test]
fn the_marker_says_as_much_as_fits() {
    let text = "x".repeat(500);
    let cases = [
        (22, "... [output truncated]"),
        (28, "x\n\n... [output truncated]\n\nx"),
        (56, "... [output truncated: 500 bytes in 1 line left out]"),
        (64, "xxxx\n\n... [output truncated: 492 bytes in 1 line left out]\n\nxxxx"),
        (94, "... [output truncated: 500 bytes in 1 line left out; read the rest with read_output out_1]"),
        (
            97,
            "xx\n\n... [output truncated: 497 bytes in 1 line left out; read the rest with read_output out_1]\n\nx",
        ),
    ];
    for (limit, expected) in cases {
        assert_eq!(check(&text, limit, Some("out_1")).text, expected);
    }
}

#[test]
fn a_text_that_fits_is_borrowed() {
    for text in ["", "fits", "fits\n"] {
        let cut = truncate(text, text.len(), Some("out_1"));
        assert!(matches!(cut.text, Cow::Borrowed(same) if same == text));
        assert_eq!((cut.head_bytes, cut.omitted_bytes, cut.omitted_lines), (text.len(), 0, 0));
    }
}

#[test]
fn the_error_at_the_end_of_a_build_log_is_kept() {
    let mut log: String = (0..5000).map(|n| format!("   Compiling crate_{n} v0.1.0\n")).collect();
    log.insert_str(0, "$ cargo build\n");
    log.push_str("error[E0308]: mismatched types\n");
    let cut = check(&log, 4096, None);
    assert!(cut.text.starts_with("$ cargo build\n   Compiling crate_0 v0.1.0\n"));
    assert!(cut.text.ends_with("v0.1.0\nerror[E0308]: mismatched types\n"));
    assert!(
        cut.head_bytes.abs_diff(cut.tail_bytes) < 100,
        "half each: {} and {}",
        cut.head_bytes,
        cut.tail_bytes
    );
    assert!(cut.text.len() > 4096 - 100, "the room is used");
}

#[test]
fn cuts_are_at_line_ends_within_reach() {
    let lines: String = (0..100).map(|n| format!("line number {n:3}\n")).collect();
    for limit in 400..1000 {
        let cut = check(&lines, limit, Some("out_1"));
        assert_eq!((cut.head_bytes % 16, cut.tail_bytes % 16), (0, 0), "at {limit}");
        assert_eq!(cut.omitted_bytes, cut.omitted_lines * 16, "at {limit}");
        assert!(!cut.text.contains("\n\n\n"), "one empty line on either side of the marker, not two");
    }
}

#[test]
fn the_room_that_the_head_gives_up_goes_to_the_tail() {
    let text = format!("{}\n{}", "h".repeat(85), "x".repeat(1000));
    let room = 200;
    let cut =
        check(&text, room + "\n\n... [output truncated: 1000 bytes in 2 lines left out]\n\n".len(), None);
    assert_eq!((cut.head_bytes, cut.tail_bytes), (86, room - 86));
}

#[test]
fn a_line_end_out_of_reach_is_not_worth_the_text() {
    let text = format!("first\n{}\nlast", "x".repeat(10_000));
    let cut = check(&text, 1000, None);
    assert!(cut.text.len() > 990, "{}", cut.text.len());
    assert!(cut.head_bytes > 400 && cut.tail_bytes > 400);
}

#[test]
fn truncate_chars_is_the_cut_of_format_for_context() {
    let cases = [
        ("", 0, "", 0),
        ("abc", 3, "abc", 0),
        ("abc", 4, "abc", 0),
        ("abc", 2, "ab\n... (truncated, 1 characters omitted)", 1),
        ("abc", 0, "\n... (truncated, 3 characters omitted)", 3),
        ("ééé", 3, "ééé", 0),
        ("🙂🙂🙂", 1, "🙂\n... (truncated, 2 characters omitted)", 2),
    ];
    for (text, max, expected, omitted) in cases {
        assert_eq!(truncate_chars(text, max), (expected.into(), omitted), "{text:?} to {max}");
    }
}

proptest! {
    #[test]
    fn whatever_the_text_and_the_limit(
        text in "([a-z ]{0,30}(\r?\n|é|🙂|\r)?){0,40}",
        limit in 0_usize..600,
        handle in proptest::option::of("[a-z0-9_-]{0,40}"),
    ) {
        check(&text, limit, handle.as_deref());
    }

    #[test]
    fn truncate_chars_counts_what_it_leaves_out(text in ".{0,60}", max in 0_usize..70) {
        let (cut, omitted) = truncate_chars(&text, max);
        let kept = text.chars().count() - omitted;
        prop_assert_eq!(kept, text.chars().count().min(max));
        prop_assert!(cut.chars().take(kept).eq(text.chars().take(kept)));
    }
}

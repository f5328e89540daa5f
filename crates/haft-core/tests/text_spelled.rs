//! What a person reads before they agree: everything is there, and no two texts look the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_core::text::{one_line, spelled, spelled_line, spelled_summary};
use proptest::prelude::*;
use spelling::{hostile, read_back};

mod spelling;

/// The code points that Unicode says are ignored where they cannot be shown, and those that reorder a line; written
/// down from its charts, not taken from the code.
fn is_ignorable_or_bidi(c: char) -> bool {
    matches!(
        u32::from(c),
        0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8
        | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF | 0x2028 | 0x2029
    )
}

fn check(text: &str) {
    let (many, one) = (spelled(text), spelled_line(text));
    assert_eq!(read_back(&many, false), text, "{many:?}");
    assert_eq!(read_back(&one, true), text, "{one:?}");
    for c in many.chars().filter(|c| *c != '\n').chain(one.chars()) {
        let hides =
            c.is_control() || is_ignorable_or_bidi(c) || (c.is_whitespace() && c != ' ') || c == '\u{2800}';
        assert!(!hides, "{c:?} of {text:?} in {many:?}");
    }
    let blank = " ".repeat(41);
    assert!(!many.contains(&blank) && !one.contains(&blank), "{many:?}");
    for line in many.split('\n') {
        assert!(!line.ends_with(' '), "{line:?}");
    }
    let summary = spelled_summary(text, 200);
    assert!(summary.chars().count() <= 200);
    // What is spelled passes the other door as it is: a summary is spelled once, where it is made.
    assert_eq!((one_line(&one, usize::MAX), one_line(&summary, 200)), (one, summary));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_a_text_holds_it_can_be_read_back(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn whatever_an_attack_is_made_of_it_can_be_read_back(text in hostile()) {
        check(&text);
    }

    /// The property for two texts: where they look the same they are the same.
    #[test]
    fn two_texts_never_look_the_same(a in hostile(), b in hostile(), at in any::<prop::sample::Index>()) {
        prop_assert_eq!(spelled(&a) == spelled(&b), a == b);
        prop_assert_eq!(spelled_line(&a) == spelled_line(&b), a == b);
        // What is spelled already is another text, too.
        prop_assert_eq!(spelled(&a) == spelled(&spelled(&a)), a == spelled(&a));
        // Nor do two that differ by one character.
        let mut chars: Vec<char> = a.chars().collect();
        if !chars.is_empty() {
            let at = at.index(chars.len());
            chars.remove(at);
            prop_assert_ne!(spelled(&chars.into_iter().collect::<String>()), spelled(&a));
        }
    }
}

/// Each was an attack that worked: what stands behind was not to be seen.
#[test]
fn attacks_that_hid_something_show_it() {
    let spaces = format!("ls{}; touch X", " ".repeat(200));
    let letters = format!("ls {}; touch X", "x".repeat(5000));
    let marks = format!("ls e{}; touch X", "\u{301}".repeat(300));
    let lines = format!("ls{}touch X", "\n".repeat(200));
    let cases = [
        ("echo hello \x1b]0;touch X;\x07", "echo hello ⟨ESC⟩]0;touch X;⟨BEL⟩"),
        ("echo \x1bPtouch X\x1b\\", "echo ⟨ESC⟩Ptouch X⟨ESC⟩\\"),
        ("echo \x1b_touch X\x1b\\", "echo ⟨ESC⟩_touch X⟨ESC⟩\\"),
        ("echo \x1b^touch X\x1b\\", "echo ⟨ESC⟩^touch X⟨ESC⟩\\"),
        ("echo \x1bXtouch X\x1b\\", "echo ⟨ESC⟩Xtouch X⟨ESC⟩\\"),
        ("echo \u{9d}touch X\u{9c}", "echo ⟨U+009D⟩touch X⟨U+009C⟩"),
        ("echo \x1b[|sh", "echo ⟨ESC⟩[|sh"),
        ("rm x\x08y\x7f\x0b\u{85}", "rm x⟨BS⟩y⟨DEL⟩⟨VT⟩⟨NEL⟩"),
        ("rm\u{2800}x\u{a0}y", "rm⟨U+2800⟩x⟨U+00A0⟩y"),
        (&*spaces, "ls⟨space×200⟩; touch X"),
        (&*letters, "ls ⟨x×5000⟩; touch X"),
        (&*marks, "ls e⟨U+0301×300⟩; touch X"),
        (&*lines, "ls⟨newline×200⟩\ntouch X"),
        ("safe\rrm x", "safe␍rm x"),
        ("cat а.txt b\u{430}r", "cat а.txt b⟨U+0430⟩r"),
        ("cafe\u{301} café", "cafe⟨U+0301⟩ café"),
        ("x\u{e0041}\u{e0042}", "x⟨U+E0041⟩⟨U+E0042⟩"),
        ("a \n b", "a⟨space⟩\n b"),
    ];
    for (text, expected) in cases {
        assert_eq!(spelled(text), expected, "{text:?}");
        check(text);
    }
}

/// What people write every day stays as it is.
#[test]
fn ordinary_text_is_not_touched() {
    let ordinary = [
        "cargo test -p core --all-features 2>&1 | tail -20",
        "fn main() {\n        println!(\"größe: {}\", x);\n}\n",
        "C:\\Users\\ada\\x.txt and /home/ada/x.txt",
        "# ----------------------------------------------------------------------------",
        "Привет, мир! γειά 名前 한국어 ภาษาไทย שָׁלוֹם हिन्दी 🙂 — “ok” … €",
        "",
    ];
    for text in ordinary {
        assert_eq!(spelled(text), text);
    }
}

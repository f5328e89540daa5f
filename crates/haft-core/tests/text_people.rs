//! What a person gets: FR-OUT-02, on the side of what the eye cannot see.

use std::borrow::Cow;

use haft_core::text::{PeopleText, model_str, one_line, people_text};
use proptest::prelude::*;

/// Writing as people do it, with every invisible character in its place.
const ORDINARY: &[&str] = &[
    "plain words\n\tindented\r\n",
    // Emoji: families, couples, professions, skin tones, flags, keycaps, text and picture form
    "👩\u{200D}👩\u{200D}👧\u{200D}👦 👩🏽\u{200D}🚀 🧑🏻\u{200D}🤝\u{200D}🧑🏿 👁\u{FE0F}\u{200D}🗨\u{FE0F}",
    "👩\u{200D}❤\u{FE0F}\u{200D}💋\u{200D}👨 🏃🏾\u{200D}♀\u{FE0F}\u{200D}➡\u{FE0F}",
    "🐦\u{200D}⬛ 🙂\u{200D}↔\u{FE0F} ⛹🏽\u{200D}♂\u{FE0F}",
    "🏳\u{FE0F}\u{200D}🌈 🏴\u{200D}☠\u{FE0F} 🇩🇪🇯🇵 1\u{FE0F}\u{20E3} #\u{FE0F}\u{20E3} ☎\u{FE0E} ©\u{FE0F}",
    // England, Scotland, Wales
    "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}\
     🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}\
     🏴\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
    // Persian, its endings after a Latin word and after a quotation mark, Hijri and its abbreviation; Arabic;
    // Urdu
    "می\u{200C}خواهم کتاب\u{200C}ها PDF\u{200C}ها «کتاب»\u{200C}ها ۱۴۰۲ ه\u{200D}.ش",
    "السَّلَامُ عَلَيْكُمْ ١٢٣ لا إله",
    "یہ اردو ہے۔",
    // Hebrew with points
    "שָׁלוֹם עֲלֵיכֶם",
    // Devanagari, Bengali (joiner before the virama too), Malayalam (at the end of a word), Sinhala, Kannada
    "क्\u{200D}ष क्\u{200C}ष हिन्दी",
    "র\u{200D}\u{09CD}য ত্\u{200D} বাংলা",
    "അവന്\u{200D} ചില്ല്",
    "ශ්\u{200D}රී ලංකා",
    "ರ\u{200D}ಕ್ಕೆ",
    // Mongolian with a variation selector, Khmer, Thai, Tibetan, Myanmar
    "ᠮᠣᠩᠭᠣᠯ\u{180B} ភាសាខ្មែរ ภาษาไทย བོད་ཡིག မြန်မာ",
    // Han with a variation selector, Kana, Hangul whole and in parts
    "葛\u{E0100}城 漢字かなカナ 한국어 \u{1112}\u{1161}\u{11AB}",
    // Combining marks, more than one on a letter
    "e\u{301} n\u{303} q\u{307}\u{323} Z\u{351}\u{36B}\u{343}a\u{326}",
    "∩\u{FE00} 𝒳 ½ “quotes” – dashes… \u{A0}spaces\u{3000}of\u{2009}kinds",
];

fn in_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut filter, mut out) = (PeopleText::new(), String::new());
    chunks.into_iter().for_each(|chunk| filter.push(chunk, &mut out));
    filter.finish(&mut out);
    assert_eq!(filter, PeopleText::new(), "a finished filter is as new");
    out
}

/// Checks one case in one piece, in chunks of one byte, and cut in two at every place.
fn check(text: &str, expected: &str) {
    assert_eq!(people_text(text), expected, "{text:?} in one piece");
    let raw = text.as_bytes();
    assert_eq!(in_chunks(raw.chunks(1)), expected, "{text:?} byte by byte");
    for cut in 0..=raw.len() {
        let (head, tail) = raw.split_at(cut);
        assert_eq!(in_chunks([head, tail]), expected, "{text:?} cut at {cut}");
    }
}

#[test]
fn ordinary_text_is_unchanged_for_models_and_for_people() {
    for text in ORDINARY {
        assert!(matches!(model_str(text), Cow::Borrowed(same) if same == *text), "{text:?}");
        assert!(matches!(people_text(text), Cow::Borrowed(same) if same == *text), "{:?}", people_text(text));
        check(text, text);
    }
}

#[test]
fn t_out_02_invisible_characters_are_shown_by_name_to_people_alone() {
    let always = [
        0x202A..=0x202E,
        0x2066..=0x2069,
        0x200E..=0x200F,
        0x061C..=0x061C, // bidi
        0x200B..=0x200B,
        0x2060..=0x2064,
        0xFEFF..=0xFEFF,
        0x00AD..=0x00AD,
        0x180E..=0x180E, // no width
        0xE0000..=0xE007F,
        0xFFF9..=0xFFFB, // tags, annotations
        0x115F..=0x1160,
        0x3164..=0x3164,
        0xFFA0..=0xFFA0, // Hangul fillers
        0x2028..=0x2029,
        0x206A..=0x206F,
        0x034F..=0x034F, // line separators, old controls, grapheme joiner
    ];
    for c in always.into_iter().flatten().filter_map(char::from_u32) {
        for (before, after) in [("", ""), ("a", "b"), ("م", "خ"), ("👩", "👧"), ("🏴", "x"), ("क्", "ष")]
        {
            let text = format!("{before}{c}{after}");
            check(&text, &format!("{before}⟨U+{:04X}⟩{after}", u32::from(c)));
            assert_eq!(model_str(&text), text);
        }
    }
}

#[test]
fn shaping_characters_are_shown_where_there_is_nothing_to_shape() {
    let cases = [
        // Joiners in Latin, at the edges, beside blanks, in rows, between unlike neighbours
        ("pay\u{200C}pal", "pay⟨U+200C⟩pal"),
        ("pay\u{200D}pal", "pay⟨U+200D⟩pal"),
        ("\u{200D}", "⟨U+200D⟩"),
        ("\u{200C}می", "⟨U+200C⟩می"),
        ("می \u{200C}خ", "می ⟨U+200C⟩خ"),
        ("می\u{200C} خ", "می⟨U+200C⟩ خ"),
        ("می\u{200C}\u{200C}خ", "می⟨U+200C⟩⟨U+200C⟩خ"),
        ("👩\u{200D}\u{200D}👧", "👩⟨U+200D⟩⟨U+200D⟩👧"),
        ("👩\u{200D}a", "👩⟨U+200D⟩a"),
        ("a\u{200D}👩", "a⟨U+200D⟩👩"),
        ("👩\u{200C}👧", "👩⟨U+200C⟩👧"),
        ("👩\u{200D}", "👩⟨U+200D⟩"),
        ("क्\u{200D}\u{200D}ष", "क्\u{200D}⟨U+200D⟩ष"),
        // Variation selectors: words can be spelt in them
        ("a\u{FE0F}", "a⟨U+FE0F⟩"),
        ("\u{FE0F}", "⟨U+FE0F⟩"),
        ("🙂\u{FE0F}\u{FE00}\u{FE01}", "🙂\u{FE0F}⟨U+FE00⟩⟨U+FE01⟩"),
        ("🙂\u{E0148}\u{E0155}", "🙂⟨U+E0148⟩⟨U+E0155⟩"),
        ("x\u{180B}", "x⟨U+180B⟩"),
        // Tag characters: so can they
        ("🏴\u{E0067}\u{E0062}", "🏴⟨U+E0067⟩⟨U+E0062⟩"),
        ("🏴\u{E0072}\u{E006D}\u{E007F}", "🏴⟨U+E0072⟩⟨U+E006D⟩⟨U+E007F⟩"),
        (
            "🙂\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            "🙂⟨U+E0067⟩⟨U+E0062⟩⟨U+E0065⟩⟨U+E006E⟩⟨U+E0067⟩⟨U+E007F⟩",
        ),
        // A character shown by name is no neighbour, whatever its script
        ("م\u{200C}\u{61C}خ", "م⟨U+200C⟩⟨U+061C⟩خ"),
        ("👩\u{200B}\u{200D}👧", "👩⟨U+200B⟩⟨U+200D⟩👧"),
    ];
    for (text, expected) in cases {
        check(text, expected);
        assert_eq!(model_str(text), text);
    }
}

#[test]
fn a_carriage_return_that_would_overwrite_the_line_is_shown() {
    check("echo safe\rrm -rf /", "echo safe␍rm -rf /");
    check("one\r\ntwo\r\r\nthree\r", "one\r\ntwo␍\r\nthree␍");
    check("\r\u{202E}\r\n", "␍⟨U+202E⟩\r\n");
    // Decided after the sequences are out: for a terminal these two are one line end.
    check("one\r\x1b[0m\ntwo", "one\r\ntwo");
}

#[test]
fn t_out_02_people_get_no_terminal_controls_either() {
    check("\x1b[8mhidden\x1b[0m \u{9d}0;title\u{9c}\x07\u{202E}txt", "hidden ⟨U+202E⟩txt");
    assert_eq!(in_chunks([&b"\xff\xe2\x80"[..], b"\x8b\xe2"]), "\u{FFFD}⟨U+200B⟩\u{FFFD}");
}

#[test]
fn one_line_is_one_line_and_no_longer_than_asked() {
    let cases = [
        ("", 10, ""),
        ("exactly 10", 10, "exactly 10"),
        ("exactly 10", 9, "exactly …"),
        ("anything", 1, "…"),
        ("anything", 0, ""),
        ("a", 1, "a"),
        ("a\nb\r\nc\rd\te", 20, "a⏎b⏎c␍d e"),
        ("a\u{2028}b\u{85}c\x0bd", 20, "a⟨U+2028⟩bcd"),
        ("\x1b[1mgit\x1b[0m push\n", 20, "git push⏎"),
        // No half of a joined character: neither a joiner nor half a flag
        ("👩\u{200D}👧 x", 3, "👩…"),
        ("👩\u{200D}👧 x", 4, "👩\u{200D}👧…"),
        ("🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F} x", 5, "🏴…"),
    ];
    for (text, max, expected) in cases {
        assert_eq!(one_line(text, max), expected, "{text:?} in {max}");
    }
    // Sequences between the pieces in which a long text is read
    let long = "x\x1b[31m".repeat(5000);
    assert_eq!(one_line(&long, 200), format!("{}…", "x".repeat(199)));
    assert_eq!(one_line(&long, 5000), "x".repeat(5000));
}

/// Text in which invisible characters meet each other and what they belong to.
fn invisible_text() -> impl Strategy<Value = String> {
    let some = "\r\n\t\u{200C}\u{200D}\u{200B}\u{202E}\u{FE0F}\u{E0101}\u{180B}\u{180E}\
        \u{AD}\u{61C}🏴\u{E0067}\u{E0062}👩🏽❤مखक\u{94D}\
        ᠮ漢a1 ⟩⟨…\x1b[\u{9b}"
        .chars()
        .collect::<Vec<_>>();
    let piece = prop_oneof![
        6 => proptest::sample::select(some).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
        1 => Just("🏴\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn showing_twice_is_showing_once(text in invisible_text()) {
        let once = people_text(&text);
        prop_assert_eq!(people_text(&once), &*once);
        prop_assert_eq!(model_str(&once), &*once);
    }

    #[test]
    fn any_chunks_give_the_same_text(text in invisible_text(), size in 1_usize..9) {
        prop_assert_eq!(in_chunks(text.as_bytes().chunks(size)), people_text(&text));
    }

    #[test]
    fn one_line_keeps_its_promise(text in invisible_text(), max in 0_usize..40) {
        let line = one_line(&text, max);
        prop_assert!(line.chars().count() <= max);
        prop_assert!(!line.contains(char::is_control));
        prop_assert_eq!(people_text(&line), &*line);
        let whole = one_line(&text, usize::MAX);
        prop_assert_eq!(line == whole, whole.chars().count() <= max, "cut only if too long");
    }
}

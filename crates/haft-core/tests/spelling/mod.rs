//! Reading back what was spelled out, and texts that attacks are made of.

use proptest::prelude::*;

/// Reads a spelled text back. That it can be is why no two texts are spelled the same.
pub(crate) fn read_back(spelled: &str, one_line: bool) -> String {
    let (mut out, mut rest) = (String::new(), spelled);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '⇥' => out.push('\t'),
            '␍' => out.push('\r'),
            '⏎' if one_line => out.push('\n'),
            '⟨' => {
                // A single character may be the closing sign itself.
                let first = rest.chars().next().unwrap();
                let single = rest[first.len_utf8()..].starts_with('×');
                let search = if single { first.len_utf8() } else { 0 };
                let end = search + rest[search..].find('⟩').unwrap();
                let (inside, after) = (&rest[..end], &rest[end + '⟩'.len_utf8()..]);
                rest = after;
                let (name, count) = match inside[search..].split_once('×') {
                    Some((name, count)) => (&inside[..search + name.len()], count.parse().unwrap()),
                    None => (inside, 1),
                };
                let c = match name {
                    "NUL" => '\0',
                    "BEL" => '\x07',
                    "BS" => '\x08',
                    "tab" => '\t',
                    "VT" => '\x0b',
                    "FF" => '\x0c',
                    "CR" => '\r',
                    "ESC" => '\x1b',
                    "DEL" => '\x7f',
                    "NEL" => '\u{85}',
                    "space" => ' ',
                    "newline" => {
                        if !one_line {
                            rest = rest.strip_prefix('\n').expect("the next line begins on its own");
                        }
                        '\n'
                    }
                    name => match name.strip_prefix("U+").filter(|digits| !digits.is_empty()) {
                        Some(code) => char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap(),
                        None => name.chars().next().unwrap(),
                    },
                };
                out.extend(std::iter::repeat_n(c, count));
            }
            c => out.push(c),
        }
    }
    out
}

/// Characters that attacks are made of, and signs that are used here.
const HOSTILE: &[char] = &[
    '\0',
    '\x07',
    '\x08',
    '\t',
    '\n',
    '\x0b',
    '\x0c',
    '\r',
    '\x1b',
    '\x7f',
    '\u{85}',
    '\u{9b}',
    '\u{9c}',
    '\u{9d}',
    '\u{90}',
    ' ',
    '\u{a0}',
    '\u{ad}',
    '\u{2800}',
    '\u{3000}',
    '\u{200b}',
    '\u{200d}',
    '\u{202e}',
    '\u{2066}',
    '\u{2028}',
    '\u{feff}',
    '\u{e0041}',
    '\u{fe0f}',
    '\u{301}',
    '\u{334}',
    '\u{5b0}',
    '\u{94d}',
    'а',
    'a',
    'e',
    'U',
    '+',
    '×',
    '⟨',
    '⟩',
    '⏎',
    '␍',
    '⇥',
    '0',
    '7',
    ';',
    '|',
    '\\',
    '[',
    ']',
    'ש',
    'ß',
    '名',
    '🙂',
    '\u{e000}',
    '\u{f0000}',
    '\u{10ffff}',
    '\u{378}',
];

pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let piece =
        (prop::sample::select(HOSTILE), prop_oneof![4 => 1..4usize, 1 => 1..100usize, 1 => 80..300usize]);
    prop::collection::vec(piece, 0..12)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(c, count)| std::iter::repeat_n(c, count)).collect())
}

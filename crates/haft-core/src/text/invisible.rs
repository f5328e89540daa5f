//! Which characters a person cannot see, and where they belong all the same.
//!
//! Small tables by hand, of whole ranges: enough to tell ordinary writing from hiding, and short enough to
//! check against the Unicode charts by eye.

/// U+200C, which keeps two letters from joining.
pub(super) const ZWNJ: char = '\u{200C}';
/// U+200D, which makes two characters join.
pub(super) const ZWJ: char = '\u{200D}';
/// The flag that England, Scotland and Wales build theirs on, with tag characters after it.
pub(super) const BLACK_FLAG: char = '\u{1F3F4}';

/// What follows [`BLACK_FLAG`] in the only three flags of this kind that Unicode recommends (gbeng, gbsct,
/// gbwls). Any other run of tag characters is more likely a hidden message than a flag.
pub(super) const FLAG_TAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// Characters that a person is never to get as they are: they show nothing, or change the order of what is
/// shown.
pub(super) const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}'                      // soft hyphen
        | '\u{034F}'                    // combining grapheme joiner
        | '\u{061C}'                    // Arabic letter mark (bidi)
        | '\u{115F}' | '\u{1160}'       // Hangul fillers
        | '\u{17B4}' | '\u{17B5}'       // Khmer vowels without a shape
        | '\u{180E}'                    // Mongolian vowel separator
        | '\u{200B}'                    // zero width space
        | '\u{200E}' | '\u{200F}'       // left-to-right and right-to-left mark
        | '\u{2028}'..='\u{202E}'       // line and paragraph separator; bidi embeddings and overrides
        | '\u{2060}'..='\u{206F}'       // word joiner, invisible operators, bidi isolates, old controls
        | '\u{3164}'                    // Hangul filler
        | '\u{FEFF}'                    // zero width no-break space, byte order mark
        | '\u{FFA0}'                    // halfwidth Hangul filler
        | '\u{FFF0}'..='\u{FFFB}'       // reserved as invisible; interlinear annotation
        | '\u{1BCA0}'..='\u{1BCA3}'     // shorthand format controls
        | '\u{1D173}'..='\u{1D17A}'     // musical format controls
        | '\u{E0000}'..='\u{E00FF}'     // tag characters
        | '\u{E01F0}'..='\u{E0FFF}'     // reserved as invisible
    )
}

/// Characters that show nothing themselves but shape their neighbour, so that the place decides.
pub(super) const fn is_shaping(c: char) -> bool {
    matches!(c, ZWNJ | ZWJ) || is_variation_selector(c)
}

const fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' | '\u{180B}'..='\u{180D}' | '\u{180F}')
}

/// Whether `c` shows as something other than blank.
pub(super) fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !is_hidden(c) && !is_shaping(c)
}

/// Whether a variation selector says something about `before`, the character right before it.
pub(super) fn selects(selector: char, before: char) -> bool {
    match selector {
        // Emoji or text form, mathematical forms, digits of keycaps. No ASCII letter has any.
        '\u{FE00}'..='\u{FE0F}' => is_visible(before) && !before.is_ascii_alphabetic(),
        '\u{E0100}'..='\u{E01EF}' => matches!(
            before,
            '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFD}'
        ),
        '\u{180B}'..='\u{180D}' | '\u{180F}' => matches!(before, '\u{1820}'..='\u{18AA}'),
        _ => false,
    }
}

/// Characters of scripts whose letters join or stack: Arabic to Mandaic, the scripts of India, Tibetan,
/// Myanmar, Khmer, Mongolian, Javanese and their like, and the Arabic presentation forms.
pub(super) fn is_joining_script(c: char) -> bool {
    let in_range = matches!(
        c,
        '\u{0600}'..='\u{08FF}'
        | '\u{0900}'..='\u{0DFF}'
        | '\u{0F00}'..='\u{109F}'
        | '\u{1780}'..='\u{18AF}'
        | '\u{1A20}'..='\u{1AAF}'
        | '\u{1B00}'..='\u{1BFF}'
        | '\u{A840}'..='\u{A87F}'
        | '\u{A8E0}'..='\u{A8FF}'
        | '\u{A980}'..='\u{A9DF}'
        | '\u{FB50}'..='\u{FDFF}'
        | '\u{FE70}'..='\u{FEFC}'
        | '\u{10D00}'..='\u{10D3F}'
        | '\u{11000}'..='\u{11FFF}'
        | '\u{1E900}'..='\u{1E95F}'
    );
    in_range && is_visible(c)
}

/// The sign that takes a consonant's vowel away, in the scripts that follow it with a joiner.
pub(super) const fn is_virama(c: char) -> bool {
    matches!(
        c,
        '\u{094D}' | '\u{09CD}' | '\u{0A4D}' | '\u{0ACD}' | '\u{0B4D}' | '\u{0BCD}' | '\u{0C4D}' | '\u{0CCD}'
        | '\u{0D3B}' | '\u{0D3C}' | '\u{0D4D}' | '\u{0DCA}' // Devanagari to Sinhala
        | '\u{0F84}' | '\u{1039}' | '\u{103A}' | '\u{17D2}' // Tibetan, Myanmar, Khmer
        | '\u{1A60}' | '\u{1B44}' | '\u{1BAA}' | '\u{A9C0}' // Tai Tham, Balinese, Sundanese, Javanese
    )
}

/// Arabic letters, after which a joiner shows the joined form at the end of a word (`ه‍` for Hijri).
pub(super) const fn is_arabic_letter(c: char) -> bool {
    matches!(
        c,
        '\u{0620}'..='\u{064A}' | '\u{066E}'..='\u{06D3}' | '\u{0750}'..='\u{077F}' | '\u{08A0}'..='\u{08C9}'
    )
}

/// Pictures that emoji families and the like are built of.
pub(super) const fn is_picture(c: char) -> bool {
    matches!(
        c,
        '\u{2190}'..='\u{21FF}'         // arrows
        | '\u{2300}'..='\u{23FF}'       // technical
        | '\u{2600}'..='\u{27BF}'       // symbols and dingbats
        | '\u{2B00}'..='\u{2BFF}'       // squares and stars
        | '\u{1F000}'..='\u{1FAFF}'     // emoji, skin tones, regional indicators
    )
}

//! The quick look that lets clean text through untouched.

/// How many bytes at the start of `text` need no change: the offset of its first control character other than
/// `\n`, `\t` and `\r`, or its length.
pub(super) fn clean_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    // Each window reads one byte more than the step is long, because a C1 control is two bytes (C2, then
    // 80–9F).
    while let Some(window) = bytes[at..].first_chunk::<33>() {
        if any_control(window) {
            return at + first_control(&bytes[at..]);
        }
        at += 32;
    }
    if is_clean_end(bytes) { bytes.len() } else { at + first_control(&bytes[at..]) }
}

/// Whether the last bytes hold no control: 33 of them, or all there are.
///
/// The windows overlap with each other and with what was judged before. That is one step more instead of many
/// single ones, which for a short text would be most of the cost.
fn is_clean_end(bytes: &[u8]) -> bool {
    if let Some(last) = bytes.last_chunk::<33>() {
        !any_control(last)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<17>(), bytes.last_chunk::<17>()) {
        !(any_control(first) | any_control(last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<9>(), bytes.last_chunk::<9>()) {
        !(any_control(first) | any_control(last))
    } else {
        first_control(bytes) == bytes.len()
    }
}

/// Whether a control starts in the window; not a C1 control in its last byte, of which only half would be
/// there.
///
/// No early exit and no branch: the compiler turns this loop into a few vector instructions.
fn any_control<const N: usize>(window: &[u8; N]) -> bool {
    let mut found = starts_control(window[N - 1], 0xFF);
    for lane in 0..N - 1 {
        found |= starts_control(window[lane], window[lane + 1]);
    }
    found
}

/// The offset of the first control, or the length. `bytes` is the end of a `str`.
fn first_control(bytes: &[u8]) -> usize {
    for (at, &byte) in bytes.iter().enumerate() {
        let next = if at + 1 < bytes.len() { bytes[at + 1] } else { 0xFF };
        if starts_control(byte, next) {
            return at;
        }
    }
    bytes.len()
}

/// Whether a control to be removed starts at `byte`. In UTF-8 the byte C2 is always the first of two, and
/// the code points U+0080–U+009F are exactly C2 followed by a byte below A0.
const fn starts_control(byte: u8, next: u8) -> bool {
    let c0 = (byte < 0x20) & (byte != b'\n') & (byte != b'\t') & (byte != b'\r');
    c0 | (byte == 0x7F) | ((byte == 0xC2) & (next < 0xA0))
}

#[cfg(test)]
mod tests {
    use super::clean_len;

    /// A control at every place of texts of every length around the step size, beside the plain definition.
    #[test]
    fn finds_the_first_control_wherever_it_stands() {
        for control in ["\x1b", "\0", "\x08", "\x7f", "\u{80}", "\u{9b}", "\u{9f}"] {
            for filler in ["a", "\n", "\u{a0}", "é", "…", "🙂"] {
                for before in 0..40 {
                    for after in [0, 1, 2, 15, 16, 17, 33] {
                        let text = format!("{}{control}{}", filler.repeat(before), filler.repeat(after));
                        assert_eq!(clean_len(&text), filler.len() * before, "{text:?}");
                    }
                    let clean = filler.repeat(before);
                    assert_eq!(clean_len(&clean), clean.len(), "{clean:?}");
                }
            }
        }
    }
}

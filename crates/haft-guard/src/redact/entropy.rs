//! How random bytes look.

use super::scan::Span;

/// Shannon's entropy in bits a byte.
///
/// A value of one letter has none; hexadecimal digits have at most 4, letters and digits at most about 6.
pub(super) fn bits(bytes: &[u8]) -> f32 {
    if bytes.is_empty() {
        return 0.0;
    }
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let length = bytes.len() as f32;
    let part = |count: u32| {
        let share = count as f32 / length;
        -share * share.log2()
    };
    counts.into_iter().filter(|count| *count > 0).map(part).sum()
}

/// Shorter runs are words, longer ones are files.
const SHORTEST: usize = 32;
pub(super) const LONGEST: usize = 128;
/// Hexadecimal digits never reach it, names in mixed case hardly ever.
const LEAST: f32 = 4.6;

/// Runs that look random: 32 to 128 letters, digits and signs of base64, of every kind.
pub(super) fn spans(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut from = 0;
    // A run of that length covers a byte at every such distance, so most bytes are not even looked at.
    while let Some(&probe) = bytes.get(from + SHORTEST - 1) {
        let at = from + SHORTEST - 1;
        if !is_run(probe) {
            from = at + 1;
            continue;
        }
        let start =
            bytes[from..at].iter().rposition(|byte| !is_run(*byte)).map_or(from, |before| from + before + 1);
        let end = bytes[at..].iter().position(|byte| !is_run(*byte)).map_or(bytes.len(), |after| at + after);
        if (SHORTEST..=LONGEST).contains(&(end - start)) && is_random(&bytes[start..end]) {
            spans.push(Span { from: start, start, end, kind: "high-entropy" });
        }
        from = end + 1;
    }
}

fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=')
}

fn is_random(run: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| run.iter().any(kind);
    // Checksums in lock files are random, and no secrets.
    let is_digest =
        [&b"sha256-"[..], b"sha384-", b"sha512-", b"sha1-"].iter().any(|name| run.starts_with(name));
    let slashes = run.iter().filter(|byte| **byte == b'/').count();
    !is_digest
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && slashes <= run.len() / 16
        && bits(run) >= LEAST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_of_known_texts() {
        for (text, expected) in
            [("", 0.0), ("aaaa", 0.0), ("ab", 1.0), ("abcd", 2.0), ("0123456789abcdef", 4.0)]
        {
            assert!((bits(text.as_bytes()) - expected).abs() < 1e-5, "{text}");
        }
    }

    #[test]
    fn a_run_is_found_wherever_it_stands() {
        let secret = "Zx9Qw3Er7Ty1Ui5Op2As8Df4Gh6Jk0Lz";
        for before in 0..70 {
            let text = format!("{} {secret} {}", "a ".repeat(before), "b ".repeat(before));
            let mut found = Vec::new();
            spans(text.as_bytes(), &mut found);
            let start = before * 2 + 1;
            assert_eq!(
                found,
                [Span { from: start, start, end: start + 32, kind: "high-entropy" }],
                "{before}"
            );
        }
    }
}

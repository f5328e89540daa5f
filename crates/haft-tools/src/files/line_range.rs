//! Some lines of a text that comes in pieces.

use memchr::{memchr, memchr_iter, memmem};

/// Takes lines `first` to `last` out of bytes that are fed to it. It needs nothing that comes after `last`.
#[derive(Debug)]
pub(super) struct LineScan {
    first: u64,
    last: Option<u64>,
    /// The line that comes next, from 1.
    line: u64,
    /// Whether that line has begun.
    begun: bool,
    scanned: usize,
    /// The last bytes before the first line that is wanted.
    before: Vec<u8>,
    kept: Vec<u8>,
    limits: ScanLimits,
}

/// How much of a text may be looked at, and kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanLimits {
    pub(super) scanned: usize,
    pub(super) kept: usize,
}

/// Why a scan cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanTrouble {
    /// The lines begin or end too far behind.
    TooFar,
    /// The lines are too long.
    TooMuch,
}

impl LineScan {
    pub(super) fn new(first: u64, last: Option<u64>, limits: ScanLimits) -> Self {
        LineScan {
            first,
            last,
            line: 1,
            begun: false,
            scanned: 0,
            before: Vec::new(),
            kept: Vec::new(),
            limits,
        }
    }

    /// Whether nothing more is needed.
    pub(super) fn is_done(&self) -> bool {
        self.last.is_some_and(|last| self.line > last)
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ScanTrouble> {
        while !bytes.is_empty() && !self.is_done() {
            let (part, rest) = if self.line < self.first {
                self.skip(bytes)
            } else {
                let end = memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
                let (part, rest) = bytes.split_at(end);
                if self.kept.len() + part.len() > self.limits.kept {
                    return Err(ScanTrouble::TooMuch);
                }
                self.kept.extend_from_slice(part);
                self.line += u64::from(part.ends_with(b"\n"));
                (part, rest)
            };
            self.begun = !part.ends_with(b"\n");
            self.scanned += part.len();
            if self.scanned > self.limits.scanned {
                return Err(ScanTrouble::TooFar);
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Goes over lines before the first one that is wanted.
    fn skip<'a>(&mut self, bytes: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let mut end = bytes.len();
        for at in memchr_iter(b'\n', bytes) {
            self.line += 1;
            if self.line == self.first {
                end = at + 1;
                break;
            }
        }
        let (part, rest) = bytes.split_at(end);
        self.before.extend_from_slice(&part[part.len().saturating_sub(LONGEST_KEY)..]);
        let surplus = self.before.len().saturating_sub(LONGEST_KEY);
        self.before.drain(..surplus);
        (part, rest)
    }

    /// The first line of a private key that the wanted lines begin within.
    pub(super) fn open_key(&self) -> Option<String> {
        open_key(&self.before).filter(|_| !self.kept.is_empty()).map(str::to_owned)
    }

    /// What was taken, and how many lines were seen.
    pub(super) fn finish(self) -> (Vec<u8>, u64) {
        (self.kept, self.line - 1 + u64::from(self.begun))
    }
}

/// No block with a private key is longer.
const LONGEST_KEY: usize = 32 << 10;

/// The first line of a private key whose last line is not among these bytes: what follows belongs to it. Between there
/// is nothing but base64, headers and empty lines.
fn open_key(before: &[u8]) -> Option<&str> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    const HEADERS: [&[u8]; 7] =
        [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Hash:", b"Charset:", b"MessageID:"];
    let start = memmem::rfind(before, BEGIN)?;
    let line = before[start..].split(|byte| *byte == b'\n').next()?;
    let ends = [&b"PRIVATE KEY-----"[..], b"PRIVATE KEY BLOCK-----"];
    let end = ends.into_iter().find_map(|end| Some(memmem::find(line, end)? + end.len()))?;
    let is_of_key = |line: &[u8]| {
        let line = line.trim_ascii();
        let is_header = HEADERS.iter().any(|header| line.starts_with(header));
        // Signs of a diff, a quote or the source of a program around it.
        let is_sign = |byte: &u8| b"+-|>#* \t\"',\\;)".contains(byte);
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        !line.starts_with(b"-----END")
            && (is_header || line.iter().all(|byte| is_base64(byte) || is_sign(byte)))
    };
    let mut between = before[start + line.len()..].split(|byte| *byte == b'\n');
    between.all(is_of_key).then(|| std::str::from_utf8(&line[..end]).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDE: ScanLimits = ScanLimits { scanned: usize::MAX, kept: usize::MAX };

    fn scan(
        pieces: &[&[u8]],
        first: u64,
        last: Option<u64>,
        limits: ScanLimits,
    ) -> Result<(String, u64), ScanTrouble> {
        let mut scan = LineScan::new(first, last, limits);
        for piece in pieces {
            scan.feed(piece)?;
        }
        let (kept, seen) = scan.finish();
        Ok((String::from_utf8(kept).unwrap(), seen))
    }

    #[test]
    fn lines_are_counted_with_and_without_a_last_line_end() {
        assert_eq!(scan(&[b"a\nb\nc"], 2, Some(3), WIDE), Ok(("b\nc".into(), 3)));
        assert_eq!(scan(&[b"a\nb\n"], 1, None, WIDE), Ok(("a\nb\n".into(), 2)));
        assert_eq!(scan(&[b"a\r\nb\r\n"], 2, Some(9), WIDE), Ok(("b\r\n".into(), 2)));
        assert_eq!(scan(&[b""], 1, None, WIDE), Ok((String::new(), 0)));
        assert_eq!(scan(&[b"a\n"], 5, None, WIDE), Ok((String::new(), 1)));
    }

    #[test]
    fn a_key_that_is_open_before_the_lines_is_known() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\nMIIE\nabc+/=\n";
        let open = |text: &str| open_key(text.as_bytes()).map(str::to_owned);
        let head = Some("-----BEGIN RSA PRIVATE KEY-----".to_owned());
        assert_eq!(open(key), head);
        assert_eq!(open(&format!("a: b\n  {}", key.replace('\n', "\r\n"))), head);
        assert_eq!(open(&key.replace("\nMIIE", "\n+  MIIE").replace("abc", "\"abc")), head);
        let block = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOY\n";
        assert_eq!(open(block).as_deref(), Some("-----BEGIN PGP PRIVATE KEY BLOCK-----"));
        let closed = format!("{key}-----END RSA PRIVATE KEY-----\n");
        for other in [
            "",
            "text\n",
            &closed,
            &format!("{closed}more\n"),
            &format!("{key}Text with blanks, and a full stop.\n"),
            "-----BEGIN CERTIFICATE-----\nMIIE\n",
            "-----BEGIN PUBLIC KEY-----\nMIIE\n",
            "-----BEGIN RSA PRIVATE KEY\nMIIE\n",
        ] {
            assert_eq!(open(other), None, "{other}");
        }
        // However it comes in, and only for lines that are there.
        let text = format!("a\n{key}-----END RSA PRIVATE KEY-----\nb\n");
        let lines = text.lines().count() as u64;
        for first in 1..=lines + 1 {
            for piece in [1, 7, 1000] {
                let mut scan = LineScan::new(first, None, WIDE);
                text.as_bytes().chunks(piece).for_each(|piece| scan.feed(piece).unwrap());
                let is_inside = (3..=8).contains(&first);
                assert_eq!(scan.open_key(), head.clone().filter(|_| is_inside), "line {first}");
            }
        }
    }

    #[test]
    fn limits_hold_up_to_the_last_line_only() {
        let limits = ScanLimits { scanned: 4, kept: 2 };
        assert_eq!(scan(&[b"a\nb\nccccccccc"], 2, Some(2), limits), Ok(("b\n".into(), 2)));
        assert_eq!(scan(&[b"a\nb\nc\nd\n"], 3, Some(3), limits), Err(ScanTrouble::TooFar));
        assert_eq!(scan(&[b"abc\n"], 1, Some(1), limits), Err(ScanTrouble::TooMuch));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default() })]
        #[test]
        fn pieces_make_no_difference(text in "[ab\n\r]{0,40}", cuts in prop::collection::vec(0usize..40, 0..4), first in 1u64..8, more in prop::option::of(0u64..5)) {
            let last = more.map(|more| first + more);
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let from = (first as usize - 1).min(lines.len());
            let to = last.map_or(lines.len(), |last| (last as usize).min(lines.len())).max(from);
            let expected = lines[from..to].concat();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut at = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                pieces.push(&text.as_bytes()[at..cut]);
                at = cut;
            }
            let (kept, seen) = scan(&pieces, first, last, WIDE).unwrap();
            prop_assert_eq!(kept, expected);
            let all = last.map_or(lines.len(), |last| lines.len().min(last as usize));
            prop_assert_eq!(seen as usize, all);
        }
    }
}

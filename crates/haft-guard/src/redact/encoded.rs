//! Private keys that were encoded once more, as clusters and pipelines keep them: base64 of a whole block.

use super::scan::{LONGEST_BLOCK, Scan, Span, is_base64, line_break};

/// How base64 of anything in a block begins, in lower case.
pub(super) const BEGIN: &str = "ls0tls1crudjti";

/// How base64 of the first line of a private key begins: a certificate is no secret.
const KEYS: [&[u8]; 6] = [
    b"LS0tLS1CRUdJTiBQUklWQVRFIEtFW",
    b"LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV",
    b"LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFW",
    b"LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRV",
    b"LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
    b"LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV",
];

/// Lines of base64 are at least this long, but for the last one.
const LINE: usize = 60;

/// Finds such a key where its literal was found. One that is cut short counts as far as it goes.
pub(super) fn block(bytes: &[u8], from: usize, scan: &mut Scan) {
    let rest = &bytes[from..bytes.len().min(from + LONGEST_BLOCK)];
    let is_cut = from + rest.len() == bytes.len() && rest.len() < LONGEST_BLOCK;
    if !KEYS.iter().any(|key| rest.starts_with(key)) {
        // The rest of its first line may be still to come.
        if is_cut && KEYS.iter().any(|key| key.starts_with(rest)) {
            scan.open = scan.open.min(from);
        }
        return;
    }
    let (length, is_settled) = body(rest);
    if is_cut && !is_settled {
        scan.open = scan.open.min(from);
    }
    scan.spans.push(Span { from, start: from, end: from + length, kind: "private-key" });
}

/// How much belongs to it, and whether no more bytes could change that.
fn body(bytes: &[u8]) -> (usize, bool) {
    let run = |from: usize| bytes[from..].iter().take_while(|byte| is_base64(**byte)).count();
    let (mut at, mut end) = (0, 0);
    loop {
        let length = run(at);
        let is_line =
            at == 0 || matches!(bytes.get(at + length), None | Some(b'\r' | b'\n' | b'\\' | b'"' | b'\''));
        if length > 0 && is_line {
            end = at + length;
        }
        if at + length == bytes.len() {
            return (end, false);
        }
        if end != at + length || length < LINE {
            return (end, true);
        }
        let behind = &bytes[end..];
        // Two bytes may be the end of one line.
        if behind.len() < 2 {
            return (end, false);
        }
        let Some((0, next)) = line_break(behind) else { return (end, true) };
        let next = next + usize::from(behind.get(next) == Some(&b'\n') && behind[next - 1] == b'\r');
        let blanks = behind[next..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        at = end + next + blanks;
        if at >= bytes.len() {
            return (end, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_within_base64_are_found_to_their_end() {
        let line = "QUJD".repeat(16);
        let cases = [
            (format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS{line}=="), 94 + 2, true),
            (format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS{line} word"), 94, true),
            (format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS{line}\n{line}\nQUI=\nnot this"), 94 + 65 + 5, true),
            (format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS{line}\\n{line}\\nQUI=\"}}"), 94 + 66 + 6, true),
            (format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS{line}\r\n  {line}\r\n\r\nmore"), 94 + 68, true),
            (format!("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS{line}"), 0, false),
            ("LS0tLS1CRUdJTi".to_owned(), 0, false),
        ];
        for (text, length, is_found) in cases {
            let mut scan = Scan { spans: Vec::new(), open: text.len() };
            block(text.as_bytes(), 0, &mut scan);
            assert_eq!(scan.spans.first().map(|span| span.end), is_found.then_some(length), "{text}");
        }
    }

    #[test]
    fn a_long_one_is_gone_to_its_end() {
        let text = format!("k: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt{}\n", "QUJD".repeat(3000));
        let mut scan = Scan { spans: Vec::new(), open: text.len() };
        block(text.as_bytes(), 3, &mut scan);
        assert_eq!(scan.spans[0].end, text.len() - 1);
    }
}

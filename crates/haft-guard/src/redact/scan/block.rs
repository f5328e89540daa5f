//! Private keys: from their first line to their last.

use super::*;

/// A block with a private key, from its first line to its last. One that is cut short counts as far as it goes.
pub(super) fn block(bytes: &[u8], from: usize, scan: &mut Scan) {
    let rest = &bytes[from..bytes.len().min(from + LONGEST_BLOCK)];
    let is_cut = from + rest.len() == bytes.len() && rest.len() < LONGEST_BLOCK;
    let head = &rest[..rest.len().min(160)];
    let Some(key) = find(head, b"PRIVATE KEY") else {
        // The rest of the first line may be still to come.
        let line = memchr::memchr(b'\n', head).is_some() || head.len() == 160;
        if is_cut && !line {
            scan.open = scan.open.min(from);
        }
        return;
    };
    let is_head = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
    if !head[..key].iter().all(is_head) {
        return;
    }
    let body = key + b"PRIVATE KEY".len();
    let closes = [&b"-----"[..], b" BLOCK-----"];
    let Some(close) = closes.iter().find(|close| starts_with(&rest[body..], close)) else {
        // It may be still to come.
        if is_cut && closes.iter().any(|close| starts_with(close, &rest[body..])) {
            scan.open = scan.open.min(from);
        }
        return;
    };
    let after_head = body + close.len();
    let (length, is_settled) = key_body(&rest[after_head..]);
    if is_cut && !is_settled {
        scan.open = scan.open.min(from);
    }
    scan.spans.push(Span { from, start: from, end: from + after_head + length, kind: "private-key" });
}

/// How much after its first line belongs to a block, and whether no more bytes could change that. Only lines of base64,
/// headers and the last line do: whatever else stands between a first and a last line is no key, and stays to be seen.
fn key_body(bytes: &[u8]) -> (usize, bool) {
    let (mut at, mut length) = (0, 0);
    loop {
        let (line, next) = match line_break(&bytes[at..]) {
            Some((end, next)) => (&bytes[at..at + end], Some(at + next)),
            None => (&bytes[at..], None),
        };
        if let Some(last) = find(line, b"-----END") {
            return match end_of_block(&line[last..]) {
                Some(end) if is_key_line(&line[..last]) => (at + last + end, true),
                _ => (length.max(at + key_start(line)), next.is_some()),
            };
        }
        if !is_key_line(line) {
            let start = key_start(line);
            return (if start > 0 { at + start } else { length }, next.is_some());
        }
        if line.iter().any(u8::is_ascii_alphanumeric) {
            length = at + line.len();
        }
        match next {
            Some(next) => at = next,
            None => return (bytes.len(), false),
        }
    }
}

/// Where a line ends, and where the next one begins. In a text within a text its end may be written out: `\n`.
pub(in crate::redact) fn line_break(bytes: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr3_iter(b'\n', b'\r', b'\\', bytes).find_map(|at| match bytes[at] {
        b'\\' => {
            let slashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
            matches!(bytes.get(at + slashes), Some(b'n' | b'r')).then_some((at, at + slashes + 1))
        }
        _ => Some((at, at + 1)),
    })
}

pub(in crate::redact) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// What may stand before a line of a key, in a diff, a quote, a listing with numbers or the source of a program.
fn before_key(line: &[u8]) -> usize {
    let signs = |from: usize| {
        let is_sign = |byte: &&u8| {
            matches!(byte, b' ' | b'\t' | b'+' | b'-' | b'|' | b'>' | b'#' | b'*' | b'"' | b'\'')
        };
        from + line[from..].iter().take_while(is_sign).count()
    };
    let from = signs(0);
    let digits = line[from..].iter().take(8).take_while(|byte| byte.is_ascii_digit()).count();
    match line.get(from + digits) {
        Some(b' ' | b'\t' | b':' | b'|') if digits > 0 => signs(from + digits + 1),
        _ => from,
    }
}

/// Whether all of a line may belong to a key: a header, or base64. Words are shorter than what stands in one line with
/// more of it.
fn is_key_line(line: &[u8]) -> bool {
    const HEADERS: &[&[u8]] =
        &[b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Hash:", b"Charset:", b"MessageID:"];
    let mut rest = &line[before_key(line)..];
    if HEADERS.iter().any(|header| starts_with(rest, header)) {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" ,.:/()@<>+-_".contains(byte);
        return rest.iter().all(is_plain);
    }
    let is_after = |byte: u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'+' | b',' | b'\\' | b';' | b')');
    loop {
        let run = rest.iter().take_while(|byte| is_base64(**byte)).count();
        let after = rest[run..].iter().take_while(|byte| is_after(**byte)).count();
        if run + after == rest.len() {
            return true;
        }
        if run < LONG_RUN || after == 0 {
            return false;
        }
        rest = &rest[run + after..];
    }
}

/// More than a word.
const LONG_RUN: usize = 32;

/// How much of the start of a line that is none of a key may belong to one all the same: `MIIE…"}`.
fn key_start(line: &[u8]) -> usize {
    let before = before_key(line);
    let run = line[before..].iter().take_while(|byte| is_base64(**byte)).count();
    if run < LONG_RUN / 2 { 0 } else { before + run }
}

pub(super) fn starts_with(bytes: &[u8], start: &[u8]) -> bool {
    bytes.get(..start.len()).is_some_and(|here| here.eq_ignore_ascii_case(start))
}

/// Where the last line of a block ends, which begins with `-----END`: the first five dashes after `KEY` or `KEY BLOCK`.
/// Nothing but the words of a name stands between.
fn end_of_block(line: &[u8]) -> Option<usize> {
    let name = line.get(b"-----END".len()..)?;
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_');
    let length = name.iter().take_while(is_name).count();
    let (name, rest) = name.split_at(length);
    let ends_so = |word: &[u8]| {
        name.len().checked_sub(word.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(word))
    };
    let is_end = (ends_so(b"PRIVATE KEY") || ends_so(b"PRIVATE KEY BLOCK")) && rest.starts_with(b"-----");
    is_end.then_some(b"-----END".len() + length + 5)
}

pub(super) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted))
}

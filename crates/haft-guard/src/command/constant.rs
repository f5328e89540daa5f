//! A `$(…)` whose output stands in the line: `"$(cat <<'EOF' … EOF)"`, as agents write messages of commits.

/// The line with the text of each such document in its place, where it has one between double quotes.
///
/// Only what stands behind plain words and quotes is looked at. Behind anything else that could change what a quote
/// means (a comment, a document, another `$(…)`) the line stays as it is, and asks.
pub(super) fn without_documents(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut found = false;
    let mut quote = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let next = behind.chars().next();
        let mut taken = letter.len_utf8();
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (Some('\''), _) => {}
            (_, '\\') => taken += next.map_or(0, char::len_utf8),
            (Some('"'), '$') if next == Some('(') => {
                let Some((document, length)) = here_document(behind) else { break };
                document.chars().for_each(|letter| {
                    if matches!(letter, '\\' | '"' | '$' | '`') {
                        out.push('\\');
                    }
                    out.push(letter);
                });
                found = true;
                rest = &behind[length..];
                continue;
            }
            (_, '`') | (None, '#') => break,
            (_, '$') if matches!(next, Some('(' | '{' | '\'' | '"' | '[')) => break,
            (None, '<') if next == Some('<') => break,
            _ => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    found.then(|| out + rest)
}

/// The text that a `$(cat <<'NAME'` gives, and how many bytes it takes, from its `(` to its `)`. Nothing in such a
/// document is replaced.
///
/// Shells disagree about lines that begin with the name and go on, such as `EOF)`: some end the document there. So the
/// first line that begins with it must be the name and nothing else.
fn here_document(text: &str) -> Option<(String, usize)> {
    let blank = [' ', '\t'];
    let rest = text.strip_prefix('(')?.trim_start_matches(blank).strip_prefix("cat")?;
    let rest = rest.trim_start_matches(blank).strip_prefix("<<")?.trim_start_matches(blank);
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let (name, rest) = rest[1..].split_once(quote)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let body = rest.trim_start_matches(blank).strip_prefix('\n').filter(|_| is_name)?;
    let mut length = 0;
    loop {
        let (line, _) = body[length..].split_once('\n')?;
        if line == name {
            break;
        }
        if line.trim_start().starts_with(name) {
            return None;
        }
        length += line.len() + 1;
    }
    let behind = body[length + name.len()..].trim_start_matches([' ', '\t', '\n']).strip_prefix(')')?;
    Some((body[..length].trim_end_matches('\n').to_owned(), text.len() - behind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_are_constants() {
        let cases = [
            ("(cat <<'EOF'\na\nEOF\n)", Some("a")),
            ("(cat <<'EOF'\nEOF\n)", Some("")),
            (
                "( cat<< \"A_1\" \n'a' (b\n\n$(rm x)`y`\"\\\n\nA_1\n \n )\"; rest",
                Some("'a' (b\n\n$(rm x)`y`\"\\"),
            ),
            ("(cat <<EOF\na\nEOF\n)", None),
            ("(cat <<-'EOF'\na\nEOF\n)", None),
            ("(cat <<<'EOF'\na\nEOF\n)", None),
            ("(cat <<'E F'\na\nE F\n)", None),
            ("(cat <<''\na\n\n)", None),
            ("(cat <<'EOF'\na\nEOF)", None),
            ("(cat <<'EOF'\nEOF) x\nEOF\n)", None),
            ("(cat <<'EOF'\n\tEOF\nEOF\n)", None),
            ("(cat <<'EOF'\nEOFX\nEOF\n)", None),
            ("(cat <<'EOF'\na\nEOF\n; rm x)", None),
            ("(cat <<'EOF' | sh\na\nEOF\n)", None),
            ("(cat <<'EOF' > x\na\nEOF\n)", None),
            ("(cat x <<'EOF'\na\nEOF\n)", None),
            ("(cat <<'EOF' x\na\nEOF\n)", None),
            ("(tac <<'EOF'\na\nEOF\n)", None),
            ("((cat <<'EOF'\na\nEOF\n))", None),
            ("(cat <<'EOF'\na\n", None),
            ("(cat <<'EOF'", None),
        ];
        for (text, expected) in cases {
            let read = here_document(text);
            assert_eq!(read.as_ref().map(|(text, _)| text.as_str()), expected, "{text}");
            if let Some((_, taken)) = read {
                assert_eq!(text[..taken].chars().next_back(), Some(')'), "{text}");
            }
        }
    }

    #[test]
    fn documents_are_put_in_their_place() {
        let cases = [
            ("git commit -m \"$(cat <<'E'\na\nE\n)\" && ls", Some("git commit -m \"a\" && ls")),
            ("x \"a$(cat <<'E'\n\"$`\\\n'(\nE\n)b\"", Some("x \"a\\\"\\$\\`\\\\\n'(b\"")),
            ("x \"$(cat <<'E'\na\nE\n)\" \"$(cat <<'E'\nb\nE\n)\"", Some("x \"a\" \"b\"")),
            ("x '\"' \"$(cat <<'E'\na\nE\n)\"", Some("x '\"' \"a\"")),
            ("x \\\" $(cat <<'E'\na\nE\n)", None),
            ("x $(cat <<'E'\na\nE\n)", None),
            ("x '\"$(cat <<'E'\na\nE\n)\"", None),
            ("x '\"$(cat <<\"E\"\na\nE\n)\"'", None),
            ("x # \"\ny \"$(cat <<'E'\na\nE\n)\"", None),
            ("cat <<A\n'\nA\ny \"$(cat <<'E'\na\nE\n)\"", None),
            ("x `y` \"$(cat <<'E'\na\nE\n)\"", None),
            ("x ${y} \"$(cat <<'E'\na\nE\n)\"", None),
            ("x \"$(y) $(cat <<'E'\na\nE\n)\"", None),
            ("x \"\\$(cat <<'E'\na\nE\n)\"", None),
        ];
        for (text, expected) in cases {
            assert_eq!(without_documents(text).as_deref(), expected, "{text}");
        }
    }
}

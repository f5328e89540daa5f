//! Words of one simple command: read only where there is nothing to misread.
//!
//! Rules are written in such words, and grants remember them. A text is taken apart only when it is one simple command:
//! plain words, and quotes around text in which nothing is replaced. Whatever else a shell could make of it is not
//! guessed at; it is [`NotSimple`].

use super::program::is_wrapper;
use std::fmt;

/// Whose quoting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `sh -c`.
    Posix,
    /// `cmd.exe /C`, where `'` quotes nothing and `%` replaces. Only bare words are read.
    Windows,
}

impl Shell {
    /// The one that commands are given to on this system.
    pub const fn of_this_system() -> Self {
        if cfg!(windows) { Shell::Windows } else { Shell::Posix }
    }
}

/// Why a text is not one simple command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSimple {
    /// There is no word in it.
    Empty,
    /// A character that a shell may act on, outside of quotes or inside double quotes.
    Special(char),
    /// A line end or another control character.
    Control,
    /// A quote that does not end.
    OpenQuote,
    /// It sets a variable first: `X=1 program`.
    Assignment,
    /// The first word is a part of the shell's language, or starts another program that is named after it.
    Wrapper,
    /// It is longer than a person would read.
    TooLong,
}

impl fmt::Display for NotSimple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSimple::Empty => f.write_str("there is no command in it"),
            NotSimple::Special(special) => write!(f, "it has a `{special}`, which a shell may act on"),
            NotSimple::Control => f.write_str("it has a line end or a control character"),
            NotSimple::OpenQuote => f.write_str("a quote in it does not end"),
            NotSimple::Assignment => f.write_str("it sets a variable before the command"),
            NotSimple::Wrapper => f.write_str("its first word makes the shell run something else"),
            NotSimple::TooLong => f.write_str("it is too long"),
        }
    }
}

/// Longer texts are not taken apart.
pub(super) const LONGEST: usize = 8 * 1024;

/// The words of one simple command, or why it is not one.
///
/// ```
/// use haft_guard::command::{NotSimple, Shell, words};
/// assert_eq!(words("git commit -m 'two words'", Shell::Posix).unwrap(), ["git", "commit", "-m", "two words"]);
/// assert_eq!(words("git status; rm -rf .", Shell::Posix), Err(NotSimple::Special(';')));
/// ```
pub fn words(text: &str, shell: Shell) -> Result<Vec<String>, NotSimple> {
    let words = rule_words(text, shell)?;
    match words.first() {
        Some(first) if is_wrapper(first) => Err(NotSimple::Wrapper),
        Some(_) => Ok(words),
        None => Err(NotSimple::Empty),
    }
}

/// Reads a simple command whose first word may also be one that makes the shell run something else: a rule can deny
/// `sudo`.
pub(crate) fn rule_words(text: &str, shell: Shell) -> Result<Vec<String>, NotSimple> {
    if text.len() > LONGEST {
        return Err(NotSimple::TooLong);
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    // Where a quote stood, so that `"FOO"=bar` and `'if'` are not taken for what they are without quotes.
    let mut quoted_first = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' if shell == Shell::Posix => {
                quoted_first |= words.is_empty();
                quoted(&mut letters, letter, word.get_or_insert_default())?;
            }
            _ if letter.is_control() => return Err(NotSimple::Control),
            // A `~` in front is somebody's home; elsewhere it is a letter, but few need it.
            _ if is_plain(letter, shell) => word.get_or_insert_default().push(letter),
            _ => return Err(NotSimple::Special(letter)),
        }
    }
    words.extend(word);
    let Some(first) = words.first() else { return Err(NotSimple::Empty) };
    if first.contains('=') {
        return Err(NotSimple::Assignment);
    }
    if quoted_first || first.is_empty() {
        return Err(NotSimple::Wrapper);
    }
    Ok(words)
}

/// Words as one text that [`words`] reads as these again.
pub(crate) fn joined(words: &[String]) -> String {
    let quote =
        |word: &String| match word.is_empty() || !word.chars().all(|letter| is_plain(letter, Shell::Posix)) {
            true if word.contains('\'') => format!("\"{word}\""),
            true => format!("'{word}'"),
            false => word.clone(),
        };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), NotSimple> {
    for letter in letters {
        match letter {
            _ if letter == quote => return Ok(()),
            _ if letter.is_control() => return Err(NotSimple::Control),
            '$' | '`' | '\\' | '!' if quote == '"' => return Err(NotSimple::Special(letter)),
            _ => word.push(letter),
        }
    }
    Err(NotSimple::OpenQuote)
}

/// Letters that no shell acts on, wherever they stand.
fn is_plain(letter: char, shell: Shell) -> bool {
    letter.is_ascii_alphanumeric()
        || matches!(letter, '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '=')
        || (letter == '%' && shell == Shell::Posix)
        || (letter == '\\' && shell == Shell::Windows)
}

/// Whether a command starts with these words.
pub(crate) fn starts_with(command: &[String], prefix: &[String]) -> bool {
    !prefix.is_empty() && command.len() >= prefix.len() && command.iter().zip(prefix).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn simple_commands_are_read() {
        let cases: [(&str, &[&str]); 9] = [
            ("ls", &["ls"]),
            ("  git   status  ", &["git", "status"]),
            ("cargo test --all-features", &["cargo", "test", "--all-features"]),
            ("git log --format=%H", &["git", "log", "--format=%H"]),
            ("git commit -m 'a; b'", &["git", "commit", "-m", "a; b"]),
            ("git commit -m \"a; b | c\"", &["git", "commit", "-m", "a; b | c"]),
            ("echo 'a'\"b\"c", &["echo", "abc"]),
            ("echo '' x", &["echo", "", "x"]),
            ("./build.sh /tmp/a-b.txt", &["./build.sh", "/tmp/a-b.txt"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text, Shell::Posix).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn on_windows_only_bare_words_are_read() {
        assert_eq!(words(r"dir C:\work", Shell::Windows).unwrap(), ["dir", r"C:\work"]);
        for text in ["echo 'a & b'", "echo %PATH%", "echo \"a\"", "echo a^b", "type a&del b"] {
            assert!(words(text, Shell::Windows).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(8), ..ProptestConfig::default() })]

        /// Written with single quotes around every word, a command reads back as its words.
        #[test]
        fn quoted_words_come_back(parts in prop::collection::vec("[ -&(-~]{0,12}", 0..6)) {
            let text = parts.iter().fold("git".to_owned(), |text, part| format!("{text} '{part}'"));
            let read = words(&text, Shell::Posix).unwrap();
            prop_assert_eq!(&read[1..], &parts[..]);
        }

        #[test]
        fn nothing_makes_it_panic(text in "\\PC*|[ -~\n\t]*") {
            let _ = words(&text, Shell::Posix);
            let _ = words(&text, Shell::Windows);
        }
    }
}

//! Words of a command: read only where there is nothing to misread.
//!
//! A shell is a language. A rule that allows `git status` must not be talked into allowing `git status; rm -rf .`. So a
//! text is taken apart only when it is one simple command: plain words, and quotes around text in which nothing is
//! replaced. Whatever else a shell could make of it is not guessed at; it is [`NotSimple`], and somebody is asked.

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
const LONGEST: usize = 8 * 1024;

/// The words of one simple command, or why it is not one.
///
/// ```
/// use haft_guard::command::{NotSimple, Shell, words};
/// assert_eq!(words("git commit -m 'two words'", Shell::Posix).unwrap(), ["git", "commit", "-m", "two words"]);
/// assert_eq!(words("git status; rm -rf .", Shell::Posix), Err(NotSimple::Special(';')));
/// ```
pub fn words(text: &str, shell: Shell) -> Result<Vec<String>, NotSimple> {
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
    if quoted_first || first.is_empty() || is_wrapper(first) {
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

/// Words of the shell's own language, and programs whose arguments are a command.
const WRAPPERS: &[&str] = &[
    ".",
    ":",
    "alias",
    "ash",
    "awk",
    "bash",
    "begin",
    "break",
    "builtin",
    "busybox",
    "call",
    "case",
    "cd",
    "chroot",
    "chrt",
    "cmd",
    "command",
    "continue",
    "coproc",
    "csh",
    "dash",
    "declare",
    "do",
    "doas",
    "done",
    "elif",
    "else",
    "enable",
    "end",
    "env",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fi",
    "find",
    "fish",
    "flock",
    "for",
    "forfiles",
    "function",
    "gawk",
    "hash",
    "if",
    "in",
    "ionice",
    "ksh",
    "let",
    "local",
    "ltrace",
    "mawk",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "perl",
    "powershell",
    "pwsh",
    "readonly",
    "return",
    "rlwrap",
    "runuser",
    "script",
    "select",
    "set",
    "setarch",
    "setsid",
    "sg",
    "sh",
    "shift",
    "source",
    "ssh",
    "start",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "then",
    "time",
    "timeout",
    "trap",
    "typeset",
    "umask",
    "unalias",
    "unset",
    "unshare",
    "until",
    "watch",
    "while",
    "xargs",
    "zsh",
];

fn is_wrapper(word: &str) -> bool {
    let name = program_name(word);
    WRAPPERS.iter().any(|wrapper| name.eq_ignore_ascii_case(wrapper))
}

/// The last part of a program's path, without `.exe`: what a rule that forbids it means.
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    match name.len().checked_sub(4).and_then(|at| name.split_at_checked(at)) {
        Some((stem, end)) if !stem.is_empty() && end.eq_ignore_ascii_case(".exe") => stem,
        _ => name,
    }
}

/// Whether a command starts with these words.
pub(crate) fn starts_with(command: &[String], prefix: &[String]) -> bool {
    !prefix.is_empty() && command.len() >= prefix.len() && command.iter().zip(prefix).all(|(a, b)| a == b)
}

/// The same for what is forbidden: `/bin/rm` and `RM.EXE` are `rm`.
pub(crate) fn starts_with_program(command: &[String], prefix: &[String]) -> bool {
    let ([first, rest @ ..], [named, more @ ..]) = (command, prefix) else { return false };
    let same = first == named || program_name(first).eq_ignore_ascii_case(program_name(named));
    same && rest.len() >= more.len() && rest.iter().zip(more).all(|(a, b)| a == b)
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

    #[test]
    fn what_is_forbidden_is_known_by_its_program() {
        let rm = ["rm".to_owned()];
        for text in ["rm -rf x", "/bin/rm x", "RM.EXE x", "../../bin/rm"] {
            assert!(starts_with_program(&words(text, Shell::Posix).unwrap(), &rm), "{text}");
        }
        assert!(!starts_with_program(&words("rmdir x", Shell::Posix).unwrap(), &rm));
        assert!(
            !starts_with(&words("/bin/rm x", Shell::Posix).unwrap(), &rm),
            "an allowance goes by the word"
        );
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

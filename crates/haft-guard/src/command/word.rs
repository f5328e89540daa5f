//! One word of a command, as far as it is certain what the shell makes of it.

use super::{Unread, program::program_name};

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Exactly this text, as one word.
    Exact(String),
    /// At least one word that fits a pattern of file names. Two control characters stand for `*` and `?`.
    Glob(String),
    /// Any words, or none: a variable, a home folder, braces.
    Any,
}

/// In a [`Word::Glob`]: any letters. No line that is read has such a letter of its own.
pub(super) const MANY: char = '\0';
/// In a [`Word::Glob`]: one letter.
pub(super) const ONE: char = '\u{1}';

impl Word {
    /// The text, where it is certain.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Word::Exact(text) => Some(text),
            Word::Glob(_) | Word::Any => None,
        }
    }

    /// Whether the shell may make this very word of it.
    pub(super) fn may_be(&self, text: &str) -> bool {
        match self {
            Word::Exact(word) => word == text,
            Word::Glob(pattern) => fits(pattern, text),
            Word::Any => true,
        }
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    let wild: String = pattern
        .chars()
        .map(|letter| match letter {
            MANY => '*',
            ONE => '?',
            // Letters that `wildcard` would take for more are let stand for themselves or for any other one.
            '*' | '?' => '?',
            other => other,
        })
        .collect();
    crate::wildcard(&wild, text)
}

/// What the shell makes of a word as it stands in a line. Fails for what would run something, or cannot be told.
pub(super) fn read(raw: &str) -> Result<Word, Unread> {
    let mut reader = Reader { text: String::new(), is_glob: false, is_any: false, is_open: false };
    let mut letters = raw.chars().peekable();
    let mut first = true;
    let mut before = ' ';
    // Both shells take these as they are.
    if matches!(raw, "{}" | "[" | "]") {
        return Ok(Word::Exact(raw.to_owned()));
    }
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => reader.single(&mut letters)?,
            '"' => reader.double(&mut letters)?,
            '\\' => match letters.next() {
                Some('\n') => {}
                Some(escaped) => reader.push(escaped),
                None => return Err(Unread::Syntax),
            },
            '$' => reader.dollar(&mut letters, false)?,
            '`' => return Err(Unread::Substitution),
            '*' => reader.wild(MANY),
            '[' => {
                reader.wild(MANY);
                reader.is_open = true;
            }
            '?' => reader.wild(ONE),
            '{' | '}' => reader.is_any = true,
            '~' if first || matches!(before, '=' | ':') => reader.is_any = true,
            '(' | ')' | '<' | '>' | '|' | '&' | ';' => return Err(Unread::Syntax),
            _ => reader.push(letter),
        }
        first = false;
        before = letter;
    }
    Ok(reader.word())
}

struct Reader {
    text: String,
    is_glob: bool,
    is_any: bool,
    /// A set of letters has begun: whatever comes is under the last [`MANY`].
    is_open: bool,
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

impl Reader {
    fn push(&mut self, letter: char) {
        if !self.is_open {
            self.text.push(letter);
        }
    }

    fn wild(&mut self, sign: char) {
        self.is_glob = true;
        self.push(sign);
    }

    fn single(&mut self, letters: &mut Letters<'_>) -> Result<(), Unread> {
        for letter in letters {
            match letter {
                '\'' => return Ok(()),
                _ => self.push(letter),
            }
        }
        Err(Unread::Syntax)
    }

    fn double(&mut self, letters: &mut Letters<'_>) -> Result<(), Unread> {
        while let Some(letter) = letters.next() {
            match letter {
                '"' => return Ok(()),
                '`' => return Err(Unread::Substitution),
                '$' => self.dollar(letters, true)?,
                '\\' => match letters.next() {
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => self.push(escaped),
                    Some(other) => ['\\', other].into_iter().for_each(|letter| self.push(letter)),
                    None => return Err(Unread::Syntax),
                },
                _ => self.push(letter),
            }
        }
        Err(Unread::Syntax)
    }

    /// What follows a `$`: the plain value of a variable is any text, a `$` before nothing is itself.
    fn dollar(&mut self, letters: &mut Letters<'_>, quoted: bool) -> Result<(), Unread> {
        let is_name = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        match letters.peek().copied() {
            Some('(') => Err(Unread::Substitution),
            Some('{') => {
                letters.next();
                let mut name = String::new();
                loop {
                    match letters.next() {
                        Some('}') => break,
                        Some(letter) if is_name(&letter) => name.push(letter),
                        // Defaults, patterns, other names' values: some of them run commands.
                        _ => return Err(Unread::Expansion),
                    }
                }
                if name.is_empty() {
                    return Err(Unread::Expansion);
                }
                self.is_any = true;
                Ok(())
            }
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                while letters.next_if(is_name).is_some() {}
                self.is_any = true;
                Ok(())
            }
            Some(letter) if letter.is_ascii_digit() || "?#$!@*-".contains(letter) => {
                letters.next();
                self.is_any = true;
                Ok(())
            }
            // `$'…'` and `$"…"` are other things to other shells.
            Some('\'' | '[') => Err(Unread::Expansion),
            Some('"') if !quoted => Err(Unread::Expansion),
            Some(letter) if !letter.is_ascii() => Err(Unread::Expansion),
            Some(_) | None => {
                self.push('$');
                Ok(())
            }
        }
    }

    fn word(self) -> Word {
        match (self.is_any, self.is_glob) {
            (true, _) => Word::Any,
            (false, true) => Word::Glob(self.text),
            (false, false) => Word::Exact(self.text),
        }
    }
}

/// Whether a command that is forbidden was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is this one.
    Yes,
    /// It may be this one.
    Perhaps,
    /// It is another one.
    No,
}

/// Whether an allowance by these words is about a command: every word must be certain.
pub(crate) fn is_allowed(command: &[Word], prefix: &[String]) -> bool {
    !prefix.is_empty()
        && command.len() >= prefix.len()
        && command.iter().zip(prefix).all(|(word, named)| word.exact() == Some(named))
}

/// Whether a denial by these words is about a command: `/bin/rm` and `RM.EXE` are `rm`, and `git -C x push` may be
/// `git push`.
pub(crate) fn find_denied(command: &[Word], prefix: &[String]) -> Found {
    let ([first, rest @ ..], [named, more @ ..]) = (command, prefix) else { return Found::No };
    let Some(program) = first.exact() else { return Found::Perhaps };
    if program != named && !program_name(program).eq_ignore_ascii_case(program_name(named)) {
        return Found::No;
    }
    for (place, named) in more.iter().enumerate() {
        match rest.get(place) {
            Some(Word::Exact(word)) if word == named => {}
            // An option in between: what it takes is not known, so the word may stand anywhere behind it.
            Some(Word::Exact(word)) if word.starts_with(['-', '+']) => {
                let behind = rest[place..].iter().any(|word| word.may_be(named));
                return if behind { Found::Perhaps } else { Found::No };
            }
            Some(Word::Exact(_)) | None => return Found::No,
            Some(other) if other.may_be(named) => return Found::Perhaps,
            Some(_) => return Found::No,
        }
    }
    Found::Yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_the_shell_makes_of_them() {
        let exact = |text: &str| Ok(Word::Exact(text.to_owned()));
        let glob = |text: &str| Ok(Word::Glob(text.to_owned()));
        let cases = [
            ("ls", exact("ls")),
            ("'a b'", exact("a b")),
            ("a'b'\"c\"\\d", exact("abcd")),
            ("\"a\\\"b\\x\\\\\"", exact("a\"b\\x\\")),
            ("größe.txt", exact("größe.txt")),
            ("a\\\nb", exact("ab")),
            ("\"100$\"", exact("100$")),
            ("'$(x)'", exact("$(x)")),
            ("{}", exact("{}")),
            ("*.rs", glob("\0.rs")),
            ("'*'?", glob("*\u{1}")),
            ("a[ab]c", glob("a\0")),
            ("[", exact("[")),
            ("$HOME/x", Ok(Word::Any)),
            ("\"${FILE}\"", Ok(Word::Any)),
            ("~/x", Ok(Word::Any)),
            ("a{b,c}", Ok(Word::Any)),
            ("$(x)", Err(Unread::Substitution)),
            ("\"`x`\"", Err(Unread::Substitution)),
            ("$'a'", Err(Unread::Expansion)),
            ("${x:-y}", Err(Unread::Expansion)),
            ("${!x}", Err(Unread::Expansion)),
            ("$[1]", Err(Unread::Expansion)),
            ("'open", Err(Unread::Syntax)),
        ];
        for (raw, expected) in cases {
            assert_eq!(read(raw), expected, "{raw}");
        }
    }

    #[test]
    fn what_is_forbidden_is_known_by_its_program() {
        let words = |text: &str| text.split(' ').map(|word| read(word).unwrap()).collect::<Vec<_>>();
        let named = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let cases = [
            ("rm -rf x", "rm", Found::Yes),
            ("/bin/rm x", "rm", Found::Yes),
            ("RM.EXE x", "rm", Found::Yes),
            ("../../bin/rm", "rm", Found::Yes),
            ("rmdir x", "rm", Found::No),
            ("git push -f", "git push", Found::Yes),
            ("git status", "git push", Found::No),
            ("git", "git push", Found::No),
            ("git p*", "git push", Found::Perhaps),
            ("git *.rs", "git push", Found::No),
            ("git $X", "git push", Found::Perhaps),
            ("git -C x push", "git push", Found::Perhaps),
            ("git -C x status", "git push", Found::No),
            ("cargo +nightly publish", "cargo publish", Found::Perhaps),
        ];
        for (text, prefix, expected) in cases {
            assert_eq!(find_denied(&words(text), &named(prefix)), expected, "{text}");
        }
        assert!(!is_allowed(&words("/bin/rm x"), &named("rm")), "an allowance goes by the word");
        assert!(!is_allowed(&words("git p*"), &named("git push")));
        assert!(is_allowed(&words("ls *.rs"), &named("ls")));
    }
}

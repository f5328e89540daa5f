//! A whole line of shell, as the commands that are in it.

use super::{
    place::Folder,
    simple::{NotSimple, Shell, words},
    walk::Walk,
    word::Word,
    wrapper::{Role, role},
};
use std::fmt;

/// Why a line, or a part of it, is not known to the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is longer than a person would read.
    TooLong,
    /// It is nested deeper than a person would follow.
    TooDeep,
    /// It has more commands than a person would follow.
    TooMany,
    /// It has a control character.
    Control,
    /// It has a letter that cannot be seen, or looks like a blank.
    Invisible,
    /// There is no command in it.
    Empty,
    /// It is no shell, or shells disagree about it.
    Syntax,
    /// It puts the output of a command into a command.
    Substitution,
    /// It has a `$` that does more than give the value of a variable.
    Expansion,
    /// The name of the program is only known when it runs.
    Program,
    /// It feeds text of its own to a command.
    HereDocument,
    /// Arithmetic, functions, `case`, `[[`: more language than is read here.
    Language,
    /// A command in it runs another one, or changes what the next words mean.
    Wrapper,
    /// An option of a command in it runs another program, or writes a file, or may do so.
    Option,
    /// It goes to another folder, in which a program by its relative path is another one.
    Moved,
    /// It goes to a folder that may be outside of the working folder, and runs something there.
    Outside,
    /// It is no simple command, on a system on which nothing else is read.
    NotSimple(NotSimple),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unread::TooLong => "it is too long",
            Unread::TooDeep => "it is nested too deeply",
            Unread::TooMany => "it has too many commands",
            Unread::Control => "it has a control character",
            Unread::Invisible => "it has a letter that cannot be seen",
            Unread::Empty => "there is no command in it",
            Unread::Syntax => "it is not shell as every `sh` reads it",
            Unread::Substitution => "it puts the output of one command into another (`$(…)`)",
            Unread::Expansion => "it has a `$` that does more than give the value of a variable",
            Unread::Program => "the name of the program is only known when it runs",
            Unread::HereDocument => "it feeds text of its own to a command (`<<`)",
            Unread::Language => "it uses functions, arithmetic, `case` or `[[`",
            Unread::Wrapper => "a command in it runs another one",
            Unread::Option => {
                "an option or a subcommand in it runs another program or writes a file, or may do so"
            }
            Unread::Moved => "a program by its relative path is another one after `cd`",
            Unread::Outside => "it goes to a folder that may be outside of the working folder",
            Unread::NotSimple(why) => return why.fmt(f),
        })
    }
}

/// What a line does besides running commands. No rule about commands allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aside {
    /// It writes to this file, or to one whose name is only known when it runs.
    Writes(Option<String>),
    /// It reads from a device or a file whose name is only known when it runs.
    Reads,
    /// It sets a variable, which may change what programs do.
    Sets,
}

/// One thing that a line does. Policy decides about each by itself, and the strictest decision is that of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A command, by its words.
    Command(Vec<Word>),
    /// A command of the shell's own that touches nothing. A rule that allows any commands allows it, too.
    Harmless(Vec<Word>),
    /// Something besides commands.
    Aside(Aside),
    /// Something that is not known: any rule about commands may be about it.
    Unread(Unread),
}

impl Part {
    /// The words, where it is a command.
    pub fn words(&self) -> Option<&[Word]> {
        match self {
            Part::Command(words) | Part::Harmless(words) => Some(words),
            Part::Aside(_) | Part::Unread(_) => None,
        }
    }
}

/// A command as people read it; what is only known when it runs is a `…`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Command(words) | Part::Harmless(words) => {
                for (place, word) in words.iter().enumerate() {
                    let space = if place == 0 { "" } else { " " };
                    write!(f, "{space}{}", word.exact().unwrap_or("…"))?;
                }
                Ok(())
            }
            Part::Aside(Aside::Writes(Some(path))) => write!(f, "> {path}"),
            Part::Aside(Aside::Writes(None)) => f.write_str("> …"),
            Part::Aside(Aside::Reads) => f.write_str("< …"),
            Part::Aside(Aside::Sets) => f.write_str("a variable"),
            Part::Unread(why) => write!(f, "{why}"),
        }
    }
}

/// A line of shell, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What is in it, commands before everything else. Never empty.
    pub parts: Vec<Part>,
}

impl Line {
    /// Whether every command in it is known.
    pub fn is_read(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Unread(_)))
    }
}

/// Takes a line apart. What cannot be read is a part, too, and the commands that can be seen beside it are there.
///
/// ```
/// use haft_guard::command::{Part, Shell, line};
/// let line = line("cargo test 2>&1 | tail -20", Shell::Posix);
/// let commands: Vec<String> = line.parts.iter().map(Part::to_string).collect();
/// assert!(line.is_read());
/// assert_eq!(commands, ["cargo test", "tail -20"]);
/// ```
pub fn line(text: &str, shell: Shell) -> Line {
    line_in(text, shell, Folder::default())
}

/// Reads a line for a call that works in this folder: a `cd` to a path from the root is followed.
pub fn line_in(text: &str, shell: Shell, folder: Folder<'_>) -> Line {
    let mut parts = match shell {
        Shell::Posix => Walk::of(text, folder),
        Shell::Windows => match words(text, shell) {
            Ok(words) => {
                let words: Vec<Word> = words.into_iter().map(Word::Exact).collect();
                let hidden = match role(&words) {
                    Role::Hides(why, _) => Some(Part::Unread(why)),
                    Role::Plain | Role::Harmless | Role::Passes(_) => None,
                };
                [Part::Command(words)].into_iter().chain(hidden).collect()
            }
            Err(why) => vec![Part::Unread(Unread::NotSimple(why))],
        },
    };
    if parts.is_empty() {
        parts.push(Part::Unread(Unread::Empty));
    }
    parts.sort_by_key(|part| match part {
        Part::Command(_) => 0,
        Part::Harmless(_) => 1,
        Part::Aside(_) => 2,
        Part::Unread(_) => 3,
    });
    Line { parts }
}

/// The words of a line that is one simple command and does nothing besides: no option of it runs another program or
/// writes a file. A grant for commands covers only such lines.
pub(crate) fn single(text: &str, shell: Shell) -> Option<Vec<String>> {
    let words = words(text, shell).ok()?;
    matches!(&line(text, shell).parts[..], [Part::Command(_) | Part::Harmless(_)]).then_some(words)
}

//! What can be wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::io;

use super::place::Place;
use super::rule::choices_in_words;
use super::visible;

/// How many problems one error tells about; the rest are counted.
pub const MAX_PROBLEMS: usize = 10;

/// One thing that is wrong. It prints as a line; [`help`](Self::help) says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A key that haft does not know.
    #[error("unknown key `{}` {}", visible::plain(.key), .place.within())]
    UnknownKey {
        /// Its full name.
        key: String,
        /// Keys that may have been meant.
        suggestions: Vec<String>,
        /// Where it is.
        place: Place,
    },
    /// A value of another type.
    #[error("`{key}` must be {expected}, not {found}, {}", .place.within())]
    WrongType {
        /// The key.
        key: String,
        /// What it takes.
        expected: String,
        /// What was there.
        found: String,
        /// A line that would be right.
        example: String,
        /// Where it is.
        place: Place,
    },
    /// A number that makes no sense here.
    #[error("`{key}` must be from {min} to {max}, not {found}, {}", .place.within())]
    OutOfRange {
        /// The key.
        key: String,
        /// The number as written.
        found: String,
        /// The lowest that makes sense.
        min: u64,
        /// The highest that is accepted.
        max: u64,
        /// Where it is.
        place: Place,
    },
    /// A word that is none of the choices.
    #[error("`{key}` cannot be {found} {}", .place.within())]
    UnknownChoice {
        /// The key.
        key: String,
        /// The word, quoted.
        found: String,
        /// What it can be.
        choices: &'static [&'static str],
        /// The choice that may have been meant.
        suggestion: Option<&'static str>,
        /// Where it is.
        place: Place,
    },
    /// An entry of a list that cannot be right.
    #[error("`{key}` has the entry {found}, which {fault}, {}", .place.within())]
    BadEntry {
        /// The key.
        key: String,
        /// The entry, quoted.
        found: String,
        /// What is wrong with it.
        fault: EntryFault,
        /// Where it is.
        place: Place,
    },
    /// A key that the same file sets by its name now and by a former one.
    #[error("`{key}` is set twice, by its name and by a former one, {}", .place.within())]
    SetTwice {
        /// The key.
        key: String,
        /// Where the second one is.
        place: Place,
    },
    /// A list that needs an entry.
    #[error("`{key}` needs at least one folder {}", .place.within())]
    NoFolder {
        /// The key.
        key: String,
        /// Where it is.
        place: Place,
    },
    /// A declared tool without something it needs.
    #[error("`{tool}` has no `{field}` {}", .place.within())]
    MissingField {
        /// The tool, as `tools.definitions[0]`.
        tool: String,
        /// What is missing.
        field: &'static str,
        /// Where the tool is.
        place: Place,
    },
    /// A declared tool that breaks a rule for definitions.
    #[error("`{key}`: {}, {}", visible::plain(.what), .place.within())]
    BadDefinition {
        /// The field, as `tools.definitions[0].name`.
        key: String,
        /// What is wrong with it.
        what: String,
        /// What to do.
        fix: String,
        /// Where the tool is.
        place: Place,
    },
    /// A rule of policy that cannot be right, or whose examples do not hold.
    #[error("{}{}, {}", .rule.as_ref().map_or_else(String::new, |rule| format!("rule `{}`: ", visible::plain(rule))), visible::plain(.what), .place.within())]
    BadRule {
        /// The rule's name, where it is known.
        rule: Option<String>,
        /// What is wrong with it.
        what: String,
        /// Where it is.
        place: Place,
    },
    /// Not TOML.
    #[error("{} {}", visible::plain(.message), .place.within())]
    Syntax {
        /// What the TOML reader says.
        message: String,
        /// Where it is.
        place: Place,
    },
    /// Not text.
    #[error("{place} is not UTF-8 text")]
    NotText {
        /// Where the first byte is that is not.
        place: Place,
    },
    /// More than a person writes.
    #[error("{place} is larger than {limit} bytes")]
    TooBig {
        /// The largest that is read.
        limit: u64,
        /// The file.
        place: Place,
    },
    /// A folder, a device or a pipe where a file should be.
    #[error("{place} is {found}, not a file")]
    NotAFile {
        /// What it is.
        found: &'static str,
        /// The path.
        place: Place,
    },
    /// A file that cannot be read.
    #[error("{place} cannot be read: {reason}")]
    Unreadable {
        /// Why the file cannot be read.
        reason: io::ErrorKind,
        /// The file.
        place: Place,
    },
}

/// What is wrong with an entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryFault {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It means everything, and there are others.
    #[error("means every host, and is not alone")]
    NotAlone,
    /// It begins or ends with a space.
    #[error("begins or ends with a space")]
    Padded,
    /// It has a control character.
    #[error("has a control character")]
    Control,
    /// `~` where the home folder is not known.
    #[error("starts at the home folder, which is not known")]
    NoHome,
    /// A second tool of the same name.
    #[error("is there twice")]
    Repeated,
    /// Not a scope and a rate.
    #[error("is not a rate limit")]
    NotARate,
    /// Not a tenant and what it may use.
    #[error("is not a quota of a tenant")]
    NotAQuota,
    /// Not a way by which answers come.
    #[error("is no channel that answers come by")]
    NotAChannel,
    /// A date, or a number that JSON does not have.
    #[error("cannot be written as JSON")]
    NotJson,
}

/// The place of any problem, shared or to be changed.
macro_rules! place_of {
    ($problem:expr) => {
        match $problem {
            Problem::UnknownKey { place, .. }
            | Problem::WrongType { place, .. }
            | Problem::OutOfRange { place, .. }
            | Problem::UnknownChoice { place, .. }
            | Problem::BadEntry { place, .. }
            | Problem::SetTwice { place, .. }
            | Problem::NoFolder { place, .. }
            | Problem::MissingField { place, .. }
            | Problem::BadDefinition { place, .. }
            | Problem::BadRule { place, .. }
            | Problem::Syntax { place, .. }
            | Problem::NotText { place }
            | Problem::TooBig { place, .. }
            | Problem::NotAFile { place, .. }
            | Problem::Unreadable { place, .. } => place,
        }
    };
}

impl Problem {
    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        place_of!(self)
    }

    pub(super) fn place_mut(&mut self) -> &mut Place {
        place_of!(self)
    }

    /// What to do about it, in a line.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::UnknownKey { suggestions, .. } => match suggestions.as_slice() {
                [] => "remove it; `haft init` writes a file with every key".to_owned(),
                [one] => format!("did you mean `{one}`?"),
                several => format!("did you mean `{}`?", several.join("` or `")),
            },
            Self::WrongType { example, .. } => format!("write it like this: `{example}`"),
            Self::OutOfRange { min, max, .. } => format!("choose a whole number from {min} to {max}"),
            Self::UnknownChoice { choices, suggestion: None, .. } => {
                format!("it can be {}", choices_in_words(choices))
            }
            Self::UnknownChoice { choices, suggestion: Some(suggestion), .. } => {
                format!("did you mean \"{suggestion}\"? It can be {}", choices_in_words(choices))
            }
            Self::BadEntry { fault, .. } => fault.help().to_owned(),
            Self::SetTwice { .. } => "keep one of the two".to_owned(),
            Self::NoFolder { .. } => "remove the line to allow the working folder only".to_owned(),
            Self::MissingField { field, .. } => format!("add a line `{field} = …` to it"),
            Self::BadDefinition { fix, .. } => visible::plain(fix),
            Self::BadRule { what, .. } if what.starts_with("the example") => {
                "correct the rule or the example; until then haft does not use the file".to_owned()
            }
            Self::BadRule { .. } => "docs/policy.md has every key of a rule, with examples".to_owned(),
            Self::Syntax { message, .. } if message.starts_with("duplicate key") => {
                "keep one of the two".to_owned()
            }
            Self::Syntax { .. } => {
                "a line is `name = value` under its `[section]`; text goes in double quotes".to_owned()
            }
            Self::NotText { place: Place::Variable { .. } } => "set it to UTF-8 text".to_owned(),
            Self::NotText { .. } => "save the file as UTF-8".to_owned(),
            Self::TooBig { .. } => {
                "check that this is the right file; a configuration is a few lines".to_owned()
            }
            Self::NotAFile { .. } => "move it away, or put a file there".to_owned(),
            Self::Unreadable { reason: io::ErrorKind::NotFound, place } if place.is_in_folder() => {
                "put a file there, or remove the link".to_owned()
            }
            Self::Unreadable { reason: io::ErrorKind::NotFound, .. } => {
                "check HAFT_CONFIG, or unset it to use the usual place".to_owned()
            }
            Self::Unreadable { .. } => "check its permissions with `ls -l`".to_owned(),
        }
    }
}

impl EntryFault {
    fn help(self) -> &'static str {
        match self {
            Self::Empty => "remove the entry; an empty list is `[]`",
            Self::NotAlone => "keep it alone, or keep the others",
            Self::Padded => "remove the space: as it is, the entry would match nothing",
            Self::Control => "remove the control character",
            Self::NoHome => "write the whole path",
            Self::Repeated => "keep one of the two",
            Self::NotARate => "write it like \"agent 100/m\", for all, tenant, agent, tool or tool:NAME",
            Self::NotAQuota => "write it like \"acme calls=1000 cpu_seconds=600 bytes=1000000\"",
            Self::NotAChannel => "write \"terminal\", \"command_line\", \"http\" or \"mcp\"",
            Self::NotJson => "write it as a string",
        }
    }
}

/// A configuration that cannot be used, with everything that is wrong with it.
///
/// It prints as what follows `error: `, each problem with what to do about it:
///
/// ```
/// let error = haft_config::parse("[tools.approval]\ndenlist = []\nmode = 'promt'\n").unwrap_err();
/// assert_eq!(
///     format!("error: {error}"),
///     "error: unknown key `tools.approval.denlist` in haft.toml:2:1
///   help: did you mean `tools.approval.denylist`?
/// error: `tools.approval.mode` cannot be \"promt\" in haft.toml:3:8
///   help: did you mean \"prompt\"? It can be \"deny\", \"prompt\" or \"auto\""
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
    left_out: usize,
}

impl ConfigError {
    /// All of them; [`MAX_PROBLEMS`] are kept and the rest counted.
    pub(super) fn new(mut problems: Vec<Problem>, already_left_out: usize) -> Self {
        let left_out = already_left_out + problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        Self { problems, left_out }
    }

    /// What is wrong, in the order of the file; at most [`MAX_PROBLEMS`].
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many more problems there are.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem], 0)
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let before = if index == 0 { "" } else { "\nerror: " };
            write!(f, "{before}{problem}\n  help: {}", problem.help())?;
        }
        if self.left_out > 0 {
            write!(f, "\nerror: and {} more", self.left_out)?;
        }
        if self.problems.iter().any(|problem| problem.place().is_in_folder()) {
            f.write_str("\n  help: to go on without the file in this folder, add `--no-folder-config`")?;
        }
        Ok(())
    }
}

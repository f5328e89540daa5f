//! What a person should hear about although nothing is broken.

use std::fmt;
use std::path::PathBuf;

use super::place::Place;
use super::rule::Tighter;
use super::trust::TrustError;
use super::value::Value;
use super::visible;

/// Something a person should hear about. It prints as what follows `warning: `.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// The file in the folder is not trusted, and part of it would have loosened something. One note for all
    /// of it.
    Ignored {
        /// The file.
        path: PathBuf,
        /// The keys, in the order of the file.
        ignored: Vec<Ignored>,
    },
    /// An environment variable that looks like a key but is none.
    UnknownVariable {
        /// The name of the variable.
        name: String,
        /// Variables that may have been meant.
        suggestions: Vec<String>,
    },
    /// Tools are declared, but tools run: declarations are for `mode = "parse_only"`.
    DefinitionsUnused {
        /// How many.
        count: usize,
    },
    /// `tools.commands.hosts` is every host.
    EveryHost {
        /// Whether the least containment is one that can give that.
        is_given: bool,
    },
    /// The record of trusted files cannot be used, so nothing is trusted.
    NothingTrusted {
        /// Why not.
        why: TrustError,
    },
}

/// A key of an untrusted file that haft ignored, wholly or in part.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ignored {
    /// The key.
    pub key: &'static str,
    /// What the file says.
    pub proposed: Value,
    /// What is in effect.
    pub in_effect: Value,
    /// Where the file says so.
    pub place: Place,
}

impl Note {
    /// What to do about it, in a line.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Ignored { .. } => {
                "read the file; if you want all of it to apply, run `haft trust`".to_owned()
            }
            Self::UnknownVariable { suggestions, .. } if suggestions.is_empty() => {
                "`haft init` writes a file with every key; a variable is named after its key".to_owned()
            }
            Self::UnknownVariable { suggestions, .. } => {
                format!("did you mean `{}`?", suggestions.join("` or `"))
            }
            Self::DefinitionsUnused { .. } => {
                "set mode = \"parse_only\" under [tools] to offer them, or remove them".to_owned()
            }
            Self::EveryHost { .. } => {
                "list the hosts that commands need, such as \"crates.io\" or \"*.example.com\"".to_owned()
            }
            Self::NothingTrusted { why } => why.help(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored { path, ignored } => {
                let path = visible::path(path);
                write!(f, "{path} is not trusted, so it can only tighten; haft ignores:")?;
                for Ignored { key, proposed, in_effect, place } in ignored {
                    if let Value::Rules(rules) = proposed {
                        ignored_rules(f, key, rules)?;
                        continue;
                    }
                    let proposed = visible::shortened(&proposed.to_string());
                    let in_effect = visible::shortened(&in_effect.to_string());
                    write!(f, "\n  {key} = {proposed}")?;
                    if let Some(position) = place.position() {
                        write!(f, " (line {})", position.line)?;
                    }
                    write!(f, "; in effect: {in_effect}")?;
                    if super::key(key).is_some_and(|key| key.rule().tighter == Tighter::Nothing) {
                        f.write_str("; only your own file or a trusted one sets it")?;
                    }
                }
            }
            Self::UnknownVariable { name, .. } => {
                write!(f, "the environment variable `{}` sets no key", visible::plain(name))?;
            }
            Self::DefinitionsUnused { count } => {
                write!(
                    f,
                    "tools.definitions declares {count} tools that are not offered while tools.mode is enabled"
                )?;
            }
            Self::EveryHost { is_given: true } => f.write_str(
                "tools.commands.hosts = [\"*\"] lets commands in the `process` jail reach every host, this machine's \
                 own services too; the other jails refuse it",
            )?,
            Self::EveryHost { is_given: false } => f.write_str(
                "tools.commands.hosts = [\"*\"] keeps commands from running: only the `process` jail, at \
                 tools.commands.isolation = \"standard\", can give every host",
            )?,
            Self::NothingTrusted { why } => write!(f, "no folder is trusted: {why}")?,
        }
        write!(f, "\n  help: {}", self.help())
    }
}

/// The rules that haft ignored: those that allow something.
fn ignored_rules(f: &mut fmt::Formatter<'_>, key: &str, rules: &[haft_guard::policy::Rule]) -> fmt::Result {
    for rule in rules.iter().filter(|rule| rule.effect == haft_guard::policy::Effect::Allow) {
        write!(f, "\n  {key}: `{}`", visible::plain(&rule.name))?;
        if let Some(line) = rule.line {
            write!(f, " (line {line})")?;
        }
        f.write_str(" allows something")?;
    }
    Ok(())
}

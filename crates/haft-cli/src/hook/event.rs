//! What a host says to its hook, and what haft answers.

use super::map::Mapped;
use haft::config::Surroundings;
use serde_json::Value;
use std::path::PathBuf;

/// When the host calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before a tool runs.
    Before,
    /// After it ran.
    After,
    /// Something that haft has no part in.
    Other,
}

/// What a host says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) moment: Moment,
    /// The host's own name of its tool.
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// What the tool gave, after it ran.
    pub(crate) output: Value,
    pub(crate) failed: bool,
    pub(crate) session: String,
    /// The host's own name for the call.
    pub(crate) call: String,
    /// The project: where policy is read, and what paths are relative to.
    pub(crate) folder: PathBuf,
    /// Where a command would start.
    pub(crate) cwd: PathBuf,
    /// Whether the host would ask its person, were it told to.
    pub(crate) asks: bool,
    /// The version of the host, where it says which.
    pub(crate) version: Option<String>,
}

/// What haft says about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It may run; with other arguments, where there are any.
    Allow {
        /// In place of the host's own.
        input: Option<Value>,
        /// Whether the host should not ask by itself any more.
        is_final: bool,
    },
    /// The host's person decides.
    Ask(String),
    /// It must not run.
    Deny(String),
    /// It ran, and that is recorded.
    Noted(Option<String>),
    /// It ran in a way that must not be: the session ends.
    Alarm(String),
}

/// What goes back to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) stdout: Option<String>,
    pub(crate) stderr: Option<String>,
    pub(crate) exit: u8,
}

impl Reply {
    /// The call does not run: the one answer that every host keeps to.
    pub(crate) fn blocked(why: impl Into<String>) -> Self {
        Reply { stderr: Some(why.into()), exit: super::DENY, ..Reply::default() }
    }

    /// No opinion: the host goes on as it would without haft.
    pub(crate) fn nothing() -> Self {
        Reply::default()
    }

    pub(crate) fn json(value: &Value) -> Self {
        Reply { stdout: Some(value.to_string()), ..Reply::default() }
    }
}

/// How a host talks to its hooks.
pub(crate) struct Protocol {
    /// What it said; `None` where that makes no sense.
    pub(crate) read: fn(&Value, &Surroundings) -> Option<Event>,
    /// Its tool as a call of haft's.
    pub(crate) map: fn(&Event) -> Mapped,
    pub(crate) reply: fn(&Event, Verdict) -> Reply,
    /// The input with another command; `None` where the host does not let a hook change it.
    pub(crate) rewritten: Option<fn(&Event, &str) -> Value>,
    /// The versions that haft was tried with.
    pub(crate) tried: &'static [&'static str],
}

/// The first text among those names.
pub(crate) fn text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value.get(name)?.as_str()).filter(|text| !text.is_empty())
}

/// A variable of the process.
pub(crate) fn variable(surroundings: &Surroundings, name: &str) -> Option<String> {
    let (_, value) = surroundings.env.iter().find(|(known, _)| known == name)?;
    value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
}

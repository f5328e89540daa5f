//! Grants: what a person agreed to earlier.
//!
//! "Always" is a promise about calls that nobody has seen yet. So a grant says in words what it will cover before it is
//! saved, and it covers exactly that: a grant for a folder does not cover a call that also touches a host, and one for
//! commands covers only what can be read as one simple command.
//!
//! A grant looks at every argument. One for commands that start with `git status` says nothing about variables, input
//! or folder; so these are as they were in the call that was shown, or absent as they were there ([`Fixed`]).

use crate::{
    command::{self, Shell},
    fixed::{COMMAND, Fixed, canonical, names_and_contents},
    policy::host_allowed,
};
use haft_core::{
    CallContext, Channel, Footprint, GrantOffer, Resource, ToolDefinition,
    port::{StoredApproval, Subject},
    text::{one_line, spelled_line},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt;

mod program;
use program::says_enough;

/// What a grant covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Covers {
    /// This very call: the same tool with the same arguments that touches the same things.
    ExactCall {
        /// The tool's canonical name.
        tool: String,
        /// SHA-256, in hex, over the arguments and what they touch.
        digest: String,
        /// What the call does, for people: as a question has it, with everything spelled out.
        summary: String,
        /// The folder in which it was given; empty: the call had none. Without it, it is of an earlier haft and covers
        /// nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// This tool, where all that it touches is in this folder.
    ToolInFolder {
        /// The tool's canonical name.
        tool: String,
        /// The resolved folder.
        folder: String,
        /// The arguments that stay as they were.
        #[serde(default, skip_serializing_if = "Fixed::is_default")]
        fixed: Fixed,
    },
    /// Commands that start with these words.
    Commands {
        /// The tool's canonical name.
        tool: String,
        /// The words.
        words: Vec<String>,
        /// The arguments that stay as they were: all but the command.
        #[serde(default = "Fixed::no_other_than_the_command")]
        fixed: Fixed,
        /// The folder in which it was given; empty: the call had none. Without it, it is of an earlier haft and covers
        /// nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// This tool, where all that it touches is this host.
    Host {
        /// The tool's canonical name.
        tool: String,
        /// The host, as in a rule.
        host: String,
        /// The arguments that stay as they were.
        #[serde(default, skip_serializing_if = "Fixed::is_default")]
        fixed: Fixed,
    },
}

impl Covers {
    /// The tool that it is about.
    pub fn tool(&self) -> &str {
        match self {
            Covers::ExactCall { tool, .. }
            | Covers::ToolInFolder { tool, .. }
            | Covers::Commands { tool, .. }
            | Covers::Host { tool, .. } => tool,
        }
    }

    /// Whether it covers one call and no other.
    pub fn is_exact(&self) -> bool {
        matches!(self, Covers::ExactCall { .. })
    }

    /// What could be remembered of a call, narrowest first. What would cover more than can be said in words is not
    /// offered: a tool that does not say what it touches has no folder.
    pub fn suggestions(subject: &Subject<'_>, summary: &str, shell: Shell) -> Vec<Covers> {
        let tool = || subject.definition.name.clone();
        let digest = digest(subject.arguments, subject.footprint);
        let folder = || Some(subject.folder.to_owned());
        let summary = summary.to_owned();
        let mut offered = vec![Covers::ExactCall { tool: tool(), digest, summary, folder: folder() }];
        if let Some(text) = crate::policy::command_text(subject) {
            if let Some(words) = command::single(text, shell) {
                let named = words.iter().take_while(|word| !word.starts_with('-')).count().clamp(1, 2);
                if words.first().is_some_and(|program| says_enough(program, named)) {
                    let fixed = Fixed::of(subject.arguments, Fixed::no_other_than_the_command().free);
                    let words = words[..named].to_vec();
                    offered.push(Covers::Commands { tool: tool(), words, fixed, folder: folder() });
                }
            }
            // What a command touches is what it may touch: a folder would cover every command there is.
            return offered;
        }
        let fixed = || Fixed::of(subject.arguments, names_and_contents(subject.definition));
        if let Some(folder) = common_folder(subject.footprint) {
            offered.push(Covers::ToolInFolder { tool: tool(), folder, fixed: fixed() });
        }
        if let Some(host) = only_host(subject.footprint) {
            offered.push(Covers::Host { tool: tool(), host, fixed: fixed() });
        }
        offered
    }

    /// As it is offered to a person.
    pub fn offer(&self) -> Option<GrantOffer> {
        Some(GrantOffer { covers: serde_json::to_value(self).ok()?, words: self.to_string() })
    }

    /// What was offered, from its document; `None` where this is none.
    ///
    /// ```
    /// use haft_guard::Covers;
    /// let covers = Covers::Host { tool: "web_fetch".into(), host: "example.com".into(), fixed: Default::default() };
    /// assert_eq!(Covers::from_document(&covers.offer().unwrap().covers), Some(covers));
    /// ```
    pub fn from_document(document: &Value) -> Option<Covers> {
        serde_json::from_value(document.clone()).ok()
    }

    /// Why it does not cover a call, or `None` where it does.
    fn why_not(&self, call: &Seen<'_>, shell: Shell) -> Option<&'static str> {
        if self.tool() != call.tool {
            return Some("it is for another tool");
        }
        match self {
            Covers::ExactCall { folder, .. } | Covers::Commands { folder, .. } => match folder {
                None => return Some("it was given before grants were bound to a folder"),
                Some(folder) if folder != call.folder => return Some("it was given in another folder"),
                Some(_) => {}
            },
            // What these touch is named in full, wherever the call is made.
            Covers::ToolInFolder { .. } | Covers::Host { .. } => {}
        }
        let covered = match self {
            Covers::ExactCall { digest: remembered, .. } => {
                *remembered == digest(call.arguments, call.footprint)
            }
            Covers::ToolInFolder { folder, .. } => {
                let all = call.footprint.reads.iter().chain(&call.footprint.writes);
                touches_only(all, |resource| matches!(resource, Resource::Path(path) if is_in(path, folder)))
            }
            Covers::Host { host, .. } => {
                let all = call.footprint.reads.iter().chain(&call.footprint.writes);
                touches_only(
                    all,
                    |resource| matches!(resource, Resource::Host(other) if host_allowed(host, other)),
                )
            }
            Covers::Commands { words, .. } => call
                .arguments
                .get(COMMAND)
                .and_then(Value::as_str)
                .and_then(|text| command::single(text, shell))
                .is_some_and(|command| command::starts_with(&command, words)),
        };
        if !covered {
            return Some("the call is another one");
        }
        match self {
            // All of its arguments are in the digest.
            Covers::ExactCall { .. } => None,
            Covers::ToolInFolder { fixed, .. }
            | Covers::Host { fixed, .. }
            | Covers::Commands { fixed, .. } => {
                (!fixed.fits(call.arguments)).then_some("its other arguments are not those that were shown")
            }
        }
    }
}

fn touches_only<'a>(
    mut resources: impl Iterator<Item = &'a Resource> + Clone,
    named: impl Fn(&Resource) -> bool,
) -> bool {
    resources.clone().next().is_some() && resources.all(named)
}

fn is_in(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folder that everything is in which a call touches, where it touches only paths.
fn common_folder(footprint: &Footprint) -> Option<String> {
    let mut common: Option<&str> = None;
    for resource in footprint.reads.iter().chain(&footprint.writes) {
        let Resource::Path(path) = resource else { return None };
        let mut folder = path.rsplit_once('/').map(|(folder, _)| folder)?;
        if let Some(before) = common {
            folder = before;
            while !is_in(path, folder) {
                folder = folder.rsplit_once('/').map(|(folder, _)| folder)?;
            }
        }
        common = Some(folder);
    }
    // Everything is not a folder that a person means.
    common.filter(|folder| !folder.is_empty()).map(str::to_owned)
}

fn only_host(footprint: &Footprint) -> Option<String> {
    let mut all = footprint.reads.iter().chain(&footprint.writes);
    let Some(Resource::Host(first)) = all.next() else { return None };
    all.all(|resource| matches!(resource, Resource::Host(host) if host == first)).then(|| first.clone())
}

/// SHA-256 over arguments and what they touch. Objects are written with sorted names, so that the order in which a
/// model wrote them is nothing that a person would have to agree to again.
fn digest(arguments: &Map<String, Value>, footprint: &Footprint) -> String {
    let mut hash = Sha256::new();
    hash.update(b"haft-grant-1\0");
    let mut text = String::new();
    canonical(&Value::Object(arguments.clone()), &mut text);
    for (side, resources) in [("reads", &footprint.reads), ("writes", &footprint.writes)] {
        let mut sorted: Vec<&Resource> = resources.iter().collect();
        sorted.sort();
        text.push_str(side);
        canonical(&serde_json::to_value(sorted).unwrap_or(Value::Null), &mut text);
    }
    hash.update(text.as_bytes());
    crate::hex(&hash.finalize())
}

/// For how long a grant holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "lasts", content = "of")]
pub enum Lasts {
    /// While this session goes on.
    Session(String),
    /// Until this time.
    Until(Timestamp),
    /// Until it is revoked.
    Always,
}

/// A person's confirmation that is remembered.
///
/// ```
/// use haft_guard::{Covers, Grant, Lasts};
/// let (words, fixed) = (vec!["cargo".into(), "test".into()], Default::default());
/// let covers = Covers::Commands { tool: "run_command".into(), words, fixed, folder: Some("/w".into()) };
/// let grant = Grant::new("g1", "acme", covers, Lasts::Always);
/// assert_eq!(
///     grant.to_string(),
///     "`run_command`, every command that starts with `cargo test`, in the folder `/w`, until it is revoked"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Grant {
    /// By which it is listed and revoked.
    pub id: String,
    /// Whose calls it is about. A grant of one tenant is nothing to another.
    pub tenant: String,
    /// The agent or user it was given to; absent: every one of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What it covers.
    pub covers: Covers,
    /// For how long.
    pub lasts: Lasts,
    /// Who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<String>,
    /// By which way it was given.
    pub from: Channel,
    /// When the grant was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_at: Option<Timestamp>,
}

impl Grant {
    /// A grant to every agent of a tenant, by the program itself.
    pub fn new(id: impl Into<String>, tenant: impl Into<String>, covers: Covers, lasts: Lasts) -> Self {
        Grant {
            id: id.into(),
            tenant: tenant.into(),
            principal: None,
            covers,
            lasts,
            granted_by: None,
            from: Channel::Program,
            granted_at: None,
        }
    }

    /// Whether it holds for a call now.
    pub fn covers(&self, subject: &Subject<'_>, shell: Shell) -> bool {
        self.why_not(subject, shell).is_none()
    }

    /// Why it does not hold for a call, or `None` where it does.
    pub fn why_not(&self, subject: &Subject<'_>, shell: Shell) -> Option<&'static str> {
        // Cheapest first: with many grants nearly all are for other tools.
        if self.covers.tool() != subject.definition.name {
            return Some("it is for another tool");
        }
        if !subject.accepts.counts(self.from) {
            return Some("it was given by a way whose answers do not count here");
        }
        self.not_theirs(subject.context, subject.now)
            .or_else(|| self.covers.why_not(&Seen::of(subject.definition, subject), shell))
    }

    fn not_theirs(&self, context: &CallContext, now: Timestamp) -> Option<&'static str> {
        if *self.tenant != *context.tenant {
            return Some("it is another tenant's");
        }
        let principal = context.user.as_ref().unwrap_or(&context.agent);
        if self.principal.as_ref().is_some_and(|granted| **granted != **principal) {
            return Some("it was given to somebody else");
        }
        match &self.lasts {
            Lasts::Session(session) if context.session.as_deref() != Some(session) => {
                Some("it was for another session")
            }
            Lasts::Until(end) if now >= *end => Some("it has expired"),
            Lasts::Session(_) | Lasts::Until(_) | Lasts::Always => None,
        }
    }

    /// Whether it can never hold again, so that it may be forgotten.
    pub fn is_over(&self, now: Timestamp) -> bool {
        matches!(self.lasts, Lasts::Until(end) if now >= end)
    }
}

/// What will be remembered, in words for the person who is about to agree to it.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.covers)?;
        match &self.lasts {
            Lasts::Session(_) => f.write_str("while this session goes on"),
            Lasts::Until(end) => write!(f, "until {end}"),
            Lasts::Always => f.write_str("until it is revoked"),
        }
    }
}

impl fmt::Display for Covers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Covers::ExactCall { tool, summary, folder, digest: _ } => {
                // The summary of a question is spelled out already: here only harm is kept out.
                let (tool, summary) = (spelled_line(tool), one_line(summary, usize::MAX));
                write!(f, "`{tool}`, only this very call ({summary}){}", bound_to(folder.as_deref()))
            }
            Covers::ToolInFolder { tool, folder, fixed } => {
                let (tool, folder) = (spelled_line(tool), spelled_line(folder));
                write!(f, "`{tool}`, every call that touches only what is in `{folder}`{fixed}")
            }
            Covers::Commands { tool, words, fixed, folder } => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let (tool, words) = (spelled_line(tool), spelled_line(&words.join(" ")));
                let bound = bound_to(folder.as_deref());
                write!(f, "`{tool}`, every command that starts with `{words}`{bound}{fixed}")
            }
            Covers::Host { tool, host, fixed } => {
                let (tool, host) = (spelled_line(tool), spelled_line(host));
                write!(f, "`{tool}`, every call that touches only the host `{host}`{fixed}")
            }
        }
    }
}

/// The folder that a grant is bound to, in words.
fn bound_to(folder: Option<&str>) -> String {
    match folder {
        None => " (covers nothing: it names no folder)".to_owned(),
        Some("") => String::new(),
        Some(folder) => format!(", in the folder `{}`", spelled_line(folder)),
    }
}

/// A word as it could be typed, so that one word with a blank in it does not look like two.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A call that a person was asked about earlier, as a journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastPrompt {
    /// The tool's canonical name.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Map<String, Value>,
    /// What it would have touched.
    pub footprint: Footprint,
    /// The folder in which its programs would have started; empty where it had none.
    #[serde(default)]
    pub folder: String,
}

/// What of a call grants look at.
struct Seen<'a> {
    tool: &'a str,
    arguments: &'a Map<String, Value>,
    footprint: &'a Footprint,
    folder: &'a str,
}

impl<'a> Seen<'a> {
    fn of(definition: &'a ToolDefinition, subject: &Subject<'a>) -> Self {
        let Subject { arguments, footprint, folder, .. } = *subject;
        Seen { tool: &definition.name, arguments, footprint, folder }
    }
}

/// How many of the questions that were asked earlier would not have been, had this been granted before.
///
/// ```
/// use haft_guard::{Covers, PastPrompt, command::Shell, covers_how_many};
/// let past = |command: &str| PastPrompt {
///     tool: "run_command".into(),
///     arguments: serde_json::json!({"command": command}).as_object().unwrap().clone(),
///     footprint: Default::default(),
///     folder: "/work".into(),
/// };
/// let asked = [past("cargo test"), past("cargo test -p core"), past("cargo test; rm x"), past("git push")];
/// let words = vec!["cargo".into(), "test".into()];
/// let fixed = haft_guard::Fixed { free: vec!["command".into()], ..Default::default() };
/// let covers =
///     Covers::Commands { tool: "run_command".into(), words, fixed, folder: Some("/work".into()) };
/// assert_eq!(covers_how_many(&covers, &asked, Shell::Posix), 2);
/// ```
pub fn covers_how_many<'a>(
    covers: &Covers,
    asked: impl IntoIterator<Item = &'a PastPrompt>,
    shell: Shell,
) -> usize {
    let seen = |past: &'a PastPrompt| Seen {
        tool: &past.tool,
        arguments: &past.arguments,
        footprint: &past.footprint,
        folder: &past.folder,
    };
    asked.into_iter().filter(|past| covers.why_not(&seen(past), shell).is_none()).count()
}

/// How many of these earlier approvals a grant of that offer would have spared; none where the offer is not understood.
///
/// ```
/// use haft_guard::{Covers, spared};
/// let offer = Covers::Host { tool: "t".into(), host: "example.com".into(), fixed: Default::default() }.offer().unwrap();
/// assert_eq!(spared(&offer, &[]), 0);
/// ```
pub fn spared(offer: &GrantOffer, past: &[StoredApproval]) -> usize {
    let Some(covers) = Covers::from_document(&offer.covers) else { return 0 };
    let prompts: Vec<PastPrompt> = past
        .iter()
        .filter_map(|question| {
            let request = &question.request;
            Some(PastPrompt {
                tool: request.tool.to_string(),
                arguments: request.arguments.parse().ok()?,
                footprint: request.footprint.clone(),
                folder: request.detail.reach["folder"].as_str().unwrap_or_default().to_owned(),
            })
        })
        .collect();
    covers_how_many(&covers, &prompts, Shell::of_this_system())
}

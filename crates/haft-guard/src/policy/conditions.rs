//! For which calls a rule is.

use super::paths::PathPatterns;
use crate::{command, wildcard::wildcard_any_case};
use haft_core::{Category, Resource, Risk, RoleSupport, ToolDefinition, port::Subject};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::OnceCell;

mod fit;
mod hosts;
pub(super) use fit::{AsideKind, Doubt, Fit, Miss};
pub(crate) use hosts::host_allowed;
use hosts::host_named;
pub(super) use hosts::split_port;

/// Whether a path condition is about calls that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Reading only.
    Read,
    /// Writing.
    Write,
}

/// A value in the arguments, by JSON pointer, and the pattern that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentPattern {
    /// Where, such as `/branch`.
    pub pointer: String,
    /// What, with `*` and `?`.
    pub pattern: String,
}

/// For which calls a rule is. Every condition that is there must hold; within one, any entry.
///
/// What is touched is held to both ways: a rule that *allows* holds only where everything that the call touches
/// is named; one that *asks* or *denies* holds where anything is.
///
/// ```
/// use haft_guard::policy::Conditions;
/// let anything = Conditions::default();
/// assert!(anything.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Names of tools, with wildcards. An allowance goes by the canonical name, a denial also by aliases.
    pub tools: Vec<String>,
    /// Categories.
    pub categories: Vec<Category>,
    /// Risks.
    pub risks: Vec<Risk>,
    /// Globs on resolved paths, such as `/work/src/**`.
    pub paths: Vec<String>,
    /// Whether the paths are those that are read or those that are written. Absent: both.
    pub access: Option<Access>,
    /// Words that a command starts with.
    pub commands: Vec<Vec<String>>,
    /// Hosts: `example.com`, `*.example.com`, `example.com:8080`.
    pub hosts: Vec<String>,
    /// Values of arguments. All must hold.
    pub arguments: Vec<ArgumentPattern>,
    /// Agents, with wildcards.
    pub agents: Vec<String>,
    /// Tenants, with wildcards.
    pub tenants: Vec<String>,
}

impl Conditions {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Conditions::default()
    }

    /// Whether it says more than who calls which tool.
    pub fn is_narrow(&self) -> bool {
        !(self.paths.is_empty()
            && self.commands.is_empty()
            && self.hosts.is_empty()
            && self.arguments.is_empty())
    }
}

/// A subject, with what several rules look at worked out once.
pub(super) struct Looked<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) shell: command::Shell,
    steps: OnceCell<Vec<Step>>,
    paths: OnceCell<Vec<TouchedPath<'a>>>,
}

/// What a call does, one thing at a time: every command of its line is decided about by itself.
pub(super) enum Step {
    /// It runs no command.
    NoCommand,
    /// It runs a program and does not say which.
    Hidden,
    /// A part of its line.
    Part(command::Part),
}

impl Step {
    /// The program that it runs, where that is known.
    fn program(&self) -> Option<&str> {
        let Step::Part(part) = self else { return None };
        part.words()?.first()?.exact()
    }
}

pub(super) struct TouchedPath<'a> {
    pub(super) path: &'a str,
    is_written: bool,
    /// Patterns that it matches, ascending.
    pub(super) matched: Vec<usize>,
}

impl<'a> Looked<'a> {
    pub(super) fn new(subject: &'a Subject<'a>, shell: command::Shell) -> Self {
        Looked { subject, shell, steps: OnceCell::new(), paths: OnceCell::new() }
    }

    /// What the call does. Never empty.
    pub(super) fn steps(&self) -> &[Step] {
        self.steps.get_or_init(|| match command_text(self.subject) {
            Some(text) => {
                let line = command::line_in(text, self.shell, folder(self.subject));
                line.parts.into_iter().map(Step::Part).collect()
            }
            None if self.subject.definition.category == Category::CodeExecution => vec![Step::Hidden],
            None => vec![Step::NoCommand],
        })
    }

    pub(super) fn paths(&self, patterns: &PathPatterns) -> &[TouchedPath<'a>] {
        self.paths.get_or_init(|| {
            let footprint = self.subject.footprint;
            let reads = footprint.reads.iter().map(|resource| (resource, false));
            let writes = footprint.writes.iter().map(|resource| (resource, true));
            let paths = reads.chain(writes).filter_map(|(resource, is_written)| match resource {
                Resource::Path(path) => Some((path, is_written)),
                Resource::Anything | Resource::Host(_) | Resource::Named(_) => None,
            });
            paths
                .map(|(path, is_written)| TouchedPath { path, is_written, matched: patterns.matches(path) })
                .collect()
        })
    }
}

/// The text of the command that a call would run, where its arguments name one.
pub(crate) fn command_text<'a>(subject: &Subject<'a>) -> Option<&'a str> {
    subject.arguments.get("command").and_then(Value::as_str)
}

/// The folder that a call's command works in.
fn folder<'a>(subject: &Subject<'a>) -> command::Folder<'a> {
    let names_another = subject.arguments.get("working_dir").is_some_and(|folder| !folder.is_null());
    command::Folder { path: subject.folder, is_start: !names_another }
}

/// A path from the root without `.`, `..` and empty names.
fn tidied(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// A rule's conditions, with its patterns as places in the set of all.
pub(super) struct Compiled {
    pub(super) when: Conditions,
    /// Of a rule that allows: all must be named. Of others: any.
    pub(super) allows: bool,
    pub(super) patterns: std::ops::Range<usize>,
}

impl Compiled {
    /// Whether they hold. Cheap ones first.
    pub(super) fn fit(&self, looked: &Looked<'_>, step: &Step, patterns: &PathPatterns) -> Fit {
        let when = &self.when;
        let subject = looked.subject;
        let definition = subject.definition;
        if !when.tools.is_empty() && !self.names_tool(definition) {
            return Fit::No(Miss::Tool);
        }
        if !when.categories.is_empty() && !when.categories.contains(&definition.category) {
            return Fit::No(Miss::Category);
        }
        if !when.risks.is_empty() && !when.risks.contains(&risk(subject)) {
            return Fit::No(Miss::Risk);
        }
        if !any_wildcard(&when.agents, &subject.context.agent) {
            return Fit::No(Miss::Agent);
        }
        if !any_wildcard(&when.tenants, &subject.context.tenant) {
            return Fit::No(Miss::Tenant);
        }
        // Only what opens is licensed: what asks or denies always counts.
        let by_attributes = self.allows && !(when.agents.is_empty() && when.tenants.is_empty());
        if by_attributes && subject.context.tier.role_support() < RoleSupport::Attributes {
            return Fit::No(Miss::Licence);
        }
        let mut doubt = None;
        let rest = [
            |compiled: &Compiled, looked: &Looked<'_>, _: &Step, _: &PathPatterns| compiled.arguments(looked),
            |compiled: &Compiled, looked: &Looked<'_>, step: &Step, _: &PathPatterns| {
                compiled.command(looked, step)
            },
            |compiled: &Compiled, looked: &Looked<'_>, step: &Step, patterns: &PathPatterns| {
                compiled.touched(looked, step, patterns)
            },
        ];
        for check in rest {
            match check(self, looked, step, patterns) {
                Fit::Yes => {}
                Fit::No(miss) => return Fit::No(miss),
                Fit::Unknown(why) => doubt = doubt.or(Some(why)),
            }
        }
        doubt.map_or(Fit::Yes, Fit::Unknown)
    }

    fn names_tool(&self, definition: &ToolDefinition) -> bool {
        let named = |name: &str| self.when.tools.iter().any(|tool| wildcard_any_case(tool, name));
        named(&definition.name) || (!self.allows && definition.aliases.iter().any(|alias| named(alias)))
    }

    fn arguments(&self, looked: &Looked<'_>) -> Fit {
        let mut doubt = None;
        for wanted in &self.when.arguments {
            match argument(looked.subject, wanted, self.allows) {
                Fit::Yes => {}
                Fit::No(miss) => return Fit::No(miss),
                Fit::Unknown(why) => doubt = Some(why),
            }
        }
        doubt.map_or(Fit::Yes, Fit::Unknown)
    }

    fn command(&self, looked: &Looked<'_>, step: &Step) -> Fit {
        let is_about_commands = !self.when.commands.is_empty()
            || self.when.arguments.iter().any(|named| named.pointer == "/command");
        let named = if self.when.commands.is_empty() { Fit::Yes } else { self.names_command(step) };
        // A rule that allows a command does not allow what changes its meaning.
        let arguments = looked.subject.arguments;
        match named {
            Fit::Yes
                if self.allows
                    && is_about_commands
                    && super::beside::says_more(arguments, step.program(), &self.when.arguments) =>
            {
                Fit::Unknown(Doubt::BesideCommand)
            }
            named => named,
        }
    }

    fn names_command(&self, step: &Step) -> Fit {
        let part = match step {
            Step::NoCommand => return Fit::No(Miss::Command),
            Step::Hidden => return Fit::Unknown(Doubt::NoCommand),
            Step::Part(part) => part,
        };
        match part {
            command::Part::Unread(why) => Fit::Unknown(Doubt::Command(*why)),
            command::Part::Aside(aside) if self.allows => Fit::Unknown(Doubt::Aside(match aside {
                command::Aside::Writes(_) => AsideKind::Writes,
                command::Aside::Reads => AsideKind::Reads,
                command::Aside::Sets => AsideKind::Sets,
            })),
            command::Part::Aside(_) => Fit::No(Miss::Command),
            // A rule that lets programs run also allows what touches nothing.
            command::Part::Harmless(_) if self.allows => Fit::Yes,
            command::Part::Command(words) | command::Part::Harmless(words) => self.named(words),
        }
    }

    fn named(&self, words: &[command::Word]) -> Fit {
        let commands = &self.when.commands;
        if self.allows {
            let named = commands.iter().any(|prefix| command::is_allowed(words, prefix));
            return if named { Fit::Yes } else { Fit::No(Miss::Command) };
        }
        let found: Vec<_> = commands.iter().map(|prefix| command::find_denied(words, prefix)).collect();
        match () {
            () if found.contains(&command::Found::Yes) => Fit::Yes,
            () if found.contains(&command::Found::Perhaps) => Fit::Unknown(Doubt::MayBeNamed),
            () => Fit::No(Miss::Command),
        }
    }

    fn touched(&self, looked: &Looked<'_>, step: &Step, patterns: &PathPatterns) -> Fit {
        let when = &self.when;
        if when.paths.is_empty() && when.hosts.is_empty() {
            return Fit::Yes;
        }
        match self.allows {
            true => self.touches_only_named(looked, patterns),
            false if self.writes_named(step, patterns) => Fit::Yes,
            false => self.touches_any_named(looked, patterns),
        }
    }

    /// Whether the line itself writes to a file that the rule names. Links are not followed here, so that this only
    /// ever makes a decision stricter.
    fn writes_named(&self, step: &Step, patterns: &PathPatterns) -> bool {
        let Step::Part(command::Part::Aside(command::Aside::Writes(Some(path)))) = step else { return false };
        self.when.access != Some(Access::Read)
            && path.starts_with('/')
            && patterns.matches(&tidied(path)).iter().any(|pattern| self.patterns.contains(pattern))
    }

    /// For what allows: everything that the call touches is named, and it touches something.
    fn touches_only_named(&self, looked: &Looked<'_>, patterns: &PathPatterns) -> Fit {
        let footprint = looked.subject.footprint;
        let writes = !footprint.writes.is_empty();
        match self.when.access {
            Some(Access::Read) if writes => return Fit::No(Miss::Path),
            Some(Access::Write) if !writes => return Fit::No(Miss::Path),
            _ => {}
        }
        let mut touches = false;
        for resource in footprint.reads.iter().chain(&footprint.writes) {
            touches = true;
            match resource {
                Resource::Anything => return Fit::Unknown(Doubt::Undeclared),
                Resource::Named(_) => return Fit::No(Miss::Path),
                // All of them are looked at below, with the patterns that they match.
                Resource::Path(_) if self.when.paths.is_empty() => return Fit::No(Miss::Path),
                Resource::Path(_) => {}
                Resource::Host(host) => {
                    if !self.when.hosts.iter().any(|named| host_allowed(named, host)) {
                        return Fit::No(Miss::Host);
                    }
                }
            }
        }
        let all_named = looked.paths(patterns).iter().all(|touched| self.names_path(touched));
        if touches && all_named { Fit::Yes } else { Fit::No(Miss::Path) }
    }

    /// For what asks or denies: anything that is named is touched, or may be.
    fn touches_any_named(&self, looked: &Looked<'_>, patterns: &PathPatterns) -> Fit {
        let footprint = looked.subject.footprint;
        let sides = [(&footprint.reads, Access::Read), (&footprint.writes, Access::Write)];
        let mut undeclared = false;
        for (resources, access) in sides {
            let counts = self.when.access.is_none_or(|wanted| wanted == access);
            for resource in resources {
                match resource {
                    Resource::Anything => undeclared |= counts,
                    Resource::Host(host) if self.when.hosts.iter().any(|named| host_named(named, host)) => {
                        return Fit::Yes;
                    }
                    Resource::Host(_) | Resource::Path(_) | Resource::Named(_) => {}
                }
            }
        }
        let mut around = false;
        if !self.patterns.is_empty() {
            for touched in looked.paths(patterns) {
                let counts = match self.when.access {
                    None => true,
                    Some(Access::Write) => touched.is_written,
                    Some(Access::Read) => !touched.is_written,
                };
                if counts && self.names_path(touched) {
                    return Fit::Yes;
                }
                around |= counts
                    && patterns.fixed[self.patterns.clone()]
                        .iter()
                        .any(|fixed| is_around(touched.path, fixed));
            }
        }
        match (undeclared, around) {
            (_, true) => Fit::Unknown(Doubt::FolderAround),
            (true, false) => Fit::Unknown(Doubt::Undeclared),
            (false, false) => Fit::No(if self.when.paths.is_empty() { Miss::Host } else { Miss::Path }),
        }
    }

    fn names_path(&self, touched: &TouchedPath<'_>) -> bool {
        let after = touched.matched.partition_point(|&index| index < self.patterns.start);
        touched.matched.get(after).is_some_and(|index| self.patterns.contains(index))
    }
}

/// The risk of this very call: one that its tool wants confirmed is a high one.
fn risk(subject: &Subject<'_>) -> Risk {
    if subject.confirm.is_some() { Risk::High } else { subject.definition.risk() }
}

fn any_wildcard(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| crate::wildcard(pattern, text))
}

fn is_around(folder: &str, inside: &str) -> bool {
    let folder = folder.strip_suffix('/').unwrap_or(folder);
    inside.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn argument(subject: &Subject<'_>, wanted: &ArgumentPattern, allows: bool) -> Fit {
    let fits = |fits: bool| if fits { Fit::Yes } else { Fit::No(Miss::Argument) };
    let Some(value) = at_pointer(subject, &wanted.pointer) else { return Fit::No(Miss::Argument) };
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(crate::wildcard(&wanted.pattern, text)),
        Value::Number(number) => Some(crate::wildcard(&wanted.pattern, &number.to_string())),
        Value::Bool(flag) => Some(crate::wildcard(&wanted.pattern, if *flag { "true" } else { "false" })),
        Value::Null => Some(crate::wildcard(&wanted.pattern, "null")),
        Value::Array(_) | Value::Object(_) => None,
    };
    match value {
        Value::Array(items) => {
            let found: Option<Vec<bool>> = items.iter().map(scalar).collect();
            match found {
                None => Fit::Unknown(Doubt::Argument),
                Some(found) if allows => fits(!found.is_empty() && found.iter().all(|fits| *fits)),
                Some(found) => fits(found.contains(&true)),
            }
        }
        Value::Object(_) => Fit::Unknown(Doubt::Argument),
        _ => fits(scalar(value) == Some(true)),
    }
}

fn at_pointer<'a>(subject: &Subject<'a>, pointer: &str) -> Option<&'a Value> {
    let pointer = pointer.strip_prefix('/')?;
    let (first, rest) = pointer.split_once('/').map_or((pointer, None), |(first, rest)| (first, Some(rest)));
    let value = subject.arguments.get(&first.replace("~1", "/").replace("~0", "~"))?;
    rest.map_or(Some(value), |rest| value.pointer(&format!("/{rest}")))
}

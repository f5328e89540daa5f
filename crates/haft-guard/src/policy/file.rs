//! Rules in a file: TOML, with the line of every problem, and with examples that must hold.

use super::{
    Access, ArgumentPattern, Conditions, Effect, ExampleCount, ListPolicy, PolicySet, Rule,
    conditions::{Fit, Looked},
};
use crate::command::{self, Shell};
use haft_core::{CallContext, Category, Footprint, Resource, Risk, ToolDefinition, port::Subject};
use serde::{
    Deserialize, Deserializer,
    de::{IntoDeserializer as _, SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt};
use toml::Spanned;

/// One thing that is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// Where, counted from 1.
    pub line: Option<usize>,
    /// In which rule.
    pub rule: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl PolicyProblem {
    pub(super) fn of(rule: &Rule, message: String) -> Self {
        PolicyProblem { line: rule.line, rule: Some(rule.name.clone()), message }
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(rule) = &self.rule {
            write!(f, "rule `{rule}`: ")?;
        }
        f.write_str(&self.message)
    }
}

/// All that is wrong with a policy. It is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblems(pub Vec<PolicyProblem>);

impl fmt::Display for PolicyProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyProblems {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    rules: Vec<Spanned<RawRule>>,
}

/// A file of which only the rules are looked at.
#[derive(Deserialize)]
struct RawWhole {
    #[serde(default)]
    policy: RawSection,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with rules: [[policy.rules]]")]
struct RawSection {
    #[serde(default)]
    rules: Vec<Spanned<RawRule>>,
    /// A key of the configuration, which reads it itself.
    #[serde(default, rename = "profile")]
    _profile: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: Option<String>,
    effect: Effect,
    reason: Option<String>,
    #[serde(default)]
    tool: Many<String>,
    #[serde(default)]
    category: Many<Category>,
    #[serde(default)]
    risk: Many<Risk>,
    #[serde(default)]
    path: Many<String>,
    access: Option<Access>,
    #[serde(default)]
    command: Many<String>,
    #[serde(default)]
    host: Many<String>,
    #[serde(default)]
    argument: BTreeMap<String, String>,
    #[serde(default)]
    agent: Many<String>,
    #[serde(default)]
    tenant: Many<String>,
    #[serde(default)]
    confirms: bool,
    #[serde(default)]
    remember: bool,
    #[serde(default)]
    examples: RawExamples,
}

/// One, or a list.
enum Many<T> {
    One(T),
    List(Vec<T>),
}

/// By hand, because a derived one forgets why neither fits.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text, or a list of texts")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Many<T>, E> {
                T::deserialize(text.into_deserializer()).map(Many::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Many<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Many::List)
            }
        }

        deserializer.deserialize_any(OneOrMany(std::marker::PhantomData))
    }
}

impl<T> Default for Many<T> {
    fn default() -> Self {
        Many::List(Vec::new())
    }
}

impl<T> From<Many<T>> for Vec<T> {
    fn from(many: Many<T>) -> Self {
        match many {
            Many::One(one) => vec![one],
            Many::List(list) => list,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExamples {
    #[serde(default, rename = "match")]
    matching: Vec<Spanned<RawExample>>,
    #[serde(default)]
    no_match: Vec<Spanned<RawExample>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, or a table with tool, arguments, command, reads, writes, hosts, agent, tenant, category, risk"
)]
enum RawExample {
    Text(String),
    Call(Box<RawCall>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawCall {
    tool: Option<String>,
    arguments: Map<String, Value>,
    command: Option<String>,
    reads: Vec<String>,
    writes: Vec<String>,
    hosts: Vec<String>,
    agent: Option<String>,
    tenant: Option<String>,
    category: Option<Category>,
    risk: Option<Risk>,
}

/// Reads rules, and checks the examples of each: a file with one that does not hold is refused.
///
/// `base` is the folder that relative path patterns start from; patterns that begin with `/` or `**/` stand as they
/// are.
///
/// ```
/// use haft_guard::policy::read_rules;
/// let text = r#"
/// [[rules]]
/// name = "look around"
/// effect = "allow"
/// command = ["git status", "git log"]
/// examples = { match = ["git status --short"], no_match = ["git push", "git status; rm x"] }
/// "#;
/// assert_eq!(read_rules(text, "/work")?.len(), 1);
///
/// let wrong = text.replace("git push", "git log -1");
/// let problem = read_rules(&wrong, "/work").unwrap_err();
/// assert_eq!(
///     problem.to_string(),
///     "line 6: rule `look around`: the example `git log -1` must not match, and does"
/// );
/// # Ok::<(), haft_guard::policy::PolicyProblems>(())
/// ```
pub fn read_rules(text: &str, base: &str) -> Result<Vec<Rule>, PolicyProblems> {
    let lines = Lines::of(text);
    let file: RawFile = toml::from_str(text).map_err(|error| lines.broken(&error))?;
    checked(file.rules, &lines, base)
}

/// Reads rules that stand as `[[policy.rules]]` in a larger file. What else is in the file is not looked at.
///
/// ```
/// use haft_guard::policy::read_policy_section;
/// let text = "[tools]\nmode = 'enabled'\n[[policy.rules]]\nname = 'r'\neffect = 'ask'\ntool = 'deploy'\n";
/// assert_eq!(read_policy_section(text, "/work")?[0].line, Some(3));
/// # Ok::<(), haft_guard::policy::PolicyProblems>(())
/// ```
pub fn read_policy_section(text: &str, base: &str) -> Result<Vec<Rule>, PolicyProblems> {
    let lines = Lines::of(text);
    let whole: RawWhole = toml::from_str(text).map_err(|error| lines.broken(&error))?;
    checked(whole.policy.rules, &lines, base)
}

/// Where the lines of a text begin, so that many places in it are found fast.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Lines(text.match_indices('\n').map(|(end, _)| end + 1).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }

    fn broken(&self, error: &toml::de::Error) -> PolicyProblems {
        let line = error.span().map(|span| self.at(span.start));
        PolicyProblems(vec![PolicyProblem { line, rule: None, message: error.message().to_owned() }])
    }
}

fn checked(raw: Vec<Spanned<RawRule>>, lines: &Lines, base: &str) -> Result<Vec<Rule>, PolicyProblems> {
    let line_of = |offset: usize| lines.at(offset);
    let mut problems = Vec::new();
    let mut rules = Vec::with_capacity(raw.len());
    let mut names = std::collections::HashSet::new();
    let mut examples = Vec::new();
    for (index, raw) in raw.into_iter().enumerate() {
        let line = line_of(raw.span().start);
        let mut raw = raw.into_inner();
        let said = std::mem::take(&mut raw.examples);
        let name = raw.name.take().unwrap_or_else(|| format!("rule {}", index + 1));
        let examples_of_it =
            ExampleCount { matching: said.matching.len(), not_matching: said.no_match.len() };
        let rule = compile(raw, name, base, line, &mut problems);
        let rule = Rule { line: Some(line), examples: examples_of_it, ..rule };
        if !names.insert(rule.name.clone()) {
            problems.push(PolicyProblem::of(&rule, "another rule has the same name".to_owned()));
        }
        rules.push(rule);
        let wanted = said.matching.into_iter().map(|example| (example, true));
        let unwanted = said.no_match.into_iter().map(|example| (example, false));
        for (example, must_match) in wanted.chain(unwanted) {
            let line = line_of(example.span().start);
            examples.push(Example { rule: index, line, must_match, call: example.into_inner() });
        }
    }
    if !problems.is_empty() {
        return Err(PolicyProblems(problems));
    }
    let set = PolicySet::new(ListPolicy::default(), rules)?.for_shell(Shell::Posix);
    problems.extend(examples.iter().filter_map(|example| check(&set, example, base)));
    match problems.is_empty() {
        true => Ok(set.rules),
        false => Err(PolicyProblems(problems)),
    }
}

fn compile(raw: RawRule, name: String, base: &str, line: usize, problems: &mut Vec<PolicyProblem>) -> Rule {
    let mut commands = Vec::new();
    for text in Vec::from(raw.command) {
        // Rules are written for people, so they are read as `sh` would, on every system.
        let words = match raw.effect {
            // `find` runs others only where its arguments say so, which is looked at in every call.
            Effect::Allow if text.split([' ', '\t']).any(|word| word == "find") => {
                command::rule_words(&text, Shell::Posix)
            }
            Effect::Allow => command::words(&text, Shell::Posix),
            Effect::Ask | Effect::Deny => command::rule_words(&text, Shell::Posix),
        };
        match words {
            Ok(words) => commands.push(words),
            Err(why) => problems.push(PolicyProblem {
                line: Some(line),
                rule: Some(name.clone()),
                message: format!("`{text}` is not the beginning of one simple command: {why}"),
            }),
        }
    }
    let arguments = raw.argument.into_iter();
    let when = Conditions {
        tools: raw.tool.into(),
        categories: raw.category.into(),
        risks: raw.risk.into(),
        // The base may hold characters that mean something in a pattern.
        paths: Vec::from(raw.path)
            .iter()
            .map(|path| below(path, &globset::escape(base.trim_end_matches('/'))))
            .collect(),
        access: raw.access,
        commands,
        hosts: raw.host.into(),
        arguments: arguments.map(|(pointer, pattern)| ArgumentPattern { pointer, pattern }).collect(),
        agents: raw.agent.into(),
        tenants: raw.tenant.into(),
    };
    Rule {
        reason: raw.reason,
        confirms: raw.confirms,
        remember: raw.remember,
        ..Rule::new(name, raw.effect, when)
    }
}

/// A path or pattern as it is when it starts at the root or anywhere, else below the base.
fn below(path: &str, base: &str) -> String {
    let is_whole = path.starts_with('/') || path.starts_with("**/") || path.get(1..3) == Some(":/");
    match path.strip_prefix("./").unwrap_or(path) {
        _ if is_whole => path.to_owned(),
        "" | "." => base.to_owned(),
        path => format!("{base}/{path}"),
    }
}

/// An example that a rule carries.
struct Example {
    rule: usize,
    line: usize,
    must_match: bool,
    call: RawExample,
}

/// What is wrong with an example, if anything.
fn check(set: &PolicySet, example: &Example, base: &str) -> Option<PolicyProblem> {
    let rule = &set.rules[example.rule];
    let (call, shown) = spelled_out(&example.call, rule);
    let path = |path: &String| Resource::path(below(path, base.trim_end_matches('/')));
    let hosts = call.hosts.iter().cloned().map(Resource::Host);
    let footprint = Footprint {
        reads: call.reads.iter().map(path).chain(hosts).collect(),
        writes: call.writes.iter().map(path).collect(),
    };
    let plain = |patterns: &[String], otherwise: &str| {
        patterns.first().map_or_else(|| otherwise.to_owned(), |pattern| pattern.replace(['*', '?'], "x"))
    };
    // What an example does not say about who calls what is as the rule wants it.
    let when = &rule.when;
    let tenant = call.tenant.unwrap_or_else(|| plain(&when.tenants, "local"));
    let agent = call.agent.unwrap_or_else(|| plain(&when.agents, "owner"));
    // An example is about the words of a rule, whatever licence somebody has.
    let context = CallContext { tier: haft_core::Tier::Enterprise, ..CallContext::new(tenant, agent) };
    let runs = call.command.is_some();
    let usual = if runs { "run_command" } else { "some_tool" };
    let mut definition =
        ToolDefinition::new(call.tool.unwrap_or_else(|| plain(&when.tools, usual)), "In an example");
    let usual = if runs { Category::CodeExecution } else { Category::System };
    definition.category = call.category.or(when.categories.first().copied()).unwrap_or(usual);
    definition.risk = call.risk.or(when.risks.first().copied());
    let mut arguments = call.arguments;
    arguments.extend(call.command.map(|command| ("command".to_owned(), json!(command))));
    let subject = Subject {
        context: &context,
        definition: &definition,
        arguments: &arguments,
        footprint: &footprint,
        folder: "/w",
        confirm: None,
        accepts: haft_core::port::AcceptAnswers::from_any(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let matches = set.fit_whole(example.rule, &Looked::new(&subject, Shell::Posix)) == Fit::Yes;
    let message = match (example.must_match, matches) {
        (true, true) | (false, false) => return None,
        (true, false) => format!("the example `{shown}` must match, and does not"),
        (false, true) => format!("the example `{shown}` must not match, and does"),
    };
    Some(PolicyProblem { line: Some(example.line), rule: Some(rule.name.clone()), message })
}

/// A text in an example is what its rule is about: a command, a path, a host, or a tool.
fn spelled_out(example: &RawExample, rule: &Rule) -> (RawCall, String) {
    match example {
        RawExample::Call(call) => {
            let RawCall { tool, arguments, command, reads, writes, hosts, agent, tenant, category, risk } =
                &**call;
            let copy = RawCall {
                tool: tool.clone(),
                arguments: arguments.clone(),
                command: command.clone(),
                reads: reads.clone(),
                writes: writes.clone(),
                hosts: hosts.clone(),
                agent: agent.clone(),
                tenant: tenant.clone(),
                category: *category,
                risk: *risk,
            };
            let shown = [tool, command].into_iter().flatten().chain(reads).chain(writes).chain(hosts);
            (copy, shown.cloned().collect::<Vec<_>>().join(" "))
        }
        RawExample::Text(text) => {
            let when = &rule.when;
            let one = vec![text.clone()];
            let call = match () {
                () if !when.commands.is_empty() => {
                    RawCall { command: Some(text.clone()), ..RawCall::default() }
                }
                () if !when.paths.is_empty() && when.access == Some(Access::Read) => {
                    RawCall { reads: one, ..RawCall::default() }
                }
                () if !when.paths.is_empty() => RawCall { writes: one, ..RawCall::default() },
                () if !when.hosts.is_empty() => RawCall { hosts: one, ..RawCall::default() },
                () => RawCall { tool: Some(text.clone()), ..RawCall::default() },
            };
            (call, text.clone())
        }
    }
}

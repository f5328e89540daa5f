//! Lists, rules and grants together, in one order.

use super::{
    Effect, ListPolicy, PolicyProblem, PolicyProblems, Rule,
    conditions::{Compiled, Doubt, Fit, Looked, Step, split_port},
    index::Index,
    paths::PathPatterns,
};
use crate::{
    Covers, Grant, GrantSource, Lasts, MemoryGrants,
    command::{Part, Shell},
};
use haft_core::{
    ApprovalMode, CallContext, GrantOffer, ToolDefinition,
    port::{GuardError, Policy, Subject, Verdict},
};
use std::sync::Arc;

/// Everything that policy goes by: lists and mode, rules, grants.
///
/// In this order: a deny always wins, be it of the denylist or of a rule. Among the rules that hold, the strictest
/// decides. Then come grants and the allowlist, and last the mode. A tool that always asks is satisfied by a grant and
/// by a rule that says `confirms`; the allowlist does not satisfy it. What cannot be known counts against the call.
///
/// ```
/// use haft_guard::policy::{ListPolicy, PolicySet, read_rules};
/// let rules = read_rules("[[rules]]\nname = 'no pushes'\neffect = 'deny'\ncommand = 'git push'\n", "/work")?;
/// let policy = PolicySet::new(ListPolicy::default(), rules)?;
/// assert_eq!(policy.rules()[0].name, "no pushes");
/// # Ok::<(), haft_guard::policy::PolicyProblems>(())
/// ```
pub struct PolicySet {
    pub(super) lists: ListPolicy,
    pub(super) rules: Vec<Rule>,
    pub(super) compiled: Vec<Compiled>,
    pub(super) patterns: PathPatterns,
    index: Index,
    pub(super) grants: Arc<dyn GrantSource>,
    pub(super) shell: Shell,
}

/// How a rule speaks about a call.
pub(super) struct Speaks {
    pub(super) rule: usize,
    pub(super) effect: Effect,
    /// What could not be known, where the rule does not speak with certainty.
    pub(super) doubt: Option<Doubt>,
}

impl PolicySet {
    /// These lists and rules, without grants.
    pub fn new(lists: ListPolicy, rules: Vec<Rule>) -> Result<Self, PolicyProblems> {
        // Before anything is looked at: anybody's project may bring any number.
        if let Some(one_too_many) = rules.get(MOST_RULES) {
            let message = format!("there are more than {MOST_RULES} rules");
            return Err(PolicyProblems(vec![PolicyProblem::of(one_too_many, message)]));
        }
        let mut problems = Vec::new();
        let mut patterns = PathPatterns::default();
        let mut compiled = Vec::with_capacity(rules.len());
        for rule in &rules {
            check(rule, &mut problems);
            let (start, allows) = (patterns.fixed.len(), rule.effect == Effect::Allow);
            for pattern in &rule.when.paths {
                for glob in spellings(pattern) {
                    if let Err(error) = patterns.add(&glob, allows) {
                        let message = format!("the path `{pattern}` is no pattern: {}", error.kind());
                        problems.push(PolicyProblem::of(rule, message));
                    }
                }
            }
            let when = rule.when.clone();
            compiled.push(Compiled { when, allows, patterns: start..patterns.fixed.len() });
        }
        if !problems.is_empty() {
            return Err(PolicyProblems(problems));
        }
        let index = Index::of(&rules, &compiled, &patterns.fixed);
        Ok(PolicySet {
            lists,
            rules,
            compiled,
            patterns,
            index,
            grants: Arc::new(MemoryGrants::default()),
            shell: Shell::of_this_system(),
        })
    }

    /// This policy with these grants instead of those it had.
    pub fn with_grants(self, grants: Vec<Grant>) -> Self {
        self.with_grant_source(Arc::new(MemoryGrants::new(grants)))
    }

    /// This policy, with grants from this source.
    pub fn with_grant_source(mut self, grants: Arc<dyn GrantSource>) -> Self {
        self.grants = grants;
        self
    }

    /// This policy, for commands that another shell reads.
    pub fn for_shell(mut self, shell: Shell) -> Self {
        self.shell = shell;
        self
    }

    /// Lists and mode.
    pub fn lists(&self) -> &ListPolicy {
        &self.lists
    }

    /// The rules, as they were given.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Where its grants come from.
    pub fn grant_source(&self) -> &Arc<dyn GrantSource> {
        &self.grants
    }

    pub(super) fn fit(&self, rule: usize, looked: &Looked<'_>, step: &Step) -> Fit {
        self.compiled[rule].fit(looked, step, &self.patterns)
    }

    /// Whether a rule holds for a whole call: an allowance for everything that it does, any other rule for anything.
    pub(super) fn fit_whole(&self, rule: usize, looked: &Looked<'_>) -> Fit {
        let fits = || looked.steps().iter().map(|step| self.fit(rule, looked, step));
        let is = |wanted: fn(&Fit) -> bool| fits().find(wanted);
        let no = is(|fit| matches!(fit, Fit::No(_)));
        let unknown = is(|fit| matches!(fit, Fit::Unknown(_)));
        match self.compiled[rule].allows {
            true => no.or(unknown).unwrap_or(Fit::Yes),
            false => is(|fit| *fit == Fit::Yes).or(unknown).or(no).unwrap_or(Fit::Yes),
        }
    }

    /// The rule that decides among those that speak: the strictest, and of those the first in the file.
    fn strictest(&self, looked: &Looked<'_>, step: &Step, counts: impl Fn(&Rule) -> bool) -> Option<Speaks> {
        let mut strictest: Option<Speaks> = None;
        let is_harmless = matches!(step, Step::Part(Part::Harmless(_)));
        for rule in self.index.candidates(looked, step, &self.patterns) {
            if !counts(&self.rules[rule]) {
                continue;
            }
            let Some(speaks) = self.speaks(rule, self.fit(rule, looked, step)) else { continue };
            // Of two that ask, the one that no remembered answer settles: the other must not speak for it.
            let settled =
                |speaks: &Speaks| speaks.effect == Effect::Ask && may_be_remembered(&self.rules[speaks.rule]);
            // What is harmless is allowed by every rule that allows commands, so that one that confirms is enough.
            let is_weak = |speaks: &Speaks| {
                is_harmless && speaks.effect == Effect::Allow && !self.rules[speaks.rule].confirms
            };
            let is_stricter = strictest.as_ref().is_none_or(|before| {
                (speaks.effect, settled(before), is_weak(before), before.doubt.is_some(), before.rule)
                    > (before.effect, settled(&speaks), is_weak(&speaks), speaks.doubt.is_some(), speaks.rule)
            });
            if is_stricter {
                strictest = Some(speaks);
            }
        }
        strictest
    }

    /// What a rule does about a call that it fits so. A denial that is not certain asks. So does an allowance of
    /// commands where the command cannot be read; any other allowance that is not certain says nothing.
    pub(super) fn speaks(&self, rule: usize, fit: Fit) -> Option<Speaks> {
        let effect = self.rules[rule].effect;
        match fit {
            Fit::No(_) => None,
            Fit::Yes => Some(Speaks { rule, effect, doubt: None }),
            Fit::Unknown(doubt) => match effect {
                Effect::Ask | Effect::Deny => Some(Speaks { rule, effect: Effect::Ask, doubt: Some(doubt) }),
                Effect::Allow => match doubt {
                    Doubt::Command(_) | Doubt::Aside(_) | Doubt::BesideCommand => {
                        Some(Speaks { rule, effect: Effect::Ask, doubt: Some(doubt) })
                    }
                    Doubt::Undeclared
                    | Doubt::FolderAround
                    | Doubt::MayBeNamed
                    | Doubt::NoCommand
                    | Doubt::Argument => None,
                },
            },
        }
    }

    /// What grants say about a call, if one covers it. Where the tool wants this very call confirmed, only a grant for
    /// this very call is that confirmation; any other one leads to the question.
    fn granted(
        &self,
        subject: &Subject<'_>,
        grants: &dyn GrantSource,
    ) -> Result<Option<Verdict>, GuardError> {
        let grants = grants.grants(&subject.context.tenant)?;
        let mut covering = grants.iter().filter(|grant| grant.covers(subject, self.shell)).peekable();
        let Some(first) = covering.peek().copied() else { return Ok(None) };
        let enough = match subject.confirm {
            None => Some(first),
            Some(_) => covering.find(|grant| grant.covers.is_exact()),
        };
        Ok(Some(enough.map_or_else(
            || tool_asks(subject),
            |grant| Verdict::Allow { rule: format!("grant:{}", grant.id).into(), confirmed: true },
        )))
    }

    fn evaluate(&self, subject: &Subject<'_>, grants: &dyn GrantSource) -> Result<Verdict, GuardError> {
        let definition = subject.definition;
        if !self.lists.enabled {
            return Ok(Verdict::Deny {
                rule: "disabled".into(),
                reason: "Tool execution disabled by policy".into(),
            });
        }
        if let Some(reason) = self.lists.denied(definition) {
            return Ok(Verdict::Deny { rule: "denylist".into(), reason });
        }
        if self.rules.is_empty() {
            return self.unspoken(subject, grants);
        }
        let looked = Looked::new(subject, self.shell);
        let mut decided: Option<Verdict> = None;
        for step in looked.steps() {
            let verdict = self.step(&looked, step, grants)?;
            decided = Some(match decided {
                None => verdict,
                Some(before) => stricter(before, verdict),
            });
        }
        decided.map_or_else(|| self.unspoken(subject, grants), Ok)
    }

    /// What holds for one thing that a call does.
    fn step(
        &self,
        looked: &Looked<'_>,
        step: &Step,
        grants: &dyn GrantSource,
    ) -> Result<Verdict, GuardError> {
        let subject = looked.subject;
        let Some(speaks) = self.strictest(looked, step, |_| true) else {
            return Ok(told(self.unspoken(subject, grants)?, looked, step));
        };
        if speaks.effect == Effect::Ask && self.rules[speaks.rule].only_tightens {
            // Asking is less than refusing, and such a rule may not make it less.
            let without = match self.strictest(looked, step, |rule| !rule.only_tightens) {
                Some(other) => self.spoken(subject, &other, grants)?,
                None => self.unspoken(subject, grants)?,
            };
            if let Verdict::Deny { .. } = without {
                return Ok(without);
            }
        }
        self.spoken(subject, &speaks, grants)
    }

    /// What holds where no rule speaks. Grants are looked for only where they could change something: most calls run
    /// without.
    fn unspoken(&self, subject: &Subject<'_>, grants: &dyn GrantSource) -> Result<Verdict, GuardError> {
        match self.lists.by_mode(subject) {
            allowed @ Verdict::Allow { .. } => Ok(allowed),
            other => Ok(self.granted(subject, grants)?.unwrap_or(other)),
        }
    }

    /// What holds where that rule decides.
    fn spoken(
        &self,
        subject: &Subject<'_>,
        speaks: &Speaks,
        grants: &dyn GrantSource,
    ) -> Result<Verdict, GuardError> {
        let rule = &self.rules[speaks.rule];
        let name = || rule.name.clone().into();
        Ok(match speaks.effect {
            Effect::Deny => Verdict::Deny { rule: name(), reason: denial(rule, subject.definition) },
            Effect::Ask => {
                let answered = if may_be_remembered(rule) { self.granted(subject, grants)? } else { None };
                answered.unwrap_or_else(|| Verdict::Ask { rule: name(), reason: question(rule, speaks) })
            }
            Effect::Allow if is_satisfied(rule, subject) => {
                Verdict::Allow { rule: name(), confirmed: rule.confirms }
            }
            Effect::Allow => self.granted(subject, grants)?.unwrap_or_else(|| tool_asks(subject)),
        })
    }
}

/// The stricter of two; of two alike the first, which confirms only where both do.
fn stricter(first: Verdict, second: Verdict) -> Verdict {
    match (first, second) {
        (deny @ Verdict::Deny { .. }, _) | (_, deny @ Verdict::Deny { .. }) => deny,
        (ask @ Verdict::Ask { .. }, _) | (_, ask @ Verdict::Ask { .. }) => ask,
        (Verdict::Allow { rule, confirmed }, Verdict::Allow { confirmed: other, .. }) => {
            Verdict::Allow { rule, confirmed: confirmed && other }
        }
    }
}

/// A question about one command of several says which.
fn told(verdict: Verdict, looked: &Looked<'_>, step: &Step) -> Verdict {
    match (verdict, step) {
        (Verdict::Ask { rule, reason }, Step::Part(part @ Part::Command(_))) if looked.steps().len() > 1 => {
            let part = haft_core::text::one_line(&part.to_string(), 80);
            Verdict::Ask { rule, reason: format!("{reason}; no rule allows `{part}`") }
        }
        (verdict, _) => verdict,
    }
}

/// A question that a remembered answer settles: one that its rule says so of, or that is asked only because an
/// allowance could not read the command.
pub(super) fn may_be_remembered(rule: &Rule) -> bool {
    rule.remember || rule.effect == Effect::Allow
}

/// Whether an allowance is enough for the tool: one that always asks wants a confirmation, and a call that it wants
/// confirmed by itself is never allowed in general.
fn is_satisfied(rule: &Rule, subject: &Subject<'_>) -> bool {
    subject.confirm.is_none() && (rule.confirms || !subject.definition.requires_confirmation)
}

fn tool_asks(subject: &Subject<'_>) -> Verdict {
    let reason = subject.confirm.unwrap_or("this tool always asks").to_owned();
    Verdict::Ask { rule: "tool_requires_confirmation".into(), reason }
}

fn denial(rule: &Rule, definition: &ToolDefinition) -> String {
    let (tool, name) = (&definition.name, &rule.name);
    match &rule.reason {
        Some(reason) => format!(
            "This call of `{tool}` is denied by the rule `{name}`: {reason}. Do it in another way, or ask the person who \
             runs this to change the rule"
        ),
        None => format!(
            "This call of `{tool}` is denied by the rule `{name}`. Do it in another way, or ask the person who runs \
             this to change the rule"
        ),
    }
}

fn question(rule: &Rule, speaks: &Speaks) -> String {
    let name = &rule.name;
    match (speaks.doubt, &rule.reason) {
        (Some(doubt), _) => format!("the rule `{name}` may be about this call: {}", doubt.words()),
        (None, Some(reason)) => format!("the rule `{name}` asks: {reason}"),
        (None, None) => format!("the rule `{name}` asks"),
    }
}

impl Policy for PolicySet {
    fn is_enabled(&self) -> bool {
        self.lists.enabled
    }

    fn denies(
        &self,
        _context: &CallContext,
        definition: &ToolDefinition,
    ) -> Result<Option<String>, GuardError> {
        Ok(self.lists.denied(definition))
    }

    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError> {
        self.evaluate(subject, &*self.grants)
    }

    /// Each is tried out: what a rule asks about every time, or a tool about this very call, has no offer that would
    /// not help.
    fn offers(&self, subject: &Subject<'_>, summary: &str) -> Vec<GrantOffer> {
        let helps = |covers: &Covers| {
            let tenant = &*subject.context.tenant;
            let grant = Grant::new("offer", tenant, covers.clone(), Lasts::Always);
            let decided = self.evaluate(subject, &MemoryGrants::new([grant]));
            matches!(decided, Ok(Verdict::Allow { confirmed: true, .. }))
        };
        let suggested = Covers::suggestions(subject, summary, self.shell);
        suggested.into_iter().filter(helps).filter_map(|covers| covers.offer()).collect()
    }
}

impl ListPolicy {
    /// What decides where nothing else did: mode, the tool's own wish, allowlist, side effects.
    pub(super) fn by_mode(&self, subject: &Subject<'_>) -> Verdict {
        let definition = subject.definition;
        let name = &definition.name;
        let listed = self.allowlist.contains(name);
        if self.mode == ApprovalMode::Deny && !listed {
            let reason = format!(
                "`{name}` is not on the allowlist, and nothing else may run in deny mode. Use an allowed tool, or \
                 ask the person who runs this to add it to [tools.approval] allowlist"
            );
            return Verdict::Deny { rule: "mode_deny".into(), reason };
        }
        if definition.requires_confirmation || subject.confirm.is_some() {
            return tool_asks(subject);
        }
        if listed {
            return Verdict::Allow { rule: "allowlist".into(), confirmed: false };
        }
        match self.mode {
            ApprovalMode::Prompt if self.prompt_side_effects && definition.has_side_effects() => {
                Verdict::Ask {
                    rule: "prompt_side_effects".into(),
                    reason: "it has side effects, and policy asks about those".into(),
                }
            }
            ApprovalMode::Prompt | ApprovalMode::Auto | ApprovalMode::Deny => {
                Verdict::Allow { rule: "mode".into(), confirmed: false }
            }
        }
    }
}

/// Names that decisions have which are no rule's.
const RESERVED: &[&str] = &[
    "allowlist",
    "denylist",
    "disabled",
    "error",
    "mode",
    "mode_deny",
    "prompt_side_effects",
    "tool",
    "tool_requires_confirmation",
];

/// The most rules that a set has.
const MOST_RULES: usize = 10_000;

fn check(rule: &Rule, problems: &mut Vec<PolicyProblem>) {
    let mut problem = |message: &str| problems.push(PolicyProblem::of(rule, message.to_owned()));
    if rule.name.trim().is_empty() {
        problem("the rule has an empty name");
    }
    if RESERVED.contains(&rule.name.as_str()) || rule.name.starts_with("grant:") {
        problem("the name means something else in records; choose another");
    }
    if rule.only_tightens && rule.effect == Effect::Allow {
        problem("the rule allows something, and comes from where only tightening counts");
    }
    if rule.when.is_empty() {
        problem(
            "the rule has no condition, so it would be about every call; set [tools.approval] mode instead",
        );
    }
    if rule.confirms && (rule.effect != Effect::Allow || !rule.when.is_narrow()) {
        problem(
            "`confirms` is only for rules that allow, with a condition on path, command, host or argument",
        );
    }
    if rule.remember && rule.effect != Effect::Ask {
        problem("`remember` is only for rules that ask");
    }
    if rule.when.access.is_some() && rule.when.paths.is_empty() {
        problem("`access` is about paths, and the rule names none");
    }
    let names = [
        ("tool", &rule.when.tools),
        ("path", &rule.when.paths),
        ("host", &rule.when.hosts),
        ("agent", &rule.when.agents),
        ("tenant", &rule.when.tenants),
    ];
    if let Some((key, _)) = names.iter().find(|(_, names)| names.iter().any(|name| name.trim().is_empty())) {
        problem(&format!("a `{key}` is empty, so it would be about nothing"));
    }
    // A rule that denies what nothing is called would look like protection.
    if let Some(host) = rule.when.hosts.iter().find(|host| !is_host(host)) {
        problem(&format!(
            "`{host}` is no host; write only its name, such as `example.com`, `*.example.com` or `example.com:8080`"
        ));
    }
    if rule.when.commands.iter().any(Vec::is_empty) {
        problem("a command has no words");
    }
    if let Some(bad) = rule.when.arguments.iter().find(|argument| !argument.pointer.starts_with('/')) {
        problem(&format!("`{}` is no JSON pointer; write `/{0}`", bad.pointer));
    }
}

/// Whether a text can be a host, with or without a port: a name or an address, and wildcards.
fn is_host(text: &str) -> bool {
    let (name, port) = split_port(text);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.*?:[]".contains(&byte);
    let is_port = |port: &str| port == "*" || port.parse::<u16>().is_ok();
    !name.is_empty() && name.bytes().all(plain) && port.is_none_or(is_port)
}

/// A pattern for everything in a folder means the folder, too.
fn spellings(pattern: &str) -> impl Iterator<Item = String> + '_ {
    let folder = pattern.strip_suffix("/**").filter(|folder| !folder.is_empty() && *folder != "**");
    std::iter::once(pattern.to_owned()).chain(folder.map(str::to_owned))
}

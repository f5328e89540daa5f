//! Why a call was decided as it was, and what would change it.

use super::{
    Effect, PolicySet,
    conditions::{Fit, Looked},
    set::may_be_remembered,
};
use haft_core::port::{Policy, Subject, Verdict};
use serde::Serialize;
use std::fmt;

/// What a rule had to say about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum RuleOutcome {
    /// It holds for the call.
    Holds,
    /// It does not.
    DoesNot {
        /// Why the rule does not apply.
        why: String,
    },
    /// It cannot be known whether it does.
    Unclear {
        /// Why that cannot be known.
        why: String,
    },
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Considered {
    /// Its name: that of a rule, or `denylist`, `allowlist`, `grants`, `mode`, `tool`.
    pub name: String,
    /// What it would do.
    pub effect: String,
    /// The file that the rule is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where the rule stands in its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: RuleOutcome,
}

/// How a call was decided. Its display is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `allow`, `ask` or `deny`.
    pub effect: Effect,
    /// The rule that decided.
    pub rule: String,
    /// Why, where it was not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Everything that was looked at, in order.
    pub considered: Vec<Considered>,
    /// What would change the decision.
    pub would_change: Vec<String>,
}

impl PolicySet {
    /// Why a call is decided as it is: every rule, the one that decided, and what would change it.
    ///
    /// ```
    /// # use haft_core::{CallContext, Footprint, ToolDefinition, port::Subject};
    /// use haft_guard::policy::{ListPolicy, PolicySet};
    /// let policy = PolicySet::new(ListPolicy::default(), Vec::new())?;
    /// # let (context, definition) = (CallContext::new("t", "a"), ToolDefinition::new("send", "Sends"));
    /// # let (arguments, footprint) = (serde_json::Map::new(), Footprint::default());
    /// # let subject = Subject { context: &context, definition: &definition, arguments: &arguments,
    /// #     footprint: &footprint, folder: "", confirm: None, now: jiff::Timestamp::UNIX_EPOCH,
    /// #     accepts: haft_core::port::AcceptAnswers::from_any() };
    /// let explanation = policy.explain(&subject);
    /// assert_eq!(explanation.rule, "prompt_side_effects");
    /// # Ok::<(), haft_guard::policy::PolicyProblems>(())
    /// ```
    pub fn explain(&self, subject: &Subject<'_>) -> Explanation {
        let verdict = self
            .decide(subject)
            .unwrap_or_else(|error| Verdict::Deny { rule: "error".into(), reason: error.to_string() });
        let (effect, rule, reason) = match verdict {
            Verdict::Allow { rule, .. } => (Effect::Allow, rule, None),
            Verdict::Ask { rule, reason } => (Effect::Ask, rule, Some(reason)),
            Verdict::Deny { rule, reason } => (Effect::Deny, rule, Some(reason)),
        };
        let would_change = self.would_change(subject, effect, &rule);
        Explanation {
            effect,
            rule: rule.into_owned(),
            reason,
            considered: self.considered(subject),
            would_change,
        }
    }

    /// What a rule has to say about a call in which several commands are decided one by one.
    fn fit_any(&self, rule: usize, looked: &Looked<'_>) -> Fit {
        let fits = || looked.steps().iter().map(|step| self.fit(rule, looked, step));
        let unknown = fits().find(|fit| matches!(fit, Fit::Unknown(_)));
        let holds = fits().find(|fit| *fit == Fit::Yes);
        match self.compiled[rule].allows {
            true => unknown.or(holds),
            false => holds.or(unknown),
        }
        .unwrap_or_else(|| self.fit_whole(rule, looked))
    }

    fn considered(&self, subject: &Subject<'_>) -> Vec<Considered> {
        let definition = subject.definition;
        let looked = Looked::new(subject, self.shell);
        let holds = |holds: bool, why: &str| match holds {
            true => RuleOutcome::Holds,
            false => RuleOutcome::DoesNot { why: why.to_owned() },
        };
        let fixed = |name: &str, effect: &str, outcome| Considered {
            name: name.to_owned(),
            effect: effect.to_owned(),
            file: None,
            line: None,
            outcome,
        };
        let denied = self.lists.denied(definition).is_some();
        let mut all = vec![fixed("denylist", "deny", holds(denied, "the tool is not on it"))];
        all.extend(self.rules.iter().enumerate().map(|(index, rule)| Considered {
            name: rule.name.clone(),
            effect: rule.effect.to_string(),
            file: rule.file.clone(),
            line: rule.line,
            outcome: match self.fit_any(index, &looked) {
                Fit::Yes => RuleOutcome::Holds,
                Fit::No(miss) => RuleOutcome::DoesNot { why: miss.words().to_owned() },
                Fit::Unknown(doubt) => RuleOutcome::Unclear { why: doubt.words() },
            },
        }));
        // Where they cannot be read, the decision above says so.
        let grants = self.grants.grants(&subject.context.tenant).unwrap_or_default();
        all.extend(grants.iter().map(|grant| {
            let outcome = match grant.why_not(subject, self.shell) {
                None => RuleOutcome::Holds,
                Some(why) => RuleOutcome::DoesNot { why: why.to_owned() },
            };
            fixed(&format!("grant:{}", grant.id), "allow", outcome)
        }));
        let asks = definition.requires_confirmation || subject.confirm.is_some();
        all.push(fixed("tool", "ask", holds(asks, "the tool does not always ask")));
        let listed = self.lists.allowlist.contains(&definition.name);
        all.push(fixed("allowlist", "allow", holds(listed, "the tool is not on it")));
        let mode = format!("{:?}", self.lists.mode).to_lowercase();
        all.push(fixed("mode", &mode, RuleOutcome::Holds));
        all
    }

    fn would_change(&self, subject: &Subject<'_>, effect: Effect, decided: &str) -> Vec<String> {
        let name = &subject.definition.name;
        let rule = self.rules.iter().find(|rule| rule.name == decided);
        let place = |rule: &super::Rule| match rule.place() {
            place if place.is_empty() => place,
            place => format!(" ({place})"),
        };
        let mut ways = Vec::new();
        match (effect, rule) {
            (Effect::Deny, Some(rule)) => {
                ways.push(format!("change or remove the rule `{decided}`{}", place(rule)));
            }
            (Effect::Ask, Some(rule)) => {
                ways.push(format!("change or remove the rule `{decided}`{}", place(rule)));
                match may_be_remembered(rule) {
                    true => ways.push("a grant that covers this call".to_owned()),
                    false => {
                        ways.push(format!("`remember = true` in the rule `{decided}`, and then a grant"))
                    }
                }
            }
            (Effect::Deny, None) => match decided {
                "denylist" => ways.push(format!("take `{name}` off [tools.approval] denylist")),
                "disabled" => ways.push("set [tools.approval] enabled = true".to_owned()),
                "error" => ways.push("repair what could not be checked".to_owned()),
                _ => ways.push(format!("put `{name}` on [tools.approval] allowlist, or set another mode")),
            },
            (Effect::Ask, None) => {
                ways.push("a grant that covers this call".to_owned());
                if decided == "tool_requires_confirmation" {
                    ways.push(
                        "a rule that allows it with `confirms = true`; the allowlist is not enough"
                            .to_owned(),
                    );
                } else {
                    ways.push(format!("put `{name}` on [tools.approval] allowlist"));
                    ways.push("a rule that allows it".to_owned());
                }
            }
            (Effect::Allow, _) => {
                ways.push("a rule that asks or denies".to_owned());
                ways.push(format!("put `{name}` on [tools.approval] denylist"));
                if let Some(id) = decided.strip_prefix("grant:") {
                    ways.push(format!("revoke the grant {id}"));
                }
            }
        }
        ways
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, by `{}`", self.effect, self.rule)?;
        if let Some(reason) = &self.reason {
            writeln!(f, "  why: {reason}")?;
        }
        writeln!(f, "looked at:")?;
        for Considered { name, effect, file, line, outcome } in &self.considered {
            let mark = if *name == self.rule { ">" } else { " " };
            write!(f, "{mark} {name} ({effect}")?;
            match (file, line) {
                (Some(file), Some(line)) => write!(f, ", {file} line {line}")?,
                (None, Some(line)) => write!(f, ", line {line}")?,
                (Some(file), None) => write!(f, ", {file}")?,
                (None, None) => {}
            }
            match outcome {
                RuleOutcome::Holds => writeln!(f, "): holds")?,
                RuleOutcome::DoesNot { why } => writeln!(f, "): does not, {why}")?,
                RuleOutcome::Unclear { why } => writeln!(f, "): unclear, {why}")?,
            }
        }
        writeln!(f, "what would change it:")?;
        self.would_change.iter().try_for_each(|way| writeln!(f, "  {way}"))
    }
}

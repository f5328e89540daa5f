//! One rule.

use super::Conditions;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a rule does, from lenient to strict.
///
/// ```
/// use haft_guard::policy::Effect;
/// assert!(Effect::Deny > Effect::Ask && Effect::Ask > Effect::Allow);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Run without asking.
    Allow,
    /// Ask a person.
    Ask,
    /// Do not run.
    Deny,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::Allow => "allow",
            Effect::Ask => "ask",
            Effect::Deny => "deny",
        })
    }
}

/// One rule: for which calls, and what then.
///
/// ```
/// use haft_guard::policy::{Conditions, Effect, Rule};
/// let rule = Rule::new("no pushes", Effect::Deny, Conditions {
///     commands: vec![vec!["git".into(), "push".into()]],
///     ..Conditions::default()
/// });
/// assert_eq!(rule.line, None, "it is from no file");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// By which it is known in explanations and records.
    pub name: String,
    /// What it does.
    pub effect: Effect,
    /// For which calls.
    pub when: Conditions,
    /// Why, in words for whoever is asked or refused.
    pub reason: Option<String>,
    /// An allowance that counts as a person's confirmation, so that tools which always ask run, too. Only with a
    /// condition on commands, paths, hosts or arguments.
    pub confirms: bool,
    /// A question that need not be asked again once a person's answer was remembered. Without it, a rule that asks
    /// asks every time.
    pub remember: bool,
    /// Where it stands in its file.
    pub line: Option<usize>,
}

impl Rule {
    /// A rule with these conditions.
    pub fn new(name: impl Into<String>, effect: Effect, when: Conditions) -> Self {
        Rule { name: name.into(), effect, when, reason: None, confirms: false, remember: false, line: None }
    }
}

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

/// How many examples a rule carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExampleCount {
    /// Calls that it holds for.
    pub matching: usize,
    /// Calls that it does not hold for.
    pub not_matching: usize,
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
    /// Why, in words for the person who is asked or the caller who is refused.
    pub reason: Option<String>,
    /// An allowance that counts as a person's confirmation, so that tools which always ask run, too. Only with a
    /// condition on commands, paths, hosts or arguments.
    pub confirms: bool,
    /// A question that need not be asked again once a person's answer was remembered. Without it, a rule that asks
    /// asks every time.
    pub remember: bool,
    /// The file that it is from, as a person finds it.
    pub file: Option<String>,
    /// Where it stands in its file.
    pub line: Option<usize>,
    /// How many examples it carries. All of them hold.
    pub examples: ExampleCount,
    /// It comes from somewhere that may only tighten, such as a folder that nobody trusts: where a call would be
    /// refused without the rule, it is refused with it, too.
    pub only_tightens: bool,
}

impl Rule {
    /// A rule with these conditions.
    pub fn new(name: impl Into<String>, effect: Effect, when: Conditions) -> Self {
        Rule {
            name: name.into(),
            effect,
            when,
            reason: None,
            confirms: false,
            remember: false,
            file: None,
            line: None,
            examples: ExampleCount::default(),
            only_tightens: false,
        }
    }

    /// Where it stands, for people: `haft.toml line 9`; empty where nobody knows.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file} line {line}"),
            (Some(file), None) => file.clone(),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => String::new(),
        }
    }
}

/// As it is written: by the keys of a file, without those that say nothing.
impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let when = &self.when;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("effect", &self.effect)?;
        if let Some(reason) = &self.reason {
            map.serialize_entry("reason", reason)?;
        }
        let texts = [
            ("tool", &when.tools),
            ("path", &when.paths),
            ("host", &when.hosts),
            ("agent", &when.agents),
            ("tenant", &when.tenants),
        ];
        for (key, list) in texts.into_iter().filter(|(_, list)| !list.is_empty()) {
            map.serialize_entry(key, list)?;
        }
        if !when.categories.is_empty() {
            map.serialize_entry("category", &when.categories)?;
        }
        if !when.risks.is_empty() {
            map.serialize_entry("risk", &when.risks)?;
        }
        if let Some(access) = when.access {
            map.serialize_entry("access", &access)?;
        }
        if !when.commands.is_empty() {
            let commands: Vec<String> =
                when.commands.iter().map(|words| crate::command::joined(words)).collect();
            map.serialize_entry("command", &commands)?;
        }
        if !when.arguments.is_empty() {
            let arguments: std::collections::BTreeMap<_, _> =
                when.arguments.iter().map(|argument| (&argument.pointer, &argument.pattern)).collect();
            map.serialize_entry("argument", &arguments)?;
        }
        for (key, _) in
            [("confirms", self.confirms), ("remember", self.remember)].iter().filter(|(_, on)| *on)
        {
            map.serialize_entry(key, &true)?;
        }
        map.end()
    }
}

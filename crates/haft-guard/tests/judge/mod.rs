//! Decides about lines of shell with a rule that allows some programs.

use haft_core::{
    CallContext, Category, Footprint, Tier, ToolDefinition,
    port::{Policy, Subject, Verdict},
};
use haft_guard::{
    ListPolicy, PolicySet,
    command::{Shell, line},
    policy::read_rules,
};
use serde_json::json;

/// A policy and the call that it is asked about.
pub(crate) struct Judge {
    policy: PolicySet,
    context: CallContext,
    definition: ToolDefinition,
}

const NAMES: [&str; 3] = ["allow", "ask", "deny"];

impl Judge {
    /// Allows the programs of a TOML list, and denies `rm`.
    pub(crate) fn allowing(programs: &str) -> Self {
        let rules = format!(
            "[[rules]]\nname = 'tools'\neffect = 'allow'\nconfirms = true\ncommand = [{programs}]\n\
             [[rules]]\nname = 'never'\neffect = 'deny'\ncommand = ['rm']\n"
        );
        let lists = ListPolicy { denylist: [].into(), ..ListPolicy::default() };
        let policy = PolicySet::new(lists, read_rules(&rules, "/work").unwrap()).unwrap();
        let mut definition = ToolDefinition::new("run_command", "Runs a command");
        definition.category = Category::CodeExecution;
        definition.requires_confirmation = true;
        let context = CallContext { tier: Tier::Enterprise, ..CallContext::new("acme", "did:agent:7") };
        Judge { policy: policy.for_shell(Shell::Posix), context, definition }
    }

    /// 0 runs, 1 asks, 2 is denied.
    pub(crate) fn strictness(&self, text: &str) -> u8 {
        let arguments = json!({"command": text});
        let subject = Subject {
            context: &self.context,
            definition: &self.definition,
            arguments: arguments.as_object().unwrap(),
            footprint: &Footprint::undeclared(true),
            folder: "/w",
            confirm: None,
            accepts: haft_core::port::AcceptAnswers::from_any(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        match self.policy.decide(&subject).unwrap() {
            Verdict::Allow { .. } => 0,
            Verdict::Ask { .. } => 1,
            Verdict::Deny { .. } => 2,
        }
    }
}

/// Fails with every line of a table that is decided otherwise.
pub(crate) fn holds(judge: &Judge, table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let found = NAMES[usize::from(judge.strictness(text))];
            (found != *expected)
                .then(|| format!("{text:?}: {found}, not {expected}: {:?}", line(text, Shell::Posix)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

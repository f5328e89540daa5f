//! Policy by lists and mode.

use haft_core::{
    ApprovalMode, CallContext, ToolDefinition,
    port::{GuardError, Policy, Subject, Verdict},
};
use std::collections::BTreeSet;

/// What runs, what is asked, what is denied: by two lists of canonical names, a mode, and whether side effects are
/// asked about.
///
/// In this order: switched off, denied by list, denied by mode, a tool that always asks, side effects in prompt
/// mode, else allowed. The allowlist never overrides a tool that always asks; nothing overrides the denylist.
///
/// ```
/// use haft_guard::ListPolicy;
/// let policy = ListPolicy::default();
/// assert!(policy.denylist.contains("run_command"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPolicy {
    /// Whether anything may run at all.
    pub enabled: bool,
    /// What happens to calls that no list speaks about.
    pub mode: ApprovalMode,
    /// Tools that policy does not ask about.
    pub allowlist: BTreeSet<String>,
    /// Tools that never run.
    pub denylist: BTreeSet<String>,
    /// Whether tools with side effects are asked about in prompt mode.
    pub prompt_side_effects: bool,
}

impl Default for ListPolicy {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        ListPolicy {
            enabled: true,
            mode: ApprovalMode::Prompt,
            allowlist: names(&["glob", "list_directory", "read_file", "search_files"]),
            denylist: names(&["execute_code", "run_command", "start_command"]),
            prompt_side_effects: true,
        }
    }
}

/// What is to be other than the defaults. What is absent stays as it is, and never becomes empty by not being
/// mentioned.
///
/// ```
/// use haft_guard::policy::{ListChanges, ListPolicy};
/// let changes = ListChanges { denylist: Some(vec!["deploy".into()]), ..ListChanges::default() };
/// let policy = ListPolicy::default().with(changes);
/// assert!(policy.denylist.contains("deploy") && policy.denylist.contains("run_command"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// Whether anything may run at all.
    pub enabled: Option<bool>,
    /// What happens to calls that no list speaks about.
    pub mode: Option<ApprovalMode>,
    /// Added to the allowlist.
    pub allowlist: Option<Vec<String>>,
    /// Added to the denylist.
    pub denylist: Option<Vec<String>>,
    /// Taken off the denylist, by name: the only way to have less on it.
    pub no_longer_denied: Vec<String>,
    /// Whether tools with side effects are asked about in prompt mode.
    pub prompt_side_effects: Option<bool>,
}

impl ListPolicy {
    /// The lists with these changes.
    pub fn with(mut self, changes: ListChanges) -> Self {
        self.enabled = changes.enabled.unwrap_or(self.enabled);
        self.mode = changes.mode.unwrap_or(self.mode);
        self.prompt_side_effects = changes.prompt_side_effects.unwrap_or(self.prompt_side_effects);
        self.allowlist.extend(changes.allowlist.into_iter().flatten());
        self.denylist.retain(|name| !changes.no_longer_denied.contains(name));
        self.denylist.extend(changes.denylist.into_iter().flatten());
        self
    }

    /// Why a tool is denied by its names alone, where it is.
    pub(super) fn denied(&self, definition: &ToolDefinition) -> Option<String> {
        let name = &definition.name;
        // An alias on the denylist means the tool behind it. The allowlist goes by canonical names alone: a tool
        // must not be let through because of what it calls itself besides.
        let is_denied =
            |known: &String| self.denylist.iter().any(|denied| denied.eq_ignore_ascii_case(known));
        let denied = is_denied(name) || definition.aliases.iter().any(is_denied);
        denied.then(|| {
            if COMMAND_TOOLS.contains(&name.as_str()) {
                return format!(
                    "`{name}` is on the denylist, so it was not run. Use another tool, or ask the person who runs this \
                     to choose a profile that allows commands: `haft policy use careful` or `haft policy use coding`"
                );
            }
            format!(
                "`{name}` is on the denylist, so it was not run. Use another tool, or ask the person who runs this \
                 to remove it from [tools.approval] denylist"
            )
        })
    }
}

/// Tools that run commands: what holds until a profile is chosen denies them.
const COMMAND_TOOLS: &[&str] = &["run_command", "start_command", "execute_code"];

impl Policy for ListPolicy {
    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn denies(
        &self,
        _context: &CallContext,
        definition: &ToolDefinition,
    ) -> Result<Option<String>, GuardError> {
        Ok(self.denied(definition))
    }

    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError> {
        Ok(match self.denied(subject.definition) {
            Some(reason) => Verdict::Deny { rule: "denylist".into(), reason },
            None => self.by_mode(subject),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Footprint;
    use serde_json::Map;

    fn verdict(policy: &ListPolicy, definition: &ToolDefinition) -> &'static str {
        let footprint = Footprint::default();
        let context = CallContext::new("t", "a");
        let subject = Subject {
            context: &context,
            definition,
            arguments: &Map::new(),
            footprint: &footprint,
            folder: "/w",
            confirm: None,
            accepts: haft_core::port::AcceptAnswers::from_any(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        match policy.decide(&subject).unwrap() {
            Verdict::Allow { .. } => "allow",
            Verdict::Ask { .. } => "ask",
            Verdict::Deny { .. } => "deny",
        }
    }

    #[test]
    fn a_denied_alias_denies_the_tool_and_an_allowed_one_does_not_allow_it() {
        let mut definition = ToolDefinition::new("run_shell", "Runs");
        definition.aliases = vec!["Bash".into()];
        let named = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<BTreeSet<String>>();
        let denying = ListPolicy { denylist: named(&["bash"]), ..ListPolicy::default() };
        assert_eq!(verdict(&denying, &definition), "deny");
        let allowing = ListPolicy { allowlist: named(&["Bash"]), ..ListPolicy::default() };
        assert_eq!(verdict(&allowing, &definition), "ask");
    }

    /// Every combination of mode, lists, side effects, the tool's own wish and prompting: 3 × 4 × 2 × 2 × 2.
    #[test]
    fn precedence_in_every_combination() {
        let mut seen = 0;
        for mode in [ApprovalMode::Auto, ApprovalMode::Prompt, ApprovalMode::Deny] {
            for (allowed, denied) in [(false, false), (true, false), (false, true), (true, true)] {
                for effects in [false, true] {
                    for asks in [false, true] {
                        for prompt in [false, true] {
                            let mut policy =
                                ListPolicy { mode, prompt_side_effects: prompt, ..Default::default() };
                            let mut definition = ToolDefinition::new("tool", "A tool");
                            definition.constraints.allow_side_effects = effects;
                            definition.requires_confirmation = asks;
                            if allowed {
                                policy.allowlist.insert("tool".into());
                            }
                            if denied {
                                policy.denylist.insert("tool".into());
                            }
                            let expected = if denied || (mode == ApprovalMode::Deny && !allowed) {
                                "deny"
                            } else if asks || (mode == ApprovalMode::Prompt && prompt && effects && !allowed)
                            {
                                "ask"
                            } else {
                                "allow"
                            };
                            assert_eq!(verdict(&policy, &definition), expected, "{policy:?} {definition:?}");
                            seen += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(seen, 96);
    }
}

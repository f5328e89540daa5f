//! What becomes of a change set. Pure: everything that was found out comes in.

use crate::pipeline::{plan::is_general, types::RunOutcome};
use haft_core::{
    AskCommands, Category, ErrorCode, Footprint, Resource, ToolDefinition, ToolError,
    port::{FoundChanges, Verdict},
};
use std::sync::OnceLock;

/// What is to be done with a change set.
#[derive(Debug, PartialEq)]
pub(super) enum Settling {
    /// There is nothing in it.
    Nothing,
    /// It is applied; somebody may have agreed to what is asked about.
    Apply { approved: bool },
    /// Somebody is asked, for that reason.
    Ask(String),
    /// It is kept.
    Keep(ToolError),
    /// It is thrown away.
    Discard(ToolError),
}

/// What policy decides about where a command changed files: rules and lists name it as they name tools.
pub(super) fn changes_definition() -> &'static ToolDefinition {
    static DEFINITION: OnceLock<ToolDefinition> = OnceLock::new();
    DEFINITION.get_or_init(|| {
        let mut definition = ToolDefinition::new("apply_changes", "Apply what a command changed");
        definition.category = Category::FileSystem;
        definition
    })
}

/// The paths that a change set touches. Where there are too many to name, it may touch anything.
pub(super) fn touched(found: &FoundChanges) -> Footprint {
    match &found.paths {
        Some(paths) => Footprint::writes(paths.iter().map(Resource::path)),
        None => Footprint::writes([Resource::Anything]),
    }
}

/// Whether a call was stopped, whatever its program made of that.
pub(super) fn was_stopped(outcome: &RunOutcome) -> bool {
    match outcome {
        RunOutcome::Returned(_) => false,
        RunOutcome::Replay(_) | RunOutcome::HandedOver => true,
        RunOutcome::Error(error) => matches!(
            error.code,
            ErrorCode::Timeout
                | ErrorCode::Cancelled
                | ErrorCode::ShuttingDown
                | ErrorCode::Panicked
                | ErrorCode::ResourceLimitExceeded
                | ErrorCode::SandboxCrashed
        ),
    }
}

/// The first of some, in words.
pub(super) fn some_of(all: &[String]) -> String {
    const NAMED: usize = 5;
    let mut seen = std::collections::BTreeSet::new();
    // One change may be found twice: a file that is put in the place of another.
    let all: Vec<&String> = all.iter().filter(|one| seen.insert(*one)).collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", all.into_iter().take(NAMED).cloned().collect::<Vec<_>>().join("; "))
}

/// Decides. `confirm` is what needs an approval of its own, `verdict` what policy says to a change of these files.
pub(super) fn decide(
    ask: AskCommands,
    found: &FoundChanges,
    confirm: Option<String>,
    verdict: Result<Verdict, ToolError>,
) -> Settling {
    let refused = |code, all: &[String]| {
        let text = format!("The command ran, and nothing of what it changed was applied: {}", some_of(all));
        Settling::Keep(ToolError::new(code, text))
    };
    if !found.violations.is_empty() {
        return refused(ErrorCode::FilesystemPolicyViolation, &found.violations);
    }
    if found.summary.is_empty() {
        return Settling::Nothing;
    }
    if !found.conflicts.is_empty() {
        return refused(ErrorCode::StaleFile, &found.conflicts);
    }
    // The command as such was decided about before it ran: what no rule speaks about was part of that.
    let is_decided = |rule: &str| {
        ask != AskCommands::Effects && confirm.is_none() && (is_general(rule) || rule == "mode_deny")
    };
    match verdict {
        Err(error) => Settling::Keep(error),
        Ok(Verdict::Allow { confirmed, .. }) if confirm.is_none() || confirmed => {
            Settling::Apply { approved: confirmed }
        }
        Ok(Verdict::Deny { rule, .. } | Verdict::Ask { rule, .. }) if is_decided(&rule) => {
            Settling::Apply { approved: false }
        }
        Ok(Verdict::Deny { reason, .. }) => {
            let text = format!("The command ran, and nothing of what it changed was applied: {reason}");
            Settling::Discard(ToolError::new(ErrorCode::ToolDenied, text))
        }
        Ok(Verdict::Ask { reason, .. }) => asks(ask, confirm.unwrap_or(reason)),
        Ok(Verdict::Allow { .. }) => asks(ask, confirm.unwrap_or_default()),
    }
}

fn asks(ask: AskCommands, reason: String) -> Settling {
    match ask {
        AskCommands::Before | AskCommands::Effects => Settling::Ask(reason),
        AskCommands::Never => {
            let text = format!("The command ran, and what it changed needs an approval: {reason}");
            Settling::Keep(ToolError::new(ErrorCode::ConfirmationRequired, text))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use haft_core::ChangeSummary;

    fn found() -> FoundChanges {
        let summary = ChangeSummary { created: 1, ..ChangeSummary::default() };
        FoundChanges { summary, paths: Some(vec!["/w/a".into()]), ..FoundChanges::default() }
    }

    fn allow(confirmed: bool) -> Result<Verdict, ToolError> {
        Ok(Verdict::Allow { rule: "allowlist".into(), confirmed })
    }

    fn asked(rule: &'static str) -> Result<Verdict, ToolError> {
        Ok(Verdict::Ask { rule: rule.into(), reason: "why".into() })
    }

    fn denied(rule: &'static str) -> Result<Verdict, ToolError> {
        Ok(Verdict::Deny { rule: rule.into(), reason: "no".into() })
    }

    fn name(settling: &Settling) -> &'static str {
        match settling {
            Settling::Nothing => "nothing",
            Settling::Apply { approved: false } => "apply",
            Settling::Apply { approved: true } => "apply approved",
            Settling::Ask(_) => "ask",
            Settling::Keep(_) => "keep",
            Settling::Discard(_) => "discard",
        }
    }

    #[test]
    fn what_becomes_of_a_change_set_is_a_table() {
        use AskCommands::{Before, Effects, Never};
        let protected = || Some("/w/.git/hooks/x is protected".to_owned());
        type Case = (Option<String>, Result<Verdict, ToolError>, [&'static str; 3]);
        let cases: [Case; 8] = [
            (None, allow(false), ["apply", "apply", "apply"]),
            (None, asked("prompt_side_effects"), ["apply", "ask", "apply"]),
            (None, asked("my rule"), ["ask", "ask", "keep"]),
            (None, denied("my rule"), ["discard", "discard", "discard"]),
            (None, denied("mode_deny"), ["apply", "discard", "apply"]),
            (protected(), asked("tool_requires_confirmation"), ["ask", "ask", "keep"]),
            (protected(), allow(true), ["apply approved", "apply approved", "apply approved"]),
            (protected(), allow(false), ["ask", "ask", "keep"]),
        ];
        for (confirm, verdict, expected) in cases {
            for (ask, expected) in [Before, Effects, Never].into_iter().zip(expected) {
                let decided = decide(ask, &found(), confirm.clone(), verdict.clone());
                assert_eq!(name(&decided), expected, "{ask:?} {confirm:?} {verdict:?}");
            }
        }
    }

    #[test]
    fn nothing_makes_up_for_a_violation_or_a_conflict() {
        for ask in [AskCommands::Before, AskCommands::Effects, AskCommands::Never] {
            let violation =
                FoundChanges { violations: vec!["a is a device".into()], ..FoundChanges::default() };
            let conflict = FoundChanges { conflicts: vec!["a: changed".into()], ..found() };
            for (found, code) in
                [(violation, ErrorCode::FilesystemPolicyViolation), (conflict, ErrorCode::StaleFile)]
            {
                match decide(ask, &found, None, allow(true)) {
                    Settling::Keep(error) => assert_eq!(error.code, code),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(name(&decide(ask, &FoundChanges::default(), None, allow(false))), "nothing");
            let broken = Err(ErrorCode::ToolDenied.into());
            assert_eq!(name(&decide(ask, &found(), None, broken)), "keep", "a guard that errors");
        }
    }
}

//! Decides about a call once more, right before each attempt at it.
//!
//! Between its plan and its run a call may have waited for a person, for other calls of its batch, for a slot or for
//! its next attempt, and one of those calls may have changed where a path leads. What is decided here is what the
//! attempt is then held to ([`Attempt`](super::types::Attempt)): a path that is swapped still later leads to a refusal.

use super::{
    plan::{confirm_reason, decide, denied, disabled, listed, resolved, when_asked},
    types::{Ready, containment},
};
use crate::{panic_guard::guarded, ports::Ports};
use haft_core::{ErrorCode, Footprint, Resource, ToolError, port::Verdict};

/// Whether what a call touches has no name that could stand for something else by now.
fn leads_nowhere_else(footprint: &Footprint, has_side_effects: bool) -> bool {
    let mut touched = footprint.reads.iter().chain(&footprint.writes);
    match has_side_effects {
        true => touched.next().is_none(),
        false => touched.all(|resource| *resource == Resource::Anything),
    }
}

/// Whether the call may still run as it was decided. Where it may, its footprint is what it would touch now.
pub(crate) fn recheck(ports: &Ports, ready: &mut Ready) -> Result<(), ToolError> {
    let (call, facts) = ready.call.parts();
    let (is_approved, is_first) = (facts.approval.is_some(), facts.attempts == 0);
    let has_waited = facts.scheduling.is_some() || !facts.waited.is_zero();
    let was_planned_just_now = is_first && !is_approved && call.batch.is_none() && !has_waited;
    if was_planned_just_now && leads_nowhere_else(&ready.footprint, ready.has_side_effects) {
        return Ok(());
    }
    let Some(registered) = call.registered.get() else { return Err(ErrorCode::ExecutionFailed.into()) };
    // As it is set up by now.
    let now = ports.registry.lookup(&registered.name).filter(|now| now.is_same_tool(registered));
    let registered = now.as_ref().unwrap_or(registered);
    let definition = &registered.definition;
    let (footprint, confirm) = guarded(|| {
        let prepared = ready.prepared.get();
        Ok(prepared.map(|prepared| (prepared.footprint(), prepared.confirm())).unwrap_or_default())
    })?;
    let workspace = &*call.reach().workspace;
    let footprint = resolved(workspace, footprint, &call.context.tenant)?;
    // A path that leads elsewhere may lead to a protected name now.
    let confirm = confirm_reason(workspace, registered, confirm, &footprint)?;
    // What was approved is what runs: paths lead where they led when a person was asked.
    if is_approved && footprint != ready.footprint {
        let text =
            "A path of this call leads elsewhere than when it was approved, so it was not run. Send it again";
        return Err(ToolError::new(ErrorCode::ApprovalExpired, text));
    }
    if !ports.policy.is_enabled() {
        return Err(ErrorCode::ToolDisabled.into());
    }
    if !registered.is_enabled() {
        return Err(disabled(registered));
    }
    listed(ports, call, facts, definition)?;
    if let Some(parent) = &call.context.parent {
        containment::within(&footprint, parent)?;
    }
    let verdict = decide(ports, call, definition, (&ready.arguments, &footprint), confirm.as_deref())?;
    let stages = guarded(|| Ok(ready.prepared.get().is_some_and(|prepared| prepared.stages())))?;
    let (rule, reason) =
        match when_asked(ports, call, definition, ready.containment.is_staged, stages, verdict) {
            Verdict::Deny { rule, reason } => return Err(denied(facts, rule, reason)),
            Verdict::Ask { rule, reason } => (rule, Some(reason)),
            Verdict::Allow { rule, confirmed } => (rule, confirm.filter(|_| !confirmed)),
        };
    if let (Some(reason), false) = (reason, is_approved) {
        let text = format!(
            "A person would have to approve this call now ({reason}), and did not when it was planned: a path leads \
             elsewhere since, or the rules changed. Nothing was run. Send it again"
        );
        return Err(ToolError::new(ErrorCode::ConfirmationRequired, text));
    }
    facts.rule = Some(rule);
    ready.footprint = footprint;
    Ok(())
}

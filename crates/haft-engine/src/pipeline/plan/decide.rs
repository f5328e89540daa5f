//! What policy is asked about a call, when it is planned and again right before each attempt at it.

use crate::{
    panic_guard::guarded,
    pipeline::types::{CallState, Facts, containment},
    ports::Ports,
    registry::Registered,
};
use haft_core::{
    Category, ErrorCode, Footprint, Resource, ToolDefinition, ToolError,
    port::{GuardError, RuleName, Subject, Verdict},
};
use haft_sdk::{
    Args,
    capability::Workspace,
    files::{Access, Scope},
};

/// Refuses a tool that is on the denylist.
pub(crate) fn listed(
    ports: &Ports,
    call: &CallState,
    facts: &mut Facts,
    definition: &ToolDefinition,
) -> Result<(), ToolError> {
    let listed = guarded(|| ports.policy.denies(&call.context, definition).map_err(guard_failed));
    match listed.map_err(guard_panicked)? {
        Some(reason) => Err(denied(facts, "denylist".into(), reason)),
        None => Ok(()),
    }
}

/// What policy says to a call that touches this.
pub(crate) fn decide(
    ports: &Ports,
    call: &CallState,
    definition: &ToolDefinition,
    (arguments, footprint): (&Args, &Footprint),
    confirm: Option<&str>,
) -> Result<Verdict, ToolError> {
    let subject = Subject {
        context: &call.context,
        definition,
        arguments: &arguments.value,
        footprint,
        folder: &containment::folder(call),
        confirm,
        accepts: &ports.settings.accept_answers,
        now: ports.clock.now(),
    };
    guarded(|| ports.policy.decide(&subject).map_err(guard_failed)).map_err(guard_panicked)
}

/// The footprint with every path as the path jail resolves it; one that leads out is refused. What a call of that
/// tenant changed, to be undone, becomes its paths.
pub(crate) fn resolved(
    workspace: &dyn Workspace,
    mut footprint: Footprint,
    tenant: &str,
) -> Result<Footprint, ToolError> {
    let sides = [(&mut footprint.reads, Access::Read), (&mut footprint.writes, Access::Write)];
    for (resources, access) in sides {
        for resource in resources {
            if let Resource::Path(path) = resource {
                *path = workspace.locate(path, access)?.path;
            }
        }
    }
    if footprint.writes.iter().any(|resource| resource.as_changes_of().is_some()) {
        footprint.writes = undone(workspace, footprint.writes, tenant)?;
    }
    Ok(footprint)
}

/// The paths that undoing changes, in the place of the call that changed them: they were resolved then.
#[cold]
fn undone(
    workspace: &dyn Workspace,
    writes: Vec<Resource>,
    tenant: &str,
) -> Result<Vec<Resource>, ToolError> {
    let mut all = Vec::with_capacity(writes.len());
    for resource in writes {
        let Some(of) = resource.as_changes_of() else {
            all.push(resource);
            continue;
        };
        match workspace.changed_by(of, tenant)? {
            Some(paths) => all.extend(paths.into_iter().map(Resource::Path)),
            None => all.push(Resource::Anything),
        }
    }
    Ok(all)
}

/// Why this very call has to be confirmed: its tool says so, or it changes a file that runs programs later. Only for
/// haft's own code: what a jailed program changes is held by its jail.
pub(crate) fn confirm_reason(
    workspace: &dyn Workspace,
    registered: &Registered,
    of_tool: Option<String>,
    footprint: &Footprint,
) -> Result<Option<String>, ToolError> {
    if !registered.is_own_code() {
        return Ok(of_tool);
    }
    // File tools move and delete whole folders; others name what they work in.
    let scope = match registered.definition.category {
        Category::FileSystem => Scope::Everything,
        _ => Scope::Entry,
    };
    let mut reasons: Vec<String> = of_tool.into_iter().collect();
    for resource in &footprint.writes {
        if let Resource::Path(path) = resource {
            reasons.extend(workspace.protects(path, scope)?);
        }
    }
    Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
}

/// What policy refuses: the rule is on the record and on the result.
pub(crate) fn denied(facts: &mut Facts, rule: RuleName, reason: String) -> ToolError {
    let data = serde_json::json!({"rule": rule});
    facts.rule = Some(rule);
    ToolError::new(ErrorCode::ToolDenied, reason).with_data(data)
}

/// The refusal of a tool that is switched off.
pub(crate) fn disabled(registered: &Registered) -> ToolError {
    let text = format!("`{}` is disabled by an administrator. Use another tool", registered.name);
    ToolError::new(ErrorCode::ToolDisabled, text)
}

/// The refusal where a guard panicked. Any other error stays as it is.
pub(super) fn guard_panicked(panic: ToolError) -> ToolError {
    match panic.code {
        ErrorCode::Panicked => guard_failed(GuardError(panic.diagnostics.unwrap_or(panic.message))),
        _ => panic,
    }
}

/// A guard that errors denies.
pub(super) fn guard_failed(error: GuardError) -> ToolError {
    ToolError::new(ErrorCode::ToolDenied, "This call could not be checked, so it was not run")
        .with_diagnostics(error)
}

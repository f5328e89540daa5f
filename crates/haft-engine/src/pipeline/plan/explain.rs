//! What policy would decide about, for a person who wants to know why.

use super::decide::{confirm_reason, resolved};
use crate::{panic_guard::guarded, pipeline::types::containment, ports::Ports, request::Request};
use haft_core::{ErrorCode, ToolError, port::Subject};
use haft_schema::Fitting;
use haft_sdk::Args;

/// Prepares a call as planning does, and shows what came of it. Lists, permissions and policy itself are not asked: a
/// call that they refuse is one that somebody wants explained.
pub(crate) fn explain<T>(
    ports: &Ports,
    request: &Request,
    look: impl FnOnce(&Subject<'_>) -> T,
) -> Result<T, ToolError> {
    let registered = super::look_up(ports, &request.call.name)?.ok_or_else(|| {
        let name = haft_core::text::one_line(&request.call.name, 80);
        ToolError::new(ErrorCode::ToolNotFound, format!("Unknown tool: {name}"))
    })?;
    let definition = &registered.definition;
    let arguments = request.call.arguments.parse().map_err(|problem| {
        let text = format!("Invalid tool arguments JSON: {problem}");
        ToolError::new(ErrorCode::ValidationFailed, text).with_problems(vec![problem])
    })?;
    let coercion = super::coercion(ports, &request.options);
    let Fitting { arguments, .. } = registered.arguments.check(definition, arguments, coercion)?;
    let arguments = Args { value: arguments, original: request.call.arguments.clone() };
    let kept = request.context.roots.as_ref().map(|roots| ports.capabilities.kept_to(roots));
    let reached = kept.as_ref().unwrap_or(&ports.capabilities);
    let workspace = &*reached.workspace;
    let folder = containment::start(reached.commands.template(), request.context.parent.as_ref());
    let (footprint, confirm) = guarded(|| {
        let prepared = registered.tool.prepare(&arguments)?;
        let footprint = resolved(workspace, prepared.footprint(), &request.context.tenant)?;
        let confirm = confirm_reason(workspace, &registered, prepared.confirm(), &footprint)?;
        Ok((footprint, confirm))
    })?;
    Ok(look(&Subject {
        context: &request.context,
        definition,
        arguments: &arguments.value,
        footprint: &footprint,
        folder: &folder,
        confirm: confirm.as_deref(),
        accepts: &ports.settings.accept_answers,
        now: ports.clock.now(),
    }))
}

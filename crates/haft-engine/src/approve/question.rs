//! What a person is asked, and what a yes would cover.

use crate::{
    contained::{guarded, guarded_async},
    frame::Frame,
    plan::{Ready, confirm_reason},
    ports::Ports,
};
use haft_core::{ApprovalId, ApprovalRequest, Asker, GrantOffer, Risk, ToolError, port::Subject, text};
use haft_sdk::{Host, ToolCtx};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};

/// What leads to a question.
pub(super) struct Cause {
    /// Why somebody is asked.
    pub(super) reason: String,
    /// The question that an earlier call with the same idempotency key asked.
    pub(super) asked_before: Option<ApprovalId>,
    /// The question whose arguments a person changed.
    pub(super) replaces: Option<ApprovalId>,
}

/// The question about a call.
pub(super) async fn question(
    ports: &Ports,
    ready: &Ready,
    cause: Cause,
) -> Result<ApprovalRequest, ToolError> {
    let preview = look_ahead(ports, ready).await;
    let frame = &ready.frame;
    let risk = frame.registered.get().map(|registered| registered.definition.risk()).unwrap_or(Risk::High);
    let risk = if ready.is_grave { Risk::High } else { risk };
    let summary = summary(ports, ready)?;
    let now = ports.clock.now();
    Ok(ApprovalRequest {
        id: cause.asked_before.or_else(|| waited_for(frame)).unwrap_or_else(ApprovalId::random),
        execution_id: frame.id,
        call_id: Arc::clone(&frame.call.id),
        tool: Arc::clone(frame.tool_name()),
        risk,
        reason: ports.redaction.model_string(cause.reason),
        arguments: ports.redaction.arguments(&frame.arguments()),
        fingerprint: fingerprint(ports, ready, preview.as_deref()),
        preview,
        asker: Asker::of(&frame.context),
        batch_id: frame.batch.as_ref().map(|(batch, _)| batch.id),
        footprint: ready.footprint.clone(),
        offers: offers(ports, ready, &summary, now),
        replaces: cause.replaces,
        expires_at: now.checked_add(ports.settings.approval_expiry).ok(),
        summary,
    })
}

/// The question that a task waited for.
fn waited_for(frame: &Frame) -> Option<ApprovalId> {
    frame.task.as_ref()?.asked_before.clone()
}

/// What could be remembered of a yes. Nothing, where whoever calls wants this call to be confirmed: no grant would spare
/// that. A policy that panics here has nothing to offer; the question is asked all the same.
fn offers(ports: &Ports, ready: &Ready, summary: &str, now: jiff::Timestamp) -> Vec<GrantOffer> {
    let frame = &ready.frame;
    let Some(registered) = frame.registered.get().filter(|_| !frame.options.require_confirmation) else {
        return Vec::new();
    };
    let offers = guarded(|| {
        let confirm = ready.prepared.get().and_then(|prepared| prepared.confirm());
        let confirm = confirm_reason(ports, &registered.definition, confirm, &ready.footprint)?;
        let subject = Subject {
            context: &frame.context,
            definition: &registered.definition,
            arguments: &ready.arguments.value,
            footprint: &ready.footprint,
            confirm: confirm.as_deref(),
            now,
        };
        Ok(ports.policy.offers(&subject, summary))
    });
    offers.unwrap_or_default()
}

/// How long a tool may take to say what would change.
const LOOK_AHEAD: Duration = Duration::from_secs(5);
/// How much of it is shown.
const MOST_SHOWN: usize = 64 << 10;

/// What a call would change, where its tool can say. One that fails to say so keeps nobody from being asked.
pub(crate) async fn look_ahead(ports: &Ports, ready: &Ready) -> Option<String> {
    let cx = ToolCtx::new(Arc::clone(&ready.frame) as Arc<dyn Host>);
    let prepared = ready.prepared.get()?;
    let looking = guarded(|| Ok(prepared.preview(cx))).ok()??;
    let said = match tokio::time::timeout(LOOK_AHEAD, guarded_async(looking)).await {
        Ok(said) => said.and_then(|said| said),
        Err(_) => Err(ToolError::failed("it took too long")),
    };
    let text = said.unwrap_or_else(|error| format!("What would change is not known: {}", error.message));
    let text = ports.redaction.model_string(text);
    Some(text::truncate(&text, MOST_SHOWN, None).text.into_owned())
}

/// What a call would do, in one line that is safe to show to a person.
pub(crate) fn summary(ports: &Ports, ready: &Ready) -> Result<String, ToolError> {
    let said = guarded(|| Ok(ready.prepared.get().map(|prepared| prepared.summary()).unwrap_or_default()))?;
    let said = ports.redaction.summary(said, &ready.frame.arguments());
    Ok(text::one_line(said.trim(), 200))
}

/// Over everything that the approval covers, so that nothing else can run under it. What was shown is part of it: a yes to
/// one diff is none to another.
fn fingerprint(ports: &Ports, ready: &Ready, preview: Option<&str>) -> String {
    let frame = &ready.frame;
    let definition = frame.registered.get().map(|registered| &*registered.definition);
    let covered = json!({
        "tenant": frame.context.tenant,
        "principal": crate::plan::principal(&frame.context),
        "session": frame.context.session,
        "tool": frame.tool_name(),
        "definition": definition,
        "arguments": frame.arguments().as_str(),
        "footprint": ready.footprint,
        "isolation": ready.level,
        "limits": frame.options.limits,
        "reach": ports.reach,
        "preview": preview,
    });
    Sha256::digest(covered.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

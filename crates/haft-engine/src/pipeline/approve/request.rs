//! What a person is asked, and what a yes would cover.

use super::shown::Shown;
use crate::{
    panic_guard::{guarded, guarded_async},
    pipeline::{
        plan::confirm_reason,
        types::{Attempt, AttemptFacts, CallRecord, CallState, Ready, containment, principal},
    },
    ports::Ports,
};
use haft_core::{
    ApprovalDetail, ApprovalId, ApprovalRequest, Arguments, Asker, Enforcement, ErrorCode, Footprint,
    GrantOffer, IsolationLevel, IsolationTechnology, Limits, ParentGrant, Risk, ToolDefinition, ToolError,
    port::Subject, text,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};

/// Why an approval is asked for.
pub(super) struct Cause {
    /// Why somebody is asked.
    pub(super) reason: String,
    /// The approval that an earlier call with the same idempotency key asked for.
    pub(super) asked_before: Option<ApprovalId>,
    /// The approval whose arguments a person changed.
    pub(super) replaces: Option<ApprovalId>,
}

/// The approval that a call needs, as a person is asked for it; the error, where it cannot succeed anyway. `follows` says
/// that an earlier call of its batch changes what it touches: then nobody knows yet whether it can.
pub(super) async fn approval_request(
    ports: &Ports,
    ready: &Ready,
    cause: Cause,
    follows: bool,
) -> Result<ApprovalRequest, ToolError> {
    let preview = whole_change(ports, ready, follows).await?;
    let call = &ready.call;
    let definition = call.registered.get().map(|registered| &*registered.definition);
    let risk = definition.map(ToolDefinition::risk).unwrap_or(Risk::High);
    let risk = if ready.forces_approval { Risk::High } else { risk };
    let mut secrets = Shown::new(&ports.redaction);
    let shown = secrets.arguments(call.arguments());
    let does = asked(ports, ready, &shown)?;
    let summary = text::spelled_summary(does.trim(), SUMMARY);
    let sandbox = call.sandbox.get().map(|sandbox| &sandbox.grant);
    let now = ports.clock.now();
    let reach = containment::reach(call);
    let mut passed = call.passed();
    let asks = Asks {
        footprint: &ready.footprint,
        isolation: ready.containment.level,
        is_staged: ready.containment.is_staged,
        preview: preview.as_deref(),
    };
    let fingerprint = fingerprint(call, asks, &reach, &passed);
    ports.redaction.value(&mut passed);
    Ok(ApprovalRequest {
        id: cause.asked_before.or_else(|| waited_for(call)).unwrap_or_else(ApprovalId::random),
        execution_id: call.id,
        call_id: Arc::clone(&call.tool_call.id),
        tool: Arc::clone(call.tool_name()),
        risk,
        reason: ports.redaction.model_string(cause.reason),
        arguments: shown,
        fingerprint,
        preview,
        detail: ApprovalDetail {
            does,
            isolation: ready.containment.level,
            reach: containment::shown_reach(&reach, ready.containment.level),
            limits: call.options.limits.as_deref().cloned(),
            sandbox: sandbox.cloned(),
            passed,
            hidden: secrets.hidden(),
        },
        asker: Asker::of(&call.context),
        batch_id: call.batch.as_ref().map(|(batch, _)| batch.id),
        footprint: Shown::new(&ports.redaction).footprint(&ready.footprint),
        offers: offers(ports, ready, &summary, now),
        replaces: cause.replaces,
        expires_at: now.checked_add(ports.settings.approval_expiry).ok(),
        summary,
    })
}

/// The approval that the changes of a call need, which has run, as a person is asked for it.
pub(super) fn changes_request(
    ports: &Ports,
    call: &CallRecord,
    asked: &super::ChangesQuestion<'_>,
) -> Result<ApprovalRequest, ToolError> {
    let diff = whole_text(ports, asked.diff.to_owned())?;
    let mut secrets = Shown::new(&ports.redaction);
    let shown = secrets.arguments(call.arguments());
    let does = Shown::new(&ports.redaction).text(asked.does);
    let sandbox = call.sandbox.get().map(|sandbox| &sandbox.grant);
    let now = ports.clock.now();
    let reach = containment::reach(call);
    let mut passed = call.passed();
    // Which change set of which call: an answer is for no other one.
    let which = format!("{} {}", call.id, asked.fingerprint);
    let asks =
        Asks { footprint: asked.footprint, isolation: asked.level, is_staged: true, preview: Some(&which) };
    let fingerprint = fingerprint(call, asks, &reach, &passed);
    ports.redaction.value(&mut passed);
    Ok(ApprovalRequest {
        id: ApprovalId::random(),
        execution_id: call.id,
        call_id: Arc::clone(&call.tool_call.id),
        tool: Arc::clone(call.tool_name()),
        risk: Risk::High,
        reason: ports.redaction.model_string(asked.reason.to_owned()),
        arguments: shown,
        fingerprint,
        preview: Some(diff),
        detail: ApprovalDetail {
            isolation: asked.level,
            reach: containment::shown_reach(&reach, asked.level),
            limits: call.options.limits.as_deref().cloned(),
            sandbox: sandbox.cloned(),
            passed,
            hidden: secrets.hidden(),
            does: does.clone(),
        },
        asker: Asker::of(&call.context),
        batch_id: call.batch.as_ref().map(|(batch, _)| batch.id),
        footprint: Shown::new(&ports.redaction).footprint(asked.footprint),
        offers: Vec::new(),
        replaces: None,
        expires_at: now.checked_add(ports.settings.approval_expiry).ok(),
        summary: text::spelled_summary(does.trim(), SUMMARY),
    })
}

/// What differs between an approval of a call and one of the changes that it made.
struct Asks<'a> {
    footprint: &'a Footprint,
    isolation: IsolationLevel,
    is_staged: bool,
    preview: Option<&'a str>,
}

/// The fingerprint of what a yes to this covers.
fn fingerprint(call: &CallRecord, asks: Asks<'_>, reach: &Value, passed: &Value) -> String {
    let Asks { footprint, isolation, is_staged, preview } = asks;
    Covered {
        tenant: &call.context.tenant,
        principal: &principal(&call.context),
        session: call.context.session.as_deref(),
        tool: call.tool_name(),
        definition: call.registered.get().map(|registered| &*registered.definition),
        arguments: call.arguments(),
        footprint,
        isolation,
        technology: call.options.isolation_technology,
        is_staged,
        limits: call.options.limits.as_deref(),
        reach,
        sandbox: call.sandbox.get().map(|sandbox| &sandbox.grant),
        passed,
        preview,
    }
    .fingerprint()
}

/// The approval that a task waited for.
fn waited_for(call: &CallState) -> Option<ApprovalId> {
    call.task.as_ref()?.asked_before.clone()
}

/// What could be remembered of a yes. Nothing, where the caller wants this call to be confirmed: no grant would spare
/// that. A policy that panics here has nothing to offer; the person is asked all the same.
fn offers(ports: &Ports, ready: &Ready, summary: &str, now: jiff::Timestamp) -> Vec<GrantOffer> {
    let call = &ready.call;
    let Some(registered) = call.registered.get().filter(|_| !call.options.require_confirmation) else {
        return Vec::new();
    };
    let offers = guarded(|| {
        let confirm = ready.prepared.get().and_then(|prepared| prepared.confirm());
        let confirm = confirm_reason(&*ready.call.reach().workspace, registered, confirm, &ready.footprint)?;
        let subject = Subject {
            context: &call.context,
            definition: &registered.definition,
            arguments: &ready.arguments.value,
            footprint: &ready.footprint,
            folder: &containment::folder(call),
            confirm: confirm.as_deref(),
            accepts: &ports.settings.accept_answers,
            now,
        };
        Ok(ports.policy.offers(&subject, summary))
    });
    let offers = offers.unwrap_or_default().into_iter();
    offers.filter(|offer| !ports.redaction.hides_offer(offer)).collect()
}

/// How long a tool may take to say what would change.
const LOOK_AHEAD: Duration = Duration::from_secs(5);
/// How much of it a dry run shows.
const MOST_SHOWN: usize = 64 << 10;
/// How much of it a person can be asked about. A request is kept, and shown whole.
const MOST_ASKED: usize = 4 << 20;
/// How long a summary is at most.
const SUMMARY: usize = 200;

/// What a call would change, as its tool says it, where it can.
async fn change(ready: &Ready) -> Option<Result<String, ToolError>> {
    // It looks as the first attempt would run.
    let facts = Arc::new(AttemptFacts::new(Enforcement::in_process()));
    let cx = Attempt::new(ready, 1, ready.call.timeout(), facts).ctx();
    let prepared = ready.prepared.get()?;
    let looking = guarded(|| Ok(prepared.preview(cx))).ok()??;
    Some(match tokio::time::timeout(LOOK_AHEAD, guarded_async(looking)).await {
        Ok(said) => said.and_then(|said| said),
        Err(_) => Err(ToolError::new(ErrorCode::Timeout, "it took too long")),
    })
}

fn not_known(error: &ToolError) -> String {
    format!("What would change is not known: {}", error.message)
}

/// Whether a tool that cannot say what would change could not change it either: the file was not read, the patch does
/// not apply, the path is denied. One that took too long or broke may still succeed.
const fn cannot_succeed(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ExecutionFailed
            | ErrorCode::StaleFile
            | ErrorCode::PatchFailed
            | ErrorCode::PermissionDenied
            | ErrorCode::ToolDenied
            | ErrorCode::FilesystemPolicyViolation
            | ErrorCode::ValidationFailed
            | ErrorCode::LimitExceeded
    )
}

/// What a call would change, for a person who is asked about it: all of it. What cannot be shown whole cannot be agreed
/// to.
async fn whole_change(ports: &Ports, ready: &Ready, follows: bool) -> Result<Option<String>, ToolError> {
    let text = match change(ready).await {
        None => return Ok(None),
        Some(Ok(text)) => text,
        Some(Err(error)) if cannot_succeed(error.code) && !follows => return Err(error),
        Some(Err(error)) => not_known(&error),
    };
    whole_text(ports, text).map(Some)
}

/// A text for a person who is asked: all of it, or the reason why it cannot be shown.
fn whole_text(ports: &Ports, text: String) -> Result<String, ToolError> {
    let refused = |why: String| {
        let text = format!("This call needs approval, and {why}, so nobody can agree to it. Not run");
        ToolError::new(ErrorCode::ConfirmationDenied, text)
    };
    if text.len() > MOST_ASKED {
        let (size, most) = (text.len(), MOST_ASKED);
        return Err(refused(format!("its change of {size} bytes is more than the {most} that can be shown")));
    }
    let hidden = |_| refused("what it would change holds a secret behind control characters".to_owned());
    let shown = Shown::new(&ports.redaction).text(&text);
    ports.redaction.for_people(text).map(|_| shown).map_err(hidden)
}

/// What a call would change, for a dry run.
pub(crate) async fn look_ahead(ports: &Ports, ready: &Ready) -> Option<String> {
    let text = change(ready).await?.unwrap_or_else(|error| not_known(&error));
    let text = ports.redaction.model_string(text);
    Some(text::truncate(&text, MOST_SHOWN, None).text.into_owned())
}

/// What a call would do, as its tool says it.
fn said(ready: &Ready) -> Result<String, ToolError> {
    guarded(|| Ok(ready.prepared.get().map(|prepared| prepared.summary()).unwrap_or_default()))
}

/// What a call would do, without secrets.
fn does(ports: &Ports, ready: &Ready) -> Result<String, ToolError> {
    Ok(ports.redaction.summary(said(ready)?, ready.call.arguments()))
}

/// What a call would do, for a person who is asked: without secrets that cannot be anything else.
fn asked(ports: &Ports, ready: &Ready, shown: &Arguments) -> Result<String, ToolError> {
    let said = said(ready)?;
    match ports.redaction.for_people(said.clone()) {
        Ok(_) => {
            let said = said.replace(ready.call.arguments().as_str(), shown.as_str());
            Ok(Shown::new(&ports.redaction).text(&said))
        }
        Err(_) => Ok(ports.redaction.summary(said, ready.call.arguments())),
    }
}

/// What a call would do, in one line that is safe to show to a person.
pub(crate) fn summary(ports: &Ports, ready: &Ready) -> Result<String, ToolError> {
    Ok(text::spelled_summary(does(ports, ready)?.trim(), SUMMARY))
}

/// Everything that an approval covers, so that nothing else can run under it. What was shown is part of it: a yes to
/// one diff is none to another.
#[derive(Clone, Copy)]
struct Covered<'a> {
    tenant: &'a str,
    principal: &'a str,
    session: Option<&'a str>,
    tool: &'a str,
    definition: Option<&'a ToolDefinition>,
    arguments: &'a Arguments,
    footprint: &'a Footprint,
    isolation: IsolationLevel,
    technology: IsolationTechnology,
    is_staged: bool,
    limits: Option<&'a Limits>,
    reach: &'a Value,
    sandbox: Option<&'a ParentGrant>,
    passed: &'a Value,
    preview: Option<&'a str>,
}

impl Covered<'_> {
    /// SHA-256 over all of it, in hex.
    fn fingerprint(self) -> String {
        // Without `..`: what is added is covered.
        let Covered {
            tenant,
            principal,
            session,
            tool,
            definition,
            arguments,
            footprint,
            isolation,
            technology,
            is_staged,
            limits,
            reach,
            sandbox,
            passed,
            preview,
        } = self;
        let covered = json!({
            "tenant": tenant,
            "principal": principal,
            "session": session,
            "tool": tool,
            "definition": definition,
            "arguments": arguments.as_str(),
            "footprint": footprint,
            "isolation": isolation,
            "technology": technology,
            "staged": is_staged,
            "limits": limits,
            "reach": reach,
            "sandbox": sandbox,
            "passed": passed,
            "preview": preview,
        });
        Sha256::digest(covered.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Resource;
    use std::collections::BTreeSet;

    /// For each field that a fingerprint is bound to, a call that differs in it alone. The pattern has no `..`, so that
    /// a new field does not compile until there is a call for it.
    #[test]
    fn whatever_is_covered_another_one_has_another_fingerprint() {
        let definition = ToolDefinition::new("t", "A tool");
        let arguments = Arguments::from_text("{}");
        let footprint = Footprint::default();
        let base = Covered {
            tenant: "acme",
            principal: "ada",
            session: Some("s1"),
            tool: "t",
            definition: Some(&definition),
            arguments: &arguments,
            footprint: &footprint,
            isolation: IsolationLevel::Strict,
            technology: IsolationTechnology::Auto,
            is_staged: true,
            limits: None,
            reach: &json!({"hosts": []}),
            sandbox: None,
            passed: &Value::Null,
            preview: Some("+a"),
        };
        let Covered {
            tenant: _,
            principal: _,
            session: _,
            tool: _,
            definition: _,
            arguments: _,
            footprint: _,
            isolation: _,
            technology: _,
            is_staged: _,
            limits: _,
            reach: _,
            sandbox: _,
            passed: _,
            preview: _,
        } = base;
        let changed = ToolDefinition { description: "Another tool".to_owned(), ..definition.clone() };
        let others = [
            ("tenant", Covered { tenant: "other", ..base }),
            ("principal", Covered { principal: "bob", ..base }),
            ("session", Covered { session: Some("s2"), ..base }),
            ("no session", Covered { session: None, ..base }),
            ("tool", Covered { tool: "u", ..base }),
            ("definition", Covered { definition: Some(&changed), ..base }),
            ("no definition", Covered { definition: None, ..base }),
            ("arguments", Covered { arguments: &Arguments::from_text("{ }"), ..base }),
            ("footprint", Covered { footprint: &Footprint::reads([Resource::path("/a")]), ..base }),
            ("writes", Covered { footprint: &Footprint::writes([Resource::path("/a")]), ..base }),
            ("isolation", Covered { isolation: IsolationLevel::Standard, ..base }),
            ("staged", Covered { is_staged: false, ..base }),
            ("technology", Covered { technology: IsolationTechnology::Process, ..base }),
            ("limits", Covered { limits: Some(&Limits { processes: Some(1), ..Limits::default() }), ..base }),
            ("reach", Covered { reach: &json!({"hosts": ["*"]}), ..base }),
            ("sandbox", Covered { sandbox: Some(&ParentGrant::default()), ..base }),
            ("passed", Covered { passed: &json!({"metadata": {"a": 1}}), ..base }),
            ("preview", Covered { preview: Some("+b"), ..base }),
            ("no preview", Covered { preview: None, ..base }),
        ];
        assert_eq!(base.fingerprint(), base.fingerprint());
        let mut all = BTreeSet::from([base.fingerprint()]);
        for (what, other) in others {
            assert!(all.insert(other.fingerprint()), "another {what}, the same fingerprint");
        }
    }
}

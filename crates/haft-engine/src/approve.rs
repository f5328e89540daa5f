//! Approve: all questions of a batch are asked together, before anything of it runs.

use crate::{
    contained::{guarded, guarded_async},
    frame::Frame,
    plan::{Asking, Exit, Planned, Ready},
    ports::Ports,
};
use haft_core::{
    ApprovalId, ApprovalRequest, Decision, ErrorCode, EventPayload, ExecutionId, Footprint, Risk, ToolError,
    port::{Approver, GuardError},
    text,
};
use haft_sdk::{Host, ToolCtx};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};

/// What became of a call after everybody was asked.
pub(crate) enum Decided {
    /// It runs.
    Go(Ready),
    /// Another one with the same idempotency key runs: its result will be this one's.
    Follows(Arc<Frame>, ExecutionId),
    /// Somebody outside supplies the result.
    Parked(Arc<Frame>),
    /// It is over.
    Resolved(Arc<Frame>, Exit),
}

impl Decided {
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        match self {
            Decided::Go(ready) => &ready.frame,
            Decided::Follows(frame, _) | Decided::Parked(frame) | Decided::Resolved(frame, _) => frame,
        }
    }
}

/// Asks for what needs asking, and decides what may run.
pub(crate) async fn approve(ports: &Ports, planned: Vec<Planned>) -> Vec<Decided> {
    if !planned.iter().any(|planned| matches!(planned, Planned::NeedsApproval(_))) {
        return planned.into_iter().map(without_asking).collect();
    }
    // Boxed, because it is rare and its state would make every walk larger to move.
    Box::pin(approve_asking(ports, planned)).await
}

async fn approve_asking(ports: &Ports, planned: Vec<Planned>) -> Vec<Decided> {
    let mut asked = Vec::new();
    let mut decided: Vec<Option<Decided>> = Vec::with_capacity(planned.len());
    for planned in planned {
        match planned {
            Planned::NeedsApproval(asking) => {
                let Asking { ready, reason, asked_before } = *asking;
                let preview = look_ahead(ports, &ready).await;
                match question(ports, &ready, reason, asked_before) {
                    Ok(request) => {
                        let request = ApprovalRequest { preview, ..request };
                        asked.push((decided.len(), ready, request));
                        decided.push(None);
                    }
                    Err(error) => decided.push(Some(Decided::Resolved(ready.frame, error.into()))),
                }
            }
            other => decided.push(Some(without_asking(other))),
        }
    }
    let decisions = ask(ports, &asked).await;
    for (_, ready, _) in &asked {
        ready.frame.begin_turn();
    }
    let mut open = Vec::new();
    for ((place, ready, request), decision) in asked.into_iter().zip(decisions) {
        let is_open = matches!(decision, Ok(Decision::Unanswered | Decision::Expired));
        if is_open {
            open.push((place, ready.footprint.clone()));
        }
        decided[place] = Some(answered(ready, &request, decision));
    }
    let decided = decided.into_iter().flatten().collect();
    block(decided, open)
}

pub(crate) fn without_asking(planned: Planned) -> Decided {
    match planned {
        Planned::Ready(ready) => Decided::Go(ready),
        Planned::NeedsApproval(asking) => Decided::Go(asking.ready),
        Planned::Follows(frame, leader) => Decided::Follows(frame, leader),
        Planned::Parked(frame) => Decided::Parked(frame),
        Planned::Resolved(frame, exit) => Decided::Resolved(frame, exit),
    }
}

fn question(
    ports: &Ports,
    ready: &Ready,
    reason: String,
    asked_before: Option<ApprovalId>,
) -> Result<ApprovalRequest, ToolError> {
    let frame = &ready.frame;
    let risk = frame.registered.get().map(|registered| registered.definition.risk()).unwrap_or(Risk::High);
    let risk = if ready.is_grave { Risk::High } else { risk };
    let summary = summary(ports, ready)?;
    let request = ApprovalRequest {
        id: asked_before.or_else(|| waited_for(frame)).unwrap_or_else(ApprovalId::random),
        execution_id: frame.id,
        call_id: Arc::clone(&frame.call.id),
        tool: Arc::clone(frame.tool_name()),
        summary,
        risk,
        reason,
        arguments: ports.redaction.arguments(&frame.call.arguments),
        preview: None,
        fingerprint: fingerprint(ready),
    };
    frame.emit(EventPayload::ConfirmationRequested {
        approval_id: request.id.clone(),
        summary: request.summary.clone(),
    });
    frame.facts().approval = Some(request.id.clone());
    Ok(request)
}

/// The question that a task waited for.
fn waited_for(frame: &Frame) -> Option<ApprovalId> {
    frame.task.as_ref()?.asked_before.clone()
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
    let said = ports.redaction.model_string(said);
    Ok(text::one_line(said.trim(), 200))
}

/// Over everything that the approval covers, so that nothing else can run under it.
fn fingerprint(ready: &Ready) -> String {
    let frame = &ready.frame;
    let definition = frame.registered.get().map(|registered| &*registered.definition);
    let covered = json!({
        "tenant": frame.context.tenant,
        "principal": frame.context.user.as_ref().unwrap_or(&frame.context.agent),
        "session": frame.context.session,
        "tool": frame.tool_name(),
        "definition": definition,
        "arguments": frame.call.arguments.as_str(),
        "footprint": ready.footprint,
        "isolation": ready.level,
        "limits": frame.options.limits,
    });
    Sha256::digest(covered.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

type Asked = (usize, Ready, ApprovalRequest);

/// Asks everybody who has to be asked, each approver once, and stops asking when the batch is cancelled.
async fn ask(ports: &Ports, asked: &[Asked]) -> Vec<Result<Decision, ToolError>> {
    let Some((_, first, _)) = asked.first() else {
        return Vec::new();
    };
    let approver: &Arc<dyn Approver> = first.frame.approver.as_ref().unwrap_or(&ports.approver);
    let requests: Vec<ApprovalRequest> = asked.iter().map(|(_, _, request)| request.clone()).collect();
    // A batch is asked about as a whole: one call of it that is cancelled meanwhile just does not run afterwards.
    let cancel = first.frame.batch.as_ref().map_or(&first.frame.cancel, |(batch, _)| &batch.cancel);
    let answers = tokio::select! {
        biased;
        answers = guarded_async(async { approver.ask(&requests).await }) => answers,
        reason = cancel.cancelled() => {
            return requests.iter().map(|_| Err(crate::run::cancelled(cancel, reason))).collect();
        }
    };
    let panicked = |panic: ToolError| GuardError(panic.diagnostics.unwrap_or(panic.message));
    match answers.map_err(panicked).and_then(|answers| answers) {
        Ok(answers) => {
            let missing = requests.len().saturating_sub(answers.len());
            let unanswered = std::iter::repeat_n(Decision::Unanswered, missing);
            answers.into_iter().take(requests.len()).chain(unanswered).map(Ok).collect()
        }
        Err(error) => requests.iter().map(|_| Err(could_not_ask(&error))).collect(),
    }
}

/// A guard that errors denies.
fn could_not_ask(error: &GuardError) -> ToolError {
    ToolError::new(
        ErrorCode::ToolDenied,
        "This call needs approval, and asking for it failed, so it was not run",
    )
    .with_diagnostics(error)
}

fn answered(ready: Ready, request: &ApprovalRequest, decision: Result<Decision, ToolError>) -> Decided {
    let frame = Arc::clone(&ready.frame);
    if let Ok(decision @ (Decision::Approve | Decision::Deny { .. })) = &decision {
        frame.emit(EventPayload::ConfirmationReceived {
            approval_id: request.id.clone(),
            approved: *decision == Decision::Approve,
        });
    }
    let error = match decision {
        Ok(Decision::Approve) => return Decided::Go(ready),
        Ok(Decision::Deny { reason }) => {
            let mut text = ErrorCode::ConfirmationDenied.model_text().to_owned();
            if let Some(reason) = reason {
                text = format!("{text}: {reason}");
            }
            ToolError::new(ErrorCode::ConfirmationDenied, text)
        }
        Ok(Decision::Unanswered) => ToolError::new(
            ErrorCode::ConfirmationRequired,
            format!(
                "A person has to approve this call before it can run, and nobody was there to ask ({}). Nothing \
                 was run. Once it is approved, send the call again",
                request.reason
            ),
        ),
        Ok(Decision::Expired) => ErrorCode::ApprovalExpired.into(),
        Err(error) => error,
    };
    let data = json!({
        "approvalId": request.id,
        "summary": request.summary,
        "risk": request.risk,
        "fingerprint": request.fingerprint,
    });
    Decided::Resolved(frame, error.with_data(data).into())
}

/// Later calls that touch what an unapproved call would touch must not run as if it had run; nor must those that touch
/// what these would touch.
fn block(decided: Vec<Decided>, open: Vec<(usize, Footprint)>) -> Vec<Decided> {
    let mut open = open;
    // The nodes of a flow that are asked about together need not be its first ones.
    let place_of = |decided: &Decided| decided.frame().batch_place().map_or(0, |(_, index)| index);
    let numbers: Vec<u32> = decided.iter().map(|decided| place_of(decided) + 1).collect();
    let mut checked = Vec::with_capacity(decided.len());
    for (place, decided) in decided.into_iter().enumerate() {
        let blocked_by = |footprint: &Footprint| {
            open.iter().find(|(earlier, other)| *earlier < place && other.conflicts_with(footprint))
        };
        checked.push(match decided {
            Decided::Go(ready) => match blocked_by(&ready.footprint) {
                None => Decided::Go(ready),
                Some((earlier, _)) => {
                    let number = numbers[*earlier];
                    let text = format!(
                        "Not started, because it touches what call {number} of this batch touches, which waits for \
                         approval"
                    );
                    open.push((place, ready.footprint.clone()));
                    Decided::Resolved(ready.frame, ToolError::new(ErrorCode::Blocked, text).into())
                }
            },
            other => other,
        });
    }
    checked
}

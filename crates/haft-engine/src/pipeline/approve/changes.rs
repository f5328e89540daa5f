//! The question about what a command changed: asked when it has run, with all that would be applied.

use super::{
    asking::{ApprovalOutcome, PendingApproval, ask, take_back},
    request::changes_request,
};
use crate::{pipeline::types::CallRecord, ports::Ports};
use haft_core::{Decision, ErrorCode, EventPayload, Footprint, IsolationLevel, ToolError};

/// What a person is asked about the changes of a call.
pub(crate) struct ChangesQuestion<'a> {
    /// What is to be done, in words.
    pub(crate) does: &'a str,
    /// Why somebody is asked.
    pub(crate) reason: &'a str,
    /// All that would be applied.
    pub(crate) diff: &'a str,
    /// What names the change set.
    pub(crate) fingerprint: &'a str,
    /// The paths that it touches.
    pub(crate) footprint: &'a Footprint,
    /// What held the command in.
    pub(crate) level: IsolationLevel,
}

/// Asks whether the changes of a call may be applied. The error says why not; CONFIRMATION_DENIED is somebody's no.
pub(crate) async fn ask_about_changes(
    ports: &Ports,
    call: &mut CallRecord,
    question: &ChangesQuestion<'_>,
) -> Result<(), ToolError> {
    let mut request = changes_request(ports, call, question)?;
    let heard = ask(ports, &mut [PendingApproval { call, request: &mut request }]).await;
    let heard = heard.into_iter().next().unwrap_or_else(|| Err(ErrorCode::ConfirmationRequired.into()))?;
    if let ApprovalOutcome::Answer(decision @ (Decision::Approve | Decision::Deny { .. })) = &heard {
        call.emit(EventPayload::ConfirmationReceived {
            approval_id: request.id.clone(),
            approved: *decision == Decision::Approve,
        });
    }
    let said = match heard {
        ApprovalOutcome::Answer(Decision::Approve) => return Ok(()),
        ApprovalOutcome::Answer(Decision::Deny { reason }) => {
            let why = reason.map(|reason| format!(": {}", reason.trim_end_matches('.'))).unwrap_or_default();
            let text = format!(
                "The command ran, and a person did not agree to what it changed{why}. Nothing of it was applied. Do \
                 it in another way, or ask the person what they would agree to"
            );
            return Err(ToolError::new(ErrorCode::ConfirmationDenied, text));
        }
        ApprovalOutcome::Answer(Decision::Edit { .. }) => {
            let text = "The command has run already: its arguments cannot be changed any more";
            return Err(ToolError::new(ErrorCode::ConfirmationDenied, text));
        }
        ApprovalOutcome::NotFrom(channel) => {
            format!("the answer came by way of `{channel}`, which does not count here")
        }
        ApprovalOutcome::Answer(Decision::Unanswered | Decision::Expired) | ApprovalOutcome::Again => {
            "nobody was there to ask".to_owned()
        }
    };
    // From now on the change set itself is what is applied or discarded.
    take_back(ports, &request, call).await;
    let text = format!("A person has to approve what this command changed, and {said} ({})", question.reason);
    Err(ToolError::new(ErrorCode::ConfirmationRequired, text))
}

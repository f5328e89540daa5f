//! Approve: all approvals that a batch needs are asked for together, before anything of it runs.
//!
//! | module | what |
//! |---|---|
//! | [`request`] | what a person is asked, and what a yes covers |
//! | [`shown`] | what of it may be taken out as a secret |
//! | [`asking`] | whom: an approver here, and people who answer the list of approvals elsewhere |
//! | [`changes`] | the question about what a command changed, when it has run |

mod asking;
mod changes;
mod request;
mod shown;

pub(crate) use changes::{ChangesQuestion, ask_about_changes};
pub(crate) use request::{look_ahead, summary};

use super::{
    plan::plan_again,
    types::{Decided, NeedsApproval, Planned, Ready},
};
use crate::ports::Ports;
use asking::{ApprovalOutcome, PendingApproval, ask};
use haft_core::{ApprovalRequest, Arguments, Decision, ErrorCode, EventPayload, Footprint, ToolError};
use request::{Cause, approval_request};
use serde_json::json;

/// Asks for what needs asking, and decides what may run.
pub(crate) async fn approve(ports: &Ports, planned: Vec<Planned>) -> Vec<Decided> {
    if !planned.iter().any(|planned| matches!(planned, Planned::NeedsApproval(_))) {
        return planned.into_iter().map(without_asking).collect();
    }
    // Boxed, because it is rare and its state would make every call larger to move.
    Box::pin(approve_asking(ports, planned)).await
}

/// A call that needs an approval, by its place in the batch.
type Waiting = (usize, Ready, Cause);

/// Somebody who keeps changing the arguments is asked so often, and no more.
const MOST_ROUNDS: usize = 20;

async fn approve_asking(ports: &Ports, planned: Vec<Planned>) -> Vec<Decided> {
    let mut decided: Vec<Option<Decided>> = Vec::with_capacity(planned.len());
    let mut waiting: Vec<Waiting> = Vec::new();
    let touched: Vec<Footprint> = planned.iter().map(touches).collect();
    for (place, planned) in planned.into_iter().enumerate() {
        decided.push(match sorted(planned) {
            Sorted::Decided(decided) => Some(decided),
            Sorted::Ask(ready, cause) => {
                waiting.push((place, ready, cause));
                None
            }
        });
    }
    let mut open = Vec::new();
    for round in 1.. {
        let mut asked = Vec::with_capacity(waiting.len());
        for (place, ready, cause) in waiting.drain(..) {
            let follows = touched.iter().take(place).any(|earlier| earlier.conflicts_with(&ready.footprint));
            match approval_request(ports, &ready, cause, follows).await {
                Ok(request) => asked.push((place, ready, request)),
                Err(error) => decided[place] = Some(Decided::Resolved(ready.call, error.into())),
            }
        }
        let heard = {
            let pending = asked.iter_mut();
            let pending =
                pending.map(|(_, ready, request)| PendingApproval { call: &mut ready.call, request });
            ask(ports, &mut pending.collect::<Vec<_>>()).await
        };
        for ((place, mut ready, request), heard) in asked.into_iter().zip(heard) {
            ready.call.begin_turn();
            decided[place] = match heard {
                Ok(ApprovalOutcome::Again) if round < MOST_ROUNDS => {
                    let cause =
                        Cause { reason: request.reason, asked_before: None, replaces: request.replaces };
                    waiting.push((place, ready, cause));
                    None
                }
                Ok(ApprovalOutcome::Answer(Decision::Edit { arguments })) if round < MOST_ROUNDS => {
                    match edited(ports, ready, request, arguments).await {
                        Sorted::Decided(decided) => Some(decided),
                        Sorted::Ask(ready, cause) => {
                            waiting.push((place, ready, cause));
                            None
                        }
                    }
                }
                heard => {
                    if matches!(heard, Ok(ApprovalOutcome::Answer(Decision::Unanswered | Decision::Expired)))
                    {
                        open.push((place, ready.footprint.clone()));
                    }
                    Some(answered(ready, &request, heard))
                }
            };
        }
        if waiting.is_empty() {
            break;
        }
    }
    block(decided.into_iter().flatten().collect(), open)
}

/// What a call touches, where it may run.
fn touches(planned: &Planned) -> Footprint {
    match planned {
        Planned::Ready(ready) => ready.footprint.clone(),
        Planned::NeedsApproval(asking) => asking.ready.footprint.clone(),
        Planned::Follows(..) | Planned::AwaitingResult(_) | Planned::Resolved(..) => Footprint::default(),
    }
}

/// What is decided without a person, or what to ask one.
enum Sorted {
    Decided(Decided),
    Ask(Ready, Cause),
}

fn sorted(planned: Planned) -> Sorted {
    match planned {
        Planned::NeedsApproval(asking) => {
            let NeedsApproval { ready, reason, asked_before } = *asking;
            Sorted::Ask(ready, Cause { reason, asked_before, replaces: None })
        }
        other => Sorted::Decided(without_asking(other)),
    }
}

/// What is decided where nobody is asked: a call that needs a person does not run.
pub(crate) fn without_asking(planned: Planned) -> Decided {
    match planned {
        Planned::Ready(ready) => Decided::Go(ready),
        Planned::Follows(call, leader) => Decided::Follows(call, leader),
        Planned::AwaitingResult(call) => Decided::AwaitingResult(call),
        Planned::Resolved(call, exit) => Decided::Resolved(call, exit),
        Planned::NeedsApproval(asking) => {
            Decided::Resolved(asking.ready.call, ToolError::from(ErrorCode::ConfirmationRequired).into())
        }
    }
}

/// A person wants other arguments: the call is planned as if it had come in with them. What was asked is over.
async fn edited(ports: &Ports, ready: Ready, request: ApprovalRequest, arguments: Arguments) -> Sorted {
    let mut call = ready.call;
    call.emit(EventPayload::ConfirmationReceived { approval_id: request.id.clone(), approved: false });
    call.facts.approval = None;
    if !request.can_edit() {
        // The person who was asked did not see them whole, and would have put the marks in their place.
        let text =
            "The arguments hold secrets that are not shown, so they cannot be changed by a person. Not run";
        let error = ToolError::new(ErrorCode::ConfirmationDenied, text);
        return Sorted::Decided(Decided::Resolved(call, error.into()));
    }
    call.facts.edited = Some(arguments);
    match sorted(plan_again(ports, call).await) {
        Sorted::Ask(ready, cause) => Sorted::Ask(ready, Cause { replaces: Some(request.id), ..cause }),
        decided => decided,
    }
}

fn answered(ready: Ready, request: &ApprovalRequest, heard: Result<ApprovalOutcome, ToolError>) -> Decided {
    if let Ok(ApprovalOutcome::Answer(decision @ (Decision::Approve | Decision::Deny { .. }))) = &heard {
        ready.call.emit(EventPayload::ConfirmationReceived {
            approval_id: request.id.clone(),
            approved: *decision == Decision::Approve,
        });
    }
    let error = match heard {
        Ok(ApprovalOutcome::Answer(Decision::Approve)) => return Decided::Go(ready),
        Ok(ApprovalOutcome::Answer(Decision::Deny { reason })) => denied(reason.as_deref()),
        Ok(ApprovalOutcome::Answer(Decision::Edit { .. }) | ApprovalOutcome::Again) => {
            denied(Some("too many changes"))
        }
        Ok(ApprovalOutcome::NotFrom(channel)) => {
            denied(Some(&format!("the answer came by way of `{channel}`, which does not count here")))
        }
        Ok(ApprovalOutcome::Answer(Decision::Unanswered)) => ToolError::new(
            ErrorCode::ConfirmationRequired,
            format!(
                "A person has to approve this call before it can run, and nobody was there to ask ({}). Nothing \
                 was run. Once `{}` is approved, send the same call again",
                request.reason, request.id
            ),
        ),
        Ok(ApprovalOutcome::Answer(Decision::Expired)) => ErrorCode::ApprovalExpired.into(),
        Err(error) => error,
    };
    let data = json!({
        "approvalId": request.id,
        "tool": request.tool,
        "summary": request.summary,
        "risk": request.risk,
        "fingerprint": request.fingerprint,
    });
    Decided::Resolved(ready.call, error.with_data(data).into())
}

/// A no, with what to do next: a model that does not know tries the same again.
fn denied(reason: Option<&str>) -> ToolError {
    let said = ErrorCode::ConfirmationDenied.model_text();
    let said =
        reason.map_or_else(|| said.to_owned(), |reason| format!("{said}: {}", reason.trim_end_matches('.')));
    let text = format!(
        "{said}. Do not send the same call again: do it in another way, or ask the person what they would agree to"
    );
    ToolError::new(ErrorCode::ConfirmationDenied, text)
}

/// Later calls that touch what an unapproved call would touch must not run as if it had run; nor must those that touch
/// what these would touch.
fn block(decided: Vec<Decided>, open: Vec<(usize, Footprint)>) -> Vec<Decided> {
    let mut open = open;
    // The nodes of a flow that are asked about together need not be its first ones.
    let place_of = |decided: &Decided| decided.call().batch_place().map_or(0, |(_, index)| index);
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
                    Decided::Resolved(ready.call, ToolError::new(ErrorCode::Blocked, text).into())
                }
            },
            other => other,
        });
    }
    checked
}

//! Whom to ask: an approver here, and people who answer the list of approvals elsewhere. The first answer counts, and
//! nothing else.

use crate::{
    panic_guard::guarded_async,
    pipeline::types::{CallRecord, cancelled},
    ports::{AskedNow, Ports},
};
use haft_core::{
    ApprovalId, ApprovalRequest, Channel, Decision, ErrorCode, EventPayload, ToolError,
    port::{Answer, Approver, GuardError, StoreError, TakenAnswer, TenantStore},
};
use std::{sync::Arc, time::Duration};
use tokio::time::MissedTickBehavior;

/// How often it is looked whether somebody answered elsewhere.
const LOOK: Duration = Duration::from_millis(100);

/// A call with the approval that it waits for.
pub(super) struct PendingApproval<'a> {
    pub(super) call: &'a mut CallRecord,
    pub(super) request: &'a mut ApprovalRequest,
}

/// What came of a request for approval.
pub(super) enum ApprovalOutcome {
    /// This answer.
    Answer(Decision),
    /// An answer from where none is taken.
    NotFrom(Channel),
    /// The answer went to another call that is the same: this one has to be asked about by itself.
    Again,
}

type Answered = Result<ApprovalOutcome, ToolError>;

/// Asks everybody who has to be asked, each approver once, and stops asking when the batch is cancelled.
pub(super) async fn ask(ports: &Ports, asked: &mut [PendingApproval<'_>]) -> Vec<Answered> {
    let Some(first) = asked.first() else {
        return Vec::new();
    };
    let call = Arc::clone(first.call.state());
    let approver: &Arc<dyn Approver> = call.approver.as_ref().unwrap_or(&ports.approver);
    let list = ports.wants.questions.then(|| ports.store.for_tenant(&call.context.tenant));
    let mut waits = WaitsFor { asked_now: &ports.asked_now, ids: Vec::new() };
    if let Some(list) = &list
        && let Err(error) = put_on(&**list, asked, &mut waits).await
    {
        return asked.iter().map(|_| Err(could_not_ask(&error))).collect();
    }
    for PendingApproval { call, request } in &mut *asked {
        call.emit(EventPayload::ConfirmationRequested {
            approval_id: request.id.clone(),
            summary: request.summary.clone(),
        });
        call.facts.approval = Some(request.id.clone());
    }
    // A batch is asked about as a whole: one call of it that is cancelled meanwhile just does not run afterwards.
    let cancel = call.batch.as_ref().map_or(&*call.cancel, |(batch, _)| &batch.cancel);
    let answers = async {
        match &list {
            Some(list) => Listed { ports, approver: &**approver, list: &**list, asked }.answers().await,
            None => here(&**approver, asked).await,
        }
    };
    let reason = tokio::select! {
        biased;
        answers = answers => return answers,
        reason = cancel.cancelled() => reason,
    };
    if let Some(list) = &list {
        for PendingApproval { call, request } in &*asked {
            withdraw(&**list, request, call).await;
        }
    }
    asked.iter().map(|_| Err(cancelled(cancel, reason))).collect()
}

/// What is waited for here, until this is dropped.
struct WaitsFor<'a> {
    asked_now: &'a AskedNow,
    ids: Vec<ApprovalId>,
}

impl Drop for WaitsFor<'_> {
    fn drop(&mut self) {
        let mut asked_now = self.asked_now.ids();
        for id in &self.ids {
            asked_now.remove(id);
        }
    }
}

/// Puts all requests on the list, each under the id that it has there: none that another call waits for.
async fn put_on(
    list: &dyn TenantStore,
    asked: &mut [PendingApproval<'_>],
    waits: &mut WaitsFor<'_>,
) -> Result<(), GuardError> {
    let _turn = waits.asked_now.turn().await;
    for PendingApproval { request, .. } in asked {
        let taken: Vec<ApprovalId> = waits.asked_now.ids().iter().cloned().collect();
        request.id = list.ask((**request).clone(), taken).await.map_err(failed)?;
        waits.asked_now.ids().insert(request.id.clone());
        waits.ids.push(request.id.clone());
    }
    Ok(())
}

/// Takes a question back that nobody can answer any more.
pub(super) async fn take_back(ports: &Ports, request: &ApprovalRequest, call: &CallRecord) {
    if ports.wants.questions {
        withdraw(&*ports.store.for_tenant(&call.context.tenant), request, call).await;
    }
}

/// Nobody can agree to a call any more that was cancelled while somebody thought about it. If that cannot be written
/// down, the request merely stays on the list until it expires.
async fn withdraw(list: &dyn TenantStore, request: &ApprovalRequest, call: &CallRecord) {
    let decision = Decision::Deny { reason: Some("the call was cancelled".to_owned()) };
    let answer = Answer { decision, by: request.asker.principal().to_owned(), from: Channel::Program };
    let _ = list.answer(&request.id, answer).await;
    let _ = list.take_answer(&request.id, call.id).await;
}

/// Without a list: the approver alone.
async fn here(approver: &dyn Approver, asked: &[PendingApproval<'_>]) -> Vec<Answered> {
    let requests: Vec<ApprovalRequest> = asked.iter().map(|asked| (*asked.request).clone()).collect();
    match said(approver, &requests).await {
        Ok(said) => said.into_iter().map(|decision| Ok(ApprovalOutcome::Answer(decision))).collect(),
        Err(error) => requests.iter().map(|_| Err(could_not_ask(&error))).collect(),
    }
}

/// What the approver says: one decision for each request, whatever it does.
async fn said(approver: &dyn Approver, requests: &[ApprovalRequest]) -> Result<Vec<Decision>, GuardError> {
    let panicked = |panic: ToolError| GuardError(panic.diagnostics.unwrap_or(panic.message));
    let said = guarded_async(async { approver.ask(requests).await }).await.map_err(panicked)??;
    let missing = requests.len().saturating_sub(said.len());
    let unanswered = std::iter::repeat_n(Decision::Unanswered, missing);
    Ok(said.into_iter().take(requests.len()).chain(unanswered).collect())
}

/// Questions that are on the list.
struct Listed<'a> {
    ports: &'a Ports,
    approver: &'a dyn Approver,
    list: &'a dyn TenantStore,
    asked: &'a [PendingApproval<'a>],
}

impl Listed<'_> {
    async fn answers(&self) -> Vec<Answered> {
        let mut answers: Vec<Option<Answered>> = self.asked.iter().map(|_| None).collect();
        // What was answered before anybody here is asked: the call came in earlier, and was sent again.
        self.look(&mut answers, false).await;
        let open: Vec<usize> = (0..answers.len()).filter(|place| answers[*place].is_none()).collect();
        if !open.is_empty() {
            let requests: Vec<ApprovalRequest> =
                open.iter().map(|place| (*self.asked[*place].request).clone()).collect();
            self.ask_here(&open, &requests, &mut answers).await;
        }
        let unanswered = || Ok(ApprovalOutcome::Answer(Decision::Unanswered));
        answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect()
    }

    /// Asks the approver, and looks at the list meanwhile, until everything is answered or the approver has no more to
    /// say.
    async fn ask_here(&self, open: &[usize], requests: &[ApprovalRequest], answers: &mut [Option<Answered>]) {
        let mut saying = std::pin::pin!(said(self.approver, requests));
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                said = &mut saying => {
                    for (nth, place) in open.iter().enumerate() {
                        if answers[*place].is_none() {
                            answers[*place] = match &said {
                                Ok(said) => self.settle(*place, said[nth].clone()).await,
                                Err(error) => Some(Err(could_not_ask(error))),
                            };
                        }
                    }
                    return;
                }
                _ = looks.tick() => {
                    self.look(answers, true).await;
                    if answers.iter().all(Option::is_some) {
                        return;
                    }
                }
            }
        }
    }

    /// Writes down what the approver said, and takes what counts: this, or what somebody else said a moment before.
    async fn settle(&self, place: usize, decision: Decision) -> Option<Answered> {
        let request = &*self.asked[place].request;
        match decision {
            // Somebody may have answered elsewhere in the very last moment.
            Decision::Unanswered => return self.take(place).await,
            Decision::Expired => return Some(Ok(ApprovalOutcome::Answer(Decision::Expired))),
            Decision::Approve | Decision::Deny { .. } | Decision::Edit { .. } => {}
        }
        let (by, from) = (request.asker.principal().to_owned(), self.approver.channel());
        match self.list.answer(&request.id, Answer { decision, by, from }).await {
            Ok(_) => self.take(place).await,
            Err(error) => Some(Err(could_not_ask(&failed(error)))),
        }
    }

    /// Takes what was answered elsewhere. The approver hears of it where it is being asked.
    async fn look(&self, answers: &mut [Option<Answered>], is_asking: bool) {
        for (place, answer) in answers.iter_mut().enumerate().filter(|(_, answer)| answer.is_none()) {
            *answer = self.take(place).await;
            if let (true, Some(Ok(ApprovalOutcome::Answer(decision)))) = (is_asking, &*answer) {
                self.approver.answered_elsewhere(&self.asked[place].request.id, decision);
            }
        }
    }

    async fn take(&self, place: usize) -> Option<Answered> {
        let PendingApproval { call, request } = &self.asked[place];
        Some(match self.list.take_answer(&request.id, call.id).await {
            Ok(TakenAnswer::Open) => return None,
            Ok(TakenAnswer::Expired) => Ok(ApprovalOutcome::Answer(Decision::Expired)),
            Ok(TakenAnswer::Gone) => Ok(ApprovalOutcome::Again),
            Ok(TakenAnswer::Answered(Answer { decision, from, .. })) => {
                // What its own approver says counts by being wired in.
                let counts =
                    from == self.approver.channel() || self.ports.settings.accept_answers.counts(from);
                Ok(if counts { ApprovalOutcome::Answer(decision) } else { ApprovalOutcome::NotFrom(from) })
            }
            Err(error) => Err(could_not_ask(&failed(error))),
        })
    }
}

fn failed(error: StoreError) -> GuardError {
    GuardError(error.0)
}

/// A guard that errors denies.
fn could_not_ask(error: &GuardError) -> ToolError {
    ToolError::new(
        ErrorCode::ToolDenied,
        "This call needs approval, and asking for it failed, so it was not run",
    )
    .with_diagnostics(error)
}

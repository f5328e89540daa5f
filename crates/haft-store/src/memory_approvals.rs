//! Approvals and grants that last as long as the process.

use haft_core::{
    ApprovalId, ApprovalRequest, Arguments, Decision, ExecutionId,
    port::{
        Answer, ApprovalFilter, ApprovalState, Intent, StoreError, StoredApproval, StoredGrant, TakenAnswer,
    },
};
use jiff::Timestamp;
use std::sync::Arc;

/// How many approvals are kept. Beyond that the oldest go, first of all those that are over.
const MOST: usize = 10_000;

/// The approvals and grants of a store in memory.
#[derive(Default)]
pub(crate) struct Approvals {
    /// As they were asked for, oldest first.
    all: Vec<StoredApproval>,
    grants: Vec<(Arc<str>, StoredGrant)>,
}

fn is_of(tenant: &str, question: &StoredApproval) -> bool {
    *question.request.asker.tenant == *tenant
}

/// Whether it waits for an answer, or has one that no call has taken.
fn is_unused(question: &StoredApproval) -> bool {
    use ApprovalState::{Approved, Denied, Edited, Open};
    matches!(question.state, Open | Approved | Denied | Edited) && question.used_by.is_none()
}

impl Approvals {
    pub(crate) fn ask(
        &mut self,
        tenant: &str,
        request: ApprovalRequest,
        not: &[ApprovalId],
        now: Timestamp,
    ) -> ApprovalId {
        self.expire(now);
        if let Some(same) = self.same(tenant, &request, not) {
            if same.state == ApprovalState::Open {
                // From now on it is this call that waits for it.
                same.request.execution_id = request.execution_id;
                same.request.call_id = request.call_id;
                same.request.batch_id = request.batch_id;
                same.request.preview = request.preview;
            }
            return same.request.id.clone();
        }
        // The id may be that of an earlier approval that is over: then this is another one.
        let is_known = self.all.iter().any(|known| known.request.id == request.id);
        let id = if is_known { ApprovalId::random() } else { request.id.clone() };
        self.make_room();
        self.all.push(StoredApproval {
            request: ApprovalRequest { id: id.clone(), ..request },
            state: ApprovalState::Open,
            asked_at: now,
            answered_at: None,
            answered_by: None,
            answered_from: None,
            answer_reason: None,
            edited: None,
            used_by: None,
        });
        id
    }

    /// The one about the same call that is not over. Answered ones come first: their answer is for the first that
    /// comes.
    fn same(
        &mut self,
        tenant: &str,
        request: &ApprovalRequest,
        not: &[ApprovalId],
    ) -> Option<&mut StoredApproval> {
        let same = self.all.iter_mut().filter(|known| {
            is_of(tenant, known)
                && is_unused(known)
                && known.request.fingerprint == request.fingerprint
                && !not.contains(&known.request.id)
        });
        same.min_by_key(|known| known.state == ApprovalState::Open)
    }

    fn make_room(&mut self) {
        if self.all.len() >= MOST {
            let over = self.all.iter().position(|question| !is_unused(question));
            self.all.remove(over.unwrap_or(0));
        }
    }

    /// What stayed open, or answered and unused, for too long. An answer that a call has taken is that call's.
    fn expire(&mut self, now: Timestamp) {
        for question in &mut self.all {
            if is_unused(question) && question.request.expires_at.is_some_and(|end| end <= now) {
                question.state = ApprovalState::Expired;
            }
        }
    }

    fn one(&mut self, tenant: &str, id: &ApprovalId, now: Timestamp) -> Option<&mut StoredApproval> {
        self.expire(now);
        self.all.iter_mut().rev().find(|question| question.request.id == *id && is_of(tenant, question))
    }

    /// Answers, once, and keeps the grant with it; false where it is not open, or not any more.
    pub(crate) fn answer(
        &mut self,
        tenant: &str,
        id: &ApprovalId,
        answer: Answer,
        grant: Option<StoredGrant>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        // Before anything is changed: both or neither.
        if grant.as_ref().is_some_and(|new| self.grants.iter().any(|(_, known)| known.id == new.id)) {
            return Err(StoreError("there is a grant of that id already".to_owned()));
        }
        let open = self.one(tenant, id, now).filter(|question| question.state == ApprovalState::Open);
        let Some(question) = open else { return Ok(false) };
        question.state = match answer.decision {
            Decision::Approve => ApprovalState::Approved,
            Decision::Deny { reason } => {
                question.answer_reason = reason;
                ApprovalState::Denied
            }
            Decision::Edit { arguments } => {
                question.edited = Some(arguments);
                ApprovalState::Edited
            }
            Decision::Expired => ApprovalState::Expired,
            Decision::Unanswered => return Ok(false),
        };
        question.answered_at = Some(now);
        question.answered_by = Some(answer.by);
        question.answered_from = Some(answer.from);
        let tenant = Arc::clone(&question.request.asker.tenant);
        self.grants.extend(grant.map(|grant| (tenant, grant)));
        Ok(true)
    }

    /// Takes an answer for one call. The call that takes it first has it.
    pub(crate) fn take(
        &mut self,
        tenant: &str,
        id: &ApprovalId,
        call: ExecutionId,
        now: Timestamp,
    ) -> TakenAnswer {
        let Some(question) = self.one(tenant, id, now) else { return TakenAnswer::Gone };
        match question.state {
            ApprovalState::Open => return TakenAnswer::Open,
            ApprovalState::Expired => return TakenAnswer::Expired,
            _ if *question.used_by.get_or_insert(call) != call => return TakenAnswer::Gone,
            _ => {}
        }
        let decision = match question.state {
            ApprovalState::Denied => Decision::Deny { reason: question.answer_reason.clone() },
            ApprovalState::Edited => {
                Decision::Edit { arguments: question.edited.clone().unwrap_or_default() }
            }
            _ => Decision::Approve,
        };
        let by = question.answered_by.clone().unwrap_or_default();
        // Whatever is answered has its channel; without one there is no answer.
        let Some(from) = question.answered_from else { return TakenAnswer::Gone };
        TakenAnswer::Answered(Answer { decision, by, from })
    }

    /// Uses an approval up with the intent of its call: it allows one call, once.
    pub(crate) fn use_up(&mut self, intent: &Intent, now: Timestamp) -> Result<(), StoreError> {
        let refused = |why: &str| Err(StoreError(format!("{why}; ask again")));
        let Some(id) = &intent.approval else { return Ok(()) };
        // One that is not on the list was asked for and answered face to face, while the call waited.
        let Some(question) = self.one(&intent.context.tenant, id, now) else { return Ok(()) };
        let is_mine = question.used_by.is_none_or(|by| by == intent.execution_id);
        match question.state {
            ApprovalState::Approved | ApprovalState::Used if !is_mine => {
                refused("the approval was used for another call")
            }
            ApprovalState::Approved | ApprovalState::Used => {
                question.state = ApprovalState::Used;
                question.used_by = Some(intent.execution_id);
                Ok(())
            }
            ApprovalState::Open => refused("nobody has approved it yet"),
            ApprovalState::Denied | ApprovalState::Edited | ApprovalState::Expired => {
                refused("the approval was denied or has expired")
            }
        }
    }

    pub(crate) fn find(&mut self, tenant: &str, id: &ApprovalId, now: Timestamp) -> Option<StoredApproval> {
        self.one(tenant, id, now).cloned()
    }

    /// Those that the filter lets through: the newest, oldest first.
    pub(crate) fn list(
        &mut self,
        tenant: &str,
        filter: &ApprovalFilter,
        now: Timestamp,
    ) -> Vec<StoredApproval> {
        self.expire(now);
        let lets_through = |question: &&StoredApproval| {
            is_of(tenant, question)
                && filter.state.is_none_or(|state| state == question.state)
                && filter.tool.as_ref().is_none_or(|tool| **tool == *question.request.tool)
                && filter.replaces.as_ref().is_none_or(|id| question.request.replaces.as_ref() == Some(id))
        };
        let mut found: Vec<StoredApproval> =
            self.all.iter().rev().filter(lets_through).take(filter.limit.min(MOST)).cloned().collect();
        found.reverse();
        found
    }

    /// Whether a task waits for it still: it is open, or its yes was not used.
    pub(crate) fn can_go_on(&mut self, id: &ApprovalId, now: Timestamp) -> bool {
        self.expire(now);
        let found = self.all.iter().find(|question| question.request.id == *id);
        found.is_some_and(|found| matches!(found.state, ApprovalState::Open | ApprovalState::Approved))
    }

    /// Whether a task need not wait for it any more; with the arguments that a person gave the call before, where they
    /// did.
    pub(crate) fn is_answered(
        &mut self,
        tenant: &str,
        id: &ApprovalId,
        now: Timestamp,
    ) -> Option<Option<Arguments>> {
        let question = self.find(tenant, id, now).filter(|found| found.state != ApprovalState::Open)?;
        let before = question.request.replaces.and_then(|id| self.find(tenant, &id, now));
        Some(before.and_then(|before| before.edited))
    }

    /// Nobody can agree any more to what a task asked that was cancelled.
    pub(crate) fn withdraw(&mut self, tenant: &str, id: &ApprovalId, now: Timestamp) {
        if let Some(question) = self.one(tenant, id, now)
            && matches!(question.state, ApprovalState::Open | ApprovalState::Approved)
        {
            question.state = ApprovalState::Expired;
        }
    }

    pub(crate) fn revoke(&mut self, tenant: &str, id: &str, now: Timestamp) -> bool {
        let mut mine = self.grants.iter_mut().filter(|(of, _)| **of == *tenant).map(|(_, grant)| grant);
        match mine.find(|grant| grant.id == id && grant.revoked_at.is_none()) {
            Some(grant) => {
                grant.revoked_at = Some(now);
                true
            }
            None => false,
        }
    }

    pub(crate) fn grants(&self, tenant: &str, all: bool, now: Timestamp) -> Vec<StoredGrant> {
        let holds = |grant: &StoredGrant| {
            all || (grant.revoked_at.is_none() && grant.expires_at.is_none_or(|end| end > now))
        };
        let mine = self.grants.iter().filter(|(of, grant)| **of == *tenant && holds(grant));
        mine.map(|(_, grant)| grant.clone()).collect()
    }
}

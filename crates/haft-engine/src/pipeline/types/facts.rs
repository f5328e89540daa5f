//! What the stages find out about a call, for the record at its end.

use haft_core::{
    ApprovalId, AttemptRecord, Enforcement, ErrorCode, Metrics, Scheduling, Violation,
    port::{ClaimRequest, RuleName},
};
use std::time::Duration;

/// What the stages find out, for the record at the end.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) rule: Option<RuleName>,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) attempts: u32,
    /// Its intent was handed to the store.
    pub(crate) had_intent: bool,
    /// What held the present attempt in.
    pub(crate) enforcement: Option<Enforcement>,
    /// What is known about programs that the present attempt ran. Apart, because most calls run none.
    pub(crate) guest: Option<Box<GuestFacts>>,
    /// How the present attempt failed.
    pub(crate) failed: Option<ErrorCode>,
    /// The attempts before the present one, in order.
    pub(crate) earlier: Vec<PastAttempt>,
    pub(crate) coercions: Vec<String>,
    /// What happened around its start, where anything did.
    pub(crate) scheduling: Option<Box<Scheduling>>,
    /// The idempotency key that this call owns.
    pub(crate) claim: Option<Box<ClaimRequest>>,
}

impl Facts {
    /// Begins the next attempt: what was found out about the one before is that one's. Gives its number, from 1.
    pub(crate) fn next_attempt(&mut self, enforcement: Enforcement) -> u32 {
        if self.attempts > 0 {
            let code = self.failed.take();
            let (enforcement, guest) = (self.enforcement.take(), self.guest.take());
            self.earlier.push(PastAttempt { code, enforcement, guest });
        }
        self.enforcement = Some(enforcement);
        self.attempts += 1;
        self.attempts
    }

    /// The facts about the programs of one attempt, be it over: what it still says is not the next one's.
    pub(crate) fn guest_of(&mut self, attempt: u32) -> (&mut Option<Enforcement>, &mut GuestFacts) {
        let index = usize::try_from(attempt).unwrap_or(usize::MAX).saturating_sub(1);
        match self.earlier.get_mut(index) {
            Some(past) => (&mut past.enforcement, past.guest.get_or_insert_default()),
            None => (&mut self.enforcement, self.guest.get_or_insert_default()),
        }
    }

    /// What all attempts come to: each by itself where there were several, and what they used together.
    pub(crate) fn take_attempts(&mut self, code: Option<ErrorCode>) -> Attempts {
        let last = self.guest.take().map(|guest| *guest).unwrap_or_default();
        if self.earlier.is_empty() {
            let GuestFacts { sandbox, metrics, violations } = last;
            return Attempts { records: Vec::new(), sandbox, metrics, violations };
        }
        let mut all = Attempts { sandbox: last.sandbox.clone(), ..Attempts::default() };
        let earlier = std::mem::take(&mut self.earlier).into_iter().map(|past| {
            let guest = past.guest.map(|guest| *guest).unwrap_or_default();
            (past.code, past.enforcement, guest)
        });
        let every = earlier.chain([(code, self.enforcement.clone(), last)]);
        for (number, (code, enforcement, guest)) in (1..).zip(every) {
            let GuestFacts { sandbox: sandbox_id, metrics, violations } = guest;
            if let Some(used) = &metrics {
                let so_far = all.metrics.take().unwrap_or_default();
                all.metrics = Some(Box::new(so_far.and(used)));
            }
            all.violations.extend(violations);
            all.records.push(AttemptRecord { number, code, enforcement, sandbox_id, metrics });
        }
        all
    }
}

/// The attempts at a call, when it ends.
#[derive(Default)]
pub(crate) struct Attempts {
    /// Each by itself; empty where there was one, which is what the rest of the result is about.
    pub(crate) records: Vec<AttemptRecord>,
    /// The sandbox of the last one.
    pub(crate) sandbox: Option<String>,
    /// What all of them used.
    pub(crate) metrics: Option<Box<Metrics>>,
    /// What was stopped in any of them.
    pub(crate) violations: Vec<Violation>,
}

/// An attempt that failed and was followed by another one.
pub(crate) struct PastAttempt {
    pub(crate) code: Option<ErrorCode>,
    pub(crate) enforcement: Option<Enforcement>,
    pub(crate) guest: Option<Box<GuestFacts>>,
}

/// What is known about the programs of an attempt.
#[derive(Default)]
pub(crate) struct GuestFacts {
    pub(crate) sandbox: Option<String>,
    pub(crate) metrics: Option<Box<Metrics>>,
    pub(crate) violations: Vec<Violation>,
}

/// How long a call may take, and how much of its output reaches the caller.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) output: usize,
}

//! What the stages find out about a call, for the record at its end.

use haft_core::{
    ApprovalId, Arguments, AttemptRecord, Enforcement, ErrorCode, Footprint, Metrics, Scheduling,
    SettledChanges, Violation,
    port::{ChangeSets, ClaimRequest, RuleName, StagedRoot},
};
use std::{
    any::Any,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// What the stages find out, for the record at the end.
#[derive(Default)]
pub(crate) struct Facts {
    /// Its first event was sent.
    pub(crate) is_announced: bool,
    /// The rule that decided.
    pub(crate) rule: Option<RuleName>,
    /// The approval that was asked for.
    pub(crate) approval: Option<ApprovalId>,
    /// What the plan allows, once it is made.
    pub(crate) bounds: Option<Bounds>,
    /// The arguments that a person put in place of those that were sent.
    pub(crate) edited: Option<Arguments>,
    /// What it spent waiting for its turn: that time is not its own.
    pub(crate) waited: Duration,
    /// How many attempts were begun.
    pub(crate) attempts: u32,
    /// When its time is over, once its turn has come: all attempts and the waits between them share it. `None` where
    /// that is too far away to be named.
    pub(crate) deadline: Option<Instant>,
    /// Its intent was handed to the store.
    pub(crate) had_intent: bool,
    /// The present attempt. Its tool may still say something about it.
    pub(crate) present: Option<Arc<AttemptFacts>>,
    /// The attempts before the present one, in order.
    pub(crate) earlier: Vec<Arc<AttemptFacts>>,
    /// What was made of the arguments to fit the schema.
    pub(crate) coercions: Vec<String>,
    /// What happened around its start, where anything did.
    pub(crate) scheduling: Option<Box<Scheduling>>,
    /// The idempotency key that this call owns.
    pub(crate) claim: Option<Box<ClaimRequest>>,
    /// What is known about a call whose command writes apart from the files, or should have. Apart, because most do
    /// not.
    pub(crate) staging: Option<Box<StagingFacts>>,
}

impl Facts {
    /// Whether what the present attempt writes is kept apart.
    pub(crate) fn is_staged(&self) -> bool {
        let guest = |found: &AttemptFound| found.guest.as_ref().is_some_and(|guest| guest.staged.is_some());
        self.present.as_ref().is_some_and(|present| guest(&present.found()))
    }

    /// Begins the next attempt. Gives its number, from 1, and where what is found out about it goes.
    pub(crate) fn next_attempt(&mut self, enforcement: Enforcement) -> (u32, Arc<AttemptFacts>) {
        let next = Arc::new(AttemptFacts::new(enforcement));
        if let Some(past) = self.present.replace(Arc::clone(&next)) {
            // Its folders are free for the next attempt, which throws away what it wrote.
            past.found().guest.as_mut().and_then(|guest| guest.staged.take());
            self.earlier.push(past);
        }
        self.attempts += 1;
        (self.attempts, next)
    }

    /// What all attempts come to: each by itself where there were several, and what they used together.
    pub(crate) fn take_attempts(&mut self, code: Option<ErrorCode>) -> Attempts {
        let Some(last) = self.present.take() else { return Attempts::default() };
        let last = last.take();
        if self.earlier.is_empty() {
            let AttemptFound { enforcement, guest, code: _ } = last;
            let GuestFacts { sandbox, metrics, violations, staged: _ } =
                guest.map(|guest| *guest).unwrap_or_default();
            return Attempts { records: Vec::new(), enforcement, sandbox, metrics, violations };
        }
        let enforcement = last.enforcement.clone();
        let sandbox = last.guest.as_ref().and_then(|guest| guest.sandbox.clone());
        let mut all = Attempts { enforcement, sandbox, ..Attempts::default() };
        let earlier = std::mem::take(&mut self.earlier).into_iter().map(|past| past.take());
        let every = earlier.chain([AttemptFound { code, ..last }]);
        for (number, found) in (1..).zip(every) {
            let AttemptFound { code, enforcement, guest } = found;
            let GuestFacts { sandbox: sandbox_id, metrics, violations, staged: _ } =
                guest.map(|guest| *guest).unwrap_or_default();
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
    /// What held the last one in.
    pub(crate) enforcement: Option<Enforcement>,
    /// The sandbox of the last one.
    pub(crate) sandbox: Option<String>,
    /// What all of them used.
    pub(crate) metrics: Option<Box<Metrics>>,
    /// What was stopped in any of them.
    pub(crate) violations: Vec<Violation>,
}

/// What is found out about one attempt. Shared with its tool, which may run programs and say so from any thread, and
/// late: what it says after its end is still this attempt's.
pub(crate) struct AttemptFacts {
    found: Mutex<AttemptFound>,
    /// When its tool last put something out or reported progress, in milliseconds since the call came in.
    last_sign_of_life: AtomicU64,
}

/// What was found out about one attempt.
#[derive(Default)]
pub(crate) struct AttemptFound {
    /// How it failed.
    pub(crate) code: Option<ErrorCode>,
    /// What held it in.
    pub(crate) enforcement: Option<Enforcement>,
    /// What is known about programs that it ran. Apart, because most calls run none.
    pub(crate) guest: Option<Box<GuestFacts>>,
}

impl AttemptFacts {
    pub(crate) fn new(enforcement: Enforcement) -> Self {
        let found = AttemptFound { enforcement: Some(enforcement), ..AttemptFound::default() };
        AttemptFacts { found: Mutex::new(found), last_sign_of_life: AtomicU64::new(0) }
    }

    pub(crate) fn found(&self) -> MutexGuard<'_, AttemptFound> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> AttemptFound {
        std::mem::take(&mut *self.found())
    }

    /// The tool has said something, so long after the call came in.
    pub(crate) fn is_alive(&self, elapsed: Duration) {
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.last_sign_of_life.store(elapsed, Ordering::Relaxed);
    }

    /// When the tool last said something, as time since the call came in.
    pub(crate) fn last_sign_of_life(&self) -> Duration {
        Duration::from_millis(self.last_sign_of_life.load(Ordering::Relaxed))
    }
}

/// What is known about the programs of an attempt.
#[derive(Default)]
pub(crate) struct GuestFacts {
    pub(crate) sandbox: Option<String>,
    pub(crate) metrics: Option<Box<Metrics>>,
    pub(crate) violations: Vec<Violation>,
    /// What its program writes apart from the files.
    pub(crate) staged: Option<StagedRun>,
}

/// A program whose writes are kept apart.
pub(crate) struct StagedRun {
    /// Where they are kept.
    pub(crate) sets: Arc<dyn ChangeSets>,
    /// Keeps others from changing the same folders.
    pub(crate) held: Box<dyn Any + Send + Sync>,
    /// What it wrote, once it has ended.
    pub(crate) roots: Option<Vec<StagedRoot>>,
    /// It ended by itself, with an exit code.
    pub(crate) is_own_exit: bool,
}

/// What is known about a call whose command writes apart from the files, or should have.
#[derive(Default)]
pub(crate) struct StagingFacts {
    /// What the call does, in one line.
    pub(crate) does: String,
    /// What it touches, as it was decided on.
    pub(crate) footprint: Footprint,
    /// Where its changes are, while they are settled.
    pub(crate) settling: Option<Arc<dyn ChangeSets>>,
    /// What became of its changes.
    pub(crate) settled: Option<SettledChanges>,
}

/// How long a call may take, and how much of its output reaches the caller.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) output: usize,
}

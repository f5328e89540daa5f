//! Approvals, as every face uses them: the command line, the prompt at a terminal, HTTP and MCP.
//!
//! | module | what |
//! |---|---|
//! | [`decide`] | what an answer comes to, and why it is refused: pure |
//! | [`error`] | why not, in words |
//!
//! An approval is answered through the store, so it does not matter which process waits for it. Nothing here needs a
//! running engine: [`Approvals::over`] is enough to answer what another process asks.

mod decide;
mod error;

pub use decide::{GrantTime, LONGEST_GRANT, Remember, Reply, WhichOffer};
pub use error::{ApprovalError, standing};

use crate::ports::SystemClock;
use decide::decide;
use haft_core::{
    ApprovalId, ApprovalRequest, Channel, Decision,
    id_prefix::{self, IdMatch},
    port::{
        AcceptAnswers, Answer, ApprovalFilter, ApprovalState, Clock, StoredApproval, StoredGrant, TenantStore,
    },
};
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// How often it is looked for what another process wrote.
const LOOK: Duration = Duration::from_millis(100);
/// How long nobody has taken a changed call, before it is clear that nobody waits for it.
const UNTAKEN: Duration = Duration::from_secs(1);
/// How many earlier approvals of a tool are looked at.
const PAST: usize = 500;

/// The approvals and grants of one tenant. Cheap to clone.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use haft_core::{Channel, port::{AcceptAnswers, Store as _}};
/// use haft_engine::{Approvals, Reply};
/// # let store = haft_store::MemoryStore::new();
/// // In any process that has the store: `engine.approvals("local")` is the same with an engine.
/// let approvals = Approvals::over(store.for_tenant("local"), AcceptAnswers::default());
/// for approval in approvals.open().await? {
///     approvals.answer(&approval.request.id, Reply::approve(), "ada", Channel::CommandLine).await?;
/// }
/// # Ok::<(), haft_engine::ApprovalError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Approvals {
    list: Arc<dyn TenantStore>,
    accepts: AcceptAnswers,
    clock: Arc<dyn Clock>,
}

/// An answer that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The approval with its answer.
    pub approval: StoredApproval,
    /// What haft remembers from now on.
    pub grant: Option<StoredGrant>,
}

impl Approvals {
    /// The approvals of one tenant in a store, where answers are accepted from there. Needs no engine.
    pub fn over(list: impl Into<Arc<dyn TenantStore>>, accepts: AcceptAnswers) -> Self {
        Approvals { list: list.into(), accepts, clock: Arc::new(SystemClock) }
    }

    /// The same, with another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Those that the filter lets through, oldest first.
    pub async fn list(&self, filter: ApprovalFilter) -> Result<Vec<StoredApproval>, ApprovalError> {
        Ok(self.list.approvals(filter).await?)
    }

    /// Those that wait for an answer, oldest first.
    pub async fn open(&self) -> Result<Vec<StoredApproval>, ApprovalError> {
        let open = ApprovalFilter { state: Some(ApprovalState::Open), ..ApprovalFilter::default() };
        self.list(open).await
    }

    /// One approval, by its whole id.
    pub async fn get(&self, id: &ApprovalId) -> Result<StoredApproval, ApprovalError> {
        let found = self.list.approval(id).await?;
        found.ok_or_else(|| ApprovalError::NotFound { id: id.to_string() })
    }

    /// One approval, by its id or a prefix of it. Where one that is open fits, those that are over do not count.
    pub async fn find(&self, typed: &str) -> Result<StoredApproval, ApprovalError> {
        let none = || ApprovalError::NotFound { id: typed.to_owned() };
        if let Some(found) = self.list.approval(&ApprovalId::from_text(typed)).await? {
            return Ok(found);
        }
        if !id_prefix::is_prefix(typed, "apr_") {
            return Err(none());
        }
        let mut fitting = self.list(ApprovalFilter { limit: 10_000, ..ApprovalFilter::default() }).await?;
        fitting.retain(|found| found.request.id.as_str().starts_with(typed.trim()));
        if fitting.iter().any(|found| found.state == ApprovalState::Open) {
            fitting.retain(|found| found.state == ApprovalState::Open);
        }
        let matches: Vec<_> = fitting
            .iter()
            .map(|found| IdMatch { id: found.request.id.to_string(), what: found.request.tool.to_string() })
            .collect();
        let id = id_prefix::only(typed, &matches)?.ok_or_else(none)?;
        fitting.into_iter().find(|found| found.request.id.as_str() == id).ok_or_else(none)
    }

    /// Earlier approvals of the same tool: what a grant would have spared can be counted on them.
    pub async fn past(&self, request: &ApprovalRequest) -> Result<Vec<StoredApproval>, ApprovalError> {
        let tool = Some(request.tool.to_string());
        let mut past = self.list(ApprovalFilter { tool, limit: PAST, ..ApprovalFilter::default() }).await?;
        past.retain(|other| other.request.id != request.id);
        Ok(past)
    }

    /// Whether answers by that way are accepted. One that is not would use the approval up.
    pub fn accepts(&self, from: Channel) -> Result<(), ApprovalError> {
        match self.accepts.counts(from) {
            true => Ok(()),
            false => Err(ApprovalError::NotAccepted { from }),
        }
    }

    /// Whether [`answer`](Self::answer) would take this answer now. Changes nothing.
    pub fn check(
        &self,
        approval: &StoredApproval,
        reply: &Reply,
        from: Channel,
    ) -> Result<(), ApprovalError> {
        self.accepts(from)?;
        decide(approval, reply, ("", from), self.clock.now()).map(drop)
    }

    /// Answers an approval, once, for everybody: by whom, and by which way. The decision and the grant that comes of it
    /// are one write of the store.
    ///
    /// # Errors
    ///
    /// Where there is no such approval, it is not open (any more), answers from there are not accepted, or the answer
    /// does not fit: then nothing is changed.
    pub async fn answer(
        &self,
        id: &ApprovalId,
        reply: Reply,
        by: &str,
        from: Channel,
    ) -> Result<Answered, ApprovalError> {
        self.accepts(from)?;
        let approval = self.get(id).await?;
        let (decision, grant) = decide(&approval, &reply, (by, from), self.clock.now())?;
        let answer = Answer { decision: decision.clone(), by: by.to_owned(), from };
        if !self.list.answer_with_grant(id, answer, grant.clone()).await? {
            // Somebody was faster, or it expired.
            return Err(ApprovalError::NotOpen(Box::new(self.get(id).await?)));
        }
        // The answer is there, whether or not it can be read back.
        let approval = self.get(id).await.unwrap_or(StoredApproval {
            state: state_after(&decision),
            answered_at: Some(self.clock.now()),
            answered_by: Some(by.to_owned()),
            answered_from: Some(from),
            ..approval
        });
        Ok(Answered { approval, grant })
    }

    /// Waits until it is not open any more, or the time is over, and gives it as it stands then.
    pub async fn wait(
        &self,
        id: &ApprovalId,
        at_most: Option<Duration>,
    ) -> Result<StoredApproval, ApprovalError> {
        let until = at_most.map(|time| Instant::now() + time);
        loop {
            let approval = self.get(id).await?;
            let now = Instant::now();
            if approval.state != ApprovalState::Open || until.is_some_and(|until| now >= until) {
                return Ok(approval);
            }
            let look = now + LOOK;
            tokio::time::sleep_until(until.map_or(look, |until| until.min(look))).await;
        }
    }

    /// The approval of a changed call, once the process that makes the call has planned it; `None` where nobody waits
    /// for it.
    pub async fn replacement(
        &self,
        id: &ApprovalId,
        at_most: Duration,
    ) -> Result<Option<StoredApproval>, ApprovalError> {
        let begun = Instant::now();
        let filter = ApprovalFilter { replaces: Some(id.clone()), ..ApprovalFilter::default() };
        loop {
            if let Some(changed) = self.list(filter.clone()).await?.pop() {
                return Ok(Some(changed));
            }
            // Nobody has taken the answer: nobody waits.
            let is_taken = self.get(id).await?.used_by.is_some();
            if begun.elapsed() > at_most || (!is_taken && begun.elapsed() > UNTAKEN.min(at_most)) {
                return Ok(None);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Every approval that is open now or comes later, each once.
    pub fn subscribe(&self) -> OpenApprovals {
        OpenApprovals { approvals: self.clone(), told: HashSet::new(), next: VecDeque::new() }
    }

    /// The grants that hold now, oldest first; with `all`, also those that have expired or were revoked.
    pub async fn grants(&self, all: bool) -> Result<Vec<StoredGrant>, ApprovalError> {
        Ok(self.list.grants(all).await?)
    }

    /// Revokes a grant. False where there is none of that id, or not any more.
    pub async fn revoke(&self, id: &str, by: &str) -> Result<bool, ApprovalError> {
        Ok(self.list.revoke(id, by).await?)
    }
}

fn state_after(decision: &Decision) -> ApprovalState {
    match decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Deny { .. } => ApprovalState::Denied,
        Decision::Edit { .. } => ApprovalState::Edited,
        Decision::Expired => ApprovalState::Expired,
        Decision::Unanswered => ApprovalState::Open,
    }
}

/// Open approvals, as they come. See [`Approvals::subscribe`].
pub struct OpenApprovals {
    approvals: Approvals,
    /// Those that were given already and are open still.
    told: HashSet<ApprovalId>,
    next: VecDeque<StoredApproval>,
}

impl OpenApprovals {
    /// The next one that is open. Waits for one, and loses none where the future is dropped.
    pub async fn next(&mut self) -> Result<StoredApproval, ApprovalError> {
        loop {
            if let Some(approval) = self.next.pop_front() {
                return Ok(approval);
            }
            let open = self.approvals.open().await?;
            // What is over does not come back: it need not be remembered.
            let ids: HashSet<&ApprovalId> = open.iter().map(|approval| &approval.request.id).collect();
            self.told.retain(|id| ids.contains(id));
            self.next
                .extend(open.into_iter().filter(|approval| self.told.insert(approval.request.id.clone())));
            if self.next.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}

//! A store that lasts as long as the process.

use crate::{memory_approvals::Approvals, memory_changes::ChangeSteps, memory_tasks::Tasks};
use haft_core::{
    ApprovalId, ApprovalRequest, Arguments, ExecutionId, OutputHandle, Status, Task, TaskId, TaskPage,
    TaskProgress, TaskQuery, ToolResult,
    port::{
        Answer, ApprovalFilter, AuditPage, AuditQuery, AuditRecord, BoxFuture, CallEnd, ChangesStep, Claim,
        ClaimRequest, ClaimedTask, FoundLines, Intent, JournalStep, NewTask, OutputRange, OutputSearch,
        PageKey, Settlement, Store, StoreError, StoredApproval, StoredGrant, StoredPart, TakenAnswer,
        TaskCancel, TaskStore, TenantStore, ToolStatistics, Wants,
    },
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How much a [`MemoryStore`] keeps. What is older goes, and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Audit records.
    pub audit_records: usize,
    /// Bytes of stored outputs, all together.
    pub output_bytes: usize,
    /// Settled idempotency keys.
    pub settled_keys: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { audit_records: 1_000, output_bytes: 64 << 20, settled_keys: 1_000 }
    }
}

/// A store that lasts as long as the process: for tests, for embedding, and until a durable one is configured.
///
/// ```
/// use haft_core::port::Store;
/// let store = haft_store::MemoryStore::new();
/// let _reader = store.for_tenant("acme");
/// assert_eq!(store.forgotten(), 0);
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    retention: Retention,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    audit: VecDeque<AuditRecord>,
    forgotten: u64,
    intents: HashMap<ExecutionId, Intent>,
    claims: HashMap<Key, (Arguments, Held)>,
    settled: VecDeque<Key>,
    outputs: HashMap<OutputHandle, (Arc<str>, Arc<Vec<u8>>)>,
    output_order: VecDeque<OutputHandle>,
    output_bytes: usize,
    tasks: Tasks,
    approvals: Approvals,
    changes: ChangeSteps,
}

/// Tenant, principal, tool and key: nobody can hit another's.
type Key = [Arc<str>; 4];

enum Held {
    InFlight(ExecutionId),
    Left(Settlement),
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// An empty one that keeps so much.
    pub fn with_retention(retention: Retention) -> Self {
        MemoryStore(Arc::new(Shared { retention, state: Mutex::default() }))
    }

    /// How many audit records were let go because there were too many.
    pub fn forgotten(&self) -> u64 {
        self.0.state().forgotten
    }

    /// The grants of a tenant that hold now, for a decision that cannot wait.
    pub fn grants_now(&self, tenant: &str) -> Vec<StoredGrant> {
        self.0.state().approvals.grants(tenant, false, Timestamp::now())
    }

    /// Calls with side effects that were started and have no outcome yet.
    pub fn open_intents(&self) -> usize {
        self.0.state().intents.len()
    }
}

impl Shared {
    // A panic while the lock is held cannot leave half a record: every change is one insertion or removal.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key_of(request: &ClaimRequest) -> Key {
    [&request.tenant, &request.principal, &request.tool, &request.key].map(Arc::clone)
}

fn done<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(ready(Ok(value)))
}

impl Store for MemoryStore {
    fn wants(&self) -> Wants {
        Wants { questions: true, ..Wants::default() }
    }

    fn journal<'a>(&'a self, step: JournalStep) -> BoxFuture<'a, Result<(), StoreError>> {
        if let JournalStep::Changes { execution_id, tenant, step, .. } = step {
            let most = self.0.retention.audit_records;
            return Box::pin(ready(self.0.state().changes.step(execution_id, tenant, step, most)));
        }
        // It says that it wants none.
        Box::pin(std::future::ready(Err(StoreError("this store keeps no journal".to_owned()))))
    }

    fn intent<'a>(&'a self, intent: Intent) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut state = self.0.state();
        if let Err(error) = state.approvals.use_up(&intent, Timestamp::now()) {
            return Box::pin(ready(Err(error)));
        }
        state.intents.insert(intent.execution_id, intent);
        done(())
    }

    fn outcome<'a>(&'a self, outcome: CallEnd) -> BoxFuture<'a, Result<(), StoreError>> {
        let retention = self.0.retention;
        let mut state = self.0.state();
        // Also where it never started: it may have ended between its intent and its start.
        if !state.intents.is_empty() {
            state.intents.remove(&outcome.audit.metadata.execution_id);
        }
        state.changes.ended(&outcome.audit.metadata);
        if let Some((request, settlement)) = outcome.settles {
            state.settle(request, settlement, retention.settled_keys);
        }
        if let Some((task, result)) = outcome.task {
            let State { tasks, approvals, .. } = &mut *state;
            tasks.ended(&task, result, approvals, Timestamp::now());
        }
        state.audit.push_back(outcome.audit);
        let mut oldest = None;
        if state.audit.len() > retention.audit_records {
            oldest = state.audit.pop_front();
            state.forgotten += 1;
        }
        // Freed outside the lock: others wait for it.
        drop(state);
        drop(oldest);
        done(())
    }

    fn claim<'a>(&'a self, request: ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        let key = key_of(&request);
        let mut state = self.0.state();
        let claim = match state.claims.get(&key) {
            Some((arguments, _)) if *arguments != request.arguments => Claim::Conflict,
            Some((_, Held::InFlight(by))) => Claim::InFlight(*by),
            Some((_, Held::Left(Settlement::Result(result)))) => Claim::Settled(Arc::clone(result)),
            Some((_, Held::Left(Settlement::Waiting(approval)))) => {
                let approval = approval.clone();
                state.claims.insert(key, (request.arguments, Held::InFlight(request.execution_id)));
                Claim::Waiting(approval)
            }
            Some((_, Held::Left(Settlement::Released))) | None => {
                state.claims.insert(key, (request.arguments, Held::InFlight(request.execution_id)));
                Claim::Fresh
            }
        };
        done(claim)
    }

    fn keep_output<'a>(
        &'a self,
        tenant: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<OutputHandle, StoreError>> {
        let handle = OutputHandle::random();
        let limit = self.0.retention.output_bytes;
        let mut state = self.0.state();
        state.output_bytes += bytes.len();
        state.outputs.insert(handle.clone(), (tenant.into(), Arc::new(bytes)));
        state.output_order.push_back(handle.clone());
        // The newest always stays, however large it is: somebody was just given its handle.
        while state.output_bytes > limit && state.output_order.len() > 1 {
            if let Some(oldest) = state.output_order.pop_front()
                && let Some((_, bytes)) = state.outputs.remove(&oldest)
            {
                state.output_bytes -= bytes.len();
            }
        }
        done(handle)
    }

    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), StoreError>> {
        done(())
    }

    fn tasks(&self) -> Result<&dyn TaskStore, StoreError> {
        Ok(self)
    }

    fn for_tenant(&self, tenant: &str) -> Box<dyn TenantStore> {
        Box::new(OneTenant { tenant: tenant.into(), shared: Arc::clone(&self.0) })
    }
}

impl TaskStore for MemoryStore {
    fn submit<'a>(&'a self, task: NewTask) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.state().tasks.submit(task);
        done(())
    }

    fn take_over<'a>(
        &'a self,
        runner: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimedTask>, StoreError>> {
        let State { tasks, approvals, .. } = &mut *self.0.state();
        done(tasks.take_over(runner, most, approvals, Timestamp::now()))
    }

    fn begin<'a>(
        &'a self,
        id: &'a TaskId,
        execution_id: ExecutionId,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        done(self.0.state().tasks.begin(id, execution_id, Timestamp::now()))
    }

    fn note<'a>(
        &'a self,
        notes: Vec<(TaskId, TaskProgress)>,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        done(self.0.state().tasks.note(notes, Timestamp::now()))
    }

    fn asks<'a>(
        &'a self,
        id: &'a TaskId,
        approval: Option<ApprovalId>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.state().tasks.asks(id, approval);
        done(())
    }

    fn finish<'a>(
        &'a self,
        id: &'a TaskId,
        result: Arc<ToolResult>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.state().tasks.finish(id, result, Timestamp::now());
        done(())
    }

    fn find<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        done(self.0.state().tasks.find(tenant, id, Timestamp::now()))
    }

    fn list<'a>(&'a self, tenant: &'a str, query: TaskQuery) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        done(self.0.state().tasks.list(tenant, &query, Timestamp::now()))
    }

    fn cancel<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<TaskCancel, StoreError>> {
        let State { tasks, approvals, .. } = &mut *self.0.state();
        done(tasks.cancel(tenant, id, approvals, Timestamp::now()))
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<u64, StoreError>> {
        done(self.0.state().tasks.sweep(Timestamp::now()))
    }
}

impl State {
    fn settle(&mut self, request: ClaimRequest, settlement: Settlement, keep: usize) {
        let key = key_of(&request);
        let is_owner =
            matches!(self.claims.get(&key), Some((_, Held::InFlight(by))) if *by == request.execution_id);
        if !is_owner {
            return;
        }
        let arguments = request.arguments;
        if matches!(settlement, Settlement::Released) {
            self.claims.remove(&key);
            return;
        }
        self.claims.insert(key.clone(), (arguments, Held::Left(settlement)));
        self.settled.push_back(key);
        if self.settled.len() > keep
            && let Some(oldest) = self.settled.pop_front()
            && matches!(self.claims.get(&oldest), Some((_, Held::Left(_))))
        {
            self.claims.remove(&oldest);
        }
    }
}

struct OneTenant {
    tenant: Arc<str>,
    shared: Arc<Shared>,
}

impl TenantStore for OneTenant {
    fn audit<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<AuditRecord>, StoreError>> {
        let state = self.shared.state();
        let mine = state.audit.iter().rev().filter(|record| record.context.tenant == self.tenant);
        done(mine.take(limit).cloned().collect())
    }

    fn output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, StoreError>> {
        let Some(stored) = self.output_of(handle) else { return done(None) };
        let clamp = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(stored.len());
        let part = &stored[clamp(range.offset)..clamp(range.offset.saturating_add(range.length))];
        done(Some((part.to_vec(), stored.len() as u64)))
    }

    fn search_output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        search: OutputSearch,
    ) -> BoxFuture<'a, Result<Option<FoundLines>, StoreError>> {
        let Some(stored) = self.output_of(handle) else { return done(None) };
        Box::pin(ready(crate::lines::search(&stored, &search).map(Some).map_err(StoreError)))
    }

    fn changes<'a>(&'a self, id: ExecutionId) -> BoxFuture<'a, Result<Option<ChangesStep>, StoreError>> {
        done(self.shared.state().changes.find(&self.tenant, id))
    }

    fn audit_page<'a>(&'a self, query: AuditQuery) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        let mut found = self.matching(&query);
        found.retain(|(key, _)| query.after.is_none_or(|after| *key < after));
        found.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
        let limit = query.limit.clamp(1, 1000);
        let next = (found.len() > limit).then(|| found[limit - 1].0);
        let records = found.into_iter().take(limit).map(|(key, record)| (key.seq, record)).collect();
        done(AuditPage { records, next })
    }

    fn ask<'a>(
        &'a self,
        request: ApprovalRequest,
        not: Vec<ApprovalId>,
    ) -> BoxFuture<'a, Result<ApprovalId, StoreError>> {
        if request.asker.tenant != self.tenant {
            return Box::pin(ready(Err(StoreError("the question is another tenant's".to_owned()))));
        }
        done(self.shared.state().approvals.ask(&self.tenant, request, &not, Timestamp::now()))
    }

    fn take_answer<'a>(
        &'a self,
        id: &'a ApprovalId,
        call: ExecutionId,
    ) -> BoxFuture<'a, Result<TakenAnswer, StoreError>> {
        done(self.shared.state().approvals.take(&self.tenant, id, call, Timestamp::now()))
    }

    fn answer_with_grant<'a>(
        &'a self,
        id: &'a ApprovalId,
        answer: Answer,
        grant: Option<StoredGrant>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let approvals = &mut self.shared.state().approvals;
        Box::pin(ready(approvals.answer(&self.tenant, id, answer, grant, Timestamp::now())))
    }

    fn approval<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, StoreError>> {
        done(self.shared.state().approvals.find(&self.tenant, id, Timestamp::now()))
    }

    fn approvals<'a>(
        &'a self,
        filter: ApprovalFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, StoreError>> {
        done(self.shared.state().approvals.list(&self.tenant, &filter, Timestamp::now()))
    }

    fn revoke<'a>(&'a self, id: &'a str, _by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        done(self.shared.state().approvals.revoke(&self.tenant, id, Timestamp::now()))
    }

    fn grants<'a>(&'a self, all: bool) -> BoxFuture<'a, Result<Vec<StoredGrant>, StoreError>> {
        done(self.shared.state().approvals.grants(&self.tenant, all, Timestamp::now()))
    }

    fn statistics<'a>(&'a self, query: AuditQuery) -> BoxFuture<'a, Result<Vec<ToolStatistics>, StoreError>> {
        let mut tools: BTreeMap<String, Vec<(bool, f64)>> = BTreeMap::new();
        for (_, record) in self.matching(&AuditQuery { text: None, ..query }) {
            let call = (record.status == Status::Success, record.metadata.duration.as_secs_f64() * 1000.0);
            tools.entry(record.tool.to_string()).or_default().push(call);
        }
        done(tools.into_iter().map(|(tool, calls)| ToolStatistics::of(tool, calls)).collect())
    }
}

impl OneTenant {
    /// The bytes of an output, where they are this tenant's.
    fn output_of(&self, handle: &OutputHandle) -> Option<Arc<Vec<u8>>> {
        let state = self.shared.state();
        let (tenant, bytes) = state.outputs.get(handle)?;
        (*tenant == self.tenant).then(|| Arc::clone(bytes))
    }

    /// What the query lets through, but for its place and its limit.
    fn matching(&self, query: &AuditQuery) -> Vec<(PageKey, AuditRecord)> {
        let state = self.shared.state();
        let first = i64::try_from(state.forgotten).unwrap_or(i64::MAX);
        let numbered = state.audit.iter().zip(first + 1..);
        let mine =
            numbered.filter(|(record, _)| record.context.tenant == self.tenant && matches(query, record));
        let keyed = mine.map(|(record, seq)| {
            (PageKey { at: record.metadata.started_at.as_microsecond(), seq }, record.clone())
        });
        keyed.collect()
    }
}

fn matches(query: &AuditQuery, record: &AuditRecord) -> bool {
    let at = record.metadata.started_at;
    let contains = |text: &String| {
        let text = text.to_lowercase();
        [&*record.tool, &*record.call_id, &*record.context.agent, record.diagnostics.as_deref().unwrap_or("")]
            .iter()
            .any(|field| field.to_lowercase().contains(&text))
    };
    query.from.is_none_or(|from| at >= from)
        && query.until.is_none_or(|until| at < until)
        && query.tool.as_deref().is_none_or(|tool| tool == &*record.tool)
        && query.agent.as_deref().is_none_or(|agent| agent == &*record.context.agent)
        && query.batch.is_none_or(|batch| record.metadata.batch_id == Some(batch))
        && query.status.is_none_or(|status| status == record.status)
        && query.code.is_none_or(|code| record.code == Some(code))
        && query.text.as_ref().is_none_or(contains)
}

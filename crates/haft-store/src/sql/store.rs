//! The durable store: everything behind the port.

use super::{
    claims, gc, instances,
    instances::Lives,
    journal, keys, open,
    options::{Durability, Options},
    outputs, projection,
    readers::Readers,
    running, tasks,
    tenant::Tenant,
    value::{Fault, Sql},
    work::Work,
    writer::{Connect, Handed, Parts, Writer},
};
use haft_core::{
    ApprovalId, ErrorCode, ExecutionId, OutputHandle, Task, TaskId, TaskPage, TaskProgress, TaskQuery,
    ToolResult,
    port::{
        ApiKey, BoxFuture, CallEnd, ChangesStep, Claim, ClaimRequest, ClaimedTask, Intent, JournalStep,
        KeyStore, NewTask, RunningOutput, SecretHash, Store, StoreError, TaskCancel, TaskStore, TenantStore,
        Wants,
    },
};
use std::{
    any::Any,
    future::ready,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a store is put together from.
pub(crate) struct Foundation {
    pub(crate) place: String,
    pub(crate) folder: PathBuf,
    pub(crate) writing: Box<dyn Connect>,
    pub(crate) sql: Box<dyn Sql + Send>,
    pub(crate) reading: Vec<Box<dyn Connect>>,
    pub(crate) instance: String,
    pub(crate) lives: Arc<dyn Lives>,
    /// Shows others that this process lives, until it is dropped.
    pub(crate) presence: Box<dyn Any + Send + Sync>,
    pub(crate) chain_id: String,
    pub(crate) options: Options,
    /// The database itself, where it is a file.
    pub(crate) file: Option<PathBuf>,
}

/// A store that a crash cannot confuse: journal, audit, results, outputs, idempotency keys, approvals.
///
/// Cheap to clone; all clones are the same store. When the last one is dropped, everything handed over is written and
/// the process takes itself off the list of those that use the database.
#[derive(Clone)]
pub struct DurableStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) place: String,
    pub(crate) folder: PathBuf,
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    pub(crate) options: Options,
    pub(crate) chain_id: String,
    pub(crate) file: Option<PathBuf>,
    pub(crate) running: Arc<running::Calls>,
    instance: String,
    _presence: Box<dyn Any + Send + Sync>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Handed over last, so everything before it is written first. Should it fail, the next one to open looks after
        // this process as if it had crashed, and finds everything recorded.
        let left = self.writer.submit("leave", false, instances::leave);
        self.writer.close();
        drop(left);
    }
}

impl DurableStore {
    pub(crate) fn found(foundation: Foundation) -> Result<Self, Fault> {
        let Foundation {
            place,
            folder,
            writing,
            sql,
            reading,
            instance,
            lives,
            presence,
            chain_id,
            options,
            file,
        } = foundation;
        let writer = Writer::start(Parts {
            connect: writing,
            sql,
            instance: instance.clone(),
            lives,
            options: options.clone(),
            chain_id: chain_id.clone(),
        })?;
        let readers = Readers::start(reading)?;
        let inner = Inner {
            place,
            folder,
            writer,
            readers,
            options,
            chain_id,
            file,
            running: Arc::default(),
            instance,
            _presence: presence,
        };
        let entered = inner.writer.submit("enter", false, open::enter).wait_blocking();
        entered.map_err(|error| Fault::new(super::value::FaultKind::Other, error.0))?;
        Ok(DurableStore(Arc::new(inner)))
    }

    /// Where it is, for people. Without a password.
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// The folder with the keys, backups and archives.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// This process, among those that share the store.
    pub fn instance(&self) -> &str {
        &self.0.instance
    }

    /// The view of one tenant, with what the port does not have.
    pub fn tenant(&self, tenant: &str) -> Tenant {
        Tenant::new(tenant, Arc::clone(&self.0))
    }

    /// Writes what was handed over, and takes this process off the list of those that use the database: for a process
    /// that is about to end and cannot wait until everybody has let go of the store.
    pub async fn leave(&self) -> Result<(), StoreError> {
        self.0.write("leave", instances::leave).await
    }

    /// How many tasks of that kind of runner are not over.
    pub async fn open_tasks(&self, runner: &str) -> Result<u64, StoreError> {
        let runner = runner.to_owned();
        self.0.write("task_count", move |work| tasks::open(work, &runner)).await
    }

    /// Ends a task that this process took over and cannot run, with a record that says why.
    pub async fn refuse_task(&self, id: &TaskId, code: ErrorCode, why: &str) -> Result<(), StoreError> {
        let (id, why) = (id.clone(), why.to_owned());
        self.0.write("task_refuse", move |work| tasks::end_at_once(work, id.as_str(), code, &why)).await
    }

    /// Lets go what is too old or too much: results, outputs, idempotency keys, batches that are over.
    pub async fn gc(&self) -> Result<gc::Gone, StoreError> {
        self.0.write("gc", gc::gc).await
    }
}

impl Inner {
    /// Changes something, and waits until it is safe.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        change: impl FnMut(&mut Work<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.submit(name, false, change).wait().await
    }

    /// Reads something, after everything that was handed over before can be seen.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Sql) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        // Where it cannot be brought up to date, what is there is still worth reading; writing says what is wrong.
        let _ = self.write("catch_up", projection::catch_up).await;
        self.readers.read(read).await
    }

    /// Hands over a record. Waits for the disk where `urgent`, else only where too many wait.
    fn record<'a>(
        &'a self,
        name: &'static str,
        urgent: bool,
        change: impl FnMut(&mut Work<'_>) -> Result<(), Fault> + Send + 'static,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if urgent {
            return Box::pin(self.writer.submit(name, true, change).wait());
        }
        let handed: Handed<'a> = self.writer.hand_over(name, change);
        match handed.is_settled() {
            true => Box::pin(ready(Ok(()))),
            false => Box::pin(handed.wait()),
        }
    }

    fn is_full(&self) -> bool {
        self.options.durability == Durability::Full
    }
}

impl Store for DurableStore {
    fn wants(&self) -> Wants {
        Wants { journal: true, results: true, questions: true }
    }

    fn intent<'a>(&'a self, intent: Intent) -> BoxFuture<'a, Result<(), StoreError>> {
        // Not kept if it fails: the call does not start.
        let answer = self.0.writer.submit("intent", false, move |work| journal::intent(work, &intent));
        Box::pin(answer.wait())
    }

    fn outcome<'a>(&'a self, outcome: CallEnd) -> BoxFuture<'a, Result<(), StoreError>> {
        let urgent =
            outcome.had_intent || outcome.settles.is_some() || outcome.task.is_some() || self.0.is_full();
        let mut tried = false;
        let was_running = outcome.had_intent.then_some(outcome.audit.metadata.execution_id);
        let was_running = was_running.filter(|id| self.0.running.take(*id)).map(|id| id.to_string());
        self.0.record("outcome", urgent, move |work| {
            if let Some(id) = &was_running {
                running::forget(work, id)?;
            }
            // The answer to an earlier try may have been lost on its way, and the record written all the same.
            if std::mem::replace(&mut tried, true) && journal::is_recorded(work, &outcome)? {
                return Ok(());
            }
            journal::outcome(work, &outcome)
        })
    }

    fn journal<'a>(&'a self, step: JournalStep) -> BoxFuture<'a, Result<(), StoreError>> {
        let name = match &step {
            JournalStep::Begin(_) => "begin",
            JournalStep::Text { .. } => "text",
            JournalStep::CallStart { .. } => "call_start",
            JournalStep::ArgsDelta { .. } => "args_delta",
            JournalStep::Seal { .. } => "seal",
            JournalStep::Calls { .. } => "calls",
            JournalStep::Decided { .. } => "decided",
            JournalStep::Close { .. } => "close",
            JournalStep::Changes { step, .. } => match step {
                ChangesStep::Staged => "staged",
                ChangesStep::Ran => "ran",
                ChangesStep::Applying => "applying",
                ChangesStep::Settled(_) => "settled",
            },
        };
        let must_wait = matches!(&step, JournalStep::Changes { step, .. } if step.must_wait());
        if must_wait || self.0.is_full() {
            let answer = self.0.writer.submit(name, false, move |work| journal::step(work, &step));
            return Box::pin(answer.wait());
        }
        self.0.record(name, false, move |work| journal::step(work, &step))
    }

    fn claim<'a>(&'a self, request: ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(self.0.writer.submit("claim", false, move |work| claims::claim(work, &request)).wait())
    }

    fn keep_output<'a>(
        &'a self,
        tenant: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<OutputHandle, StoreError>> {
        Box::pin(async move {
            let packed = self.0.readers.compute(move || outputs::pack(&bytes)).await??;
            let tenant = tenant.to_owned();
            self.0.write("output", move |work| outputs::keep(work, &tenant, &packed)).await
        })
    }

    fn running_output(&self, id: ExecutionId, limit: u64) -> Option<Box<dyn RunningOutput>> {
        Some(Box::new(running::Running::new(id, limit, &self.0)))
    }

    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.0.writer.submit("flush", false, |_| Ok(())).wait())
    }

    fn tasks(&self) -> Result<&dyn TaskStore, StoreError> {
        Ok(self)
    }

    fn for_tenant(&self, tenant: &str) -> Box<dyn TenantStore> {
        Box::new(self.tenant(tenant))
    }
}

impl TaskStore for DurableStore {
    fn submit<'a>(&'a self, task: NewTask) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.0.write("task", move |work| tasks::submit(work, &task)))
    }

    fn take_over<'a>(
        &'a self,
        runner: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimedTask>, StoreError>> {
        let runner = runner.to_owned();
        Box::pin(self.0.write("task_take_over", move |work| tasks::take_over(work, &runner, most)))
    }

    fn begin<'a>(
        &'a self,
        id: &'a TaskId,
        execution_id: ExecutionId,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.clone();
        Box::pin(self.0.write("task_begin", move |work| tasks::begin(work, &id, execution_id)))
    }

    fn note<'a>(
        &'a self,
        notes: Vec<(TaskId, TaskProgress)>,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>> {
        Box::pin(self.0.write("task_note", move |work| tasks::note(work, &notes)))
    }

    fn asks<'a>(
        &'a self,
        id: &'a TaskId,
        approval: Option<ApprovalId>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let id = id.clone();
        let asks =
            move |work: &mut Work<'_>| tasks::asks(work, &id, approval.as_ref().map(ApprovalId::as_str));
        Box::pin(self.0.write("task_asks", asks))
    }

    fn finish<'a>(
        &'a self,
        id: &'a TaskId,
        result: Arc<ToolResult>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let id = id.clone();
        Box::pin(self.0.write("task_end", move |work| tasks::ended(work, &id, &result)))
    }

    fn find<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Task>, StoreError>> {
        let (tenant, id) = (tenant.to_owned(), id.clone());
        Box::pin(self.0.write("task_find", move |work| tasks::find(work, &tenant, &id)))
    }

    fn list<'a>(&'a self, tenant: &'a str, query: TaskQuery) -> BoxFuture<'a, Result<TaskPage, StoreError>> {
        let tenant = tenant.to_owned();
        Box::pin(self.0.write("task_list", move |work| tasks::list(work, &tenant, &query)))
    }

    fn cancel<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<TaskCancel, StoreError>> {
        let (tenant, id) = (tenant.to_owned(), id.clone());
        Box::pin(self.0.write("task_cancel", move |work| tasks::cancel(work, &tenant, &id)))
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.0.write("task_sweep", tasks::sweep))
    }
}

impl KeyStore for DurableStore {
    fn add<'a>(&'a self, key: ApiKey, hash: SecretHash) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.0.write("key", move |work| keys::add(work, &key, &hash)))
    }

    fn by_secret<'a>(&'a self, hash: SecretHash) -> BoxFuture<'a, Result<Option<ApiKey>, StoreError>> {
        Box::pin(self.0.readers.read(move |sql| keys::by_secret(sql, &hash)))
    }

    fn all<'a>(&'a self, tenant: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ApiKey>, StoreError>> {
        let tenant = tenant.map(str::to_owned);
        Box::pin(self.0.readers.read(move |sql| keys::all(sql, tenant.as_deref())))
    }

    fn revoke<'a>(&'a self, id: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (id, by) = (id.to_owned(), by.to_owned());
        Box::pin(self.0.write("key_revoke", move |work| keys::revoke(work, &id, &by)))
    }
}

//! What is remembered: where the configuration says, opened when the first record is written or asked for.
//!
//! Most commands remember nothing. A call does; its store is opened on a thread of its own while the rest is put
//! together.

mod heads;
mod place;
mod tools;

pub use heads::{AuditPlaces, HeadsTo};
pub use place::{StorePlace, age, retention};

use haft_core::{
    ApprovalId, ApprovalRequest, ExecutionId, OutputHandle,
    port::{
        Answer, ApprovalFilter, AuditPage, AuditQuery, AuditRecord, BoxFuture, CallEnd, ChangesStep, Claim,
        ClaimRequest, FoundLines, Intent, JournalStep, OutputRange, OutputSearch, RecoveredCall, Recovery,
        RunningOutput, Store, StoreError, StoredApproval, StoredGrant, StoredPart, StoredRun, TakenAnswer,
        TaskStore, TenantStore, ToolStatistics, Unfinished, UnfinishedId, Wants,
    },
};
use haft_store::{DurableStore, Tenant};
use std::{
    future::ready,
    sync::{Arc, Mutex, OnceLock},
};

/// A durable store that is opened when it is first needed. All clones are the same.
#[derive(Clone)]
pub struct LazyStore(Arc<Lazy>);

struct Lazy {
    place: StorePlace,
    opened: OnceLock<Result<DurableStore, StoreError>>,
    /// Whether what an earlier haft remembered about tools in a file was taken over.
    has_tools: Mutex<bool>,
}

impl LazyStore {
    /// The store at that place. It is not opened yet.
    pub fn new(place: StorePlace) -> Self {
        LazyStore(Arc::new(Lazy { place, opened: OnceLock::new(), has_tools: Mutex::default() }))
    }

    /// Begins to open it, without waiting.
    pub fn warm(&self) {
        let this = self.clone();
        // Without a thread it is opened where it is first needed.
        let _ = std::thread::Builder::new().name("haft-open".to_owned()).spawn(move || this.open().map(drop));
    }

    /// The store; opened now if it was not. That is tried once: a process that began without its memory must not go
    /// on with half of it.
    pub fn open(&self) -> Result<&DurableStore, StoreError> {
        self.0.opened.get_or_init(|| self.0.place.open()).as_ref().map_err(Clone::clone)
    }

    /// The file in which ends of the audit chain are told, where there is one.
    pub fn heads(&self) -> Option<&std::path::Path> {
        self.0.place.heads()
    }

    /// The store, if anybody needed it.
    pub fn opened(&self) -> Option<&DurableStore> {
        self.0.opened.get()?.as_ref().ok()
    }
}

/// What cannot be had, as a future.
fn refused<'a, T: Send + 'a>(error: StoreError) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(ready(Err(error)))
}

impl Store for LazyStore {
    fn wants(&self) -> Wants {
        // What a durable store wants is known before it is open.
        Wants { journal: true, results: true, questions: true }
    }

    fn journal<'a>(&'a self, step: JournalStep) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.open() {
            Ok(store) => store.journal(step),
            Err(error) => refused(error),
        }
    }

    fn intent<'a>(&'a self, intent: Intent) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.open() {
            Ok(store) => store.intent(intent),
            Err(error) => refused(error),
        }
    }

    fn outcome<'a>(&'a self, outcome: CallEnd) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.open() {
            Ok(store) => store.outcome(outcome),
            Err(error) => refused(error),
        }
    }

    fn claim<'a>(&'a self, request: ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        match self.open() {
            Ok(store) => store.claim(request),
            Err(error) => refused(error),
        }
    }

    fn keep_output<'a>(
        &'a self,
        tenant: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<OutputHandle, StoreError>> {
        match self.open() {
            Ok(store) => store.keep_output(tenant, bytes),
            Err(error) => refused(error),
        }
    }

    fn running_output(&self, id: ExecutionId, limit: u64) -> Option<Box<dyn RunningOutput>> {
        // Only for a call whose intent is recorded, so it is open.
        self.opened()?.running_output(id, limit)
    }

    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.opened() {
            Some(store) => store.flush(),
            // Nothing was handed over.
            None => Box::pin(ready(Ok(()))),
        }
    }

    fn tasks(&self) -> Result<&dyn TaskStore, StoreError> {
        Ok(self.open()?)
    }

    fn for_tenant(&self, tenant: &str) -> Box<dyn TenantStore> {
        Box::new(LazyTenant { store: self.clone(), tenant: tenant.to_owned() })
    }
}

struct LazyTenant {
    store: LazyStore,
    tenant: String,
}

impl LazyTenant {
    fn view(&self) -> Result<Tenant, StoreError> {
        Ok(self.store.open()?.tenant(&self.tenant))
    }
}

impl TenantStore for LazyTenant {
    fn audit<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<AuditRecord>, StoreError>> {
        Box::pin(async move { self.view()?.audit(limit).await })
    }

    fn output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, StoreError>> {
        Box::pin(async move { self.view()?.output(handle, range).await })
    }

    fn search_output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        search: OutputSearch,
    ) -> BoxFuture<'a, Result<Option<FoundLines>, StoreError>> {
        Box::pin(async move { self.view()?.search_output(handle, search).await })
    }

    fn audit_page<'a>(&'a self, query: AuditQuery) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(async move { self.view()?.audit_page(query).await })
    }

    fn changes<'a>(&'a self, id: ExecutionId) -> BoxFuture<'a, Result<Option<ChangesStep>, StoreError>> {
        Box::pin(async move { self.view()?.changes(id).await })
    }

    fn run<'a>(&'a self, id: ExecutionId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        Box::pin(async move { self.view()?.run(id).await })
    }

    fn statistics<'a>(&'a self, query: AuditQuery) -> BoxFuture<'a, Result<Vec<ToolStatistics>, StoreError>> {
        Box::pin(async move { self.view()?.statistics(query).await })
    }

    fn unfinished<'a>(&'a self) -> BoxFuture<'a, Result<Vec<Unfinished>, StoreError>> {
        Box::pin(async move { self.view()?.unfinished().await })
    }

    fn recover<'a>(
        &'a self,
        which: UnfinishedId,
        how: Recovery,
    ) -> BoxFuture<'a, Result<Option<Vec<RecoveredCall>>, StoreError>> {
        Box::pin(async move { self.view()?.recover(which, how).await })
    }

    fn ask<'a>(
        &'a self,
        request: ApprovalRequest,
        not: Vec<ApprovalId>,
    ) -> BoxFuture<'a, Result<ApprovalId, StoreError>> {
        Box::pin(async move { self.view()?.ask(request, not).await })
    }

    fn take_answer<'a>(
        &'a self,
        id: &'a ApprovalId,
        call: ExecutionId,
    ) -> BoxFuture<'a, Result<TakenAnswer, StoreError>> {
        Box::pin(async move { self.view()?.take_answer(id, call).await })
    }

    fn answer_with_grant<'a>(
        &'a self,
        id: &'a ApprovalId,
        answer: Answer,
        grant: Option<StoredGrant>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.view()?.answer_with_grant(id, answer, grant).await })
    }

    fn approval<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, StoreError>> {
        Box::pin(async move { self.view()?.approval(id).await })
    }

    fn approvals<'a>(
        &'a self,
        filter: ApprovalFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, StoreError>> {
        Box::pin(async move { self.view()?.approvals(filter).await })
    }

    fn revoke<'a>(&'a self, id: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.view()?.revoke(id, by).await })
    }

    fn grants<'a>(&'a self, all: bool) -> BoxFuture<'a, Result<Vec<StoredGrant>, StoreError>> {
        Box::pin(async move { self.view()?.grants(all).await })
    }
}

//! What one tenant may read and decide.

use super::{approvals, changes, history, outputs, recovery, store::Inner, value::Sql};
use haft_core::{
    ApprovalId, ApprovalRequest, ExecutionId, OutputHandle,
    port::{
        Answer, ApprovalFilter, AuditPage, AuditQuery, AuditRecord, BoxFuture, ChangesStep, FoundLines,
        OutputRange, OutputSearch, RecoveredCall, Recovery, StoreError, StoredApproval, StoredGrant,
        StoredPart, StoredRun, TakenAnswer, TenantStore, ToolStatistics, Unfinished, UnfinishedId,
    },
};
use std::{future::ready, sync::Arc};

/// The view of one tenant on a [`DurableStore`](crate::DurableStore).
#[derive(Clone)]
pub struct Tenant {
    tenant: Arc<str>,
    inner: Arc<Inner>,
}

impl Tenant {
    pub(crate) fn new(tenant: &str, inner: Arc<Inner>) -> Self {
        Tenant { tenant: tenant.into(), inner }
    }

    /// How many batches and calls wait for a decision, as `haft recover` lists them. Cheap: only what was there when
    /// this process opened the store.
    pub async fn waiting(&self) -> Result<u64, StoreError> {
        let tenant = Arc::clone(&self.tenant);
        self.inner.write("waiting", move |work| recovery::waiting(work, &tenant)).await
    }

    /// The grants that hold now, for code that cannot await. It takes as long as reading a row.
    pub fn grants_now(&self) -> Result<Vec<StoredGrant>, StoreError> {
        let (tenant, now) = (Arc::clone(&self.tenant), self.now());
        self.inner.readers.read_blocking(move |sql| approvals::grants(sql, &tenant, now, false))
    }

    fn now(&self) -> i64 {
        self.inner.options.clock.now().as_microsecond()
    }
}

impl TenantStore for Tenant {
    fn audit<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<AuditRecord>, StoreError>> {
        Box::pin(async move {
            let mut records = Vec::new();
            let mut query = AuditQuery::default();
            while records.len() < limit {
                query.limit = (limit - records.len()).min(1000);
                let page = self.audit_page(query.clone()).await?;
                records.extend(page.records.into_iter().map(|(_, record)| record));
                query.after = page.next;
                if query.after.is_none() {
                    break;
                }
            }
            Ok(records)
        })
    }

    fn output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, StoreError>> {
        let (tenant, handle) = (Arc::clone(&self.tenant), handle.clone());
        Box::pin(self.inner.readers.read(move |sql| outputs::read(sql, &tenant, &handle, range)))
    }

    fn search_output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        search: OutputSearch,
    ) -> BoxFuture<'a, Result<Option<FoundLines>, StoreError>> {
        let (tenant, handle) = (Arc::clone(&self.tenant), handle.clone());
        Box::pin(self.inner.readers.read(move |sql| outputs::search(sql, &tenant, &handle, &search)))
    }

    fn audit_page<'a>(&'a self, query: AuditQuery) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.read(move |sql| history::page(sql, &tenant, &query)))
    }

    fn changes<'a>(&'a self, id: ExecutionId) -> BoxFuture<'a, Result<Option<ChangesStep>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        // By the writer, after everything that was handed over before.
        Box::pin(self.inner.write("changes", move |work| changes::find(work.sql, &tenant, id)))
    }

    fn run<'a>(&'a self, id: ExecutionId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        let now = self.inner.options.clock.now().as_microsecond();
        Box::pin(self.inner.read(move |sql| history::run(sql, &tenant, id, now)))
    }

    fn statistics<'a>(&'a self, query: AuditQuery) -> BoxFuture<'a, Result<Vec<ToolStatistics>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.read(move |sql| history::statistics(sql, &tenant, &query)))
    }

    fn unfinished<'a>(&'a self) -> BoxFuture<'a, Result<Vec<Unfinished>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.write("unfinished", move |work| recovery::unfinished(work, &tenant)))
    }

    fn recover<'a>(
        &'a self,
        which: UnfinishedId,
        how: Recovery,
    ) -> BoxFuture<'a, Result<Option<Vec<RecoveredCall>>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.write("recover", move |work| recovery::recover(work, &tenant, which, how)))
    }

    fn ask<'a>(
        &'a self,
        request: ApprovalRequest,
        not: Vec<ApprovalId>,
    ) -> BoxFuture<'a, Result<ApprovalId, StoreError>> {
        if request.asker.tenant != self.tenant {
            return Box::pin(ready(Err(StoreError("the question is another tenant's".to_owned()))));
        }
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.write("ask", move |work| approvals::ask(work, &tenant, &request, &not)))
    }

    fn take_answer<'a>(
        &'a self,
        id: &'a ApprovalId,
        call: ExecutionId,
    ) -> BoxFuture<'a, Result<TakenAnswer, StoreError>> {
        let (tenant, id) = (Arc::clone(&self.tenant), id.clone());
        Box::pin(async move {
            // A call that waits looks often, and mostly in vain: that must not keep the writer busy.
            let (looked, now) = ((Arc::clone(&tenant), id.clone()), self.now());
            let look = move |sql: &mut dyn Sql| approvals::is_open(sql, &looked.0, &looked.1, now);
            if self.inner.readers.read(look).await? {
                return Ok(TakenAnswer::Open);
            }
            self.inner.write("take_answer", move |work| approvals::take(work, &tenant, &id, call)).await
        })
    }

    fn answer_with_grant<'a>(
        &'a self,
        id: &'a ApprovalId,
        answer: Answer,
        grant: Option<StoredGrant>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (tenant, id) = (Arc::clone(&self.tenant), id.clone());
        Box::pin(
            self.inner
                .write("answer", move |work| approvals::answer(work, &tenant, &id, &answer, grant.as_ref())),
        )
    }

    fn approval<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, StoreError>> {
        let (tenant, id) = (Arc::clone(&self.tenant), id.clone());
        Box::pin(self.inner.write("question", move |work| approvals::find(work, &tenant, &id)))
    }

    fn approvals<'a>(
        &'a self,
        filter: ApprovalFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.write("questions", move |work| approvals::questions(work, &tenant, &filter)))
    }

    fn revoke<'a>(&'a self, id: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (tenant, id, by) = (Arc::clone(&self.tenant), id.to_owned(), by.to_owned());
        Box::pin(self.inner.write("revoke", move |work| approvals::revoke(work, &tenant, &id, &by)))
    }

    fn grants<'a>(&'a self, all: bool) -> BoxFuture<'a, Result<Vec<StoredGrant>, StoreError>> {
        let (tenant, now) = (Arc::clone(&self.tenant), self.now());
        Box::pin(self.inner.readers.read(move |sql| approvals::grants(sql, &tenant, now, all)))
    }
}

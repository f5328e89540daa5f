//! What one tenant may read and decide.

use super::{
    approvals::{self, Grant, Question, QuestionState},
    history, outputs, recovery,
    store::Inner,
};
use haft_core::{
    ApprovalId, ApprovalRequest, CallContext, Decision, ExecutionId, OutputHandle,
    port::{
        AuditPage, AuditQuery, AuditRecord, BoxFuture, FoundLines, OutputRange, OutputSearch, RecoveredCall,
        Recovery, StoreError, StoredPart, StoredRun, TenantStore, ToolStatistics, Unfinished, UnfinishedId,
    },
};
use jiff::Timestamp;
use std::sync::Arc;

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

    /// Puts a question on the list. The same id again changes nothing.
    pub async fn ask(
        &self,
        context: &CallContext,
        request: ApprovalRequest,
        expires_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        if context.tenant != self.tenant {
            return Err(StoreError("the question is another tenant's".to_owned()));
        }
        let context = context.clone();
        let expires_at = expires_at.map(Timestamp::as_microsecond);
        self.inner.write("ask", move |work| approvals::ask(work, &context, &request, expires_at)).await
    }

    /// Answers a question, once. False where it is not open, or not any more.
    pub async fn answer(&self, id: &ApprovalId, decision: Decision, by: &str) -> Result<bool, StoreError> {
        let (tenant, id, by) = (Arc::clone(&self.tenant), id.clone(), by.to_owned());
        self.inner.write("answer", move |work| approvals::answer(work, &tenant, &id, &decision, &by)).await
    }

    /// How many batches and calls wait for a decision, as `haft recover` lists them. Cheap: only what was there when this
    /// process opened the store.
    pub async fn waiting(&self) -> Result<u64, StoreError> {
        let tenant = Arc::clone(&self.tenant);
        self.inner.write("waiting", move |work| recovery::waiting(work, &tenant)).await
    }

    /// One question.
    pub async fn question(&self, id: &ApprovalId) -> Result<Option<Question>, StoreError> {
        let (tenant, id) = (Arc::clone(&self.tenant), id.clone());
        self.inner.write("question", move |work| approvals::find(work, &tenant, &id)).await
    }

    /// The questions in that state, oldest first.
    pub async fn questions(&self, state: QuestionState) -> Result<Vec<Question>, StoreError> {
        let tenant = Arc::clone(&self.tenant);
        self.inner.write("questions", move |work| approvals::questions(work, &tenant, state)).await
    }

    /// Keeps a grant.
    pub async fn grant(&self, grant: Grant) -> Result<(), StoreError> {
        let tenant = Arc::clone(&self.tenant);
        self.inner.write("grant", move |work| approvals::grant(work, &tenant, &grant)).await
    }

    /// Takes a grant back. False where there is none of that id, or not any more.
    pub async fn revoke(&self, id: &str, by: &str) -> Result<bool, StoreError> {
        let (tenant, id, by) = (Arc::clone(&self.tenant), id.to_owned(), by.to_owned());
        self.inner.write("revoke", move |work| approvals::revoke(work, &tenant, &id, &by)).await
    }

    /// The grants that hold now.
    pub async fn grants(&self) -> Result<Vec<Grant>, StoreError> {
        let tenant = Arc::clone(&self.tenant);
        self.inner.write("grants", move |work| approvals::grants(work, &tenant)).await
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

    fn run<'a>(&'a self, id: ExecutionId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        let tenant = Arc::clone(&self.tenant);
        Box::pin(self.inner.read(move |sql| history::run(sql, &tenant, id)))
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
}

//! What is remembered.

use super::{
    Answer, ApprovalFilter, AuditPage, AuditQuery, BoxFuture, ChangesStep, FoundLines, JournalStep,
    OutputSearch, RecoveredCall, Recovery, StoredApproval, StoredGrant, StoredRun, TakenAnswer, TaskStore,
    ToolStatistics, Unfinished, UnfinishedId,
};
use crate::{
    ApprovalId, ApprovalRequest, Arguments, BatchId, CallContext, ErrorCode, ExecutionId, OutputHandle,
    ResultMetadata, Status, TaskId, ToolResult,
};
use jiff::Timestamp;
use std::{future::ready, sync::Arc};

/// Something could not be remembered, or not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

impl StoreError {
    fn not_kept(what: &str) -> Self {
        StoreError(format!("this store does not keep {what}; configure a durable one"))
    }
}

/// What a store makes use of beyond intents and outcomes. What it does not want is not made for it.
///
/// ```
/// use haft_core::port::Wants;
/// assert!(!Wants::default().results);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The steps of batches: see [`JournalStep`].
    pub journal: bool,
    /// The arguments and the result of every call, on its [`CallEnd`].
    pub results: bool,
    /// Questions to people, so that they can be answered from elsewhere and later: see [`TenantStore::ask`].
    pub questions: bool,
}

/// What is about to happen: recorded before it does.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The execution. It is also the effect's id, which stays the same over attempts.
    pub execution_id: ExecutionId,
    /// The batch and the place in it.
    pub batch: Option<(BatchId, u32)>,
    /// Who calls.
    pub context: Arc<CallContext>,
    /// The caller's own name for the call.
    pub call_id: Arc<str>,
    /// The tool's canonical name.
    pub tool: Arc<str>,
    /// With what, without secrets.
    pub arguments: Arguments,
    /// The approval that this uses up.
    pub approval: Option<ApprovalId>,
    /// Which try it is, from 1.
    pub attempt: u32,
    /// When the intent was recorded.
    pub at: Timestamp,
}

/// One exit of one call, whatever it was.
#[derive(Clone, Debug)]
pub struct AuditRecord {
    /// Who called.
    pub context: Arc<CallContext>,
    /// The caller's own name for the call.
    pub call_id: Arc<str>,
    /// The tool's canonical name, or what was asked for.
    pub tool: Arc<str>,
    /// How it ended.
    pub status: Status,
    /// Why it did not succeed.
    pub code: Option<ErrorCode>,
    /// The same in words, without secrets and at most [`ERROR_MESSAGE`](AuditRecord::ERROR_MESSAGE) bytes.
    pub error: Option<Box<str>>,
    /// The rule that decided, where policy was reached.
    pub rule: Option<super::RuleName>,
    /// The approval that it ran under.
    pub approval: Option<ApprovalId>,
    /// Bytes of its arguments.
    pub input_size: u64,
    /// Its arguments without secrets, as they were read back: where the store keeps them with the record.
    pub input: Option<Arguments>,
    /// What only the operator sees.
    pub diagnostics: Option<Box<str>>,
    /// Ids, times, sizes, attempts, enforcement: the same facts that are on the result.
    pub metadata: Arc<ResultMetadata>,
    /// What went in and out, as fingerprints. Worked out by a store that keeps them; absent elsewhere.
    pub hashes: Option<Box<Hashes>>,
}

impl AuditRecord {
    /// The most bytes of an error's words on a record.
    pub const ERROR_MESSAGE: usize = 1024;
}

/// Fingerprints of what went in and out: SHA-256, in hex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Of the arguments, as they were sent but for secrets.
    pub input: String,
    /// Of the result's content and structured output; absent where there is none.
    pub output: Option<String>,
}

/// The end of a call: its record, and its result where somebody may ask for it again.
#[derive(Clone, Debug)]
pub struct CallEnd {
    /// The record.
    pub audit: AuditRecord,
    /// The arguments without secrets, for a store that [wants](Store::wants) results.
    pub arguments: Option<Arguments>,
    /// Whether the call was about to have an effect: its intent was handed over. Such an outcome is waited for.
    pub had_intent: bool,
    /// The result, for a store that [wants](Store::wants) results.
    pub result: Option<Arc<ToolResult>>,
    /// For a call with an idempotency key: what a repetition gets. Counts only if this very call holds the key.
    pub settles: Option<(ClaimRequest, Settlement)>,
    /// The task that this execution was of, and its result: it ends with it, or waits for a person's answer.
    pub task: Option<(TaskId, Arc<ToolResult>)>,
}

/// What a call with an idempotency key leaves behind.
#[derive(Clone, Debug)]
pub enum Settlement {
    /// It was started: a repetition gets this result.
    Result(Arc<ToolResult>),
    /// It waits for a person: a repetition waits for the same answer.
    Waiting(ApprovalId),
    /// It never started: a repetition is a new call.
    Released,
}

/// A call with an idempotency key wants to run.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The execution that asks.
    pub execution_id: ExecutionId,
    /// Whose.
    pub tenant: Arc<str>,
    /// By whom: the user, else the agent.
    pub principal: Arc<str>,
    /// The tool's canonical name.
    pub tool: Arc<str>,
    /// The key.
    pub key: Arc<str>,
    /// Tells other arguments apart.
    pub arguments: Arguments,
}

/// What is known about an idempotency key.
#[derive(Clone, Debug)]
pub enum Claim {
    /// Nothing: the call may go on, and owns the key.
    Fresh,
    /// It ran before, and this was its result.
    Settled(Arc<ToolResult>),
    /// It runs now.
    InFlight(ExecutionId),
    /// It waits for a person.
    Waiting(ApprovalId),
    /// The key stands for other arguments.
    Conflict,
    /// It was started, and nothing tells how it ended.
    OutcomeUnknown(ExecutionId),
}

/// Which part of a stored output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRange {
    /// The first byte.
    pub offset: u64,
    /// At most so many.
    pub length: u64,
}

/// A part of a stored output, with the length of the whole.
pub type StoredPart = (Vec<u8>, u64);

/// Takes what a call puts out while it runs: see [`Store::running_output`].
pub trait RunningOutput: Send {
    /// More output, without secrets. Never waits, and may lose something where the store is too slow.
    fn put(&mut self, bytes: &[u8]);
}

/// What is remembered. Writing goes through here with the tenant on every record; reading only through
/// [`for_tenant`](Store::for_tenant).
pub trait Store: Send + Sync {
    /// What it makes use of beyond intents and outcomes. Asked once, when an engine is built.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// Takes down a step of a batch or of a call: see [`JournalStep`]. Steps of one batch are handed over in their
    /// order. Those of batches come only where they are [wanted](Store::wants); [`JournalStep::Changes`] always comes,
    /// and a store that refuses it keeps commands from being staged and their changes from being applied.
    ///
    /// As with [`outcome`](Store::outcome) the call hands it over; the future waits until it is as safe as the
    /// durability of the store says.
    fn journal<'a>(&'a self, step: JournalStep) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Records what is about to happen. Only when this has returned may it.
    fn intent<'a>(&'a self, intent: Intent) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Records how a call ended, with its audit record, as one.
    ///
    /// The call itself hands the record over; the future only waits for it to be safe. So a caller that drops the
    /// future does not undo the record.
    fn outcome<'a>(&'a self, outcome: CallEnd) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes an idempotency key, or says who has it.
    fn claim<'a>(&'a self, request: ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Keeps an output, under a handle that cannot be guessed.
    fn keep_output<'a>(
        &'a self,
        tenant: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<OutputHandle, StoreError>>;

    /// Where a call that has a recorded intent puts its output while it runs, so that a crash does not lose it. At most
    /// about `limit` bytes are kept, the first and the last of them. Let go of, without a word, when the call's
    /// [`outcome`](Store::outcome) is recorded. `None` where nothing would outlast the process anyway.
    fn running_output(&self, _id: ExecutionId, _limit: u64) -> Option<Box<dyn RunningOutput>> {
        None
    }

    /// Makes sure that everything recorded so far stays.
    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Where tasks are kept, or why they are not.
    fn tasks(&self) -> Result<&dyn TaskStore, StoreError> {
        Err(StoreError::not_kept("tasks"))
    }

    /// The view of one tenant: the only way to read.
    fn for_tenant(&self, tenant: &str) -> Box<dyn TenantStore>;
}

/// What one tenant may read, and may decide about what a crash left.
pub trait TenantStore: Send + Sync {
    /// The audit records, newest first, at most `limit`.
    fn audit<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<AuditRecord>, StoreError>>;

    /// A part of a stored output; `None` where there is none of that handle.
    fn output<'a>(
        &'a self,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, StoreError>>;

    /// The lines of a stored output that match; `None` where there is none of that handle.
    fn search_output<'a>(
        &'a self,
        _handle: &'a OutputHandle,
        _search: OutputSearch,
    ) -> BoxFuture<'a, Result<Option<FoundLines>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("outputs that can be searched"))))
    }

    /// A page of audit records: newest first, those that the query lets through.
    fn audit_page<'a>(&'a self, _query: AuditQuery) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("an audit that can be queried"))))
    }

    /// One call with its arguments and its result; `None` where there is none of that id.
    fn run<'a>(&'a self, _id: ExecutionId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("results"))))
    }

    /// Numbers by tool, over the calls that the query lets through.
    fn statistics<'a>(
        &'a self,
        _query: AuditQuery,
    ) -> BoxFuture<'a, Result<Vec<ToolStatistics>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("statistics"))))
    }

    /// How far the call came with what its command wrote apart from the files: the last step that was taken down of it.
    /// `None` where its command wrote to the files themselves, and where its record says it all: see
    /// [`ResultMetadata::changes`](crate::ResultMetadata::changes).
    fn changes<'a>(&'a self, _id: ExecutionId) -> BoxFuture<'a, Result<Option<ChangesStep>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("what became of changes"))))
    }

    /// What processes that are gone left unfinished, oldest first. Those of living processes are not in it.
    fn unfinished<'a>(&'a self) -> BoxFuture<'a, Result<Vec<Unfinished>, StoreError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    /// Decides about something unfinished. Nothing is run; the evidence is kept. `None` where there is nothing of
    /// that id, or not any more.
    fn recover<'a>(
        &'a self,
        _which: UnfinishedId,
        _how: Recovery,
    ) -> BoxFuture<'a, Result<Option<Vec<RecoveredCall>>, StoreError>> {
        Box::pin(ready(Ok(None)))
    }

    /// Puts a question on the list, and gives the id that it has there. A question about the same call (the same
    /// fingerprint) that waits already, or whose answer no call has taken yet, is that question; but for those in
    /// `not`, which stand for other calls of the same batch.
    fn ask<'a>(
        &'a self,
        _request: ApprovalRequest,
        _not: Vec<ApprovalId>,
    ) -> BoxFuture<'a, Result<ApprovalId, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("questions"))))
    }

    /// Takes the answer to a question for one call. What one call has taken no other one gets.
    fn take_answer<'a>(
        &'a self,
        _id: &'a ApprovalId,
        _call: ExecutionId,
    ) -> BoxFuture<'a, Result<TakenAnswer, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("questions"))))
    }

    /// Answers a question, once. False where it is not open, or not any more.
    fn answer<'a>(&'a self, id: &'a ApprovalId, answer: Answer) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.answer_with_grant(id, answer, None)
    }

    /// Answers a question, once, and keeps the grant that the answer gives: both in one write, so that a crash leaves
    /// neither or both. False, and no grant, where the question is not open, or not any more.
    ///
    /// There is no other way to keep a grant: each has the answer of a person behind it.
    fn answer_with_grant<'a>(
        &'a self,
        _id: &'a ApprovalId,
        _answer: Answer,
        _grant: Option<StoredGrant>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("questions"))))
    }

    /// One question; `None` where there is none of that id.
    fn approval<'a>(
        &'a self,
        _id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("questions"))))
    }

    /// The questions that the filter lets through, oldest first.
    fn approvals<'a>(
        &'a self,
        _filter: ApprovalFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("questions"))))
    }

    /// Takes a grant back. False where there is none of that id, or not any more.
    fn revoke<'a>(&'a self, _id: &'a str, _by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("grants"))))
    }

    /// The grants that hold now, oldest first; with `all`, also those that have expired or were taken back.
    fn grants<'a>(&'a self, _all: bool) -> BoxFuture<'a, Result<Vec<StoredGrant>, StoreError>> {
        Box::pin(ready(Err(StoreError::not_kept("grants"))))
    }
}

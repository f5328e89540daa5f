//! Where tasks are kept: calls that go on without their callers.

use super::{BoxFuture, StoreError};
use crate::{
    ApprovalId, CallContext, CallOptions, ExecutionId, Task, TaskId, TaskPage, TaskProgress, TaskQuery,
    ToolCall, ToolResult,
};
use jiff::Timestamp;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// A task that is about to be taken.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The id of the task.
    pub id: TaskId,
    /// The id of its first execution.
    pub execution_id: ExecutionId,
    /// Who asks.
    pub context: Arc<CallContext>,
    /// For what. Kept as it was sent until the task has ended, because it may have to begin after a restart.
    pub call: ToolCall,
    /// Options of the call.
    pub options: CallOptions,
    /// Who may run it: processes that run tasks have a name for their kind.
    pub runner: Arc<str>,
    /// Whether the process that submits it runs it. Otherwise it waits for one that does.
    pub is_mine: bool,
    /// What its runner has to know about where it runs.
    pub place: Option<Value>,
    /// How long it is kept after its end.
    pub ttl: Duration,
    /// When it was taken.
    pub created_at: Timestamp,
    /// When it is not to be begun any more, if nobody has until then.
    pub start_by: Option<Timestamp>,
}

/// A task that this process is to run.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// The id of the task.
    pub id: TaskId,
    /// The id of its next execution.
    pub execution_id: ExecutionId,
    /// Who asked.
    pub context: Arc<CallContext>,
    /// For what.
    pub call: ToolCall,
    /// Options of the call.
    pub options: CallOptions,
    /// What its runner has to know about where it runs.
    pub place: Option<Value>,
    /// The question that it waited for, and that is answered now.
    pub approval: Option<ApprovalId>,
}

/// What came of cancelling a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskCancel {
    /// There is none of that id.
    Unknown,
    /// It is over already.
    Over,
    /// It had not begun, or waited for a person: it is over now.
    Ended,
    /// It runs in some process, which is told.
    Asked,
}

/// Where tasks are kept. Every question about one names the tenant.
///
/// The end of a task is written with the outcome of its execution: see [`CallEnd::task`](super::CallEnd::task). An
/// execution that ends because a person has to agree, with a question that can still be answered, leaves its task
/// waiting for that.
pub trait TaskStore: Send + Sync {
    /// Takes a task. When this has returned, it is safe.
    fn submit<'a>(&'a self, task: NewTask) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes over tasks of that kind which nobody runs: those that wait for a runner, and those whose question is
    /// answered. At most so many; the oldest first.
    fn take_over<'a>(
        &'a self,
        runner: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimedTask>, StoreError>>;

    /// It begins, with that execution. False where it is not to begin: somebody ended it meanwhile.
    fn begin<'a>(
        &'a self,
        id: &'a TaskId,
        execution_id: ExecutionId,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Notes how far tasks of this process are; gives those of them that somebody wants to end.
    fn note<'a>(
        &'a self,
        notes: Vec<(TaskId, TaskProgress)>,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>>;

    /// A person is asked about a task that runs; `None` once they have answered. Should its process be gone
    /// before they have, the task waits for the answer.
    fn asks<'a>(
        &'a self,
        id: &'a TaskId,
        approval: Option<ApprovalId>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends a task of this process whose execution could not be recorded.
    fn finish<'a>(&'a self, id: &'a TaskId, result: Arc<ToolResult>)
    -> BoxFuture<'a, Result<(), StoreError>>;

    /// One task of a tenant; `None` where there is none of that id, or not any more.
    fn find<'a>(&'a self, tenant: &'a str, id: &'a TaskId)
    -> BoxFuture<'a, Result<Option<Task>, StoreError>>;

    /// Tasks of a tenant, newest first, without their results.
    fn list<'a>(&'a self, tenant: &'a str, query: TaskQuery) -> BoxFuture<'a, Result<TaskPage, StoreError>>;

    /// Wants a task of a tenant to end.
    fn cancel<'a>(&'a self, tenant: &'a str, id: &'a TaskId)
    -> BoxFuture<'a, Result<TaskCancel, StoreError>>;

    /// Forgets tasks that were kept long enough, and ends those that nobody began in time. How many were forgotten.
    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<u64, StoreError>>;
}

//! What an engine knows about its tasks: which are under way, how far they are, which wait for a person.

use haft_core::{ApprovalId, EventPayload, ExecutionId, Task, TaskId, TaskProgress, TaskState, ToolResult};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, futures::Notified};

/// The tasks of an engine.
#[derive(Default)]
pub(crate) struct TaskTable {
    state: Mutex<State>,
    changed: Notify,
    /// Whether something looks after them.
    pub(crate) is_up: AtomicBool,
    /// Whether it goes on to, although nothing is under way.
    stays: AtomicBool,
}

#[derive(Default)]
struct State {
    live: HashMap<TaskId, Live>,
    /// Those that wait for a person's answer, and no process has.
    parked: HashSet<TaskId>,
}

/// What is known here and not written down yet.
#[derive(Default)]
pub(crate) struct ToNote {
    pub(crate) notes: Vec<(TaskId, TaskProgress)>,
    pub(crate) ends: Vec<(TaskId, Arc<ToolResult>)>,
}

/// A task that this process executes.
struct Live {
    tenant: Arc<str>,
    execution: ExecutionId,
    progress: TaskProgress,
    is_noted: bool,
    asks: Option<ApprovalId>,
    /// Where it has ended and that could not be written down.
    result: Option<Arc<ToolResult>>,
}

impl TaskTable {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are under way.
    pub(crate) fn count(&self) -> usize {
        self.state().live.len()
    }

    /// Those of a tenant that are under way.
    pub(crate) fn count_of(&self, tenant: &str) -> usize {
        self.state().live.values().filter(|live| &*live.tenant == tenant).count()
    }

    pub(crate) fn stay(&self) {
        self.stays.store(true, Ordering::Release);
    }

    /// The next change of anything.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// A task is executed here from now on.
    pub(crate) fn begin(&self, id: &TaskId, execution: ExecutionId, tenant: Arc<str>) {
        let mut state = self.state();
        state.parked.remove(id);
        let progress = TaskProgress::default();
        let live = Live { tenant, execution, progress, is_noted: true, asks: None, result: None };
        state.live.insert(id.clone(), live);
    }

    /// Something happened to it. The change of what it asks a person, where that changed.
    pub(crate) fn see(&self, id: &TaskId, payload: &EventPayload) -> Option<Option<ApprovalId>> {
        let mut state = self.state();
        let live = state.live.get_mut(id)?;
        match payload {
            EventPayload::InProgress { percent, message } => {
                live.progress.percent = percent.or(live.progress.percent).map(|percent| percent.min(100));
                live.progress.message = message.clone().or(live.progress.message.take());
                live.is_noted = false;
            }
            EventPayload::Output { chunk, .. } => {
                live.progress.add_output(chunk);
                live.is_noted = false;
            }
            EventPayload::ConfirmationRequested { approval_id, .. } => {
                live.asks = Some(approval_id.clone());
                drop(state);
                self.changed.notify_waiters();
                return Some(Some(approval_id.clone()));
            }
            EventPayload::ConfirmationReceived { .. } => {
                live.asks = None;
                drop(state);
                self.changed.notify_waiters();
                return Some(None);
            }
            _ => {}
        }
        None
    }

    /// Its execution is over, and its record written.
    pub(crate) fn end(&self, id: &TaskId, is_parked: bool) {
        let mut state = self.state();
        state.live.remove(id);
        if is_parked {
            state.parked.insert(id.clone());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Its execution is over, and that could not be written down.
    pub(crate) fn end_unrecorded(&self, id: &TaskId, result: Arc<ToolResult>) {
        if let Some(live) = self.state().live.get_mut(id) {
            live.result = Some(result);
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn forget(&self, id: &TaskId) {
        self.state().parked.remove(id);
        self.changed.notify_waiters();
    }

    pub(crate) fn execution_of(&self, id: &TaskId) -> Option<ExecutionId> {
        self.state().live.get(id).map(|live| live.execution)
    }

    /// What is known here and not written down yet.
    pub(crate) fn add_what_is_known(&self, task: &mut Task) {
        let state = self.state();
        let Some(live) = state.live.get(&task.id).filter(|_| !task.state.is_over()) else { return };
        task.progress = live.progress.clone();
        if let Some(result) = &live.result {
            task.state = TaskState::of(result.status);
            task.finished_at = Some(result.metadata.completed_at);
            task.result = Some(Arc::clone(result));
        } else if let Some(asks) = &live.asks {
            task.state = TaskState::AwaitingApproval;
            task.approval_id = Some(asks.clone());
        }
    }

    /// How far a task is, where that was not written down yet.
    pub(crate) fn to_note_of(&self, id: &TaskId) -> Option<TaskProgress> {
        let mut state = self.state();
        let live = state.live.get_mut(id)?;
        (!std::mem::replace(&mut live.is_noted, true)).then(|| live.progress.clone())
    }

    /// What was not written down yet.
    pub(crate) fn to_note(&self) -> ToNote {
        let mut state = self.state();
        let ToNote { mut notes, mut ends } = ToNote::default();
        for (id, live) in &mut state.live {
            if let Some(result) = &live.result {
                ends.push((id.clone(), Arc::clone(result)));
            } else if !std::mem::replace(&mut live.is_noted, true) {
                notes.push((id.clone(), live.progress.clone()));
            }
        }
        ToNote { notes, ends }
    }

    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.live.is_empty() && state.parked.is_empty() && !self.stays.load(Ordering::Acquire)
    }
}

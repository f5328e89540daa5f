//! What an engine knows about its tasks: which are under way, how far they are, which wait for a person.

use super::walk;
use crate::engine::{Engine, Inner};
use haft_core::{
    ApprovalId, EventPayload, ExecutionId, Task, TaskId, TaskProgress, TaskState, ToolResult,
    port::StoreError,
};
use haft_sdk::CancelReason;
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, futures::Notified};

/// Every so many ticks, what was kept long enough is forgotten.
const FORGET: u32 = 60;

/// The tasks of an engine.
#[derive(Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    changed: Notify,
    /// Whether something looks after them.
    is_up: AtomicBool,
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
struct ToNote {
    notes: Vec<(TaskId, TaskProgress)>,
    ends: Vec<(TaskId, Arc<ToolResult>)>,
}

/// A task on its walk in this process.
struct Live {
    tenant: Arc<str>,
    walk: ExecutionId,
    progress: TaskProgress,
    is_noted: bool,
    asks: Option<ApprovalId>,
    /// Where it has ended and that could not be written down.
    result: Option<Arc<ToolResult>>,
}

impl Keeper {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are under way.
    pub(crate) fn count(&self) -> usize {
        self.state().live.len()
    }

    /// Those of a tenant that are under way.
    pub(super) fn count_of(&self, tenant: &str) -> usize {
        self.state().live.values().filter(|live| &*live.tenant == tenant).count()
    }

    pub(super) fn stay(&self) {
        self.stays.store(true, Ordering::Release);
    }

    /// The next change of anything.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// A task is on its walk.
    pub(super) fn begin(&self, id: &TaskId, walk: ExecutionId, tenant: Arc<str>) {
        let mut state = self.state();
        state.parked.remove(id);
        let progress = TaskProgress::default();
        let live = Live { tenant, walk, progress, is_noted: true, asks: None, result: None };
        state.live.insert(id.clone(), live);
    }

    /// Something happened to it. The change of what it asks a person, where that changed.
    pub(super) fn see(&self, id: &TaskId, payload: &EventPayload) -> Option<Option<ApprovalId>> {
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

    /// Its walk is over, and so is its record.
    pub(super) fn end(&self, id: &TaskId, is_parked: bool) {
        let mut state = self.state();
        state.live.remove(id);
        if is_parked {
            state.parked.insert(id.clone());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Its walk is over, and that could not be written down.
    pub(super) fn end_unrecorded(&self, id: &TaskId, result: Arc<ToolResult>) {
        if let Some(live) = self.state().live.get_mut(id) {
            live.result = Some(result);
        }
        self.changed.notify_waiters();
    }

    pub(super) fn forget(&self, id: &TaskId) {
        self.state().parked.remove(id);
        self.changed.notify_waiters();
    }

    pub(super) fn walk_of(&self, id: &TaskId) -> Option<ExecutionId> {
        self.state().live.get(id).map(|live| live.walk)
    }

    /// What is known here and not written down yet.
    pub(super) fn add_what_is_known(&self, task: &mut Task) {
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

    /// What was not written down yet.
    fn to_note(&self) -> ToNote {
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

    fn is_idle(&self) -> bool {
        let state = self.state();
        state.live.is_empty() && state.parked.is_empty() && !self.stays.load(Ordering::Acquire)
    }
}

/// Sees to it that something looks after the tasks.
pub(super) fn wake(engine: &Arc<Inner>) {
    if engine.tasks.is_up.swap(true, Ordering::AcqRel) {
        return;
    }
    let (weak, tick) = (Arc::downgrade(engine), engine.ports.settings.tasks.tick);
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        engine.tasks.is_up.store(false, Ordering::Release);
        return;
    };
    runtime.spawn(look_after(weak, tick));
}

/// Says that nothing looks after the tasks any more, also where the runtime that it was on is gone.
struct Up(Weak<Inner>);

impl Drop for Up {
    fn drop(&mut self) {
        if let Some(engine) = self.0.upgrade() {
            engine.tasks.is_up.store(false, Ordering::Release);
        }
    }
}

/// Looks after the tasks of an engine for as long as there are any. It does not keep the engine alive.
async fn look_after(engine: Weak<Inner>, tick: std::time::Duration) {
    let up = Up(Weak::clone(&engine));
    let mut ticks: u32 = 0;
    loop {
        tokio::time::sleep(tick).await;
        let Some(engine) = engine.upgrade() else { return };
        ticks = ticks.wrapping_add(1);
        look(&engine, ticks).await;
        if engine.tasks.is_idle() || engine.closed.load(Ordering::Acquire) && engine.tasks.count() == 0 {
            drop(up);
            // One that came between the two lines above saw that it was looked after.
            if !engine.tasks.is_idle() && !engine.closed.load(Ordering::Acquire) {
                wake(&engine);
            }
            return;
        }
    }
}

async fn look(engine: &Arc<Inner>, ticks: u32) {
    let Ok(store) = engine.ports.store.tasks() else { return };
    let ToNote { notes, ends } = engine.tasks.to_note();
    for (id, result) in ends {
        if store.finish(&id, result).await.is_ok() {
            engine.tasks.end(&id, false);
        }
    }
    // What cannot be written down now is written down with the next change.
    for id in store.note(notes).await.unwrap_or_default() {
        if let Some(walk) = engine.tasks.walk_of(&id) {
            Engine::from_inner(Arc::clone(engine)).cancel(walk, CancelReason::User, None);
        }
    }
    let _ = take_over(engine).await;
    if ticks.is_multiple_of(FORGET) {
        let _ = store.sweep().await;
    }
}

/// Takes over what nobody runs.
pub(super) async fn take_over(engine: &Arc<Inner>) -> Result<usize, StoreError> {
    let settings = &engine.ports.settings.tasks;
    let room = settings.max_taken.saturating_sub(engine.tasks.count());
    if !settings.takes_over || room == 0 || engine.closed.load(Ordering::Acquire) {
        return Ok(0);
    }
    let claimed = engine.ports.store.tasks()?.take_over(&settings.runner, room).await?;
    let count = claimed.len();
    for task in claimed {
        walk::run(engine, task, None);
    }
    Ok(count)
}

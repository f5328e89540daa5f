//! Looks after the tasks of an engine: writes down how far they are, takes over what nobody runs.

use super::execution;
use crate::{inner::Inner, task_table::ToNote};
use haft_core::port::StoreError;
use haft_sdk::CancelReason;
use std::sync::{Arc, Weak, atomic::Ordering};

/// Every so many ticks, what was kept long enough is forgotten.
const FORGET: u32 = 60;

/// Sees to it that something looks after the tasks.
pub(crate) fn wake(engine: &Arc<Inner>) {
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
        if let Some(execution) = engine.tasks.execution_of(&id) {
            engine.cancel(execution.into(), CancelReason::User, None);
        }
    }
    let _ = take_over(engine).await;
    if ticks.is_multiple_of(FORGET) {
        let _ = store.sweep().await;
    }
}

/// Takes over what nobody runs.
pub(crate) async fn take_over(engine: &Arc<Inner>) -> Result<usize, StoreError> {
    let settings = &engine.ports.settings.tasks;
    let room = settings.max_taken.saturating_sub(engine.tasks.count());
    if !settings.takes_over || room == 0 || engine.closed.load(Ordering::Acquire) {
        return Ok(0);
    }
    let claimed = engine.ports.store.tasks()?.take_over(&settings.runner, room).await?;
    let count = claimed.len();
    for task in claimed {
        execution::run(engine, task, None);
    }
    Ok(count)
}

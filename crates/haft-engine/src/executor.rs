//! The executor: one call or one batch, through the five stages, in one direction.

use crate::{
    approve::{Decided, approve},
    engine::Inner,
    finish::{Raw, finish},
    frame::{Batch, Frame},
    parked,
    plan::{Purpose, plan},
    run::{cancelled_with, run},
    schedule::{Turn, schedule},
};
use haft_core::{BatchOptions, ToolError, ToolResult};
use haft_sdk::CancelReason;
use std::sync::{Arc, atomic::Ordering};

/// Walks calls that belong together through plan, approve, schedule, run and finish. One result each, in call order.
pub(crate) async fn walk(walkers: Walkers, batch: Option<(Arc<Batch>, BatchOptions)>) -> Vec<ToolResult> {
    let engine = &walkers.engine;
    let bounds = batch.as_ref().map(|(batch, options)| (&**batch, options.origin));
    let planned = plan(&engine.ports, bounds, &walkers.frames, Purpose::Run).await;
    let decided = approve(&engine.ports, planned).await;
    let continue_on_failure = batch.as_ref().is_none_or(|(_, options)| options.continue_on_failure);
    schedule(bounds.map(|(batch, _)| batch), continue_on_failure, decided, |turn| take(engine, turn)).await
}

/// A call's turn has come: run and finish.
async fn take(engine: &Inner, turn: Turn) -> ToolResult {
    let (frame, raw) = match turn {
        Turn::Take(Decided::Go(ready)) => (Arc::clone(&ready.frame), run(&engine.ports, ready).await.into()),
        Turn::Take(Decided::Parked(frame)) => {
            (Arc::clone(&frame), Box::pin(parked::wait(engine, &frame)).await.into())
        }
        Turn::Take(Decided::Follows(frame, leader)) => {
            (Arc::clone(&frame), Box::pin(parked::follow(engine, &frame, leader)).await)
        }
        Turn::Take(Decided::Resolved(frame, exit)) => (frame, Raw::from(exit)),
        Turn::Skip(
            Decided::Go(crate::plan::Ready { frame, .. })
            | Decided::Parked(frame)
            | Decided::Follows(frame, _)
            | Decided::Resolved(frame, _),
            error,
        ) => (frame, Raw::Error(error)),
    };
    finish(engine, &frame, raw).await
}

/// Ends calls that cannot be taken at all, each with the same error.
pub(crate) async fn refuse(walkers: Walkers, error: ToolError) -> Vec<ToolResult> {
    let mut results = Vec::with_capacity(walkers.frames.len());
    for frame in &walkers.frames {
        results.push(finish(&walkers.engine, frame, Raw::Error(error.clone())).await);
    }
    results
}

/// Calls that have no result yet. Should the caller go away, each is still ended, recorded and announced.
pub(crate) struct Walkers {
    engine: Arc<Inner>,
    frames: Vec<Arc<Frame>>,
}

impl Walkers {
    pub(crate) fn new(engine: Arc<Inner>, frames: Vec<Arc<Frame>>) -> Self {
        Walkers { engine, frames }
    }

    pub(crate) fn engine(&self) -> &Inner {
        &self.engine
    }
}

impl Drop for Walkers {
    fn drop(&mut self) {
        let left: Vec<_> =
            self.frames.drain(..).filter(|frame| !frame.finished.load(Ordering::Acquire)).collect();
        if left.is_empty() {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let ending = async move {
            for frame in left {
                frame.cancel.cancel(CancelReason::Abandoned, None);
                let error = cancelled_with(frame.cancel.note(), CancelReason::Abandoned);
                finish(&engine, &frame, Raw::Error(error)).await;
            }
        };
        // Without a runtime nothing can be awaited any more; then the process is ending, and the journal says so.
        if let Some(runtime) = self.engine.runtime() {
            runtime.spawn(ending);
        }
    }
}

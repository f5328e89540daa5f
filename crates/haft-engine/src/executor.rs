//! The executor: one call or one batch, through the five stages, in one direction.

use crate::{
    approve::{Decided, approve},
    engine::Inner,
    finish::{Raw, finish},
    frame::{Batch, Frame},
    journal, parked,
    plan::{Purpose, plan},
    run::{cancelled_with, run},
    schedule::{Turn, schedule},
    telemetry::{self, Stage, stage},
};
use haft_core::{BatchOptions, ErrorCode, EventPayload, ToolError, ToolResult};
use haft_sdk::CancelReason;
use std::sync::{Arc, atomic::Ordering};
use tracing::Instrument as _;

/// Walks calls that belong together through plan, approve, schedule, run and finish. One result each, in call order.
pub(crate) async fn walk(walkers: &Walkers, options: Option<&BatchOptions>) -> Vec<ToolResult> {
    let Walkers { engine, frames, batch } = walkers;
    let origin = options.map(|options| options.origin);
    let planned = plan(&engine.ports, origin, frames, Purpose::Run).instrument(stage(Stage::Plan)).await;
    let mut decided = approve(&engine.ports, planned).instrument(stage(Stage::Approve)).await;
    if engine.ports.wants.journal && batch.is_some() {
        decided = Box::pin(journal::decided(&engine.ports, decided)).await;
    }
    parked::announce(engine, &decided);
    let continue_on_failure = options.is_none_or(|options| options.continue_on_failure);
    schedule(batch.as_deref(), continue_on_failure, decided, |turn| take(engine, turn))
        .instrument(stage(Stage::Schedule))
        .await
}

/// A call's turn has come: run and finish.
async fn take(engine: &Inner, Turn { decided, skipped }: Turn) -> ToolResult {
    let frame = Arc::clone(decided.frame());
    if frame.batch.is_some() {
        frame.begin_turn();
    }
    let span = telemetry::execute_tool(&engine.ports.redaction, &frame);
    let raw = match (skipped, decided) {
        (Some(why), _) => Raw::Error(why),
        (None, Decided::Go(ready)) => {
            let run = run(&engine.ports, ready).instrument(span.in_scope(|| stage(Stage::Run)));
            run.await.into()
        }
        (None, Decided::Parked(frame)) => Box::pin(parked::wait(engine, &frame)).await.into(),
        (None, Decided::Follows(frame, leader)) => Box::pin(parked::follow(engine, &frame, leader)).await,
        (None, Decided::Resolved(_, exit)) => Raw::from(exit),
    };
    let result = finish(engine, &frame, raw).instrument(span.in_scope(|| stage(Stage::Finish))).await;
    telemetry::outcome(&span, &result);
    result
}

/// Ends calls that cannot be taken at all, each with the same error.
pub(crate) async fn refuse(walkers: &Walkers, error: ToolError) -> Vec<ToolResult> {
    let mut results = Vec::with_capacity(walkers.frames.len());
    for frame in &walkers.frames {
        results.push(finish(&walkers.engine, frame, Raw::Error(error.clone())).await);
    }
    results
}

/// Calls that have no result yet. Should the caller go away, each is still ended, recorded and announced.
pub(crate) struct Walkers {
    pub(crate) engine: Arc<Inner>,
    pub(crate) frames: Vec<Arc<Frame>>,
    pub(crate) batch: Option<Arc<Batch>>,
}

impl Drop for Walkers {
    fn drop(&mut self) {
        let batch = self.batch.take();
        let mut left = std::mem::take(&mut self.frames);
        left.retain(|frame| !frame.finished.load(Ordering::Acquire));
        if left.is_empty() {
            end_batch(&self.engine, batch.as_deref());
            return;
        }
        let engine = Arc::clone(&self.engine);
        engine.runtime().end_there(async move {
            for frame in left {
                frame.cancel.cancel(CancelReason::Abandoned, None);
                let error = cancelled_with(frame.cancel.note(), CancelReason::Abandoned);
                finish(&engine, &frame, Raw::Error(error)).await;
            }
            journal::abandoned(&engine.ports, batch.as_deref()).await;
            end_batch(&engine, batch.as_deref());
        });
    }
}

fn end_batch(engine: &Inner, batch: Option<&Batch>) {
    if let Some(batch) = batch {
        // Where the batch has completed, its log has ended and this is not heard.
        let message = CancelReason::Abandoned.model_text().to_owned();
        batch.emit(EventPayload::Cancelled { code: ErrorCode::Cancelled, message }, true);
        engine.executions.end_batch(batch);
    }
}

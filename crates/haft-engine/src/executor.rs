//! The executor: one call or one batch, through the five stages, in one direction.

use crate::{
    approve::{Decided, approve},
    engine::Inner,
    finish::{Raw, finish},
    frame::{Batch, Frame},
    journal, parked,
    plan::{Purpose, plan},
    run::{cancelled_with, run},
    schedule::{
        Turn,
        order::Manner,
        schedule,
        start::{further_tries, is_retryable, surrounded},
    },
    telemetry::{self, Stage, stage, within},
};
use haft_core::{BatchOptions, ErrorCode, EventPayload, Strategy, ToolError, ToolResult};
use haft_sdk::CancelReason;
use std::sync::{Arc, atomic::Ordering};

/// Walks calls that belong together through plan, approve, schedule, run and finish. One result each, in call order.
pub(crate) async fn walk(
    walkers: &Walkers,
    options: Option<&BatchOptions>,
    manner: &Manner,
) -> Vec<ToolResult> {
    let Walkers { engine, frames, batch } = walkers;
    let origin = options.map(|options| options.origin);
    let planned = within!(stage(Stage::Plan), plan(&engine.ports, origin, frames, Purpose::Run));
    let mut decided = within!(stage(Stage::Approve), approve(&engine.ports, planned));
    if engine.ports.wants.journal && batch.is_some() {
        decided = Box::pin(journal::decided(&engine.ports, decided)).await;
    }
    parked::announce(engine, &decided);
    if let (Some(batch), true) = (batch, manner.strategy != Strategy::Sequential) {
        let (read_only, mutating) = walkers.kinds();
        batch.emit(EventPayload::ParallelStarted { read_only, mutating }, false);
    }
    let continue_on_failure = options.is_none_or(|options| options.continue_on_failure);
    within!(
        stage(Stage::Schedule),
        schedule(batch.as_deref(), continue_on_failure, manner, decided, |turn| take(engine, turn))
    )
}

/// A call's turn has come: run and finish.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice, and this is moved with every call"
)]
pub(crate) fn take(engine: &Inner, mut turn: Turn) -> impl Future<Output = ToolResult> {
    async move {
        let frame = Arc::clone(turn.decided.frame());
        if frame.batch.is_some() {
            frame.begin_turn();
        }
        let ports = &engine.ports;
        let span = telemetry::execute_tool(&ports.redaction, &frame);
        let running = || span.in_scope(|| stage(Stage::Run));
        let raw = match turn.decided {
            _ if turn.skipped.is_some() => {
                Raw::Error(turn.skipped.take().map_or(ErrorCode::NotStarted.into(), |error| *error))
            }
            Decided::Go(ref mut ready) if ports.around.is_bare() => {
                let outcome = within!(running(), run(ports, ready));
                if is_retryable(&outcome) {
                    within!(running(), Box::pin(further_tries(ports, ready, outcome))).into()
                } else {
                    outcome.into()
                }
            }
            Decided::Go(ref mut ready) => within!(running(), Box::pin(surrounded(ports, ready))).into(),
            Decided::Parked(frame) => Box::pin(parked::wait(engine, &frame)).await.into(),
            Decided::Follows(frame, leader) => Box::pin(parked::follow(engine, &frame, leader)).await,
            Decided::Resolved(_, exit) => Raw::from(exit),
        };
        let raw = ports.around.note(&frame, raw);
        let result = within!(span.in_scope(|| stage(Stage::Finish)), finish(engine, &frame, raw));
        ports.around.ended(ports, &frame, &result);
        telemetry::outcome(&span, &result);
        result
    }
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

impl Walkers {
    /// How many of the calls change nothing, and how many may.
    pub(crate) fn kinds(&self) -> (usize, usize) {
        let is_harmless = |frame: &&Arc<Frame>| {
            frame.registered.get().is_some_and(|registered| !registered.definition.has_side_effects())
        };
        let read_only = self.frames.iter().filter(is_harmless).count();
        (read_only, self.frames.len() - read_only)
    }
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
                frame.stop(CancelReason::Abandoned, None);
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

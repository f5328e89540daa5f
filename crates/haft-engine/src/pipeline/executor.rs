//! The executor: one call or one batch, through the six stages, in one direction.

use super::{
    approve::approve,
    awaiting,
    finish::finish,
    journal,
    plan::{Purpose, plan},
    run::Runner,
    schedule::{Turn, admit::admit, order::BatchPlan, schedule},
    settle::{blocked, settle},
    types::{Batch, CallRecord, CallState, Decided, RunOutcome, cancelled_with},
};
use crate::{
    inner::Inner,
    telemetry::{self, Stage, stage, within},
};
use haft_core::{BatchOptions, ErrorCode, EventPayload, Strategy, ToolError, ToolResult};
use haft_sdk::CancelReason;
use std::sync::{Arc, atomic::Ordering};

/// Takes calls that belong together through plan, approve, schedule, run, settle and finish. One result each, in call order.
pub(crate) async fn execute(
    pending: &PendingCalls,
    options: Option<&BatchOptions>,
    batch_plan: &BatchPlan,
) -> Vec<ToolResult> {
    let PendingCalls { engine, calls, batch } = pending;
    let origin = options.map(|options| options.origin);
    let planned = within!(stage(Stage::Plan), plan(&engine.ports, origin, calls, Purpose::Run));
    let mut decided = within!(stage(Stage::Approve), approve(&engine.ports, planned));
    if engine.ports.wants.journal && batch.is_some() {
        decided = Box::pin(journal::decided(&engine.ports, decided)).await;
    }
    awaiting::announce(&engine.live, &decided);
    if let (Some(batch), true) = (batch, batch_plan.strategy != Strategy::Sequential) {
        let (read_only, mutating) = pending.kinds();
        batch.emit(EventPayload::ParallelStarted { read_only, mutating }, false);
    }
    let continue_on_failure = options.is_none_or(|options| options.continue_on_failure);
    within!(
        stage(Stage::Schedule),
        schedule(batch.as_deref(), continue_on_failure, batch_plan, decided, |turn| run_turn(engine, turn))
    )
}

/// A call's turn has come: run, settle and finish.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice, and this is moved with every call"
)]
pub(crate) fn run_turn(engine: &Inner, mut turn: Turn) -> impl Future<Output = ToolResult> {
    async move {
        if turn.decided.call().batch.is_some() {
            turn.decided.call_mut().begin_turn();
        }
        let ports = &engine.ports;
        let span = telemetry::execute_tool(&ports.redaction, turn.decided.call());
        turn.skipped = turn.skipped.or_else(|| blocked(&turn.decided));
        let running = || span.in_scope(|| stage(Stage::Run));
        let outcome = match turn.decided {
            _ if turn.skipped.is_some() => {
                RunOutcome::Error(turn.skipped.take().map_or(ErrorCode::NotStarted.into(), |error| *error))
            }
            Decided::Go(ref mut ready) => {
                within!(running(), admit(&engine.controls, ports, ready, Runner(ports))).into()
            }
            Decided::AwaitingResult(ref call) => Box::pin(awaiting::wait(&engine.live, call)).await.into(),
            Decided::Follows(ref mut call, leader) => {
                Box::pin(awaiting::follow(ports, &engine.live, call, leader)).await
            }
            Decided::Resolved(_, ref mut exit) => RunOutcome::from(std::mem::take(exit)),
        };
        let call = turn.decided.call_mut();
        let outcome = settle(ports, call, outcome).await;
        let outcome = engine.controls.note(call, outcome);
        let finishing = finish(ports, &engine.live, call, outcome);
        let result = within!(span.in_scope(|| stage(Stage::Finish)), finishing);
        engine.controls.ended(ports, turn.decided.call(), &result);
        telemetry::outcome(&span, &result);
        result
    }
}

/// Ends a call that does not run.
pub(crate) async fn end(engine: &Inner, call: &Arc<CallState>, error: ToolError) -> ToolResult {
    let mut call = CallRecord::of(call);
    let outcome = settle(&engine.ports, &mut call, RunOutcome::Error(error)).await;
    finish(&engine.ports, &engine.live, &mut call, outcome).await
}

/// Ends calls that cannot be taken at all, each with the same error.
pub(crate) async fn refuse(pending: &PendingCalls, error: ToolError) -> Vec<ToolResult> {
    let mut results = Vec::with_capacity(pending.calls.len());
    for call in &pending.calls {
        results.push(end(&pending.engine, call, error.clone()).await);
    }
    results
}

/// Calls that have no result yet. Should the caller go away, each is still ended, recorded and announced.
pub(crate) struct PendingCalls {
    pub(crate) engine: Arc<Inner>,
    pub(crate) calls: Vec<Arc<CallState>>,
    pub(crate) batch: Option<Arc<Batch>>,
}

impl PendingCalls {
    /// How many of the calls change nothing, and how many may.
    pub(crate) fn kinds(&self) -> (usize, usize) {
        let is_harmless = |call: &&Arc<CallState>| {
            call.registered.get().is_some_and(|registered| !registered.definition.has_side_effects())
        };
        let read_only = self.calls.iter().filter(is_harmless).count();
        (read_only, self.calls.len() - read_only)
    }
}

impl Drop for PendingCalls {
    fn drop(&mut self) {
        let batch = self.batch.take();
        let mut left = std::mem::take(&mut self.calls);
        left.retain(|call| !call.finished.load(Ordering::Acquire));
        if left.is_empty() {
            end_batch(&self.engine, batch.as_deref());
            return;
        }
        let engine = Arc::clone(&self.engine);
        engine.runtime().end_there(async move {
            for call in left {
                call.stop(CancelReason::Abandoned, None);
                let error = cancelled_with(call.cancel.note(), CancelReason::Abandoned);
                end(&engine, &call, error).await;
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
        engine.live.executions.end_batch(batch);
    }
}

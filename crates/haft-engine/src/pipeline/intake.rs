//! How calls come in: put on the list, and then executed. Dropping what comes back cancels what has not ended.

use super::{
    executor::{self, PendingCalls, refuse},
    hand_over, journal,
    plan::is_above_tier,
    schedule::order::{BatchPlan, batch_plan},
    types::{Arrival, Batch, CallState, TaskOrigin},
};
use crate::{
    inner::{Inner, id_in_use},
    request::{BatchRequest, Request},
    telemetry::{self, within},
};
use haft_core::{
    BatchId, BatchOptions, BatchOrigin, BatchSummary, ErrorCode, EventPayload, Strategy, ToolError,
    ToolResult,
};
use std::{future::Future, sync::Arc, time::Instant};

/// A single call overlaps nothing.
const ALONE: BatchPlan = BatchPlan { strategy: Strategy::Sequential, at_once: 1, note: None };

/// Makes one call. `outer` is the call that makes it, where one does: it then runs in that one's slot. `task` is the
/// task that it is, where it is one.
pub(crate) fn execute(
    engine: &Arc<Inner>,
    request: Request,
    outer: Option<Arc<CallState>>,
    task: Option<Box<TaskOrigin>>,
) -> impl Future<Output = ToolResult> + Send + use<> {
    opened(engine, request, outer, task).1
}

/// Makes one call, and gives it, too, for those who watch it.
pub(crate) fn opened(
    engine: &Arc<Inner>,
    request: Request,
    outer: Option<Arc<CallState>>,
    task: Option<Box<TaskOrigin>>,
) -> (Arc<CallState>, impl Future<Output = ToolResult> + Send + use<>) {
    let arrival = Arrival {
        call: request.call,
        context: request.context,
        options: request.options,
        approver: request.approver,
        batch: None,
        is_inside: outer.is_some(),
        outer,
        task,
        at: engine.ports.clock.now(),
        instant: Instant::now(),
    };
    engine.note_runtime();
    let (call, refusal) = engine.open(arrival);
    // Made before the first poll: a future that is dropped unpolled still ends its call.
    let opened = Arc::clone(&call);
    let pending = PendingCalls { engine: Arc::clone(engine), calls: vec![call], batch: None };
    let running = async move {
        pending.engine.note_runtime();
        let mut results = match refusal {
            // Boxed like everything that is rare: its state would make every call larger to move.
            Some(error) => Box::pin(refuse(&pending, *error)).await,
            None => within!(telemetry::execution(&pending.calls), executor::execute(&pending, None, &ALONE)),
        };
        // One call went in, and each gets one result.
        let Some(result) = results.pop() else { unreachable!("one call, one result") };
        result
    };
    (opened, running)
}

/// Opens a call that comes by itself, with what refuses it already.
fn open_alone(engine: &Arc<Inner>, request: Request) -> (PendingCalls, Option<Box<ToolError>>) {
    let arrival = Arrival {
        call: request.call,
        context: request.context,
        options: request.options,
        approver: request.approver,
        batch: None,
        is_inside: false,
        outer: None,
        task: None,
        at: engine.ports.clock.now(),
        instant: Instant::now(),
    };
    engine.note_runtime();
    let (call, refusal) = engine.open(arrival);
    let pending = PendingCalls { engine: Arc::clone(engine), calls: vec![call], batch: None };
    (pending, refusal)
}

/// Decides about one call that somebody else runs. No tool is started.
pub(crate) fn decide(
    engine: &Arc<Inner>,
    request: Request,
) -> impl Future<Output = ToolResult> + Send + use<> {
    let (pending, refusal) = open_alone(engine, request);
    async move {
        let mut results = match refusal {
            Some(error) => Box::pin(refuse(&pending, *error)).await,
            None => within!(telemetry::execution(&pending.calls), hand_over::decide(&pending)),
        };
        let Some(result) = results.pop() else { unreachable!("one call, one result") };
        result
    }
}

/// Ends a call that is refused before it is taken: it has its record and its last event like any other.
pub(crate) async fn refuse_call(engine: &Arc<Inner>, request: Request, error: ToolError) {
    let (pending, refusal) = open_alone(engine, request);
    refuse(&pending, refusal.map_or(error, |refusal| *refusal)).await;
}

/// Makes several calls that are planned together.
pub(crate) fn execute_batch(
    engine: &Arc<Inner>,
    request: BatchRequest,
) -> impl Future<Output = (Vec<ToolResult>, BatchSummary)> + Send + use<> {
    opened_batch(engine, request).1
}

/// Makes several calls that are planned together, and gives their batch, too, for those who watch it.
pub(crate) fn opened_batch(
    engine: &Arc<Inner>,
    request: BatchRequest,
) -> (Arc<Batch>, impl Future<Output = (Vec<ToolResult>, BatchSummary)> + Send + use<>) {
    let BatchRequest { calls, context, options, approver } = request;
    let ports = &engine.ports;
    let (at, instant) = (ports.clock.now(), Instant::now());
    let mut batch_id = match options.call.execution_id {
        Some(id) => BatchId::from_uuid(id.as_uuid()),
        None => BatchId::at(at),
    };
    let make = |id| Arc::new(Batch::new(id, &context.tenant, at, instant, &options.call.model, ports));
    let mut batch = make(batch_id);
    let mut refusal = None;
    while !engine.live.executions.begin_batch(&batch) {
        refusal = Some(id_in_use(&batch_id));
        batch_id = BatchId::at(at);
        batch = make(batch_id);
    }
    let mut call_options = options.call.clone();
    call_options.execution_id = None;
    let call_options = Arc::new(call_options);
    let opened: Vec<_> = calls
        .into_iter()
        .zip(0_u32..)
        .map(|(call, index)| {
            engine.open(Arrival {
                call,
                context: Arc::clone(&context),
                options: Arc::clone(&call_options),
                approver: approver.clone(),
                batch: Some((Arc::clone(&batch), index)),
                is_inside: false,
                task: None,
                outer: None,
                at,
                instant,
            })
        })
        .collect();
    let refusal = refusal.or_else(|| options.check().err().map(|bad| Box::new(ToolError::from(bad))));
    let refusal = refusal.or_else(|| opened.iter().find_map(|(_, refusal)| refusal.clone()));
    let calls: Vec<_> = opened.into_iter().map(|(call, _)| call).collect();
    engine.note_runtime();
    let is_above_tier = is_above_tier(&calls, options.origin);
    let may_overlap = options.origin == BatchOrigin::Client || ports.settings.allow_parallel;
    let lane = engine.controls.narrowest_lane();
    let batch_plan = batch_plan(options.strategy, options.max_parallelism, context.tier, may_overlap, lane);
    let pending = PendingCalls { engine: Arc::clone(engine), calls, batch: Some(Arc::clone(&batch)) };
    let opened = Arc::clone(&batch);
    let running = async move {
        pending.engine.note_runtime();
        if !is_above_tier {
            let count = pending.calls.len();
            let is_parallel = batch_plan.strategy != Strategy::Sequential;
            batch.emit(EventPayload::BatchStarted { count, is_parallel }, false);
            if let Some(message) = batch_plan.note.clone() {
                batch.emit(EventPayload::Warning { message }, false);
            }
        }
        let journals = pending.engine.ports.wants.journal;
        let refusal = match refusal {
            None if journals => Box::pin(journal::begin(&pending.engine.ports, &batch, &pending.calls))
                .await
                .err()
                .map(Box::new),
            refusal => refusal,
        };
        let results = match refusal {
            Some(error) => Box::pin(refuse(&pending, *error)).await,
            None => {
                within!(
                    telemetry::execution(&pending.calls),
                    executor::execute(&pending, Some(&options), &batch_plan)
                )
            }
        };
        if journals {
            Box::pin(journal::close(&pending.engine.ports, &batch, &options)).await;
        }
        let (read_only, mutating) = pending.kinds();
        let summary = BatchSummary {
            read_only,
            mutating,
            overlapped: batch.overlap.count(),
            note: batch_plan.note.clone().filter(|_| !is_above_tier),
            ..BatchSummary::of(batch.id, &results, batch.arrived.elapsed())
        };
        pending.engine.live.counters.batch(summary.total);
        if let Some(failed) = stopped_at(&options, &results) {
            telemetry::batch_stopped(&pending.engine.ports.redaction, batch.id, failed);
        }
        telemetry::batch_ended(&summary);
        if batch_plan.strategy != Strategy::Sequential && !is_above_tier {
            let BatchSummary { total, succeeded, failed, overlapped, duration, .. } = summary;
            let completed =
                EventPayload::ParallelCompleted { total, succeeded, failed, overlapped, duration };
            batch.emit(completed, false);
        }
        let completed = EventPayload::BatchCompleted {
            count: summary.total,
            succeeded: summary.succeeded,
            failed: summary.failed,
            duration: summary.duration,
        };
        batch.emit(completed, true);
        (results, summary)
    };
    (opened, running)
}

/// The call that a batch stopped at, where it stopped at one.
fn stopped_at<'a>(options: &BatchOptions, results: &'a [ToolResult]) -> Option<&'a ToolResult> {
    let not_started = |result: &ToolResult| result.error_code() == Some(ErrorCode::NotStarted);
    if options.continue_on_failure || !results.iter().any(not_started) {
        return None;
    }
    results.iter().find(|result| !result.is_success() && !not_started(result))
}

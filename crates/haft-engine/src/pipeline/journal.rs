//! The steps of a batch, for a store that takes them down. A store that does not costs one look at a flag.

use super::types::{Batch, CallState, Decided, EarlyExit};
use crate::ports::Ports;
use haft_core::{
    BatchOptions, BatchOrigin, CallContext, ErrorCode, ToolError,
    port::{BatchBegin, JournalCall, JournalStep, PlannedStep, StoreError},
};
use std::sync::Arc;

/// A batch is there, and its calls are about to be planned. If that cannot be taken down, nothing of it runs.
pub(crate) async fn begin(ports: &Ports, batch: &Batch, calls: &[Arc<CallState>]) -> Result<(), ToolError> {
    let Some(first) = calls.first() else { return Ok(()) };
    let at = ports.clock.now();
    let begin = BatchBegin {
        batch: batch.id,
        context: Arc::clone(&first.context),
        model: None,
        assistant_text: Arc::default(),
        at,
    };
    let calls = calls.iter().map(|call| JournalCall {
        execution_id: call.id,
        call_id: Arc::clone(&call.tool_call.id),
        tool: Arc::clone(&call.tool_call.name),
        arguments: ports.redaction.arguments(&call.tool_call.arguments),
    });
    let calls = JournalStep::Calls { batch: batch.id, calls: calls.collect(), at };
    // Both are handed over before either is waited for, so that they are written together.
    let begun = ports.store.journal(JournalStep::Begin(begin));
    let taken = ports.store.journal(calls);
    begun.await.and(taken.await).map_err(unavailable)
}

/// A flow is there. Its calls are as its file has them: what they take from each other is not known yet.
pub(crate) async fn begin_flow(
    ports: &Ports,
    batch: &Batch,
    context: &Arc<CallContext>,
    calls: Vec<JournalCall>,
) -> Result<(), ToolError> {
    let at = ports.clock.now();
    let (context, assistant_text) = (Arc::clone(context), Arc::default());
    let begin = BatchBegin { batch: batch.id, context, model: None, assistant_text, at };
    let calls = JournalStep::Calls { batch: batch.id, calls, at };
    let begun = ports.store.journal(JournalStep::Begin(begin));
    let taken = ports.store.journal(calls);
    begun.await.and(taken.await).map_err(unavailable)
}

/// Everybody was asked, and nothing has run yet.
pub(crate) async fn decided(ports: &Ports, decided: Vec<Decided>) -> Vec<Decided> {
    let place = |decided: &Decided| decided.call().batch_place();
    let Some((batch, _)) = decided.first().and_then(place) else { return decided };
    let plans = decided.iter().filter_map(|decided| {
        let plan = match decided {
            Decided::Go(_) => PlannedStep::Runs,
            Decided::Follows(..) | Decided::AwaitingResult(_) => PlannedStep::Waits,
            Decided::Resolved(_, EarlyExit::Error(error)) => PlannedStep::Over(Some(error.code)),
            Decided::Resolved(_, EarlyExit::Replay(_)) => PlannedStep::Over(None),
        };
        Some((place(decided)?.1, plan))
    });
    let step = JournalStep::Decided { batch, calls: plans.collect() };
    match ports.store.journal(step).await {
        Ok(()) => decided,
        // Nothing runs that could not be taken down.
        Err(error) => decided.into_iter().map(|decided| refused(decided, &error)).collect(),
    }
}

fn refused(decided: Decided, error: &StoreError) -> Decided {
    match decided {
        Decided::Go(ready) => Decided::Resolved(ready.call, unavailable(error.clone()).into()),
        other @ (Decided::Follows(..) | Decided::AwaitingResult(_) | Decided::Resolved(..)) => other,
    }
}

/// Every call has its result. A model's batch is closed by the program that puts the results into the conversation:
/// until then they could be lost to it.
pub(crate) async fn close(ports: &Ports, batch: &Batch, options: &BatchOptions) {
    if options.origin == BatchOrigin::Client {
        let step = JournalStep::Close { batch: batch.id, at: ports.clock.now() };
        // Should it fail, the batch is offered for recovery with all its results: nothing is lost by that.
        let _ = ports.store.journal(step).await;
    }
}

/// The caller has gone away, and every call was ended.
pub(crate) async fn abandoned(ports: &Ports, batch: Option<&Batch>) {
    if let (true, Some(batch)) = (ports.wants.journal, batch) {
        let step = JournalStep::Close { batch: batch.id, at: ports.clock.now() };
        let _ = ports.store.journal(step).await;
    }
}

fn unavailable(error: StoreError) -> ToolError {
    ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error)
}

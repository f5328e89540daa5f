//! A flow on its way. All in the caller's own task: dropping the flow drops everything, and what has no result yet is
//! still ended, recorded and announced.

use super::{
    FlowError, FlowRequest, FlowResult, FlowStatus, NodeResult, check,
    condition::answer,
    gate::Gate,
    request::checked_input,
    result::{culprit, given, info, status_of, summary, why},
};
use crate::{
    inner::Inner,
    pipeline::{
        approve::approve,
        awaiting,
        executor::{PendingCalls, end, run_turn},
        journal,
        plan::{Purpose, plan},
        schedule::{
            Turn,
            order::{BatchPlan, batch_plan},
        },
        types::{Arrival, Batch, CallState, Decided, Planned, cancelled_with, shutting_down},
    },
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use haft_core::{
    Arguments, BatchId, BatchOrigin, CallOptions, ErrorCode, EventPayload, ExecutionId, Strategy, ToolCall,
    ToolError, ToolResult,
    port::{BoxFuture, JournalCall},
    text::one_line,
};
use haft_flow::{Flow, Given, Next, NoAnswer, NodeStatus, Walk};
use haft_sdk::CancelReason;
use serde_json::{Map, Value};
use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Instant,
};

/// A flow that has not ended. Should the caller go away, each of its calls is still ended.
struct Flowing {
    engine: Arc<Inner>,
    request: FlowRequest,
    batch: Arc<Batch>,
    /// The call of the flow as a tool.
    outer: Option<Arc<CallState>>,
    /// The ids of the nodes' calls.
    ids: Vec<ExecutionId>,
    calls: Mutex<Vec<Arc<CallState>>>,
    /// Questions of different moments are asked one after the other.
    asking: tokio::sync::Mutex<()>,
}

/// Checks a flow and what it is given, and puts it on the list. Nothing runs before the future is polled.
pub(crate) fn begin(
    engine: &Arc<Inner>,
    mut request: FlowRequest,
    outer: Option<Arc<CallState>>,
) -> Result<impl Future<Output = FlowResult> + Send + use<>, FlowError> {
    let inner = engine;
    check(engine, &request.flow).map_err(FlowError::Bad)?;
    if outer.is_none() {
        request.input = checked_input(&request.flow, request.input)?;
    }
    if request.options.detached {
        let text = "A flow cannot be detached";
        return Err(FlowError::Refused(ToolError::new(ErrorCode::BadRequest, text)));
    }
    request.options.check().map_err(|bad| FlowError::Refused(bad.into()))?;
    if inner.closed.load(Ordering::Acquire) {
        return Err(FlowError::Refused(shutting_down()));
    }
    let (count, tier) = (request.flow.nodes.len(), request.context.tier);
    if let Some(most) = tier.max_batch().filter(|most| count > *most) {
        let text = format!(
            "A flow of {count} nodes is more than the {tier:?} tier allows ({most}). Nothing was run"
        );
        return Err(FlowError::Refused(ToolError::new(ErrorCode::LimitExceeded, text)));
    }
    let ports = &inner.ports;
    let (at, arrived) = (ports.clock.now(), Instant::now());
    let id = request
        .options
        .execution_id
        .take()
        .map_or_else(|| BatchId::at(at), |id| BatchId::from_uuid(id.as_uuid()));
    let batch = Arc::new(Batch::new(id, &request.context.tenant, at, arrived, &request.options.model, ports));
    batch.goes_on.store(true, Ordering::Release);
    if !inner.live.executions.begin_batch(&batch) {
        let text = format!("The id {id} is in use. Use a new one, or none");
        return Err(FlowError::Refused(ToolError::new(ErrorCode::DuplicateCallId, text)));
    }
    inner.note_runtime();
    let ids = (0..count).map(|_| ExecutionId::at(at)).collect();
    let lane = inner.controls.narrowest_lane();
    let batch_plan = batch_plan(Strategy::Smart, request.flow.max_parallelism, tier, true, lane);
    let flowing = Flowing {
        engine: Arc::clone(engine),
        request,
        batch,
        outer,
        ids,
        calls: Mutex::default(),
        asking: tokio::sync::Mutex::new(()),
    };
    Ok(async move {
        flowing.inner().note_runtime();
        flowing.run(&batch_plan).await
    })
}

/// Something that was waited for has happened.
enum Event {
    Answered(usize, Result<bool, NoAnswer>),
    Planned(Vec<(usize, Planned)>),
    Decided(Vec<(usize, Decided)>),
    Ended(usize, Option<NodeStatus>, Box<ToolResult>),
}

/// What is waited for, and what is known so far.
struct Progress<'f> {
    walk: Walk,
    gate: Gate,
    waits: FuturesUnordered<BoxFuture<'f, Event>>,
    nodes: Vec<Option<NodeResult>>,
}

impl Flowing {
    fn inner(&self) -> &Arc<Inner> {
        &self.engine
    }

    fn flow(&self) -> &Arc<Flow> {
        &self.request.flow
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Arc<CallState>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, batch_plan: &BatchPlan) -> FlowResult {
        let count = self.flow().nodes.len();
        let is_parallel = batch_plan.at_once > 1;
        self.batch.emit(EventPayload::BatchStarted { count, is_parallel }, false);
        if let Some(message) = batch_plan.note.clone() {
            self.batch.emit(EventPayload::Warning { message }, false);
        }
        let journals = self.inner().ports.wants.journal;
        let mut progress = Progress {
            walk: Walk::new(Arc::clone(self.flow()), self.request.input.clone()),
            gate: Gate::new(batch_plan.at_once),
            waits: FuturesUnordered::new(),
            nodes: (0..count).map(|_| None).collect(),
        };
        let refusal = if journals { self.journal().await.err() } else { None };
        let deadline = async {
            match self.flow().timeout {
                Some(timeout) if self.outer.is_none() => tokio::time::sleep(timeout).await,
                _ => std::future::pending().await,
            }
        };
        let mut deadline = std::pin::pin!(deadline.fuse());
        loop {
            self.hand_out(&mut progress, refusal.as_ref());
            self.start(&mut progress);
            let event = tokio::select! {
                biased;
                () = &mut deadline => {
                    let note = "the flow took longer than its `timeout`";
                    self.engine.cancel(self.batch.id.into(), CancelReason::Deadline, Some(note));
                    continue;
                }
                event = progress.waits.next() => event,
            };
            let Some(event) = event else { break };
            self.happened(&mut progress, event);
        }
        self.batch.goes_on.store(false, Ordering::Release);
        if journals {
            journal::abandoned(&self.inner().ports, Some(&self.batch)).await;
        }
        self.result(progress)
    }

    /// The flow and its calls are on record before any of them is planned.
    async fn journal(&self) -> Result<(), ToolError> {
        let ports = &self.inner().ports;
        let value = self.flow().to_value();
        let calls = self.flow().nodes.iter().zip(&self.ids).enumerate();
        let calls = calls.map(|(place, (node, id))| JournalCall {
            execution_id: *id,
            call_id: Arc::clone(&node.name),
            tool: Arc::clone(&node.tool),
            arguments: ports.redaction.arguments(&as_written(&value, place)),
        });
        journal::begin_flow(ports, &self.batch, &self.request.context, calls.collect()).await
    }

    /// Looks at the nodes whose turn has come, until there is none.
    fn hand_out<'f>(&'f self, progress: &mut Progress<'f>, refusal: Option<&ToolError>) {
        let mut calls = Vec::new();
        loop {
            let ready = progress.walk.ready();
            if ready.is_empty() {
                break;
            }
            for place in ready {
                let stopped =
                    refusal.cloned().map(|error| (NodeStatus::Failed, error)).or_else(|| self.stopped());
                match stopped {
                    Some((status, error)) => self.refuse(progress, place, status, error),
                    None => {
                        let next = progress.walk.next(place);
                        self.go_on(progress, place, next, &mut calls);
                    }
                }
            }
        }
        self.plan(progress, calls);
    }

    /// Why nothing starts any more, if somebody stopped the flow.
    fn stopped(&self) -> Option<(NodeStatus, ToolError)> {
        let cancel = &self.batch.cancel;
        Some((NodeStatus::Cancelled, cancelled_with(cancel.note(), cancel.reason()?)))
    }

    fn go_on<'f>(
        &'f self,
        progress: &mut Progress<'f>,
        place: usize,
        next: Next,
        calls: &mut Vec<(usize, Map<String, Value>)>,
    ) {
        match next {
            Next::Call(arguments) => calls.push((place, arguments)),
            Next::Ask(condition, variables) => {
                progress.waits.push(Box::pin(async move {
                    Event::Answered(place, answer(condition, variables).await)
                }));
            }
            Next::Block(reason) => {
                self.refuse(progress, place, NodeStatus::Blocked, ToolError::new(ErrorCode::Blocked, reason));
            }
            Next::Stop(reason) => {
                self.refuse(
                    progress,
                    place,
                    NodeStatus::Blocked,
                    ToolError::new(ErrorCode::NotStarted, reason),
                );
            }
            Next::Fail(reason) => {
                let error = ToolError::new(ErrorCode::ValidationFailed, reason);
                self.refuse(progress, place, NodeStatus::Failed, error);
            }
            Next::Skip(reason) => {
                let node = &self.flow().nodes[place];
                let message = format!("`{}` is skipped: {}", node.name, one_line(&reason, 200));
                self.batch.emit(EventPayload::InProgress { percent: None, message: Some(message) }, false);
                progress.walk.end(place, Given::nothing(NodeStatus::Skipped));
                progress.nodes[place] = Some(NodeResult {
                    name: Arc::clone(&node.name),
                    tool: Arc::clone(&node.tool),
                    status: NodeStatus::Skipped,
                    reason: Some(reason),
                    duration: std::time::Duration::ZERO,
                    execution_id: None,
                    result: None,
                });
            }
        }
    }

    /// A node's call, on the list; with the reason, if it cannot be taken.
    fn open(&self, place: usize, arguments: Arguments) -> (Arc<CallState>, Option<Box<ToolError>>) {
        let node = &self.flow().nodes[place];
        let options = CallOptions {
            execution_id: Some(self.ids[place]),
            timeout: node.timeout.or(self.request.options.timeout),
            retry: node.retry.clone().or_else(|| self.request.options.retry.clone()),
            ..self.request.options.clone()
        };
        let opened = self.engine.open(Arrival {
            call: ToolCall::new(Arc::clone(&node.tool), arguments).with_id(Arc::clone(&node.name)),
            context: Arc::clone(&self.request.context),
            options: Arc::new(options),
            approver: self.request.approver.clone(),
            batch: Some((Arc::clone(&self.batch), u32::try_from(place).unwrap_or(u32::MAX))),
            // A flow holds no slot, so its nodes have their own; unless it runs in somebody's slot itself.
            is_inside: self.outer.as_ref().is_some_and(|outer| outer.is_inside),
            outer: self.outer.clone(),
            task: None,
            at: self.inner().ports.clock.now(),
            instant: Instant::now(),
        });
        self.calls().push(Arc::clone(&opened.0));
        opened
    }

    /// Ends a node that is not started. It is on record like every call.
    fn refuse<'f>(&'f self, progress: &mut Progress<'f>, place: usize, status: NodeStatus, error: ToolError) {
        let (call, _) = self.open(place, as_written(&self.flow().to_value(), place));
        progress.waits.push(Box::pin(async move {
            let result = end(self.inner(), &call, error).await;
            Event::Ended(place, Some(status), Box::new(result))
        }));
    }

    /// Plans nodes whose turn came at the same moment.
    fn plan<'f>(&'f self, progress: &mut Progress<'f>, calls: Vec<(usize, Map<String, Value>)>) {
        let mut group = Vec::with_capacity(calls.len());
        for (place, arguments) in calls {
            match self.open(place, Value::Object(arguments).into()) {
                (call, None) => group.push((place, call)),
                (call, Some(error)) => progress.waits.push(Box::pin(async move {
                    let result = end(self.inner(), &call, *error).await;
                    Event::Ended(place, None, Box::new(result))
                })),
            }
        }
        if group.is_empty() {
            return;
        }
        progress.waits.push(Box::pin(async move {
            let (places, calls): (Vec<_>, Vec<_>) = group.into_iter().unzip();
            let planned = plan(&self.inner().ports, Some(BatchOrigin::Client), &calls, Purpose::Run).await;
            Event::Planned(places.into_iter().zip(planned).collect())
        }));
    }

    /// Asks, where somebody has to be asked, and has it taken down.
    async fn decide(&self, group: Vec<(usize, Planned)>, asks: bool) -> Event {
        let ports = &self.inner().ports;
        let (places, planned): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let asking = if asks { Some(self.asking.lock().await) } else { None };
        let mut decided = approve(ports, planned).await;
        drop(asking);
        if ports.wants.journal {
            decided = journal::decided(ports, decided).await;
        }
        awaiting::announce(&self.inner().live, &decided);
        Event::Decided(places.into_iter().zip(decided).collect())
    }

    fn happened<'f>(&'f self, progress: &mut Progress<'f>, event: Event) {
        match event {
            Event::Answered(place, answer) => {
                let mut calls = Vec::new();
                match self.stopped() {
                    Some((status, error)) => self.refuse(progress, place, status, error),
                    None => {
                        let next = progress.walk.after_condition(place, answer);
                        self.go_on(progress, place, next, &mut calls);
                    }
                }
                self.plan(progress, calls);
            }
            Event::Planned(planned) => {
                // Who needs nobody's answer does not wait for one; who does is asked together with the others.
                let (asks, free): (Vec<_>, Vec<_>) = planned
                    .into_iter()
                    .partition(|(_, planned)| matches!(planned, Planned::NeedsApproval { .. }));
                for (group, asks) in [(free, false), (asks, true)] {
                    if !group.is_empty() {
                        progress.waits.push(Box::pin(self.decide(group, asks)));
                    }
                }
            }
            Event::Decided(decided) => {
                decided.into_iter().for_each(|(place, decided)| progress.gate.wait(place, decided));
            }
            Event::Ended(place, status, result) => {
                progress.gate.leave(place);
                let node = &self.flow().nodes[place];
                let status = status.unwrap_or_else(|| status_of(&result));
                progress.walk.end(place, given(status, &result));
                progress.nodes[place] = Some(NodeResult {
                    name: Arc::clone(&node.name),
                    tool: Arc::clone(&result.tool),
                    status,
                    reason: result.error.as_ref().map(|error| error.message.clone()),
                    duration: result.metadata.duration,
                    execution_id: Some(result.metadata.execution_id),
                    result: Some(*result),
                });
            }
        }
    }

    /// Starts what may start.
    fn start<'f>(&'f self, progress: &mut Progress<'f>) {
        let stop = match (self.stopped(), progress.walk.stopped_by()) {
            (Some((status, error)), _) => Some((status, error)),
            (None, Some(failed)) => {
                let name = &self.flow().nodes[failed].name;
                let text =
                    format!("Not started, because the flow stops after a failure, and `{name}` failed");
                Some((NodeStatus::Blocked, ToolError::new(ErrorCode::NotStarted, text)))
            }
            (None, None) => None,
        };
        let starting = if stop.is_some() { progress.gate.give_up() } else { progress.gate.start() };
        for (place, decided) in starting {
            let stop = stop.clone().filter(|_| matches!(decided, Decided::Go(_)));
            let status = stop.as_ref().map(|(status, _)| *status);
            let turn = Turn { decided, skipped: stop.map(|(_, error)| Box::new(error)) };
            let taken = run_turn(self.inner(), turn);
            progress.waits.push(Box::pin(async move { Event::Ended(place, status, Box::new(taken.await)) }));
        }
    }

    fn result(&self, progress: Progress<'_>) -> FlowResult {
        let (flow, batch) = (self.flow(), &self.batch);
        let nodes: Vec<NodeResult> = progress.nodes.into_iter().flatten().collect();
        let summary = summary(&nodes, batch.overlap.count(), batch.arrived.elapsed());
        let output = progress.walk.output();
        let mut error = culprit(flow, &nodes).map(why);
        if let (Some(CancelReason::Deadline), Some(why)) = (batch.cancel.reason(), &mut error) {
            *why = info(ErrorCode::Timeout, std::mem::take(&mut why.message));
        }
        if let (None, Err(problem)) = (&error, &output) {
            error = Some(info(ErrorCode::ExecutionFailed, problem.clone()));
        }
        let was_stopped = batch.cancel.reason().is_some() && summary.cancelled > 0;
        let status = match &error {
            _ if was_stopped => FlowStatus::Cancelled,
            None => FlowStatus::Success,
            Some(_) if summary.succeeded > 0 => FlowStatus::PartialFailure,
            Some(_) => FlowStatus::Failed,
        };
        self.inner().live.counters.batch(summary.total);
        let completed = EventPayload::BatchCompleted {
            count: summary.total,
            succeeded: summary.succeeded,
            failed: summary.total - summary.succeeded - summary.skipped,
            duration: summary.duration,
        };
        batch.emit(completed, true);
        FlowResult {
            flow: flow.name.clone(),
            batch_id: batch.id,
            status,
            output: output.ok().filter(|_| error.is_none()),
            error: error.map(Box::new),
            nodes,
            summary,
        }
    }
}

impl Drop for Flowing {
    fn drop(&mut self) {
        let was_on = self.batch.goes_on.swap(false, Ordering::AcqRel);
        let calls = std::mem::take(&mut *self.calls());
        // Why the call ended whose flow this is says more than that nobody waits any more.
        let reason = self.outer.as_ref().filter(|_| was_on).and_then(|outer| outer.cancel.reason());
        let Some(reason) = reason else {
            drop(PendingCalls {
                engine: Arc::clone(self.inner()),
                calls,
                batch: Some(Arc::clone(&self.batch)),
            });
            return;
        };
        let reason = if reason == CancelReason::Deadline { CancelReason::Parent } else { reason };
        let (inner, batch) = (Arc::clone(self.inner()), Arc::clone(&self.batch));
        inner.runtime().end_there({
            let inner = Arc::clone(&inner);
            async move {
                for call in calls.into_iter().filter(|call| !call.finished.load(Ordering::Acquire)) {
                    call.stop(reason, None);
                    end(&inner, &call, cancelled_with(None, reason)).await;
                }
                journal::abandoned(&inner.ports, Some(&batch)).await;
                drop(PendingCalls { engine: inner, calls: Vec::new(), batch: Some(batch) });
            }
        });
    }
}

/// The arguments of a node as its file has them.
fn as_written(flow: &Value, place: usize) -> Arguments {
    flow.pointer(&format!("/nodes/{place}/arguments"))
        .cloned()
        .map_or_else(Arguments::default, Arguments::from)
}

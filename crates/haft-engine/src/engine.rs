//! The engine: what it is built of, and what it can be asked.

use crate::{
    builder::EngineBuilder,
    event_log::Observer,
    examine::examine,
    executions::Executions,
    executor::{Walkers, refuse, walk},
    frame::{Arrival, Batch, Frame},
    journal,
    metrics::{self, Counters},
    parked::{Parked, PendingCall, SubmitError},
    plan::{Purpose, is_above_tier, plan},
    ports::Ports,
    preview::{Preview, preview},
    registry::{Origin, RegisterError},
    request::{BatchRequest, Request},
    sandboxes::{self, Sandboxes},
    schedule::{
        order::{Manner, manner},
        statistics::{EngineStats, statistics},
    },
    settings::Settings,
    tasks::{Keeper, OfTask},
    telemetry::{self, within},
    tools::{Tools, ToolsEvent},
};
use futures_util::future::Either;
use haft_core::{
    BatchId, BatchOrigin, BatchSummary, ErrorCode, EventPayload, ExecutionId, Strategy, ToolDefinition,
    ToolError, ToolOutput, ToolResult,
    port::{Authoriser, Policy, Store, Subject},
};
use haft_sdk::{CancelReason, Tool};
use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::broadcast;

pub(crate) struct Inner {
    pub(crate) ports: Arc<Ports>,
    pub(crate) executions: Executions,
    pub(crate) parked: Parked,
    pub(crate) tasks: Keeper,
    pub(crate) counters: Counters,
    pub(crate) tools_events: broadcast::Sender<ToolsEvent>,
    pub(crate) closed: AtomicBool,
    pub(crate) runtime: OnceLock<tokio::runtime::Handle>,
}

impl Inner {
    /// Where work is done that nobody waits for.
    pub(crate) fn runtime(&self) -> Background {
        Background(tokio::runtime::Handle::try_current().ok().or_else(|| self.runtime.get().cloned()))
    }

    /// Notes the runtime that calls are made on.
    pub(crate) fn note_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let _ = self.runtime.set(runtime);
        }
    }
}

/// A runtime, if any is known.
pub(crate) struct Background(Option<tokio::runtime::Handle>);

impl Background {
    /// Does something that nobody waits for. Without a runtime, here and now, on one of its own.
    pub(crate) fn end_there(self, work: impl Future<Output = ()> + Send + 'static) {
        match self.0 {
            Some(runtime) => drop(runtime.spawn(work)),
            None => {
                if let Ok(own) = tokio::runtime::Builder::new_current_thread().enable_time().build() {
                    own.block_on(work);
                }
            }
        }
    }
}

/// What takes calls, checks them, has them approved, runs them and answers each exactly once. Cheap to clone.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

/// An engine that this does not keep: for whoever is kept by the engine itself.
#[derive(Clone)]
pub struct WeakEngine(std::sync::Weak<Inner>);

impl WeakEngine {
    /// The engine, while anybody has it.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

/// A single call overlaps nothing.
const ALONE: Manner = Manner { strategy: Strategy::Sequential, at_once: 1, note: None };

/// A call or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One call.
    Call(ExecutionId),
    /// A batch with all its calls.
    Batch(BatchId),
}

impl From<ExecutionId> for Target {
    fn from(id: ExecutionId) -> Self {
        Target::Call(id)
    }
}

impl From<BatchId> for Target {
    fn from(id: BatchId) -> Self {
        Target::Batch(id)
    }
}

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Calls that ended by themselves while it waited.
    pub drained: usize,
    /// Calls that were cancelled.
    pub cancelled: usize,
    /// Calls that did not end: code that never awaits cannot be ended from outside.
    pub left: usize,
}

impl Engine {
    /// An engine with a policy, permissions and a store; the rest has defaults that refuse.
    pub fn builder(
        policy: Arc<dyn Policy>,
        authoriser: Arc<dyn Authoriser>,
        store: Arc<dyn Store>,
    ) -> EngineBuilder {
        EngineBuilder::new(policy, authoriser, store)
    }

    /// The engine, not kept by this.
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.0))
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Engine(inner)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Makes one call. Dropping the future cancels it; it is recorded all the same.
    ///
    /// One that asks to be [detached](haft_core::CallOptions::detached) becomes a task: the result says under which id, and
    /// dropping the future changes nothing. [`submit`](Engine::submit) is the same in plainer words.
    pub fn execute<R: Into<Request>>(&self, request: R) -> impl Future<Output = ToolResult> + Send + use<R> {
        let request = request.into();
        match request.options.detached {
            false => Either::Left(self.begin(request, None, None)),
            true => {
                let engine = self.clone();
                Either::Right(Box::pin(async move { engine.detach(request).await }))
            }
        }
    }

    /// The same for a call that a running call makes: it runs in that one's slot.
    pub(crate) fn execute_inside(
        &self,
        request: Request,
        outer: Arc<Frame>,
    ) -> impl Future<Output = ToolResult> + Send + use<> {
        self.begin(request, Some(outer), None)
    }

    /// The same for a task.
    pub(crate) fn execute_task(
        &self,
        request: Request,
        task: OfTask,
    ) -> impl Future<Output = ToolResult> + Send + use<> {
        self.begin(request, None, Some(Box::new(task)))
    }

    fn begin(
        &self,
        request: Request,
        outer: Option<Arc<Frame>>,
        task: Option<Box<OfTask>>,
    ) -> impl Future<Output = ToolResult> + Send + use<> {
        let arrival = Arrival {
            call: request.call,
            context: request.context,
            options: request.options,
            approver: request.approver,
            batch: None,
            is_inside: outer.is_some(),
            outer,
            task,
            at: self.0.ports.clock.now(),
            instant: Instant::now(),
        };
        self.0.note_runtime();
        let (frame, refusal) = self.open(arrival);
        // Made before the first poll: a future that is dropped unpolled still ends its call.
        let walkers = Walkers { engine: Arc::clone(&self.0), frames: vec![frame], batch: None };
        async move {
            walkers.engine.note_runtime();
            let mut results = match refusal {
                // Boxed like everything that is rare: its state would make every walk larger to move.
                Some(error) => Box::pin(refuse(&walkers, *error)).await,
                None => within!(telemetry::walk(&walkers.frames), walk(&walkers, None, &ALONE)),
            };
            // One call went in, and each gets one result.
            let Some(result) = results.pop() else { unreachable!("one call, one result") };
            result
        }
    }

    /// Makes several calls that are planned together. Dropping the future cancels what has not ended.
    pub fn execute_batch<R: Into<BatchRequest>>(
        &self,
        request: R,
    ) -> impl Future<Output = (Vec<ToolResult>, BatchSummary)> + Send + use<R> {
        let BatchRequest { calls, context, options, approver } = request.into();
        let ports = &self.0.ports;
        let (at, instant) = (ports.clock.now(), Instant::now());
        let mut batch_id = match options.call.execution_id {
            Some(id) => BatchId::from_uuid(id.as_uuid()),
            None => BatchId::at(at),
        };
        let make =
            |id| Arc::new(Batch::new(id, &context.tenant, at, instant, &options.call.model, &ports.settings));
        let mut batch = make(batch_id);
        let mut refusal = None;
        while !self.0.executions.begin_batch(&batch) {
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
                self.open(Arrival {
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
        let refusal = refusal.or_else(|| opened.iter().find_map(|(_, refusal)| refusal.clone()));
        let frames: Vec<_> = opened.into_iter().map(|(frame, _)| frame).collect();
        self.0.note_runtime();
        let is_above_tier = is_above_tier(&frames, options.origin);
        let may_overlap = options.origin == BatchOrigin::Client || ports.settings.allow_parallel;
        let manner = manner(options.strategy, options.max_parallelism, context.tier, may_overlap);
        let walkers = Walkers { engine: Arc::clone(&self.0), frames, batch: Some(Arc::clone(&batch)) };
        async move {
            walkers.engine.note_runtime();
            if !is_above_tier {
                let count = walkers.frames.len();
                let is_parallel = manner.strategy != Strategy::Sequential;
                batch.emit(EventPayload::BatchStarted { count, is_parallel }, false);
                if let Some(message) = manner.note.clone() {
                    batch.emit(EventPayload::Warning { message }, false);
                }
            }
            let journals = walkers.engine.ports.wants.journal;
            let refusal = match refusal {
                None if journals => Box::pin(journal::begin(&walkers)).await.err().map(Box::new),
                refusal => refusal,
            };
            let results = match refusal {
                Some(error) => Box::pin(refuse(&walkers, *error)).await,
                None => {
                    within!(telemetry::walk(&walkers.frames), walk(&walkers, Some(&options), &manner))
                }
            };
            if journals {
                Box::pin(journal::close(&walkers, &options)).await;
            }
            let (read_only, mutating) = walkers.kinds();
            let summary = BatchSummary {
                read_only,
                mutating,
                overlapped: batch.overlap.count(),
                note: manner.note.clone().filter(|_| !is_above_tier),
                ..BatchSummary::of(batch.id, &results, batch.arrived.elapsed())
            };
            walkers.engine.counters.batch(summary.total);
            telemetry::batch_ended(&summary);
            if manner.strategy != Strategy::Sequential && !is_above_tier {
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
        }
    }

    /// Puts a call on the list; with the reason, if it cannot be taken.
    pub(crate) fn open(&self, arrival: Arrival) -> (Arc<Frame>, Option<Box<ToolError>>) {
        let at = arrival.at;
        let ports = &self.0.ports;
        let mut refusal = self
            .0
            .closed
            .load(Ordering::Acquire)
            .then(|| Box::new(crate::run::cancelled_with(None, CancelReason::Shutdown)));
        let wanted = arrival.options.execution_id;
        let id = match wanted {
            Some(id) if self.0.executions.frame(id).is_some() => {
                refusal = Some(id_in_use(&id));
                ExecutionId::at(at)
            }
            Some(id) => id,
            None => ExecutionId::at(at),
        };
        let mut frame = Frame::new(ports, id, arrival);
        loop {
            let opened = Arc::new(frame);
            if self.0.executions.begin(&opened) {
                return (opened, refusal);
            }
            // Somebody took the wanted id a moment ago. Nobody else has this frame yet, so it can get another one.
            refusal = Some(id_in_use(&opened.id));
            let Some(mut again) = Arc::into_inner(opened) else { unreachable!("it was not taken") };
            again.id = ExecutionId::at(at);
            frame = again;
        }
    }

    /// What would happen to calls, without running, claiming or recording anything.
    pub async fn plan(&self, request: impl Into<BatchRequest>) -> Vec<Preview> {
        let BatchRequest { calls, context, options, approver } = request.into();
        let ports = &self.0.ports;
        let (at, instant) = (ports.clock.now(), Instant::now());
        let model = &options.call.model;
        let batch =
            Arc::new(Batch::new(BatchId::at(at), &context.tenant, at, instant, model, &ports.settings));
        let call_options = Arc::new(options.call.clone());
        let frames: Vec<_> = calls
            .into_iter()
            .zip(0_u32..)
            .map(|(call, index)| {
                let arrival = Arrival {
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
                };
                Arc::new(Frame::new(ports, ExecutionId::at(at), arrival))
            })
            .collect();
        let planned = plan(ports, Some(options.origin), &frames, Purpose::DryRun).await;
        let mut previews = Vec::with_capacity(planned.len());
        for planned in planned {
            previews.push(preview(ports, planned).await);
        }
        previews
    }

    /// Shows what policy would decide about, were that call made: the arguments as they were understood, and what it would
    /// touch, with paths as they were resolved. Nothing is run, claimed or recorded.
    pub fn examine<T>(
        &self,
        request: impl Into<Request>,
        look: impl FnOnce(&Subject<'_>) -> T,
    ) -> Result<T, ToolError> {
        examine(&self.0.ports, &request.into(), look).map_err(|error| self.0.ports.redaction.error(error))
    }

    /// Watches a call or a batch: what has happened, what happens, until its end. `None` where there is none of that
    /// id, or not any more.
    pub fn observe(&self, target: impl Into<Target>) -> Option<Observer> {
        match target.into() {
            Target::Call(id) => self.0.executions.frame(id).map(|frame| Observer::new(frame as _)),
            Target::Batch(id) => self.0.executions.batch(id).map(|batch| Observer::new(batch as _)),
        }
    }

    /// Whether it is that tenant's, and still known here. Ids are no secrets: a face that serves several tenants asks this
    /// before it lets anybody watch or cancel.
    pub fn is_of(&self, target: impl Into<Target>, tenant: &str) -> bool {
        match target.into() {
            Target::Call(id) => {
                self.0.executions.frame(id).is_some_and(|frame| *frame.context.tenant == *tenant)
            }
            Target::Batch(id) => self.0.executions.batch(id).is_some_and(|batch| *batch.tenant == *tenant),
        }
    }

    /// Whether a call, or any call of a batch, has no result yet.
    pub fn is_executing(&self, target: impl Into<Target>) -> bool {
        let target = target.into();
        self.goes_on(target) || !self.unfinished(target).is_empty()
    }

    /// Whether it is a flow that may still make calls.
    fn goes_on(&self, target: Target) -> bool {
        match target {
            Target::Call(_) => false,
            Target::Batch(id) => {
                self.0.executions.batch(id).is_some_and(|batch| batch.goes_on.load(Ordering::Acquire))
            }
        }
    }

    /// The calls that have no result yet.
    pub fn running(&self) -> usize {
        self.0.executions.running()
    }

    fn unfinished(&self, target: Target) -> Vec<Arc<Frame>> {
        match target {
            Target::Call(id) => {
                let frame = self.0.executions.frame(id);
                frame.into_iter().filter(|frame| !frame.finished.load(Ordering::Acquire)).collect()
            }
            Target::Batch(id) => {
                let mut frames = self.0.executions.unfinished();
                frames.retain(|frame| frame.batch_place().is_some_and(|(batch, _)| batch == id));
                frames
            }
        }
    }

    /// Cancels a call, or a batch with all its calls; with somebody's own words about why, where there are any.
    /// False where nothing of that id runs.
    pub fn cancel(&self, target: impl Into<Target>, reason: CancelReason, note: Option<&str>) -> bool {
        let target = target.into();
        let goes_on = self.goes_on(target);
        // First, so that a flow that makes a call just now sees it, or its call is among those below.
        if let Target::Batch(id) = target
            && let Some(batch) = self.0.executions.batch(id)
        {
            batch.cancel.cancel(reason, note);
        }
        let unfinished = self.unfinished(target);
        for frame in &unfinished {
            frame.stop(reason, note);
        }
        goes_on || !unfinished.is_empty()
    }

    /// The calls that wait for somebody to supply their results, in parse-only mode.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.0.parked.list()
    }

    /// Supplies the result of a waiting call, by its execution id or the caller's own name for it.
    pub fn submit_result(&self, id: &str, result: Result<ToolOutput, ToolError>) -> Result<(), SubmitError> {
        self.0.parked.supply(id, result)
    }

    /// Adds a tool that is linked into the program, for as long as the program runs. Use [`tools`](Engine::tools) to
    /// add one for somebody, and to remember it.
    pub fn register(&self, tool: impl Tool) -> Result<(), RegisterError> {
        let at = self.0.ports.clock.now();
        let registered = self.0.ports.registry.register(Box::new(tool), Origin::BuiltIn, at, None)?;
        let _ = self.0.tools_events.send(ToolsEvent::Registered { name: Arc::clone(&registered.name) });
        Ok(())
    }

    /// The tools: asking about them, adding, removing, switching, configuring.
    pub fn tools(&self) -> Tools<'_> {
        Tools(&self.0)
    }

    /// The sandboxes: several calls that share limits, paths and hosts, and one end for all of them.
    pub fn sandboxes(&self) -> Sandboxes<'_> {
        Sandboxes(&self.0)
    }

    /// What the tools say about themselves, by name.
    pub fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.ports.registry.all().iter().map(|registered| Arc::clone(&registered.definition)).collect()
    }

    /// What one tool says about itself, by name or alias in any case.
    pub fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        self.0.ports.registry.lookup(name).map(|registered| Arc::clone(&registered.definition))
    }

    /// The name that was probably meant.
    pub fn nearest(&self, name: &str) -> Option<String> {
        self.0.ports.registry.nearest(name)
    }

    /// Counts and times since this engine was built, in the text format of Prometheus.
    ///
    /// The names are `tools_executions_total`, `tools_executions_duration` (a histogram, in seconds),
    /// `tools_executions_by_status`, `tools_executions_by_tool`, `tools_executions_timeouts`, `tools_batches_total`,
    /// `tools_batches_size` and those of results, registry and sandbox. No argument and no output is in them.
    pub fn metrics_text(&self) -> String {
        metrics::text(&self.0.ports.registry, &self.0.counters)
    }

    /// Where everything is recorded.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.ports.store
    }

    /// The engine in numbers: what runs, what waits, how tools do, breakers, stored results.
    pub fn stats(&self) -> EngineStats {
        statistics(&self.0)
    }

    /// Forgets stored results: all, or those of one tool.
    pub fn clear_cache(&self, tool: Option<&str>) {
        if let Some(cache) = &self.0.ports.around.cache {
            cache.clear(tool);
        }
    }

    /// The numbers and switches.
    pub fn settings(&self) -> &Settings {
        &self.0.ports.settings
    }

    /// Ends in order: takes no more calls, lets running ones end for a while, cancels the rest, waits for them, and
    /// makes sure that the record stays.
    pub async fn shutdown(&self) -> Shutdown {
        let settings = &self.0.ports.settings;
        self.close(settings.drain, settings.grace).await
    }

    /// The same without letting running calls end by themselves.
    pub async fn shutdown_now(&self) -> Shutdown {
        self.close(Duration::ZERO, self.0.ports.settings.grace).await
    }

    async fn close(&self, drain: Duration, grace: Duration) -> Shutdown {
        self.0.closed.store(true, Ordering::Release);
        let executions = &self.0.executions;
        let before = executions.running();
        let _ = tokio::time::timeout(drain, executions.idle()).await;
        let unfinished = executions.unfinished();
        for frame in &unfinished {
            if let Some((batch, _)) = &frame.batch {
                batch.cancel.cancel(CancelReason::Shutdown, None);
            }
            frame.stop(CancelReason::Shutdown, None);
        }
        let _ = tokio::time::timeout(grace, executions.idle()).await;
        sandboxes::end_all(&self.0).await;
        let _ = tokio::time::timeout(grace, self.0.ports.store.flush()).await;
        Shutdown {
            drained: before.saturating_sub(unfinished.len()),
            cancelled: unfinished.len(),
            left: executions.running(),
        }
    }
}

fn id_in_use(id: &dyn std::fmt::Display) -> Box<ToolError> {
    let text = format!("The execution id {id} is in use. Use a new one, or none");
    Box::new(ToolError::new(ErrorCode::DuplicateCallId, text))
}

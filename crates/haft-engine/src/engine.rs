//! The engine: what it is built of, and what it can be asked.

use crate::{
    event_log::{EventLog, Observer},
    executions::Executions,
    executor::{Walkers, refuse, walk},
    frame::{Arrival, Batch, Frame},
    parked::{Parked, PendingCall, SubmitError},
    plan::{Exit, Planned, Purpose, plan},
    ports::{Ports, StoredOutputs, SystemClock, View},
    registry::{RegisterError, Registry},
    request::{BatchRequest, Request},
    settings::Settings,
};
use haft_core::{
    BatchId, BatchSummary, ErrorCode, EventPayload, ExecutionId, Footprint, Strategy, ToolDefinition,
    ToolError, ToolOutput, ToolResult,
    port::{Approver, Authoriser, Clock, Jail, NoJail, NobodyToAsk, Policy, Redactor, Store},
};
use haft_sdk::{Cancel, CancelReason, Tool, capability::Capabilities};
use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

pub(crate) struct Inner {
    pub(crate) ports: Arc<Ports>,
    pub(crate) executions: Executions,
    pub(crate) parked: Parked,
    closed: AtomicBool,
    runtime: OnceLock<tokio::runtime::Handle>,
}

impl Inner {
    /// The runtime that calls were made on.
    pub(crate) fn runtime(&self) -> Option<tokio::runtime::Handle> {
        tokio::runtime::Handle::try_current().ok().or_else(|| self.runtime.get().cloned())
    }
}

/// What takes calls, checks them, has them approved, runs them and answers each exactly once. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// What is decided about a call, without running it.
#[derive(Clone, Debug)]
pub enum Preview {
    /// It would run.
    Ready {
        /// The tool's canonical name.
        tool: Arc<str>,
        /// What it would do.
        summary: String,
        /// What it would read and write.
        footprint: Footprint,
        /// The rule that allows it.
        rule: Option<&'static str>,
    },
    /// A person would be asked.
    NeedsApproval {
        /// The tool's canonical name.
        tool: Arc<str>,
        /// What it would do.
        summary: String,
        /// Why somebody is asked.
        reason: String,
        /// The rule that asks.
        rule: Option<&'static str>,
    },
    /// Somebody outside would supply the result.
    Pending {
        /// The tool's canonical name.
        tool: Arc<str>,
    },
    /// It would not run.
    Refused(ToolError),
}

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
        EngineBuilder {
            settings: Settings::default(),
            policy,
            authoriser,
            store,
            approver: Arc::new(NobodyToAsk),
            jail: Arc::new(NoJail),
            clock: Arc::new(SystemClock),
            redactor: None,
            capabilities: Capabilities::default(),
            tools: Vec::new(),
        }
    }

    /// Makes one call. Dropping the future cancels it; it is recorded all the same.
    pub fn execute<R: Into<Request>>(&self, request: R) -> impl Future<Output = ToolResult> + Send + use<R> {
        let request = request.into();
        let arrival = Arrival {
            call: request.call,
            context: request.context,
            options: request.options,
            approver: request.approver,
            batch: None,
            at: self.0.ports.clock.now(),
            instant: Instant::now(),
        };
        let (frame, refusal) = self.open(arrival);
        // Made before the first poll: a future that is dropped unpolled still ends its call.
        let walkers = Walkers::new(Arc::clone(&self.0), vec![frame]);
        async move {
            walkers.engine().runtime.get_or_init(tokio::runtime::Handle::current);
            let mut results = match refusal {
                // Boxed like everything that is rare: its state would make every walk larger to move.
                Some(error) => Box::pin(refuse(walkers, error)).await,
                None => walk(walkers, None).await,
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
        let make = |id| {
            Arc::new(Batch {
                id,
                arrived: instant,
                cancel: Cancel::new(),
                log: EventLog::new(at, ports.settings.event_log_capacity),
                capacity: AtomicUsize::new(options.call.model.available_bytes()),
            })
        };
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
                    at,
                    instant,
                })
            })
            .collect();
        let refusal = refusal.or_else(|| opened.iter().find_map(|(_, refusal)| refusal.clone()));
        let frames: Vec<_> = opened.into_iter().map(|(frame, _)| frame).collect();
        let count = frames.len();
        let walkers = Walkers::new(Arc::clone(&self.0), frames);
        let end = EndOfBatch(Arc::clone(&self.0), Arc::clone(&batch));
        async move {
            walkers.engine().runtime.get_or_init(tokio::runtime::Handle::current);
            let _end = end;
            batch.emit(EventPayload::BatchStarted { count, is_parallel: false }, false);
            if options.strategy != Strategy::Sequential {
                let message = "calls of a batch run one after the other here".to_owned();
                batch.emit(EventPayload::Warning { message }, false);
            }
            let results = match refusal {
                Some(error) => Box::pin(refuse(walkers, error)).await,
                None => walk(walkers, Some((Arc::clone(&batch), options))).await,
            };
            let summary = BatchSummary::of(batch.id, &results, batch.arrived.elapsed());
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
    fn open(&self, arrival: Arrival) -> (Arc<Frame>, Option<ToolError>) {
        let at = arrival.at;
        let ports = &self.0.ports;
        let mut refusal = self
            .0
            .closed
            .load(Ordering::Acquire)
            .then(|| crate::run::cancelled_with(None, CancelReason::Shutdown));
        let wanted = arrival.options.execution_id;
        let id = match wanted {
            Some(id) if self.0.executions.frame(id).is_some() => {
                refusal = Some(id_in_use(&id));
                ExecutionId::at(at)
            }
            Some(id) => id,
            None => ExecutionId::at(at),
        };
        let frame = Arc::new(Frame::new(ports, id, arrival));
        // A fresh id is unique but for a chance of one in 2^74; a wanted one may have been taken a moment ago.
        if !self.0.executions.begin(&frame) {
            refusal = Some(id_in_use(&id));
        }
        (frame, refusal)
    }

    /// What would happen to calls, without running, claiming or recording anything.
    pub async fn plan(&self, request: impl Into<BatchRequest>) -> Vec<Preview> {
        let BatchRequest { calls, context, options, approver } = request.into();
        let ports = &self.0.ports;
        let (at, instant) = (ports.clock.now(), Instant::now());
        let batch = Arc::new(Batch {
            id: BatchId::at(at),
            arrived: instant,
            cancel: Cancel::new(),
            log: EventLog::new(at, 0),
            capacity: AtomicUsize::new(options.call.model.available_bytes()),
        });
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
                    at,
                    instant,
                };
                Arc::new(Frame::new(ports, ExecutionId::at(at), arrival))
            })
            .collect();
        let planned = plan(ports, Some((&batch, options.origin)), &frames, Purpose::DryRun).await;
        planned.into_iter().map(preview).collect()
    }

    /// Watches a call or a batch: what has happened, what happens, until its end. `None` where there is none of that
    /// id, or not any more.
    pub fn observe(&self, target: impl Into<Target>) -> Option<Observer> {
        match target.into() {
            Target::Call(id) => self.0.executions.frame(id).map(|frame| Observer::new(frame as _)),
            Target::Batch(id) => self.0.executions.batch(id).map(|batch| Observer::new(batch as _)),
        }
    }

    /// Whether a call, or any call of a batch, has no result yet.
    pub fn is_executing(&self, target: impl Into<Target>) -> bool {
        !self.unfinished(target.into()).is_empty()
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
        let unfinished = self.unfinished(target);
        if let Target::Batch(id) = target
            && let Some(batch) = self.0.executions.batch(id)
        {
            batch.cancel.cancel(reason, note);
        }
        for frame in &unfinished {
            frame.cancel.cancel(reason, note);
        }
        !unfinished.is_empty()
    }

    /// The calls that wait for somebody to supply their results, in parse-only mode.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.0.parked.list()
    }

    /// Supplies the result of a waiting call, by its execution id or the caller's own name for it.
    pub fn submit_result(&self, id: &str, result: Result<ToolOutput, ToolError>) -> Result<(), SubmitError> {
        self.0.parked.supply(id, result)
    }

    /// Adds a tool.
    pub fn register(&self, tool: impl Tool) -> Result<(), RegisterError> {
        self.0.ports.registry.register(Box::new(tool))
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

    /// Where everything is recorded.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.ports.store
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
            frame.cancel.cancel(CancelReason::Shutdown, None);
        }
        let _ = tokio::time::timeout(grace, executions.idle()).await;
        let _ = tokio::time::timeout(grace, self.0.ports.store.flush()).await;
        Shutdown {
            drained: before.saturating_sub(unfinished.len()),
            cancelled: unfinished.len(),
            left: executions.running(),
        }
    }
}

/// Takes a batch off the list of those that run, also when nobody waits for it any more.
struct EndOfBatch(Arc<Inner>, Arc<Batch>);

impl Drop for EndOfBatch {
    fn drop(&mut self) {
        // Where the batch has completed, its log has ended and this is not heard.
        let message = CancelReason::Abandoned.model_text().to_owned();
        self.1.emit(EventPayload::Cancelled { code: ErrorCode::Cancelled, message }, true);
        self.0.executions.end_batch(&self.1);
    }
}

fn id_in_use(id: &dyn std::fmt::Display) -> ToolError {
    let text = format!("The execution id {id} is in use. Use a new one, or none");
    ToolError::new(ErrorCode::DuplicateCallId, text)
}

fn preview(planned: Planned) -> Preview {
    match planned {
        Planned::Ready(ready) => Preview::Ready {
            tool: Arc::clone(ready.frame.tool_name()),
            summary: ready.prepared.summary(),
            rule: ready.frame.facts().rule,
            footprint: ready.footprint,
        },
        Planned::NeedsApproval { ready, reason, .. } => Preview::NeedsApproval {
            tool: Arc::clone(ready.frame.tool_name()),
            summary: ready.prepared.summary(),
            rule: ready.frame.facts().rule,
            reason,
        },
        Planned::Parked(frame) | Planned::Follows(frame, _) => {
            Preview::Pending { tool: Arc::clone(frame.tool_name()) }
        }
        Planned::Resolved(_, Exit::Error(error)) => Preview::Refused(error),
        Planned::Resolved(frame, Exit::Replay(_)) => Preview::Pending { tool: Arc::clone(frame.tool_name()) },
    }
}

/// Puts an engine together.
pub struct EngineBuilder {
    settings: Settings,
    policy: Arc<dyn Policy>,
    authoriser: Arc<dyn Authoriser>,
    store: Arc<dyn Store>,
    approver: Arc<dyn Approver>,
    jail: Arc<dyn Jail>,
    clock: Arc<dyn Clock>,
    redactor: Option<Arc<dyn Redactor>>,
    capabilities: Capabilities,
    tools: Vec<Box<dyn Tool>>,
}

impl EngineBuilder {
    /// Other numbers and switches.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Whom to ask. Without one, what needs approval does not run.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// What holds programs in. Without one, what needs containment does not run.
    pub fn jail(mut self, jail: Arc<dyn Jail>) -> Self {
        self.jail = jail;
        self
    }

    /// What time it is.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What must not be shown.
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// What tools may reach. Outputs and the engine itself are added.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// One more tool.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.boxed_tool(Box::new(tool))
    }

    /// One more tool, boxed.
    pub fn boxed_tool(mut self, tool: Box<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// The engine, or the first tool that cannot be registered.
    pub fn build(self) -> Result<Engine, RegisterError> {
        let registry = Arc::new(Registry::default());
        for tool in self.tools {
            registry.register(tool)?;
        }
        let capabilities = Capabilities {
            outputs: Arc::new(StoredOutputs(Arc::clone(&self.store))),
            engine: Arc::new(View(Arc::clone(&registry))),
            ..self.capabilities
        };
        let executions = Executions::new(self.settings.observable_after_end);
        let ports = Arc::new(Ports {
            settings: self.settings,
            registry,
            policy: self.policy,
            authoriser: self.authoriser,
            approver: self.approver,
            store: self.store,
            jail: self.jail,
            clock: self.clock,
            redactor: self.redactor,
            capabilities,
        });
        Ok(Engine(Arc::new(Inner {
            ports,
            executions,
            parked: Parked::default(),
            closed: AtomicBool::new(false),
            runtime: OnceLock::new(),
        })))
    }
}

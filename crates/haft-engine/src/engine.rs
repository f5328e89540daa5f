//! The engine: what it is built of, and what it can be asked.

mod builder;
mod follow;
mod lists;
mod sandboxes;
mod statistics;
mod tasks;
mod tools;
mod watch;

pub use builder::EngineBuilder;
pub use lists::ToolsPart;
pub use sandboxes::Sandboxes;
pub use statistics::EngineStats;
pub use tools::{Registration, Tools};
pub use watch::Executing;

use crate::{
    approvals::Approvals,
    events::Observer,
    flows::{self, FlowError, FlowRequest, FlowResult},
    inner::{Inner, Target},
    live_calls::{PendingCall, SubmitError},
    metrics,
    pipeline::{
        intake,
        plan::{Purpose, explain, plan},
        preview::{Preview, preview},
        types::{Arrival, Batch, CallState},
    },
    registry::{Origin, RegisterError, ToolsEvent},
    request::{BatchRequest, Request},
    settings::Settings,
};
use futures_util::future::Either;
use haft_core::{
    BatchId, BatchSummary, ExecutionId, ToolDefinition, ToolError, ToolOutput, ToolResult,
    port::{Authoriser, ChangeSets, Policy, Store, Subject},
};
use haft_definition::ReadErrors;
use haft_flow::Flow;
use haft_sdk::{CancelReason, Tool};
use statistics::{around, statistics};
use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// What takes calls, checks them, has them approved, runs them and answers each exactly once. Cheap to clone.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

/// A reference that does not keep its engine alive, for what the engine itself owns.
#[derive(Clone)]
pub struct WeakEngine(std::sync::Weak<Inner>);

impl WeakEngine {
    /// The engine, while anybody has it.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
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
    /// One that asks to be [detached](haft_core::CallOptions::detached) becomes a task: the result says under which id,
    /// and dropping the future changes nothing. [`submit`](Engine::submit) is the same in plainer words.
    pub fn execute<R: Into<Request>>(&self, request: R) -> impl Future<Output = ToolResult> + Send + use<R> {
        let request = request.into();
        match request.options.detached {
            false => Either::Left(intake::execute(&self.0, request, None, None)),
            true => {
                let engine = self.clone();
                Either::Right(Box::pin(async move { engine.detach(request).await }))
            }
        }
    }

    /// Decides about one call that another program runs, such as a host that asks haft before it runs a tool of its own.
    ///
    /// Every check, policy and the question to a person are those of [`execute`](Engine::execute), and so is the audit
    /// record; the tool is not started, and the record has no attempt. A success means that the call may run now.
    /// Nothing contains what runs then. A call whose result comes from elsewhere (parse-only mode, or another call with
    /// the same idempotency key) is refused.
    pub fn decide<R: Into<Request>>(&self, request: R) -> impl Future<Output = ToolResult> + Send + use<R> {
        intake::decide(&self.0, request.into())
    }

    /// Makes several calls that are planned together. Dropping the future cancels what has not ended.
    pub fn execute_batch<R: Into<BatchRequest>>(
        &self,
        request: R,
    ) -> impl Future<Output = (Vec<ToolResult>, BatchSummary)> + Send + use<R> {
        intake::execute_batch(&self.0, request.into())
    }

    /// What would happen to calls, without running, claiming or recording anything.
    pub async fn plan(&self, request: impl Into<BatchRequest>) -> Vec<Preview> {
        let BatchRequest { calls, context, options, approver } = request.into();
        let ports = &self.0.ports;
        let (at, instant) = (ports.clock.now(), Instant::now());
        let model = &options.call.model;
        let batch = Arc::new(Batch::new(BatchId::at(at), &context.tenant, at, instant, model, ports));
        let call_options = Arc::new(options.call.clone());
        let calls: Vec<_> = calls
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
                Arc::new(CallState::new(ports, ExecutionId::at(at), arrival))
            })
            .collect();
        let planned = plan(ports, Some(options.origin), &calls, Purpose::DryRun).await;
        let mut previews = Vec::with_capacity(planned.len());
        for planned in planned {
            previews.push(preview(ports, planned).await);
        }
        previews
    }

    /// Checks a flow against the tools that are here. Nothing runs.
    ///
    /// # Errors
    ///
    /// Everything that does not fit, with its place in the file.
    pub fn check_flow(&self, flow: &Flow) -> Result<(), ReadErrors> {
        flows::check(&self.0, flow)
    }

    /// Runs a flow: each node is an ordinary call, through every check. Dropping the future cancels what has not ended.
    ///
    /// # Errors
    ///
    /// Before anything runs: what does not fit the tools that are here, or an input that does not fit the flow.
    pub fn run_flow(
        &self,
        request: FlowRequest,
    ) -> Result<impl Future<Output = FlowResult> + Send + use<>, FlowError> {
        flows::begin(&self.0, request, None)
    }

    /// Shows what policy would decide about, were that call made: the arguments as they were understood, and what it
    /// would touch, with paths as they were resolved. Nothing is run, claimed or recorded.
    pub fn explain<T>(
        &self,
        request: impl Into<Request>,
        look: impl FnOnce(&Subject<'_>) -> T,
    ) -> Result<T, ToolError> {
        explain(&self.0.ports, &request.into(), look).map_err(|error| self.0.ports.redaction.error(error))
    }

    /// Watches a call or a batch: what has happened, what happens, until its end. `None` where there is none of that
    /// id, or not any more.
    pub fn observe(&self, target: impl Into<Target>) -> Option<Observer> {
        self.0.observe(target.into())
    }

    /// Whether it is that tenant's, and still known here. Ids are no secrets: a face that serves several tenants asks
    /// this before it lets anybody watch or cancel.
    pub fn is_of(&self, target: impl Into<Target>, tenant: &str) -> bool {
        match target.into() {
            Target::Call(id) => {
                self.0.live.executions.call(id).is_some_and(|call| *call.context.tenant == *tenant)
            }
            Target::Batch(id) => {
                self.0.live.executions.batch(id).is_some_and(|batch| *batch.tenant == *tenant)
            }
        }
    }

    /// Whether a call, or any call of a batch, has no result yet.
    pub fn is_executing(&self, target: impl Into<Target>) -> bool {
        let target = target.into();
        self.0.goes_on(target) || !self.0.unfinished(target).is_empty()
    }

    /// The calls that have no result yet.
    pub fn running(&self) -> usize {
        self.0.live.executions.running()
    }

    /// Cancels a call, or a batch with all its calls; with somebody's own words about why, where there are any.
    /// False where nothing of that id runs.
    pub fn cancel(&self, target: impl Into<Target>, reason: CancelReason, note: Option<&str>) -> bool {
        self.0.cancel(target.into(), reason, note)
    }

    /// The calls that wait for somebody to supply their results, in parse-only mode.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.0.live.awaiting.list()
    }

    /// Supplies the result of a waiting call, by its execution id or the caller's own name for it.
    pub fn submit_result(&self, id: &str, result: Result<ToolOutput, ToolError>) -> Result<(), SubmitError> {
        self.0.live.awaiting.supply(id, result)
    }

    /// Adds a tool that is linked into the program, for as long as the program runs. Use [`tools`](Engine::tools) to
    /// add one for somebody, and to remember it.
    pub fn register(&self, tool: impl Tool) -> Result<(), RegisterError> {
        let at = self.0.ports.clock.now();
        let registered = self.0.ports.registry.register(Box::new(tool), Origin::BuiltIn, at)?;
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
    /// `tools_batches_size` and those of results, registry, sandbox, retries, cache, circuit breakers and queue. Every
    /// call is counted, also one of a tool that does not exist, and counts of tools that were removed stay. No argument
    /// and no output is in them.
    pub fn metrics_text(&self) -> String {
        metrics::text(&self.0.ports.registry, &self.0.live.counters, &around(&self.0))
    }

    /// The approvals and grants of one tenant: what waits for a person, and how it is answered.
    pub fn approvals(&self, tenant: &str) -> Approvals {
        let ports = &self.0.ports;
        Approvals::over(ports.store.for_tenant(tenant), ports.settings.accept_answers.clone())
            .clock(Arc::clone(&ports.clock))
    }

    /// What staged commands changed and nobody applied or discarded; nothing where no command can be staged.
    pub fn change_sets(&self) -> Option<Arc<dyn ChangeSets>> {
        self.0.ports.capabilities.commands.change_sets()
    }

    /// What a staged command changed, as a unified diff of at most about so many bytes, without secrets.
    pub async fn diff_of_changes(
        &self,
        tenant: &str,
        id: ExecutionId,
        most_bytes: usize,
    ) -> Result<String, ToolError> {
        let sets = self.change_sets().ok_or_else(|| ToolError::failed("No command is staged here"))?;
        let diff = sets.diff(tenant, id, most_bytes).await?;
        Ok(self.0.ports.redaction.model_string(diff))
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
        if let Some(cache) = &self.0.controls.cache {
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

    /// Ends like [`shutdown`](Engine::shutdown), but cancels running calls at once.
    pub async fn shutdown_now(&self) -> Shutdown {
        self.close(Duration::ZERO, self.0.ports.settings.grace).await
    }

    async fn close(&self, drain: Duration, grace: Duration) -> Shutdown {
        self.0.closed.store(true, Ordering::Release);
        let executions = &self.0.live.executions;
        let before = executions.running();
        let _ = tokio::time::timeout(drain, executions.idle()).await;
        let unfinished = executions.unfinished();
        for call in &unfinished {
            if let Some((batch, _)) = &call.batch {
                batch.cancel.cancel(CancelReason::Shutdown, None);
            }
            call.stop(CancelReason::Shutdown, None);
        }
        let _ = tokio::time::timeout(grace, executions.idle()).await;
        sandboxes::end_all(&self.0).await;
        let _ = tokio::time::timeout(grace, self.0.ports.store.flush()).await;
        self.0.ports.feeds.close();
        Shutdown {
            drained: before.saturating_sub(unfinished.len()),
            cancelled: unfinished.len(),
            left: executions.running(),
        }
    }
}

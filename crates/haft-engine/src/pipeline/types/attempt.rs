//! One attempt at a call, as a value: each attempt, the first one included, is made from what was planned.
//!
//! A tool is handed a context that stands on it. Whatever holds a call in (its level, its limits, the sandbox around
//! it, the paths that were decided on) is part of it, so no attempt can have less of it than another.

use super::{
    call::CallState,
    cancelled::cancelled,
    containment::Containment,
    facts::{AttemptFacts, Bounds, StagedRun},
    planned::Ready,
};
use haft_core::{
    CallContext, Enforcement, ErrorCode, ExecutionId, Footprint, IsolationLevel, Limits, OutputStream,
    ToolCall, ToolError,
    port::{BoxFuture, GuestEnd, GuestSpec, Stage, StagedCall, Unstageable, Writes},
};
use haft_sdk::{
    CallHost, Cancel, CancelReason, ToolCtx,
    capability::{Capabilities, Workspace},
    files::{Meter, metered},
};
use serde_json::{Map, Value};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// One attempt at a call.
pub(crate) struct Attempt {
    call: Arc<CallState>,
    /// From 1.
    number: u32,
    /// Ends this attempt, and no other.
    cancel: Arc<Cancel>,
    containment: Containment,
    /// What the call does, in one line, where what it writes is kept apart.
    does: String,
    /// What was decided on. Files are held to it.
    footprint: Footprint,
    bounds: Bounds,
    /// The call was handed to the store as one that may have an effect.
    had_intent: bool,
    /// Where what is found out about it goes.
    facts: Arc<AttemptFacts>,
    /// Made when it is first used: most tools touch no file.
    files: OnceLock<Arc<dyn Workspace>>,
    /// Counts what it does with files, where limits ask for that.
    meter: Option<Arc<Meter>>,
}

impl Attempt {
    /// An attempt of that number at a call that was decided on. `ready.footprint` is what was decided on just now.
    pub(crate) fn new(ready: &Ready, number: u32, timeout: Duration, facts: Arc<AttemptFacts>) -> Self {
        let call = &ready.call;
        Attempt {
            call: Arc::clone(call.state()),
            bounds: Bounds { timeout, output: call.output_bound() },
            had_intent: call.facts.had_intent,
            facts,
            number,
            cancel: Arc::clone(&ready.cancel),
            containment: ready.containment,
            does: call.facts.staging.as_ref().map(|staging| staging.does.clone()).unwrap_or_default(),
            footprint: ready.footprint.clone(),
            files: OnceLock::new(),
            meter: call.file_limits().map(|limits| Arc::new(Meter::new(limits, Arc::clone(&ready.cancel)))),
        }
    }

    /// Counts what it does with files, where limits ask for that.
    pub(crate) fn meter(&self) -> Option<Arc<Meter>> {
        self.meter.clone()
    }

    /// Notes that the tool has said something.
    fn is_alive(&self) {
        self.facts.is_alive(self.call.arrived.elapsed());
    }

    /// The context that a tool is handed for it.
    pub(crate) fn ctx(self) -> ToolCtx {
        ToolCtx::new(Arc::new(self))
    }
}

impl CallHost for Attempt {
    fn execution_id(&self) -> ExecutionId {
        self.call.id
    }

    fn call(&self) -> &ToolCall {
        &self.call.tool_call
    }

    fn context(&self) -> &CallContext {
        &self.call.context
    }

    fn attempt(&self) -> u32 {
        self.number
    }

    fn timeout(&self) -> Duration {
        self.bounds.timeout
    }

    fn output_limit(&self) -> usize {
        self.call.output_limit(self.bounds.output)
    }

    fn capacity(&self) -> usize {
        let most = self.call.registered.get().map(|tool| tool.definition.constraints.max_output_size);
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        self.call.capacity().min(most)
    }

    fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.call.without_secrets(bytes)
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn write(&self, stream: OutputStream, bytes: &[u8]) {
        // What a thread of an attempt that ran out of time still says is not the next attempt's.
        if self.cancel.reason() != Some(CancelReason::Deadline) {
            self.is_alive();
            self.call.put_out(stream, bytes, self.had_intent);
        }
    }

    fn progress(&self, percent: Option<u8>, message: Option<&str>) {
        self.is_alive();
        self.call.progress(percent, message);
    }

    fn warn(&self, message: &str) {
        self.is_alive();
        self.call.warn(message);
    }

    fn capabilities(&self) -> &Capabilities {
        self.call.reach()
    }

    fn workspace(&self) -> &dyn Workspace {
        let shared = &self.call.reach().workspace;
        let may_anything = self.footprint.may_write_anything();
        if may_anything && self.meter.is_none() {
            return &**shared;
        }
        &**self.files.get_or_init(|| {
            let held = if may_anything { Arc::clone(shared) } else { shared.held_to(&self.footprint) };
            match &self.meter {
                Some(meter) => metered(held, Arc::clone(meter)),
                None => held,
            }
        })
    }

    fn isolation(&self) -> IsolationLevel {
        self.containment.level
    }

    fn file_limits(&self) -> Limits {
        self.meter.as_ref().map(|meter| meter.limits().clone()).unwrap_or_default()
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(job)),
            Err(_) => drop(std::thread::spawn(job)),
        }
    }

    fn fit(&self, spec: GuestSpec) -> Result<GuestSpec, ToolError> {
        // An attempt that is over starts nothing beside the next one.
        if let Some(reason) = self.cancel.reason() {
            return Err(cancelled(&self.cancel, reason));
        }
        self.containment.fit(&self.call, self.bounds.timeout, spec)
    }

    fn stage<'a>(&'a self, mut spec: GuestSpec) -> BoxFuture<'a, Result<GuestSpec, ToolError>> {
        Box::pin(async move {
            // Nothing to write is nothing to keep apart.
            if !self.containment.is_staged || spec.writable.is_empty() {
                return Ok(spec);
            }
            let sets = self.call.reach().commands.change_sets();
            let sets = sets.ok_or_else(|| Unstageable::by("present").error())?;
            if self.facts.found().guest.as_ref().is_some_and(|guest| guest.staged.is_some()) {
                let text = "This call has run a program whose writes are kept apart, and another one would not see \
                            them. Run it with `writes` = \"live\"";
                return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
            }
            let Stage { spec: stage, held } = sets
                .open(StagedCall {
                    execution_id: self.call.id,
                    tenant: self.call.context.tenant.to_string(),
                    tool: self.call.tool_name().to_string(),
                    summary: self.does.clone(),
                })
                .await?;
            spec.writes = Writes::Staged(stage);
            let staged = StagedRun { sets, held, roots: None, is_own_exit: false };
            self.facts.found().guest.get_or_insert_default().staged = Some(staged);
            Ok(spec)
        })
    }

    fn contained(&self, sandbox: &str, by: &Enforcement) {
        let mut found = self.facts.found();
        found.guest.get_or_insert_default().sandbox = Some(sandbox.to_owned());
        found.enforcement = Some(by.clone());
    }

    fn used(&self, end: &GuestEnd) {
        let mut found = self.facts.found();
        let guest = found.guest.get_or_insert_default();
        guest.violations.extend_from_slice(&end.violations);
        if let Some(staged) = &mut guest.staged {
            staged.is_own_exit = end.exit_code.is_some() && end.exceeded.is_none();
            staged.roots = Some(end.staged.clone());
        }
        if let Some(sandbox) = self.call.sandbox.get() {
            sandbox.add(&end.metrics);
        }
        let so_far = guest.metrics.take().unwrap_or_default();
        guest.metrics = Some(Box::new(so_far.and(&end.metrics)));
    }

    fn settings(&self) -> Arc<Map<String, Value>> {
        self.call.registered.get().map(|registered| registered.settings()).unwrap_or_default()
    }
}

//! One call on its way through the stages: who and what, what is known so far, its log and its output.

use super::{
    batch::{Batch, Runs},
    facts::Facts,
};
use crate::{
    events::{EventLog, Logged, Redactors, Source, Spool},
    ports::Ports,
    registry::Registered,
    sandboxes::Entry as SandboxEntry,
    settings::Settings,
};
use haft_core::{
    AgentDefinition, ApprovalId, Arguments, BatchId, CallContext, CallOptions, EventPayload, ExecutionId,
    Limits, OutputStream, TaskId, ToolCall,
    port::{Approver, ClaimRequest},
};
use haft_sdk::{Cancel, CancelReason, capability::Capabilities};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The task that a call is.
pub(crate) struct TaskOrigin {
    pub(crate) id: TaskId,
    /// The question that it waited for.
    pub(crate) asked_before: Option<ApprovalId>,
}

/// One call on its way through the stages: what its stages, its tool and its watchers share.
pub(crate) struct CallState {
    pub(crate) id: ExecutionId,
    pub(crate) batch: Option<(Arc<Batch>, u32)>,
    pub(crate) tool_call: ToolCall,
    pub(crate) context: Arc<CallContext>,
    pub(crate) options: Arc<CallOptions>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) arrived_at: Timestamp,
    pub(crate) arrived: Instant,
    /// Seen by the first attempt, and by everything before it.
    pub(crate) cancel: Arc<Cancel>,
    later: Mutex<Later>,
    /// Made by a call that runs: it has that one's slot.
    pub(crate) is_inside: bool,
    /// The task that it is.
    pub(crate) task: Option<Box<TaskOrigin>>,
    /// The call that made it, where one did.
    pub(crate) outer: Option<Arc<CallState>>,
    pub(crate) log: EventLog,
    /// The tool, once it is known.
    pub(crate) registered: OnceLock<Arc<Registered>>,
    /// The sandbox around it, where it is one of this engine.
    pub(crate) sandbox: OnceLock<Arc<SandboxEntry>>,
    /// What it may reach in the folders that it keeps to.
    kept: OnceLock<Capabilities>,
    pub(crate) finished: AtomicBool,
    spool: Mutex<SpoolState>,
    /// What was known about it when the stage that had it was dropped.
    left: Mutex<Option<Box<Facts>>>,
    ports: Arc<Ports>,
}

impl Logged for CallState {
    fn log(&self) -> &EventLog {
        &self.log
    }

    fn source(&self) -> Source {
        Source {
            execution_id: Some(self.id),
            batch: self.batch.as_ref().map(|(batch, index)| (batch.id, Some(*index))),
            tool: Arc::clone(self.tool_name()),
        }
    }
}

/// Attempts after the first one.
#[derive(Default)]
struct Later {
    /// The switch of the present one.
    cancel: Option<Arc<Cancel>>,
    /// Whether somebody cancelled the call, rather than a deadline one attempt at it.
    is_stopped: bool,
}

/// The room that a result has.
#[derive(Clone, Copy)]
pub(crate) struct OutputClaim {
    /// The most bytes that its text may have.
    pub(crate) limit: usize,
    /// Those of them that were taken from its batch.
    pub(crate) claimed: usize,
}

/// Made with the first byte, closed when the call ends.
#[derive(Default)]
struct SpoolState {
    spool: Option<Box<Spool>>,
    is_closed: bool,
}

/// What a call is made of.
pub(crate) struct Arrival {
    pub(crate) call: ToolCall,
    pub(crate) context: Arc<CallContext>,
    pub(crate) options: Arc<CallOptions>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) batch: Option<(Arc<Batch>, u32)>,
    pub(crate) is_inside: bool,
    pub(crate) task: Option<Box<TaskOrigin>>,
    pub(crate) outer: Option<Arc<CallState>>,
    pub(crate) at: Timestamp,
    pub(crate) instant: Instant,
}

impl CallState {
    pub(crate) fn new(ports: &Arc<Ports>, id: ExecutionId, arrival: Arrival) -> Self {
        CallState {
            id,
            batch: arrival.batch,
            tool_call: arrival.call,
            context: arrival.context,
            options: arrival.options,
            approver: arrival.approver,
            arrived_at: arrival.at,
            arrived: arrival.instant,
            cancel: Arc::default(),
            later: Mutex::default(),
            is_inside: arrival.is_inside,
            task: arrival.task,
            outer: arrival.outer,
            log: EventLog::new(arrival.at, ports.settings.event_log_capacity),
            registered: OnceLock::new(),
            sandbox: OnceLock::new(),
            kept: OnceLock::new(),
            finished: AtomicBool::new(false),
            spool: Mutex::default(),
            left: Mutex::default(),
            ports: Arc::clone(ports),
        }
    }

    /// What the call may reach: less than the engine, where its context names folders to keep to.
    pub(crate) fn reach(&self) -> &Capabilities {
        match &self.context.roots {
            None => &self.ports.capabilities,
            Some(roots) => self.kept.get_or_init(|| self.ports.capabilities.kept_to(roots)),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.ports.settings
    }

    /// Keeps what is known about it for whatever ends it.
    pub(crate) fn leave(&self, facts: Facts) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(facts));
    }

    /// What was left of it, once.
    pub(crate) fn take_left(&self) -> Option<Box<Facts>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Cancels the call, whichever attempt it is at; false if it was cancelled already.
    pub(crate) fn stop(&self, reason: CancelReason, note: Option<&str>) -> bool {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !std::mem::replace(&mut later.is_stopped, true);
        let of_the_first = self.cancel.cancel(reason, note);
        match &later.cancel {
            Some(cancel) => cancel.cancel(reason, note),
            None => of_the_first && is_first,
        }
    }

    /// The switch of the next attempt; `None` where somebody has cancelled the call.
    pub(crate) fn next_switch(&self) -> Option<Arc<Cancel>> {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        if later.is_stopped {
            return None;
        }
        let cancel = Arc::new(Cancel::new());
        later.cancel = Some(Arc::clone(&cancel));
        Some(cancel)
    }

    /// The claim on an idempotency key of its caller.
    pub(crate) fn claim_request(&self, registered: &Registered, key: &Arc<str>) -> ClaimRequest {
        ClaimRequest {
            execution_id: self.id,
            tenant: Arc::clone(&self.context.tenant),
            principal: principal(&self.context),
            tool: Arc::clone(&registered.name),
            key: Arc::clone(key),
            arguments: self.tool_call.arguments.clone(),
        }
    }

    /// The limits of the sandbox around it and of the agent that calls; none where there is neither.
    pub(crate) fn parent_limits(&self) -> Limits {
        let said = self.context.parent.as_ref().map(|parent| parent.limits.clone()).unwrap_or_default();
        let said = match AgentDefinition::of(&self.settings().agents, &self.context) {
            Some(agent) => said.within(&agent.limits),
            None => said,
        };
        match self.sandbox.get() {
            Some(sandbox) => said.within(&sandbox.grant.limits),
            None => said,
        }
    }

    /// What it may do with files, by its own limits and those around it; `None` where nothing is limited.
    pub(crate) fn file_limits(&self) -> Option<Limits> {
        let around = self.parent_limits();
        let limits = match &self.options.limits {
            Some(asked) => asked.within(&around),
            None => around,
        };
        Some(limits.of_files()).filter(|limits| *limits != Limits::default())
    }

    /// Says that it runs, for as long as what comes back is not dropped.
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs::begin(self.batch.as_ref().map(|(batch, place)| (&**batch, *place)))
    }

    /// What the caller hands to the tool beside the arguments; null where there is nothing.
    pub(crate) fn passed(&self) -> Value {
        let metadata = self.tool_call.metadata.as_deref().filter(|metadata| !metadata.is_empty());
        let context = Some(&self.context.extra).filter(|extra| !extra.is_empty());
        let mut passed = Map::new();
        for (name, members) in [("metadata", metadata), ("context", context)] {
            passed.extend(members.map(|members| (name.to_owned(), Value::Object(members.clone()))));
        }
        if passed.is_empty() { Value::Null } else { Value::Object(passed) }
    }

    /// Bytes without secrets, whatever goes out as it is: nobody finds them in an encoding later.
    pub(crate) fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.ports.redaction.bytes(&bytes) {
            Cow::Borrowed(_) => bytes,
            Cow::Owned(redacted) => redacted,
        }
    }

    fn redactors(&self) -> Redactors<'_> {
        Redactors {
            result: self.ports.redaction_levels.results.0.as_deref(),
            events: self.ports.redaction.0.as_deref(),
            is_one: self.ports.redaction_levels.is_one,
        }
    }

    fn spool(&self) -> MutexGuard<'_, SpoolState> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The canonical name, or what was asked for. Where both are the same it is the call's own copy, which other
    /// threads do not count references to.
    pub(crate) fn tool_name(&self) -> &Arc<str> {
        match self.registered.get() {
            Some(registered) if registered.name != self.tool_call.name => &registered.name,
            _ => &self.tool_call.name,
        }
    }

    pub(crate) fn batch_place(&self) -> Option<(BatchId, u32)> {
        self.batch.as_ref().map(|(batch, index)| (batch.id, *index))
    }

    /// Bytes of results that the model behind the call can still take.
    pub(crate) fn capacity(&self) -> usize {
        match &self.batch {
            Some((batch, _)) => batch.capacity.load(Ordering::Acquire),
            None => self.options.model.available_bytes(),
        }
    }

    /// The room for its text, of the bytes that it would like and at most `bound`. Taken from what its batch can still
    /// take at once, so that results which are made at the same time do not both count on the same rest.
    pub(crate) fn claim_output(&self, bound: usize, wanted: usize) -> OutputClaim {
        let Some((batch, _)) = &self.batch else {
            return OutputClaim { limit: self.output_limit(bound), claimed: 0 };
        };
        let wanted = wanted.min(bound);
        let claim = |capacity: usize| (capacity != usize::MAX).then(|| capacity.saturating_sub(wanted));
        match batch.capacity.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim) {
            Ok(before) => {
                let granted = wanted.min(before);
                OutputClaim { limit: granted, claimed: granted }
            }
            // There is no end to it.
            Err(_) => OutputClaim { limit: bound, claimed: 0 },
        }
    }

    /// Gives back what it claimed and did not use.
    pub(crate) fn settle_output(&self, claimed: usize, used: impl Fn() -> usize) {
        let Some((batch, _)) = &self.batch else { return };
        // Where there is no end to it, nothing is counted.
        if batch.capacity.load(Ordering::Acquire) == usize::MAX {
            return;
        }
        let used = used();
        let settle = |capacity: usize| {
            (capacity != usize::MAX).then(|| capacity.saturating_add(claimed).saturating_sub(used))
        };
        let _ = batch.capacity.fetch_update(Ordering::AcqRel, Ordering::Acquire, settle);
    }

    /// How many bytes of output can reach the caller, where the plan allows `bound`.
    pub(crate) fn output_limit(&self, bound: usize) -> usize {
        // Asked for again each time: earlier results of a batch leave less.
        bound.min(self.capacity())
    }

    /// Sends the first event. Arguments that were too large for a call are too large for an event.
    pub(crate) fn announce(&self, timeout: Duration) {
        let sent = &self.tool_call.arguments;
        let arguments = match self.registered.get() {
            None if sent.len() > self.ports.settings.max_args_bytes => {
                Arguments::from_text(format!("[{} bytes]", sent.len()))
            }
            _ => self.ports.redaction.arguments(sent),
        };
        self.emit(EventPayload::Started { arguments, timeout });
    }

    /// Adds an event to the call's log, and to its batch's.
    pub(crate) fn emit(&self, payload: EventPayload) {
        self.emit_at(self.arrived.elapsed(), payload);
    }

    /// Adds an event that happened at a time that is known already.
    pub(crate) fn emit_at(&self, elapsed: Duration, payload: EventPayload) {
        if payload.is_droppable() && !self.context.tier.full_progress() {
            return;
        }
        let is_last = payload.is_terminal();
        if let Some((batch, _)) = &self.batch {
            let source = Some(Box::new(self.source()));
            batch.log.push(batch.arrived.elapsed(), source, payload.clone(), false);
        }
        let heard = self.ports.feeds.is_open().then(|| payload.clone());
        let is_new = self.log.push(elapsed, None, payload, is_last);
        if let Some(payload) = heard.filter(|_| is_new) {
            self.ports.feeds.push(&self.context.tenant, self.source(), self.arrived_at, elapsed, payload);
        }
    }

    /// Whether anything was streamed.
    pub(crate) fn has_spooled(&self) -> bool {
        self.spool().spool.is_some()
    }

    /// Lets go of what a failed attempt has streamed: the next one begins with nothing.
    pub(crate) fn forget_spool(&self) {
        let gone = self.spool().spool.take();
        drop(gone);
    }

    /// Everything that was streamed: bytes that were kept, and how many there were. Nothing is taken after that: a
    /// thread that outlived its call is not heard.
    pub(crate) fn take_spool(&self) -> Option<(Vec<u8>, u64)> {
        let mut state = self.spool();
        state.is_closed = true;
        let mut spool = state.spool.take()?;
        drop(state);
        for (stream, piece) in spool.finish(self.redactors()) {
            self.emit(EventPayload::Output { stream, offset: piece.offset, chunk: piece.text });
        }
        let total = spool.total();
        Some((spool.into_bytes(), total))
    }
}

impl CallState {
    /// Says how far the tool is.
    pub(crate) fn progress(&self, percent: Option<u8>, message: Option<&str>) {
        let message = message.map(|message| self.ports.redaction.model_string(message.to_owned()));
        self.emit(EventPayload::InProgress { percent, message });
    }

    /// Passes on a warning of the tool.
    pub(crate) fn warn(&self, message: &str) {
        self.emit(EventPayload::Warning { message: self.ports.redaction.model_string(message.to_owned()) });
    }

    /// Takes output of an attempt. It is kept as it comes, too, where the call may have had an effect: what has none
    /// can be asked for again.
    pub(crate) fn put_out(&self, stream: OutputStream, bytes: &[u8], may_have_effect: bool) {
        let mut state = self.spool();
        if bytes.is_empty() || state.is_closed {
            return;
        }
        let limit =
            self.registered.get().map_or(0, |registered| registered.definition.constraints.max_output_size);
        let begin = || {
            let running = may_have_effect.then(|| self.ports.store.running_output(self.id, limit));
            Box::new(Spool::new(usize::try_from(limit).unwrap_or(usize::MAX), running.flatten()))
        };
        let piece = state.spool.get_or_insert_with(begin).write(stream, bytes, self.redactors());
        // Under the lock, so that chunks reach the log in the order of their offsets.
        if let Some(piece) = piece {
            self.emit(EventPayload::Output { stream, offset: piece.offset, chunk: piece.text });
        }
    }
}

/// Who makes a call, for what is remembered of it: the user, or else the agent. One cannot be called like the other: no
/// name has a control character.
pub(crate) fn principal(context: &CallContext) -> Arc<str> {
    match &context.user {
        Some(user) => Arc::clone(user),
        None => format!("\u{1f}{}", context.agent).into(),
    }
}

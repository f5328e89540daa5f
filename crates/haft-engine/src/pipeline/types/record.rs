//! A call with what is found out about it. Exactly one stage has it at a time: it is handed on, and finish puts what it
//! holds on record.

use super::{call::CallState, facts::Facts};
use haft_core::{Arguments, ResultMetadata, Scheduling};
use jiff::SignedDuration;
use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// A call, owned by the stage that has it, with its facts. Dropped before the call has ended (its caller went away), it
/// leaves them with the call: whatever ends the call then has them from there.
pub(crate) struct CallRecord {
    call: Arc<CallState>,
    pub(crate) facts: Box<Facts>,
}

impl CallRecord {
    /// A call with what is known about it: nothing, or what was left when its last stage was dropped.
    pub(crate) fn of(call: &Arc<CallState>) -> Self {
        CallRecord { call: Arc::clone(call), facts: call.take_left().unwrap_or_default() }
    }

    /// The part of it that others share.
    pub(crate) fn state(&self) -> &Arc<CallState> {
        &self.call
    }

    /// The call, and what is found out about it.
    pub(crate) fn parts(&mut self) -> (&Arc<CallState>, &mut Facts) {
        (&self.call, &mut self.facts)
    }

    /// Sends the first event, once: when the plan knows the deadline, or at the end of a call that was never planned.
    pub(crate) fn announce(&mut self) {
        if !std::mem::replace(&mut self.facts.is_announced, true) {
            self.call.announce(self.timeout());
        }
    }

    /// What happened around its start.
    pub(crate) fn scheduling(&mut self) -> &mut Scheduling {
        self.facts.scheduling.get_or_insert_default()
    }

    /// The arguments that count: those that were sent, unless a person changed them.
    pub(crate) fn arguments(&self) -> &Arguments {
        self.facts.arguments(&self.call)
    }

    /// The time that the call has, for all attempts together.
    pub(crate) fn timeout(&self) -> Duration {
        self.facts.bounds.map_or_else(|| self.call.settings().default_timeout, |bounds| bounds.timeout)
    }

    /// The time of the call begins to run.
    pub(crate) fn begin_time(&mut self) {
        self.facts.deadline = Instant::now().checked_add(self.timeout());
    }

    /// What is left of its time.
    pub(crate) fn time_left(&self) -> Duration {
        self.facts
            .deadline
            .map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// How many bytes of output the plan allows.
    pub(crate) fn output_bound(&self) -> usize {
        self.facts.bounds.map_or_else(|| self.call.settings().max_output_bytes, |bounds| bounds.output)
    }

    /// Its turn has come: the calls before it have ended, and every person who had to be asked has answered.
    pub(crate) fn begin_turn(&mut self) {
        self.facts.waited = self.call.arrived.elapsed();
    }

    /// What is known about the execution as such; it ends now.
    pub(crate) fn metadata(&self) -> ResultMetadata {
        let (call, waited) = (&self.call, self.facts.waited);
        let elapsed = call.arrived.elapsed();
        let after = |time: Duration| {
            let time = SignedDuration::try_from(time).unwrap_or_default();
            call.arrived_at.checked_add(time).unwrap_or(call.arrived_at)
        };
        let started_at = if waited.is_zero() { call.arrived_at } else { after(waited) };
        let place = call.batch_place();
        ResultMetadata {
            batch_id: place.map(|(id, _)| id),
            batch_index: place.map(|(_, index)| index),
            parallel: call.batch.as_ref().map(|(batch, index)| batch.overlap.has(*index)),
            started_at,
            completed_at: after(elapsed),
            duration: elapsed.saturating_sub(waited),
            correlation_id: call.context.correlation_id.clone(),
            ..ResultMetadata::not_started(call.id, call.arrived_at)
        }
    }
}

impl Facts {
    /// The arguments of a call that count: those that were sent, unless a person changed them.
    pub(crate) fn arguments<'a>(&'a self, call: &'a CallState) -> &'a Arguments {
        self.edited.as_ref().unwrap_or(&call.tool_call.arguments)
    }
}

impl Deref for CallRecord {
    type Target = CallState;

    fn deref(&self) -> &CallState {
        &self.call
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if !self.call.finished.load(Ordering::Acquire) {
            self.call.leave(std::mem::take(&mut *self.facts));
        }
    }
}

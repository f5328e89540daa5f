//! Calls that belong together, and which of them overlap.

use crate::{
    events::{EventLog, Feeds, Logged, Source},
    ports::Ports,
};
use haft_core::{BatchId, EventPayload, Footprint, ModelBudget};
use haft_sdk::Cancel;
use jiff::Timestamp;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Instant,
};

/// A batch, as all its calls share it.
pub(crate) struct Batch {
    pub(crate) id: BatchId,
    /// Whose it is.
    pub(crate) tenant: Arc<str>,
    pub(crate) arrived: Instant,
    pub(crate) cancel: Cancel,
    pub(crate) log: EventLog,
    at: Timestamp,
    feeds: Arc<Feeds>,
    /// Bytes of results that the model behind it can still take.
    pub(crate) capacity: AtomicUsize,
    /// Which of its calls run at the same time.
    pub(crate) overlap: Overlap,
    /// Calls whose changes are neither applied nor thrown away, by their place, with what they touch.
    unsettled: Mutex<Vec<(u32, Footprint)>>,
    /// More calls of it may come: it is a flow that has not ended.
    pub(crate) goes_on: AtomicBool,
}

impl Logged for Batch {
    fn log(&self) -> &EventLog {
        &self.log
    }

    fn source(&self) -> Source {
        Source { execution_id: None, batch: Some((self.id, None)), tool: Arc::default() }
    }
}

impl Batch {
    pub(crate) fn new(
        id: BatchId,
        tenant: &Arc<str>,
        at: Timestamp,
        arrived: Instant,
        model: &ModelBudget,
        ports: &Ports,
    ) -> Self {
        Batch {
            id,
            tenant: Arc::clone(tenant),
            arrived,
            cancel: Cancel::new(),
            log: EventLog::new(at, ports.settings.event_log_capacity),
            at,
            feeds: Arc::clone(&ports.feeds),
            capacity: AtomicUsize::new(model.available_bytes()),
            overlap: Overlap::default(),
            unsettled: Mutex::default(),
            goes_on: AtomicBool::new(false),
        }
    }

    /// Calls whose changes are neither applied nor thrown away.
    pub(crate) fn unsettled(&self) -> MutexGuard<'_, Vec<(u32, Footprint)>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn emit(&self, payload: EventPayload, is_last: bool) {
        let elapsed = self.arrived.elapsed();
        let heard = self.feeds.is_open().then(|| payload.clone());
        let is_new = self.log.push(elapsed, None, payload, is_last);
        if let Some(payload) = heard.filter(|_| is_new) {
            self.feeds.push(&self.tenant, self.source(), self.at, elapsed, payload);
        }
    }
}

/// Which calls of a batch ran while another one did.
#[derive(Default)]
pub(crate) struct Overlap(Mutex<Overlapping>);

#[derive(Default)]
struct Overlapping {
    running: Vec<u32>,
    overlapped: HashSet<u32>,
}

impl Overlap {
    fn state(&self) -> MutexGuard<'_, Overlapping> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, call: u32) {
        let mut state = self.state();
        // Where several run, all but the last one are on record already.
        if let [other] = state.running[..] {
            state.overlapped.insert(other);
        }
        if !state.running.is_empty() {
            state.overlapped.insert(call);
        }
        state.running.push(call);
    }

    fn leave(&self, call: u32) {
        self.state().running.retain(|running| *running != call);
    }

    /// Whether that call did.
    pub(crate) fn has(&self, call: u32) -> bool {
        self.state().overlapped.contains(&call)
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.state().overlapped.len()
    }
}

/// A call that runs now. Dropping it says that it does not any more.
pub(crate) struct Runs<'a>(Option<(&'a Batch, u32)>);

impl<'a> Runs<'a> {
    /// A call of a batch, by its place there. A call without one overlaps nothing.
    pub(crate) fn begin(place: Option<(&'a Batch, u32)>) -> Self {
        if let Some((batch, call)) = place {
            batch.overlap.enter(call);
        }
        Runs(place)
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        if let Some((batch, call)) = self.0 {
            batch.overlap.leave(call);
        }
    }
}

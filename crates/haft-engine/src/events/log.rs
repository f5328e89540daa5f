//! A bounded log of events. Observers are cursors into it; nobody who writes ever waits for one who reads.

use haft_core::{BatchId, Event, EventPayload, ExecutionId};
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// What happened to a call, or to a batch with all its calls.
pub(crate) struct EventLog {
    arrived: Timestamp,
    capacity: usize,
    entries: Mutex<Entries>,
    changed: Notify,
}

#[derive(Default)]
struct Entries {
    list: VecDeque<Entry>,
    next_seq: u64,
    droppable: usize,
    closed: bool,
    /// Somebody has found nothing yet, and may be waiting.
    is_awaited: bool,
}

struct Entry {
    seq: u64,
    elapsed: Duration,
    /// Where the log's own source is not meant: a call's event in the log of its batch.
    source: Option<Box<Source>>,
    payload: EventPayload,
}

/// Something with a log.
pub(crate) trait Logged: Send + Sync {
    fn log(&self) -> &EventLog;

    /// Whose events these are, unless they say otherwise.
    fn source(&self) -> Source;
}

/// Which call an event belongs to.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) batch: Option<(BatchId, Option<u32>)>,
    pub(crate) tool: Arc<str>,
}

impl EventLog {
    pub(crate) fn new(arrived: Timestamp, capacity: usize) -> Self {
        EventLog { arrived, capacity, entries: Mutex::default(), changed: Notify::const_new() }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event; afterwards, if it is the last, the log ends. What comes after the end is not for observers:
    /// then this is false.
    pub(crate) fn push(
        &self,
        elapsed: Duration,
        source: Option<Box<Source>>,
        payload: EventPayload,
        is_last: bool,
    ) -> bool {
        let mut entries = self.entries();
        if entries.closed {
            return false;
        }
        let seq = entries.next_seq;
        entries.next_seq += 1;
        entries.droppable += usize::from(payload.is_droppable());
        entries.list.push_back(Entry { seq, elapsed, source, payload });
        if entries.droppable > self.capacity
            && let Some(oldest) = entries.list.iter().position(|entry| entry.payload.is_droppable())
        {
            entries.list.remove(oldest);
            entries.droppable -= 1;
        }
        entries.closed = is_last;
        let is_awaited = entries.is_awaited;
        drop(entries);
        // Most logs are never watched. An observer that waits has said so under the lock before, and is told.
        if is_awaited {
            self.changed.notify_waiters();
        }
        true
    }

    /// The kind of the newest event that is a change of state.
    pub(crate) fn last_change(&self) -> Option<&'static str> {
        let entries = self.entries();
        let last = entries.list.iter().rev().find(|entry| !entry.payload.is_droppable());
        last.map(|entry| entry.payload.kind())
    }

    /// The event at `seq`, or the gap that begins there; `None` at the end, `Err` when it is yet to come.
    fn read(&self, own: &dyn Logged, seq: u64) -> Result<Option<Event>, NotYet> {
        let mut entries = self.entries();
        let index = entries.list.partition_point(|entry| entry.seq < seq);
        match entries.list.get(index) {
            Some(entry) if entry.seq == seq => Ok(Some(self.event(own, entry))),
            Some(entry) => {
                let gap = EventPayload::Gap { from: seq, to: entry.seq - 1 };
                Ok(Some(Event { seq, payload: gap, ..self.event(own, entry) }))
            }
            None if entries.closed => Ok(None),
            None => {
                entries.is_awaited = true;
                Err(NotYet)
            }
        }
    }

    fn event(&self, own: &dyn Logged, entry: &Entry) -> Event {
        let source = entry.source.as_ref().map_or_else(|| own.source(), |source| Source::clone(source));
        let elapsed = SignedDuration::try_from(entry.elapsed).unwrap_or_default();
        Event {
            seq: entry.seq,
            execution_id: source.execution_id,
            batch_id: source.batch.map(|(id, _)| id),
            batch_index: source.batch.and_then(|(_, index)| index),
            tool: source.tool,
            timestamp: self.arrived.checked_add(elapsed).unwrap_or(self.arrived),
            elapsed: entry.elapsed,
            payload: entry.payload.clone(),
        }
    }

    /// Waits until the log has ended.
    pub(crate) async fn ended(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut entries = self.entries();
                if entries.closed {
                    return;
                }
                entries.is_awaited = true;
            }
            changed.await;
        }
    }
}

struct NotYet;

/// One who watches a call or a batch: first what has happened, then what happens, then the end.
///
/// An observer that is too slow gets a [`Gap`](EventPayload::Gap) in place of progress and output that is gone; changes
/// of state are never lost.
pub struct Observer {
    watched: Arc<dyn Logged>,
    next: u64,
}

impl Observer {
    pub(crate) fn new(watched: Arc<dyn Logged>) -> Self {
        Observer { watched, next: 0 }
    }

    /// Goes on after the event with that number, without what the observer has seen already.
    #[must_use]
    pub fn after(mut self, seq: u64) -> Self {
        self.next = self.next.max(seq.saturating_add(1));
        self
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Event> {
        let watched = Arc::clone(&self.watched);
        let log = watched.log();
        loop {
            let mut changed = std::pin::pin!(log.changed.notified());
            changed.as_mut().enable();
            match log.read(&*watched, self.next) {
                Ok(event) => {
                    let event = event?;
                    self.next = match event.payload {
                        EventPayload::Gap { to, .. } => to + 1,
                        _ => event.seq + 1,
                    };
                    return Some(event);
                }
                Err(NotYet) => changed.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Watched(EventLog);
    impl Logged for Watched {
        fn log(&self) -> &EventLog {
            &self.0
        }

        fn source(&self) -> Source {
            Source { execution_id: None, batch: None, tool: "t".into() }
        }
    }

    fn push(log: &EventLog, payload: EventPayload, is_last: bool) {
        log.push(Duration::ZERO, None, payload, is_last);
    }

    #[tokio::test]
    async fn a_slow_observer_gets_a_gap_and_never_loses_a_change_of_state() {
        let logged = Arc::new(Watched(EventLog::new(Timestamp::UNIX_EPOCH, 3)));
        let mut early = Observer::new(Arc::clone(&logged) as _);
        push(
            &logged.0,
            EventPayload::Started { arguments: Default::default(), timeout: Duration::ZERO },
            false,
        );
        for percent in 0..10 {
            push(&logged.0, EventPayload::InProgress { percent: Some(percent), message: None }, false);
        }
        push(&logged.0, EventPayload::Completed { duration: Duration::ZERO }, true);

        let mut seen = Vec::new();
        while let Some(event) = early.next().await {
            seen.push(event);
        }
        let kinds: Vec<_> = seen.iter().map(|event| event.payload.kind()).collect();
        assert_eq!(kinds, ["Started", "Gap", "InProgress", "InProgress", "InProgress", "Completed"]);
        assert_eq!(seen[1].payload, EventPayload::Gap { from: 1, to: 7 });
        assert_eq!(seen[2].seq, 8);

        let mut late = Observer::new(logged as _);
        let mut again = Vec::new();
        while let Some(event) = late.next().await {
            again.push(event);
        }
        assert_eq!(again, seen, "a late observer sees the same");
    }
}

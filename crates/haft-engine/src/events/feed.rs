//! Everything that happens in an engine, as it happens: one feed for each tenant that somebody listens to.
//!
//! A feed is a bounded ring of the newest events. Listeners are cursors into it: nobody who writes ever waits for one
//! who reads, and a listener that is too slow is told how many events it missed. Where nobody listens, an event costs
//! one load.

use super::log::Source;
use haft_core::{Event, EventPayload};
use jiff::Timestamp;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    str::FromStr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// The most events that a feed keeps for listeners that are behind.
const EVENTS: usize = 4096;
/// The most bytes of output and arguments among them.
const BYTES: usize = 4 << 20;
/// How long a feed goes on after its last listener has left, so that one that comes back misses nothing.
const LINGER: Duration = Duration::from_secs(60);

/// The feeds of an engine.
pub(crate) struct Feeds {
    /// How many there are: nothing else is looked at where this is zero.
    open: AtomicUsize,
    by_tenant: Mutex<HashMap<Arc<str>, Arc<Feed>>>,
    linger: Duration,
}

struct Feed {
    /// Distinguishes it from an earlier one of the same tenant, also after a restart.
    id: u64,
    ring: Mutex<Ring>,
    changed: Notify,
}

#[derive(Default)]
struct Ring {
    list: VecDeque<Arc<Event>>,
    next: u64,
    bytes: usize,
    listeners: usize,
    /// When the last listener left.
    left: Option<Instant>,
    is_closed: bool,
}

/// A place between two events of an engine. Written as text it is what a client sends to go on from there.
///
/// ```
/// let place: haft_engine::EventPosition = "1763300000000000-42".parse().unwrap();
/// assert_eq!(place.to_string(), "1763300000000000-42");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPosition {
    feed: u64,
    /// The number of the event that follows.
    next: u64,
}

impl fmt::Display for EventPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.feed, self.next)
    }
}

/// What is no place in an engine's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPosition;

impl FromStr for EventPosition {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (feed, next) = text.split_once('-').ok_or(NoPosition)?;
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| NoPosition),
            false => Err(NoPosition),
        };
        Ok(EventPosition { feed: number(feed)?, next: number(next)? })
    }
}

impl Default for Feeds {
    fn default() -> Self {
        Feeds { open: AtomicUsize::new(0), by_tenant: Mutex::default(), linger: LINGER }
    }
}

impl Feeds {
    fn by_tenant(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Feed>>> {
        self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody could want an event. One load.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Adds an event of a tenant. Its number is that of the feed.
    pub(crate) fn push(
        &self,
        tenant: &str,
        source: Source,
        at: Timestamp,
        elapsed: Duration,
        payload: EventPayload,
    ) {
        let Some(feed) = self.feed(tenant) else { return };
        let is_open = feed.push(
            |seq| Event {
                seq,
                execution_id: source.execution_id,
                batch_id: source.batch.map(|(id, _)| id),
                batch_index: source.batch.and_then(|(_, index)| index),
                tool: source.tool,
                timestamp: at.checked_add(elapsed).unwrap_or(at),
                elapsed,
                payload,
            },
            self.linger,
        );
        if !is_open {
            self.forget(tenant, &feed);
        }
    }

    fn feed(&self, tenant: &str) -> Option<Arc<Feed>> {
        self.by_tenant().get(tenant).cloned()
    }

    /// Lets a feed go that nobody has listened to for a while, unless another one took its place.
    fn forget(&self, tenant: &str, feed: &Arc<Feed>) {
        let mut feeds = self.by_tenant();
        if feeds.get(tenant).is_some_and(|now| Arc::ptr_eq(now, feed)) {
            feeds.remove(tenant);
            self.open.store(feeds.len(), Ordering::Relaxed);
        }
    }

    /// Listens to a tenant's events: from a place, where they are still kept, else from now on.
    pub(crate) fn listen(&self, tenant: &str, from: Option<EventPosition>, now: Timestamp) -> EventStream {
        let mut feeds = self.by_tenant();
        let feed = match feeds.get(tenant).filter(|feed| !feed.ring().is_closed) {
            Some(feed) => Arc::clone(feed),
            None => {
                let id = u64::try_from(now.as_microsecond()).unwrap_or_default();
                let feed = Arc::new(Feed { id, ring: Mutex::default(), changed: Notify::new() });
                feeds.insert(tenant.into(), Arc::clone(&feed));
                self.open.store(feeds.len(), Ordering::Relaxed);
                feed
            }
        };
        let mut ring = feed.ring();
        ring.listeners += 1;
        ring.left = None;
        let (next, has_missed) = match from {
            Some(place) if place.feed == feed.id && place.next <= ring.next => (place.next, false),
            Some(_) => (ring.next, true),
            None => (ring.next, false),
        };
        drop(ring);
        drop(feeds);
        EventStream { feed, next, has_missed }
    }

    /// Ends all streams: nothing happens any more.
    pub(crate) fn close(&self) {
        for (_, feed) in self.by_tenant().drain() {
            feed.ring().is_closed = true;
            feed.changed.notify_waiters();
        }
        self.open.store(0, Ordering::Relaxed);
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        self.close();
    }
}

/// What an event holds beside its size.
fn weight(payload: &EventPayload) -> usize {
    match payload {
        EventPayload::Output { chunk, .. } => chunk.len(),
        EventPayload::Started { arguments, .. } => arguments.len(),
        EventPayload::InProgress { message: Some(message), .. }
        | EventPayload::Warning { message }
        | EventPayload::Failed { message, .. } => message.len(),
        _ => 0,
    }
}

impl Feed {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event; false where nobody has listened for a while.
    fn push(&self, event: impl FnOnce(u64) -> Event, linger: Duration) -> bool {
        let mut ring = self.ring();
        if ring.listeners == 0 && ring.left.is_none_or(|left| left.elapsed() >= linger) {
            // It is no longer whole, so nobody may go on with it.
            ring.is_closed = true;
            return false;
        }
        let event = event(ring.next);
        ring.next += 1;
        ring.bytes += weight(&event.payload);
        ring.list.push_back(Arc::new(event));
        let mut gone = Vec::new();
        while ring.list.len() > EVENTS || (ring.bytes > BYTES && ring.list.len() > 1) {
            let Some(oldest) = ring.list.pop_front() else { break };
            ring.bytes -= weight(&oldest.payload);
            gone.push(oldest);
        }
        drop(ring);
        self.changed.notify_waiters();
        true
    }

    /// The event at `next`, or the gap that begins there; `None` at the end, `Err` when it is yet to come.
    fn read(&self, next: u64) -> Result<Option<Event>, NotYet> {
        let ring = self.ring();
        let first = ring.next - ring.list.len() as u64;
        if next < first {
            return Ok(Some(about(next, ring.list.front(), EventPayload::Gap { from: next, to: first - 1 })));
        }
        let place = usize::try_from(next - first).unwrap_or(usize::MAX);
        match ring.list.get(place) {
            Some(event) => Ok(Some(Event::clone(event))),
            None if ring.is_closed => Ok(None),
            None => Err(NotYet),
        }
    }
}

struct NotYet;

/// An event about the stream itself.
fn about(seq: u64, beside: Option<&Arc<Event>>, payload: EventPayload) -> Event {
    Event {
        seq,
        execution_id: None,
        batch_id: None,
        batch_index: None,
        tool: Arc::default(),
        timestamp: beside.map_or_else(Timestamp::now, |event| event.timestamp),
        elapsed: Duration::ZERO,
        payload,
    }
}

/// Every event of a tenant's calls and batches, as they happen.
///
/// A listener that is too slow gets a [`Gap`](EventPayload::Gap), which says how many events are gone. One that comes
/// back to a place whose events are not kept any more gets [`Missed`](EventPayload::Missed) first. The stream ends with
/// its engine.
pub struct EventStream {
    feed: Arc<Feed>,
    next: u64,
    has_missed: bool,
}

impl EventStream {
    /// The next event; `None` when the engine has ended.
    pub async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.has_missed) {
            return Some(about(self.next, None, EventPayload::Missed));
        }
        loop {
            let feed = Arc::clone(&self.feed);
            let mut changed = std::pin::pin!(feed.changed.notified());
            changed.as_mut().enable();
            match feed.read(self.next) {
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

    /// The place after the event that `next` gave last.
    pub fn position(&self) -> EventPosition {
        EventPosition { feed: self.feed.id, next: self.next }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut ring = self.feed.ring();
        ring.listeners = ring.listeners.saturating_sub(1);
        if ring.listeners == 0 {
            ring.left = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(feeds: &Feeds, tenant: &str, words: &str) {
        let source = Source { execution_id: None, batch: None, tool: "t".into() };
        let payload = EventPayload::Warning { message: words.to_owned() };
        feeds.push(tenant, source, Timestamp::UNIX_EPOCH, Duration::ZERO, payload);
    }

    async fn hear(stream: &mut EventStream) -> EventPayload {
        stream.next().await.map(|event| event.payload).unwrap_or(EventPayload::Running)
    }

    fn said(words: &str) -> EventPayload {
        EventPayload::Warning { message: words.to_owned() }
    }

    #[tokio::test]
    async fn a_slow_listener_is_told_how_many_events_it_missed() {
        let feeds = Feeds::default();
        assert!(!feeds.is_open());
        say(&feeds, "a", "nobody hears this");
        let mut slow = feeds.listen("a", None, Timestamp::UNIX_EPOCH);
        assert!(feeds.is_open());
        for number in 0..EVENTS + 10 {
            say(&feeds, "a", &number.to_string());
        }
        assert_eq!(hear(&mut slow).await, EventPayload::Gap { from: 0, to: 9 });
        assert_eq!(hear(&mut slow).await, said("10"));
        for _ in 0..3 {
            say(&feeds, "a", &"x".repeat(BYTES / 2));
        }
        assert_eq!(hear(&mut slow).await, EventPayload::Gap { from: 11, to: EVENTS as u64 + 10 });
        assert!(
            feeds.by_tenant().values().all(|feed| feed.ring().bytes <= BYTES),
            "bounded in bytes as well"
        );
    }

    #[tokio::test]
    async fn a_listener_that_comes_back_goes_on_where_it_was_or_is_told_that_it_missed_something() {
        let feeds = Feeds::default();
        let mut first = feeds.listen("a", None, Timestamp::UNIX_EPOCH);
        let begin = first.position();
        say(&feeds, "a", "one");
        assert_eq!(hear(&mut first).await, said("one"));
        let place = first.position();
        drop(first);
        say(&feeds, "a", "two");
        let mut again = feeds.listen("a", Some(place), Timestamp::UNIX_EPOCH);
        assert_eq!(hear(&mut again).await, said("two"));
        let mut all = feeds.listen("a", Some(begin), Timestamp::UNIX_EPOCH);
        assert_eq!((hear(&mut all).await, hear(&mut all).await), (said("one"), said("two")));
        let other = EventPosition { feed: 7, next: 0 };
        let mut lost = feeds.listen("a", Some(other), Timestamp::UNIX_EPOCH);
        assert_eq!(hear(&mut lost).await, EventPayload::Missed);
        say(&feeds, "a", "three");
        assert_eq!((hear(&mut lost).await, hear(&mut again).await), (said("three"), said("three")));
        feeds.close();
        assert!(lost.next().await.is_none(), "a stream ends with its engine");
    }

    #[tokio::test]
    async fn tenants_are_apart_and_a_feed_that_nobody_wants_goes_away() {
        let feeds = Feeds { open: AtomicUsize::new(0), by_tenant: Mutex::default(), linger: Duration::ZERO };
        let mut a = feeds.listen("a", None, Timestamp::UNIX_EPOCH);
        let b = feeds.listen("b", None, Timestamp::UNIX_EPOCH);
        for _ in 0..2 * EVENTS {
            say(&feeds, "b", "noise");
        }
        say(&feeds, "a", "quiet");
        assert_eq!(hear(&mut a).await, said("quiet"), "a tenant is not crowded out by another one");
        drop((a, b));
        say(&feeds, "a", "to nobody");
        say(&feeds, "b", "to nobody");
        assert!(!feeds.is_open());
    }

    #[test]
    fn positions_are_read_as_they_are_written() {
        let place = EventPosition { feed: 17, next: 4 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "-", "1", "1-", "-1", "1-+2", "a-1", "1-2-3", "1-99999999999999999999"] {
            assert_eq!(wrong.parse::<EventPosition>(), Err(NoPosition), "{wrong}");
        }
    }
}

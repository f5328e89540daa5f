//! The one thread that writes. What comes in while it is busy is written together, with one sync to the disk.
//!
//! Jobs are taken in the order in which they were handed over. A job that somebody waits for is written at once; one
//! that nobody waits for waits a moment for company. If a group cannot be written, its jobs are tried one by one, so
//! that one that cannot be done does not spoil the others. Records that must not be lost stay with the writer until
//! they are written: while that fails, everything that waits is told so.

use super::{
    chain::{self, Bytes32},
    instances::Lives,
    options::{AuditHead, Options},
    projection,
    value::{Fault, FaultKind, Sql},
    work::Work,
};
use crate::failpoint;
use haft_core::port::StoreError;
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{Notify, oneshot};

mod scribe;
use scribe::Scribe;

/// Jobs that are written together at most: more than callers that wait at once, and few enough that a group of large
/// records does not make the log grow by tens of megabytes where the disk is slow.
const GROUP: usize = 128;
/// After a failure, how long until what must not be lost is tried again by itself.
const RETRY: Duration = Duration::from_millis(500);
/// How long nothing must happen before the house is put in order.
const TIDY: Duration = Duration::from_millis(500);
/// How often the end of the chain is told at most.
const HEADS: Duration = Duration::from_secs(1);

/// A connection, made again after a failure that may have left the old one in a bad state.
pub(crate) trait Connect: Send {
    fn connect(&mut self) -> Result<Box<dyn Sql + Send>, Fault>;
}

/// Something to be written.
pub(crate) trait Job: Send {
    /// What it is, for the points at which tests end the process.
    fn name(&self) -> &'static str;
    /// Does it, within a transaction. May be called again where the transaction came to nothing.
    fn apply(&mut self, work: &mut Work<'_>) -> Result<(), Fault>;
    /// Tells the waiting caller how it went. Later results are ignored.
    fn tell(&mut self, done: Result<(), &Fault>);
    /// Whether it stays with the writer until it is written.
    fn must_stay(&self) -> bool;
}

/// A job from a closure.
pub(crate) struct Task<T, F> {
    name: &'static str,
    run: F,
    value: Option<T>,
    reply: Option<oneshot::Sender<Result<T, StoreError>>>,
    must_stay: bool,
}

impl<T: Send, F: FnMut(&mut Work<'_>) -> Result<T, Fault> + Send> Job for Task<T, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn apply(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.value = Some((self.run)(work)?);
        Ok(())
    }

    fn tell(&mut self, done: Result<(), &Fault>) {
        let Some(reply) = self.reply.take() else { return };
        let answer = match (done, self.value.take()) {
            (Ok(()), Some(value)) => Ok(value),
            (Err(fault), _) => Err(StoreError::from(fault.clone())),
            (Ok(()), None) => Err(StoreError("the job was not done".to_owned())),
        };
        // The caller may have gone away.
        let _ = reply.send(answer);
    }

    fn must_stay(&self) -> bool {
        self.must_stay
    }
}

struct State {
    jobs: VecDeque<Box<dyn Job>>,
    /// Jobs among them that somebody waits for.
    urgent: usize,
    /// When the oldest job came.
    since: Option<Instant>,
    closing: bool,
    /// Why nothing can be written at present.
    failing: Option<Fault>,
    is_asleep: bool,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    work: Condvar,
    room: Notify,
    queue: usize,
    window: Duration,
}

/// The writer, as others see it.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

/// What the writer's thread is made of.
pub(crate) struct Parts {
    pub(crate) connect: Box<dyn Connect>,
    pub(crate) sql: Box<dyn Sql + Send>,
    pub(crate) instance: String,
    pub(crate) lives: Arc<dyn Lives>,
    pub(crate) options: Options,
    pub(crate) chain_id: String,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(parts: Parts) -> Result<Self, Fault> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                urgent: 0,
                since: None,
                closing: false,
                failing: None,
                is_asleep: false,
            }),
            work: Condvar::new(),
            room: Notify::new(),
            queue: parts.options.queue,
            window: parts.options.window,
        });
        let theirs = Arc::clone(&shared);
        let run = move || {
            let mut scribe = Scribe {
                shared: theirs,
                sql: Some(parts.sql),
                connect: parts.connect,
                instance: parts.instance,
                lives: parts.lives,
                options: parts.options,
                chain_id: parts.chain_id,
                kept: Vec::new(),
                told: None,
                untold: None,
                lag: 0,
                is_untidy: true,
            };
            scribe.run();
        };
        let thread = thread::Builder::new()
            .name("haft-store".to_owned())
            .spawn(run)
            .map_err(|error| Fault::new(FaultKind::Other, format!("no thread for the store: {error}")))?;
        Ok(Writer { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Hands a job over; the answer comes when it is written.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        name: &'static str,
        must_stay: bool,
        run: impl FnMut(&mut Work<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        self.push(Box::new(Task { name, run, value: None, reply: Some(reply), must_stay }), true);
        Answer(answer)
    }

    /// Hands over a record that nobody waits for. It must stay. While nothing can be written the record is refused:
    /// then the caller must not go on as if it were kept.
    pub(crate) fn hand_over(
        &self,
        name: &'static str,
        run: impl FnMut(&mut Work<'_>) -> Result<(), Fault> + Send + 'static,
    ) -> Handed<'_> {
        let failing = self.shared.state().failing.is_some();
        if failing {
            return Handed::Waits(self.submit(name, true, run));
        }
        self.push(Box::new(Task { name, run, value: None, reply: None, must_stay: true }), false);
        Handed::Over(&self.shared)
    }

    /// Adds something that nobody waits for, and that may be lost where nothing can be written.
    pub(crate) fn add(
        &self,
        name: &'static str,
        run: impl FnMut(&mut Work<'_>) -> Result<(), Fault> + Send + 'static,
    ) {
        self.push(Box::new(Task { name, run, value: None, reply: None, must_stay: false }), false);
    }

    fn push(&self, job: Box<dyn Job>, urgent: bool) {
        let mut state = self.shared.state();
        if state.closing {
            drop(state);
            let mut job = job;
            job.tell(Err(&Fault::refused("the store is closed")));
            return;
        }
        let is_first = state.jobs.is_empty();
        if is_first {
            state.since = Some(Instant::now());
        }
        state.jobs.push_back(job);
        state.urgent += usize::from(urgent);
        // Woken only where it matters: a thread that is woken for every record costs more than the record.
        let wake = state.is_asleep && (urgent || is_first || state.jobs.len() == GROUP);
        drop(state);
        if wake {
            self.shared.work.notify_one();
        }
    }

    /// Writes what is there and ends the thread. Waits for it.
    pub(crate) fn close(&self) {
        self.shared.state().closing = true;
        self.shared.work.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It ends by itself; the waiting callers already know about a panic there.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// The answer to a job.
pub(crate) struct Answer<T>(oneshot::Receiver<Result<T, StoreError>>);

impl<T> Answer<T> {
    pub(crate) async fn wait(self) -> Result<T, StoreError> {
        self.0.await.unwrap_or_else(|_| Err(StoreError("the store ended before it answered".to_owned())))
    }

    /// For a caller that is not a future. It may stand in the middle of a runtime: opening and closing do.
    pub(crate) fn wait_blocking(self) -> Result<T, StoreError> {
        struct Unpark(thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Arc::new(Unpark(thread::current())).into();
        let mut cx = std::task::Context::from_waker(&waker);
        let mut answer = std::pin::pin!(self.wait());
        loop {
            if let std::task::Poll::Ready(answer) = answer.as_mut().poll(&mut cx) {
                return answer;
            }
            thread::park();
        }
    }
}

/// What became of a record that nobody waits for.
pub(crate) enum Handed<'a> {
    /// It will be written; where too many wait, so does the caller.
    Over(&'a Shared),
    /// Nothing can be written at present: the answer tells whether that has changed.
    Waits(Answer<()>),
}

impl Handed<'_> {
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            Handed::Over(shared) => shared.state().jobs.len() <= shared.queue,
            Handed::Waits(_) => false,
        }
    }

    pub(crate) async fn wait(self) -> Result<(), StoreError> {
        match self {
            Handed::Waits(answer) => answer.wait().await,
            Handed::Over(shared) => loop {
                let mut room = std::pin::pin!(shared.room.notified());
                room.as_mut().enable();
                if shared.state().jobs.len() <= shared.queue {
                    return Ok(());
                }
                room.await;
            },
        }
    }
}

impl Shared {
    // A panic while it is held cannot leave half a change: each is one insertion or removal.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

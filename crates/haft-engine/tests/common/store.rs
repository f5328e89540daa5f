//! A store that can fail and that can take its time.

use haft_core::{
    Arguments, OutputHandle, ToolResult,
    port::{
        BoxFuture, CallEnd, Claim, ClaimRequest, Intent, JournalStep, Store, StoreError, TaskStore,
        TenantStore, Wants,
    },
};
use haft_store::MemoryStore;
use std::{
    collections::HashSet,
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// What a store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Claim,
    Intent,
    Output,
    CallEnd,
    Flush,
    Task,
}

/// A [`MemoryStore`] that fails where it is told to, waits where it is told to, and writes down what it was asked.
#[derive(Clone)]
pub(crate) struct TestStore {
    pub(crate) memory: MemoryStore,
    shared: Arc<Shared>,
}

struct Shared {
    failing: Mutex<HashSet<Op>>,
    stalling: watch::Sender<HashSet<Op>>,
    is_slow: AtomicBool,
    wants_results: AtomicBool,
    kept: Mutex<Vec<Kept>>,
    log: Mutex<Vec<String>>,
}

/// Arguments and result of a call, as they are kept.
pub(crate) type Kept = (Option<Arguments>, Option<Arc<ToolResult>>);

/// What an operator reads when it fails. No model must.
pub(crate) const DISK_FULL: &str = "no space left on /var/lib/haft";

impl Default for TestStore {
    fn default() -> Self {
        let shared = Shared {
            failing: Mutex::default(),
            stalling: watch::channel(HashSet::new()).0,
            is_slow: AtomicBool::new(false),
            wants_results: AtomicBool::new(false),
            kept: Mutex::default(),
            log: Mutex::default(),
        };
        TestStore { memory: MemoryStore::new(), shared: Arc::new(shared) }
    }
}

impl TestStore {
    pub(crate) const DISK_FULL: &str = DISK_FULL;

    /// One that keeps arguments and results, as a durable one does.
    pub(crate) fn wanting_results() -> Self {
        let store = TestStore::default();
        store.shared.wants_results.store(true, Ordering::SeqCst);
        store
    }

    /// What was handed over to be kept, in order.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        self.shared.kept.lock().unwrap().clone()
    }

    /// What was kept so far; it is then forgotten.
    pub(crate) fn take_kept(&self) -> Vec<Kept> {
        std::mem::take(&mut *self.shared.kept.lock().unwrap())
    }

    /// From now on that fails.
    pub(crate) fn fail(&self, op: Op) {
        self.shared.failing.lock().unwrap().insert(op);
    }

    /// From now on that works again.
    pub(crate) fn mend(&self, op: Op) {
        self.shared.failing.lock().unwrap().remove(&op);
    }

    /// From now on that takes the record and does not return until it is let go.
    pub(crate) fn stall(&self, op: Op) {
        self.shared.stalling.send_modify(|stalling| {
            stalling.insert(op);
        });
    }

    /// Lets go of everything that is stalled.
    pub(crate) fn let_go(&self) {
        self.shared.stalling.send_modify(HashSet::clear);
    }

    /// From now on everything takes a moment, as a real store does.
    pub(crate) fn take_your_time(&self) {
        self.shared.is_slow.store(true, Ordering::SeqCst);
    }

    /// Writes down that something happened, among what the store was asked.
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.shared.log.lock().unwrap().push(what.into());
    }

    /// What happened, in order.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }

    /// How often it was asked for that.
    pub(crate) fn asked(&self, op: Op) -> usize {
        let name = format!("{op:?}");
        self.notes().iter().filter(|note| **note == name).count()
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        op: Op,
        hand_over: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        self.note(format!("{op:?}"));
        if self.shared.failing.lock().unwrap().contains(&op) {
            return Box::pin(ready(Err(StoreError(DISK_FULL.to_owned()))));
        }
        // As the port says: the call hands the record over, the future only waits.
        let done = hand_over();
        let is_slow = self.shared.is_slow.load(Ordering::SeqCst);
        Box::pin(async move {
            if is_slow {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let mut stalling = self.shared.stalling.subscribe();
            let _ = stalling.wait_for(|stalling| !stalling.contains(&op)).await;
            done.await
        })
    }
}

impl Store for TestStore {
    fn wants(&self) -> Wants {
        Wants { results: self.shared.wants_results.load(Ordering::SeqCst), ..Wants::default() }
    }

    fn journal<'a>(&'a self, step: JournalStep) -> BoxFuture<'a, Result<(), StoreError>> {
        self.memory.journal(step)
    }

    fn intent<'a>(&'a self, intent: Intent) -> BoxFuture<'a, Result<(), StoreError>> {
        self.answer(Op::Intent, || self.memory.intent(intent))
    }

    fn outcome<'a>(&'a self, outcome: CallEnd) -> BoxFuture<'a, Result<(), StoreError>> {
        self.shared.kept.lock().unwrap().push((outcome.arguments.clone(), outcome.result.clone()));
        self.answer(Op::CallEnd, || self.memory.outcome(outcome))
    }

    fn claim<'a>(&'a self, request: ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.answer(Op::Claim, || self.memory.claim(request))
    }

    fn keep_output<'a>(
        &'a self,
        tenant: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<OutputHandle, StoreError>> {
        self.answer(Op::Output, || self.memory.keep_output(tenant, bytes))
    }

    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), StoreError>> {
        self.answer(Op::Flush, || self.memory.flush())
    }

    fn tasks(&self) -> Result<&dyn TaskStore, StoreError> {
        match self.shared.failing.lock().unwrap().contains(&Op::Task) {
            true => Err(StoreError(DISK_FULL.to_owned())),
            false => self.memory.tasks(),
        }
    }

    fn for_tenant(&self, tenant: &str) -> Box<dyn TenantStore> {
        self.memory.for_tenant(tenant)
    }
}

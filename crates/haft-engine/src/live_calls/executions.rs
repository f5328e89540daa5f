//! Calls and batches that run, and those that ended lately.

use crate::pipeline::types::{Batch, CallState};
use haft_core::{BatchId, ExecutionId};
use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, Hash},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;

const SHARDS: usize = 16;
type Hashing = foldhash::fast::RandomState;

/// Things by id: those that run, and the newest of those that ended, for observers who come late.
struct Table<I, T> {
    hashing: Hashing,
    shards: [Mutex<Shard<I, T>>; SHARDS],
    keep_ended: usize,
}

struct Shard<I, T> {
    by_id: HashMap<I, Arc<T>, Hashing>,
    ended: VecDeque<I>,
}

impl<I: Copy + Eq + Hash, T> Table<I, T> {
    fn new(keep_ended: usize) -> Self {
        Table {
            hashing: Hashing::default(),
            shards: std::array::from_fn(|_| {
                Mutex::new(Shard { by_id: HashMap::default(), ended: VecDeque::new() })
            }),
            keep_ended: keep_ended.div_ceil(SHARDS),
        }
    }

    fn shard(&self, id: I) -> MutexGuard<'_, Shard<I, T>> {
        let place = usize::try_from(self.hashing.hash_one(id) % SHARDS as u64).unwrap_or(0);
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if there is one of that id already.
    fn insert(&self, id: I, thing: &Arc<T>) -> bool {
        match self.shard(id).by_id.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Arc::clone(thing));
                true
            }
        }
    }

    fn get(&self, id: I) -> Option<Arc<T>> {
        self.shard(id).by_id.get(&id).cloned()
    }

    fn ended(&self, id: I) {
        let mut shard = self.shard(id);
        shard.ended.push_back(id);
        let gone = if shard.ended.len() > self.keep_ended {
            shard.ended.pop_front().and_then(|oldest| shard.by_id.remove(&oldest))
        } else {
            None
        };
        // Freed outside the lock: it may hold a long log.
        drop(shard);
        drop(gone);
    }

    fn all(&self) -> Vec<Arc<T>> {
        self.shards
            .iter()
            .flat_map(|shard| {
                let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                shard.by_id.values().cloned().collect::<Vec<_>>()
            })
            .collect()
    }
}

/// All calls and batches that somebody may still ask about.
pub(crate) struct Executions {
    calls: Table<ExecutionId, CallState>,
    batches: Table<BatchId, Batch>,
    running: AtomicUsize,
    idle: Notify,
}

impl Executions {
    pub(crate) fn new(keep_ended: usize) -> Self {
        Executions {
            calls: Table::new(keep_ended),
            batches: Table::new(keep_ended),
            running: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    pub(crate) fn begin(&self, call: &Arc<CallState>) -> bool {
        let is_new = self.calls.insert(call.id, call);
        if is_new {
            self.running.fetch_add(1, Ordering::AcqRel);
        }
        is_new
    }

    pub(crate) fn end(&self, call: &CallState) {
        self.calls.ended(call.id);
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    pub(crate) fn begin_batch(&self, batch: &Arc<Batch>) -> bool {
        self.batches.insert(batch.id, batch)
    }

    pub(crate) fn end_batch(&self, batch: &Batch) {
        self.batches.ended(batch.id);
    }

    pub(crate) fn call(&self, id: ExecutionId) -> Option<Arc<CallState>> {
        self.calls.get(id)
    }

    pub(crate) fn batch(&self, id: BatchId) -> Option<Arc<Batch>> {
        self.batches.get(id)
    }

    /// The calls that have no result yet.
    pub(crate) fn unfinished(&self) -> Vec<Arc<CallState>> {
        let mut calls = self.calls.all();
        calls.retain(|call| !call.finished.load(Ordering::Acquire));
        calls.sort_by_key(|call| call.id);
        calls
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            idle.await;
        }
    }
}

//! State of the threads of one walk.

use std::{
    cell::Cell,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// One value for each thread of a walk, so that no thread waits for another.
pub(super) struct PerThread<T> {
    walk: u64,
    next: AtomicUsize,
    slots: Vec<Mutex<T>>,
}

thread_local! {
    /// The walk that this thread last took part in, and its place there.
    static PLACE: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

impl<T> PerThread<T> {
    /// Values for that many threads. More threads share them.
    pub(super) fn new(threads: usize, make: impl FnMut() -> T) -> Self {
        static WALKS: AtomicU64 = AtomicU64::new(1);
        let mut make = make;
        PerThread {
            walk: WALKS.fetch_add(1, Ordering::Relaxed),
            next: AtomicUsize::new(0),
            slots: (0..threads.max(1)).map(|_| Mutex::new(make())).collect(),
        }
    }

    /// Uses this thread's value.
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        let place = PLACE.with(|cell| match cell.get() {
            (walk, place) if walk == self.walk => place,
            _ => {
                let place = self.next.fetch_add(1, Ordering::Relaxed);
                cell.set((self.walk, place));
                place
            }
        });
        let slot = &self.slots[place % self.slots.len()];
        run(&mut slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All values.
    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

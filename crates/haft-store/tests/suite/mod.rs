//! One suite for every store. `port` holds for all; `durable` for those that outlive the process.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub mod durable;
pub mod late;
pub mod make;
pub mod port;
pub mod tasks;

use haft_store::{DurableStore, Options};

/// A place where a durable store lives: it can be opened, and its process can die.
pub trait Home {
    /// Opens the store, as a process does that starts.
    fn open_with(&self, options: Options) -> DurableStore;

    /// The store's process dies: nothing is closed, and others can tell.
    fn crash(&self, store: DurableStore);

    /// Opens it as usual.
    fn open(&self) -> DurableStore {
        self.open_with(Options::default())
    }

    /// Opens it so that everything is waited for.
    fn open_full(&self) -> DurableStore {
        self.open_with(Options { durability: haft_store::Durability::Full, ..Options::default() })
    }
}

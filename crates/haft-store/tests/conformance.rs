//! The suite for stores, on those that need nothing from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test says what it expects, and fails where that is not so"
)]

mod suite;

use haft_store::{DurableStore, MemoryStore, Options};
use suite::{Home, durable, port};

#[tokio::test]
async fn memory_keeps_the_port() {
    port::run(&MemoryStore::new()).await;
}

#[tokio::test]
async fn memory_keeps_approvals() {
    let store = MemoryStore::new();
    durable::approvals(&store, &store.clone()).await;
}

/// A state folder.
struct Folder(tempfile::TempDir);

impl Home for Folder {
    fn open_with(&self, options: Options) -> DurableStore {
        DurableStore::open_sqlite(self.0.path(), options).expect("it opens")
    }

    fn crash(&self, store: DurableStore) {
        let lock = self.0.path().join("instances").join(format!("{}.lock", store.instance()));
        // The process goes on, so that its lock would hold: without its file it counts as gone.
        std::fs::remove_file(lock).expect("a living process has its file");
        std::mem::forget(store);
    }
}

#[tokio::test]
async fn sqlite_keeps_the_port() {
    let folder = Folder(tempfile::tempdir().unwrap());
    port::run(&folder.open()).await;
}

#[tokio::test]
async fn sqlite_keeps_the_port_when_everything_is_waited_for() {
    let folder = Folder(tempfile::tempdir().unwrap());
    port::run(&folder.open_full()).await;
}

#[tokio::test]
async fn sqlite_outlives_the_process() {
    durable::run(&Folder(tempfile::tempdir().unwrap())).await;
}

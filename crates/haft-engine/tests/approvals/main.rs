//! Approvals as every face uses them, over each store: in memory, and in SQLite as two processes share it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod crash;
mod waiting;

use common::{call_with, tool, within};
use haft_core::{
    ApprovalId, ApprovalMode, ApprovalRequest, ExecutionId, ToolCall,
    port::{AcceptAnswers, ApprovalState, Approver, Store, StoredApproval},
};
use haft_engine::{Approvals, Engine, GrantTime, Remember, Reply, WhichOffer};
use haft_guard::{Covers, KnownSecrets, ListPolicy, PermissionStrings};
use haft_store::{DurableStore, MemoryStore, Options};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

/// Where approvals are kept, as the process that asks has it and as one that answers has it.
struct Place {
    name: &'static str,
    asks: Arc<dyn Store>,
    answers: Arc<dyn Store>,
    _folder: Option<tempfile::TempDir>,
}

fn sqlite(folder: &Path) -> DurableStore {
    DurableStore::open_sqlite(folder, Options::default()).unwrap()
}

fn places() -> Vec<Place> {
    let memory = MemoryStore::new();
    let folder = tempfile::tempdir().unwrap();
    vec![
        Place { name: "memory", asks: Arc::new(memory.clone()), answers: Arc::new(memory), _folder: None },
        Place {
            name: "sqlite",
            asks: Arc::new(sqlite(folder.path())),
            answers: Arc::new(sqlite(folder.path())),
            _folder: Some(folder),
        },
    ]
}

impl Place {
    /// As a process without an engine has them.
    fn approvals(&self) -> Approvals {
        Approvals::over(self.answers.for_tenant("local"), AcceptAnswers::default())
    }

    async fn ask(&self, request: &ApprovalRequest) -> ApprovalId {
        self.asks.for_tenant("local").ask(request.clone(), Vec::new()).await.unwrap()
    }

    async fn state(&self, id: &ApprovalId) -> ApprovalState {
        self.approvals().get(id).await.unwrap().state
    }

    /// An engine whose tool `write` always asks, and notes what it ran with.
    fn engine(&self, approver: Arc<dyn Approver>) -> (Engine, Arc<Mutex<Vec<String>>>) {
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&ran);
        let write = tool("write", move |args, _| {
            seen.lock().unwrap().push(args.original.as_str().to_owned());
            async { Ok("done") }
        });
        let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
        let engine = Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::clone(&self.asks))
            .approver(approver)
            .redactor(Arc::new(KnownSecrets::new([("TOKEN", "hunter2hunter2".to_owned())])))
            .tool(write.effects().asks())
            .build()
            .unwrap();
        (engine, ran)
    }
}

fn covers() -> Covers {
    Covers::Host { tool: "fetch".into(), host: "example.com".into(), fixed: Default::default() }
}

fn request(id: &str) -> ApprovalRequest {
    let request = json!({
        "id": id, "executionId": ExecutionId::at(Timestamp::UNIX_EPOCH), "callId": "c", "tool": "fetch",
        "summary": "fetch a page", "reason": "it always asks", "risk": "high", "arguments": {"path": "a"},
        "fingerprint": id, "asker": {"tenant": "local", "agent": "helper"},
    });
    let request: ApprovalRequest = serde_json::from_value(request).unwrap();
    ApprovalRequest { offers: vec![covers().offer().unwrap()], ..request }
}

fn deny(reason: &str) -> Reply {
    Reply::Deny { reason: Some(reason.to_owned()) }
}

fn edit(arguments: Value) -> Reply {
    Reply::Edit { arguments: arguments.into() }
}

fn remember(kind: &str, lasts: GrantTime) -> Reply {
    Reply::Approve { remember: Some(Remember { offer: WhichOffer::Kind(kind.to_owned()), lasts }) }
}

fn ids(approvals: &[StoredApproval]) -> Vec<&str> {
    approvals.iter().map(|approval| approval.request.id.as_str()).collect()
}

fn write(text: &str) -> ToolCall {
    call_with("write", json!({"text": text}))
}

/// The first open approval, however long it takes to be asked for.
async fn first_open(approvals: &Approvals) -> StoredApproval {
    within("an approval", approvals.subscribe().next()).await.unwrap()
}

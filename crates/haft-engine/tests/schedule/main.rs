//! Many calls at once: strategies, lanes, and all admission controls of a start.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod around;
mod batches;
mod cache;
mod checklist;
mod deadline;
mod footprints;
mod git;
mod lanes;
mod tries;

use common::{House, Scripted, TestStore, tool};
use haft_core::{ApprovalMode, BatchOptions, CallContext, Event, Strategy, Tier, ToolCall};
use haft_engine::{BatchRequest, Engine, EngineBuilder, Settings};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{Args, ToolCtx};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

/// An engine that lets everything run, with that around a start.
pub(crate) fn with_around(
    tools: impl IntoIterator<Item = Scripted>,
    around: impl FnOnce(EngineBuilder) -> EngineBuilder,
) -> House {
    let store = TestStore::default();
    let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
    let builder = Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::new(store.clone()));
    let builder = around(builder.settings(Settings { observable_after_end: 20_000, ..Settings::default() }));
    let engine = tools.into_iter().fold(builder, |builder, tool| builder.tool(tool)).build();
    House { engine: engine.expect("the tools of a test are valid"), store }
}

/// A batch in that manner.
pub(crate) fn batch(calls: Vec<ToolCall>, strategy: Strategy, max_parallelism: usize) -> BatchRequest {
    BatchRequest::from(calls).options(BatchOptions { strategy, max_parallelism, ..BatchOptions::default() })
}

/// Somebody of that tenant, with everything permitted.
pub(crate) fn caller(tenant: &str, agent: &str, tier: Tier) -> CallContext {
    CallContext { permissions: vec!["*".to_owned()], tier, ..CallContext::new(tenant, agent) }
}

/// Writes down which tools begin and end, in the order in which they do.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<(String, bool)>>>);

impl Diary {
    fn begin(&self, what: &str) {
        self.0.lock().unwrap().push((what.to_owned(), true));
    }

    fn end(&self, what: &str) {
        self.0.lock().unwrap().push((what.to_owned(), false));
    }

    /// `+` for a beginning, `-` for an end.
    pub(crate) fn text(&self) -> String {
        let entries = self.0.lock().unwrap();
        entries.iter().map(|(what, begins)| format!("{}{what} ", if *begins { '+' } else { '-' })).collect()
    }

    /// The most that ran at once.
    pub(crate) fn most_at_once(&self) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for (_, begins) in self.0.lock().unwrap().iter() {
            now = if *begins { now + 1 } else { now - 1 };
            most = most.max(now);
        }
        most
    }

    /// A tool that takes so long, by the argument `ms`, and writes its argument `n`.
    pub(crate) fn tool(&self, name: &str) -> Scripted {
        let diary = self.clone();
        tool(name, move |args: Args, _: ToolCtx| {
            let diary = diary.clone();
            async move {
                let n = args.value.get("n").map(ToString::to_string).unwrap_or_default();
                diary.begin(&n);
                tokio::time::sleep(MS(args.value.get("ms").and_then(|ms| ms.as_u64()).unwrap_or(10))).await;
                diary.end(&n);
                Ok(n)
            }
        })
    }
}

/// The kinds of events, but for progress and output.
pub(crate) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().filter(|event| !event.payload.is_droppable()).map(|event| event.payload.kind()).collect()
}

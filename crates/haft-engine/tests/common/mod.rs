//! What the tests of the engine share: an engine with everything around it, and short words for what they do.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this")]

mod people;
mod store;
mod tools;

pub(crate) use people::{Answers, Door};
pub(crate) use store::{Op, TestStore};
pub(crate) use tools::{Alive, Count, Scripted, quiet, tool};

use haft_core::{
    ApprovalMode, CallOptions, Event, ExecutionId, OutputHandle, Retry, ToolCall, ToolResult,
    port::{Approver, AuditRecord, Authoriser, NobodyToAsk, OutputRange, Policy, Redactor, Store},
};
use haft_engine::{Engine, EngineBuilder, Request, Settings, Target};
use haft_guard::{ListPolicy, PermissionStrings};
use serde_json::{Value, json};
use std::{future::Future, pin::Pin, sync::Arc, task::Poll, time::Duration};

/// What an engine is put together from. The default lets everything run that is not denied.
pub(crate) struct Setup {
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) authoriser: Arc<dyn Authoriser>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) redactor: Option<Arc<dyn Redactor>>,
    pub(crate) settings: Settings,
    pub(crate) store: TestStore,
    /// The admission controls of a start.
    pub(crate) around: fn(EngineBuilder) -> EngineBuilder,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            policy: Arc::new(ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() }),
            authoriser: Arc::new(PermissionStrings),
            approver: Arc::new(NobodyToAsk),
            redactor: None,
            settings: Settings::default(),
            store: TestStore::default(),
            around: |builder| builder,
        }
    }
}

impl Setup {
    pub(crate) fn build(self, tools: impl IntoIterator<Item = Scripted>) -> House {
        let mut builder = Engine::builder(self.policy, self.authoriser, Arc::new(self.store.clone()))
            .settings(self.settings)
            .approver(self.approver);
        if let Some(redactor) = self.redactor {
            builder = builder.redactor(redactor);
        }
        for tool in tools {
            builder = builder.tool(tool);
        }
        builder = (self.around)(builder);
        House { engine: builder.build().expect("the tools of a test are valid"), store: self.store }
    }
}

/// An engine that runs everything, with those tools.
pub(crate) fn house(tools: impl IntoIterator<Item = Scripted>) -> House {
    Setup::default().build(tools)
}

/// An engine, with the store behind it.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) store: TestStore,
}

impl House {
    /// The owner's audit records, oldest first.
    pub(crate) async fn audit(&self) -> Vec<AuditRecord> {
        let mut records =
            self.store.for_tenant("local").audit(usize::MAX).await.expect("memory is always there");
        records.reverse();
        records
    }

    /// The audit records of one call.
    pub(crate) async fn audit_of(&self, id: ExecutionId) -> Vec<AuditRecord> {
        let mut records = self.audit().await;
        records.retain(|record| record.metadata.execution_id == id);
        records
    }

    /// All events of a call or batch, from the first to the end of its log.
    pub(crate) async fn events(&self, target: impl Into<Target>) -> Vec<Event> {
        let target = target.into();
        let mut observer =
            self.engine.observe(target).unwrap_or_else(|| panic!("nothing to observe: {target:?}"));
        within("the end of the events", async move {
            let mut events = Vec::new();
            while let Some(event) = observer.next().await {
                events.push(event);
            }
            events
        })
        .await
    }

    /// The kinds of those events, but for progress and output.
    pub(crate) async fn kinds(&self, target: impl Into<Target>) -> Vec<&'static str> {
        let events = self.events(target).await;
        events
            .iter()
            .filter(|event| !event.payload.is_droppable())
            .map(|event| event.payload.kind())
            .collect()
    }

    /// Waits until no call is without a result.
    pub(crate) async fn idle(&self) {
        until("no call runs any more", || self.engine.running() == 0).await;
    }

    /// The whole of a stored output, as one tenant sees it.
    pub(crate) async fn stored(&self, tenant: &str, handle: &OutputHandle) -> Option<Vec<u8>> {
        let all = OutputRange { offset: 0, length: u64::MAX };
        let tenant = self.engine.store().for_tenant(tenant);
        tenant.output(handle, all).await.expect("memory is always there").map(|(bytes, _)| bytes)
    }

    /// That one call ended once: one result is known to the caller; here one terminal event, which is the last, one
    /// audit record, and nothing that still runs.
    pub(crate) async fn ended_once(&self, id: ExecutionId) {
        let events = self.events(id).await;
        let terminal = events.iter().filter(|event| event.payload.is_terminal()).count();
        assert_eq!(terminal, 1, "terminal events of {id}: {events:?}");
        assert!(
            events.last().is_some_and(|event| event.payload.is_terminal()),
            "the end is last: {events:?}"
        );
        assert_eq!(self.audit_of(id).await.len(), 1, "audit records of {id}");
        assert!(!self.engine.is_executing(id), "{id} still executes");
    }
}

/// A call without arguments.
pub(crate) fn call(name: &str) -> ToolCall {
    ToolCall::new(name, json!({}))
}

/// A call with those arguments.
pub(crate) fn call_with(name: &str, arguments: Value) -> ToolCall {
    ToolCall::new(name, arguments)
}

/// The same call in another way.
pub(crate) fn with(call: ToolCall, options: CallOptions) -> Request {
    Request::new(call).options(options)
}

/// Options with an id that the test knows before the call has ended.
pub(crate) fn known_id() -> (ExecutionId, CallOptions) {
    let id = ExecutionId::at(jiff::Timestamp::now());
    (id, CallOptions { execution_id: Some(id), ..CallOptions::default() })
}

/// Options with that deadline, and no second try after it.
pub(crate) fn timeout(duration: Duration) -> CallOptions {
    CallOptions { timeout: Some(duration), retry: Some(no_retry()), ..CallOptions::default() }
}

/// One try, whatever comes of it.
pub(crate) fn no_retry() -> Retry {
    Retry { max_retries: 0, ..Retry::default() }
}

/// The code of a result on the wire; `OK` for a success.
pub(crate) fn code(result: &ToolResult) -> &'static str {
    result.error_code().map_or("OK", |code| code.as_str())
}

/// The codes of results, in order.
pub(crate) fn codes(results: &[ToolResult]) -> Vec<&'static str> {
    results.iter().map(code).collect()
}

/// The message of a result that is an error.
pub(crate) fn message(result: &ToolResult) -> &str {
    result.error.as_ref().map_or("", |error| &error.message)
}

/// What comes of it, unless it takes so long that it will never come. Real time, also where tokio's is paused.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let (gone, overdue) = tokio::sync::oneshot::channel::<()>();
    let (done, cancelled) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if cancelled.recv_timeout(Duration::from_secs(20)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            let _ = gone.send(());
        }
    });
    let result = tokio::select! {
        biased;
        result = future => result,
        Ok(()) = overdue => panic!("waited in vain for {what}"),
    };
    drop(done);
    result
}

/// Polls once what cannot be done by then.
pub(crate) async fn poll_once<F: Future>(future: &mut Pin<Box<F>>) {
    let is_pending = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    assert!(is_pending, "it came to an end at once");
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

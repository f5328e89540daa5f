//! The journal, as change sets see it: how far each call came is taken down before it goes further.

use super::record::Record;
use haft_core::{
    ErrorCode, ExecutionId, ToolError,
    port::{ChangesStep, JournalStep, Store, StoreError},
};
use jiff::Timestamp;
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread,
    time::{Duration, Instant},
};

/// How long a step is waited for on a thread that nothing else waits on.
const WAITS: Duration = Duration::from_secs(30);

/// Takes down how far calls came with their change sets.
#[derive(Clone)]
pub(crate) struct Journal(pub(crate) Arc<dyn Store>);

impl Journal {
    fn step(
        &self,
        id: ExecutionId,
        tenant: &str,
        step: ChangesStep,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let step =
            JournalStep::Changes { execution_id: id, tenant: tenant.into(), step, at: Timestamp::now() };
        self.0.journal(step)
    }

    /// Takes a step down, and waits until it is as safe as that step has to be.
    pub(super) async fn tell(
        &self,
        id: ExecutionId,
        tenant: &str,
        step: ChangesStep,
    ) -> Result<(), ToolError> {
        self.step(id, tenant, step).await.map_err(unwritten)
    }

    /// The same, on a thread that may wait.
    pub(super) fn tell_now(&self, record: &Record, step: ChangesStep) -> Result<(), ToolError> {
        let told = wait(self.step(record.execution_id, &record.tenant, step));
        told.unwrap_or_else(|| Err(StoreError("it took too long".to_owned()))).map_err(unwritten)
    }
}

fn unwritten(error: StoreError) -> ToolError {
    let text = "What becomes of the changes cannot be recorded, so nothing of them was applied";
    ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error)
}

/// Waits for a future on this thread, for a bounded time: it may need a runtime that this thread is in the way of.
fn wait<T>(future: impl Future<Output = T>) -> Option<T> {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let (mut future, end) = (pin!(future), Instant::now() + WAITS);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        let left = end.checked_duration_since(Instant::now())?;
        thread::park_timeout(left);
    }
}

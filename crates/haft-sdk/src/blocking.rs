//! Code that blocks, waited for without blocking.

use crate::CallHost;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tokio::sync::oneshot;

/// Runs code where the host runs such code. If the code panics, the waiting task panics in its place.
pub(crate) async fn run<T: Send + 'static>(
    host: &dyn CallHost,
    code: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, waiting) = oneshot::channel();
    host.run_blocking(Box::new(move || {
        // Nobody waits any more: the call was ended.
        let _ = done.send(catch_unwind(AssertUnwindSafe(code)));
    }));
    match waiting.await {
        Ok(Ok(value)) => value,
        Ok(Err(panic)) => resume_unwind(panic),
        // The host dropped the job, as one does that shuts down.
        Err(_) => std::future::pending().await,
    }
}

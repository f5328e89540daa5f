//! Asking by a function.

use haft_core::{
    ApprovalRequest, Decision,
    port::{Approver, BoxFuture, GuardError},
};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// Asks by calling a function. See [`ask_with`].
#[derive(Clone, Copy, Debug)]
pub struct AskWith<F>(F);

/// An approver that calls a function with all questions of a call or a batch, and takes its decisions in the same
/// order. A missing decision leaves its question open; if the function panics, nothing is approved.
///
/// The function must not wait: for a person, or for anything else that takes time, there is [`ask_with_async`].
///
/// ```
/// use haft::{ApprovalRequest, Decision, prelude::*};
/// # /// Nothing.
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Nothing {}
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let deploy = tool_fn("deploy", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("deployed"));
/// let only_deploy = |request: &ApprovalRequest| match &*request.tool {
///     "deploy" => Decision::Approve,
///     other => Decision::Deny { reason: Some(format!("{other} is not for today")) },
/// };
/// let haft = Haft::builder()
///     .tool(deploy)
///     .approver(haft::ask_with(move |requests| requests.iter().map(only_deploy).collect()))
///     .build()?;
/// assert_eq!(haft.execute(ToolCall::new("deploy", json!({}))).await.text(), "deployed");
/// # Ok::<(), haft::Error>(())
/// # }).unwrap();
/// ```
pub fn ask_with<F>(ask: F) -> AskWith<F>
where
    F: Fn(&[ApprovalRequest]) -> Vec<Decision> + Send + Sync,
{
    AskWith(ask)
}

impl<F> Approver for AskWith<F>
where
    F: Fn(&[ApprovalRequest]) -> Vec<Decision> + Send + Sync,
{
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            // What the function may leave half-done is its own affair; nothing of ours is.
            catch_unwind(AssertUnwindSafe(|| (self.0)(requests))).map_err(|_| panicked())
        })
    }
}

/// Asks by calling an async function. See [`ask_with_async`].
#[derive(Clone, Copy, Debug)]
pub struct AskWithAsync<F>(F);

/// The same as [`ask_with`], with a function that may wait: for a person, a chat, another service. When the call is
/// cancelled meanwhile, its future is dropped.
///
/// ```
/// use haft::{Decision, ask_with_async};
/// let _nobody = ask_with_async(|requests| async move { vec![Decision::Unanswered; requests.len()] });
/// ```
pub fn ask_with_async<F, Fut>(ask: F) -> AskWithAsync<F>
where
    F: Fn(Vec<ApprovalRequest>) -> Fut + Send + Sync,
    Fut: Future<Output = Vec<Decision>> + Send,
{
    AskWithAsync(ask)
}

impl<F, Fut> Approver for AskWithAsync<F>
where
    F: Fn(Vec<ApprovalRequest>) -> Fut + Send + Sync,
    Fut: Future<Output = Vec<Decision>> + Send,
{
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            let asking =
                catch_unwind(AssertUnwindSafe(|| (self.0)(requests.to_vec()))).map_err(|_| panicked())?;
            let mut asking = pin!(asking);
            // After a panic the future is dropped and never polled again.
            std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| asking.as_mut().poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(decisions)) => Poll::Ready(Ok(decisions)),
                Err(_) => Poll::Ready(Err(panicked())),
            })
            .await
        })
    }
}

fn panicked() -> GuardError {
    GuardError("the function that approves calls panicked".to_owned())
}

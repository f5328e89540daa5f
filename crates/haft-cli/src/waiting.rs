//! Waiting for an answer from elsewhere, where nobody can be asked here.

use super::console::Console;
use haft::{
    ApprovalRequest, Decision,
    port::{Approver, BoxFuture, GuardError},
};
use haft_core::text::one_line;
use std::time::Duration;

/// Says which questions there are, and waits. The engine looks for answers meanwhile.
pub(super) struct Elsewhere {
    pub(super) wait: Duration,
    pub(super) console: Console,
}

impl Approver for Elsewhere {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            for request in requests {
                self.console.say(format!(
                    "waiting for an answer: `haft approvals approve {}` ({}: {})",
                    request.id,
                    request.tool,
                    one_line(&request.summary, 200)
                ));
            }
            tokio::time::sleep(self.wait).await;
            Ok(vec![Decision::Unanswered; requests.len()])
        })
    }
}

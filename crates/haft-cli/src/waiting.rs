//! Waiting for an answer from elsewhere, where nobody can be asked here.

use super::{console::Console, watchers};
use haft::{
    ApprovalRequest, Decision,
    port::{Approver, BoxFuture, GuardError},
};
use haft_core::text::one_line;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

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

/// How often it is looked whether somebody is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Waits while somebody answers elsewhere, for so long at the most; where nobody does, not at all. The engine looks for
/// answers meanwhile.
pub(super) struct WhileWatched {
    pub(super) state: PathBuf,
    pub(super) wait: Duration,
}

impl Approver for WhileWatched {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            let begun = Instant::now();
            let tenant = requests.first().map(|request| &*request.asker.tenant).unwrap_or_default();
            while begun.elapsed() < self.wait && watchers::is_anybody_there(&self.state, tenant) {
                tokio::time::sleep(LOOK.min(self.wait)).await;
            }
            Ok(vec![Decision::Unanswered; requests.len()])
        })
    }
}

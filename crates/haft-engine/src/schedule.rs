//! Schedule: calls start in call order and answer in call order. It does not know what a tool does.

use crate::{approve::Decided, frame::Batch};
use haft_core::{ErrorCode, ToolError, ToolResult};
use std::future::Future;

/// What happens to a call when its turn comes.
pub(crate) enum Turn {
    /// It goes on.
    Take(Decided),
    /// It does not start any more.
    Skip(Decided, ToolError),
}

/// One call after the other. After a stop, nothing new starts, and what did not start says why.
pub(crate) async fn schedule<F: Future<Output = ToolResult>>(
    batch: Option<&Batch>,
    continue_on_failure: bool,
    decided: Vec<Decided>,
    mut take: impl FnMut(Turn) -> F,
) -> Vec<ToolResult> {
    let mut results: Vec<ToolResult> = Vec::with_capacity(decided.len());
    let mut stopped_by = None;
    for decided in decided {
        let turn = match (batch.and_then(|batch| batch.cancel.reason()), stopped_by) {
            (Some(reason), _) => {
                let note = batch.and_then(|batch| batch.cancel.note());
                Turn::Skip(decided, crate::run::cancelled_with(note, reason))
            }
            (None, Some(place)) => Turn::Skip(decided, not_started(place)),
            (None, None) => Turn::Take(decided),
        };
        let result = take(turn).await;
        if !continue_on_failure && !result.is_success() && stopped_by.is_none() {
            stopped_by = Some(results.len());
        }
        results.push(result);
    }
    results
}

fn not_started(failed: usize) -> ToolError {
    let text = format!("Not started, because call {} of this batch did not succeed", failed + 1);
    ToolError::new(ErrorCode::NotStarted, text)
}

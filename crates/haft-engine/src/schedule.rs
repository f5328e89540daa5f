//! Schedule: calls start in call order and answer in call order. It does not know what a tool does.

use crate::{approve::Decided, frame::Batch};
use haft_core::{ErrorCode, ToolError, ToolResult};
use std::future::Future;

/// A call whose turn has come; with the reason, if it does not start any more.
pub(crate) struct Turn {
    pub(crate) decided: Decided,
    pub(crate) skipped: Option<ToolError>,
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
        let cancelled = batch.and_then(|batch| Some((batch.cancel.note(), batch.cancel.reason()?)));
        let skipped = match (cancelled, stopped_by) {
            (Some((note, reason)), _) => Some(crate::run::cancelled_with(note, reason)),
            (None, Some(place)) => Some(not_started(place)),
            (None, None) => None,
        };
        let result = take(Turn { decided, skipped }).await;
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

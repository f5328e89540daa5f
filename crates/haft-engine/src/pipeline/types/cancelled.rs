//! The error of a call that somebody cancelled.

use super::call::CallState;
use haft_core::{ErrorCode, ToolError, text};
use haft_sdk::{Cancel, CancelReason};

/// The error of a call that was cancelled.
pub(crate) fn cancelled(cancel: &Cancel, reason: CancelReason) -> ToolError {
    cancelled_with(cancel.note(), reason)
}

/// What `code` comes to, unless the call is cancelled first.
pub(crate) async fn unless_cancelled<T>(
    call: &CallState,
    code: impl Future<Output = T>,
) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        done = code => Ok(done),
        reason = call.cancel.cancelled() => Err(cancelled(&call.cancel, reason)),
    }
}

/// The error of a call that is not started, because haft ends.
pub(crate) fn shutting_down() -> ToolError {
    ErrorCode::ShuttingDown.into()
}

pub(crate) fn cancelled_with(note: Option<&str>, reason: CancelReason) -> ToolError {
    let text = match note {
        Some(note) => format!("{}: {}", reason.model_text(), text::one_line(note, 200)),
        None => reason.model_text().to_owned(),
    };
    ToolError::new(ErrorCode::Cancelled, text)
}

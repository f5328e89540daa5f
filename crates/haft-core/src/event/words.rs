//! What each event says in words, for logs and people who read a stream.

use super::{EventPayload, OutputStream};
use std::{borrow::Cow, time::Duration};

impl EventPayload {
    /// What happened, in words. Every event has some; they are made when somebody reads the event.
    ///
    /// ```
    /// use haft_core::EventPayload;
    /// assert_eq!(EventPayload::Running.message(), "Executing tool");
    /// assert_eq!(EventPayload::Gap { from: 3, to: 9 }.message(), "7 events were lost");
    /// ```
    pub fn message(&self) -> Cow<'_, str> {
        match self {
            EventPayload::Started { .. } => "Execution started".into(),
            EventPayload::Running => "Executing tool".into(),
            EventPayload::InProgress { message: Some(message), .. } | EventPayload::Warning { message } => {
                message.into()
            }
            EventPayload::InProgress { percent: Some(percent), .. } => format!("{percent}% done").into(),
            EventPayload::InProgress { percent: None, message: None } => "In progress".into(),
            EventPayload::Output { stream: OutputStream::Stdout, .. } => "Output".into(),
            EventPayload::Output { stream: OutputStream::Stderr, .. } => "Output on stderr".into(),
            EventPayload::ConfirmationRequested { summary, .. } if summary.is_empty() => {
                "Confirmation required".into()
            }
            EventPayload::ConfirmationRequested { summary, .. } => {
                format!("Confirmation required: {summary}").into()
            }
            EventPayload::ConfirmationReceived { approved: true, .. } => "Confirmation received".into(),
            EventPayload::ConfirmationReceived { approved: false, .. } => "Confirmation denied".into(),
            EventPayload::Completed { .. } => "Execution completed".into(),
            EventPayload::Failed { code, message, .. } | EventPayload::Cancelled { code, message } => {
                if message.is_empty() {
                    code.model_text().into()
                } else {
                    message.into()
                }
            }
            EventPayload::Timeout { timeout } => {
                format!("Execution timed out after {}", seconds(timeout)).into()
            }
            EventPayload::BatchStarted { count, is_parallel } => {
                let how = if *is_parallel { "in parallel" } else { "one after the other" };
                format!("Batch of {} started, {how}", counted(*count, "call")).into()
            }
            EventPayload::BatchCompleted { succeeded, failed, .. } => {
                format!("Batch completed: {succeeded} succeeded, {failed} failed").into()
            }
            EventPayload::ParallelStarted { read_only, mutating } => {
                format!("Parallel execution started: {read_only} read-only, {mutating} mutating").into()
            }
            EventPayload::ParallelCompleted { succeeded, failed, .. } => {
                format!("Parallel execution completed: {succeeded} succeeded, {failed} failed").into()
            }
            EventPayload::Queued { lane, ahead } => {
                format!("Waiting for a slot ({lane}), {ahead} ahead").into()
            }
            EventPayload::CacheHit { shared: false, .. } => "Answered from the cache".into(),
            EventPayload::CacheHit { shared: true, .. } => {
                "Answered by the same call, which was running".into()
            }
            EventPayload::RetryAttempt { attempt, most, failed: None, .. } => {
                format!("Attempt {attempt} of {most}").into()
            }
            EventPayload::RetryAttempt { attempt, most, delay, failed: Some((_, error)) } => {
                format!("Attempt {attempt} of {most} in {}, after: {error}", seconds(delay)).into()
            }
            EventPayload::RetrySucceeded { attempts } => format!("Succeeded in attempt {attempts}").into(),
            EventPayload::RetryExhausted { attempts, message, .. } => {
                format!("Failed after {}: {message}", counted(*attempts as usize, "attempt")).into()
            }
            EventPayload::CircuitChanged { state, failures, calls } => {
                let state = state.replace('_', " ");
                format!("Circuit breaker {state}: {failures} of {} failed", counted(*calls as usize, "call"))
                    .into()
            }
            EventPayload::Missed => "Events were missed, because they are not kept any more".into(),
            EventPayload::Gap { from, to } => {
                let lost = usize::try_from(to.saturating_sub(*from).saturating_add(1)).unwrap_or(usize::MAX);
                let verb = if lost == 1 { "was" } else { "were" };
                format!("{} {verb} lost", counted(lost, "event")).into()
            }
        }
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// As the sources write it: `30.0s`.
fn seconds(time: &Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

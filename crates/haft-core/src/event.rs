//! What observers see while a call passes through the stages.

mod words;

use crate::{ApprovalId, Arguments, BatchId, ErrorCode, ExecutionId, Status};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Which stream of a tool a piece of output belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// What it is meant to put out.
    #[default]
    Stdout,
    /// What it says about that.
    Stderr,
}

/// What happened, with its facts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventPayload {
    /// The call came in and was checked. First event of every call, also of one that is refused.
    Started {
        /// The arguments as they were sent, redacted.
        arguments: Arguments,
        /// The deadline; the general one where the call was refused before a tool was known.
        timeout: Duration,
    },
    /// The tool starts: every check was passed, and every person who had to be asked has agreed. An `InProgress` on the
    /// wire, and unlike reports of the tool never dropped.
    Running,
    /// The tool reports how far it is.
    InProgress {
        /// 0 to 100, where known.
        percent: Option<u8>,
        /// In words.
        message: Option<String>,
    },
    /// A piece of output, safe to show to a model. Bytes `offset..` of the spool.
    Output {
        /// The stream.
        stream: OutputStream,
        /// Where it begins in the spool.
        offset: u64,
        /// The text.
        chunk: String,
    },
    /// Something is worth knowing, and the call goes on.
    Warning {
        /// What is worth knowing.
        message: String,
    },
    /// A person is asked.
    ConfirmationRequested {
        /// By which it is answered.
        approval_id: ApprovalId,
        /// What is asked.
        summary: String,
    },
    /// A person has answered.
    ConfirmationReceived {
        /// The question.
        approval_id: ApprovalId,
        /// Yes or no.
        approved: bool,
    },
    /// The end: it succeeded.
    Completed {
        /// How long it took.
        duration: Duration,
    },
    /// The end: it did not succeed, in a way that has no event of its own.
    Failed {
        /// How it ended.
        status: Status,
        /// Why the call ended so.
        code: ErrorCode,
        /// In words.
        message: String,
        /// How long it took.
        duration: Duration,
    },
    /// The end: the deadline passed.
    Timeout {
        /// The deadline.
        timeout: Duration,
    },
    /// The end: somebody ended it, or it never started because of that.
    Cancelled {
        /// Why the call was cancelled.
        code: ErrorCode,
        /// In words.
        message: String,
    },
    /// A batch was planned and begins.
    BatchStarted {
        /// How many calls the batch has.
        count: usize,
        /// Whether calls may overlap.
        is_parallel: bool,
    },
    /// The end of a batch.
    BatchCompleted {
        /// How many calls the batch had.
        count: usize,
        /// Those that succeeded.
        succeeded: usize,
        /// Those that did not.
        failed: usize,
        /// How long it took.
        duration: Duration,
    },
    /// Calls of a batch begin that may overlap.
    ParallelStarted {
        /// Those that change nothing.
        read_only: usize,
        /// Those that may.
        mutating: usize,
    },
    /// They have all ended.
    ParallelCompleted {
        /// All of them.
        total: usize,
        /// Those that succeeded.
        succeeded: usize,
        /// Those that did not.
        failed: usize,
        /// Those that ran while another one of the batch ran.
        overlapped: usize,
        /// How long it took.
        duration: Duration,
    },
    /// All slots are taken: the call waits for one.
    Queued {
        /// Whose slots: `agent`, `tenant` or `global`.
        lane: &'static str,
        /// Calls of the same tenant that wait already.
        ahead: usize,
    },
    /// A result that was there already answers the call.
    CacheHit {
        /// How old it is; zero where the same call was just running.
        age: Duration,
        /// Whether it is that of a call that was running, rather than a stored one.
        shared: bool,
    },
    /// An attempt follows: after one that failed, or, where the call asks for retries itself, the first one.
    RetryAttempt {
        /// The attempt that follows, from 1.
        attempt: u32,
        /// The most attempts.
        most: u32,
        /// The wait before it.
        delay: Duration,
        /// Why the attempt before it failed, with the error's words.
        failed: Option<(ErrorCode, String)>,
    },
    /// An attempt after the first one succeeded.
    RetrySucceeded {
        /// How many it took.
        attempts: u32,
    },
    /// The last attempt failed, too.
    RetryExhausted {
        /// How many there were.
        attempts: u32,
        /// Why the last one failed.
        code: ErrorCode,
        /// In words.
        message: String,
    },
    /// The breaker of the tool, for this tenant, changed.
    CircuitChanged {
        /// `open`, `half_open` or `closed`.
        state: &'static str,
        /// Failures among the calls that it looked at.
        failures: u32,
        /// The calls that it looked at.
        calls: u32,
    },
    /// This observer was too slow: events `from..=to` are gone. The output is still in the spool.
    Gap {
        /// The first that is gone.
        from: u64,
        /// The last that is gone.
        to: u64,
    },
    /// A listener came back after events that are not kept any more: nobody knows how many it missed.
    Missed,
}

impl EventPayload {
    /// The name on the wire.
    ///
    /// ```
    /// use haft_core::EventPayload;
    /// assert_eq!(EventPayload::Warning { message: "slow disk".into() }.wire_name(), "tool:warning");
    /// ```
    pub const fn wire_name(&self) -> &'static str {
        match self {
            EventPayload::Started { .. } => "tool:executing",
            EventPayload::Running | EventPayload::InProgress { .. } => "tool:progress",
            EventPayload::Output { .. } => "tool:output",
            EventPayload::Warning { .. } => "tool:warning",
            EventPayload::ConfirmationRequested { .. } => "tool:confirmation-requested",
            EventPayload::ConfirmationReceived { .. } => "tool:confirmation-received",
            EventPayload::Completed { .. } => "tool:executed",
            EventPayload::Failed { .. } => "tool:error",
            EventPayload::Timeout { .. } => "tool:timeout",
            EventPayload::Cancelled { .. } => "tool:cancelled",
            EventPayload::BatchStarted { .. } => "tool:batch-start",
            EventPayload::BatchCompleted { .. } => "tool:batch-complete",
            EventPayload::ParallelStarted { .. } => "tool:parallel-start",
            EventPayload::ParallelCompleted { .. } => "tool:parallel-complete",
            EventPayload::Queued { .. } => "tool:queued",
            EventPayload::CacheHit { .. } => "tool:cache-hit",
            EventPayload::RetryAttempt { .. } => "tool:retry-attempt",
            EventPayload::RetrySucceeded { .. } => "tool:retry-success",
            EventPayload::RetryExhausted { .. } => "tool:retry-exhausted",
            EventPayload::CircuitChanged { .. } => "tool:circuit",
            EventPayload::Gap { .. } => "tool:gap",
            EventPayload::Missed => "tool:missed",
        }
    }

    /// The kind, by the names of the event types.
    pub const fn kind(&self) -> &'static str {
        match self {
            EventPayload::Started { .. } => "Started",
            EventPayload::Running | EventPayload::InProgress { .. } => "InProgress",
            EventPayload::Output { .. } => "Output",
            EventPayload::Warning { .. } => "Warning",
            EventPayload::ConfirmationRequested { .. } => "ConfirmationRequested",
            EventPayload::ConfirmationReceived { .. } => "ConfirmationReceived",
            EventPayload::Completed { .. } => "Completed",
            EventPayload::Failed { .. } => "Failed",
            EventPayload::Timeout { .. } => "Timeout",
            EventPayload::Cancelled { .. } => "Cancelled",
            EventPayload::BatchStarted { .. } => "BatchStarted",
            EventPayload::BatchCompleted { .. } => "BatchCompleted",
            EventPayload::ParallelStarted { .. } => "ParallelStarted",
            EventPayload::ParallelCompleted { .. } => "ParallelCompleted",
            EventPayload::Queued { .. } => "Queued",
            EventPayload::CacheHit { .. } => "CacheHit",
            EventPayload::RetryAttempt { .. } => "RetryAttempt",
            EventPayload::RetrySucceeded { .. } => "RetrySucceeded",
            EventPayload::RetryExhausted { .. } => "RetryExhausted",
            EventPayload::CircuitChanged { .. } => "CircuitChanged",
            EventPayload::Gap { .. } => "Gap",
            EventPayload::Missed => "Missed",
        }
    }

    /// Whether it is the last event of a call.
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            EventPayload::Completed { .. }
                | EventPayload::Failed { .. }
                | EventPayload::Timeout { .. }
                | EventPayload::Cancelled { .. }
        )
    }

    /// Whether it may be let go when an observer is slow. Changes of state never are.
    pub const fn is_droppable(&self) -> bool {
        matches!(self, EventPayload::InProgress { .. } | EventPayload::Output { .. })
    }

    fn data(&self) -> Value {
        use serde_json::json;
        let ms = |duration: &Duration| duration.as_micros() as f64 / 1000.0;
        match self {
            EventPayload::Started { .. }
            | EventPayload::Running
            | EventPayload::Missed
            | EventPayload::InProgress { .. }
            | EventPayload::Warning { .. } => Value::Null,
            EventPayload::Output { stream, offset, chunk } => {
                json!({"stream": stream, "offset": offset, "chunk": chunk})
            }
            EventPayload::ConfirmationRequested { approval_id, summary } => {
                json!({"approvalId": approval_id, "summary": summary})
            }
            EventPayload::ConfirmationReceived { approval_id, approved } => {
                json!({"approvalId": approval_id, "approved": approved})
            }
            EventPayload::Completed { duration } => json!({"duration": ms(duration), "success": true}),
            EventPayload::Failed { status, code, message, duration } => {
                json!({"status": status, "code": code, "error": message, "duration": ms(duration)})
            }
            EventPayload::Timeout { timeout } => json!({"timeout": ms(timeout)}),
            EventPayload::Cancelled { code, message } => json!({"code": code, "error": message}),
            EventPayload::BatchStarted { count, is_parallel } => {
                json!({"count": count, "isParallel": is_parallel})
            }
            EventPayload::BatchCompleted { count, succeeded, failed, duration } => json!({
                "count": count, "successCount": succeeded, "failureCount": failed, "duration": ms(duration)
            }),
            EventPayload::ParallelStarted { read_only, mutating } => {
                json!({"readOnly": read_only, "mutating": mutating})
            }
            EventPayload::ParallelCompleted { total, succeeded, failed, overlapped, duration } => json!({
                "total": total, "successCount": succeeded, "failureCount": failed, "overlapped": overlapped,
                "duration": ms(duration)
            }),
            EventPayload::Queued { lane, ahead } => json!({"lane": lane, "ahead": ahead}),
            EventPayload::CacheHit { age, shared } => json!({"age": ms(age), "shared": shared}),
            EventPayload::RetryAttempt { attempt, most, delay, failed: None } => {
                json!({"attempt": attempt, "maxRetries": most, "delay": ms(delay)})
            }
            EventPayload::RetryAttempt { attempt, most, delay, failed: Some((code, error)) } => json!({
                "attempt": attempt, "maxRetries": most, "delay": ms(delay), "code": code, "error": error
            }),
            EventPayload::RetrySucceeded { attempts } => json!({"attempts": attempts}),
            EventPayload::RetryExhausted { attempts, code, message } => {
                json!({"attempts": attempts, "code": code, "error": message})
            }
            EventPayload::CircuitChanged { state, failures, calls } => {
                json!({"state": state, "failures": failures, "calls": calls})
            }
            EventPayload::Gap { from, to } => json!({"from": from, "to": to}),
        }
    }
}

/// One event, as an observer gets it.
///
/// On the wire it has `event` (such as `tool:executed`), `type` (such as `Completed`), `executionId`, `tool`,
/// `seq`, `timestamp`, `elapsedMs`, `message`, and where they apply `batchId`, `batchIndex`, `progressPercent`, `data`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number in the log that it was read from, from 0 without holes.
    pub seq: u64,
    /// The execution that it belongs to; `None` for events of a whole batch.
    pub execution_id: Option<ExecutionId>,
    /// The batch.
    pub batch_id: Option<BatchId>,
    /// The place in the batch.
    pub batch_index: Option<u32>,
    /// The tool; empty for events of a whole batch.
    pub tool: Arc<str>,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Since the call came in.
    pub elapsed: Duration,
    /// What happened.
    pub payload: EventPayload,
}

/// Written as it is: not every text that somebody sent as arguments fits into a [`Value`].
#[derive(Serialize)]
struct StartedData<'a> {
    args: &'a Arguments,
    timeout: f64,
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("event", self.payload.wire_name())?;
        map.serialize_entry("type", self.payload.kind())?;
        map.serialize_entry("seq", &self.seq)?;
        if let Some(id) = &self.execution_id {
            map.serialize_entry("executionId", id)?;
        }
        if let Some(id) = &self.batch_id {
            map.serialize_entry("batchId", id)?;
        }
        if let Some(index) = &self.batch_index {
            map.serialize_entry("batchIndex", index)?;
        }
        if !self.tool.is_empty() {
            map.serialize_entry("tool", &self.tool)?;
        }
        map.serialize_entry("timestamp", &self.timestamp)?;
        map.serialize_entry("elapsedMs", &(self.elapsed.as_micros() as f64 / 1000.0))?;
        map.serialize_entry("message", &self.payload.message())?;
        match &self.payload {
            EventPayload::Running | EventPayload::Missed | EventPayload::Warning { .. } => {}
            EventPayload::InProgress { percent, .. } => {
                if let Some(percent) = percent {
                    map.serialize_entry("progressPercent", percent)?;
                }
            }
            EventPayload::Started { arguments, timeout } => {
                let timeout = timeout.as_micros() as f64 / 1000.0;
                map.serialize_entry("data", &StartedData { args: arguments, timeout })?;
            }
            other => map.serialize_entry("data", &other.data())?,
        }
        map.end()
    }
}

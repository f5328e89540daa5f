//! How a call ended.

use crate::{
    Arguments, BatchId, ContentPart, ErrorCode, ExecutionId, IsolationLevel, OutputHandle, Problem,
    SettledChanges, SideEffect, Status, text,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt::Write as _, sync::Arc, time::Duration};

/// The error of a call, as a model and a program may see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorInfo {
    /// The row of the error table.
    pub code: ErrorCode,
    /// The number in the E3000 range, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// What happened, in words that a model can act on.
    pub message: String,
    /// Whether the same call may succeed when sent again unchanged.
    pub retryable: bool,
    /// The single problems, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// Facts for programs, such as an approval id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Value>>,
}

/// What really held a call in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Enforcement {
    /// The level that was enforced.
    pub level: IsolationLevel,
    /// By which jail; `in_process` where there was none.
    pub jail: Cow<'static, str>,
    /// What was enforced, by name: filters, cgroup version, network, masks.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

impl Enforcement {
    /// Nothing but the process itself: code that is linked in.
    ///
    /// ```
    /// use haft_core::{Enforcement, IsolationLevel};
    /// assert_eq!(Enforcement::in_process().level, IsolationLevel::None);
    /// ```
    pub fn in_process() -> Self {
        Enforcement { level: IsolationLevel::None, jail: Cow::Borrowed("in_process"), details: Map::new() }
    }
}

/// Something that containment stopped or noticed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Such as `UnauthorizedNetworkAccess`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What was reached for.
    pub resource: String,
    /// In words.
    pub description: String,
    /// When it was noticed.
    pub timestamp: Timestamp,
    /// Whether it was stopped.
    pub was_blocked: bool,
}

impl Violation {
    /// Whether it is about something that programs may have here only restricted. A program does not notice it by
    /// itself, so results say it in their text.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.kind == "RestrictedResourceAccess"
    }
}

/// What a call used, as far as it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// The most memory at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// Time on a core, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ms: Option<f64>,
    /// Time on the wall, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<f64>,
    /// Bytes read from files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
    /// Bytes written to files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_written: Option<u64>,
    /// Operations on files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem_operations: Option<u64>,
    /// Requests to other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_requests: Option<u64>,
    /// Bytes from other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_bytes_received: Option<u64>,
    /// Bytes to other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_bytes_sent: Option<u64>,
}

impl Metrics {
    /// What both used: the larger peak, the sum of all else. What only one measured is that one's.
    ///
    /// ```
    /// use haft_core::Metrics;
    /// let one = Metrics { peak_memory_bytes: Some(5), bytes_read: Some(1), ..Metrics::default() };
    /// let other = Metrics { peak_memory_bytes: Some(7), bytes_read: Some(2), ..Metrics::default() };
    /// let both = one.and(&other);
    /// assert_eq!((both.peak_memory_bytes, both.bytes_read), (Some(7), Some(3)));
    /// ```
    #[must_use]
    pub fn and(&self, other: &Metrics) -> Metrics {
        fn both<T: Copy>(one: Option<T>, other: Option<T>, join: impl Fn(T, T) -> T) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(join(one, other)),
                (one, other) => one.or(other),
            }
        }
        let sum = |one: Option<u64>, other: Option<u64>| both(one, other, u64::saturating_add);
        Metrics {
            peak_memory_bytes: both(self.peak_memory_bytes, other.peak_memory_bytes, u64::max),
            cpu_time_ms: both(self.cpu_time_ms, other.cpu_time_ms, |one, other| one + other),
            wall_time_ms: both(self.wall_time_ms, other.wall_time_ms, |one, other| one + other),
            bytes_read: sum(self.bytes_read, other.bytes_read),
            bytes_written: sum(self.bytes_written, other.bytes_written),
            filesystem_operations: sum(self.filesystem_operations, other.filesystem_operations),
            network_requests: sum(self.network_requests, other.network_requests),
            network_bytes_received: sum(self.network_bytes_received, other.network_bytes_received),
            network_bytes_sent: sum(self.network_bytes_sent, other.network_bytes_sent),
        }
    }
}

/// An attempt at a call that failed and was followed by another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedTry {
    /// Why it failed.
    pub code: ErrorCode,
    /// What was waited before the next one.
    #[serde(rename = "delayMs", with = "millis")]
    #[schemars(with = "f64")]
    pub delay: Duration,
}

/// One attempt at a call that took several: how it ended, and what held it in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRecord {
    /// Which one, from 1.
    pub number: u32,
    /// Why it failed; absent where it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What held it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The sandbox that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<Metrics>>,
}

/// Where a result came from that no run of this call made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FromCache {
    /// The call whose run made it.
    pub execution_id: ExecutionId,
    /// How old it was.
    #[serde(rename = "ageMs", with = "millis")]
    #[schemars(with = "f64")]
    pub age: Duration,
    /// Whether that call was running just then, rather than done before.
    pub shared: bool,
}

/// What happened around the start of a call. Absent where nothing did.
///
/// ```
/// let nothing = haft_core::Scheduling::default();
/// assert_eq!(serde_json::to_string(&nothing).unwrap(), "{}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Scheduling {
    /// What it waited for a slot, over all tries.
    #[serde(rename = "queueWaitMs", skip_serializing_if = "Duration::is_zero", with = "millis")]
    #[schemars(with = "f64")]
    pub queue_wait: Duration,
    /// The tries before the last one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_tries: Vec<FailedTry>,
    /// Where the result came from, if not from a run of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<FromCache>,
    /// The deadline that the tool's earlier calls led to.
    #[serde(rename = "adaptiveTimeoutMs", skip_serializing_if = "Option::is_none", with = "optional_millis")]
    #[schemars(with = "Option<f64>")]
    pub adaptive_timeout: Option<Duration>,
    /// How often this very call has failed in a row, where that is worth a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_failures: Option<u32>,
}

/// The facts about one execution of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultMetadata {
    /// The id of the execution.
    pub execution_id: ExecutionId,
    /// The batch that it was part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<BatchId>,
    /// Its place in the batch, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_index: Option<u32>,
    /// Of a call of a batch: whether it ran while another call of the batch ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// When the call came in.
    pub started_at: Timestamp,
    /// When its result was final.
    pub completed_at: Timestamp,
    /// The time between, by a clock that never jumps.
    #[serde(rename = "durationMs", with = "millis")]
    #[schemars(with = "f64")]
    pub duration: Duration,
    /// How often it was tried; 0 where it never started.
    pub attempts: u32,
    /// Each of them, where there were several: what held one in need not have held another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_records: Vec<AttemptRecord>,
    /// Bytes that the tool put out, before any were left out.
    pub output_size: u64,
    /// Whether some of them were left out of the content.
    pub output_truncated: bool,
    /// By which the whole output is read, where it is longer than the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_handle: Option<OutputHandle>,
    /// What happened around its start: waiting, retries, a stored result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Box<Scheduling>>,
    /// The sandbox that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// What held it in, of several attempts the last one; absent where it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// What it used, in all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<Metrics>>,
    /// What containment stopped or noticed, in any attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// What it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<SideEffect>,
    /// What its command changed, and whether that was applied, where its writes were kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<SettledChanges>>,
    /// Arguments that were turned into the type that the schema wants, by pointer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coercions: Vec<String>,
    /// The caller's own name for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
}

impl ResultMetadata {
    /// Of a call that never started: it came in and was answered at the same time, and nothing is known of a run.
    ///
    /// ```
    /// use haft_core::{ExecutionId, ResultMetadata};
    /// let now = jiff::Timestamp::now();
    /// let metadata = ResultMetadata::not_started(ExecutionId::at(now), now);
    /// assert_eq!((metadata.attempts, metadata.enforcement), (0, None));
    /// ```
    pub fn not_started(execution_id: ExecutionId, at: Timestamp) -> Self {
        ResultMetadata {
            execution_id,
            batch_id: None,
            batch_index: None,
            parallel: None,
            started_at: at,
            completed_at: at,
            duration: Duration::ZERO,
            attempts: 0,
            attempt_records: Vec::new(),
            output_size: 0,
            output_truncated: false,
            output_handle: None,
            scheduling: None,
            sandbox_id: None,
            enforcement: None,
            metrics: None,
            violations: Vec::new(),
            side_effects: Vec::new(),
            changes: None,
            coercions: Vec::new(),
            correlation_id: None,
        }
    }
}

pub(crate) mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        // Microseconds are as fine as a person or a graph needs.
        serializer.serialize_f64(duration.as_micros() as f64 / 1000.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(millis / 1000.0).map_err(serde::de::Error::custom)
    }
}

mod optional_millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::millis::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let millis = Option::<f64>::deserialize(deserializer)?;
        let duration = millis.map(|millis| Duration::try_from_secs_f64(millis / 1000.0));
        duration.transpose().map_err(serde::de::Error::custom)
    }
}

/// The one answer to one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The caller's own name for the call.
    pub call_id: Arc<str>,
    /// The tool's canonical name, or what was asked for where there is no such tool.
    pub tool: Arc<str>,
    /// How it ended.
    pub status: Status,
    /// The arguments that counted, without secrets; long ones are cut. Absent where they are not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub input: Option<Arguments>,
    /// The value that the tool's output schema describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What a model reads: text first, then pictures, sound and documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentPart>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorInfo>>,
    /// What only an operator should see. Never written to a wire.
    #[serde(skip)]
    pub diagnostics: Option<Box<str>>,
    /// The facts. Shared with the audit record of the call.
    pub metadata: Arc<ResultMetadata>,
}

impl ToolResult {
    /// Whether it succeeded.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// The row of the error table, where it did not succeed.
    pub fn error_code(&self) -> Option<ErrorCode> {
        self.error.as_ref().map(|error| error.code)
    }

    /// The first text of the content.
    pub fn text(&self) -> &str {
        self.content
            .iter()
            .find_map(|part| match part {
                ContentPart::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// The exit code of the command line for it.
    pub fn exit_code(&self) -> u8 {
        self.error_code().map_or(0, ErrorCode::exit)
    }

    /// The block that is put into a model's context: tool, status, duration, a line, and the content, of which
    /// at most `max_chars` characters are kept.
    pub fn format_for_context(&self, max_chars: usize, include_metadata: bool) -> String {
        let mut out = String::new();
        if include_metadata {
            let status = if self.is_success() { "Success" } else { "Failed" };
            let duration = self.metadata.duration.as_millis();
            // Writing to a String cannot fail.
            let _ = write!(out, "Tool: {}\nStatus: {status}\nDuration: {duration}ms\n---\n", self.tool);
        }
        match &self.error {
            None => out.push_str(&text::truncate_chars(self.text(), max_chars).0),
            Some(error) => {
                let message = text::truncate_chars(&error.message, max_chars).0;
                let _ = write!(out, "Error: {message} ({})", error.code);
                // What a command said before it failed is the most useful part of its failure.
                let said = self.text().strip_prefix(error.message.as_str()).unwrap_or_default().trim_start();
                if !said.is_empty() {
                    let _ = write!(out, "\n\n{}", text::truncate_chars(said, max_chars).0);
                }
            }
        }
        out
    }

    /// [`format_for_context`](ToolResult::format_for_context) as it is where nobody says otherwise: 4,000 characters,
    /// with metadata.
    pub fn for_context(&self) -> String {
        self.format_for_context(ToolResult::CONTEXT_CHARS, true)
    }

    /// The characters of content in a model's context, where nobody says how many.
    pub const CONTEXT_CHARS: usize = 4000;

    /// The most bytes of arguments on a result: they are there to recognise the call, and its caller has them.
    pub const INPUT_BYTES: usize = 8 << 10;
}

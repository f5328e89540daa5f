//! What haft and its worker say to each other: a line of JSON for each message.
//!
//! The job comes first. After it the worker asks, one question at a time, and ends with what the tool returned.

use haft_core::{ContentPart, ErrorCode, ExecutionId, Limits, Problem, SideEffect, ToolError, ToolOutput};
use haft_sdk::files::{Change, Changed, Place};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The longest line: the largest file that a tool edits, in base64, and what is around it.
pub(super) const MOST_LINE: usize = 96 << 20;

/// What the worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// Runs the tool.
    Run,
    /// Looks at what it would change.
    Preview,
}

/// One call of a tool.
#[derive(Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) tool: String,
    /// How the tool behaves on this installation.
    pub(super) settings: Value,
    pub(super) arguments: Value,
    pub(super) purpose: Purpose,
    /// Which files there are, as the workspace describes them to a worker.
    pub(super) files: Value,
    pub(super) execution_id: ExecutionId,
    pub(super) attempt: u32,
    pub(super) timeout: Duration,
    pub(super) output_limit: usize,
    pub(super) capacity: usize,
    /// Those on files.
    pub(super) limits: Limits,
}

/// What a worker says.
#[derive(Serialize, Deserialize)]
pub(super) enum Said {
    /// Which hash had this file when the conversation last read it?
    LastRead(Place),
    /// The conversation has read this.
    Remember { place: Place, sha256: String },
    /// These changes are to be made.
    Change { summary: String, changes: Vec<Change> },
    /// These bytes without secrets?
    WithoutSecrets(#[serde(with = "base64_text")] Vec<u8>),
    /// It is done.
    Done(Result<Output, Failure>),
}

/// What a worker is answered.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    LastRead(Option<String>),
    Remembered,
    Changed(Vec<Changed>),
    Bytes(#[serde(with = "base64_text")] Vec<u8>),
    Refused(Failure),
}

/// What a tool returned.
#[derive(Serialize, Deserialize)]
pub(super) struct Output {
    text: Option<String>,
    structured: Option<Value>,
    parts: Vec<ContentPart>,
    side_effects: Vec<SideEffect>,
    keep_whole: bool,
    repeats_stream: bool,
}

impl From<ToolOutput> for Output {
    fn from(output: ToolOutput) -> Self {
        let ToolOutput { text, structured, parts, side_effects, keep_whole, repeats_stream } = output;
        Output { text, structured, parts, side_effects, keep_whole, repeats_stream }
    }
}

impl From<Output> for ToolOutput {
    fn from(output: Output) -> Self {
        let Output { text, structured, parts, side_effects, keep_whole, repeats_stream } = output;
        ToolOutput { text, structured, parts, side_effects, keep_whole, repeats_stream }
    }
}

/// Why a tool failed.
#[derive(Serialize, Deserialize)]
pub(super) struct Failure {
    code: ErrorCode,
    message: String,
    diagnostics: Option<String>,
    problems: Vec<Problem>,
    data: Option<Box<Value>>,
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let ToolError { code, message, diagnostics, problems, data } = error;
        Failure { code, message, diagnostics, problems, data }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, diagnostics, problems, data } = failure;
        ToolError { code, message, diagnostics, problems, data }
    }
}

/// A message as a line.
pub(super) fn line(message: &impl Serialize) -> Result<Vec<u8>, ToolError> {
    let mut line = serde_json::to_vec(message).map_err(|error| unreadable(&error))?;
    if line.len() > MOST_LINE {
        let text = format!(
            "this is too much for a worker in a jail: {} bytes, and {MOST_LINE} is the most",
            line.len()
        );
        return Err(ToolError::new(ErrorCode::LimitExceeded, text));
    }
    line.push(b'\n');
    Ok(line)
}

pub(super) fn unreadable(error: &serde_json::Error) -> ToolError {
    ToolError::from(ErrorCode::SandboxCrashed).with_diagnostics(format!("the worker in a jail: {error}"))
}

mod base64_text {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

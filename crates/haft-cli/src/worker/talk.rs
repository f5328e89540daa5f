//! What is said over the worker's socket: one line of JSON, and one line back.

use super::files::Files;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

/// How long an answer may take. A worker answers from a thread of its own, so that is long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest line that is read.
pub(super) const LONGEST: u64 = 64 << 10;

/// What a worker is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerRequest {
    /// Whether it is there.
    Hello,
    /// To look for tasks now.
    Look,
    /// How it is.
    Status,
    /// To end.
    Stop {
        /// Without time for running calls to finish.
        now: bool,
    },
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkerReply {
    /// The id of the worker's process.
    pub(crate) process: u32,
    /// Of which haft.
    pub(super) version: String,
    /// Since when.
    pub(super) since: Timestamp,
    /// Where its tasks are.
    pub(super) store: String,
    /// Tasks that run.
    pub(super) tasks: usize,
    /// Its engines in numbers.
    #[serde(default)]
    pub(super) engines: Vec<EngineTold>,
}

/// One engine of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EngineTold {
    /// Where its tasks come from.
    pub(super) folder: String,
    /// As `Engine::stats` gives it.
    pub(super) stats: Value,
}

/// Asks the worker of a state folder.
pub(super) fn ask(files: &Files, asked: &WorkerRequest) -> io::Result<WorkerReply> {
    let mut stream = files.at_socket(|path| UnixStream::connect(path))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(asked)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Tells a worker, where one runs, to look for tasks now.
pub(crate) fn look(state: &std::path::Path) -> bool {
    ask(&Files::new(state), &WorkerRequest::Look).is_ok()
}

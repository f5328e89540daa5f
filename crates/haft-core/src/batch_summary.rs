//! A batch in numbers.

use crate::{BatchId, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A batch in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchSummary {
    /// The batch.
    pub batch_id: BatchId,
    /// Calls in it.
    pub total: usize,
    /// Calls whose tool was started.
    pub executed: usize,
    /// Calls that succeeded.
    pub succeeded: usize,
    /// Calls that did not.
    pub failed: usize,
    /// Calls of tools that change nothing.
    #[serde(default)]
    pub read_only: usize,
    /// Calls of tools that may, and of those that nothing is known about.
    #[serde(default)]
    pub mutating: usize,
    /// Calls that ran while another one of the batch ran.
    #[serde(default)]
    pub overlapped: usize,
    /// From the first check to the last result.
    #[serde(rename = "durationMs", with = "crate::result::millis")]
    #[schemars(with = "f64")]
    pub duration: Duration,
    /// What was done in another way than asked for, and why: calls one after the other that were to run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl BatchSummary {
    /// The numbers of those results. What the results do not say is left at its worst: all may change something, and
    /// none overlapped.
    pub fn of(batch_id: BatchId, results: &[ToolResult], duration: Duration) -> Self {
        let succeeded = results.iter().filter(|result| result.is_success()).count();
        BatchSummary {
            batch_id,
            total: results.len(),
            executed: results.iter().filter(|result| result.metadata.attempts > 0).count(),
            succeeded,
            failed: results.len() - succeeded,
            read_only: 0,
            mutating: results.len(),
            overlapped: 0,
            duration,
            note: None,
        }
    }
}

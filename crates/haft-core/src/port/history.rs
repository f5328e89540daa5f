//! What happened, asked for afterwards.

use super::AuditRecord;
use crate::{Arguments, BatchId, ErrorCode, ExecutionId, Status, ToolResult};
use jiff::Timestamp;
use std::sync::Arc;

/// Which records. Everything that is set must be so.
///
/// ```
/// use haft_core::{Status, port::AuditQuery};
/// let failed = AuditQuery { tool: Some("run_command".into()), status: Some(Status::Failed), ..AuditQuery::default() };
/// assert_eq!(failed.limit, 100);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AuditQuery {
    /// Calls that came in then or later.
    pub from: Option<Timestamp>,
    /// Calls that came in before then.
    pub until: Option<Timestamp>,
    /// Of this tool, by its canonical name.
    pub tool: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of this batch.
    pub batch: Option<BatchId>,
    /// That ended so.
    pub status: Option<Status>,
    /// With this code.
    pub code: Option<ErrorCode>,
    /// With this text in the record, in any case of its letters.
    pub text: Option<String>,
    /// Only what comes after this place: [`AuditPage::next`] of the page before.
    pub after: Option<PageKey>,
    /// At most so many; 1,000 is the most.
    pub limit: usize,
}

impl Default for AuditQuery {
    fn default() -> Self {
        AuditQuery {
            from: None,
            until: None,
            tool: None,
            agent: None,
            batch: None,
            status: None,
            code: None,
            text: None,
            after: None,
            limit: 100,
        }
    }
}

/// A place in a list of records: pages do not shift when new records come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageKey {
    /// Microseconds since 1970 of the last record's start.
    pub at: i64,
    /// Its number in the audit.
    pub seq: i64,
}

impl std::fmt::Display for PageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.at, self.seq)
    }
}

impl std::str::FromStr for PageKey {
    type Err = NotAPageKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (at, seq) = text.rsplit_once('-').ok_or(NotAPageKey)?;
        let (at, seq) = (at.parse().map_err(|_| NotAPageKey)?, seq.parse().map_err(|_| NotAPageKey)?);
        Ok(PageKey { at, seq })
    }
}

/// Text that is no place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a page key: use the one that came with the page before")]
pub struct NotAPageKey;

/// Records, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditPage {
    /// Each with its number in the audit.
    pub records: Vec<(i64, AuditRecord)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<PageKey>,
}

/// One call, as it is kept.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The audit record of the call.
    pub record: AuditRecord,
    /// Its arguments without secrets, where they are kept.
    pub arguments: Option<Arguments>,
    /// Its result, where it is still kept.
    pub result: Option<Arc<ToolResult>>,
}

/// One tool in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolStatistics {
    /// The tool.
    pub tool: String,
    /// Calls.
    pub count: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Milliseconds that half of them took at most.
    pub p50_ms: f64,
    /// Milliseconds that 95 of 100 took at most.
    pub p95_ms: f64,
    /// Milliseconds that 99 of 100 took at most.
    pub p99_ms: f64,
}

impl ToolStatistics {
    /// How many of the calls succeeded, from 0 to 1.
    pub fn success_rate(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.succeeded as f64 / count as f64,
        }
    }

    /// The numbers of those calls: whether each succeeded, and its milliseconds.
    ///
    /// ```
    /// use haft_core::port::ToolStatistics;
    /// let numbers = ToolStatistics::of("echo", (1..=100).map(|ms| (true, f64::from(ms))).collect());
    /// assert_eq!((numbers.p50_ms, numbers.p95_ms, numbers.p99_ms), (50.0, 95.0, 99.0));
    /// ```
    pub fn of(tool: impl Into<String>, mut calls: Vec<(bool, f64)>) -> Self {
        calls.sort_by(|one, other| one.1.total_cmp(&other.1));
        // Nearest rank: the smallest that so many of a hundred are not above.
        let at = |percent: usize| match calls.len() {
            0 => 0.0,
            count => calls[(count * percent).div_ceil(100).max(1) - 1].1,
        };
        ToolStatistics {
            tool: tool.into(),
            count: calls.len() as u64,
            succeeded: calls.iter().filter(|(succeeded, _)| *succeeded).count() as u64,
            p50_ms: at(50),
            p95_ms: at(95),
            p99_ms: at(99),
        }
    }
}

/// Which lines of a stored output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSearch {
    /// The first line to look at, from 1.
    pub from_line: u64,
    /// Only lines that match this regular expression; every line where absent.
    pub pattern: Option<String>,
    /// At most so many lines.
    pub max_lines: usize,
    /// At most so many bytes, all lines together.
    pub max_bytes: usize,
}

impl Default for OutputSearch {
    fn default() -> Self {
        OutputSearch { from_line: 1, pattern: None, max_lines: 200, max_bytes: 64 << 10 }
    }
}

/// Lines of a stored output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// Each with its number, from 1, without its line end.
    pub lines: Vec<(u64, Vec<u8>)>,
    /// Where to go on; `None` where the end was reached.
    pub next_line: Option<u64>,
    /// Bytes of the whole output.
    pub total: u64,
}

impl StoredRun {
    /// The execution that the record is about.
    pub fn execution_id(&self) -> ExecutionId {
        self.record.metadata.execution_id
    }
}

//! How a durable store behaves.

use haft_core::port::Clock;
use jiff::Timestamp;
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

/// What is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Intents and outcomes of calls with side effects are on the disk before anybody goes on. Calls without are
    /// written with the next group, at most [`Options::window`] later: a crash may forget that they were made.
    #[default]
    Effects,
    /// Every call and every step of a batch is on the disk before anybody goes on.
    Full,
}

/// Where the end of the audit chain is told, outside of what an attacker of this machine can change.
///
/// Without one, an attacker who holds the database and its current key can cut off the newest records and nobody can
/// tell.
pub trait HeadSink: Send + Sync {
    /// The chain has come to here. Called by the writer after a commit, at most once a second: it must not wait long.
    fn head(&self, head: &AuditHead);
}

/// The end of the audit chain at some time.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditHead {
    /// Which chain.
    pub chain: String,
    /// The number of its last record.
    pub seq: i64,
    /// The seal of that record, in hex.
    pub mac: String,
    /// When that was.
    pub at: Timestamp,
}

/// How a durable store behaves. The default is what a person at a terminal needs.
///
/// ```
/// use haft_store::{Durability, Options};
/// let options = Options { durability: Durability::Full, ..Options::default() };
/// assert!(options.window.as_millis() <= 50);
/// ```
#[derive(Clone)]
pub struct Options {
    /// What is waited for.
    pub durability: Durability,
    /// How long a record that nobody waits for may wait for company.
    pub window: Duration,
    /// How many records may wait to be written. Above it, callers wait, too.
    pub queue: usize,
    /// Whether arguments, without secrets, become part of the audit record, and not only their hash.
    pub audit_input: bool,
    /// Whether results and arguments, without secrets, are kept beside the audit, for history and recovery.
    pub keep_results: bool,
    /// How long opening may look for damage.
    pub check: Duration,
    /// What is let go, and when.
    pub keep: Keep,
    /// The first key of the audit chain; beside the database where absent.
    pub key_file: Option<PathBuf>,
    /// Where the end of the chain is told.
    pub sink: Option<Arc<dyn HeadSink>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::default(),
            window: Duration::from_millis(50),
            queue: 8192,
            audit_input: true,
            keep_results: true,
            check: Duration::from_secs(2),
            keep: Keep::default(),
            key_file: None,
            sink: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("durability", &self.durability)
            .field("window", &self.window)
            .field("queue", &self.queue)
            .field("audit_input", &self.audit_input)
            .field("keep_results", &self.keep_results)
            .field("check", &self.check)
            .field("keep", &self.keep)
            .field("key_file", &self.key_file)
            .field("sink", &self.sink.is_some())
            .finish_non_exhaustive()
    }
}

/// What is kept, and for how long. `None` is for ever.
///
/// ```
/// let keep = haft_store::Keep::default();
/// assert_eq!(keep.results.map(|age| age.as_secs() / 86_400), Some(30));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Results and arguments.
    pub results: Option<Duration>,
    /// Outputs behind a handle.
    pub outputs: Option<Duration>,
    /// Bytes of outputs, as they are stored, all tenants together. The oldest go first.
    pub output_bytes: u64,
    /// Settled idempotency keys.
    pub keys: Option<Duration>,
    /// Batches that are over, and answered approvals.
    pub batches: Option<Duration>,
}

impl Default for Keep {
    fn default() -> Self {
        const DAY: u64 = 24 * 60 * 60;
        Keep {
            results: Some(Duration::from_secs(30 * DAY)),
            outputs: Some(Duration::from_secs(30 * DAY)),
            output_bytes: 1 << 30,
            keys: Some(Duration::from_secs(DAY)),
            batches: Some(Duration::from_secs(30 * DAY)),
        }
    }
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

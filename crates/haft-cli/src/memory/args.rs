//! What can be typed about what is remembered.

use super::filter;
use crate::{examples, words};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use haft::{BatchId, ErrorCode, Status, TaskKey, TaskState, port::PageKey};
use jiff::Timestamp;
use std::{path::PathBuf, time::Duration};

/// Which calls: everything that is given must be so.
#[derive(Clone, Debug, Args)]
pub(crate) struct Filter {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME", help_heading = "Which calls")]
    pub(super) tool: Option<String>,
    /// Only calls of this agent
    #[arg(long, value_name = "NAME", help_heading = "Which calls")]
    pub(super) agent: Option<String>,
    /// Use this tenant, not your own
    #[arg(long, value_name = "NAME", help_heading = "Which calls")]
    pub(super) tenant: Option<String>,
    /// Only calls with this status: success, failed, timeout, cancelled, …
    #[arg(long, value_name = "STATUS", value_parser = filter::status, help_heading = "Which calls")]
    pub(super) status: Option<Status>,
    /// Only calls with this error code, such as TIMEOUT
    #[arg(long, value_name = "CODE", value_parser = filter::code, help_heading = "Which calls")]
    pub(super) code: Option<ErrorCode>,
    /// Only calls of this batch
    #[arg(long, value_name = "ID", value_parser = filter::batch, help_heading = "Which calls")]
    pub(super) batch: Option<BatchId>,
    /// Only calls with this text in their record
    #[arg(long, value_name = "TEXT", help_heading = "Which calls")]
    pub(super) text: Option<String>,
    /// Only calls since then: 2h, 3d, 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = filter::moment, help_heading = "Which calls")]
    pub(super) since: Option<Timestamp>,
    /// Only calls before then
    #[arg(long, value_name = "TIME", value_parser = filter::moment, help_heading = "Which calls")]
    pub(super) until: Option<Timestamp>,
}

/// Which part of a long list.
#[derive(Clone, Debug, Args)]
pub(crate) struct Page {
    /// Length of the list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = filter::limit)]
    pub(super) limit: usize,
    /// Start after this key, which the page before printed at its end
    #[arg(long, value_name = "KEY", value_parser = filter::page_key, allow_hyphen_values = true)]
    pub(super) after: Option<PageKey>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List calls, newest first
    #[command(after_help = examples::RUNS_LIST)]
    List {
        /// Only calls that run now, in every process of this machine
        #[arg(long, conflicts_with_all = ["tool", "agent", "status", "code", "batch", "text", "since", "until", "after"])]
        running: bool,
        #[command(flatten)]
        filter: Box<Filter>,
        #[command(flatten)]
        page: Page,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// List tasks (detached calls), newest first
    #[command(after_help = examples::RUNS_TASKS)]
    Tasks {
        /// Only tasks in this state: pending, running, awaiting-approval, completed, failed, cancelled
        #[arg(long, value_name = "STATE", value_parser = filter::task_state)]
        state: Option<TaskState>,
        /// Only tasks that have not ended
        #[arg(long)]
        open: bool,
        /// Only calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Length of the list, at most 100
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = filter::limit)]
        limit: usize,
        /// Start after this key, which the page before printed at its end
        #[arg(long, value_name = "KEY", value_parser = filter::task_key, allow_hyphen_values = true)]
        after: Option<TaskKey>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Show a call, a batch or a task: who, what, decision, result
    #[command(after_help = examples::RUNS_SHOW)]
    Show {
        /// The id of a call, a batch or a task, or a prefix of it
        id: String,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Wait for a call, a batch or a task, and show its result
    #[command(after_help = examples::RUNS_WATCH)]
    Watch {
        /// The id of a call, a batch or a task, or a prefix of it
        id: String,
        #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
        tenant: Option<String>,
        /// Stop waiting after this time
        #[arg(long, value_name = "TIME", value_parser = words::time)]
        timeout: Option<Duration>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Cancel a call, a batch or a task of another process
    #[command(after_help = examples::RUNS_CANCEL)]
    Cancel {
        /// The id of a call, a batch or a task, or a prefix of it
        id: String,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Show the number, success rate and duration of calls, by tool
    #[command(after_help = examples::RUNS_STATS)]
    Stats {
        #[command(flatten)]
        filter: Box<Filter>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Search records, newest first
    #[command(after_help = examples::AUDIT_QUERY)]
    Query {
        #[command(flatten)]
        filter: Box<Filter>,
        #[command(flatten)]
        page: Page,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// List events besides calls: keys, refused requests, archives
    #[command(after_help = examples::AUDIT_EVENTS)]
    Events {
        /// Length of the list
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Verify every record, and name the first one that was changed
    #[command(after_help = examples::AUDIT_VERIFY)]
    Verify {
        /// Heads of the chain that you kept elsewhere: from --json, or from audit.head_sink; - reads standard input
        #[arg(long, visible_alias = "against", value_name = "FILE|-", value_hint = ValueHint::FilePath)]
        head: Option<PathBuf>,
        /// The first key of the chain [default: audit.key_file]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        key: Option<PathBuf>,
        /// Verify this archive, not the database
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "head")]
        archive: Option<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Export records as JSON Lines or CSV, newest first
    #[command(after_help = examples::AUDIT_EXPORT)]
    Export {
        #[command(flatten)]
        filter: Box<Filter>,
        /// JSON Lines with every field, or CSV with the most used columns
        #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
        format: Format,
        /// Write to this file, readable only by you, not to standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    Jsonl,
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Keep the results that exist, and mark the gaps: an id, a prefix of one, or all
    #[arg(long, value_name = "ID", conflicts_with = "discard")]
    pub(super) resume: Option<String>,
    /// Drop all results: an id, a prefix of one, or all
    #[arg(long, value_name = "ID")]
    pub(super) discard: Option<String>,
    #[arg(long, value_name = "NAME", help = "Use this tenant, not your own")]
    pub(super) tenant: Option<String>,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The new file [default: backups/ in the state folder, named by time]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Delete the build caches of all workspaces, not only those that were not used for 30 days
    #[arg(long)]
    pub(super) caches: bool,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

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
    /// Only this tool's
    #[arg(long, value_name = "NAME", help_heading = "Which calls")]
    pub(super) tool: Option<String>,
    /// Only this agent's
    #[arg(long, value_name = "NAME", help_heading = "Which calls")]
    pub(super) agent: Option<String>,
    /// Another tenant's than the owner's of this machine
    #[arg(long, value_name = "NAME", help_heading = "Which calls")]
    pub(super) tenant: Option<String>,
    /// Only those that ended so: success, failed, timeout, cancelled, …
    #[arg(long, value_name = "STATUS", value_parser = filter::status, help_heading = "Which calls")]
    pub(super) status: Option<Status>,
    /// Only those with this error code, such as TIMEOUT
    #[arg(long, value_name = "CODE", value_parser = filter::code, help_heading = "Which calls")]
    pub(super) code: Option<ErrorCode>,
    /// Only those of this batch
    #[arg(long, value_name = "ID", value_parser = filter::batch, help_heading = "Which calls")]
    pub(super) batch: Option<BatchId>,
    /// Only those with this text anywhere in their record
    #[arg(long, value_name = "TEXT", help_heading = "Which calls")]
    pub(super) text: Option<String>,
    /// Only those since then: 2h, 3d, 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = filter::moment, help_heading = "Which calls")]
    pub(super) since: Option<Timestamp>,
    /// Only those before then
    #[arg(long, value_name = "TIME", value_parser = filter::moment, help_heading = "Which calls")]
    pub(super) until: Option<Timestamp>,
}

/// Which part of a long list.
#[derive(Clone, Debug, Args)]
pub(crate) struct Page {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = filter::limit)]
    pub(super) limit: usize,
    /// Go on where the page before ended: with the key that stood below it
    #[arg(long, value_name = "KEY", value_parser = filter::page_key, allow_hyphen_values = true)]
    pub(super) after: Option<PageKey>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List calls, newest first
    #[command(after_help = examples::RUNS_LIST)]
    List {
        /// Those that run now, in every process of this machine
        #[arg(long, conflicts_with_all = ["tool", "agent", "status", "code", "batch", "text", "since", "until", "after"])]
        running: bool,
        #[command(flatten)]
        filter: Box<Filter>,
        #[command(flatten)]
        page: Page,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// List tasks, which are detached calls, newest first
    #[command(after_help = examples::RUNS_TASKS)]
    Tasks {
        /// Only those in this state: pending, running, awaiting-approval, completed, failed, cancelled
        #[arg(long, value_name = "STATE", value_parser = filter::task_state)]
        state: Option<TaskState>,
        /// Only those that are not over
        #[arg(long)]
        open: bool,
        /// Only this tool's
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        #[arg(long, value_name = "NAME", help = "Another tenant's")]
        tenant: Option<String>,
        /// At most so many; 100 is the most
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = filter::limit)]
        limit: usize,
        /// Go on where the page before ended: with the key that stood below it
        #[arg(long, value_name = "KEY", value_parser = filter::task_key, allow_hyphen_values = true)]
        after: Option<TaskKey>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Show one call, or the calls of a batch: who, what, how it was decided, how it ended
    #[command(after_help = examples::RUNS_SHOW)]
    Show {
        /// The execution, the batch or the task
        id: String,
        #[arg(long, value_name = "NAME", help = "Another tenant's")]
        tenant: Option<String>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Wait for a call, a batch or a task, also of another process, and show how it ends
    #[command(after_help = examples::RUNS_WATCH)]
    Watch {
        /// The execution, the batch or the task
        id: String,
        #[arg(long, value_name = "NAME", help = "Another tenant's")]
        tenant: Option<String>,
        /// Give up after this time
        #[arg(long, value_name = "TIME", value_parser = words::time)]
        timeout: Option<Duration>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Stop a call, a batch or a task of another process
    #[command(after_help = examples::RUNS_CANCEL)]
    Cancel {
        /// The execution, the batch or the task
        id: String,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Count calls by tool: how many, how many succeeded, how long they took
    #[command(after_help = examples::RUNS_STATS)]
    Stats {
        #[command(flatten)]
        filter: Box<Filter>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Find records, newest first
    #[command(after_help = examples::AUDIT_QUERY)]
    Query {
        #[command(flatten)]
        filter: Box<Filter>,
        #[command(flatten)]
        page: Page,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// What happened besides calls: keys made and revoked, requests that a server refused, archived records
    #[command(after_help = examples::AUDIT_EVENTS)]
    Events {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Check every record against its seal, and name the first that is not as it was written
    #[command(after_help = examples::AUDIT_VERIFY)]
    Verify {
        /// Ends of the chain that were kept elsewhere: what `--json` gave, or audit.head_sink added; - for standard input
        #[arg(long, visible_alias = "against", value_name = "FILE|-", value_hint = ValueHint::FilePath)]
        head: Option<PathBuf>,
        /// The first key of the chain, where it was moved away
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        key: Option<PathBuf>,
        /// Check this archive in place of the database
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "head")]
        archive: Option<PathBuf>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Write records out, newest first, for other programs
    #[command(after_help = examples::AUDIT_EXPORT)]
    Export {
        #[command(flatten)]
        filter: Box<Filter>,
        /// JSON Lines with everything, or CSV with the columns that are asked for most
        #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
        format: Format,
        /// To this file, which only you can read, in place of standard output
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
    /// Go on with the results that are there; gaps are said to be gaps. An id, or all
    #[arg(long, value_name = "ID", conflicts_with = "discard")]
    pub(super) resume: Option<String>,
    /// Let all results of it go. An id, or all
    #[arg(long, value_name = "ID")]
    pub(super) discard: Option<String>,
    #[arg(long, value_name = "NAME", help = "Another tenant's")]
    pub(super) tenant: Option<String>,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The new file; one with the time in its name in the folder `backups` of haft's state where left out
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

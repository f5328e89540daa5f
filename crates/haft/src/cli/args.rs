//! What can be typed.

#[cfg(all(unix, feature = "server", feature = "durable"))]
use super::keys::KeysCommand;
#[cfg(feature = "mcp")]
use super::mcp::{ApprovalsBy, McpCommand};
#[cfg(feature = "durable")]
use super::memory::{AuditCommand, BackupArgs, GcArgs, RecoverArgs, RunsCommand};
use super::{examples, tools::ToolsCommand, words};
use crate::IsolationLevel;
use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::{path::PathBuf, time::Duration};

/// Runs the tools that an AI agent asks for: checked, approved, contained, recorded.
#[derive(Debug, Parser)]
#[command(name = "haft", version, after_help = examples::ROOT, arg_required_else_help = true)]
#[command(subcommand_required = true, max_term_width = 110)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Global {
    /// Use this file as your own configuration, in place of the usual one
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub(super) config: Option<PathBuf>,
    /// Pass over a haft.toml in the working folder and above it
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) no_folder_config: bool,
    /// Set a key of the configuration, such as tools.approval.mode=deny
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = words::setting, help_heading = "Global options")]
    pub(super) settings: Vec<(String, String)>,
    /// Say more on standard error: what was decided by which rule, and what only an operator should see
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(super) verbose: bool,
    /// Write spans and log messages to standard error, as JSON Lines
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) log: bool,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        help_heading = "Global options"
    )]
    pub(super) color: Color,
}

// Without doc comments on the choices, here and below: with them, clap spreads the whole help over three lines an option.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Color {
    // On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Call one tool
    #[command(after_help = examples::CALL)]
    Call(CallArgs),
    /// Make several calls, planned together and answered in order
    #[command(after_help = examples::BATCH)]
    Batch(BatchArgs),
    /// Put back the files that a call changed
    #[command(after_help = examples::UNDO)]
    Undo(UndoArgs),
    /// Look at the tools there are, and change which
    #[command(after_help = examples::TOOLS, arg_required_else_help = true, subcommand_required = true)]
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Say why a call is allowed, asked about or denied, and check the rules
    #[command(after_help = examples::POLICY, arg_required_else_help = true, subcommand_required = true)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Look at the licence and what it includes
    #[command(after_help = examples::LICENSE, arg_required_else_help = true, subcommand_required = true)]
    License {
        #[command(subcommand)]
        command: LicenseCommand,
    },
    /// Try what the jails of this machine enforce, and say how to get what is missing
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Look at calls that were made, also by other processes, and at those that run
    #[cfg(feature = "durable")]
    #[command(after_help = examples::RUNS, arg_required_else_help = true, subcommand_required = true)]
    Runs {
        #[command(subcommand)]
        command: RunsCommand,
    },
    /// Search the audit, check that nobody changed it, write it out
    #[cfg(feature = "durable")]
    #[command(after_help = examples::AUDIT, arg_required_else_help = true, subcommand_required = true)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Decide about what a crash left unfinished
    #[cfg(feature = "durable")]
    #[command(after_help = examples::RECOVER)]
    Recover(RecoverArgs),
    /// Copy everything that is remembered to a file, while others go on
    #[cfg(feature = "durable")]
    #[command(after_help = examples::BACKUP)]
    Backup(BackupArgs),
    /// Let go of what is too old or too much, and archive audit records by the rules
    #[cfg(feature = "durable")]
    #[command(after_help = examples::GC)]
    Gc(GcArgs),
    /// Serve the tools to programs that speak MCP, the Model Context Protocol
    #[cfg(feature = "mcp")]
    #[command(after_help = examples::MCP, args_conflicts_with_subcommands = true)]
    Mcp(McpArgs),
    /// Serve the tools over HTTP, to you on a unix socket and to whoever has a key on a port
    #[cfg(all(unix, feature = "server", feature = "durable"))]
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Make, list and revoke keys by which programs are known to `haft serve`
    #[cfg(all(unix, feature = "server", feature = "durable"))]
    #[command(after_help = examples::KEYS, arg_required_else_help = true, subcommand_required = true)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Run detached calls, until there has been nothing to do for a while
    #[cfg(all(unix, feature = "durable"))]
    #[command(after_help = examples::WORKER)]
    Worker(WorkerArgs),
    /// Write a commented haft.toml
    #[command(after_help = examples::INIT)]
    Init(InitArgs),
    /// Let a folder's haft.toml loosen what your own configuration says
    #[command(after_help = examples::TRUST)]
    Trust(TrustArgs),
    /// Print a script that completes haft's commands in a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool's name or one of its aliases
    pub(super) tool: String,
    /// Arguments: a value is read as the type that the tool wants. KEY:=JSON is JSON whatever the tool wants;
    /// KEY=@FILE is what is in the file, and KEY=@- what is on standard input
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub(super) pairs: Vec<String>,
    /// All arguments as one JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(super) args: Option<String>,
    /// Print the result as one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
    /// How long it may take, such as 5s, 2m or PT5S
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    pub(super) timeout: Option<Duration>,
    /// Your own name for the call; it comes back on the result
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
    /// The same key means the same call: it has an effect once
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
    /// At least this much containment, from haft's own process to no files and no network
    #[arg(long, value_name = "LEVEL")]
    pub(super) isolation: Option<Isolation>,
    /// Turn "5" into 5 where the tool wants a number, and say so on the result
    #[arg(long)]
    pub(super) coerce: bool,
    /// Return at once with the id of a task, and let a worker run the call; `haft runs watch` waits for it
    #[cfg(all(unix, feature = "durable"))]
    #[arg(long, conflicts_with_all = ["dry_run", "events"])]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) way: Way,
}

#[cfg(all(unix, feature = "durable"))]
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct WorkerArgs {
    /// Run here, and write what happens to standard error; else one is started in the background
    #[arg(long)]
    pub(super) foreground: bool,
    /// Which step of a start in the background this is
    #[arg(long, hide = true, value_name = "N", conflicts_with = "foreground")]
    pub(super) step: Option<u8>,
    #[command(subcommand)]
    pub(super) command: Option<WorkerCommand>,
}

#[cfg(all(unix, feature = "durable"))]
#[derive(Debug, Subcommand)]
pub(super) enum WorkerCommand {
    /// Say whether one runs, what it runs, and how its engines do in numbers
    Status {
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// End it: what runs may end for a while, the rest is cancelled
    Stop {
        /// Cancel what runs at once
        #[arg(long)]
        now: bool,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Say what is decided about a call, by which rule, and what would change it; nothing is run
    #[command(after_help = examples::POLICY_EXPLAIN)]
    Explain(PolicyExplainArgs),
    /// Check the examples of all rules, or of those in a file
    #[command(after_help = examples::POLICY_TEST)]
    Test {
        /// A file with rules; those in effect here when left out
        #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Print what was found as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Show the lists, the mode and the rules that are in effect here
    #[command(after_help = examples::POLICY_SHOW)]
    Show {
        /// Print them as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct PolicyExplainArgs {
    /// The tool's name or one of its aliases
    pub(super) tool: String,
    /// Arguments, as `haft call` takes them
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub(super) pairs: Vec<String>,
    /// All arguments as one JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(super) args: Option<String>,
    /// The conversation that it would belong to
    #[arg(long, value_name = "NAME")]
    pub(super) conversation: Option<String>,
    /// Print the explanation as one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum LicenseCommand {
    /// Show the tier, why it is that, and what it includes
    #[command(after_help = examples::LICENSE)]
    Show {
        /// Print it as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct BatchArgs {
    /// A JSON array, or JSON Lines, of {"id", "name", "arguments"}; - reads standard input
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,
    /// Print results and summary as one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
    /// Start nothing more after the first call that does not succeed
    #[arg(long)]
    pub(super) stop_on_failure: bool,
    /// Show all of every result, also on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(super) full: bool,
    #[command(flatten)]
    pub(super) way: Way,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print what was found as one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// The call, by the execution id on its result; a call that undid something can be undone, too
    #[arg(value_name = "EXECUTION")]
    pub(super) execution: String,
    /// Print the result as one JSON document and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Way {
    /// Say what would happen, and run nothing
    #[arg(long, conflicts_with = "events")]
    pub(super) dry_run: bool,
    /// Write every event to standard error, as JSON Lines
    #[arg(long)]
    pub(super) events: bool,
    /// The conversation that it belongs to: what was read in one can be edited in it
    #[arg(long, value_name = "NAME")]
    pub(super) conversation: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Isolation {
    None,
    Standard,
    Strict,
    Restricted,
}

impl From<Isolation> for IsolationLevel {
    fn from(isolation: Isolation) -> Self {
        match isolation {
            Isolation::None => IsolationLevel::None,
            Isolation::Standard => IsolationLevel::Standard,
            Isolation::Strict => IsolationLevel::Strict,
            Isolation::Restricted => IsolationLevel::Restricted,
        }
    }
}

#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// Listen on an address of this machine, such as 127.0.0.1:8787, and not on standard input
    #[arg(long, value_name = "ADDRESS")]
    pub(super) http: Option<std::net::SocketAddr>,
    /// Who approves calls: queue (you, in a terminal), client (you, in a form that the client shows), or host (the
    /// client's program asks before each call, and that counts)
    #[arg(long, value_name = "WHO", hide_possible_values = true)]
    pub(super) approvals: Option<ApprovalsBy>,
    #[command(subcommand)]
    pub(super) command: Option<McpCommand>,
}

#[cfg(all(unix, feature = "server", feature = "durable"))]
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Listen on this address, such as 127.0.0.1:8484; programs need a key there
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<std::net::SocketAddr>,
    /// Where the unix socket is; haft.sock in the state folder when left out
    #[arg(long, value_name = "PATH", conflicts_with = "no_socket", value_hint = ValueHint::FilePath)]
    pub(super) socket: Option<PathBuf>,
    /// No unix socket
    #[arg(long)]
    pub(super) no_socket: bool,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Write your own configuration instead of one for the working folder
    #[arg(long)]
    pub(super) user: bool,
    /// Replace a file that is there
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// The file, or its folder; the one that is in effect here when left out
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(super) file: Option<PathBuf>,
    /// List the files that are trusted
    #[arg(long, conflicts_with_all = ["file", "remove", "yes"])]
    pub(super) list: bool,
    /// Trust the file no longer
    #[arg(long)]
    pub(super) remove: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
}

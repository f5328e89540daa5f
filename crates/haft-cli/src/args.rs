//! What can be typed.

#[cfg(unix)]
use super::api_keys::CreateArgs;
use super::mcp::{ApprovalsBy, McpCommand};
use super::memory::{
    ApprovalsCommand, AuditCommand, BackupArgs, GcArgs, GrantsCommand, RecoverArgs, RunsCommand,
};
use super::{examples, flow::FlowCommand, tools::ToolsCommand, words};
use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use haft::{IsolationLevel, Strategy};
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
    /// Run, check and draw flows: calls that take something from each other
    #[command(after_help = examples::FLOW, arg_required_else_help = true, subcommand_required = true)]
    Flow {
        #[command(subcommand)]
        command: FlowCommand,
    },
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
    /// Make and look at keys: those that sign tools, and API keys of `haft serve`
    #[command(after_help = examples::KEYS, arg_required_else_help = true, subcommand_required = true)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
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
    /// Answer calls that wait for a person, also of other processes
    #[command(after_help = examples::APPROVALS, arg_required_else_help = true, subcommand_required = true)]
    Approvals {
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Look at what you agreed to ahead of time, and take it back
    #[command(after_help = examples::GRANTS, arg_required_else_help = true, subcommand_required = true)]
    Grants {
        #[command(subcommand)]
        command: GrantsCommand,
    },
    /// Look at calls that were made, also by other processes, and at those that run
    #[command(after_help = examples::RUNS, arg_required_else_help = true, subcommand_required = true)]
    Runs {
        #[command(subcommand)]
        command: RunsCommand,
    },
    /// Search the audit, check that nobody changed it, write it out
    #[command(after_help = examples::AUDIT, arg_required_else_help = true, subcommand_required = true)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Decide about what a crash left unfinished
    #[command(after_help = examples::RECOVER)]
    Recover(RecoverArgs),
    /// Copy everything that is remembered to a file, while others go on
    #[command(after_help = examples::BACKUP)]
    Backup(BackupArgs),
    /// Let go of what is too old or too much, and archive audit records by the rules
    #[command(after_help = examples::GC)]
    Gc(GcArgs),
    /// Serve the tools to programs that speak MCP, the Model Context Protocol
    #[command(after_help = examples::MCP, args_conflicts_with_subcommands = true)]
    Mcp(McpArgs),
    /// Serve the tools over HTTP, to you on a unix socket and to whoever has a key on a port
    #[cfg(unix)]
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Run detached calls, until there has been nothing to do for a while
    #[cfg(unix)]
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
    #[cfg(unix)]
    #[arg(long, conflicts_with_all = ["dry_run", "events"])]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) way: Way,
}

#[cfg(unix)]
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

#[cfg(unix)]
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
pub(super) enum KeysCommand {
    /// Make a key that signs tools, and print what others check with
    #[command(after_help = examples::KEYS_SIGNING)]
    Generate {
        /// Where to put it; beside your own configuration when left out
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Print it as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Print what others check with, of a key that signs tools
    #[command(after_help = examples::KEYS_SIGNING)]
    Show {
        /// The key; the one beside your own configuration when left out
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Print it as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Make an API key, by which a program is known to `haft serve`; its secret is shown once
    #[cfg(unix)]
    #[command(after_help = examples::KEYS_CREATE)]
    Create(CreateArgs),
    /// List API keys, without their secrets
    #[cfg(unix)]
    #[command(after_help = examples::KEYS_API)]
    List {
        /// Only those of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Let an API key count no longer
    #[cfg(unix)]
    #[command(after_help = examples::KEYS_API)]
    Revoke {
        /// Its id, as the list has it
        id: String,
        /// Print one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
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
    /// How the calls follow each other: one by one, all that do not conflict at once, or all at once
    #[arg(long, value_name = "STRATEGY")]
    pub(super) strategy: Option<BatchStrategy>,
    /// Calls at once, where the strategy overlaps any
    #[arg(long, value_name = "N", value_parser = words::at_once)]
    pub(super) max_parallelism: Option<usize>,
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
    /// Where nobody can be asked here, wait so long for an answer from elsewhere: `haft approvals`
    #[arg(long, value_name = "TIME", value_parser = words::time, conflicts_with = "dry_run")]
    pub(super) wait: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum BatchStrategy {
    Sequential,
    Smart,
    Parallel,
}

impl From<BatchStrategy> for Strategy {
    fn from(strategy: BatchStrategy) -> Self {
        match strategy {
            BatchStrategy::Sequential => Strategy::Sequential,
            BatchStrategy::Smart => Strategy::Smart,
            BatchStrategy::Parallel => Strategy::Parallel,
        }
    }
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

#[cfg(unix)]
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

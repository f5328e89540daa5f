//! What can be typed.

#[cfg(unix)]
use super::api_keys::CreateArgs;
use super::call_args::CallArgs;
use super::hook::HookArgs;
use super::hosts::{self, HostsArgs, InstallArgs, UninstallArgs};
use super::mcp::{ApprovalsBy, McpCommand};
use super::memory::{
    ApprovalsCommand, AuditCommand, BackupArgs, GcArgs, GrantsCommand, RecoverArgs, RunsCommand,
};
use super::{
    examples, flow::FlowCommand, license::LicenseCommand, timing::Timing, tools::ToolsCommand, words,
};
use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use haft::Strategy;
use std::{path::PathBuf, time::Duration};

/// Run the tools of AI agents: haft checks, asks, sandboxes and records every call.
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
    /// Use this file as your own configuration
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub(super) config: Option<PathBuf>,
    /// Ignore haft.toml in the working folder and above it
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) no_folder_config: bool,
    /// Set a configuration key, such as tools.approval.mode=deny
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = words::setting, help_heading = "Global options")]
    pub(super) settings: Vec<(String, String)>,
    /// Show rules, decisions and operator details on standard error
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(super) verbose: bool,
    /// Write spans and log messages to standard error, as JSON Lines
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) log: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(super) color: Color,
}

// Without doc comments on the choices, here and below: with them, clap spreads the whole help over three lines an
// option.
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
    /// Run several calls as one batch; results come in call order
    #[command(after_help = examples::BATCH)]
    Batch(BatchArgs),
    /// Run, check and draw flows: calls that use each other's results
    #[command(after_help = examples::FLOW, arg_required_else_help = true, subcommand_required = true)]
    Flow {
        #[command(subcommand)]
        command: FlowCommand,
    },
    /// Run any program in a jail, connected to your terminal
    #[cfg(unix)]
    #[command(after_help = examples::EXEC)]
    Exec(super::exec_args::ExecArgs),
    /// Restore the files that a call changed
    #[command(after_help = examples::UNDO)]
    Undo(UndoArgs),
    /// Show what a staged command changed, or which wait for a decision
    #[command(after_help = examples::DIFF)]
    Diff(DiffArgs),
    /// Apply what a staged command changed
    #[command(after_help = examples::APPLY)]
    Apply(ChangesArgs),
    /// Throw away what a staged command changed
    #[command(after_help = examples::DISCARD)]
    Discard(ChangesArgs),
    /// List, add, remove and configure tools
    #[command(after_help = examples::TOOLS, arg_required_else_help = true, subcommand_required = true)]
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Explain why a call is allowed, asked or denied; test the rules
    #[command(after_help = examples::POLICY, arg_required_else_help = true, subcommand_required = true)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Manage signing keys for tools, and API keys for `haft serve`
    #[command(after_help = examples::KEYS, arg_required_else_help = true, subcommand_required = true)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Show the licence and what it includes
    #[command(after_help = examples::LICENSE, arg_required_else_help = true, subcommand_required = true)]
    License {
        #[command(subcommand)]
        command: LicenseCommand,
    },
    /// Test what the jails of this machine enforce, and what is missing
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Approve or deny calls that wait, also those of other processes
    #[command(after_help = examples::APPROVALS, arg_required_else_help = true, subcommand_required = true)]
    Approvals {
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// List and revoke what you approved ahead of time
    #[command(after_help = examples::GRANTS, arg_required_else_help = true, subcommand_required = true)]
    Grants {
        #[command(subcommand)]
        command: GrantsCommand,
    },
    /// List, show, watch and cancel calls, also of other processes
    #[command(after_help = examples::RUNS, arg_required_else_help = true, subcommand_required = true)]
    Runs {
        #[command(subcommand)]
        command: RunsCommand,
    },
    /// Search, verify and export the audit log
    #[command(after_help = examples::AUDIT, arg_required_else_help = true, subcommand_required = true)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Resume or discard what a crash cut off
    #[command(after_help = examples::RECOVER)]
    Recover(RecoverArgs),
    /// Copy haft's database to a file, while calls go on
    #[command(after_help = examples::BACKUP)]
    Backup(BackupArgs),
    /// Delete old data and archive old audit records
    #[command(after_help = examples::GC)]
    Gc(GcArgs),
    /// Serve the tools to MCP clients, such as Claude Code or Cursor
    #[command(after_help = examples::MCP, args_conflicts_with_subcommands = true)]
    Mcp(McpArgs),
    /// Decide about the tools of a host, which calls this as its hook
    #[command(after_help = hosts::examples::HOOK)]
    Hook(HookArgs),
    /// Serve the tools over HTTP, on a unix socket or a port
    #[cfg(unix)]
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Start, inspect and stop the worker that runs detached calls
    #[cfg(unix)]
    #[command(after_help = examples::WORKER)]
    Worker(WorkerArgs),
    /// Add haft to a host: its tools, or as its hook
    #[command(after_help = hosts::examples::INSTALL)]
    Install(InstallArgs),
    /// Take out of a host what `haft install` wrote
    #[command(after_help = hosts::examples::UNINSTALL)]
    Uninstall(UninstallArgs),
    /// Show where haft is installed, and whether it holds
    #[command(after_help = hosts::examples::HOSTS)]
    Hosts(HostsArgs),
    /// Write a commented haft.toml
    #[command(after_help = examples::INIT)]
    Init(InitArgs),
    /// Trust a folder's haft.toml, so that it may loosen your settings
    #[command(after_help = examples::TRUST)]
    Trust(TrustArgs),
    /// Print a completion script for your shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[cfg(unix)]
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct WorkerArgs {
    /// Run in the foreground and log to standard error
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
    /// Show whether a worker runs, and what it runs
    #[command(after_help = examples::WORKER_COMMANDS)]
    Status {
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Stop the worker; running calls get some time to finish
    #[command(after_help = examples::WORKER_COMMANDS)]
    Stop {
        /// Cancel running calls at once
        #[arg(long)]
        now: bool,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Explain the decision about a call, without running it
    #[command(after_help = examples::POLICY_EXPLAIN)]
    Explain(PolicyExplainArgs),
    /// Test the examples of the rules
    #[command(after_help = examples::POLICY_TEST)]
    Test {
        /// A file with rules [default: the rules in effect here]
        #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Choose what tools may do in this folder, as one profile
    #[command(after_help = examples::POLICY_USE)]
    Use {
        /// locked, read-only, careful or coding
        #[arg(value_name = "PROFILE", value_parser = ["locked", "read-only", "careful", "coding"])]
        profile: String,
    },
    /// Show the lists, the mode and the rules in effect here
    #[command(after_help = examples::POLICY_SHOW)]
    Show {
        /// Print one JSON document only
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
    /// The conversation of the call
    #[arg(long, value_name = "NAME")]
    pub(super) conversation: Option<String>,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key pair that signs tools, and print its public key
    #[command(after_help = examples::KEYS_SIGNING)]
    Generate {
        /// The new key file [default: beside your own configuration]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Print the public key of a signing key
    #[command(after_help = examples::KEYS_SIGNING)]
    Show {
        /// The key file [default: the one beside your own configuration]
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Make an API key for `haft serve`, and print its secret once
    #[cfg(unix)]
    #[command(after_help = examples::KEYS_CREATE)]
    Create(CreateArgs),
    /// List API keys, without their secrets
    #[cfg(unix)]
    #[command(after_help = examples::KEYS_API)]
    List {
        /// Only keys of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Revoke an API key
    #[cfg(unix)]
    #[command(after_help = examples::KEYS_API)]
    Revoke {
        /// The id of the key, or a prefix of it
        id: String,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct BatchArgs {
    /// A JSON array, or JSON Lines, of {"name", "arguments"} or {"tool", "args"}; - reads standard input
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
    /// Start no more calls after the first one that fails
    #[arg(long)]
    pub(super) stop_on_failure: bool,
    /// Order of the calls: one by one, in parallel where they do not conflict, or all in parallel
    #[arg(long, value_name = "STRATEGY")]
    pub(super) strategy: Option<BatchStrategy>,
    /// The most calls at once [default: scheduling.max_parallelism]
    #[arg(long, value_name = "N", value_parser = words::at_once)]
    pub(super) max_parallelism: Option<usize>,
    #[command(flatten)]
    pub(super) timing: Timing,
    /// Print results in full, also on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(super) full: bool,
    #[command(flatten)]
    pub(super) way: Way,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// The execution id of the call, or a prefix of it; an undo can be undone, too
    #[arg(value_name = "EXECUTION")]
    pub(super) execution: String,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The execution id of the call, or a prefix of it; without it, all that wait for a decision
    #[arg(value_name = "EXECUTION")]
    pub(super) execution: Option<String>,
    /// The most bytes of the diff
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub(super) max_bytes: usize,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ChangesArgs {
    /// The execution id of the call, or a prefix of it
    #[arg(value_name = "EXECUTION")]
    pub(super) execution: String,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Way {
    /// Show what haft would decide, and run nothing
    #[arg(long, conflicts_with = "events")]
    pub(super) dry_run: bool,
    /// Write every event to standard error, as JSON Lines
    #[arg(long)]
    pub(super) events: bool,
    /// The conversation of the call: a file must be read in it before it is edited
    #[arg(long, value_name = "NAME")]
    pub(super) conversation: Option<String>,
    /// Wait this long for an approval from elsewhere (`haft approvals`)
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

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// Listen on this local address, such as 127.0.0.1:8787, instead of standard input
    #[arg(long, value_name = "ADDRESS")]
    pub(super) http: Option<std::net::SocketAddr>,
    /// Who approves calls: queue (you, with `haft approvals`), client (you, in a form of the client) or host (the
    /// client asks you itself before each call) [default: mcp.approvals]
    #[arg(long, value_name = "WHO", hide_possible_values = true)]
    pub(super) approvals: Option<ApprovalsBy>,
    #[command(subcommand)]
    pub(super) command: Option<McpCommand>,
}

#[cfg(unix)]
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Listen on this address, such as 127.0.0.1:8484; clients need an API key [default: server.listen]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<std::net::SocketAddr>,
    /// Path of the unix socket [default: haft.sock in the state folder]
    #[arg(long, value_name = "PATH", conflicts_with = "no_socket", value_hint = ValueHint::FilePath)]
    pub(super) socket: Option<PathBuf>,
    /// Do not listen on a unix socket
    #[arg(long)]
    pub(super) no_socket: bool,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Write your own configuration, not one for the working folder
    #[arg(long)]
    pub(super) user: bool,
    /// Replace an existing file
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// The file or its folder [default: the haft.toml in effect here]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(super) file: Option<PathBuf>,
    /// List the trusted files
    #[arg(long, conflicts_with_all = ["file", "remove", "yes"])]
    pub(super) list: bool,
    /// Stop trusting the file
    #[arg(long)]
    pub(super) remove: bool,
    /// Trust it without asking
    #[arg(short, long)]
    pub(super) yes: bool,
}

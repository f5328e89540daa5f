//! The command line.
//!
//! A face: it translates between a person, or a shell, and the engine, and decides nothing. What a call may do, what
//! it is answered and which exit code that has are the engine's words; here they are only shown.
//!
//! | file | what |
//! |---|---|
//! | `args`, `examples`, `groups` | what can be typed, and the first page of the help |
//! | `setup` | configuration, and the engine that it gives |
//! | `call`, `batch`, `flow`, `exec`, `undo`, `diff`, `apply`, `discard`, `doctor`, `tools`, `policy`, `license`, `init`, `trust` | one file or folder for each command |
//! | `pairs`, `batch_file`, `definition_file`, `input` | what was typed or read, as calls and definitions |
//! | `mcp` | serving programs that speak MCP |
//! | `hosts` | making haft known to programs that call tools, and taking that back |
//! | `hook` | deciding about tools that such a program runs itself |
//! | `serve`, `api_keys` | serving over HTTP, and the keys by which programs are known there |
//! | `keys` | keys that sign tools |
//! | `worker`, `detach` | detached calls: the process that runs them, and handing one over |
//! | `memory` | `approvals`, `grants`, `runs`, `audit`, `recover`, `backup`, `gc`: what is remembered |
//! | `prompt`, `waiting` | whom a call asks: the person at the terminal, or somebody elsewhere |
//! | `watch`, `progress` | a call on its way: events, progress, Ctrl-C |
//! | `show`, `help`, `words`, `layout` | results in words, and what to do about them |
//! | `observe` | who is told what the engine does |
//! | `console`, `failure` | the two streams; what went wrong before or beside a call |
//!
//! A program can have the same command line with tools of its own:
//!
//! ```no_run
//! use haft::prelude::*;
//!
//! /// Greets somebody.
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom.
//!     name: String,
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let greet = tool_fn("greet", async |args: Greet, _: ToolCtx| -> Result<String, ToolError> {
//!         Ok(format!("Hello, {}!", args.name))
//!     });
//!     haft_cli::main([Box::new(greet.read_only()) as _])
//! }
//! ```

#[cfg(unix)]
mod api_keys;
mod args;
mod batch;
mod batch_file;
mod call;
mod call_args;
mod call_view;
mod changes;
mod console;
mod definition_file;
#[cfg(unix)]
mod detach;
mod doctor;
mod examples;
#[cfg(unix)]
mod exec;
#[cfg(unix)]
mod exec_args;
mod failure;
mod flow;
mod following;
mod groups;
mod help;
mod hook;
mod hosts;
mod init;
mod input;
mod keys;
mod layout;
mod license;
mod live_runs;
mod mcp;
mod memory;
mod observe;
mod pairs;
mod policy;
mod progress;
#[cfg(unix)]
mod prompt;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod server_backend;
mod setup;
mod show;
mod timing;
mod tools;
mod trust;
mod undo;
mod waiting;
mod watch;
mod watchers;
mod words;
#[cfg(unix)]
mod worker;

use args::{Cli, Command};
use clap::{CommandFactory as _, FromArgMatches as _};
use console::Console;
use failure::Failure;
use haft::{Tool, config::Surroundings};
use setup::CliContext;
use std::{ffi::OsString, process::ExitCode};

/// The command line of this process: its arguments, its surroundings, the built-in tools and these.
pub fn main(tools: impl IntoIterator<Item = Box<dyn Tool>>) -> ExitCode {
    let parsed = match parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let surroundings = surroundings();
    finish(parsed, surroundings, tools.into_iter().collect())
}

/// Runs the program with other arguments and another environment. It still writes to the streams of this process and
/// listens to its signals.
///
/// ```
/// use haft::config::Surroundings;
/// let surroundings = Surroundings { working_folder: std::env::temp_dir(), ..Surroundings::default() };
/// let args = ["haft", "call", "validate_content", "content=[1]"];
/// let code = haft_cli::run(args, surroundings, []);
/// assert_eq!(code, std::process::ExitCode::SUCCESS);
/// ```
pub fn run<I, T>(
    args: I,
    surroundings: Surroundings,
    tools: impl IntoIterator<Item = Box<dyn Tool>>,
) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    match parse(args) {
        Ok(parsed) => finish(parsed, Ok(surroundings), tools.into_iter().collect()),
        Err(code) => code,
    }
}

fn parse<I, T>(args: I) -> Result<Cli, ExitCode>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let mut command = groups::command();
    let parsed = command.try_get_matches_from_mut(args).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| error.format(&mut command)).map_err(|error| {
        let mut console = Console::plain();
        let text = failure::in_our_words(&error);
        if !error.use_stderr() {
            return ExitCode::from(console.print(text).map_or_else(|failure| failure.exit(), |()| 0));
        }
        console.say(text.trim_end());
        ExitCode::from(failure::USAGE)
    })
}

fn finish(cli: Cli, surroundings: Result<Surroundings, Failure>, tools: Vec<Box<dyn Tool>>) -> ExitCode {
    let mut console = Console::new(cli.global.color, cli.global.verbose);
    // A host takes every other exit code of its hook for consent.
    let is_hook = matches!(cli.command, Command::Hook(_));
    let ended = surroundings.and_then(|surroundings| {
        let ground = CliContext { surroundings, global: cli.global, tools };
        dispatch(cli.command, ground, &mut console)
    });
    ExitCode::from(ended.unwrap_or_else(|failure| {
        console.fail(&failure);
        if is_hook { hook::DENY } else { failure.exit() }
    }))
}

fn dispatch(command: Command, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    match command {
        Command::Call(args) => call::run(&args, ground, console),
        Command::Batch(args) => batch::run(&args, ground, console),
        Command::Flow { command } => flow::run(&command, ground, console),
        Command::Policy { command } => policy::run(&command, ground, console),
        Command::Keys { command } => keys::run(&command, &ground, console),
        Command::License { command } => license::run(&command, ground, console),
        Command::Doctor(args) => doctor::run(&args, ground, console),
        #[cfg(unix)]
        Command::Exec(args) => exec::run(&args, ground, console),
        Command::Undo(args) => undo::run(&args, ground, console),
        Command::Diff(args) => changes::diff(&args, ground, console),
        Command::Apply(args) => changes::settle(changes::Verb::Apply, &args, ground, console),
        Command::Discard(args) => changes::settle(changes::Verb::Discard, &args, ground, console),
        Command::Tools { command } => tools::run(&command, ground, console),
        Command::Approvals { command } => memory::approvals(&command, &ground, console),
        Command::Grants { command } => memory::grants(&command, &ground, console),
        Command::Runs { command } => memory::runs(&command, &ground, console),
        Command::Audit { command } => memory::audit(&command, &ground, console),
        Command::Recover(args) => memory::recover(&args, &ground, console),
        Command::Backup(args) => memory::backup(&args, &ground, console),
        Command::Gc(args) => memory::gc(&args, &ground, console),
        Command::Mcp(args) => mcp::run(&args, ground, console),
        Command::Hook(args) => hook::run(&args, ground, console),
        Command::Install(args) => hosts::install(&args, &ground, console),
        Command::Uninstall(args) => hosts::uninstall(&args, &ground, console),
        Command::Hosts(args) => hosts::list(&args, &ground, console),
        #[cfg(unix)]
        Command::Serve(args) => serve::run(&args, ground, console),
        #[cfg(unix)]
        Command::Worker(args) => worker::run(&args, ground, console),
        Command::Init(args) => init::run(&args, &ground, console),
        Command::Trust(args) => trust::run(&args, &ground, console),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "haft", &mut text);
            console.print_raw(&String::from_utf8_lossy(&text))?;
            Ok(0)
        }
    }
}

/// Where this process runs, and for whom.
fn surroundings() -> Result<Surroundings, Failure> {
    let working_folder = std::env::current_dir().map_err(|reason| Failure::NoWorkingFolder { reason })?;
    Ok(Surroundings {
        working_folder,
        home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(Into::into),
        env: std::env::vars_os().collect(),
        user_id: user_id(),
    })
}

#[cfg(unix)]
fn user_id() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn user_id() -> Option<u32> {
    None
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

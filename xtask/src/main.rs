//! Developer commands of haft. `cargo xtask` without arguments lists them.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a person at a terminal")]

mod args;
mod bench;
mod conformance;
mod counts;
mod data_kit;
mod debian_rust;
mod deny;
mod error;
mod fuzz;
mod http_kit;
mod mcp_kit;
mod not_run;
mod packages;
mod portable;
mod recap;
#[cfg(test)]
mod rooms;
mod run;
mod secrets;
mod soak;
mod step;
mod suggest;
mod summary;
mod test;
mod workspace;

use std::process::ExitCode;

use args::Task;
use error::Error;
use workspace::Workspace;

const HELP: &str = "\
Developer commands of haft

Usage: cargo xtask <COMMAND> [OPTIONS]

Commands:
  run                 Build haft and run a small batch of calls from examples/
  test                Install what the tests need, then check format, lints, tests, documentation,
                      licences and portability
      --quick           Inner loop: format, lints of libraries and programs, tests
      --strict          Fail when a test could not run on this machine
  portable            Check that the portable crates compile for Windows and macOS
  conformance         Run the public conformance suite of MCP against a server of haft's
  counts              Count the instructions of a call and of a start, beside those that are written down
      --write           Write the counts down
  bench               Measure the pipeline, the registry, files, jails, MCP and the durable store in a release build, beside their goals
  soak                Kill processes that share a state folder, some two thousand times, and look at what is left;
                      swap paths under running calls for ten minutes;
                      then a thousand watchers of the HTTP API, for half a minute
  fuzz [TARGET]       Run one fuzz target, or all of them
      --seconds <N>     How long each target runs [default: 30]
  secrets [FILE]      Write the table of the shapes of secrets from gitleaks.toml
  help                Print this text
";

fn main() -> ExitCode {
    match args::parse(std::env::args_os().skip(1)).and_then(carry_out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The recap of a test run has said it all, and its last line has to stay the last one.
            if !matches!(error, Error::TestsFailed) {
                eprintln!("error: {error}");
            }
            error.exit_code()
        }
    }
}

fn carry_out(task: Task) -> Result<(), Error> {
    let workspace = Workspace::of_this_program();
    match task {
        Task::Help => {
            print!("{HELP}");
            Ok(())
        }
        Task::Run => run::run(&workspace),
        Task::Test(options) => test::test(&workspace, options),
        Task::Portable => portable::portable(&workspace),
        Task::Conformance => conformance::conformance(&workspace),
        Task::Counts { write } => counts::counts(&workspace, write),
        Task::Bench => bench::bench(&workspace),
        Task::Soak => soak::soak(&workspace),
        Task::Fuzz(options) => fuzz::fuzz(&workspace, &options),
        Task::Secrets(rules) => secrets::secrets(&workspace, rules.as_deref()),
    }
}

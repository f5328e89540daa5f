//! `cargo xtask test`: every check, one after the other, and a recap.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::args::TestOptions;
use crate::conformance;
use crate::counts;
use crate::data_kit;
use crate::deny;
use crate::error::Error;
use crate::http_kit;
use crate::mcp_kit;
use crate::not_run;
use crate::packages::{self, Need};
use crate::portable;
use crate::recap::{End, Outcome, Report};
use crate::step;
use crate::summary::{Counts, NoCount, Runner, Succeeded};
use crate::workspace::Workspace;

/// One check: cargo commands that all have to succeed.
#[derive(Debug, PartialEq, Eq)]
struct Check {
    name: &'static str,
    commands: Vec<&'static [&'static str]>,
    environment: &'static [(&'static str, &'static str)],
}

impl Check {
    fn new(name: &'static str, command: &'static [&'static str]) -> Self {
        Self { name, commands: vec![command], environment: &[] }
    }
}

pub(crate) fn test(workspace: &Workspace, options: TestOptions) -> Result<(), Error> {
    let list = not_run::List::create(workspace.target())?;
    let runner = match step::works(workspace.cargo().args(["nextest", "--version"])) {
        true => Runner::Nextest,
        false => Runner::CargoTest,
    };
    let mut report = Report { strict: options.strict, ..Report::default() };
    let (mut kit, mut http_kit, mut data_kit) = (None, None, None);
    if !options.quick {
        report.outcomes.push(install_packages(workspace));
        let (outcome, found) = install("MCP SDKs", || mcp_kit::ensure(workspace));
        report.outcomes.push(outcome);
        kit = found;
        let (outcome, found) = install("HTTP kit", || http_kit::ensure(workspace));
        report.outcomes.push(outcome);
        http_kit = found;
        let (outcome, found) = install("test data", || data_kit::ensure(workspace));
        report.outcomes.push(outcome);
        data_kit = found;
    }
    let kits = Kits { mcp: kit.as_deref(), http: http_kit.as_deref(), data: data_kit.as_deref() };
    // A check that fails does not keep the others from running: one run shows all there is to repair.
    for check in lints(options) {
        report.outcomes.push(carry_out(workspace, &check)?);
    }
    for (check, runner) in tests(options, runner) {
        let (outcome, counts) = run_tests(workspace, &check, runner, &list, kits)?;
        report.outcomes.push(outcome);
        report.counts.push((check.name, counts));
    }
    if !options.quick {
        report.outcomes.push(carry_out(workspace, &rustdoc())?);
        report.outcomes.push(deny::outcome(workspace)?);
        report.outcomes.push(portable::outcome(workspace)?);
        report.outcomes.push(conformance::outcome(workspace, kit.as_deref())?);
        report.outcomes.push(counts::outcome(workspace)?);
    }
    report.not_run = list.read()?;
    print!("{report}");
    if report.succeeded() { Ok(()) } else { Err(Error::TestsFailed) }
}

fn lints(options: TestOptions) -> [Check; 2] {
    let format = Check {
        // The fuzz targets are a workspace of their own.
        commands: vec![
            &["fmt", "--all", "--check"],
            &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"],
        ],
        ..Check::new("format", &[])
    };
    let clippy: &[&str] = match options.quick {
        true => &["clippy", "--workspace", "--", "-D", "warnings"],
        false => {
            &["clippy", "--workspace", "--features", "haft-cli/otlp", "--all-targets", "--", "-D", "warnings"]
        }
    };
    [format, Check::new("clippy", clippy)]
}

fn tests(options: TestOptions, runner: Runner) -> Vec<(Check, Runner)> {
    let tests: &[&str] = match runner {
        Runner::Nextest => &["nextest", "run", "--workspace", "--no-fail-fast"],
        // Every kind but the benches (`--all-targets` has them) and the doc tests (the default has them).
        Runner::CargoTest => {
            &["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"]
        }
    };
    let mut checks = vec![(Check::new("tests", tests), runner)];
    if !options.quick {
        // What is off by default. The whole workspace is named, so that what it shares with the tests before is not
        // built a second time in another form.
        let otlp: &[&str] = match runner {
            Runner::Nextest => &[
                "nextest",
                "run",
                "--workspace",
                "--no-fail-fast",
                "--features",
                "haft-cli/otlp",
                "--lib",
                "--test",
                "otlp",
                "-E",
                "binary(otlp) | test(otlp::)",
            ],
            // It cannot choose among the tests of libraries by where they are, so it runs all of them once more.
            Runner::CargoTest => &[
                "test",
                "--workspace",
                "--no-fail-fast",
                "--features",
                "haft-cli/otlp",
                "--lib",
                "--test",
                "otlp",
            ],
        };
        checks.push((Check::new("otlp", otlp), runner));
        let doc_tests = Check::new(
            "doc tests",
            &["test", "--workspace", "--no-fail-fast", "--features", "haft-cli/otlp", "--doc"],
        );
        checks.push((doc_tests, Runner::CargoTest));
    }
    checks
}

fn rustdoc() -> Check {
    Check {
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        ..Check::new("rustdoc", &["doc", "--workspace", "--no-deps", "--features", "haft-cli/otlp"])
    }
}

fn carry_out(workspace: &Workspace, check: &Check) -> Result<Outcome, Error> {
    let started = Instant::now();
    let mut end = End::Passed;
    for arguments in &check.commands {
        let mut cargo = workspace.cargo();
        cargo.args(*arguments).envs(check.environment.iter().copied());
        step::announce(check.name, &cargo);
        if !step::run(&mut cargo)?.success() {
            end = End::Failed;
        }
    }
    Ok(Outcome { name: check.name, took: started.elapsed(), end })
}

/// Where the programs of others are that tests drive haft with, and the data of others.
#[derive(Clone, Copy)]
struct Kits<'a> {
    mcp: Option<&'a Path>,
    http: Option<&'a Path>,
    data: Option<&'a Path>,
}

fn run_tests(
    workspace: &Workspace,
    check: &Check,
    runner: Runner,
    list: &not_run::List,
    kits: Kits<'_>,
) -> Result<(Outcome, Result<Counts, NoCount>), Error> {
    let started = Instant::now();
    let mut cargo = workspace.cargo();
    cargo.args(check.commands.iter().copied().flatten()).env(not_run::VARIABLE, list.path());
    let variables =
        [(mcp_kit::VARIABLE, kits.mcp), (http_kit::VARIABLE, kits.http), (data_kit::VARIABLE, kits.data)];
    cargo.envs(variables.iter().filter_map(|(name, kit)| kit.map(|kit| (name, kit))));
    step::announce(check.name, &cargo);
    let output = step::run_captured(&mut cargo, step::every_line)?;
    let (succeeded, end) = match output.status.success() {
        true => (Succeeded::Yes, End::Passed),
        false => (Succeeded::No, End::Failed),
    };
    let counts = runner.counts(&output.stdout, &output.stderr, succeeded);
    Ok((Outcome { name: check.name, took: started.elapsed(), end }, counts))
}

/// What cannot be installed does not end the run: the tests that need it say themselves that they were not run.
fn install_packages(workspace: &Workspace) -> Outcome {
    let started = Instant::now();
    println!("==> packages");
    let end = match packages::ensure(workspace, Need::Test) {
        Ok(()) => End::Passed,
        Err(missing) => {
            println!("{missing}");
            End::Information("some are missing; the line to type is above")
        }
    };
    Outcome { name: "packages", took: started.elapsed(), end }
}

/// Programs and data of others. Without them, the tests that need them say so.
fn install(
    name: &'static str,
    ensure: impl FnOnce() -> Result<PathBuf, Error>,
) -> (Outcome, Option<PathBuf>) {
    let started = Instant::now();
    println!("\n==> {name}");
    let (end, kit) = match ensure() {
        Ok(kit) => (End::Passed, Some(kit)),
        Err(why) => {
            println!("{why}");
            (End::Information("not installed; the reason is above"), None)
        }
    };
    (Outcome { name, took: started.elapsed(), end }, kit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(checks: impl IntoIterator<Item = Check>) -> Vec<String> {
        checks.into_iter().flat_map(|check| check.commands).map(|command| command.join(" ")).collect()
    }

    #[test]
    fn quick_leaves_out_the_slow_checks() {
        let quick = TestOptions { quick: true, strict: false };
        assert_eq!(lines(lints(quick)).last().unwrap(), "clippy --workspace -- -D warnings");
        let tests: Vec<_> = tests(quick, Runner::Nextest).into_iter().map(|(check, _)| check).collect();
        assert_eq!(lines(tests), ["nextest run --workspace --no-fail-fast"]);
    }

    #[test]
    fn doc_tests_run_once_whatever_the_runner() {
        for runner in [Runner::Nextest, Runner::CargoTest] {
            let checks = tests(TestOptions::default(), runner);
            assert_eq!(
                checks.iter().map(|(_, runner)| *runner).collect::<Vec<_>>(),
                [runner, runner, Runner::CargoTest]
            );
            let lines = lines(checks.into_iter().map(|(check, _)| check));
            assert_eq!(lines.iter().filter(|line| line.contains("--doc")).count(), 1);
            assert_eq!(
                lines
                    .iter()
                    .filter(|line| line.contains("--features haft-cli/otlp --lib --test otlp"))
                    .count(),
                1
            );
            assert!(lines.iter().all(|line| !line.contains("--all-targets") && !line.contains("--benches")));
        }
    }

    #[test]
    fn warnings_are_denied() {
        assert!(
            lines(lints(TestOptions::default()))
                .iter()
                .any(|line| line.ends_with("--all-targets -- -D warnings"))
        );
        assert_eq!(rustdoc().environment, [("RUSTDOCFLAGS", "-D warnings")]);
    }
}

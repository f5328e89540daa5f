//! `cargo xtask fuzz`: builds and runs the fuzz targets with a stable compiler.
//!
//! The flags are those of cargo-fuzz without a sanitiser; coverage needs no nightly feature.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;

use crate::args::FuzzOptions;
use crate::error::{Error, UsageError};
use crate::packages::{self, Need};
use crate::step::{self, quoted};
use crate::suggest::nearest;
use crate::workspace::Workspace;

const INSTRUMENTATION: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// Targets that need crates which the others do not: each has a feature of its own name.
const NEEDS_ITS_FEATURE: [&str; 1] = ["jwt"];

/// libFuzzer's own code gives a few edges; a parser that is instrumented gives dozens at once.
const LEAST_COVERAGE: u64 = 10;

/// Why a target failed.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    /// It crashed, hung or used too much memory on the input in this file.
    Found(String),
    /// It ended with an error, but wrote no input down.
    Ended(ExitStatus),
    /// libFuzzer saw next to no coverage: it was guessing blindly.
    Blind(u64),
}

pub(crate) fn fuzz(workspace: &Workspace, options: &FuzzOptions) -> Result<(), Error> {
    let targets = chosen(targets(&workspace.root().join("fuzz/targets"))?, options)?;
    println!("==> packages");
    packages::ensure(workspace, Need::Fuzz).map_err(Error::Packages)?;
    let host = host(workspace)?;
    let mut failed = Vec::new();
    for target in targets {
        build(workspace, &target, &host)?;
        if let Err(problem) = run(workspace, &target, &host, options)? {
            println!("\n{}", explain(&problem, &target, &host));
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Error::FuzzFailed(failed)) }
}

/// The targets are the Rust files of the folder.
fn targets(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::File { action: "read", path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".rs")).map(str::to_owned));
    }
    names.sort();
    if names.is_empty() { Err(Error::NoFuzzTargets(folder.to_owned())) } else { Ok(names) }
}

fn chosen(targets: Vec<String>, options: &FuzzOptions) -> Result<Vec<String>, UsageError> {
    let Some(wanted) = &options.target else {
        return Ok(targets);
    };
    if targets.contains(wanted) {
        return Ok(vec![wanted.clone()]);
    }
    let similar = nearest(wanted, targets.iter().map(String::as_str)).map(str::to_owned);
    Err(UsageError::Unknown { kind: "fuzz target", given: wanted.clone(), similar })
}

/// Naming the host's own triple keeps the instrumentation out of build scripts and macros.
pub(crate) fn host(workspace: &Workspace) -> Result<String, Error> {
    let mut rustc = workspace.command("rustc");
    let output = rustc.arg("-vV").output();
    let output = output.map_err(|source| Error::Start { program: "rustc".to_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(Error::Unexpected { command: "rustc -vV", missing: "line `host:`" })
}

fn build(workspace: &Workspace, target: &str, host: &str) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "fuzz/target"]);
    cargo.args(["--target", host, "--bin", target]);
    if NEEDS_ITS_FEATURE.contains(&target) {
        cargo.args(["--features", target]);
    }
    // This form wins over RUSTFLAGS and every configuration file, so nothing else gets mixed in.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\u{1f}"));
    step::announce("build", &cargo);
    step::must_succeed(&mut cargo)
}

/// Seen from the workspace root, where everything here is started.
fn program(target: &str, host: &str) -> String {
    format!("fuzz/target/{host}/release/{target}")
}

fn run(
    workspace: &Workspace,
    target: &str,
    host: &str,
    options: &FuzzOptions,
) -> Result<Result<(), Problem>, Error> {
    let corpus = format!("fuzz/corpus/{target}");
    let artifacts = format!("fuzz/artifacts/{target}/");
    for folder in [&corpus, &artifacts] {
        let path = workspace.root().join(folder);
        fs::create_dir_all(&path).map_err(|source| Error::File { action: "create", path, source })?;
    }
    let mut command = workspace.command(workspace.root().join(program(target, host)));
    command.args([
        format!("-max_total_time={}", options.time.as_secs()),
        format!("-artifact_prefix={artifacts}"),
        "-timeout=10".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
        "-print_final_stats=1".to_owned(),
        corpus,
    ]);
    // New inputs go to the first folder; from the others libFuzzer only reads.
    let seeds = format!("fuzz/seeds/{target}");
    if workspace.root().join(&seeds).is_dir() {
        command.arg(seeds);
    }
    println!("\n==> fuzz: {target} for {} s", options.time.as_secs());
    let output = step::run_captured(&mut command, is_worth_showing)?;
    Ok(judge(output.status, &output.stderr))
}

/// libFuzzer reports on stderr.
fn judge(status: ExitStatus, stderr: &str) -> Result<(), Problem> {
    if !status.success() {
        return Err(artifact(stderr).map_or(Problem::Ended(status), Problem::Found));
    }
    let coverage = coverage(stderr);
    if coverage < LEAST_COVERAGE { Err(Problem::Blind(coverage)) } else { Ok(()) }
}

/// The file with the input that failed, as in
/// `artifact_prefix='fuzz/artifacts/definition/'; Test unit written to fuzz/artifacts/definition/crash-0eb8e4ed`.
fn artifact(stderr: &str) -> Option<String> {
    let path = stderr.lines().rev().find_map(|line| line.split_once("Test unit written to "))?.1;
    Some(path.trim().to_owned())
}

/// The last coverage that was reported, as in `#2097152\tpulse  cov: 268 ft: 1023 corp: 310/12Kb`.
fn coverage(stderr: &str) -> u64 {
    let reported = |line: &str| line.split_once(" cov: ")?.1.split_whitespace().next()?.parse().ok();
    stderr.lines().rev().find_map(reported).unwrap_or(0)
}

/// There is a line for each new input, which is thousands of them in the first second.
fn is_worth_showing(line: &str) -> bool {
    let is_event = line.starts_with('#') && line.contains(" cov: ");
    !is_event || ["INITED", "pulse", "DONE"].iter().any(|kind| line.contains(kind))
}

fn explain(problem: &Problem, target: &str, host: &str) -> String {
    match problem {
        Problem::Found(input) => format!(
            "{target}: an input makes it fail\n  input:     {input}\n  reproduce: {} {}",
            quoted(&program(target, host)),
            quoted(input)
        ),
        Problem::Ended(status) => format!("{target}: ended early ({status}); what it printed above says why"),
        Problem::Blind(coverage) => format!(
            "{target}: libFuzzer saw a coverage of only {coverage}; is the code behind the target instrumented?"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::time::Duration;

    const CLEAN: &str = "\
INFO: seed corpus: files: 310 min: 1b max: 57b total: 12Kb rss: 31Mb
#311\tINITED cov: 198 ft: 842 corp: 281/11Kb exec/s: 0 rss: 33Mb
#320\tNEW    cov: 201 ft: 845 corp: 282/11Kb lim: 57 exec/s: 0 rss: 33Mb L: 21/57 MS: 1 ChangeBit-
#2097152\tpulse  cov: 268 ft: 1023 corp: 310/12Kb lim: 4096 exec/s: 699050 rss: 402Mb
#3381240\tDONE   cov: 269 ft: 1030 corp: 311/12Kb lim: 4096 exec/s: 676248 rss: 402Mb
Done 3381240 runs in 5 second(s)
";
    const CRASHED: &str = "\
==4711== ERROR: libFuzzer: deadly signal
artifact_prefix='fuzz/artifacts/definition/'; Test unit written to fuzz/artifacts/definition/crash-0eb8e4ed
Base64: aGFmdA==
";

    fn options(target: Option<&str>) -> FuzzOptions {
        FuzzOptions { target: target.map(str::to_owned), time: Duration::from_secs(1) }
    }

    #[test]
    fn a_target_is_chosen_by_name() {
        let targets = || vec!["definition".to_owned(), "sanitise".to_owned()];
        assert_eq!(chosen(targets(), &options(None)), Ok(targets()));
        assert_eq!(chosen(targets(), &options(Some("sanitise"))), Ok(vec!["sanitise".to_owned()]));
        let error = chosen(targets(), &options(Some("sanitize"))).unwrap_err();
        assert_eq!(error.to_string(), "there is no fuzz target `sanitize`; did you mean `sanitise`?");
    }

    #[test]
    fn coverage_is_read_from_the_last_report() {
        assert_eq!(coverage(CLEAN), 269);
        assert_eq!(coverage("INFO: Running with entropic power schedule\n"), 0);
    }

    #[test]
    fn runs_are_judged() {
        let (good, bad) = (ExitStatus::from_raw(0), ExitStatus::from_raw(77 << 8));
        assert_eq!(judge(good, CLEAN), Ok(()));
        assert_eq!(judge(good, "#2\tINITED cov: 3 ft: 4 corp: 1/1b\n"), Err(Problem::Blind(3)));
        assert_eq!(
            judge(bad, CRASHED),
            Err(Problem::Found("fuzz/artifacts/definition/crash-0eb8e4ed".to_owned()))
        );
        assert_eq!(judge(bad, CLEAN), Err(Problem::Ended(bad)));
    }

    #[test]
    fn a_crash_is_told_with_the_command_that_shows_it_again() {
        let problem = Problem::Found("fuzz/artifacts/definition/crash-0eb8e4ed".to_owned());
        let text = explain(&problem, "definition", "x86_64-unknown-linux-gnu");
        let command = "fuzz/target/x86_64-unknown-linux-gnu/release/definition fuzz/artifacts/definition/crash-0eb8e4ed";
        assert!(text.ends_with(&format!("reproduce: {command}")), "{text}");
    }

    #[test]
    fn only_the_reports_that_say_something_are_shown() {
        let shown: Vec<&str> = CLEAN.lines().filter(|line| is_worth_showing(line)).collect();
        assert_eq!(shown.len(), CLEAN.lines().count() - 1);
        assert!(CRASHED.lines().all(is_worth_showing));
    }
}

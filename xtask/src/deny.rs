//! cargo-deny: whether every dependency has a licence, a source and a name that `deny.toml` accepts.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::debian_rust::{at, locked_cache, remove};
use crate::error::Error;
use crate::recap::{End, Outcome};
use crate::step;
use crate::workspace::Workspace;

/// A check with another version may judge otherwise, so everybody uses this one.
const VERSION: &str = "0.20.2";

/// Checks the dependencies. A check that cannot be made has failed: nobody should read "passed" where nothing was
/// looked at.
///
/// Only what the lock file says is looked at. Advisories change from day to day and need the network: a test run that
/// depended on them would not give the same answer twice.
pub(crate) fn outcome(workspace: &Workspace) -> Result<Outcome, Error> {
    let started = Instant::now();
    println!("\n==> licences");
    let end = match ensure(workspace) {
        Ok(program) => check(workspace, program)?,
        Err(why) => {
            println!("cargo-deny could not be installed: {why}");
            End::Failed
        }
    };
    Ok(Outcome { name: "licences", took: started.elapsed(), end })
}

fn check(workspace: &Workspace, program: PathBuf) -> Result<End, Error> {
    let mut deny = workspace.command(program);
    // Two versions of one crate are a warning in `deny.toml`: worth a look now and then, not in every run.
    deny.args(["--log-level", "error", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]);
    println!("{}", step::shown(&deny));
    Ok(if step::run(&mut deny)?.success() { End::Passed } else { End::Failed })
}

/// The program. It is compiled the first time, without optimisation: it runs for a second.
fn ensure(workspace: &Workspace) -> Result<PathBuf, Error> {
    let (cache, _lock) = locked_cache(workspace)?;
    let root = cache.join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin/cargo-deny");
    if !program.is_file() {
        let target = root.join("target");
        let mut install = workspace.cargo();
        install
            .args([
                "install",
                "--quiet",
                "--locked",
                "--debug",
                "--no-default-features",
                "--version",
                VERSION,
            ])
            .arg("--root")
            .arg(&root)
            .arg("cargo-deny")
            .env("CARGO_TARGET_DIR", &target)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        println!("{}", step::shown(&install));
        step::must_succeed(&mut install)?;
        remove(&target)?;
        at(&program, "find", |path| fs::metadata(path).map(drop))?;
    }
    Ok(program)
}

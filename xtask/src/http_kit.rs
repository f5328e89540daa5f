//! Programs of others that speak to an HTTP API, from PyPI: schemathesis, the SDKs of model providers, and programs
//! that check an OpenAPI document and make a client of it.

use std::fs;
use std::path::PathBuf;

use crate::debian_rust::{at, locked_cache, remove};
use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// The environment variable that names the folder, for tests.
pub(crate) const VARIABLE: &str = "HAFT_HTTP_KIT";

/// From PyPI.
const PYTHON: [&str; 6] = [
    "schemathesis==4.32.5",
    "openai==3.49.0",
    "anthropic==2.8.0",
    "requests==2.34.2",
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
];

/// Asking for other versions makes a new folder: count this up with them.
const NAME: &str = "http-kit-2";

/// The folder: a Python environment. The first time, everything is fetched.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf, Error> {
    let (cache, _lock) = locked_cache(workspace)?;
    let kit = cache.join(NAME);
    let finished = kit.join("finished");
    if !finished.is_file() {
        // In its own place from the beginning: a Python environment cannot be moved.
        remove(&kit)?;
        run(workspace.command("python3").args(["-m", "venv"]).arg(&kit))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(workspace.command(kit.join("bin/python")).args(pip).args(PYTHON))?;
        at(&finished, "write", |path| fs::write(path, ""))?;
    }
    Ok(kit)
}

fn run(command: &mut std::process::Command) -> Result<(), Error> {
    println!("{}", step::shown(command));
    step::must_succeed(command)
}

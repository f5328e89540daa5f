//! Programs of others that speak to an HTTP API, from PyPI: schemathesis, the SDKs of model providers, programs that
//! check an OpenAPI document and make a client of it, and what builds and tests the Python client.

use std::fs;
use std::path::PathBuf;

use crate::debian_rust::{at, locked_cache, remove};
use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// The environment variable that names the folder, for tests.
pub(crate) const VARIABLE: &str = "HAFT_HTTP_KIT";

/// From PyPI.
const PYTHON: [&str; 15] = [
    "schemathesis==4.32.5",
    "openai==3.49.0",
    "anthropic==2.8.0",
    "requests==2.34.2",
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
    "pytest==9.2.0",
    "mypy==2.4.1",
    "ruff==0.17.5",
    "hatchling==1.33.0",
    "langchain-core==1.7.2",
    "langchain-openai==1.7.3",
    "langgraph==1.2.22",
    "langchain-mcp-adapters==0.3.2",
    HTTPX,
];

/// What the Python client needs. A test installs the client into a fresh environment, which asks no network: so the
/// files of this and of what it needs are kept, too.
const HTTPX: &str = "httpx==0.28.1";

/// Asking for other versions makes a new folder: count this up with them.
const NAME: &str = "http-kit-3";

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
        let download = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", HTTPX, "--dest"];
        run(workspace.command(kit.join("bin/python")).args(download).arg(kit.join("wheels")))?;
        at(&finished, "write", |path| fs::write(path, ""))?;
    }
    Ok(kit)
}

fn run(command: &mut std::process::Command) -> Result<(), Error> {
    println!("{}", step::shown(command));
    step::must_succeed(command)
}

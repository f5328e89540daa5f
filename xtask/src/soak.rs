//! `cargo xtask soak`: the kill sweep, paths that are swapped while calls use them, random programs on staged layers,
//! folders that move while jails start, and the load on the HTTP API, for as long as they take. The same tests as in
//! `cargo xtask test`, with more of everything.

use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// Beside those at the named points.
const KILLS: &str = "2000";
/// How long each run of the HTTP API under load takes.
const LOAD_SECONDS: &str = "30";
/// How long a folder is swapped for a denied one while calls use it.
const SWAP_SECONDS: &str = "600";

/// How long a program in one jail moves folders around hidden files while others start.
const RACE_MILLISECONDS: &str = "600000";

/// How many random programs work on files and on layers above them, as root and as an ordinary user.
const STAGED_PROGRAMS: &str = "10000";

pub(crate) fn soak(workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "-p", "haft-engine", "--test", "kill_sweep", "--", "--nocapture"]);
    cargo.env("HAFT_SWEEP_KILLS", KILLS);
    step::announce("soak", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["test", "-p", "haft", "--test", "guarding", "swapped::", "--", "--nocapture"]);
    cargo.env("HAFT_SOAK_SECONDS", SWAP_SECONDS);
    step::announce("soak", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["test", "-p", "haft-files", "--test", "staged_property", "--", "--nocapture"]);
    cargo.env("HAFT_TEST_CASES", STAGED_PROGRAMS);
    step::announce("soak", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["test", "-p", "haft-jail", "--test", "guest", "names::namespace::starts_while_folders_move"]);
    cargo.env("HAFT_RACE_MS", RACE_MILLISECONDS);
    step::announce("soak", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--release", "-p", "haft-server", "--test", "load", "--", "--nocapture"]);
    cargo.env("HAFT_LOAD_SECONDS", LOAD_SECONDS);
    step::announce("soak", &cargo);
    step::must_succeed(&mut cargo)
}

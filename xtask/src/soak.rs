//! `cargo xtask soak`: the kill sweep for as long as it takes. The same test as in `cargo xtask test`, with more kills.

use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

/// Beside those at the named points.
const KILLS: &str = "2000";

pub(crate) fn soak(workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "-p", "haft-engine", "--test", "kill_sweep", "--", "--nocapture"]);
    cargo.env("HAFT_SWEEP_KILLS", KILLS);
    step::announce("soak", &cargo);
    step::must_succeed(&mut cargo)
}

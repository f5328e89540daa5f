//! `cargo xtask bench`: measures. The bench programs themselves print what they measured beside the goals.

use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

pub(crate) fn bench(workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-engine", "--bench", "pipeline", "--bench", "registry"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-jail", "--bench", "gate"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)?;
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-guard", "--bench", "guard"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)
}

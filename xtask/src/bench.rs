//! `cargo xtask bench`: measures the pipeline. The bench program itself prints the table with the ratios.

use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

pub(crate) fn bench(workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo.args(["bench", "-p", "haft-engine", "--bench", "pipeline"]);
    step::announce("bench", &cargo);
    step::must_succeed(&mut cargo)
}

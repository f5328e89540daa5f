//! `cargo xtask bench`: measures. The bench programs themselves print what they measured beside the goals.

use crate::error::Error;
use crate::step;
use crate::workspace::Workspace;

pub(crate) fn bench(workspace: &Workspace) -> Result<(), Error> {
    let benches: [&[&str]; 2] = [
        &["-p", "haft-engine", "--bench", "pipeline", "--bench", "registry"],
        &["-p", "haft-jail", "--bench", "jails"],
    ];
    for which in benches {
        let mut cargo = workspace.cargo();
        cargo.arg("bench").args(which);
        step::announce("bench", &cargo);
        step::must_succeed(&mut cargo)?;
    }
    Ok(())
}

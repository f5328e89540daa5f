//! `cargo xtask run`: builds haft and shows it at work.

use std::env;
use std::path::Path;
use std::process::ExitStatus;

use crate::error::Error;
use crate::step::{self, quoted};
use crate::workspace::Workspace;

const BATCH: &str = "examples/first-batch.json";

pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    // Looked at first: a missing file would look like a failed call.
    let batch = workspace.root().join(BATCH);
    if !batch.is_file() {
        return Err(Error::NoSuchFile(batch));
    }
    // The development profile: on a fresh machine its build takes a fraction of the time.
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--package", "haft-cli", "--bin", "haft"]);
    step::announce("build", &cargo);
    step::must_succeed(&mut cargo)?;

    let program = workspace.target().join("debug/haft");
    let from_root = program.strip_prefix(workspace.root()).unwrap_or(&program);
    println!("\n==> run: {} batch {BATCH}\n", quoted(&from_root.to_string_lossy()));
    let status = step::run(workspace.command(&program).args(["batch", BATCH]))?;
    let explanation = explain(status).ok_or(Error::HaftBroke(status))?;
    println!("\n{explanation}");

    let here = env::current_dir().unwrap_or_default();
    print!("{}", what_next(program.strip_prefix(&here).unwrap_or(&program)));
    Ok(())
}

/// What the exit code of a batch means; `None` when it is not the code of a call's result.
fn explain(status: ExitStatus) -> Option<String> {
    let code = status.code()?;
    let meaning = match code {
        0 => return Some("Exit code 0: every call succeeded.".to_owned()),
        1 => "it failed",
        2 => "its definition or the command line is not valid",
        3 => "it was not permitted",
        4 => "its arguments or its output are not valid",
        5 => "it needs a person's approval",
        _ => return None,
    };
    Some(format!("Exit code {code}: that of the first call which did not succeed; {meaning}."))
}

fn what_next(program: &Path) -> String {
    let haft = quoted(&program.to_string_lossy());
    format!(
        r#"
What to try next:
  {haft} tools list                      the tools there are
  {haft} tools show validate_content     one of them, with its parameters
  {haft} call validate_content format=json content='{{"a": 1,}}'
  {haft} call --help                     every way to make a call
  {haft} init                            write a haft.toml to adapt
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn exit_codes_of_results_are_explained() {
        assert_eq!(explain(exited(0)).unwrap(), "Exit code 0: every call succeeded.");
        for code in 1..=5 {
            assert!(explain(exited(code)).unwrap().starts_with(&format!("Exit code {code}: ")), "{code}");
        }
    }

    #[test]
    fn a_panic_or_a_signal_is_not_a_result() {
        for broken in [exited(101), exited(127), ExitStatus::from_raw(9)] {
            assert_eq!(explain(broken), None, "{broken}");
        }
    }

    #[test]
    fn what_to_try_next_can_be_typed() {
        let text = what_next(Path::new("target/debug/haft"));
        assert!(
            text.contains("  target/debug/haft call validate_content format=json content='{\"a\": 1,}'\n"),
            "{text}"
        );
        assert!(what_next(Path::new("/my work/haft")).contains("  '/my work/haft' tools list"));
    }
}

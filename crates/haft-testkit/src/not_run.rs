//! The list of tests that could not run.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// The environment variable that names the file in which tests that could not run are listed.
///
/// `cargo xtask test` sets it. Each line of the file is the test's name, a tab and the reason.
///
/// ```
/// assert_eq!(haft_testkit::NOT_RUN_VAR, "HAFT_NOT_RUN");
/// ```
pub const NOT_RUN_VAR: &str = "HAFT_NOT_RUN";

/// Says that a test could not run on this machine, and why. The test returns right after it.
///
/// The line goes to the file that `HAFT_NOT_RUN` names or, when that is not set, to stderr. Call it at most once in a
/// test, before the test has checked anything: the test counts as not run, no longer as passed.
///
/// ```no_run
/// # // Not run: it would add a line to the list of the test run it is part of.
/// haft_testkit::not_run("jail::kills_grandchildren", "the kernel has no unprivileged user namespaces");
/// ```
///
/// # Panics
///
/// When the line cannot be written: the test must not count as passed, so it fails.
pub fn not_run(test: &str, reason: &str) {
    // Cargo and nextest both set this for the tests they start: two crates may have a test of the same name.
    let package = env::var("CARGO_PKG_NAME").ok();
    let line = line(package.as_deref(), test, reason);
    let Some(list) = env::var_os(NOT_RUN_VAR).filter(|path| !path.is_empty()) else {
        #[expect(
            clippy::print_stderr,
            reason = "without a list, the terminal is where the reason can be seen"
        )]
        {
            eprint!("not run: {}", line.replace('\t', ": "));
        }
        return;
    };
    if let Err(error) = append(Path::new(&list), &line) {
        #[expect(clippy::panic, reason = "a test that was not run and is not listed would count as passed")]
        {
            panic!("cannot list `{test}` as not run in {}: {error}", Path::new(&list).display());
        }
    }
}

fn line(package: Option<&str>, test: &str, reason: &str) -> String {
    let package = package.map(|package| format!("{package} ")).unwrap_or_default();
    format!("{package}{}\t{}\n", one_line(test), one_line(reason))
}

/// Tabs and line ends are what separates the records, so the text may not have them.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One write on a file opened for appending: lines of tests that run at the same time do not mix.
fn append(list: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(list)?;
    let written = file.write(line.as_bytes())?;
    if written == line.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, process, thread};

    #[test]
    fn a_record_is_one_line_with_one_tab() {
        assert_eq!(line(Some("haft-core"), "parses", "no data"), "haft-core parses\tno data\n");
        assert_eq!(line(None, "par\tses", " no\n  data\n"), "par ses\tno data\n");
    }

    #[test]
    fn lines_written_at_the_same_time_stay_whole() {
        let list = env::temp_dir().join(format!("haft-testkit-not-run-{}", process::id()));
        let expected = line(Some("haft-testkit"), "a test", &"a long reason ".repeat(40));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| append(&list, &expected).unwrap()));
            }
        });
        let written = fs::read_to_string(&list).unwrap();
        fs::remove_file(&list).unwrap();
        assert_eq!(written, expected.repeat(200));
    }

    #[test]
    fn a_list_that_cannot_be_written_is_an_error() {
        assert!(append(Path::new("/dev/null/list"), "a\tb\n").is_err());
    }
}

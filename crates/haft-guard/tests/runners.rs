//! Compilers, package managers and other programs that run others, by all of their names: what they run asks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_guard::policy::read_rules;

mod judge;
use judge::{Judge, holds};

const PROGRAMS: &str = "'ls', 'gcc', 'gcc-12', 'g++-12', 'cc', 'c99', 'clang-15', 'x86_64-linux-gnu-gcc', \
    'aarch64-linux-gnu-gcc-12', 'ld', 'rustc', 'python3.11', 'python3.13t', 'php8.2', 'node20', 'lua5.4', 'gsort', \
    'guniq', 'npm', 'npx', 'pnpm', 'pnpx', 'yarn', 'bun', 'bunx', 'uv', 'uvx', 'pipx', 'bundle', 'ccache', 'docker'";

#[test]
fn a_compiler_runs_no_program_that_the_line_names() {
    let table = include!("command_lines/compilers.in");
    assert!(table.len() >= 50, "{}", table.len());
    holds(&Judge::allowing(PROGRAMS), &table);
}

#[test]
fn a_package_manager_runs_no_program_that_the_line_names() {
    let table = include!("command_lines/packages.in");
    assert!(table.len() >= 90, "{}", table.len());
    holds(&Judge::allowing(PROGRAMS), &table);
}

/// Another name of a program is no way around what holds for it.
#[test]
fn a_program_is_known_by_its_other_names() {
    holds(
        &Judge::allowing(PROGRAMS),
        &[
            ("python3.11 x.py", "allow"),
            ("python3.11 -c 1", "ask"),
            ("echo 1 | python3.11 -v", "ask"),
            ("python3.13t -c 1", "ask"),
            ("php8.2 x.php", "allow"),
            ("php8.2 -r 1", "ask"),
            ("node20 x.js", "allow"),
            ("node20 -e 1", "ask"),
            ("lua5.4 -e 1", "ask"),
            ("gsort a", "allow"),
            ("gsort -o F a", "ask"),
            ("guniq a", "allow"),
            ("guniq a F", "ask"),
            ("gfind . -delete", "ask"),
            ("gfind . -exec rm {} ';'", "deny"),
            ("bash5 -c 'rm x'", "deny"),
            ("gtimeout 5 rm x", "deny"),
            ("gtimeout 5 ls", "ask"),
        ],
    );
    for program in ["perl5.36", "bash5", "busybox-static", "gtimeout", "genv"] {
        let rules = format!("[[rules]]\neffect = 'allow'\ncommand = '{program}'\n");
        assert!(read_rules(&rules, "/work").is_err(), "{program}");
    }
    assert!(
        read_rules("[[rules]]\neffect = 'allow'\ncommand = 'python3.11'\n", "/work").is_ok(),
        "the control"
    );
}

/// A rule that allows a program that reads does not allow the files that it can write on the side.
#[test]
fn a_program_writes_no_file_on_the_side() {
    let table = include!("command_lines/writes.in");
    assert!(table.len() >= 90, "{}", table.len());
    let programs = "'bat', 'cargo', 'cat', 'curl', 'file', 'git', 'go', 'iconv', 'less', 'man', 'python3', 'rsync', \
                    'tar', 'tree', 'xmllint', 'xxd', 'zip'";
    holds(&Judge::allowing(programs), &table);
}

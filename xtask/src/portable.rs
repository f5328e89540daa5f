//! `cargo xtask portable`: whether the crates that promise it compile for Windows and for macOS.
//!
//! `cargo check` needs the standard library of the target and nothing else: no linker, no SDK, no such machine.

use std::time::Instant;

use crate::debian_rust;
use crate::error::Error;
use crate::recap::{End, Outcome};
use crate::step;
use crate::workspace::Workspace;

/// The crates that compile on every system, by the name of their folder in `crates`.
const PACKAGES: [&str; 16] = [
    "haft-config",
    "haft-core",
    "haft-definition",
    "haft-dialect",
    "haft-engine",
    "haft-files",
    "haft-flow",
    "haft-gate",
    "haft-guard",
    "haft-http",
    "haft-jail",
    "haft-patch",
    "haft-schema",
    "haft-sdk",
    "haft-store",
    "haft-tools",
];

/// One target for each system that is not Linux.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-msvc", "aarch64-apple-darwin"];

/// The step by itself: what could not be checked is an error, as nothing else was asked for.
pub(crate) fn portable(workspace: &Workspace) -> Result<(), Error> {
    match check(workspace)? {
        End::Passed | End::Information(_) => Ok(()),
        End::Failed => Err(Error::NotPortable),
        End::NotRun(why) => Err(Error::NotRun(why)),
    }
}

/// The step as a part of a test run.
pub(crate) fn outcome(workspace: &Workspace) -> Result<Outcome, Error> {
    let started = Instant::now();
    let end = check(workspace)?;
    Ok(Outcome { name: "portable", took: started.elapsed(), end })
}

fn check(workspace: &Workspace) -> Result<End, Error> {
    let crates = workspace.root().join("crates");
    let (there, missing) = split(&PACKAGES, |name| crates.join(name).join("Cargo.toml").is_file());
    let (installed, foreign) = split(&TARGETS, |target| is_installed(workspace, target));
    let mut unchecked: Vec<String> =
        missing.iter().map(|name| format!("there is no crate `{name}`")).collect();
    let mut compiled = Compiled::Yes;

    if !installed.is_empty() {
        compiled = compiled.and(compile(workspace.cargo(), &installed, &there)?);
    }
    if !foreign.is_empty() {
        match debian_rust::rustc(workspace, &TARGETS) {
            Ok(rustc) => {
                let mut cargo = workspace.cargo();
                cargo.env("RUSTC", rustc);
                compiled = compiled.and(compile(cargo, &foreign, &there)?);
            }
            Err(why) => unchecked.push(no_standard_library(&foreign, &why)),
        }
    }
    Ok(end(compiled, &unchecked))
}

/// Whether everything that was tried compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiled {
    Yes,
    No,
}

impl Compiled {
    fn and(self, other: Self) -> Self {
        if self == Self::Yes { other } else { Self::No }
    }
}

fn split(names: &[&'static str], is_there: impl Fn(&str) -> bool) -> (Vec<&'static str>, Vec<&'static str>) {
    names.iter().copied().partition(|name| is_there(name))
}

/// Whether the toolchain of the workspace has the standard library of this target, however it was installed.
fn is_installed(workspace: &Workspace, target: &str) -> bool {
    let printed = workspace.command("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let Ok(printed) = printed else {
        return false;
    };
    let folder = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
    printed.status.success()
        && std::fs::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
        })
}

fn compile(mut cargo: std::process::Command, targets: &[&str], packages: &[&str]) -> Result<Compiled, Error> {
    cargo.args(arguments(targets, packages));
    step::announce("portable", &cargo);
    Ok(if step::run(&mut cargo)?.success() { Compiled::Yes } else { Compiled::No })
}

fn arguments<'a>(targets: &[&'a str], packages: &[&'a str]) -> Vec<&'a str> {
    let targets = targets.iter().flat_map(|target| ["--target", target]);
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    ["check", "--locked", "--keep-going"].into_iter().chain(targets).chain(packages).collect()
}

fn no_standard_library(targets: &[&str], why: &Error) -> String {
    let targets = targets.join(" ");
    format!(
        "no standard library for {targets}; `rustup target add {targets}` installs it \
         (without it, Debian's own Rust was tried: {why})"
    )
}

/// A crate that does not compile is a failure, whatever else could not be looked at.
fn end(compiled: Compiled, unchecked: &[String]) -> End {
    match compiled {
        Compiled::No => End::Failed,
        Compiled::Yes if unchecked.is_empty() => End::Passed,
        Compiled::Yes => End::NotRun(unchecked.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_does_not_compile_fails_whatever_else_was_not_looked_at() {
        let unchecked = ["no mirror".to_owned(), "no crate".to_owned()];
        assert_eq!(end(Compiled::Yes, &[]), End::Passed);
        assert_eq!(end(Compiled::Yes, &unchecked), End::NotRun("no mirror; no crate".to_owned()));
        assert_eq!(end(Compiled::No, &[]), End::Failed);
        assert_eq!(end(Compiled::No, &unchecked), End::Failed);
        for (first, second, both) in [
            (Compiled::Yes, Compiled::Yes, Compiled::Yes),
            (Compiled::Yes, Compiled::No, Compiled::No),
            (Compiled::No, Compiled::Yes, Compiled::No),
        ] {
            assert_eq!(first.and(second), both);
        }
    }

    #[test]
    fn every_target_and_package_is_named_to_cargo() {
        let line = arguments(&["windows", "mac"], &["a", "b"]).join(" ");
        assert_eq!(line, "check --locked --keep-going --target windows --target mac --package a --package b");
    }

    #[test]
    fn what_is_missing_says_what_to_install() {
        let why = no_standard_library(&TARGETS, &Error::NoDebianMirror);
        assert!(why.contains("`rustup target add x86_64-pc-windows-msvc aarch64-apple-darwin`"), "{why}");
        assert!(!why.contains('\n'), "the recap has one line for it: {why}");
    }

    #[test]
    fn the_target_of_this_program_is_installed_and_an_unknown_one_is_not() {
        let workspace = Workspace::of_this_program();
        let host = crate::fuzz::host(&workspace).unwrap();
        assert!(is_installed(&workspace, &host));
        assert!(!is_installed(&workspace, "surely-no-such-target"));
    }
}

//! The Debian packages that tests, benchmarks and fuzzing need, and how they get onto the machine.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::step;
use crate::workspace::Workspace;

/// What a package is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Test,
    Bench,
    Fuzz,
}

/// A program that has to be there, and the packages that bring it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    /// Looked for on the path; when it is there, nothing is installed.
    command: &'static str,
    /// Several where one alone would not do: recommended packages are not installed.
    debian: &'static [&'static str],
    need: Need,
    why: &'static str,
}

/// Add a line here when a test needs one more program.
const PACKAGES: &[Package] = &[
    Package {
        command: "cc",
        debian: &["gcc", "libc6-dev"],
        need: Need::Test,
        why: "links the test programs and compiles the C parts of crates",
    },
    Package { command: "curl", debian: &["curl"], need: Need::Test, why: "a client of the network gate" },
    Package {
        command: "python3",
        debian: &["python3"],
        need: Need::Test,
        why: "a client of the network gate",
    },
    Package {
        command: "openssl",
        debian: &["openssl"],
        need: Need::Test,
        why: "a TLS server behind the network gate",
    },
    Package {
        command: "rg",
        debian: &["ripgrep"],
        need: Need::Bench,
        why: "is what listing and searching are compared with",
    },
    Package {
        command: "pg_ctlcluster",
        debian: &["postgresql"],
        need: Need::Test,
        why: "brings the PostgreSQL server that the tests of the store start for themselves",
    },
    Package {
        command: "strace",
        debian: &["strace"],
        need: Need::Test,
        why: "lets writes to the disk fail, to see that nothing confirmed is lost",
    },
    Package {
        command: "tmux",
        debian: &["tmux"],
        need: Need::Test,
        why: "shows what a person at a terminal is asked",
    },
    Package { command: "runc", debian: &["runc"], need: Need::Test, why: "makes one of the jails" },
    Package {
        command: "crun",
        debian: &["crun"],
        need: Need::Test,
        why: "makes the same jail in another way",
    },
    Package { command: "runsc", debian: &["runsc"], need: Need::Test, why: "is one of the jails" },
    Package {
        command: "bwrap",
        debian: &["bubblewrap"],
        need: Need::Test,
        why: "is measured beside the jails",
    },
    Package {
        command: "valgrind",
        debian: &["valgrind"],
        need: Need::Test,
        why: "counts the instructions of a call",
    },
    Package { command: "c++", debian: &["g++"], need: Need::Fuzz, why: "compiles libFuzzer" },
];

/// Packages that are not there and could not be installed from here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingPackages(Vec<&'static Package>);

/// Installs what is missing, where that is possible without asking anybody for a password.
pub(crate) fn ensure(workspace: &Workspace, need: Need) -> Result<(), MissingPackages> {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing = missing(need, |command| is_on_path(&path, command));
    if missing.0.is_empty() {
        println!("nothing to install");
        return Ok(());
    }
    for package in &missing.0 {
        println!("missing: `{}`, which {}", package.command, package.why);
    }
    match apt_get(workspace, &path) {
        Some(apt) if install(workspace, apt, &missing) => Ok(()),
        Some(_) | None => Err(missing),
    }
}

fn missing(need: Need, is_there: impl Fn(&str) -> bool) -> MissingPackages {
    let needed = PACKAGES.iter().filter(|package| package.need == need);
    MissingPackages(needed.filter(|package| !is_there(package.command)).collect())
}

/// How `apt-get` can be called without a question being asked; `None` where it cannot.
fn apt_get(workspace: &Workspace, path: &OsStr) -> Option<&'static [&'static str]> {
    if !is_on_path(path, "apt-get") {
        return None;
    }
    let id = workspace.command("id").arg("-u").output().ok()?;
    if String::from_utf8_lossy(&id.stdout).trim() == "0" {
        return Some(&["apt-get"]);
    }
    let sudo = step::works(workspace.command("sudo").args(["-n", "true"]));
    sudo.then_some(&["sudo", "-n", "apt-get"])
}

/// A fresh machine has no package lists: when the first attempt fails they are fetched, and it is tried once more.
fn install(workspace: &Workspace, apt: &[&str], missing: &MissingPackages) -> bool {
    let run = |arguments: &[&str]| {
        let mut command = command(workspace, apt);
        command.args(arguments);
        step::announce("packages", &command);
        step::run(&mut command).is_ok_and(|status| status.success())
    };
    let names = missing.names();
    let install: Vec<&str> = INSTALL.iter().copied().chain(names.iter().copied()).collect();
    run(&install) || (run(&["update"]) && run(&install))
}

const INSTALL: [&str; 3] = ["install", "-y", "--no-install-recommends"];

fn command(workspace: &Workspace, words: &[&str]) -> Command {
    let (program, arguments) = words.split_first().unwrap_or((&"apt-get", &[]));
    let mut command = workspace.command(*program);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_on_path(path: &OsStr, command: &str) -> bool {
    env::split_paths(path).any(|folder| is_executable(&folder.join(command)))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

impl MissingPackages {
    fn names(&self) -> Vec<&'static str> {
        self.0.iter().flat_map(|package| package.debian).copied().collect()
    }
}

impl fmt::Display for MissingPackages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands: Vec<&str> = self.0.iter().map(|package| package.command).collect();
        write!(
            f,
            "not installed: {}\n  help: sudo apt-get {} {}",
            commands.join(", "),
            INSTALL.join(" "),
            self.names().join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_and_missing_is_named() {
        assert_eq!(missing(Need::Test, |_| true).0.len(), 0);
        let all = missing(Need::Test, |_| false);
        assert_eq!(
            all.names(),
            [
                "gcc",
                "libc6-dev",
                "curl",
                "python3",
                "openssl",
                "postgresql",
                "strace",
                "tmux",
                "runc",
                "crun",
                "runsc",
                "bubblewrap",
                "valgrind"
            ]
        );
        assert_eq!(missing(Need::Fuzz, |command| command == "cc").names(), ["g++"]);
    }

    #[test]
    fn the_line_to_type_is_complete() {
        let text = missing(Need::Fuzz, |_| false).to_string();
        assert_eq!(text, "not installed: c++\n  help: sudo apt-get install -y --no-install-recommends g++");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(is_on_path(OsStr::new("/nowhere:/usr/bin:/bin"), "sh"));
        assert!(!is_on_path(OsStr::new("/nowhere:/usr/bin:/bin"), "surely-no-such-program"));
        assert!(!is_on_path(OsStr::new("/"), "usr"), "a folder is not a program");
    }
}

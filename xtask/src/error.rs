//! What can go wrong, and how it is told.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use crate::packages::MissingPackages;

/// Why a command did not do its job.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line makes no sense.
    Usage(UsageError),
    /// A program could not be started.
    Start { program: String, source: io::Error },
    /// A program's output could not be passed on.
    Output(io::Error),
    /// A program ran and failed; what it printed says why.
    Failed { command: String, status: ExitStatus },
    /// Reading or writing a file or folder failed.
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A program printed something else than expected.
    Unexpected { command: &'static str, missing: &'static str },
    /// Debian packages are missing and cannot be installed from here.
    Packages(MissingPackages),
    /// The test run failed; its recap says where.
    TestsFailed,
    /// A crate does not compile for another system; what cargo printed says why.
    NotPortable,
    /// A check could not be carried out on this machine.
    NotRun(String),
    /// apt knows no mirror of Debian.
    NoDebianMirror,
    /// haft ended in a way that is not one of its own exit codes.
    HaftBroke(ExitStatus),
    /// A file of the repository is not where it should be.
    NoSuchFile(PathBuf),
    /// There is nothing to fuzz.
    NoFuzzTargets(PathBuf),
    /// Some fuzz targets failed; each said why.
    FuzzFailed(Vec<String>),
    /// Rules about secrets that cannot be turned into a line of the table.
    NoShape(Vec<String>),
}

/// What is wrong with the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    /// Neither a command nor an option of the command; `similar` is what may have been meant.
    Unknown { kind: &'static str, given: String, similar: Option<String> },
    /// An option without its value.
    NoValue { option: &'static str },
    /// An option with a value it cannot take.
    BadValue { option: &'static str, given: String, expected: &'static str },
    /// An argument that is not UTF-8.
    NotText(String),
}

impl Error {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Start { .. }
            | Self::Output(_)
            | Self::Failed { .. }
            | Self::File { .. }
            | Self::Unexpected { .. }
            | Self::Packages(_)
            | Self::TestsFailed
            | Self::NotPortable
            | Self::NotRun(_)
            | Self::NoDebianMirror
            | Self::HaftBroke(_)
            | Self::NoSuchFile(_)
            | Self::NoFuzzTargets(_)
            | Self::FuzzFailed(_)
            | Self::NoShape(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(error) => write!(f, "{error}\n  help: `cargo xtask help` lists commands and options"),
            Self::Start { program, source } => write!(f, "cannot start `{program}`: {source}"),
            Self::Output(source) => write!(f, "cannot pass on a program's output: {source}"),
            Self::Failed { command, status } => write!(f, "`{command}` failed ({status})"),
            Self::File { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
            Self::Unexpected { command, missing } => write!(f, "the output of `{command}` has no {missing}"),
            Self::Packages(missing) => missing.fmt(f),
            Self::TestsFailed => f.write_str("the test run failed"),
            Self::NotPortable => f.write_str("a crate does not compile for another system"),
            Self::NotRun(why) => write!(f, "not run: {why}"),
            Self::NoDebianMirror => f.write_str("apt has no mirror of Debian in its sources"),
            Self::HaftBroke(status) => {
                write!(f, "haft did not end as it should ({status})\n  help: what it printed above says more")
            }
            Self::NoSuchFile(path) => write!(f, "{} is missing", path.display()),
            Self::NoFuzzTargets(folder) => write!(
                f,
                "no fuzz targets in {}\n  help: fuzz/README.md says how to add one",
                folder.display()
            ),
            Self::FuzzFailed(targets) => write!(f, "fuzzing failed: {}", targets.join(", ")),
            Self::NoShape(rules) => write!(
                f,
                "no line can be made of the rules {}\n  help: write one for each into xtask/src/secrets/by_hand.txt, or name it in ELSEWHERE",
                rules.join(", ")
            ),
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { kind, given, similar } => {
                write!(f, "there is no {kind} `{given}`")?;
                match similar {
                    Some(similar) => write!(f, "; did you mean `{similar}`?"),
                    None => Ok(()),
                }
            }
            Self::NoValue { option } => write!(f, "`{option}` needs a value"),
            Self::BadValue { option, given, expected } => {
                write!(f, "`{option}` takes {expected}, not `{given}`")
            }
            Self::NotText(given) => write!(f, "the argument `{given}` is not UTF-8"),
        }
    }
}

impl From<UsageError> for Error {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

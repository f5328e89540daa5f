//! The command line, by hand: a parser library would be most of this program's build time.

use std::ffi::OsString;
use std::time::Duration;

use crate::error::{Error, UsageError};
use crate::suggest::nearest;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Run,
    Test(TestOptions),
    Portable,
    Conformance,
    Counts {
        /// Write the counts down.
        write: bool,
    },
    Bench,
    Soak,
    Fuzz(FuzzOptions),
    /// From the rules in this file, or where they usually are.
    Secrets(Option<String>),
}

/// How to test.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestOptions {
    /// Only what the inner loop needs.
    pub(crate) quick: bool,
    /// A test that could not run fails the run.
    pub(crate) strict: bool,
}

/// What to fuzz, and for how long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    /// One target; all of them when `None`.
    pub(crate) target: Option<String>,
    /// For each target.
    pub(crate) time: Duration,
}

const COMMANDS: [&str; 10] =
    ["run", "test", "portable", "conformance", "counts", "bench", "soak", "fuzz", "secrets", "help"];
const TEST_OPTIONS: [&str; 3] = ["--quick", "--strict", "--help"];
const FUZZ_OPTIONS: [&str; 2] = ["--seconds", "--help"];
const DEFAULT_FUZZ_TIME: Duration = Duration::from_secs(30);

/// Reads the arguments that follow `cargo xtask`.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Task, Error> {
    let mut words = Vec::new();
    for arg in args {
        words.push(arg.into_string().map_err(|arg| UsageError::NotText(arg.to_string_lossy().into_owned()))?);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(task(&words)?)
}

fn task(words: &[&str]) -> Result<Task, UsageError> {
    let Some((command, rest)) = words.split_first() else {
        return Ok(Task::Help);
    };
    if rest.iter().any(|word| is_help(word)) && COMMANDS.contains(command) {
        return Ok(Task::Help);
    }
    match *command {
        "help" | "-h" | "--help" => Ok(Task::Help),
        "run" => no_arguments(rest, Task::Run),
        "test" => test_options(rest).map(Task::Test),
        "portable" => no_arguments(rest, Task::Portable),
        "conformance" => no_arguments(rest, Task::Conformance),
        "counts" => match rest {
            ["--write"] => Ok(Task::Counts { write: true }),
            rest => no_arguments(rest, Task::Counts { write: false }),
        },
        "bench" => no_arguments(rest, Task::Bench),
        "soak" => no_arguments(rest, Task::Soak),
        "fuzz" => fuzz_options(rest).map(Task::Fuzz),
        "secrets" => match rest {
            [] => Ok(Task::Secrets(None)),
            [file] if !file.starts_with('-') => Ok(Task::Secrets(Some((*file).to_owned()))),
            [word, ..] => Err(unknown("option", word, &["--help"])),
        },
        other => Err(unknown("command", other, &COMMANDS)),
    }
}

fn is_help(word: &str) -> bool {
    matches!(word, "-h" | "--help")
}

fn no_arguments(rest: &[&str], task: Task) -> Result<Task, UsageError> {
    match rest.first() {
        None => Ok(task),
        Some(word) => Err(unknown("option", word, &["--help"])),
    }
}

fn test_options(rest: &[&str]) -> Result<TestOptions, UsageError> {
    let mut options = TestOptions::default();
    for word in rest {
        match *word {
            "--quick" => options.quick = true,
            "--strict" => options.strict = true,
            other => return Err(unknown("option", other, &TEST_OPTIONS)),
        }
    }
    Ok(options)
}

fn fuzz_options(rest: &[&str]) -> Result<FuzzOptions, UsageError> {
    let mut options = FuzzOptions { target: None, time: DEFAULT_FUZZ_TIME };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if *word == "--seconds" {
            options.time = seconds(words.next().ok_or(UsageError::NoValue { option: "--seconds" })?)?;
        } else if let Some(value) = word.strip_prefix("--seconds=") {
            options.time = seconds(value)?;
        } else if word.starts_with('-') {
            return Err(unknown("option", word, &FUZZ_OPTIONS));
        } else if options.target.is_some() {
            return Err(unknown("second target", word, &[]));
        } else {
            options.target = Some((*word).to_owned());
        }
    }
    Ok(options)
}

/// libFuzzer takes 0 for "for ever", which nobody means here.
fn seconds(value: &str) -> Result<Duration, UsageError> {
    match value.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        Ok(_) | Err(_) => Err(UsageError::BadValue {
            option: "--seconds",
            given: value.to_owned(),
            expected: "a whole number from 1 to 86400",
        }),
    }
}

fn unknown(kind: &'static str, given: &str, known: &[&str]) -> UsageError {
    let similar = nearest(given, known.iter().copied()).map(str::to_owned);
    UsageError::Unknown { kind, given: given.to_owned(), similar }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        task(&words).map_err(|error| error.to_string())
    }

    fn fuzz(target: Option<&str>, seconds: u64) -> Task {
        Task::Fuzz(FuzzOptions { target: target.map(str::to_owned), time: Duration::from_secs(seconds) })
    }

    #[test]
    fn what_is_understood() {
        for (line, expected) in [
            ("", Task::Help),
            ("help", Task::Help),
            ("--help", Task::Help),
            ("-h", Task::Help),
            ("test --help", Task::Help),
            ("run -h", Task::Help),
            ("run", Task::Run),
            ("portable", Task::Portable),
            ("conformance", Task::Conformance),
            ("counts", Task::Counts { write: false }),
            ("counts --write", Task::Counts { write: true }),
            ("bench", Task::Bench),
            ("soak", Task::Soak),
            ("test", Task::Test(TestOptions { quick: false, strict: false })),
            ("test --strict", Task::Test(TestOptions { quick: false, strict: true })),
            ("test --strict --quick", Task::Test(TestOptions { quick: true, strict: true })),
            ("fuzz", fuzz(None, 30)),
            ("fuzz sanitise", fuzz(Some("sanitise"), 30)),
            ("fuzz --seconds 5", fuzz(None, 5)),
            ("fuzz --seconds=5 definition", fuzz(Some("definition"), 5)),
        ] {
            assert_eq!(parsed(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_refused_and_how() {
        for (line, expected) in [
            ("tset", "there is no command `tset`; did you mean `test`?"),
            ("deploy", "there is no command `deploy`"),
            ("tset --help", "there is no command `tset`; did you mean `test`?"),
            ("test --quik", "there is no option `--quik`; did you mean `--quick`?"),
            ("test quick", "there is no option `quick`; did you mean `--quick`?"),
            ("run now", "there is no option `now`"),
            ("fuzz --second 3", "there is no option `--second`; did you mean `--seconds`?"),
            ("fuzz a b", "there is no second target `b`"),
            ("fuzz --seconds", "`--seconds` needs a value"),
            ("fuzz --seconds 0", "`--seconds` takes a whole number from 1 to 86400, not `0`"),
            ("fuzz --seconds=soon", "`--seconds` takes a whole number from 1 to 86400, not `soon`"),
        ] {
            assert_eq!(parsed(line), Err(expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn an_argument_that_is_not_text_is_refused() {
        use std::os::unix::ffi::OsStringExt as _;
        let error = parse([OsString::from_vec(vec![b't', 0xff])]).unwrap_err();
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }
}

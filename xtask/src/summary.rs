//! Reads how many tests passed out of what the test runners print.

use std::fmt;
use std::ops::Add;

/// How many tests ended which way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

/// The output of a test runner has no count that can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoCount {
    /// No summary line: the tests did not compile, or the runner was stopped.
    NoSummary,
    /// A summary line in a form that is not known here.
    Unreadable(String),
    /// The runner failed, but counts no failed test.
    FailedWithoutFailures,
}

/// A program that runs tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    Nextest,
    CargoTest,
}

impl Runner {
    /// The counts in the output of a run. Nextest reports on stderr, the standard harness on stdout.
    pub(crate) fn counts(self, stdout: &str, stderr: &str, succeeded: Succeeded) -> Result<Counts, NoCount> {
        let counts = match self {
            Self::Nextest => nextest(stderr)?,
            Self::CargoTest => cargo_test(stdout)?,
        };
        match succeeded {
            Succeeded::No if counts.failed == 0 => Err(NoCount::FailedWithoutFailures),
            Succeeded::No | Succeeded::Yes => Ok(counts),
        }
    }
}

/// Whether the runner itself said, with its exit code, that all went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Succeeded {
    Yes,
    No,
}

impl Counts {
    /// Tests that returned early because they could not run were counted as passed by the runner. They were not.
    pub(crate) fn without_not_run(self, not_run: usize) -> Self {
        let moved = not_run.min(self.passed);
        Self { passed: self.passed - moved, skipped: self.skipped + moved, ..self }
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl fmt::Display for NoCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSummary => f.write_str("the runner printed no summary"),
            Self::Unreadable(line) => write!(f, "the runner's summary cannot be read: {line}"),
            Self::FailedWithoutFailures => f.write_str("the runner failed without counting a failed test"),
        }
    }
}

/// Nextest closes with one line, as in
/// `Summary [   1.616s] 7 tests run: 6 passed (1 slow, 1 flaky), 1 timed out, 1 skipped`.
fn nextest(stderr: &str) -> Result<Counts, NoCount> {
    let stderr = without_colours(stderr);
    // The last one: a failing test may print such a line too, but before the runner does.
    let line =
        stderr.lines().rfind(|line| line.trim_start().starts_with("Summary [")).ok_or(NoCount::NoSummary)?;
    let unreadable = || NoCount::Unreadable(line.trim().to_owned());
    let (_, outcomes) =
        line.split_once(" tests run: ").or_else(|| line.split_once(" test run: ")).ok_or_else(unreadable)?;
    let mut counts = Counts::default();
    for outcome in without_parentheses(outcomes).split(',') {
        let (number, kind) = outcome.trim().split_once(' ').ok_or_else(unreadable)?;
        let number: usize = number.parse().map_err(|_| unreadable())?;
        match kind.trim() {
            "passed" => counts.passed += number,
            "failed" | "exec failed" | "timed out" => counts.failed += number,
            "skipped" => counts.skipped += number,
            _ => return Err(unreadable()),
        }
    }
    Ok(counts)
}

/// The standard harness prints one line for each test program, as in
/// `test result: ok. 6 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.11s`.
fn cargo_test(stdout: &str) -> Result<Counts, NoCount> {
    let stdout = without_colours(stdout);
    let mut total = None;
    for line in stdout.lines() {
        let Some(result) = line.strip_prefix("test result: ") else {
            continue;
        };
        let unreadable = || NoCount::Unreadable(line.to_owned());
        let (_, outcomes) = result.split_once(". ").ok_or_else(unreadable)?;
        let mut counts = Counts::default();
        for outcome in outcomes.split("; ").filter(|outcome| !outcome.starts_with("finished in")) {
            let (number, kind) = outcome.trim().split_once(' ').ok_or_else(unreadable)?;
            let number: usize = number.parse().map_err(|_| unreadable())?;
            match kind {
                "passed" | "measured" => counts.passed += number,
                "failed" => counts.failed += number,
                "ignored" | "filtered out" => counts.skipped += number,
                _ => return Err(unreadable()),
            }
        }
        total = Some(total.unwrap_or_default() + counts);
    }
    total.ok_or(NoCount::NoSummary)
}

/// The text without terminal colour sequences (`ESC [ … letter`).
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next() == Some('[') {
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        }
    }
    plain
}

/// What is in parentheses details the number before it, and would be counted twice.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOURED: &str = "\
\u{1b}[32;1m        PASS\u{1b}[0m [   0.005s] (7/7) \u{1b}[35;1msample\u{1b}[0m \u{1b}[36mtests\u{1b}[0m\u{1b}[36m::\u{1b}[0m\u{1b}[34;1mslow\u{1b}[0m
────────────
\u{1b}[32;1m     Summary\u{1b}[0m [   1.616s] \u{1b}[1m7\u{1b}[0m tests run: \u{1b}[1m7\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m (\u{1b}[1m1\u{1b}[0m \u{1b}[33;1mslow\u{1b}[0m, \u{1b}[1m1\u{1b}[0m \u{1b}[33;1mflaky\u{1b}[0m, \u{1b}[1m1\u{1b}[0m \u{1b}[33;1mleaky\u{1b}[0m), \u{1b}[1m1\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m
\u{1b}[33;1m   FLAKY 2/2\u{1b}[0m [   0.005s] (4/7) \u{1b}[35;1msample\u{1b}[0m \u{1b}[36mtests\u{1b}[0m\u{1b}[36m::\u{1b}[0m\u{1b}[34;1mflaky\u{1b}[0m
";

    fn counts(passed: usize, failed: usize, skipped: usize) -> Counts {
        Counts { passed, failed, skipped }
    }

    #[test]
    fn nextest_summaries() {
        for (output, expected) in [
            ("     Summary [   0.021s] 7 tests run: 7 passed, 1 skipped\n", counts(7, 0, 1)),
            ("     Summary [   0.005s] 1 test run: 1 passed, 7 skipped\n", counts(1, 0, 7)),
            ("     Summary [   0.004s] 1 test run: 1 passed, 0 skipped\n", counts(1, 0, 0)),
            ("     Summary [   0.000s] 0 tests run: 0 passed, 8 skipped\n", counts(0, 0, 8)),
            ("     Summary [   0.082s] 2/7 tests run: 1 passed, 1 failed, 1 skipped\n", counts(1, 1, 1)),
            ("     Summary [   6.019s] 7 tests run: 6 passed, 1 timed out, 1 skipped\n", counts(6, 1, 1)),
            (
                "     Summary [   1.100s] 9 tests run: 5 passed (2 slow), 2 failed (1 due to being leaky), 1 exec failed, 1 timed out, 0 skipped\n",
                counts(5, 4, 0),
            ),
            (
                "     Summary [   0.162s] 7 tests run: 5 passed, 2 failed, 1 skipped\n  TRY 2 ABRT [   0.005s] (1/7) sample tests::aborts\n  TRY 2 FAIL [   0.077s] (7/7) sample tests::fails\nerror: test run failed\n",
                counts(5, 2, 1),
            ),
            (
                "  stdout ───\n     Summary [   0.001s] 1 test run: 1 passed, 0 skipped\n────\n     Summary [   0.021s] 3 tests run: 2 passed, 1 failed, 0 skipped\n",
                counts(2, 1, 0),
            ),
            (COLOURED, counts(7, 0, 1)),
        ] {
            assert_eq!(nextest(output), Ok(expected), "{output}");
        }
    }

    #[test]
    fn cargo_test_summaries() {
        let one = "\
running 3 tests
test tests::ignored ... ignored
test tests::fails ... FAILED
test tests::passes ... ok

test result: FAILED. 6 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.11s

";
        let doc = "\
running 2 tests
test src/lib.rs - one (line 5) ... ignored
test src/lib.rs - one (line 2) ... ok

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

all doctests ran in 0.25s; merged doctests compilation took 0.24s
";
        assert_eq!(cargo_test(one), Ok(counts(6, 1, 1)));
        assert_eq!(cargo_test(doc), Ok(counts(1, 0, 1)));
        assert_eq!(cargo_test(&format!("{one}{doc}")), Ok(counts(7, 1, 2)));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_zero() {
        assert_eq!(nextest("error: could not compile `haft-core`\n"), Err(NoCount::NoSummary));
        assert_eq!(cargo_test("running 3 tests\n"), Err(NoCount::NoSummary));
        for line in [
            "Summary [   0.1s] 3 tests run: 2 passed, 1 vanished",
            "Summary [   0.1s] 3 tests run: many passed",
            "Summary [   0.1s] 3 trials run: 3 passed",
        ] {
            assert_eq!(nextest(line), Err(NoCount::Unreadable(line.to_owned())));
        }
        for line in ["test result: ok", "test result: ok. 3 passed; 1 vanished", "test result: ok. x passed"]
        {
            assert_eq!(cargo_test(line), Err(NoCount::Unreadable(line.to_owned())));
        }
    }

    #[test]
    fn a_failed_runner_without_failed_tests_gives_no_count() {
        let crashed =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let runner = Runner::CargoTest;
        assert_eq!(runner.counts(crashed, "", Succeeded::Yes), Ok(counts(2, 0, 0)));
        assert_eq!(runner.counts(crashed, "", Succeeded::No), Err(NoCount::FailedWithoutFailures));
    }

    #[test]
    fn tests_that_were_not_run_did_not_pass() {
        assert_eq!(counts(5, 1, 1).without_not_run(2), counts(3, 1, 3));
        assert_eq!(counts(1, 0, 0).without_not_run(2), counts(0, 0, 1));
        assert_eq!(counts(1, 2, 3).to_string(), "1 passed, 2 failed, 3 skipped");
    }
}

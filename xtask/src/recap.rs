//! The end of a test run: what took how long, what failed, what was not run, and the counts.

use std::fmt;
use std::time::Duration;

use crate::not_run::NotRun;
use crate::summary::{Counts, NoCount};

/// How one step of the run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    Failed,
    /// It could not be carried out, or not wholly, for this reason.
    NotRun(String),
    /// Neither: something a person should know.
    Information(&'static str),
}

/// One step of the run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) end: End,
}

/// All there is to say about a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) strict: bool,
    pub(crate) outcomes: Vec<Outcome>,
    /// What each test runner counted, by the name of its step.
    pub(crate) counts: Vec<(&'static str, Result<Counts, NoCount>)>,
    pub(crate) not_run: NotRun,
}

impl Report {
    pub(crate) fn succeeded(&self) -> bool {
        self.failures().is_empty()
    }

    /// What makes the run fail, in words.
    fn failures(&self) -> Vec<String> {
        let failed = self.outcomes.iter().filter(|outcome| outcome.end == End::Failed);
        let mut failures: Vec<String> = failed.map(|outcome| outcome.name.to_owned()).collect();
        for (name, counts) in &self.counts {
            if let Err(why) = counts {
                failures.push(format!("no count of the {name} ({why})"));
            }
        }
        let not_run = self.all_not_run().count();
        if self.strict && not_run > 0 {
            failures.push(format!("{not_run} not run, which --strict does not accept"));
        }
        failures
    }

    /// Steps, then tests; each with its reason.
    fn all_not_run(&self) -> impl Iterator<Item = (&str, &str)> {
        let steps = self.outcomes.iter().filter_map(|outcome| match &outcome.end {
            End::NotRun(reason) => Some((outcome.name, reason.as_str())),
            End::Passed | End::Failed | End::Information(_) => None,
        });
        steps.chain(self.not_run.iter())
    }

    /// The counts of all runners together; `None` when one of them is not known.
    fn total(&self) -> Option<Counts> {
        let known: Option<Vec<Counts>> = self.counts.iter().map(|(_, counts)| counts.clone().ok()).collect();
        let total = known?.into_iter().reduce(|sum, counts| sum + counts)?;
        Some(total.without_not_run(self.not_run.len()))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n==> recap")?;
        for Outcome { name, took, end } in &self.outcomes {
            let end = match end {
                End::Passed => "ok",
                End::Failed => "FAILED",
                End::NotRun(_) => "not run",
                End::Information(text) => text,
            };
            writeln!(f, "  {name:<10} {:>7.1} s  {end}", took.as_secs_f64())?;
        }
        writeln!(f, "not run: {}", self.all_not_run().count())?;
        for (name, reason) in self.all_not_run() {
            writeln!(f, "  {name}: {reason}")?;
        }
        let failures = self.failures();
        if !failures.is_empty() {
            writeln!(f, "failed: {}", failures.join("; "))?;
        }
        // Scripts look at the last line for the counts. Without a count there is no such line, rather than a wrong one.
        match self.total() {
            Some(counts) => writeln!(f, "{counts}"),
            None => writeln!(f, "no count of the tests"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &'static str, milliseconds: u64, end: End) -> Outcome {
        Outcome { name, took: Duration::from_millis(milliseconds), end }
    }

    fn good() -> Report {
        Report {
            strict: false,
            outcomes: vec![outcome("format", 1_234, End::Passed), outcome("tests", 123_400, End::Passed)],
            counts: vec![
                ("tests", Ok(Counts { passed: 10, failed: 0, skipped: 1 })),
                ("doc tests", Ok(Counts { passed: 5, failed: 0, skipped: 0 })),
            ],
            not_run: NotRun::default(),
        }
    }

    #[test]
    fn a_good_run_ends_with_the_counts() {
        let report = good();
        assert!(report.succeeded());
        let expected = "
==> recap
  format         1.2 s  ok
  tests        123.4 s  ok
not run: 0
15 passed, 0 failed, 1 skipped
";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn a_test_that_was_not_run_is_named_and_does_not_count_as_passed() {
        let report = Report { not_run: NotRun::parse("haft-core parses\tno data\n"), ..good() };
        assert!(report.succeeded());
        let text = report.to_string();
        assert!(
            text.ends_with("not run: 1\n  haft-core parses: no data\n14 passed, 0 failed, 2 skipped\n"),
            "{text}"
        );
    }

    #[test]
    fn with_strict_a_test_that_was_not_run_fails_the_run() {
        let report = Report { strict: true, not_run: NotRun::parse("a\tb\n"), ..good() };
        assert!(!report.succeeded());
        let text = report.to_string();
        assert!(text.contains("\nfailed: 1 not run, which --strict does not accept\n14 passed"), "{text}");
        assert!(Report { strict: true, ..good() }.succeeded());
    }

    #[test]
    fn a_step_that_was_not_run_is_named_and_takes_nothing_from_the_tests() {
        let mut report = Report { not_run: NotRun::parse("a\tb\n"), ..good() };
        report.outcomes.push(outcome("portable", 100, End::NotRun("no mirror".to_owned())));
        assert!(report.succeeded());
        let text = report.to_string();
        assert!(text.contains("\n  portable       0.1 s  not run\n"), "{text}");
        let end = "not run: 2\n  portable: no mirror\n  a: b\n14 passed, 0 failed, 2 skipped\n";
        assert!(text.ends_with(end), "{text}");
        report.strict = true;
        assert!(!report.succeeded());
        assert!(report.to_string().contains("\nfailed: 2 not run, which --strict"), "{report}");
    }

    #[test]
    fn failed_steps_are_named() {
        let mut report = good();
        report.outcomes.push(outcome("clippy", 5, End::Failed));
        report.outcomes.push(outcome("rustdoc", 5, End::Failed));
        report.outcomes.push(outcome("licences", 0, End::Information("not checked")));
        assert!(!report.succeeded());
        assert!(report.to_string().contains("\nfailed: clippy; rustdoc\n"), "{report}");
    }

    #[test]
    fn a_count_that_is_not_known_fails_the_run_and_is_not_printed() {
        let mut report = good();
        report.counts.push(("doc tests", Err(NoCount::NoSummary)));
        assert!(!report.succeeded());
        let text = report.to_string();
        assert!(text.ends_with("no count of the tests\n") && !text.contains(" passed, "), "{text}");
        let nothing = Report { counts: Vec::new(), ..good() };
        assert!(nothing.to_string().ends_with("no count of the tests\n"));
    }
}

//! The tests that could not run on this machine. They list themselves, through `haft-testkit`, in a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::error::Error;

/// The environment variable that tells the tests where the list is; `haft-testkit` has the other end.
pub(crate) const VARIABLE: &str = "HAFT_NOT_RUN";

/// An empty list for the tests to write to. The file goes away with this value.
#[derive(Debug)]
pub(crate) struct List {
    file: PathBuf,
}

/// The tests that did not run, by name, each with its reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NotRun(BTreeMap<String, String>);

impl List {
    /// A fresh file below the target folder; its own for each run, since two may go on at the same time.
    pub(crate) fn create(target: &Path) -> Result<Self, Error> {
        let folder = target.join("xtask");
        let failed = |path: &Path, source| Error::File { action: "create", path: path.to_owned(), source };
        fs::create_dir_all(&folder).map_err(|source| failed(&folder, source))?;
        let file = folder.join(format!("not-run-{}.txt", process::id()));
        fs::write(&file, "").map_err(|source| failed(&file, source))?;
        Ok(Self { file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// What the tests have listed so far. A list that is gone is an error: nobody would know what was not run.
    pub(crate) fn read(&self) -> Result<NotRun, Error> {
        let text = fs::read_to_string(&self.file);
        text.map(|text| NotRun::parse(&text)).map_err(|source| Error::File {
            action: "read",
            path: self.file.clone(),
            source,
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // A file left behind in the target folder harms nobody.
        let _ = fs::remove_file(&self.file);
    }
}

impl NotRun {
    /// Each line is a test's name, a tab and the reason. A test that was tried again is one test still.
    pub(crate) fn parse(text: &str) -> Self {
        let record = |line: &str| match line.split_once('\t') {
            Some((test, reason)) => (test.trim().to_owned(), reason.trim().to_owned()),
            None => (line.trim().to_owned(), "no reason given".to_owned()),
        };
        Self(text.lines().filter(|line| !line.trim().is_empty()).map(record).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Test and reason, in the order of the names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(test, reason)| (test.as_str(), reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    #[test]
    fn lines_are_read_and_a_test_counts_once() {
        let list = NotRun::parse(
            "haft-jail b\tno user namespaces\n\nhaft-core a\tno data\nhaft-jail b\tno user namespaces\nhaft-core c\n",
        );
        let expected = [
            ("haft-core a", "no data"),
            ("haft-core c", "no reason given"),
            ("haft-jail b", "no user namespaces"),
        ];
        assert_eq!(list.iter().collect::<Vec<_>>(), expected);
        assert_eq!(list.len(), 3);
        assert_eq!(NotRun::parse("").len(), 0);
    }

    #[test]
    fn the_list_starts_empty_and_is_gone_at_the_end() {
        let target = env::temp_dir().join(format!("xtask-not-run-{}", process::id()));
        let list = List::create(&target).unwrap();
        let file = list.path().to_owned();
        assert_eq!(list.read().unwrap(), NotRun::default());
        fs::write(&file, "a\tb\n").unwrap();
        assert_eq!(list.read().unwrap().len(), 1);
        fs::remove_file(&file).unwrap();
        assert!(list.read().is_err());
        drop(list);
        assert!(!file.exists());
        fs::remove_dir_all(target).unwrap();
    }
}

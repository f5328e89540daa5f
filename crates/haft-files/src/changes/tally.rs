//! How many records there are and of how many bytes, in a small file beside them: so that a change does not look at
//! every record to know whether an old one has to go.
//!
//! The file is an estimate. A process that dies between making a record and counting it leaves it one short; whoever
//! finds the limit reached, or the file unreadable, counts the records themselves and writes down what is true.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

/// A number of records, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Adds a record. `settle` is given the sum, or nothing where it is not known, and says what is written down.
pub(super) fn count(
    path: &Path,
    added: u64,
    settle: impl FnOnce(Option<Total>) -> io::Result<Total>,
) -> io::Result<()> {
    let mut file = super::record::private().read(true).create(true).truncate(false).open(path)?;
    // Others who count wait: it takes them some microseconds.
    file.lock()?;
    let known = read(&mut file)?.map(|total| Total {
        records: total.records.saturating_add(1),
        bytes: total.bytes.saturating_add(added),
    });
    let total = settle(known)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{:020} {:020}\n", total.records, total.bytes).as_bytes())
}

fn read(file: &mut File) -> io::Result<Option<Total>> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Ok(match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(records)), Some(Ok(bytes)), None) => Some(Total { records, bytes }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests say what they need")]
    use super::*;

    #[test]
    fn records_are_added_up_and_what_cannot_be_read_is_counted_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally");
        let mut seen = Vec::new();
        let mut add = |bytes| {
            count(&path, bytes, |known| {
                seen.push(known);
                Ok(known.unwrap_or(Total { records: 7, bytes: 100 }))
            })
            .unwrap();
        };
        add(5);
        add(6);
        std::fs::write(&path, "neither this").unwrap();
        add(1);
        assert_eq!(seen, [None, Some(Total { records: 8, bytes: 106 }), None]);
    }
}

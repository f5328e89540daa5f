//! Reading files and standard input, within bounds.

use super::{failure::Failure, words};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The most that is read from a file or from standard input.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Reads what the arguments name; standard input once.
#[derive(Debug, Default)]
pub(super) struct Input {
    stdin_is_read: bool,
}

impl Input {
    /// The text in a file; `-` stands for standard input.
    pub(super) fn text(&mut self, path: &Path, working_folder: &Path) -> Result<String, Failure> {
        if path.as_os_str() == "-" {
            return self.stdin();
        }
        let name = words::path(path);
        let unreadable = |reason| Failure::Unreadable { name: name.clone(), reason };
        let file = File::open(working_folder.join(path)).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        text_of(file, &name)
    }

    /// The text on standard input.
    pub(super) fn stdin(&mut self) -> Result<String, Failure> {
        if std::mem::replace(&mut self.stdin_is_read, true) {
            return Err(Failure::StdinTwice);
        }
        text_of(io::stdin().lock(), "standard input")
    }
}

fn text_of(reader: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|reason| Failure::Unreadable { name: name.to_owned(), reason })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::TooBig { name: name.to_owned(), limit: MAX_BYTES });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::NotText { name: name.to_owned(), line }
    })
}

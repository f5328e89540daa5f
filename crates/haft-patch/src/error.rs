//! What can be wrong with a patch, and how it is said.

use std::fmt;

use crate::nearest::Nearest;

/// Why a patch was refused. It was refused as a whole: no file is changed by a patch with an error.
///
/// ```
/// let error = haft_patch::parse("LP1\nF a.txt\nR2\nEND\n").unwrap_err();
/// assert_eq!(error.line, Some(3));
/// assert_eq!(
///     error.to_string(),
///     "patch line 3, file a.txt: Unknown LP1 operation `R2`\n  \
///      help: put a space between the letter and its argument: `R 2`"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// The kind, for programs.
    pub kind: PatchErrorKind,
    /// The line of the patch, counted from 1.
    pub line: Option<usize>,
    /// The file that the patch was about there.
    pub path: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The lines of the file that come closest to what was looked for.
    pub nearest: Option<Box<Nearest>>,
}

/// The kinds of [`PatchError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PatchErrorKind {
    /// The text is none of the three formats.
    UnknownFormat,
    /// The patch breaks the rules of its format.
    Syntax,
    /// The patch asks for something that haft does not do: binary content, links, copies.
    Unsupported,
    /// The patch is about a file that is not there.
    FileMissing,
    /// The patch would create a file that is there already.
    FileExists,
    /// The file is not UTF-8 text.
    NotUtf8,
    /// The file's line ends are mixed, or a carriage return stands alone.
    LineEnds,
    /// What the patch looks for is not in the file.
    NoMatch,
    /// What the patch looks for is in the file more than once.
    NotUnique,
    /// An occurrence or a line number is beyond the end.
    OutOfRange,
    /// Finding the places would take too long.
    TooMuchWork,
}

impl PatchError {
    pub(crate) fn new(kind: PatchErrorKind, line: usize, message: impl Into<String>) -> Self {
        Self { kind, line: Some(line), path: None, message: message.into(), help: None, nearest: None }
    }

    pub(crate) fn syntax(line: usize, message: impl Into<String>) -> Self {
        Self::new(PatchErrorKind::Syntax, line, message)
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub(crate) fn nearest(mut self, nearest: Option<Nearest>) -> Self {
        self.nearest = nearest.map(Box::new);
        self
    }

    #[must_use]
    pub(crate) fn in_file(mut self, path: &str) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.path) {
            (Some(line), Some(path)) => write!(f, "patch line {line}, file {path}: ")?,
            (Some(line), None) => write!(f, "patch line {line}: ")?,
            (None, Some(path)) => write!(f, "file {path}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "\n  nearest: {nearest}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PatchError {}

/// Why [`apply`](crate::apply) gave nothing back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError<E> {
    /// The patch does not fit the files.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A file could not be read; what the caller's function said.
    #[error("patch line {line}, file {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// The line of the patch that names it.
        line: usize,
        /// The reason.
        error: E,
    },
}

//! A file as LP1 sees it.

use crate::error::{PatchError, PatchErrorKind};
use crate::lines::utf8;
use crate::lp1::FinalNewline;

/// What ends the lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eol {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
}

impl Eol {
    fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
        }
    }
}

/// The lines of a file, whether the last one is ended, and by what.
///
/// ```
/// use haft_patch::lp1::{Eol, FileModel};
///
/// let file = FileModel::read(b"a\r\nb").unwrap();
/// assert_eq!((file.lines.len(), file.final_newline, file.eol), (2, false, Some(Eol::CrLf)));
/// assert_eq!(file.to_text(), "a\r\nb");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileModel {
    /// The lines without their ends.
    pub lines: Vec<String>,
    /// Whether the last line is ended; without lines it means nothing.
    pub final_newline: bool,
    /// What ends lines; `None` where none is ended, which then means LF.
    pub eol: Option<Eol>,
}

impl FileModel {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it is not UTF-8, mixes LF and CRLF, or has a carriage return that ends no line: an edit would have to
    /// guess, and would rewrite lines that nobody asked it to touch.
    pub fn read(bytes: &[u8]) -> Result<Self, PatchError> {
        Self::read_for(bytes, 1).map_err(|error| PatchError { line: None, ..error })
    }

    pub(super) fn read_for(bytes: &[u8], patch_line: usize) -> Result<Self, PatchError> {
        let refused = |message: String| {
            PatchError::new(PatchErrorKind::LineEnds, patch_line, message).help(
                "LP1 does not rewrite line ends; use the `*** Begin Patch` format, which keeps the end of each line, or make them uniform first",
            )
        };
        let text = utf8(bytes, patch_line)?;
        let mut file = Self { final_newline: text.ends_with('\n'), ..Self::default() };
        for (index, piece) in text.split_inclusive('\n').enumerate() {
            let number = index + 1;
            let (line, eol) = match (piece.strip_suffix("\r\n"), piece.strip_suffix('\n')) {
                (Some(line), _) => (line, Some(Eol::CrLf)),
                (None, Some(line)) => (line, Some(Eol::Lf)),
                (None, None) => (piece, None),
            };
            if line.contains('\r') {
                return Err(refused(format!("Bare CR in file, at its line {number}")));
            }
            match (file.eol, eol) {
                (Some(first), Some(this)) if first != this => {
                    return Err(refused(format!(
                        "Mixed EOL detected: the file begins with {}, and its line {number} ends with {}",
                        first.name(),
                        this.name()
                    )));
                }
                (None, Some(_)) => file.eol = eol,
                _ => {}
            }
            file.lines.push(line.to_owned());
        }
        Ok(file)
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let eol = self.eol.unwrap_or(Eol::Lf).text();
        let mut text = self.lines.join(eol);
        if self.final_newline && !self.lines.is_empty() {
            text.push_str(eol);
        }
        text
    }

    /// `N +` and `N -`.
    pub(super) fn set_final_newline(&mut self, wanted: FinalNewline) {
        match wanted {
            FinalNewline::With => {
                if self.lines.is_empty() {
                    self.lines.push(String::new());
                    self.eol.get_or_insert(Eol::Lf);
                }
                self.final_newline = true;
            }
            FinalNewline::Without => {
                if self.final_newline && matches!(self.lines.as_slice(), [only] if only.is_empty()) {
                    self.lines.clear();
                }
                self.final_newline = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_and_writing_is_the_same_text() {
        for text in ["", "a", "a\n", "a\nb", "\n", "\n\n", "a\r\n", "a\r\nb", "\r\n", "ä\n"] {
            let file = FileModel::read(text.as_bytes()).unwrap();
            assert_eq!(file.to_text(), text);
            assert_eq!(file.lines.is_empty(), text.is_empty());
            assert_eq!(file.final_newline, text.ends_with('\n'));
        }
    }

    #[test]
    fn what_it_refuses() {
        for (bytes, message) in [
            (&b"a\nb\r\n"[..], "Mixed EOL detected: the file begins with LF, and its line 2 ends with CRLF"),
            (b"a\r\nb\n", "Mixed EOL detected: the file begins with CRLF, and its line 2 ends with LF"),
            (b"a\rb", "Bare CR in file, at its line 1"),
            (b"a\r", "Bare CR in file, at its line 1"),
            (b"a\r\r\n", "Bare CR in file, at its line 1"),
            (b"a\n\xff", "Invalid UTF-8 in file, at byte 2"),
        ] {
            let error = FileModel::read(bytes).unwrap_err();
            assert_eq!(error.message, message);
            assert!(error.help.is_some());
        }
    }
}

//! Reading the envelope.

use crate::envelope::{Action, Change, Chunk};
use crate::error::PatchError;
use crate::lines::patch_lines;
use crate::patch::{FileAction, FileOperation, Format, Patch, excerpt, normal};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";

/// Whether a line opens an envelope. Space around a marker is no part of it.
pub(crate) fn is_begin(line: &str) -> bool {
    line.trim() == BEGIN
}

/// Reads an envelope.
///
/// # Errors
///
/// With the line of the patch and what was expected there.
///
/// ```
/// let patch = haft_patch::envelope::parse(
///     "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n",
/// )?;
/// assert_eq!(patch.paths()[0].path, "a.txt");
/// # Ok::<(), haft_patch::PatchError>(())
/// ```
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    let all = patch_lines(text);
    let body = body(&all)?;
    let mut reader = Reader::new(&all[..body.end], body.start);
    let mut operations = Vec::new();
    while reader.skip_blank() {
        operations.push(reader.file()?);
    }
    if operations.is_empty() {
        return Err(PatchError::syntax(body.start, "The patch changes no file")
            .help(format!("put `{ADD}`, `{UPDATE}` or `{DELETE}` and a path between the markers")));
    }
    Ok(Patch { format: Format::Envelope, operations, remarks: Vec::new() })
}

/// The lines between the markers. The end is the last line that is not blank: further up, the same words with a space
/// in front are a line of context.
fn body(lines: &[&str]) -> Result<std::ops::Range<usize>, PatchError> {
    let said = |line: &&str| !line.trim().is_empty();
    let Some(begin) = lines.iter().position(said).filter(|index| is_begin(lines[*index])) else {
        return Err(PatchError::syntax(1, format!("Expected `{BEGIN}` on the first line"))
            .help(format!("the patch stands between `{BEGIN}` and `{END}`, with nothing around them")));
    };
    let last = lines.iter().rposition(said).unwrap_or(begin);
    if last > begin && lines[last].trim() == END {
        return Ok(begin + 1..last);
    }
    let early = lines.iter().rposition(|line| line.trim_end() == END);
    Err(match early {
        Some(end) => PatchError::syntax(end + 2, format!("Expected nothing after `{END}`"))
            .help("one patch has one end; put all files before it"),
        None => PatchError::syntax(last + 1, format!("Expected `{END}` on the last line"))
            .help("without it the patch may have been cut; send all of it"),
    })
}

struct Reader<'a> {
    lines: &'a [&'a str],
    /// For each line, whether from it on only blank lines come before the next marker or the end.
    before_marker: Vec<bool>,
    next: usize,
}

impl<'a> Reader<'a> {
    fn new(lines: &'a [&'a str], next: usize) -> Self {
        let mut before_marker = vec![true; lines.len()];
        let mut following = true;
        for (line, before) in lines.iter().zip(&mut before_marker).rev() {
            following = line.starts_with("*** ") || (line.is_empty() && following);
            *before = following;
        }
        Self { lines, before_marker, next }
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    /// Goes on to a line that is not blank; false where there is none.
    fn skip_blank(&mut self) -> bool {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.next += 1;
        }
        self.next < self.lines.len()
    }

    /// Whether what belongs to a file ends here. Blank lines in front of a marker are there for the eye.
    fn at_marker(&self) -> bool {
        self.before_marker.get(self.next).is_none_or(|at_marker| *at_marker)
    }

    fn file(&mut self) -> Result<FileOperation, PatchError> {
        let raw = self.peek().unwrap_or_default();
        self.next += 1;
        let (number, line) = (self.next, raw.trim());
        let (path, action) = if let Some(path) = line.strip_prefix(ADD) {
            let path = path_of(path, number)?;
            let content = self.added().map_err(|error| error.in_file(&path))?;
            (path, Action::Add(content))
        } else if let Some(path) = line.strip_prefix(DELETE) {
            (path_of(path, number)?, Action::Delete)
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            let path = path_of(path, number)?;
            let move_to = self.move_to()?.filter(|to| *to != path);
            let chunks = self.chunks(number, move_to.is_some()).map_err(|error| error.in_file(&path))?;
            (path, Action::Update { chunks, move_to })
        } else {
            return Err(PatchError::syntax(
                number,
                format!("Expected a file header, found `{}`", excerpt(raw)),
            )
            .help(format!("a file begins with `{ADD} path`, `{UPDATE} path` or `{DELETE} path`")));
        };
        Ok(FileOperation { path, line: number, action: FileAction::Envelope(action) })
    }

    fn added(&mut self) -> Result<String, PatchError> {
        let mut content = String::new();
        while !self.at_marker() {
            let line = self.peek().unwrap_or_default();
            // A padded header cannot be content here: content begins with a plus.
            if line.trim_start().starts_with("*** ") {
                break;
            }
            self.next += 1;
            let Some(text) = line.strip_prefix('+') else {
                return Err(PatchError::syntax(
                    self.next,
                    format!("Expected a line that begins with `+`, found `{}`", excerpt(line)),
                )
                .help("every line of a new file begins with `+`, empty ones too"));
            };
            content.push_str(text);
            content.push('\n');
        }
        Ok(content)
    }

    fn move_to(&mut self) -> Result<Option<String>, PatchError> {
        let Some(to) = self.peek().and_then(|line| line.trim().strip_prefix(MOVE)) else {
            return Ok(None);
        };
        self.next += 1;
        path_of(to, self.next).map(Some)
    }

    fn chunks(&mut self, header: usize, moved: bool) -> Result<Vec<Chunk>, PatchError> {
        let mut chunks = Vec::new();
        while !self.at_marker() {
            chunks.push(self.chunk()?);
        }
        if chunks.is_empty() && !moved {
            return Err(PatchError::syntax(header, "The update has no changes")
                .help("add a line `@@`, then lines that begin with ` `, `-` or `+`"));
        }
        Ok(chunks)
    }

    fn chunk(&mut self) -> Result<Chunk, PatchError> {
        let mut chunk = Chunk { line: self.next + 1, ..Chunk::default() };
        while let Some(header) = self.peek().and_then(|line| line.trim_end().strip_prefix("@@")) {
            self.next += 1;
            chunk.headers.extend(header_text(header, self.next)?);
        }
        while let Some(line) = self.peek() {
            if line.starts_with("@@") || self.at_marker() {
                break;
            }
            self.next += 1;
            let change = match line.chars().next() {
                Some(' ') => Change::Keep(line[1..].to_owned()),
                Some('-') => Change::Remove(line[1..].to_owned()),
                Some('+') => Change::Add(line[1..].to_owned()),
                // The one space of an empty line of context is easily lost.
                None => Change::Keep(String::new()),
                Some(_) => {
                    return Err(PatchError::syntax(
                        self.next,
                        format!(
                            "Expected a line that begins with ` `, `-` or `+`, found `{}`",
                            excerpt(line)
                        ),
                    )
                    .help(
                        "a line of context begins with a space; a new place in the file begins with `@@`",
                    ));
                }
            };
            chunk.changes.push(change);
        }
        if self.peek().is_some_and(|line| line.trim_end() == END_OF_FILE) {
            self.next += 1;
            chunk.at_end = true;
        }
        if chunk.changes.is_empty() {
            return Err(PatchError::syntax(chunk.line, "The chunk has no lines")
                .help("after `@@` come lines that begin with ` `, `-` or `+`"));
        }
        Ok(chunk)
    }
}

fn header_text(header: &str, number: usize) -> Result<Option<String>, PatchError> {
    let text = header.strip_prefix(' ').unwrap_or(header);
    let looks_numbered = text.starts_with('-') && text.contains(" +") && text.contains("@@");
    if looks_numbered && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Err(PatchError::syntax(number, format!("Line numbers in an envelope: `@@{}`", excerpt(header))).help(
            "write `@@` alone, or `@@` and a line of the file; for line numbers send a unified diff without the markers",
        ));
    }
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}

fn path_of(text: &str, number: usize) -> Result<String, PatchError> {
    match text.trim() {
        "" => Err(PatchError::syntax(number, "Missing file path").help("name the file after the colon")),
        path => Ok(normal(path)),
    }
}

//! Reading LP1, strictly.

use crate::error::PatchError;
use crate::lines::patch_lines;
use crate::lp1::{Action, FinalNewline, Find, Operation, Section};
use crate::patch::{self, Patch};

/// Reads an LP1 patch.
///
/// # Errors
///
/// With the line of the patch and what was expected there.
///
/// ```
/// let patch = haft_patch::lp1::parse("LP1\nF a.txt\nT\nlast line\n.\nEND\n")?;
/// assert_eq!(patch.paths()[0].path, "a.txt");
/// # Ok::<(), haft_patch::PatchError>(())
/// ```
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    Ok(Patch::of_sections(parse_sections(text)?))
}

/// Reads an LP1 patch into its sections.
///
/// # Errors
///
/// With the line of the patch and what was expected there.
pub fn parse_sections(text: &str) -> Result<Vec<Section>, PatchError> {
    let lines = patch_lines(text);
    let mut reader = Reader { lines: &lines, next: 0 };
    reader.header()?;
    let mut sections: Vec<Section> = Vec::new();
    while let Some((number, line)) = reader.statement() {
        let (word, rest) = first_word(line);
        match (word, sections.last_mut()) {
            ("END", _) if rest.is_empty() => {
                reader.nothing_more()?;
                return Ok(sections);
            }
            ("F", _) => {
                sections.push(Section { path: path(rest, number)?, line: number, operations: Vec::new() });
            }
            (_, Some(section)) => {
                let action =
                    reader.operation(number, word, rest).map_err(|error| error.in_file(&section.path))?;
                section.operations.push(Operation { line: number, action });
            }
            (_, None) => {
                return Err(PatchError::syntax(
                    number,
                    format!("Expected file section (F <path>), found `{}`", patch::excerpt(line)),
                )
                .help("name the file first: `F path/to/file`"));
            }
        }
    }
    Err(PatchError::syntax(lines.len().max(1), "Missing END footer")
        .help("end the patch with a line that is `END`; without it the patch may have been cut"))
}

struct Reader<'a> {
    lines: &'a [&'a str],
    next: usize,
}

impl<'a> Reader<'a> {
    /// The next line that is neither blank nor a comment, with its number.
    fn statement(&mut self) -> Option<(usize, &'a str)> {
        while let Some(line) = self.lines.get(self.next) {
            self.next += 1;
            let line = trim(line);
            if !line.is_empty() && !line.starts_with('#') {
                return Some((self.next, line));
            }
        }
        None
    }

    fn header(&mut self) -> Result<(), PatchError> {
        match self.statement() {
            Some((_, "LP1")) => Ok(()),
            Some((number, line)) => Err(PatchError::syntax(
                number,
                format!("Invalid LP1 header: expected `LP1`, found `{}`", patch::excerpt(line)),
            )
            .help("the first line of the patch is `LP1` and nothing else")),
            None => Err(PatchError::syntax(1, "Missing LP1 header")
                .help("the first line of the patch is `LP1`, the last one `END`")),
        }
    }

    fn nothing_more(&mut self) -> Result<(), PatchError> {
        match self.statement() {
            None => Ok(()),
            Some((number, line)) => Err(PatchError::syntax(
                number,
                format!("Expected nothing after END, found `{}`", patch::excerpt(line)),
            )
            .help("one patch has one `END`; put all file sections before it")),
        }
    }

    fn operation(&mut self, number: usize, word: &str, rest: &str) -> Result<Action, PatchError> {
        Ok(match word {
            "R" => {
                let occurrence = occurrence(rest, number)?;
                let find = Find { lines: self.block(number, "find")?, occurrence };
                Action::Replace(find, self.block(number, "replacement")?)
            }
            "I" => {
                let occurrence = occurrence(rest, number)?;
                let find = Find { lines: self.block(number, "find")?, occurrence };
                Action::InsertAfter(find, self.block(number, "new")?)
            }
            "P" => {
                let occurrence = occurrence(rest, number)?;
                let find = Find { lines: self.block(number, "find")?, occurrence };
                Action::InsertBefore(find, self.block(number, "new")?)
            }
            "E" => {
                let occurrence = occurrence(rest, number)?;
                Action::Erase(Find { lines: self.block(number, "find")?, occurrence })
            }
            "T" | "B" if !rest.is_empty() => {
                return Err(PatchError::syntax(
                    number,
                    format!("`{word}` takes no argument, found `{}`", patch::excerpt(rest)),
                )
                .help(format!("write `{word}` alone; the new lines follow, then a line that is `.`")));
            }
            "T" => Action::Append(self.block(number, "new")?),
            "B" => Action::Prepend(self.block(number, "new")?),
            "N" => Action::FinalNewline(match rest {
                "+" => FinalNewline::With,
                "-" => FinalNewline::Without,
                _ => {
                    return Err(PatchError::syntax(
                        number,
                        format!("Invalid N flag; expected + or -, found `{}`", patch::excerpt(rest)),
                    )
                    .help("write `N +` for a newline at the end of the file, `N -` for none"));
                }
            }),
            _ => return Err(unknown(number, word)),
        })
    }

    /// The lines up to the one that is a dot.
    fn block(&mut self, operation: usize, what: &str) -> Result<Vec<String>, PatchError> {
        let mut content = Vec::new();
        while let Some(line) = self.lines.get(self.next) {
            self.next += 1;
            if let Some(after) = line.strip_prefix('.') {
                if trim(after).is_empty() {
                    return Ok(content);
                }
                if !after.starts_with('.') {
                    return Err(PatchError::syntax(
                        self.next,
                        format!("Dot-stuffed line must start with '..', found `{}`", patch::excerpt(line)),
                    )
                    .help("a content line that begins with a dot gets one more dot in front"));
                }
                content.push(after.to_owned());
            } else {
                content.push((*line).to_owned());
            }
            if line.contains('\r') {
                return Err(PatchError::syntax(self.next, "Carriage return within a line of a block")
                    .help("LP1 has lines that end with LF or CRLF; the file's own line ends are kept"));
            }
        }
        Err(PatchError::syntax(
            operation,
            format!("Unterminated LP1 block: the {what} block of this operation has no end"),
        )
        .help("end each block with a line that is `.` in the first column"))
    }
}

fn trim(line: &str) -> &str {
    line.trim_matches([' ', '\t'])
}

fn first_word(line: &str) -> (&str, &str) {
    match line.split_once([' ', '\t']) {
        Some((word, rest)) => (word, trim(rest)),
        None => (line, ""),
    }
}

fn occurrence(text: &str, number: usize) -> Result<Option<usize>, PatchError> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.bytes().all(|byte| byte == b'0') {
        return Err(PatchError::syntax(number, "Occurrence must be >= 1").help("the first occurrence is 1"));
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    match text.parse() {
        Ok(occurrence) if plain => Ok(Some(occurrence)),
        _ => Err(PatchError::syntax(number, format!("Invalid occurrence `{}`", patch::excerpt(text))).help(
            "write a whole number without sign and leading zero, as in `R 2`; the lines to find go below",
        )),
    }
}

fn path(text: &str, number: usize) -> Result<String, PatchError> {
    let after = |rest: &str| {
        PatchError::syntax(
            number,
            format!("Expected nothing after the path, found `{}`", patch::excerpt(trim(rest))),
        )
        .help("put a path with spaces in double quotes: `F \"my file.txt\"`")
    };
    let missing =
        || PatchError::syntax(number, "Missing file path").help("name the file after `F`: `F path/to/file`");
    let Some(quoted) = text.strip_prefix('"') else {
        return match text.split_once(|c: char| c.is_whitespace()) {
            _ if text.is_empty() => Err(missing()),
            Some((_, rest)) => Err(after(rest)),
            None if text.contains('"') => {
                Err(PatchError::syntax(number, "Invalid quoted path: `\"` within a bare path")
                    .help("quote the whole path, and write `\\\"` for a quotation mark in it"))
            }
            None => Ok(patch::normal(text)),
        };
    };
    let mut path = String::new();
    let mut rest = quoted.chars();
    loop {
        match rest.next() {
            Some('"') if !trim(rest.as_str()).is_empty() => return Err(after(rest.as_str())),
            Some('"') if path.is_empty() => return Err(missing()),
            Some('"') => return Ok(patch::normal(&path)),
            Some('\\') => match rest.next() {
                Some(c @ ('"' | '\\')) => path.push(c),
                _ => {
                    return Err(PatchError::syntax(number, "Invalid escape in quoted path")
                        .help("only `\\\"` and `\\\\` are escapes"));
                }
            },
            Some(c) => path.push(c),
            None => {
                return Err(PatchError::syntax(number, "Unterminated quoted path").help("close it with `\"`"));
            }
        }
    }
}

fn unknown(number: usize, word: &str) -> PatchError {
    let error = PatchError::syntax(number, format!("Unknown LP1 operation `{}`", patch::excerpt(word)));
    match word.split_at_checked(1) {
        Some((letter @ ("R" | "I" | "P" | "E" | "N" | "F"), argument)) => error.help(format!(
            "put a space between the letter and its argument: `{letter} {}`",
            patch::excerpt(argument)
        )),
        _ => error
            .help("operations are R, I, P, E, T, B and N; content stands in blocks that end with a line `.`"),
    }
}

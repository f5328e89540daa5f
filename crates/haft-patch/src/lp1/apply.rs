//! Carrying LP1 out on one file.

use crate::error::{PatchError, PatchErrorKind};
use crate::lines::{Work, find_runs};
use crate::lp1::{Action, FileModel, Find, Operation};
use crate::nearest::nearest;

/// Carries the operations of one section out. `None` as `before` is a file that does not exist.
///
/// # Errors
///
/// When the file cannot be edited by lines, or an operation finds nothing, or too much.
///
/// ```
/// use haft_patch::lp1::{apply_section, parse_sections};
///
/// let sections = parse_sections("LP1\nF a.txt\nE\nb\n.\nEND\n")?;
/// assert_eq!(apply_section(Some(b"a\nb\n"), &sections[0].operations)?, b"a\n");
/// # Ok::<(), haft_patch::PatchError>(())
/// ```
pub fn apply_section(before: Option<&[u8]>, operations: &[Operation]) -> Result<Vec<u8>, PatchError> {
    apply(before, operations, &mut Work::new())
}

pub(crate) fn apply(
    before: Option<&[u8]>,
    operations: &[Operation],
    work: &mut Work,
) -> Result<Vec<u8>, PatchError> {
    let first_line = operations.first().map_or(1, |operation| operation.line);
    let mut file = match before {
        Some(bytes) => FileModel::read_for(bytes, first_line)?,
        None => {
            may_create(operations)?;
            FileModel::default()
        }
    };
    for operation in operations {
        work.spend(Work::of(file.lines.len(), before.map_or(0, <[u8]>::len)), operation.line)?;
        carry_out(&mut file, operation)?;
    }
    Ok(file.to_text().into_bytes())
}

/// A file that does not exist can only be begun with lines at its ends.
fn may_create(operations: &[Operation]) -> Result<(), PatchError> {
    if let Some(operation) = operations.iter().find(|operation| operation.action.find().is_some()) {
        return Err(PatchError::new(
            PatchErrorKind::FileMissing,
            operation.line,
            "File does not exist for match-based operation",
        )
        .help("check the path; to create the file, use `T` with its lines"));
    }
    let begins = |operation: &Operation| matches!(operation.action, Action::Append(_) | Action::Prepend(_));
    match operations.first() {
        Some(first) if !operations.iter().any(begins) => {
            Err(PatchError::new(PatchErrorKind::FileMissing, first.line, "File does not exist")
                .help("check the path; to create the file, use `T` with its lines"))
        }
        _ => Ok(()),
    }
}

fn carry_out(file: &mut FileModel, operation: &Operation) -> Result<(), PatchError> {
    let end = file.lines.len();
    let (range, new): (_, &[String]) = match &operation.action {
        Action::Replace(find, new) => (place(file, find, operation.line)?, new),
        Action::InsertAfter(find, new) => {
            let found = place(file, find, operation.line)?;
            (found.end..found.end, new)
        }
        Action::InsertBefore(find, new) => {
            let found = place(file, find, operation.line)?;
            (found.start..found.start, new)
        }
        Action::Erase(find) => (place(file, find, operation.line)?, &[]),
        Action::Append(new) => (end..end, new),
        Action::Prepend(new) => (0..0, new),
        Action::FinalNewline(wanted) => {
            file.set_final_newline(*wanted);
            return Ok(());
        }
    };
    file.lines.splice(range, new.iter().cloned());
    Ok(())
}

/// The lines that an operation is about.
fn place(file: &FileModel, find: &Find, line: usize) -> Result<std::ops::Range<usize>, PatchError> {
    if find.lines.is_empty() {
        let last = file.lines.len() + 1;
        return match find.occurrence {
            Some(occurrence) if occurrence <= last => Ok(occurrence - 1..occurrence - 1),
            Some(occurrence) => Err(PatchError::new(
                PatchErrorKind::OutOfRange,
                line,
                format!("Occurrence out of range: there is no place before line {occurrence}"),
            )
            .help(format!("with an empty find block, 1 to {last} are possible here"))),
            None => Err(PatchError::syntax(line, "Empty match requires occurrence")
                .help("put the lines to find in the block, or say before which line: `P 3`")),
        };
    }
    let found = find_runs(&file.lines, &find.lines);
    let index = match (find.occurrence, found.len()) {
        (_, 0) => {
            return Err(PatchError::new(PatchErrorKind::NoMatch, line, "Match not found")
                .nearest(nearest(&file.lines.join("\n"), &find.lines.join("\n")))
                .help("find blocks match whole lines, character by character; copy them from the file as it is now"));
        }
        (None, 1) => 0,
        (None, _) => {
            return Err(PatchError::new(
                PatchErrorKind::NotUnique,
                line,
                format!("Match is not unique: found at {}", numbers(&found)),
            )
            .help("add lines around it to the find block, or say which one with a number, as in `R 2`"));
        }
        (Some(occurrence), count) if occurrence > count => {
            return Err(PatchError::new(
                PatchErrorKind::OutOfRange,
                line,
                format!("Occurrence out of range: {occurrence} of {count}; found at {}", numbers(&found)),
            )
            .help("operations see what the ones before them changed; count again"));
        }
        (Some(occurrence), _) => occurrence - 1,
    };
    Ok(found[index]..found[index] + find.lines.len())
}

/// `line 4`, `lines 1, 4, 9` or `lines 1, 4, 9, … (17 in all)`, counted from 1.
pub(crate) fn numbers(indices: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = indices.iter().take(SHOWN).map(|index| (index + 1).to_string()).collect();
    let all = if indices.len() > SHOWN { format!(", … ({} in all)", indices.len()) } else { String::new() };
    let word = if indices.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{all}", shown.join(", "))
}

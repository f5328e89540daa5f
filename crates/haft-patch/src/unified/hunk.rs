//! Reading hunks.

use crate::error::PatchError;
use crate::patch::excerpt;
use crate::unified::{Hunk, HunkLine, Side};

/// The numbers of `@@ -old_start,old +new_start,new @@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) old_start: usize,
    pub(super) old: usize,
    pub(super) new_start: usize,
    pub(super) new: usize,
}

pub(super) fn range(line: &str, number: usize) -> Result<Range, PatchError> {
    let parsed = (|| {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let (old_start, old) = start_and_count(old)?;
        let (new_start, new) = start_and_count(new)?;
        Some(Range { old_start, old, new_start, new })
    })();
    parsed.ok_or_else(|| {
        PatchError::syntax(number, format!("Invalid hunk header `{}`", excerpt(line))).help(
            "write `@@ -start,count +start,count @@` with the lines of the old and the new file; `-0,0` for a new file",
        )
    })
}

fn start_and_count(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let (start, count) = match text.split_once(',') {
        Some((start, count)) => (number(start)?, number(count)?),
        None => (number(text)?, 1),
    };
    // A hunk with lines has a first line.
    (start > 0 || count == 0).then_some((start, count))
}

/// Reads the hunk whose header is at `index`; gives it and the index behind it.
pub(super) fn read(lines: &[&str], index: usize) -> Result<(Hunk, usize), PatchError> {
    let range = range(lines[index], index + 1)?;
    let (mut old, mut new) = (range.old, range.new);
    let mut hunk = Hunk { line: index + 1, old_start: range.old_start, lines: Vec::new() };
    let mut next = index + 1;
    let wrong = || counts_differ(lines, index, range);
    while old > 0 || new > 0 {
        let line = *lines.get(next).ok_or_else(wrong)?;
        next += 1;
        let (side, text) = match line.split_at_checked(1) {
            Some((" ", text)) => (Side::Both, text),
            Some(("-", text)) => (Side::Old, text),
            Some(("+", text)) => (Side::New, text),
            Some(("\\", _)) => {
                unend(&mut hunk, next)?;
                continue;
            }
            // The one space of an empty line of context is easily lost on the way.
            None | Some(("\r", "")) => (Side::Both, line),
            Some(_) => return Err(wrong()),
        };
        let left = |count: usize| count.checked_sub(1).ok_or_else(wrong);
        if side != Side::New {
            old = left(old)?;
        }
        if side != Side::Old {
            new = left(new)?;
        }
        hunk.lines.push(HunkLine { side, text: format!("{text}\n") });
    }
    if lines.get(next).is_some_and(|line| line.starts_with('\\')) {
        next += 1;
        unend(&mut hunk, next)?;
    }
    // What looks like a line of the hunk, but is one too many for its header, must not be dropped.
    match lines.get(next) {
        Some(line) if is_body(line) && !is_signature(line) && !starts_file(lines, next) => Err(wrong()),
        _ => Ok((hunk, next)),
    }
}

/// `\ No newline at end of file`: the line before it has no end.
fn unend(hunk: &mut Hunk, number: usize) -> Result<(), PatchError> {
    match hunk.lines.last_mut() {
        Some(line) if line.text.ends_with('\n') => {
            line.text.pop();
            Ok(())
        }
        _ => Err(PatchError::syntax(number, "`\\ No newline at end of file` follows no line")),
    }
}

fn is_body(line: &str) -> bool {
    line.starts_with(['+', '-', ' ', '\\']) && !line.trim().is_empty()
}

/// The line with which a mail's signature begins.
fn is_signature(line: &str) -> bool {
    matches!(line.trim_end(), "--")
}

pub(super) fn starts_file(lines: &[&str], index: usize) -> bool {
    let begins = |index: usize, with: &str| lines.get(index).is_some_and(|line| line.starts_with(with));
    begins(index, "diff ") || begins(index, "--- ") && begins(index + 1, "+++ ")
}

/// Says what the header would have to be for the lines that follow it.
fn counts_differ(lines: &[&str], index: usize, range: Range) -> PatchError {
    let (mut old, mut new) = (0, 0);
    let mut next = index + 1;
    while let Some(line) = lines.get(next) {
        if starts_file(lines, next) || is_signature(line) {
            break;
        }
        match line.bytes().next() {
            Some(b' ') => (old, new) = (old + 1, new + 1),
            Some(b'-') => old += 1,
            Some(b'+') => new += 1,
            Some(b'\\') => {}
            // An empty line is context within the hunk, and nothing behind it.
            None if old < range.old && new < range.new => (old, new) = (old + 1, new + 1),
            _ => break,
        }
        next += 1;
    }
    let error = PatchError::syntax(
        index + 1,
        format!(
            "The hunk's header says {} old and {} new lines, but {old} old and {new} new ones follow",
            range.old, range.new
        ),
    );
    if (old, new) == (range.old, range.new) {
        return error.help(format!("line {} does not belong to the hunk", next + 1));
    }
    error.help(format!(
        "if the lines are complete, the header is `@@ -{},{old} +{},{new} @@`; lines of context begin with a space",
        range.old_start, range.new_start
    ))
}

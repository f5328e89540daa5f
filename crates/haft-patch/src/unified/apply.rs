//! Carrying the hunks of a unified diff out on one file.

use crate::error::{PatchError, PatchErrorKind};
use crate::lines::{Line, LoneCr, Work, find_runs, split, usual_end, utf8};
use crate::lp1::numbers;
use crate::nearest::nearest;
use crate::unified::{Hunk, Side};

/// The file after the hunks, and what a person should know about how they were placed.
pub(crate) fn apply(
    before: &[u8],
    hunks: &[Hunk],
    work: &mut Work,
) -> Result<(Vec<u8>, Vec<String>), PatchError> {
    let Some(first) = hunks.first() else {
        return Ok((before.to_vec(), Vec::new()));
    };
    let text = utf8(before, first.line)?;
    let whole: Vec<&str> = text.split_inclusive('\n').collect();
    let lines = split(text, LoneCr::IsContent);
    let usual = usual_end(&lines);
    let mut result = Lines { text: String::with_capacity(text.len()), ended: true };
    let mut notes = Vec::new();
    let (mut next, mut drift) = (0, 0_isize);
    for (index, hunk) in hunks.iter().enumerate() {
        work.spend(Work::of(lines.len(), text.len()).saturating_mul(2), hunk.line)?;
        let stated = stated(hunk);
        let expected = stated.saturating_add_signed(drift);
        let (at, matched) = place(&whole, &lines, next, expected, hunk)?;
        let offset = at.cast_signed() - stated.cast_signed();
        if offset != drift {
            notes.push(format!("hunk {} (patch line {}) {}", index + 1, hunk.line, described(at, offset)));
        }
        drift = offset;
        for line in &whole[next..at] {
            result.push(line, hunk.line)?;
        }
        next = at + hunk.old().count();
        match matched {
            Matched::Exactly => {
                for line in hunk.new_lines() {
                    result.push(line, hunk.line)?;
                }
            }
            Matched::ButForLineEnds => {
                result.push_keeping_ends(hunk, &lines[at..next], next == lines.len(), usual)?
            }
        }
    }
    for line in &whole[next..] {
        result.push(line, hunks[hunks.len() - 1].line)?;
    }
    Ok((result.text.into_bytes(), notes))
}

/// The index that the hunk's header states. A hunk without old lines goes after the line that it states.
fn stated(hunk: &Hunk) -> usize {
    if hunk.old().next().is_none() { hunk.old_start } else { hunk.old_start.saturating_sub(1) }
}

fn described(at: usize, offset: isize) -> String {
    let (count, direction) = (offset.unsigned_abs(), if offset > 0 { "below" } else { "above" });
    match count {
        0 => format!("applied at line {}, as stated", at + 1),
        1 => format!("applied at line {}, 1 line {direction} the stated one", at + 1),
        _ => format!("applied at line {}, {count} lines {direction} the stated one", at + 1),
    }
}

/// How a hunk's lines are like the file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matched {
    Exactly,
    ButForLineEnds,
}

fn place(
    whole: &[&str],
    lines: &[Line<'_>],
    from: usize,
    expected: usize,
    hunk: &Hunk,
) -> Result<(usize, Matched), PatchError> {
    let old: Vec<&str> = hunk.old().collect();
    if old.is_empty() {
        // Nothing to look for, so the stated line is all there is.
        return if (from..=whole.len()).contains(&expected) {
            Ok((expected, Matched::Exactly))
        } else {
            Err(PatchError::new(
                PatchErrorKind::OutOfRange,
                hunk.line,
                format!("The hunk adds lines after line {expected}, but the file has {} lines", whole.len()),
            )
            .help("hunks stand in the order of the file; give the hunk lines of context"))
        };
    }
    if let Some(at) = nearest_run(find_runs(whole, &old), from, expected, hunk)? {
        return Ok((at, Matched::Exactly));
    }
    if let Some(texts) = texts_without_ends(hunk) {
        let mut found = find_runs(lines, &texts);
        if hunk.lines.iter().any(|line| !line.text.ends_with('\n')) {
            // What the patch says about the end of the file holds at the end only.
            found.retain(|at| at + texts.len() == lines.len());
        }
        if let Some(at) = nearest_run(found, from, expected, hunk)? {
            return Ok((at, Matched::ButForLineEnds));
        }
    }
    Err(not_found(whole, from, hunk, &old))
}

/// The place that is nearest to the expected one. Two that are equally near are no answer.
fn nearest_run(
    found: Vec<usize>,
    from: usize,
    expected: usize,
    hunk: &Hunk,
) -> Result<Option<usize>, PatchError> {
    let found: Vec<usize> = found.into_iter().filter(|at| *at >= from).collect();
    let Some(best) = found.iter().copied().min_by_key(|at| at.abs_diff(expected)) else {
        return Ok(None);
    };
    let equally = found.iter().filter(|at| at.abs_diff(expected) == best.abs_diff(expected)).count();
    if equally > 1 {
        return Err(PatchError::new(
            PatchErrorKind::NotUnique,
            hunk.line,
            format!(
                "Match is not unique: found at {}, two of them equally near to the stated one",
                numbers(&found)
            ),
        )
        .help("correct the line numbers of the hunk, or add lines of context"));
    }
    Ok(Some(best))
}

/// The old lines without their ends; `None` where the hunk changes line ends, for then they matter.
fn texts_without_ends(hunk: &Hunk) -> Option<Vec<&str>> {
    let body = |text: &str| -> bool { text.trim_end_matches('\n').ends_with('\r') };
    let mut ended = hunk.lines.iter().filter(|line| line.text.ends_with('\n')).map(|line| body(&line.text));
    let first = ended.next();
    if ended.any(|cr| Some(cr) != first) {
        return None;
    }
    Some(hunk.old().map(without_end).collect())
}

fn without_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// A text that grows by lines. Only its last line may lack an end.
struct Lines {
    text: String,
    ended: bool,
}

impl Lines {
    fn push(&mut self, line: &str, patch_line: usize) -> Result<(), PatchError> {
        if !self.ended {
            return Err(PatchError::syntax(
                patch_line,
                "A line without newline is not the last one of the file",
            )
            .help("`\\ No newline at end of file` stands after the last line of the file only"));
        }
        self.text.push_str(line);
        self.ended = line.ends_with('\n');
        Ok(())
    }

    /// Adds the hunk's new lines; those that stay keep their ends, those that come get the usual one.
    fn push_keeping_ends(
        &mut self,
        hunk: &Hunk,
        old: &[Line<'_>],
        at_end: bool,
        usual: &str,
    ) -> Result<(), PatchError> {
        let was_ended = old.last().is_none_or(|line| !line.end.is_empty());
        let says = hunk.lines.iter().any(|line| !line.text.ends_with('\n'));
        let last_new = hunk.new_lines().last().is_none_or(|text| text.ends_with('\n'));
        let stays_unended = at_end && if says { !last_new } else { !was_ended };
        let mut old = old.iter();
        let mut new: Vec<(&str, &str)> = Vec::new();
        for line in &hunk.lines {
            match line.side {
                Side::Old => drop(old.next()),
                Side::New => new.push((without_end(&line.text), usual)),
                Side::Both => {
                    let end =
                        old.next().map_or(usual, |line| if line.end.is_empty() { usual } else { line.end });
                    new.push((without_end(&line.text), end));
                }
            }
        }
        if stays_unended && let Some(last) = new.last_mut() {
            last.1 = "";
        }
        for (text, end) in new {
            self.push(&format!("{text}{end}"), hunk.line)?;
        }
        Ok(())
    }
}

fn not_found(whole: &[&str], from: usize, hunk: &Hunk, old: &[&str]) -> PatchError {
    let error = PatchError::new(PatchErrorKind::NoMatch, hunk.line, "Match not found");
    let earlier = find_runs(whole, old);
    if !earlier.is_empty() {
        return PatchError {
            message: format!(
                "Match not found from line {} on, but above it, at {}",
                from + 1,
                numbers(&earlier)
            ),
            ..error
        }
        .help("put the hunks of a file in the order of its lines");
    }
    error
        .nearest(nearest(&whole.concat(), &old.concat()))
        .help("every line of context and every removed line must be in the file; make the diff from the file as it is now")
}

//! Carrying an envelope's update out on one file.

use crate::envelope::{Change, Chunk};
use crate::error::{PatchError, PatchErrorKind};
use crate::lines::{Line, LoneCr, Work, find_runs, split, usual_end, utf8};
use crate::lp1::numbers;
use crate::nearest::nearest;

pub(crate) fn apply(before: &[u8], chunks: &[Chunk], work: &mut Work) -> Result<Vec<u8>, PatchError> {
    let Some(first) = chunks.first() else {
        return Ok(before.to_vec());
    };
    let text = utf8(before, first.line)?;
    let lines = split(text, lone_cr(chunks));
    let end = usual_end(&lines);
    let mut result: Vec<Line<'_>> = Vec::with_capacity(lines.len());
    let mut next = 0;
    for chunk in chunks {
        work.spend(Work::of(lines.len(), text.len()).saturating_mul(chunk.headers.len() + 1), chunk.line)?;
        let start = place(&lines, next, chunk)?;
        result.extend(&lines[next..start]);
        next = start;
        for change in &chunk.changes {
            match change {
                Change::Keep(_) => {
                    result.extend(lines.get(next));
                    next += 1;
                }
                Change::Remove(_) => next += 1,
                Change::Add(text) => result.push(Line { text, end }),
            }
        }
    }
    result.extend(&lines[next..]);
    Ok(joined(&result, end, lines.last().is_none_or(|line| !line.end.is_empty())).into_bytes())
}

/// Some files end lines with a carriage return alone. Where the patch has one within a line, it is content.
fn lone_cr(chunks: &[Chunk]) -> LoneCr {
    let has_cr = |change: &Change| match change {
        Change::Keep(line) | Change::Remove(line) | Change::Add(line) => line.contains('\r'),
    };
    let within = chunks.iter().flat_map(|chunk| &chunk.changes).any(has_cr);
    if within { LoneCr::IsContent } else { LoneCr::EndsLine }
}

fn joined(lines: &[Line<'_>], usual: &str, final_newline: bool) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 2).sum());
    for (index, line) in lines.iter().enumerate() {
        text.push_str(line.text);
        let last = index + 1 == lines.len();
        if !last || final_newline {
            text.push_str(if line.end.is_empty() { usual } else { line.end });
        }
    }
    text
}

/// The line before which the chunk begins.
fn place(lines: &[Line<'_>], from: usize, chunk: &Chunk) -> Result<usize, PatchError> {
    let old = chunk.old();
    let below = below_headers(lines, from, chunk)?;
    if old.is_empty() {
        return Ok(match below {
            Some(header) if !chunk.at_end => header + 1,
            _ => lines.len(),
        });
    }
    let search_from = below.unwrap_or(from);
    let mut found: Vec<usize> =
        find_runs(&lines[search_from..], &old).iter().map(|at| at + search_from).collect();
    if chunk.at_end {
        found.retain(|at| at + old.len() == lines.len());
    }
    match (found.as_slice(), below) {
        ([], _) => Err(not_found(lines, search_from, chunk, &old)),
        // Below a header, the first place is meant.
        ([at], _) | ([at, ..], Some(_)) => Ok(*at),
        (several, None) => Err(PatchError::new(
            PatchErrorKind::NotUnique,
            chunk.line,
            format!("Match is not unique: found at {}", numbers(several)),
        )
        .help("add lines of context, or a line `@@` with a line of the file that stands above, such as a function's")),
    }
}

/// The line that the last of the chunk's headers is about.
fn below_headers(lines: &[Line<'_>], from: usize, chunk: &Chunk) -> Result<Option<usize>, PatchError> {
    let mut below = None;
    for header in &chunk.headers {
        let start = below.map_or(from, |at: usize| at + 1);
        let exact = |line: &&Line<'_>| line.text == header;
        // A header only shows the way, so its indentation may be left out.
        let alike = |line: &&Line<'_>| line.text.trim() == header.trim();
        let rest = &lines[start..];
        let found: Vec<usize> = match rest.iter().any(|line| exact(&line)) {
            true => places(rest, exact),
            false => places(rest, alike),
        };
        below = Some(match (found.as_slice(), below) {
            ([], _) => {
                return Err(PatchError::new(
                    PatchErrorKind::NoMatch,
                    chunk.line,
                    format!("Match not found for the header `@@ {header}`"),
                )
                .nearest(nearest(&text_of(lines), header))
                .help(
                    "after `@@` stands a whole line of the file, below the chunk before it; or leave it out",
                ));
            }
            // The first header chooses among all lines; one within another chooses the first.
            ([at], _) | ([at, ..], Some(_)) => start + at,
            (several, None) => {
                let all: Vec<usize> = several.iter().map(|at| at + start).collect();
                return Err(PatchError::new(
                    PatchErrorKind::NotUnique,
                    chunk.line,
                    format!("Match is not unique for the header `@@ {header}`: found at {}", numbers(&all)),
                )
                .help("put another `@@` line above it that tells them apart, or use more context instead"));
            }
        });
    }
    Ok(below)
}

fn places(lines: &[Line<'_>], is_it: impl Fn(&&Line<'_>) -> bool) -> Vec<usize> {
    lines.iter().enumerate().filter(|(_, line)| is_it(line)).map(|(index, _)| index).collect()
}

fn not_found(lines: &[Line<'_>], from: usize, chunk: &Chunk, old: &[&str]) -> PatchError {
    let error = PatchError::new(PatchErrorKind::NoMatch, chunk.line, "Match not found");
    let elsewhere = find_runs(lines, old);
    match elsewhere.as_slice() {
        [] => error
            .nearest(nearest(&text_of(lines), &old.join("\n")))
            .help("context and removed lines match whole lines, character by character; copy them from the file as it is now"),
        found if chunk.at_end => PatchError {
            message: format!("Match not found at the end of the file, but at {}", numbers(found)),
            ..error
        }
        .help("leave out `*** End of File`, or add the lines up to the end"),
        found => PatchError {
            message: format!(
                "Match not found from line {} on, but above it, at {}",
                from + 1,
                numbers(found)
            ),
            ..error
        }
        .help("put the chunks of a file in the order of its lines; a `@@` line stands above what it leads to"),
    }
}

fn text_of(lines: &[Line<'_>]) -> String {
    lines.iter().flat_map(|line| [line.text, "\n"]).collect()
}

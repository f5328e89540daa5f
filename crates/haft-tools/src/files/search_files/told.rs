//! What a model reads of a search.

use super::{super::below_note, Hit, SearchFilesArgs, Searched};
use haft_core::text::one_line;
use std::fmt::Write as _;

/// The matches as lines `path:line:text`, with context as `path-line-text`.
pub(super) fn told(args: &SearchFilesArgs, found: &Searched) -> String {
    let mut text = String::new();
    let mut last: Option<(&str, u64)> = None;
    for hit in &found.matches {
        let first = hit.line.saturating_sub(hit.before.len() as u64);
        let goes_on = last.is_some_and(|(path, line)| path == hit.path && line + 1 >= first);
        if args.before + args.after > 0 && last.is_some() && !goes_on {
            text.push_str("--\n");
        }
        last = Some((&hit.path, write_hit(&mut text, hit, first)));
    }
    if found.matches.is_empty() {
        text = nothing(args, found);
    } else {
        text.pop();
    }
    if found.truncated {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[truncated at {} matches; narrow the pattern, path or include, or set max_results]",
            found.matches.len()
        );
    }
    if found.files_failed > 0 {
        let _ = write!(text, "\n[{} files could not be searched]", found.files_failed);
    }
    text.push_str(&below_note(&args.path));
    text
}

/// Writes a match with its context; gives the number of the last line.
fn write_hit(text: &mut String, hit: &Hit, first: u64) -> u64 {
    // Writing to a string cannot fail.
    for (line, before) in (first..).zip(&hit.before) {
        let _ = writeln!(text, "{}-{line}-{before}", hit.path);
    }
    let mut next = hit.line;
    for line in hit.text.split('\n') {
        let _ = writeln!(text, "{}:{next}:{line}", hit.path);
        next += 1;
    }
    for after in &hit.after {
        let _ = writeln!(text, "{}-{next}-{after}", hit.path);
        next += 1;
    }
    next.saturating_sub(1)
}

/// What to try when nothing was found.
fn nothing(args: &SearchFilesArgs, found: &Searched) -> String {
    let files = match found.files_searched {
        1 => "1 file was searched".to_owned(),
        files => format!("{files} files were searched"),
    };
    let mut text = format!("No matches for pattern: {} ({files})", one_line(&args.pattern, 200));
    let mut tries = Vec::new();
    if !args.literal && args.pattern.contains(['(', '[', '{', '.', '*', '+', '?', '|', '\\', '^', '$']) {
        tries.push("literal: true searches for the text itself");
    }
    if !args.hidden {
        tries.push("hidden: true adds names that begin with a dot");
    }
    if !args.no_ignore {
        tries.push("no_ignore: true adds what .gitignore leaves out");
    }
    if !tries.is_empty() {
        let _ = write!(text, "\n[{}]", tries.join("; "));
    }
    text
}

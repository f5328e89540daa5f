//! The difference of two texts, as a unified diff.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{DiffOp, TextDiff};

/// The most bytes, of both sides together, that [`diff`] compares.
pub const MAX_DIFF_BYTES: usize = 4 * 1024 * 1024;

const CONTEXT: usize = 3;
/// After this the comparison stops looking for the shortest diff. What it gives is right all the same.
const TIME: Duration = Duration::from_millis(500);

/// The unified diff of two files, in git's form. `None` is a file that is not there.
///
/// It can be read again by [`parse`](crate::parse): carried out on `before` it gives `after`. Equal files at one path
/// give an empty text. Where the files are not text, or larger than [`MAX_DIFF_BYTES`], it is one statement instead.
///
/// ```
/// let diff = haft_patch::diff(Some(b"a\nb\n"), Some(b"a\nc"), "x.txt", "x.txt");
/// assert_eq!(
///     diff,
///     "diff --git a/x.txt b/x.txt\n--- a/x.txt\n+++ b/x.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
/// );
/// ```
#[must_use]
pub fn diff(before: Option<&[u8]>, after: Option<&[u8]>, path_before: &str, path_after: &str) -> String {
    let moved = path_before != path_after && before.is_some() && after.is_some();
    if before == after && !moved {
        return String::new();
    }
    // A file that comes or goes has one name.
    let (old_path, new_path) = match (before, after) {
        (None, _) => (path_after, path_after),
        (Some(_), None) => (path_before, path_before),
        (Some(_), Some(_)) => (path_before, path_after),
    };
    let (old_name, new_name) = (name("a/", old_path), name("b/", new_path));
    let mut text = format!("diff --git {old_name} {new_name}\n");
    match (before, after) {
        (None, _) => text.push_str("new file mode 100644\n"),
        (_, None) => text.push_str("deleted file mode 100644\n"),
        _ if moved => {
            let _ = writeln!(text, "rename from {}\nrename to {}", name("", old_path), name("", new_path));
        }
        _ => {}
    }
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    if old == new {
        return text;
    }
    let (Ok(old_text), Ok(new_text)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        let _ = writeln!(text, "Binary files differ: {} bytes before, {} bytes after", old.len(), new.len());
        return text;
    };
    if old.len().saturating_add(new.len()) > MAX_DIFF_BYTES {
        let lines = |text: &str| text.split_inclusive('\n').count();
        let _ = writeln!(
            text,
            "Too large to compare: {} lines ({} bytes) before, {} lines ({} bytes) after",
            lines(old_text),
            old.len(),
            lines(new_text),
            new.len()
        );
        return text;
    }
    let header = |file: Option<&[u8]>, name: &str| match file {
        // A tab ends a name with spaces, as a time would.
        Some(_) if name.contains(' ') && !name.starts_with('"') => format!("{name}\t"),
        Some(_) => name.to_owned(),
        None => "/dev/null".to_owned(),
    };
    let _ = writeln!(text, "--- {}\n+++ {}", header(before, &old_name), header(after, &new_name));
    hunks(&mut text, old_text, new_text);
    text
}

fn hunks(text: &mut String, old: &str, new: &str) {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let compared = TextDiff::configure().timeout(TIME).diff_slices(&old, &new);
    for group in compared.grouped_ops(CONTEXT) {
        // A group begins with lines that are equal, unless the change is at the very beginning. Only equal lines tell
        // their place on both sides: similar 2.7 may move a removal past an insertion and keep its old place.
        let (old_start, new_start) = match group.first() {
            Some(DiffOp::Equal { old_index, new_index, .. }) => (*old_index, *new_index),
            _ => (0, 0),
        };
        let old_lines: usize = group.iter().map(|op| op.old_range().len()).sum();
        let new_lines: usize = group.iter().map(|op| op.new_range().len()).sum();
        let _ = writeln!(text, "@@ -{} +{} @@", range(old_start, old_lines), range(new_start, new_lines));
        for op in &group {
            if matches!(op, DiffOp::Equal { .. }) {
                lines(text, ' ', &old[op.old_range()]);
            } else {
                lines(text, '-', &old[op.old_range()]);
                lines(text, '+', &new[op.new_range()]);
            }
        }
    }
}

fn lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// `start,count`, counted from 1; without lines, the line before.
fn range(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    }
}

/// A name with its prefix, in C's quotes where a line could not hold it otherwise.
fn name(prefix: &str, path: &str) -> String {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if path.chars().all(plain) && path.trim() == path {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for c in path.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

//! Which file a diff is about.

use crate::error::{PatchError, PatchErrorKind};
use crate::lines::patch_lines;
use crate::patch::normal;

/// The name on a `---` or `+++` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// `/dev/null`, or a time or revision that stands for it.
    Nothing,
    /// A path, with its prefix.
    Path(String),
}

/// What follows `--- ` or `+++ `: a name, perhaps quoted, perhaps with a tab and a time.
///
/// Some tools name the file on both sides and say with the beginning of time, or with revision 0, that it is not there.
/// That counts only where the hunks agree that this side is `empty`.
pub(super) fn name(text: &str, empty: bool, number: usize) -> Result<Name, PatchError> {
    let (name, stamp) = if text.starts_with('"') {
        let (name, rest) = unquote(text, number)?;
        (name, rest.trim())
    } else {
        let (name, stamp) = text.split_once('\t').unwrap_or((text, ""));
        (name.trim_end().to_owned(), stamp.trim())
    };
    if name.is_empty() {
        return Err(no_path(number));
    }
    let never = ["1970-01-01", "1969-12-31", "(revision 0)", "(nonexistent)"];
    let is_nothing = name == "/dev/null"
        || empty
            && (never.iter().any(|never| stamp.starts_with(never)) || stamp.contains("Jan 01 00:00:00 1970"));
    Ok(if is_nothing { Name::Nothing } else { Name::Path(name) })
}

fn no_path(number: usize) -> PatchError {
    PatchError::syntax(number, "Missing file path")
        .help("name the file: `--- a/path` and `+++ b/path`, or `/dev/null` for no file")
}

/// A name in C's quotes; gives it and what follows.
pub(super) fn unquote(text: &str, number: usize) -> Result<(String, &str), PatchError> {
    let invalid = |what: &str| PatchError::syntax(number, format!("Invalid quoted path: {what}"));
    let mut bytes = Vec::new();
    let mut rest = text.strip_prefix('"').ok_or_else(|| invalid("no quotation mark"))?;
    loop {
        let mut chars = rest.chars();
        match chars.next() {
            None => return Err(invalid("it has no end")),
            Some('"') => {
                let name = String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8"))?;
                return Ok((name, chars.as_str()));
            }
            Some('\\') => {
                let octal =
                    rest.get(1..4).filter(|digits| digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')));
                if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
                    bytes.push(byte);
                    rest = &rest[4..];
                    continue;
                }
                bytes.push(match chars.next() {
                    Some('a') => 7,
                    Some('b') => 8,
                    Some('t') => b'\t',
                    Some('n') => b'\n',
                    Some('v') => 11,
                    Some('f') => 12,
                    Some('r') => b'\r',
                    Some('"') => b'"',
                    Some('\\') => b'\\',
                    _ => return Err(invalid("unknown escape")),
                });
            }
            Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = chars.as_str();
    }
}

/// The extended header of git, from `diff --git` on.
#[derive(Debug, Default)]
pub(super) struct Git {
    pub(super) line: usize,
    /// The path, where both names on the first line are the same but for their first components.
    pub(super) path: Option<String>,
    pub(super) created: bool,
    pub(super) deleted: bool,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) old_mode: Option<String>,
    pub(super) new_mode: Option<String>,
    /// The hashes of the contents.
    index: Option<(String, String)>,
}

impl Git {
    pub(super) fn new(names: &str, line: usize) -> Result<Self, PatchError> {
        Ok(Self { line, path: common_path(names, line)?, ..Self::default() })
    }

    /// Takes a line of the header in; false where it is none.
    pub(super) fn take(&mut self, line: &str, number: usize) -> Result<bool, PatchError> {
        let path = |text: &str| -> Result<Option<String>, PatchError> {
            let name =
                if text.starts_with('"') { unquote(text, number)?.0 } else { text.trim_end().to_owned() };
            if name.is_empty() {
                return Err(no_path(number));
            }
            Ok(Some(normal(&name)))
        };
        if let Some(mode) = line.strip_prefix("new file mode ") {
            self.created = true;
            self.new_mode = Some(file_mode(mode, number)?);
        } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
            self.deleted = true;
            file_mode(mode, number)?;
        } else if let Some(mode) = line.strip_prefix("old mode ") {
            self.old_mode = Some(file_mode(mode, number)?);
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            self.new_mode = Some(file_mode(mode, number)?);
        } else if let Some(name) = line.strip_prefix("rename from ") {
            self.from = path(name)?;
        } else if let Some(name) = line.strip_prefix("rename to ") {
            self.to = path(name)?;
        } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
            return Err(PatchError::new(PatchErrorKind::Unsupported, number, "Copies are not supported")
                .help("make the diff without `-C`, so that the copy is a new file with its content"));
        } else if let Some(index) = line.strip_prefix("index ") {
            let mut words = index.split(' ');
            self.index = words
                .next()
                .and_then(|hashes| hashes.split_once(".."))
                .map(|(old, new)| (old.into(), new.into()));
            if let Some(mode) = words.next() {
                file_mode(mode, number)?;
            }
        } else {
            return Ok(line.starts_with("similarity index ") || line.starts_with("dissimilarity index "));
        }
        Ok(true)
    }

    /// Whether a file without hunks is really empty, as far as the hashes tell.
    pub(super) fn is_empty_file(&self) -> bool {
        const EMPTY: [&str; 2] = [
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
        ];
        self.index.as_ref().is_none_or(|(old, new)| {
            let content = if self.created { new } else { old };
            EMPTY.iter().any(|empty| empty.starts_with(content.as_str()))
        })
    }
}

/// The mode, where it is that of a regular file.
fn file_mode(mode: &str, number: usize) -> Result<String, PatchError> {
    let refused = |what: &str| {
        Err(PatchError::new(PatchErrorKind::Unsupported, number, format!("{what} is not supported"))
            .help("leave this file out of the patch"))
    };
    match mode.trim() {
        "120000" => refused("A symbolic link"),
        "160000" => refused("A submodule"),
        mode => Ok(mode.to_owned()),
    }
}

/// The path of `a/path b/path`. Names may hold spaces, so each space is tried.
fn common_path(names: &str, number: usize) -> Result<Option<String>, PatchError> {
    if names.starts_with('"') || names.ends_with('"') {
        let (old, new) = if names.starts_with('"') {
            let (old, rest) = unquote(names, number)?;
            let rest = rest.trim_start();
            (old, if rest.starts_with('"') { unquote(rest, number)?.0 } else { rest.to_owned() })
        } else {
            let Some((old, rest)) = names.split_once(" \"") else { return Ok(None) };
            (old.to_owned(), unquote(&format!("\"{rest}"), number)?.0)
        };
        return Ok(same_file(&old, &new));
    }
    let near_middle = |at: usize| at.abs_diff(names.len() / 2) <= MOST_PREFIX;
    let mut spaces = names.match_indices(' ').map(|(at, _)| at).filter(|at| near_middle(*at));
    Ok(spaces.find_map(|at| same_file(&names[..at], &names[at + 1..])))
}

/// The prefixes of the two names are about equally long: spaces far from the middle need not be tried.
const MOST_PREFIX: usize = 64;

/// The path that two names have in common, with or without one component in front.
pub(super) fn same_file(old: &str, new: &str) -> Option<String> {
    if old == new {
        return (!old.is_empty()).then(|| normal(old));
    }
    let ((old_prefix, old_rest), (_, new_rest)) = (old.split_once('/')?, new.split_once('/')?);
    // With `a/` and `b/`, another slash begins an absolute path; with other prefixes it is part of them.
    let path = if old_prefix == "a" { old_rest } else { old_rest.trim_start_matches('/') };
    (old_rest == new_rest && !path.is_empty()).then(|| normal(path))
}

/// The path of a name that stands alone, or whose counterpart is another one.
pub(super) fn without_prefix(name: &str, prefix: &str) -> String {
    normal(name.strip_prefix(prefix).filter(|path| !path.is_empty()).unwrap_or(name))
}

/// Whether the text's own headers end with a carriage return: then every line does, and it is none of the content's.
pub(super) fn came_with_crlf(text: &str) -> bool {
    text.split('\n')
        .find(|line| line.starts_with("--- ") || line.starts_with("diff ") || line.starts_with("@@ -"))
        .is_some_and(|line| line.ends_with('\r'))
}

/// The lines of a diff: a carriage return at the end of a line is content, unless all lines have one.
pub(super) fn diff_lines(text: &str) -> Vec<&str> {
    if came_with_crlf(text) {
        return patch_lines(text);
    }
    text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_one_file() {
        for (names, path) in [
            ("a/x b/x", Some("x")),
            ("x x", Some("x")),
            ("a/x b/x b/x b/x", Some("x b/x")),
            ("\"a/\\303\\242\" \"b/\\303\\242\"", Some("â")),
            ("a//abs b//abs", Some("/abs")),
            ("src://x dst://x", Some("x")),
            ("a/x b/y", None),
            ("a/ b/", None),
            // Found by fuzzing: a path that is empty.
            (" ", None),
            ("", None),
            ("\"\" \"\"", None),
        ] {
            assert_eq!(common_path(names, 1).unwrap().as_deref(), path, "{names}");
        }
    }

    #[test]
    fn a_rename_has_two_names() {
        for line in ["rename from ", "rename to  ", "rename to \"\""] {
            assert!(Git::default().take(line, 1).is_err(), "{line}");
        }
    }
}

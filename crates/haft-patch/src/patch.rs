//! What the three formats have in common: an ordered list of what is done to which file.

use crate::error::{PatchError, PatchErrorKind};
use crate::lines::patch_lines;
use crate::{envelope, lp1, unified};

/// The formats of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// [`lp1`]
    Lp1,
    /// [`envelope`]
    Envelope,
    /// [`unified`]
    Unified,
}

/// Which format a text is in; `None` where it is none of the three.
///
/// ```
/// use haft_patch::{Format, recognise};
///
/// assert_eq!(recognise("LP1\nEND\n"), Some(Format::Lp1));
/// assert_eq!(recognise("*** Begin Patch\n*** End Patch\n"), Some(Format::Envelope));
/// assert_eq!(recognise("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), Some(Format::Unified));
/// assert_eq!(recognise("please change x"), None);
/// ```
#[must_use]
pub fn recognise(text: &str) -> Option<Format> {
    let lines = patch_lines(text);
    let mut said = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    if said.clone().next().is_some_and(envelope::is_begin) {
        return Some(Format::Envelope);
    }
    // A mail's header may stand before a diff; only comments stand before `LP1`.
    if said.find(|line| !line.starts_with('#')) == Some("LP1") {
        return Some(Format::Lp1);
    }
    unified::is_unified(&lines).then_some(Format::Unified)
}

/// Reads a patch in any of the formats.
///
/// # Errors
///
/// With the line of the patch and what was expected there.
///
/// ```
/// let patch = haft_patch::parse("*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n")?;
/// assert_eq!(patch.paths()[0].action, haft_patch::PathAction::Delete);
/// # Ok::<(), haft_patch::PatchError>(())
/// ```
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    match recognise(text) {
        Some(Format::Lp1) => lp1::parse(text),
        Some(Format::Envelope) => envelope::parse(text),
        Some(Format::Unified) => unified::parse(text),
        None => Err(PatchError {
            line: None,
            ..PatchError::new(PatchErrorKind::UnknownFormat, 1, "The patch is in no format that is known")
                .help("begin with `LP1`, with `*** Begin Patch`, or with the `---` and `+++` lines of a unified diff; send the patch alone, without a fence or words around it")
        }),
    }
}

/// A patch that was read: what to do to which file, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub(crate) format: Format,
    pub(crate) operations: Vec<FileOperation>,
    pub(crate) remarks: Vec<Remark>,
}

/// What is done to one file, and where the patch says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileOperation {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) action: FileAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileAction {
    Lp1(Vec<lp1::Operation>),
    Envelope(envelope::Action),
    Unified(unified::FileDiff),
}

/// Something that the patch says and that is not carried out, such as a change of a file's mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The line of the patch, counted from 1.
    pub line: usize,
    /// The file.
    pub path: String,
    /// What is not done, for a person.
    pub text: String,
}

/// A path in a patch, and what would be done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUse {
    /// The path as the patch names it, without `.` components. Not checked: it may lead anywhere.
    pub path: String,
    /// The line of the patch that names it, counted from 1.
    pub line: usize,
    /// What would be done.
    pub action: PathAction,
}

/// What a patch would do to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathAction {
    /// The file is written whole. The envelope's `Add File` replaces one that is there; a unified diff refuses to.
    Create,
    /// The file must be there, and is changed.
    Modify,
    /// The file is changed, or created where it is not there.
    ModifyOrCreate,
    /// The file is removed.
    Delete,
    /// The file is moved, and perhaps changed. The envelope replaces what is at the new path; a unified diff refuses
    /// to.
    Move {
        /// The new path.
        to: String,
    },
}

impl Patch {
    pub(crate) fn of_sections(sections: Vec<lp1::Section>) -> Self {
        let operations = sections
            .into_iter()
            .map(|section| FileOperation {
                path: section.path,
                line: section.line,
                action: FileAction::Lp1(section.operations),
            })
            .collect();
        Self { format: Format::Lp1, operations, remarks: Vec::new() }
    }

    /// The format that it was read from.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What is done to which path, in the order of the patch. A path occurs once for every section about it.
    ///
    /// ```
    /// use haft_patch::PathAction;
    ///
    /// let text = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End Patch\n";
    /// let patch = haft_patch::parse(text)?;
    /// assert_eq!(patch.paths()[0].path, "a");
    /// assert_eq!(patch.paths()[0].action, PathAction::Move { to: "b".into() });
    /// # Ok::<(), haft_patch::PatchError>(())
    /// ```
    #[must_use]
    pub fn paths(&self) -> Vec<PathUse> {
        self.operations
            .iter()
            .map(|operation| PathUse {
                path: operation.path.clone(),
                line: operation.line,
                action: operation.action.path_action(),
            })
            .collect()
    }

    /// What the patch says and [`apply`](crate::apply()) does not do. The user who applies it should be told.
    #[must_use]
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }
}

impl FileAction {
    fn path_action(&self) -> PathAction {
        match self {
            Self::Lp1(operations) if operations.iter().any(|operation| operation.action.find().is_some()) => {
                PathAction::Modify
            }
            Self::Lp1(_) => PathAction::ModifyOrCreate,
            Self::Envelope(action) => action.path_action(),
            Self::Unified(diff) => diff.path_action(),
        }
    }
}

/// A path without empty and `.` components, so that two spellings of one path are one path. `..` stays: what it means
/// depends on links, and is for the caller to refuse.
pub(crate) fn normal(path: &str) -> String {
    let mut normal = String::with_capacity(path.len());
    if path.starts_with('/') {
        normal.push('/');
    }
    let mut components = path.split('/').filter(|component| !matches!(*component, "" | ".")).peekable();
    if components.peek().is_none() && normal.is_empty() {
        return path.to_owned();
    }
    while let Some(component) = components.next() {
        normal.push_str(component);
        if components.peek().is_some() {
            normal.push('/');
        }
    }
    normal
}

/// The beginning of a line, for a message.
pub(crate) fn excerpt(line: &str) -> String {
    const SHOWN: usize = 60;
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_one_spelling() {
        for (path, expected) in [
            ("a/b", "a/b"),
            ("./a//b", "a/b"),
            ("a/./b/", "a/b"),
            ("/a", "/a"),
            ("//a", "/a"),
            ("../a", "../a"),
            (".", "."),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }

    #[test]
    fn formats_are_recognised() {
        for (text, format) in [
            ("\n# words\n LP1 \nEND", Some(Format::Lp1)),
            ("\n  *** Begin Patch\n", Some(Format::Envelope)),
            ("# HG changeset patch\ndiff --git a/x b/x\n", Some(Format::Unified)),
            ("--- x\n+++ y\n", Some(Format::Unified)),
            ("--- x\r\n+++ y\r\n", Some(Format::Unified)),
            ("@@ -1 +1 @@\n-a\n+b\n", Some(Format::Unified)),
            ("LP1x\n", None),
            ("", None),
            ("--- a line\nwords", None),
        ] {
            assert_eq!(recognise(text), format, "{text:?}");
        }
    }
}

//! Reading unified diffs.

use crate::error::{PatchError, PatchErrorKind};
use crate::patch::{FileAction, FileOperation, Format, Patch, Remark};
use crate::unified::header::{self, Git, Name};
use crate::unified::{FileDiff, Hunk, Kind, hunk};

/// Whether a text has a line that only a diff has.
pub(crate) fn is_unified(lines: &[&str]) -> bool {
    let is_hunk = |line: &str| line.starts_with("@@ -") && hunk::range(line, 1).is_ok();
    (0..lines.len()).any(|index| {
        let line = lines[index];
        line.starts_with("diff --git ")
            || line.starts_with("--- ") && lines.get(index + 1).is_some_and(|next| next.starts_with("+++ "))
            || is_hunk(line)
    })
}

/// Reads a unified diff, plain or git's.
///
/// # Errors
///
/// With the line of the patch and what was expected there; also for what is not supported.
///
/// ```
/// let patch = haft_patch::unified::parse("--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-old\n+new\n")?;
/// assert_eq!(patch.paths()[0].path, "x.txt");
/// # Ok::<(), haft_patch::PatchError>(())
/// ```
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    let lines = header::diff_lines(text);
    let mut patch = Patch { format: Format::Unified, operations: Vec::new(), remarks: Vec::new() };
    let mut git: Option<Git> = None;
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        let number = next + 1;
        next += 1;
        if let Some(names) = line.strip_prefix("diff --git ") {
            if let Some(before) = git.replace(Git::new(names, number)?) {
                without_hunks(before, &mut patch)?;
            }
        } else if is_binary(line) {
            return Err(binary(number));
        } else if line.starts_with("diff --cc ")
            || line.starts_with("diff --combined ")
            || line.starts_with("@@@ ")
        {
            return Err(PatchError::new(
                PatchErrorKind::Unsupported,
                number,
                "The diff of a merge is not supported",
            )
            .help("make the diff against one parent"));
        } else if line.starts_with("--- ") && lines.get(next).is_some_and(|line| line.starts_with("+++ ")) {
            next = file(&lines, number - 1, git.take(), &mut patch)?;
        } else if line.starts_with("@@ -") {
            return Err(PatchError::syntax(number, "A hunk without a file")
                .help("put `--- a/path` and `+++ b/path` before the first hunk of a file"));
        } else if let Some(git) = &mut git {
            git.take(line, number)?;
        }
    }
    if let Some(git) = git {
        without_hunks(git, &mut patch)?;
    }
    if patch.operations.is_empty() && patch.remarks.is_empty() {
        return Err(PatchError::syntax(1, "The diff changes no file")
            .help("a file begins with `--- a/path` and `+++ b/path`; hunks begin with `@@ -start,count +start,count @@`"));
    }
    Ok(patch)
}

fn is_binary(line: &str) -> bool {
    line.starts_with("GIT binary patch")
        || line.starts_with("Binary files ") && line.trim_end().ends_with(" differ")
}

fn binary(number: usize) -> PatchError {
    PatchError::new(PatchErrorKind::Unsupported, number, "Binary patches are not supported")
        .help("leave binary files out of the patch, and write them with another tool")
}

/// A file with `---` and `+++` at `index`; gives the index behind its last hunk.
fn file(lines: &[&str], index: usize, git: Option<Git>, patch: &mut Patch) -> Result<usize, PatchError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut next = index + 2;
    while lines.get(next).is_some_and(|line| line.starts_with("@@ -")) {
        let (hunk, behind) = hunk::read(lines, next)?;
        hunks.push(hunk);
        next = behind;
    }
    if hunks.is_empty() {
        let found = lines.get(next).map_or("the end", |line| line);
        return Err(PatchError::syntax(
            next + 1,
            format!(
                "Expected a hunk (`@@ -start,count +start,count @@`), found `{}`",
                crate::patch::excerpt(found)
            ),
        )
        .help("after `---` and `+++` come the hunks of the file"));
    }
    let empty_old = hunks.iter().all(|hunk| hunk.old().next().is_none() && hunk.old_start == 0);
    let empty_new = hunks.iter().all(|hunk| hunk.new_lines().next().is_none());
    let old = header::name(&lines[index][4..], empty_old, index + 1)?;
    let new = header::name(&lines[index + 1][4..], empty_new, index + 2)?;
    let git = git.unwrap_or_default();
    let (path, kind) = match (&git.from, &git.to, old, new) {
        (Some(from), Some(to), ..) if from != to => (from.clone(), Kind::Rename { to: to.clone() }),
        (.., Name::Nothing, Name::Nothing) => {
            return Err(PatchError::syntax(index + 1, "Both sides are no file"));
        }
        (.., Name::Nothing, Name::Path(new)) => {
            (git.path.clone().unwrap_or_else(|| header::without_prefix(&new, "b/")), Kind::Create)
        }
        (.., Name::Path(old), Name::Nothing) => {
            (git.path.clone().unwrap_or_else(|| header::without_prefix(&old, "a/")), Kind::Delete)
        }
        (.., Name::Path(old), Name::Path(new)) => (path_of(&git, &old, &new, index + 1)?, kind_of(&git)),
    };
    // git names a diff once; the first line counts from where the file begins.
    let line = if git.line > 0 { git.line } else { index + 1 };
    let wrong_side = match kind {
        Kind::Create if !empty_old => Some("A new file has no old lines"),
        Kind::Delete if !empty_new => Some("A deleted file has no new lines"),
        _ => None,
    };
    if let Some(message) = wrong_side {
        return Err(PatchError::syntax(hunks[0].line, message)
            .help("`/dev/null` stands for no file; name the file on both sides to change it")
            .in_file(&path));
    }
    push(patch, line, path, kind, hunks, &git);
    Ok(next)
}

/// The file that both names are about.
fn path_of(git: &Git, old: &str, new: &str, number: usize) -> Result<String, PatchError> {
    if let Some(path) =
        git.path.clone().or_else(|| if git.line > 0 { header::same_file(old, new) } else { None })
    {
        return Ok(path);
    }
    if git.line > 0 {
        return Err(PatchError::syntax(
            number,
            "The two sides are different files, but nothing says that one was renamed",
        )
        .help("add `rename from` and `rename to` before them, or name the same file on both sides"));
    }
    // Elsewhere the two sides often are `file.orig` and `file`.
    let prefixed = old.starts_with("a/") && new.starts_with("b/");
    Ok(header::without_prefix(new, if prefixed { "b/" } else { "" }))
}

fn kind_of(git: &Git) -> Kind {
    match (git.created, git.deleted) {
        (true, _) => Kind::Create,
        (false, true) => Kind::Delete,
        (false, false) => Kind::Modify,
    }
}

/// A git header that no hunks follow: an empty file that comes or goes, a pure move, a mode.
fn without_hunks(git: Git, patch: &mut Patch) -> Result<(), PatchError> {
    if let (Some(from), Some(to)) = (&git.from, &git.to) {
        let kind = if from == to { Kind::Modify } else { Kind::Rename { to: to.clone() } };
        push(patch, git.line, from.clone(), kind, Vec::new(), &git);
        return Ok(());
    }
    let Some(path) = git.path.clone() else {
        return Err(PatchError::syntax(git.line, "The diff does not tell which file it is about")
            .help("add `--- a/path` and `+++ b/path`, or `rename from` and `rename to`"));
    };
    let kind = kind_of(&git);
    if kind == Kind::Modify {
        if git.old_mode.is_none() && git.new_mode.is_none() {
            return Err(PatchError::syntax(git.line, "The diff says nothing about this file")
                .help("add its `---`, `+++` and `@@` lines, or leave it out")
                .in_file(&path));
        }
    } else if !git.is_empty_file() {
        return Err(PatchError::new(
            PatchErrorKind::Unsupported,
            git.line,
            "The content of the file is not in the diff, as with a binary file",
        )
        .help("leave this file out of the patch, and write it with another tool")
        .in_file(&path));
    }
    push(patch, git.line, path, kind, Vec::new(), &git);
    Ok(())
}

fn push(patch: &mut Patch, line: usize, path: String, kind: Kind, hunks: Vec<Hunk>, git: &Git) {
    let said = match (&git.old_mode, &git.new_mode) {
        (Some(old), Some(new)) => {
            Some(format!("the mode stays as it is; the patch would change it from {old} to {new}"))
        }
        (None, Some(new)) if new != "100644" => Some(format!("the mode {new} is not set")),
        _ => None,
    };
    let about = match &kind {
        Kind::Rename { to } => to.clone(),
        Kind::Create | Kind::Modify | Kind::Delete => path.clone(),
    };
    let notes: Vec<String> = said.into_iter().collect();
    patch.remarks.extend(notes.iter().map(|text| Remark { line, path: about.clone(), text: text.clone() }));
    if kind == Kind::Modify && hunks.is_empty() {
        return;
    }
    let action = FileAction::Unified(FileDiff { kind, hunks, notes });
    patch.operations.push(FileOperation { path, line, action });
}

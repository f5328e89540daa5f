//! What of a change set is refused, asked about, or in conflict. Pure: everything that was found out comes in.

use crate::tree::{Known, Marks, What};
use haft_guard::names::{ProtectedNames, is_git_part};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fmt,
    path::{Component, Path, PathBuf},
};

/// Why a change set is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The whole path.
    pub path: PathBuf,
    /// What is wrong there.
    pub kind: ViolationKind,
}

/// What is wrong with a path of a change set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// The command could not see this path, and wrote or deleted it.
    Hidden,
    /// The command deleted, replaced or moved a folder that holds a path which it could not see.
    HoldsHidden {
        /// That path.
        hidden: PathBuf,
    },
    /// A file that runs as its owner or group, or with capabilities.
    Privileged,
    /// A device, a pipe or a socket.
    Special {
        /// Which of them.
        kind: &'static str,
    },
    /// A link that leads out of its root.
    LeadsOut {
        /// Where it leads.
        target: PathBuf,
    },
    /// A folder that is only to be read.
    ReadOnly,
    /// What is there is not known: it is not applied.
    Unknown {
        /// Why not.
        why: &'static str,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            ViolationKind::Hidden => write!(f, "{path} is hidden from commands, and this one changed it"),
            ViolationKind::HoldsHidden { hidden } => {
                write!(
                    f,
                    "{path} was deleted, replaced or moved, and holds {}, which is hidden",
                    hidden.display()
                )
            }
            ViolationKind::Privileged => {
                write!(f, "{path} would run with other privileges (setuid, setgid or capabilities)")
            }
            ViolationKind::Special { kind } => write!(f, "{path} is a {kind}"),
            ViolationKind::LeadsOut { target } => {
                write!(f, "{path} is a link to {}, which is outside", target.display())
            }
            ViolationKind::ReadOnly => write!(f, "{path} is read-only"),
            ViolationKind::Unknown { why } => write!(f, "{path} cannot be applied: {why}"),
        }
    }
}

/// A path that is changed only with an approval of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The whole path.
    pub path: PathBuf,
    /// Why somebody is asked.
    pub why: &'static str,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is protected: {}", self.path.display(), self.why)
    }
}

/// A path that somebody else changed while the command ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The whole path.
    pub path: PathBuf,
    /// What is known about it.
    pub why: &'static str,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

pub(super) const CHANGED: &str = "somebody else changed it while the command ran";
const REPOSITORY: &str = "it is a part of a git repository, and the command was not allowed to change that";
const BARE: &str = "git takes the folder for a repository, and runs programs that it names";

/// Whether a change touches a hidden path. `removes`: what was at the path is not there any more.
pub(super) fn hidden(hidden: &BTreeSet<PathBuf>, path: &Path, removes: bool) -> Option<ViolationKind> {
    if hidden.is_empty() {
        return None;
    }
    if path.ancestors().any(|at| hidden.contains(at)) {
        return Some(ViolationKind::Hidden);
    }
    // What is below a path comes right after it.
    let below = hidden.range::<Path, _>((std::ops::Bound::Included(path), std::ops::Bound::Unbounded)).next();
    let held = below.filter(|below| removes && below.starts_with(path))?;
    Some(ViolationKind::HoldsHidden { hidden: held.clone() })
}

/// Whether a change is in a folder that is only read, or removes one.
pub(super) fn read_only(folders: &[PathBuf], full: &Path, removes: bool) -> Option<ViolationKind> {
    let is = |folder: &PathBuf| full.starts_with(folder) || (removes && folder.starts_with(full));
    folders.iter().any(is).then_some(ViolationKind::ReadOnly)
}

/// Whether what the command made is of a kind that is not applied.
pub(super) fn made(up: &Known, marks: &Marks) -> Option<ViolationKind> {
    match up.what {
        What::Special(kind) => Some(ViolationKind::Special { kind }),
        What::File if up.mode & 0o6000 != 0 || marks.has_capability => Some(ViolationKind::Privileged),
        What::File | What::Folder | What::Link | What::Nothing => None,
    }
}

/// Where a link lands, below its root; `None` where it leads out, or where only following it would tell. `link` is
/// the link itself, below the root.
pub(super) fn lands(root: &Path, link: &Path, target: &Path) -> Option<PathBuf> {
    let (mut landed, below) = match target.is_absolute() {
        true => (PathBuf::new(), target.strip_prefix(root).ok()?),
        false => (link.parent()?.to_path_buf(), target),
    };
    let mut is_named = target.is_absolute();
    for part in below.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => {
                is_named = true;
                landed.push(name);
            }
            // Behind a name that is a link, this is the folder around where that leads.
            Component::ParentDir if is_named || !landed.pop() => return None,
            Component::ParentDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(landed)
}

/// What decides whether somebody is asked about a path.
pub(super) struct Protection<'a> {
    pub(super) names: &'a ProtectedNames,
    /// Whether the command may change repositories, but for what runs programs.
    pub(super) git: bool,
}

impl Protection<'_> {
    /// Why somebody is asked about a path below a root. `repositories`: folders around it that git takes for some.
    pub(super) fn asks(&self, path: &Path, is_link: bool, repositories: &[PathBuf]) -> Option<&'static str> {
        let is_git = |name: &OsStr| name.eq_ignore_ascii_case(".git");
        let in_git = path.iter().any(is_git);
        if path.iter().any(|name| self.names.suspects(name)) {
            let is_folder_itself = path.file_name().is_some_and(is_git) && self.git && !is_link;
            let by_name = if is_folder_itself { None } else { self.names.reason(path) };
            let by_link = || if is_link { self.names.reason_of_link(path) } else { None };
            if let Some(why) = by_name.or_else(by_link) {
                return Some(why);
            }
        }
        if in_git {
            return (!self.git).then_some(REPOSITORY);
        }
        let is_part = repositories.iter().any(|repository| {
            let Ok(inside) = path.strip_prefix(repository) else { return false };
            let heads = ["HEAD", "objects", "refs", "commondir"];
            let is_head = inside.iter().count() == 1
                && heads.iter().any(|head| inside.as_os_str().eq_ignore_ascii_case(head));
            is_head || inside.to_str().is_none_or(is_git_part)
        });
        is_part.then_some(BARE)
    }
}

/// Whether somebody changed it after a moment.
pub(super) fn is_newer(low: &Known, since: (i64, u32)) -> bool {
    low.changed > since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_path_is_neither_written_nor_removed_with_its_folder() {
        let set: BTreeSet<PathBuf> = ["d/.env", "keys"].map(PathBuf::from).into();
        let held = || Some(ViolationKind::HoldsHidden { hidden: "d/.env".into() });
        // path, removes, found
        let cases = [
            ("d/.env", false, Some(ViolationKind::Hidden)),
            ("d/.env", true, Some(ViolationKind::Hidden)),
            ("keys/new", false, Some(ViolationKind::Hidden)),
            ("d", true, held()),
            ("d", false, None),
            ("d/other", true, None),
            ("d.x", true, None),
            ("key", true, None),
            ("keys2", true, None),
        ];
        for (path, removes, expected) in cases {
            assert_eq!(hidden(&set, Path::new(path), removes), expected, "{path} {removes}");
        }
    }

    #[test]
    fn a_link_lands_inside_or_is_said_to_lead_out() {
        let cases = [
            ("l", "a/b", Some("a/b")),
            ("d/l", "../a", Some("a")),
            ("d/e/l", "../../a", Some("a")),
            ("d/l", "./a", Some("d/a")),
            ("d/l", "..", Some("")),
            ("l", "/w/root/x", Some("x")),
            ("l", "/w/root", Some("")),
            ("l", "..", None),
            ("d/l", "../../a", None),
            ("l", "/etc/passwd", None),
            ("l", "/w/root2/x", None),
            ("l", "/w/root/../x", None),
            // Behind a name: `a` may be a link to a folder that is less deep.
            ("l", "a/../b", None),
        ];
        for (link, target, expected) in cases {
            let found = lands(Path::new("/w/root"), Path::new(link), Path::new(target));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{link} -> {target}");
        }
    }

    #[test]
    fn somebody_is_asked_about_what_runs_programs_later() {
        let names = ProtectedNames::default();
        // path, is a link, asked with the preset git, asked without
        let cases = [
            ("src/main.rs", false, false, false),
            (".envrc", false, true, true),
            (".git/hooks/pre-commit", false, true, true),
            (".git/config", false, true, true),
            (".git/index", false, false, true),
            (".git/refs/heads/main", false, false, true),
            (".git", false, false, true),
            (".git", true, true, true),
            ("sub/.config", true, true, true),
            ("sub/.config", false, false, false),
            ("bare/HEAD", false, true, true),
            ("bare/config", false, true, true),
            ("bare/objects/ab/cd", false, false, false),
            ("other/config", false, false, false),
        ];
        for (path, is_link, with, without) in cases {
            for (git, expected) in [(true, with), (false, without)] {
                let protection = Protection { names: &names, git };
                let found = protection.asks(Path::new(path), is_link, &["bare".into()]);
                assert_eq!(found.is_some(), expected, "{path} {is_link} {git}: {found:?}");
            }
        }
    }
}

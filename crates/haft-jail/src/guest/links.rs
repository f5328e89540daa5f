//! Where links lead. A mount holds what is at the end of one; what is on the way, and an end that is not there yet, is
//! looked at when a guest has ended.

use super::{
    raw::Raw,
    survey::{Id, Met, What},
};
use rustix::{
    fd::{AsFd as _, OwnedFd},
    fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, openat, readlinkat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

/// Paths without links in front of their last name, and what was there.
pub(crate) type Awaited = BTreeMap<Raw, Was>;

/// What was at a path that something protected leads over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Was {
    Nothing,
    /// Nothing; a folder may be made there.
    NoFile,
    /// A link with this text.
    Link(Raw),
}

/// In JSON a map has text for keys, and a path may be none.
pub(crate) mod pairs {
    use super::{Awaited, Raw, Was};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(awaited: &Awaited, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(awaited)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Awaited, D::Error> {
        Vec::<(Raw, Was)>::deserialize(deserializer).map(|pairs| pairs.into_iter().collect())
    }
}

pub(crate) const HANDLE: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const WHY: &str = "a protected name leads there, so that it runs programs later";

/// More links than this are no path, as for the kernel.
const MOST_LINKS: usize = 40;

/// Where a whole path leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Led {
    /// What is there, without links; `None` where nothing is.
    pub(crate) real: Option<PathBuf>,
    /// The links on the way, and the end if nothing is there.
    pub(crate) awaited: Awaited,
}

/// Follows a path link by link.
pub(crate) fn follow(path: &Path) -> Led {
    let mut led = Led::default();
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path);
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == OsStr::new("..") {
            at.pop();
            continue;
        }
        at.push(&name);
        let found = match fs::symlink_metadata(&at) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                for name in rest {
                    match name == OsStr::new("..") {
                        true => drop(at.pop()),
                        false => at.push(name),
                    }
                }
                led.awaited.insert(Raw(at), Was::Nothing);
                return led;
            }
            Err(_) => return led,
        };
        if found.is_symlink() {
            links += 1;
            let Ok(text) = fs::read_link(&at) else { return led };
            if links > MOST_LINKS {
                return led;
            }
            for name in names(&text).into_iter().rev() {
                rest.push_front(name);
            }
            let is_whole = text.is_absolute();
            led.awaited.insert(Raw(at.clone()), Was::Link(Raw(text)));
            at.pop();
            if is_whole {
                at = PathBuf::from("/");
            }
        }
    }
    led.real = Some(at);
    led
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(name).collect()
}

/// Tells of everything below a root that is not as it was: something where nothing was, another thing where a link was.
pub(crate) fn changed(root: &Path, id: Id, awaited: &Awaited, tell: &mut dyn FnMut(&Met<'_>, &str)) {
    for (Raw(path), was) in awaited {
        let Ok(below) = path.strip_prefix(root) else { continue };
        let Ok(folder) = openat(CWD, root, HANDLE, Mode::empty()) else { return };
        if !rustix::fs::fstat(&folder)
            .is_ok_and(|there| (there.st_dev, there.st_ino) == (id.device, id.inode))
        {
            return;
        }
        let _ = look(folder, root, below, was, tell);
    }
}

fn look(
    mut folder: OwnedFd,
    root: &Path,
    below: &Path,
    was: &Was,
    tell: &mut dyn FnMut(&Met<'_>, &str),
) -> Result<(), Errno> {
    let mut path = root.to_owned();
    let mut names = below.iter().peekable();
    while let Some(name) = names.next() {
        path.push(name);
        let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        // There was no link on the way.
        let is_end = names.peek().is_none();
        // A folder that was shut meanwhile is taken whole.
        let is_shut = !is_end
            && kind == FileType::Directory
            && accessat(&folder, name, Access::EXEC_OK, AtFlags::EACCESS).is_err();
        if is_end || is_shut || kind == FileType::Symlink {
            let is_same = match was {
                Was::Link(Raw(text)) if is_end && kind == FileType::Symlink => {
                    readlinkat(&folder, name, Vec::new())
                        .is_ok_and(|now| now.as_bytes() == text.as_os_str().as_bytes())
                }
                Was::NoFile => is_end && kind == FileType::Directory,
                Was::Link(_) | Was::Nothing => false,
            };
            if !is_same {
                let what = What::Protected(WHY);
                tell(&Met { what, folder: folder.as_fd(), name, path: &path, kind, again: false }, WHY);
            }
            return Ok(());
        }
        folder = openat(&folder, name, HANDLE, Mode::empty())?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn every_link_on_the_way_is_told_and_so_is_a_missing_end() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("d/e")).unwrap();
        fs::write(at.join("d/e/f"), "").unwrap();
        symlink("d/../b", at.join("a")).unwrap();
        symlink(at.join("d"), at.join("b")).unwrap();
        let led = follow(&at.join("a/e/f"));
        assert_eq!(led.real, Some(at.join("d/e/f")));
        let link = |name: &str, text: PathBuf| (Raw(at.join(name)), Was::Link(Raw(text)));
        let expected = [link("a", "d/../b".into()), link("b", at.join("d"))];
        assert_eq!(led.awaited, expected.into());
        symlink("no/where", at.join("c")).unwrap();
        let led = follow(&at.join("c"));
        assert_eq!(led.real, None);
        let expected = [link("c", "no/where".into()), (Raw(at.join("no/where")), Was::Nothing)];
        assert_eq!(led.awaited, expected.into());
        symlink("loop", at.join("loop")).unwrap();
        assert_eq!(follow(&at.join("loop")).real, None);
    }

    #[test]
    fn what_is_not_as_it_was_is_told() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        symlink("x", at.join("same")).unwrap();
        symlink("y", at.join("other")).unwrap();
        symlink("/etc", at.join("through")).unwrap();
        fs::write(at.join("file"), "").unwrap();
        fs::write(at.join("new"), "").unwrap();
        fs::write(at.join("program"), "").unwrap();
        fs::create_dir(at.join("folder")).unwrap();
        let x = || Was::Link(Raw(PathBuf::from("x")));
        let awaited = [
            ("same", x()),
            ("other", x()),
            ("file", x()),
            ("gone", x()),
            ("new", Was::Nothing),
            ("absent/deep", Was::Nothing),
            ("folder", Was::NoFile),
            ("program", Was::NoFile),
            ("through/passwd", Was::Nothing),
        ];
        let awaited = awaited.into_iter().map(|(name, was)| (Raw(at.join(name)), was)).collect();
        let mut told = Vec::new();
        let there = fs::metadata(at).unwrap();
        let id = Id { device: there.dev(), inode: there.ino() };
        changed(at, id, &awaited, &mut |met, _| told.push(met.name.to_owned()));
        assert_eq!(told, ["file", "new", "other", "program", "through"]);
    }
}

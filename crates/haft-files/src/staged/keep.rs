//! Throwing away what a command wrote, and how long it is kept where nobody decided.

use crate::{
    folder::Folder,
    tree::{remove_tree, size_of},
};
use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

/// How much of what commands wrote is kept until somebody applies or discards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedKeep {
    /// How long.
    pub age: Duration,
    /// How many bytes in all.
    pub bytes: u64,
}

impl Default for StagedKeep {
    /// ```
    /// assert_eq!(haft_files::StagedKeep::default().age.as_secs(), 7 * 24 * 3600);
    /// ```
    fn default() -> Self {
        StagedKeep { age: Duration::from_secs(7 * 24 * 3600), bytes: 4 << 30 }
    }
}

/// Removes the layers of a command, whatever permissions their folders have. That they are gone is as good.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let layers = folder.path().join("layers");
/// std::fs::create_dir_all(layers.join("upper/a"))?;
/// haft_files::discard(&layers)?;
/// assert!(!layers.exists());
/// haft_files::discard(&layers)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn discard(layers: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (layers.parent(), layers.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match Folder::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        folder => remove_tree(&folder?, name),
    }
}

/// Which of some kept sets go: names with how old and how large they are. The oldest go first.
fn goes(mut kept: Vec<(OsString, Duration, u64)>, keep: StagedKeep) -> Vec<OsString> {
    kept.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    let mut bytes = 0_u64;
    let mut goes = Vec::new();
    for (name, age, size) in kept {
        bytes = bytes.saturating_add(size);
        if age > keep.age || bytes > keep.bytes {
            goes.push(name);
        }
    }
    goes
}

/// The names of what is kept for too long, or is too much: `folder` has one folder for each command. Those that are in
/// use stay. Removes nothing: who keeps them forgets them first, so that none is taken for a whole one meanwhile.
pub fn outdated(
    folder: &Path,
    keep: StagedKeep,
    now: SystemTime,
    is_in_use: &dyn Fn(&OsStr) -> bool,
) -> io::Result<Vec<OsString>> {
    let opened = match Folder::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut kept = Vec::new();
    for name in opened.sorted()? {
        let Some(known) = opened.known(&name)? else { continue };
        if is_in_use(&name) {
            continue;
        }
        let seconds = u64::try_from(known.modified.0).unwrap_or(0);
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        kept.push((name.clone(), now.duration_since(made).unwrap_or_default(), size_of(&opened, &name)));
    }
    Ok(goes(kept, keep))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_the_newest_stay_within_the_bounds() {
        let hour = Duration::from_secs(3600);
        let kept = |name: &str, hours: u32, bytes: u64| (OsString::from(name), hour * hours, bytes);
        let all = || vec![kept("old", 30, 1), kept("mid", 5, 60), kept("new", 1, 50)];
        let names =
            |keep| goes(all(), keep).into_iter().map(|name| name.into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(names(StagedKeep { age: hour * 24, bytes: 1000 }), ["old"]);
        assert_eq!(names(StagedKeep { age: hour * 24, bytes: 100 }), ["mid", "old"]);
        assert_eq!(names(StagedKeep { age: hour * 2, bytes: 1000 }), ["mid", "old"]);
        assert_eq!(names(StagedKeep { age: hour * 48, bytes: 1000 }), Vec::<String>::new());
    }
}

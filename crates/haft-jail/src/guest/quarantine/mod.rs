//! What a guest left behind that would run programs later: found when it has ended, and taken out of the way before its
//! end is told.
//!
//! A mount can hold what is there, and no mount and no Landlock rule knows names. So what is *new* under a protected
//! name is moved into haft's state folder, which no guest reaches; where that is another file system, it gets another
//! name in its place. What has to be looked at is on record before the guest starts: where haft is killed, the next one
//! does it.

mod cleaner;
mod record;
mod shown;

pub(crate) use record::Window;

use super::{
    denied_links::DeniedLinks,
    host::Inner,
    links::{self, Awaited},
    mask::{Findings, Granted},
    survey::{FOLDER, Id, Seen},
};
use cleaner::{settle, violation};
use haft_core::Violation;
use haft_guard::names::ProtectedNames;
use record::{Record, forget, is_over, on_record, records, sweep};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What has to be looked at when a guest has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// Folders that it could write.
    roots: Vec<(PathBuf, Id)>,
    /// What was there under a protected name before it was.
    known: BTreeSet<Seen>,
    /// What was hidden from it.
    skip: BTreeSet<Seen>,
    /// What protected names lead over.
    #[serde(with = "links::pairs")]
    awaited: Awaited,
    /// Links that say what is hidden.
    hiding: DeniedLinks,
}

impl Watched {
    pub(crate) fn new(granted: &Granted, found: Findings) -> Self {
        let root = |path: &PathBuf| {
            let there = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
            Some((path.clone(), Id { device: there.dev(), inode: there.ino() }))
        };
        let Findings { denied, known, awaited, hiding, .. } = found;
        Watched {
            roots: granted.writable.iter().filter_map(root).collect(),
            known,
            skip: denied.iter().filter_map(|denied| Seen::at(&denied.path)).collect(),
            awaited,
            hiding,
        }
    }

    /// Whether something is there that was not when this guest started, and that it could have made.
    fn may_have_made(&self, seen: &Seen) -> bool {
        self.roots.iter().any(|(root, _)| seen.is_below(root))
            && !self.known.contains(seen)
            && !self.skip.iter().any(|hidden| seen.is_in(hidden) && hidden.is_there())
    }
}

/// Looks at what a guest leaves. Made before it starts.
pub(super) struct Watch {
    watched: Watched,
    record: PathBuf,
    folder: PathBuf,
    names: Arc<ProtectedNames>,
}

impl Watch {
    /// Puts on record what to look at; `None` where a guest can write nothing.
    pub(super) fn begin(host: &Inner, name: &str, watched: Watched) -> io::Result<Option<Self>> {
        if watched.roots.is_empty() {
            return Ok(None);
        }
        let state = &host.options.state;
        let (record, watched) = begin(state, &host.instance.name, name, watched)?;
        let names = Arc::clone(&host.options.names);
        Ok(Some(Watch { watched, record, folder: quarantine(state), names }))
    }

    /// Takes what is new out of the way. Nothing of the guest runs any more.
    pub(super) fn settle(self) -> Vec<Violation> {
        let violations = settle(&self.watched, &self.names, &self.folder);
        forget(&self.record);
        violations
    }

    /// Forgets the record of a guest that never ran.
    pub(super) fn never_ran(self) {
        forget(&self.record);
    }
}

/// Writes a record, with what is known without what guests that still run could have made: that may be moved about
/// until their end. The caller has a [`Window`] open since before the search.
fn begin(state: &Path, instance: &str, name: &str, mut watched: Watched) -> io::Result<(PathBuf, Watched)> {
    for (path, record) in on_record(state) {
        let other = record.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?.watched;
        watched.known.retain(|seen| !other.may_have_made(seen));
    }
    let path = records(state).join(format!("{name}.json"));
    let record = Record { instance: instance.to_owned(), watched };
    record::write(&path, &record)?;
    Ok((path, record.watched))
}

/// Links that say what is hidden, as guests found them that still run. The caller has a [`Window`] open.
pub(super) fn links_of_running(state: &Path) -> io::Result<DeniedLinks> {
    let mut all = DeniedLinks::default();
    for (path, record) in on_record(state) {
        let record = record.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        if !is_over(&path) {
            all.add_all(record.watched.hiding);
        }
    }
    Ok(all)
}

fn quarantine(state: &Path) -> PathBuf {
    state.join("quarantine")
}

/// Takes out of the way what guests of killed runs of haft left on record. To be called at the start: jails do it, too,
/// but not every run makes one.
pub fn recover_quarantine(state: &Path, names: &ProtectedNames) -> Vec<Violation> {
    if fs::read_dir(records(state)).into_iter().flatten().next().is_none() {
        return Vec::new();
    }
    super::instance::end_dead(state);
    catch_up(state, names)
}

/// Does what runs of haft did not come to that were killed. Those whose folder is there still run, or are not ended
/// yet.
pub(super) fn catch_up(state: &Path, names: &ProtectedNames) -> Vec<Violation> {
    let mut all = Vec::new();
    for (path, record) in on_record(state) {
        match record {
            Ok(Record { instance, .. }) if state.join("instances").join(&instance).exists() => continue,
            // It was looked at, and not forgotten yet.
            Ok(_) if is_over(&path) => {}
            Ok(Record { watched, .. }) => all.extend(settle(&watched, names, &quarantine(state))),
            Err(error) => {
                let kept = path.with_extension("unreadable");
                let text = format!(
                    "a record of what a killed program could write cannot be read ({error}): what it made may still be there. \
                     Look at {}, then remove it",
                    shown::shown(&kept)
                );
                let _ = fs::rename(&path, &kept);
                all.push(violation(&kept, text, false));
                continue;
            }
        }
        forget(&path);
    }
    sweep(&records(state));
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn granted(root: &Path) -> Granted {
        Granted { readable: Vec::new(), writable: vec![root.to_owned()] }
    }

    pub(super) fn watched(root: &Path) -> Watched {
        let denied = crate::guest::mask::compile(&["*.pem".to_owned()]).unwrap();
        let found = crate::guest::mask::find(&granted(root), &denied, &ProtectedNames::default()).unwrap();
        Watched::new(&granted(root), found)
    }

    #[test]
    fn a_record_that_cannot_be_read_is_told_and_kept() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(records(state.path())).unwrap();
        fs::write(records(state.path()).join("haft-1-x.json"), "{").unwrap();
        // Half of one that was being written when haft was killed: its program never started.
        fs::write(records(state.path()).join("haft-2-x.new"), "{").unwrap();
        let found = catch_up(state.path(), &ProtectedNames::default());
        assert!(found.len() == 1 && !found[0].was_blocked, "{found:?}");
        assert!(records(state.path()).join("haft-1-x.unreadable").exists());
        assert_eq!(catch_up(state.path(), &ProtectedNames::default()), []);
    }

    #[test]
    fn what_a_running_guest_made_is_not_known_to_the_next() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        fs::create_dir(at.join("x.pem")).unwrap();
        fs::write(at.join(".envrc"), "mine").unwrap();
        let first = watched(at);
        fs::create_dir(at.join("z")).unwrap();
        fs::write(at.join("z/.envrc"), "evil").unwrap();
        let second = watched(at);
        let made: Vec<_> = second.known.iter().filter(|seen| first.may_have_made(seen)).collect();
        assert!(second.known.len() == 2 && made.len() == 1, "{made:?}");
        // What was hidden from it is not its own, as long as that is the same folder.
        let inside = |name: &str| Seen::at(&at.join(name)).unwrap();
        fs::write(at.join("x.pem/.envrc"), "mine").unwrap();
        assert!(!first.may_have_made(&inside("x.pem/.envrc")));
        fs::rename(at.join("x.pem"), at.join("q")).unwrap();
        fs::rename(at.join("z"), at.join("x.pem")).unwrap();
        assert!(first.may_have_made(&inside("x.pem/.envrc")));
    }
}

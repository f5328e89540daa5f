//! What a call was decided to touch: nothing else can be used by it, whatever its paths have come to lead to since.

use haft_core::{Footprint, Resource};
use haft_sdk::files::Access;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The resolved paths that a decision was about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    reads: Paths,
    writes: Paths,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Paths {
    /// The decision was about anything.
    Any,
    /// These, and what is below them.
    Below(Vec<PathBuf>),
}

impl Paths {
    fn of(resources: &[Resource]) -> Self {
        let mut paths = Vec::with_capacity(resources.len());
        for resource in resources {
            match resource {
                Resource::Anything => return Paths::Any,
                Resource::Path(path) => paths.push(PathBuf::from(path)),
                Resource::Host(_) | Resource::Named(_) => {}
            }
        }
        Paths::Below(paths)
    }

    fn covers(&self, path: &Path) -> bool {
        match self {
            Paths::Any => true,
            Paths::Below(paths) => paths.iter().any(|held| path.starts_with(held)),
        }
    }
}

impl Held {
    pub(crate) fn to(footprint: &Footprint) -> Self {
        Held { reads: Paths::of(&footprint.reads), writes: Paths::of(&footprint.writes) }
    }

    /// Whether a change of that path was decided about by name. That anything may be changed names nothing.
    pub(crate) fn names(&self, path: &Path) -> bool {
        match &self.writes {
            Paths::Any => false,
            Paths::Below(_) => self.writes.covers(path),
        }
    }

    /// Whether a resolved path may be used like that. What may be written may be read.
    pub(crate) fn covers(&self, path: &Path, access: Access) -> bool {
        match access {
            Access::Read => self.reads.covers(path) || self.writes.covers(path),
            Access::Write => self.writes.covers(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_decided_on_is_covered() {
        let path = |path: &str| Resource::path(path);
        let mut footprint = Footprint::reads([path("/w/src/x")]);
        footprint.writes = vec![path("/w/out"), Resource::Host("example.com".into())];
        // path, whether it may be read, whether it may be written
        let cases = [
            ("/w/src/x", true, false),
            ("/w/src/x/below", true, false),
            ("/w/src/xy", false, false),
            ("/w/src", false, false),
            ("/w/private/x", false, false),
            ("/w/out", true, true),
            ("/w/out/a/b", true, true),
            ("/w/outside", false, false),
        ];
        let held = Held::to(&footprint);
        for (path, read, write) in cases {
            let found = [Access::Read, Access::Write].map(|access| held.covers(Path::new(path), access));
            assert_eq!(found, [read, write], "{path}");
        }
        assert!(held.names(Path::new("/w/out/a")) && !held.names(Path::new("/w/src/x")));
        assert!(!Held::to(&Footprint::undeclared(true)).names(Path::new("/w/out")), "anything names nothing");
        let none = Held::to(&Footprint::default());
        assert!(!none.covers(Path::new("/w"), Access::Read), "who touches nothing has nothing");
        let reader = Held::to(&Footprint::undeclared(false));
        assert!(
            reader.covers(Path::new("/w"), Access::Read) && !reader.covers(Path::new("/w"), Access::Write)
        );
    }
}

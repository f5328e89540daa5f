//! What a call would read and write, so that calls which must not overlap do not.

use crate::ExecutionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that can be read or written.
///
/// ```
/// use haft_core::Resource;
/// assert!(Resource::path("/src").overlaps(&Resource::path("/src/main.rs")));
/// assert!(!Resource::path("/src").overlaps(&Resource::path("/src2")));
/// assert!(!Resource::path("/src").overlaps(&Resource::named("git-index:/src")));
/// assert!(Resource::Anything.overlaps(&Resource::path("/src")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum Resource {
    /// Nobody said what, so it may be whatever another call touches.
    Anything,
    /// A file, or a folder with all that is in it. Resolved and with forward slashes.
    Path(String),
    /// A host.
    Host(String),
    /// Anything else that has a name, such as `git-index:/repo`.
    Named(String),
}

/// What begins the name of what a call changed.
const CHANGES_OF: &str = "changes-of:";

impl Resource {
    /// A path.
    pub fn path(path: impl Into<String>) -> Self {
        Resource::Path(path.into())
    }

    /// Something with a name.
    pub fn named(name: impl Into<String>) -> Self {
        Resource::Named(name.into())
    }

    /// What a call changed, to be undone. The engine puts the paths in its place before anything is decided, so that
    /// undoing is decided about by what it changes; where they are not known, it may be anything.
    ///
    /// ```
    /// # use haft_core::{ExecutionId, Resource};
    /// let call = ExecutionId::at(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Resource::changes_of(call).as_changes_of(), Some(call));
    /// assert_eq!(Resource::named("git-index:/repo").as_changes_of(), None);
    /// ```
    pub fn changes_of(call: ExecutionId) -> Self {
        Resource::Named(format!("{CHANGES_OF}{call}"))
    }

    /// The call whose changes it stands for.
    pub fn as_changes_of(&self) -> Option<ExecutionId> {
        match self {
            Resource::Named(name) => name.strip_prefix(CHANGES_OF)?.parse().ok(),
            Resource::Anything | Resource::Path(_) | Resource::Host(_) => None,
        }
    }

    /// Whether the two are the same thing, or one contains the other.
    pub fn overlaps(&self, other: &Resource) -> bool {
        match (self, other) {
            (Resource::Anything, _) | (_, Resource::Anything) => true,
            (Resource::Path(a), Resource::Path(b)) => contains(a, b) || contains(b, a),
            (Resource::Host(a), Resource::Host(b)) => a.eq_ignore_ascii_case(b),
            (Resource::Named(a), Resource::Named(b)) => a == b,
            (Resource::Path(_) | Resource::Host(_) | Resource::Named(_), _) => false,
        }
    }
}

fn contains(folder: &str, path: &str) -> bool {
    let folder = folder.strip_suffix('/').unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a call would read and write. The default touches nothing that another call could see.
///
/// ```
/// use haft_core::{Footprint, Resource};
/// let edit = Footprint::writes([Resource::path("a.txt")]);
/// assert!(edit.conflicts_with(&Footprint::reads([Resource::path("a.txt")])));
/// assert!(!edit.conflicts_with(&Footprint::reads([Resource::path("b.txt")])));
/// assert!(edit.conflicts_with(&Footprint::undeclared(true)));
/// assert!(!edit.conflicts_with(&Footprint::default()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Footprint {
    /// What it reads.
    pub reads: Vec<Resource>,
    /// What it writes.
    pub writes: Vec<Resource>,
}

impl Footprint {
    /// Only reads these.
    pub fn reads(resources: impl IntoIterator<Item = Resource>) -> Self {
        Footprint { reads: resources.into_iter().collect(), writes: Vec::new() }
    }

    /// Writes these.
    pub fn writes(resources: impl IntoIterator<Item = Resource>) -> Self {
        Footprint { reads: Vec::new(), writes: resources.into_iter().collect() }
    }

    /// What must be assumed of a tool that does not say: it reads anything, and with side effects writes anything.
    pub fn undeclared(has_side_effects: bool) -> Self {
        match has_side_effects {
            true => Footprint::writes([Resource::Anything]),
            false => Footprint::reads([Resource::Anything]),
        }
    }

    /// Whether files, or who knows what, are among what it touches.
    ///
    /// ```
    /// use haft_core::{Footprint, Resource};
    /// assert!(Footprint::reads([Resource::path("a.txt")]).touches_files());
    /// assert!(Footprint::undeclared(false).touches_files());
    /// assert!(!Footprint::reads([Resource::Host("example.com".into())]).touches_files());
    /// ```
    pub fn touches_files(&self) -> bool {
        self.reads.iter().chain(&self.writes).any(|resource| match resource {
            Resource::Anything | Resource::Path(_) => true,
            Resource::Host(_) | Resource::Named(_) => false,
        })
    }

    /// Whether it may write anything, and so read anything, too.
    pub fn may_write_anything(&self) -> bool {
        self.writes.contains(&Resource::Anything)
    }

    /// Whether the two must not overlap: one writes what the other reads or writes.
    pub fn conflicts_with(&self, other: &Footprint) -> bool {
        let any = |a: &[Resource], b: &[Resource]| a.iter().any(|a| b.iter().any(|b| a.overlaps(b)));
        any(&self.writes, &other.writes) || any(&self.writes, &other.reads) || any(&self.reads, &other.writes)
    }
}

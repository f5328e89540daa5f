//! What a command changed, for its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a command changed: exact counts, and a bounded list.
///
/// ```
/// use haft_core::{ChangeSummary, ChangedEntry, EntryChange, EntryKind};
/// let entry = ChangedEntry { path: "out.txt".into(), change: EntryChange::Created, kind: EntryKind::File, bytes: 5 };
/// let summary = ChangeSummary { created: 1, bytes: 5, changes: vec![entry], ..ChangeSummary::default() };
/// assert_eq!(summary.to_string(), "1 created, 0 modified, 0 deleted");
/// assert!(!summary.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSummary {
    /// How many files and links were made.
    pub created: u64,
    /// How many files and links have other contents, permissions or owners.
    pub modified: u64,
    /// How many files and links were deleted, those in deleted folders among them.
    pub deleted: u64,
    /// How many folders were made, deleted, moved, or have other permissions or owners.
    #[serde(default)]
    pub folders: u64,
    /// How many bytes the files have that were made or modified.
    #[serde(default)]
    pub bytes: u64,
    /// The first of them.
    #[serde(default)]
    pub changes: Vec<ChangedEntry>,
    /// How many more there are than `changes` lists.
    #[serde(default)]
    pub omitted: u64,
}

impl ChangeSummary {
    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.created + self.modified + self.deleted + self.folders == 0
    }

    /// Counts one change, and lists it unless so many are listed already.
    pub fn add(&mut self, entry: ChangedEntry, most_listed: usize) {
        match (&entry.change, entry.kind) {
            (_, EntryKind::Folder) => self.folders += 1,
            (EntryChange::Created, _) => self.created += 1,
            (EntryChange::Modified | EntryChange::Moved(_), _) => self.modified += 1,
            (EntryChange::Deleted, _) => self.deleted += 1,
        }
        if entry.change != EntryChange::Deleted {
            self.bytes += entry.bytes;
        }
        match self.changes.len() < most_listed {
            true => self.changes.push(entry),
            false => self.omitted += 1,
        }
    }
}

impl std::fmt::Display for ChangeSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} created, {} modified, {} deleted", self.created, self.modified, self.deleted)
    }
}

/// What became of the changes of a staged command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettledChanges {
    /// Where they are now.
    pub state: ChangesState,
    /// Why, where they were not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Until when they are kept, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<jiff::Timestamp>,
    /// What they are.
    #[serde(flatten)]
    pub summary: ChangeSummary,
}

/// Where the changes of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangesState {
    /// The command changed nothing.
    Nothing,
    /// In the files: they were applied as one change, which can be undone.
    Applied,
    /// Apart from the files, until somebody applies or discards them, or until their time is over.
    Kept,
    /// Thrown away.
    Discarded,
    /// In the files from the start: they could not be kept apart.
    Live,
}

impl SettledChanges {
    /// These changes, in that state.
    pub fn new(state: ChangesState, summary: ChangeSummary) -> Self {
        SettledChanges { state, reason: None, kept_until: None, summary }
    }

    /// The same, for that reason.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        SettledChanges { reason: Some(reason.into()), ..self }
    }
}

/// One file, folder or link that a command changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedEntry {
    /// Where it is: a whole path.
    pub path: String,
    /// What became of it.
    pub change: EntryChange,
    /// What it is now; of what was deleted, what it was.
    pub kind: EntryKind,
    /// How many bytes it has now; of what was deleted, how many it had.
    #[serde(default)]
    pub bytes: u64,
}

/// What became of a file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryChange {
    /// It was made.
    Created,
    /// It has other contents, permissions or owners.
    Modified,
    /// It was deleted.
    Deleted,
    /// It has another name, with all that is in it: where it was.
    Moved(String),
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_and_the_list_is_bounded() {
        let mut summary = ChangeSummary::default();
        for number in 0..10 {
            let change = if number % 2 == 0 { EntryChange::Created } else { EntryChange::Deleted };
            let path = format!("/w/{number}");
            summary.add(ChangedEntry { path, change, kind: EntryKind::File, bytes: 3 }, 4);
        }
        let folder = EntryChange::Moved("/w/a".into());
        let entry = ChangedEntry { path: "/w/b".into(), change: folder, kind: EntryKind::Folder, bytes: 0 };
        summary.add(entry, 4);
        assert_eq!((summary.created, summary.deleted, summary.folders), (5, 5, 1));
        assert_eq!((summary.changes.len(), summary.omitted, summary.bytes), (4, 7, 15));
        let json = serde_json::to_value(&summary.changes[0]).unwrap();
        let expected = serde_json::json!({"path": "/w/0", "change": "created", "kind": "file", "bytes": 3});
        assert_eq!(json, expected);
    }
}

//! Profiles: one name for many keys. What a file, a variable or a flag says about a key counts more.

use super::{
    keys::{Key, key},
    place::Place,
    read::Entry,
    trust::{TrustError, TrustStore},
    value::Value,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What tools may do in a folder, as one choice.
///
/// ```
/// use haft_config::Profile;
/// assert_eq!("coding".parse(), Ok(Profile::Coding));
/// assert_eq!(Profile::ReadOnly.to_string(), "read-only");
/// assert_eq!(Profile::default(), Profile::Locked);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// What holds until one is chosen: reads are free, changes are asked about, commands are denied.
    #[default]
    Locked,
    /// Reads are free, and nothing else runs.
    ReadOnly,
    /// Reads are free; changes and commands are asked about.
    Careful,
    /// Reads and edits in the workspace are free, and can be undone. Commands run in a jail, staged and without network,
    /// unasked. Protected names, network and everything outside are asked about.
    Coding,
}

impl Profile {
    /// All of them, strictest first.
    pub const ALL: [Profile; 4] = [Profile::Locked, Profile::ReadOnly, Profile::Careful, Profile::Coding];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Profile::Locked => "locked",
            Profile::ReadOnly => "read-only",
            Profile::Careful => "careful",
            Profile::Coding => "coding",
        }
    }

    /// What it allows, in a line.
    #[must_use]
    pub const fn means(self) -> &'static str {
        match self {
            Profile::Locked => "reads are free, changes are asked about, commands are denied",
            Profile::ReadOnly => "reads are free, and nothing else runs",
            Profile::Careful => "reads are free; changes and commands are asked about",
            Profile::Coding => {
                "reads and edits are free and undoable; commands run in a jail, staged, without network, unasked; \
                 protected names, network and everything outside are asked about"
            }
        }
    }

    /// The keys that it sets, with their values.
    #[must_use]
    pub fn sets(self) -> Vec<(&'static Key, Value)> {
        let names = |names: &[&str]| Value::Names(names.iter().map(|&name| name.to_owned()).collect());
        let all: Vec<(&str, Value)> = match self {
            Profile::Locked => Vec::new(),
            Profile::ReadOnly => vec![("tools.approval.mode", Value::Level("deny"))],
            Profile::Careful => vec![
                ("tools.approval.mode", Value::Level("prompt")),
                ("tools.approval.denylist", names(&[])),
                ("tools.commands.ask", Value::Level("before")),
                ("tools.commands.writes", Value::Level("live")),
            ],
            Profile::Coding => vec![
                ("tools.approval.mode", Value::Level("prompt")),
                ("tools.approval.denylist", names(&[])),
                ("tools.approval.allowlist", names(FREE)),
                ("tools.commands.ask", Value::Level("effects")),
                ("tools.commands.writes", Value::Level("staged")),
                ("tools.commands.presets", names(&["git"])),
            ],
        };
        all.into_iter().filter_map(|(path, value)| Some((key(path)?, value))).collect()
    }

    /// The same as a layer, below everything that anybody writes.
    pub(super) fn entries(self, place: &Place) -> Vec<Entry> {
        let entry = |(key, value)| Entry { key, value, place: place.clone() };
        self.sets().into_iter().map(entry).collect()
    }
}

/// Tools that run without asking in the profile `coding`: each of their changes can be undone.
const FREE: &[&str] = &[
    "read_file",
    "list_directory",
    "glob",
    "search_files",
    "write_file",
    "edit_file",
    "apply_patch",
    "move_file",
    "copy_file",
    "undo_changes",
    "apply_changes",
];

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Profile::ALL.into_iter().find(|profile| profile.as_str() == text.replace('_', "-"));
        known.ok_or_else(|| {
            format!("there is no profile `{text}`; there are locked, read-only, careful, coding")
        })
    }
}

/// Which profile was chosen for which folder, in the state folder.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    folders: BTreeMap<String, Choice>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    profile: Profile,
    chosen_at: Timestamp,
}

const RECORD: &str = "profiles.json";

/// Profiles are chosen for folders, and that is remembered where trust in files is.
impl TrustStore {
    /// The profile that was chosen for a folder or the nearest one around it, with that folder.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let (state, work) = (folder.path().join("state"), folder.path().join("work"));
    /// # std::fs::create_dir_all(work.join("src"))?;
    /// # #[cfg(unix)] let me = Some(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&work)?));
    /// # #[cfg(not(unix))] let me = None;
    /// use haft_config::{Profile, TrustStore};
    /// let store = TrustStore::new(state, me);
    /// assert_eq!(store.profile_of(&work)?, None);
    /// store.choose_profile(&work, Profile::Coding, jiff::Timestamp::now())?;
    /// assert_eq!(store.profile_of(&work.join("src"))?.map(|(profile, _)| profile), Some(Profile::Coding));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the record cannot be used. Then no profile is chosen.
    pub fn profile_of(&self, folder: &Path) -> Result<Option<(Profile, PathBuf)>, TrustError> {
        let chosen: Chosen = self.load_from(RECORD)?;
        if chosen.folders.is_empty() {
            return Ok(None);
        }
        let folder = real(folder);
        let found = folder.ancestors().find_map(|folder| {
            let choice = chosen.folders.get(folder.to_str()?)?;
            Some((choice.profile, folder.to_path_buf()))
        });
        Ok(found)
    }

    /// Chooses a profile for a folder and those in it, in place of the one before.
    ///
    /// # Errors
    ///
    /// When the record cannot be used or written.
    pub fn choose_profile(
        &self,
        folder: &Path,
        profile: Profile,
        now: Timestamp,
    ) -> Result<PathBuf, TrustError> {
        let folder = real(folder);
        let name = folder.to_str().ok_or_else(|| TrustError::NotUtf8 { path: folder.clone() })?.to_owned();
        self.update_in(
            RECORD,
            |store| store.load_from::<Chosen>(RECORD),
            |chosen| chosen.folders.insert(name, Choice { profile, chosen_at: now }),
        )?;
        Ok(folder)
    }
}

fn real(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_a_profile_sets_is_in_the_table_and_takes_the_value() {
        let counts = [0, 1, 4, 6];
        for (profile, count) in Profile::ALL.into_iter().zip(counts) {
            let sets = profile.sets();
            assert_eq!(sets.len(), count, "{profile}");
            for (key, value) in sets {
                let mut config = crate::Config::default();
                assert!(key.set(&mut config, &value), "{profile}: {}", key.path());
                assert_eq!(key.get(&config), value);
            }
            assert_eq!(profile.as_str().parse(), Ok(profile));
        }
        assert!("lax".parse::<Profile>().is_err());
    }

    #[test]
    fn a_key_that_somebody_sets_counts_more_than_the_profile() {
        use crate::{FolderSource, Inputs, SourceText, resolve};
        use haft_core::{ApprovalMode, AskCommands, CommandWrites};
        let of = |inputs: &Inputs| resolve(inputs).unwrap_or_else(|error| panic!("{error}")).config;
        let coding = of(&Inputs {
            user: Some(SourceText::new(
                "/u.toml",
                "[policy]\nprofile = 'coding'\n[tools.commands]\nask = 'before'\n",
            )),
            ..Inputs::default()
        });
        let commands = &coding.tools.commands;
        assert_eq!((commands.ask, commands.writes), (AskCommands::Before, CommandWrites::Staged));
        assert!(coding.tools.approval.denylist.is_empty());
        let chosen = Inputs { chosen: Some((Profile::ReadOnly, "/w".into())), ..Inputs::default() };
        let read_only = of(&chosen);
        assert_eq!(read_only.policy.profile, Profile::ReadOnly);
        assert_eq!(read_only.tools.approval.mode, ApprovalMode::Deny);
        let flags = vec![("policy.profile".to_owned(), "careful".to_owned())];
        assert_eq!(of(&Inputs { flags, ..chosen }).tools.approval.mode, ApprovalMode::Prompt);
        // A folder's own file has no say in it until it is trusted.
        let source = SourceText::new("/w/haft.toml", "[policy]\nprofile = 'coding'\n");
        let folder = |pinned| Inputs {
            folder: Some(FolderSource { source: source.clone(), pinned }),
            ..Inputs::default()
        };
        assert!(of(&folder(false)).tools.approval.denylist.contains(&"run_command".to_owned()));
        assert_eq!(of(&folder(false)).policy.profile, Profile::Locked);
        assert_eq!(of(&folder(true)).policy.profile, Profile::Coding);
    }
}

//! The layers: what each source says, and how one is laid on another. Pure.

use std::collections::BTreeMap;
use std::path::Path;

use super::keys::{Config, ENV_PREFIX, Key, key, keys, sections};
use super::note::{Ignored, Note};
use super::place::{Owner, Place};
use super::problem::{ConfigError, Problem};
use super::profile::Profile;
use super::read::{self, Entry, Reading, Start};
use super::resolve::{Inputs, Origin, SourceText};
use super::rule::{Configured, FolderComparison};
use super::suggest;
use super::value::Value;

/// Variables that begin like a key's but mean something else.
const RESERVED: &[&str] = &[
    "HAFT_LOG",
    "HAFT_STATE_DIR",
    "HAFT_CONFIG",
    "HAFT_TEST_DATA",
    "HAFT_NOT_RUN",
    "HAFT_EFFECT_ID",
    "HAFT_CALL_ID",
    "HAFT_CALL_METADATA",
    "HAFT_CALL_CONTEXT",
];

/// The key that names a profile.
const PROFILE: &str = "policy.profile";

/// What each source says.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) user: Vec<Entry>,
    /// The profile that was chosen for the folder.
    pub(super) chosen: Vec<Entry>,
    pub(super) folder: Vec<Entry>,
    pub(super) env: Vec<Entry>,
    pub(super) flags: Vec<Entry>,
    pub(super) notes: Vec<Note>,
}

impl Layers {
    /// Reads all sources; the problems of all of them come together.
    pub(super) fn read(inputs: &Inputs) -> Result<Self, ConfigError> {
        let home = inputs.home.as_deref();
        let real = |folder: &Path| (inputs.real_path)(folder).unwrap_or_else(|| folder.to_path_buf());
        let working = real(&inputs.working_folder);
        let own = Start { folder: None, home, rules: Some(&working) };
        let project = inputs.folder.as_ref().and_then(|folder| folder.source.path.parent()).map(real);
        let file = |source: &SourceText, owner, start| {
            let place = Place::File { path: inputs.shown(&source.path), owner, position: None };
            read::file(&source.bytes, place, start)
        };
        let user = inputs.user.as_ref().map_or_else(Reading::default, |user| file(user, Owner::User, own));
        let folder = inputs.folder.as_ref().map_or_else(Reading::default, |folder| {
            // What a project says about folders is about the project, wherever in it one stands.
            let start = Start { folder: folder.source.path.parent(), home, rules: project.as_deref() };
            file(&folder.source, Owner::Folder, start)
        });
        let (env, notes) = variables(&inputs.env, own);
        let flags = collect(inputs.flags.iter().map(|(name, value)| flag(name, value, own)));

        let mut all = Reading::default();
        let [user, folder, env, flags] = [user, folder, env, flags].map(|mut reading| {
            all.problems.append(&mut reading.problems);
            all.left_out += reading.left_out;
            reading.entries
        });
        if !all.problems.is_empty() {
            return Err(ConfigError::new(all.problems, all.left_out));
        }
        let chosen = inputs.chosen.as_ref().and_then(|(profile, folder)| {
            let place = Place::Chosen { folder: inputs.shown(folder) };
            Some(Entry { key: key(PROFILE)?, value: Value::Level(profile.as_str()), place })
        });
        Ok(Self { user, chosen: chosen.into_iter().collect(), folder, env, flags, notes })
    }

    /// What the profile sets that counts here: the last one that is named, by somebody who may.
    pub(super) fn profile(&self, pinned: bool) -> Vec<Entry> {
        let folder: &[Entry] = if pinned { &self.folder } else { &[] };
        let named = [&self.user[..], &self.chosen, folder, &self.env, &self.flags].into_iter().flatten();
        let last = named.rev().find(|entry| entry.key.path() == PROFILE);
        let profile = last.and_then(|entry| match entry.value {
            Value::Level(name) => name.parse::<Profile>().ok().map(|profile| (profile, &entry.place)),
            _ => None,
        });
        profile.map(|(profile, place)| profile.entries(place)).unwrap_or_default()
    }
}

fn variables(env: &[(String, String)], start: Start<'_>) -> (Reading, Vec<Note>) {
    let mut readings: Vec<Reading> = Vec::new();
    let mut notes = Vec::new();
    for (name, value) in env.iter().filter(|(name, _)| name.starts_with(ENV_PREFIX)) {
        if RESERVED.contains(&name.as_str()) {
            continue;
        }
        match keys().iter().find(|key| key.is_set_by(name)) {
            // An empty variable is one that is not set: it must not empty a list by accident.
            Some(_) if value.trim().is_empty() => {}
            Some(key) => {
                let place = Place::Variable { name: name.clone() };
                let mut before = readings.iter().flat_map(|reading| &reading.entries);
                readings.push(match before.any(|entry| entry.key.path() == key.path()) {
                    // By its name now and by a former one.
                    true => Reading::failed(Problem::SetTwice { key: key.path().to_owned(), place }),
                    false => read::text(key, value, place, start),
                });
            }
            None => {
                let suggestions = suggest::variables_like(name);
                if !suggestions.is_empty() || begins_like_a_key(name) {
                    notes.push(Note::UnknownVariable { name: name.clone(), suggestions });
                }
            }
        }
    }
    (collect(readings.into_iter()), notes)
}

fn begins_like_a_key(name: &str) -> bool {
    let rest = name.strip_prefix(ENV_PREFIX).unwrap_or(name);
    sections()
        .iter()
        .any(|section| rest.starts_with(&format!("{}_", section.path.replace('.', "_").to_uppercase())))
}

fn flag(name: &str, value: &str, start: Start<'_>) -> Reading {
    let place = Place::Flag { key: name.to_owned() };
    match key(name) {
        Some(key) => read::text(key, value, place, start),
        None => {
            let suggestions = suggest::paths_like(name);
            Reading::failed(Problem::UnknownKey { key: name.to_owned(), suggestions, place })
        }
    }
}

fn collect(readings: impl Iterator<Item = Reading>) -> Reading {
    readings.fold(Reading::default(), |mut all, mut reading| {
        all.entries.append(&mut reading.entries);
        all.problems.append(&mut reading.problems);
        all.left_out += reading.left_out;
        all
    })
}

/// Values in effect so far, with where they come from. A key that is not in it has its default.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    values: BTreeMap<&'static str, Value>,
    pub(super) origins: BTreeMap<&'static str, Vec<Origin>>,
}

impl Stack {
    pub(super) fn value(&self, key: &Key) -> Value {
        self.values.get(key.path()).cloned().unwrap_or_else(|| key.default_value())
    }

    /// Lays entries on top, from someone who may loosen.
    pub(super) fn apply(&mut self, entries: &[Entry]) {
        for Entry { key, value, place } in entries {
            let together = key.rule().apply(&self.value(key), value);
            match key.rule().configured {
                Configured::Adds => self.add_origin(key, place),
                Configured::Replaces => {
                    self.origins.insert(key.path(), vec![Origin::Set(place.clone())]);
                }
            }
            self.values.insert(key.path(), together);
        }
    }

    /// Lets entries tighten what is there, and gives back those that would have loosened it.
    pub(super) fn tighten(&mut self, entries: &[Entry], ground: &FolderComparison<'_>) -> Vec<Ignored> {
        let mut ignored = Vec::new();
        for Entry { key, value, place } in entries {
            let current = self.value(key);
            let tightened = key.rule().tighten(&current, value, ground);
            if tightened.ignored {
                ignored.push(Ignored {
                    key: key.path(),
                    proposed: value.clone(),
                    in_effect: tightened.value.clone(),
                    place: place.clone(),
                });
            }
            if tightened.value != current {
                self.add_origin(key, place);
                self.values.insert(key.path(), tightened.value);
            }
        }
        ignored
    }

    fn add_origin(&mut self, key: &Key, place: &Place) {
        let origins = self.origins.entry(key.path()).or_insert_with(|| vec![Origin::Default]);
        origins.push(Origin::Set(place.clone()));
    }

    pub(super) fn config(&self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        for (path, value) in &self.values {
            // The reader has checked the type; this is the table contradicting itself, which a test rules
            // out.
            if !key(path).is_some_and(|key| key.set(&mut config, value)) {
                let place = Place::Flag { key: (*path).to_owned() };
                return Err(
                    Problem::UnknownKey { key: (*path).to_owned(), suggestions: Vec::new(), place }.into()
                );
            }
        }
        Ok(config)
    }
}

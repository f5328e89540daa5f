//! From text to values: TOML files, environment variables, flags. Pure; every problem of a text is found in
//! one go.

use std::path::{Path, PathBuf};

use haft_core::suggest::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entries;
use super::keys::{Key, is_section, key};
use super::place::Place;
use super::problem::{EntryFault, MAX_PROBLEMS, Problem};
use super::rule::{Kind, choices_in_words};
use super::suggest;
use super::toml_text::{at, described, entry_fault, integer, is_bare, joined};
use super::value::Value;
use super::visible;

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// One key as one source sets it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    pub(super) place: Place,
}

/// What one source says, or what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) entries: Vec<Entry>,
    pub(super) problems: Vec<Problem>,
    pub(super) left_out: usize,
}

/// What folders in a text are relative to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start<'a> {
    /// `None` leaves relative folders as they are: relative to the working folder.
    pub(super) folder: Option<&'a Path>,
    pub(super) home: Option<&'a Path>,
    /// What paths in rules are relative to, as it really is.
    pub(super) rules: Option<&'a Path>,
}

/// Reads a whole file.
pub(super) fn file(bytes: &[u8], place: Place, start: Start<'_>) -> Reading {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Reading::failed(Problem::TooBig { limit: MAX_FILE_BYTES, place });
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            return Reading::failed(Problem::NotText { place: at(&place, &before, before.len()) });
        }
    };
    let mut reader = Reader::new(text, place, start);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        reader.section("", table.get_ref());
    }
    // What was recovered around a syntax error is a guess; complaints about a guess mislead.
    for error in errors {
        reader.syntax(&error, error.span().map(|span| span.start));
    }
    reader.finish()
}

/// Reads what an environment variable or a flag says about a key.
///
/// Lists are comma-separated, or a TOML array where an entry has a comma or the list is empty.
pub(super) fn text(key: &'static Key, text: &str, place: Place, start: Start<'_>) -> Reading {
    let text = text.trim();
    let mut reader = Reader::new("", place, start);
    let found = || visible::shortened(&visible::quoted(text));
    match key.rule().kind {
        Kind::Switch => match text {
            "true" => reader.keep(key, Value::Switch(true), None),
            "false" => reader.keep(key, Value::Switch(false), None),
            _ => reader.wrong_type(key, found(), None),
        },
        Kind::Count { .. } => {
            let digits = text.replace('_', "");
            if digits.strip_prefix('-').unwrap_or(&digits).bytes().all(|b| b.is_ascii_digit())
                && !digits.is_empty()
            {
                reader.count(key, digits.parse().ok(), text.to_owned(), None);
            } else {
                reader.wrong_type(key, found(), None);
            }
        }
        Kind::Level(choices) => reader.level(key, choices, text, None),
        Kind::Text => reader.keep(key, Value::Text(text.to_owned()), None),
        Kind::Names | Kind::Folders | Kind::Tools | Kind::Agents if text.starts_with('[') => {
            match DeValue::parse(text) {
                Ok(value) => reader.value(key, &value),
                Err(error) => reader.syntax(&error, None),
            }
        }
        Kind::Rules if text.starts_with('[') => reader.rules(key, &format!("[policy]\nrules = {text}"), None),
        Kind::Tools | Kind::Rules | Kind::Agents => reader.wrong_type(key, found(), None),
        Kind::Names | Kind::Folders => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            reader.list(key, items.map(|item| (item, None)).collect(), None);
        }
    }
    reader.finish()
}

impl Reading {
    pub(super) fn failed(problem: Problem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }
}

/// A place in a text, or none where the text is not a file.
pub(super) type Offset = Option<usize>;

pub(super) struct Reader<'a> {
    text: &'a str,
    pub(super) place: Place,
    start: Start<'a>,
    pub(super) problems: Vec<(Offset, Problem)>,
    entries: Vec<Entry>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, place: Place, start: Start<'a>) -> Self {
        Self { text, place, start, problems: Vec::new(), entries: Vec::new() }
    }

    fn syntax(&mut self, error: &toml::de::Error, offset: Offset) {
        let (message, place) = (error.message().to_owned(), self.place.clone());
        self.problems.push((offset, Problem::Syntax { message, place }));
    }

    fn section(&mut self, path: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let child = joined(path, name.get_ref());
            // A quoted name may have a dot in it: it is not a path then.
            let found = if is_bare(name.get_ref()) { key(&child) } else { None };
            if let Some(key) = found {
                self.value(key, value);
            } else if is_bare(name.get_ref()) && is_section(&child) {
                match value.get_ref() {
                    DeValue::Table(table) => self.section(&child, table),
                    other => {
                        let example = format!("[{child}]");
                        self.mismatch(
                            child,
                            "a section",
                            described(other),
                            example,
                            Some(value.span().start),
                        );
                    }
                }
            } else {
                // Suggestions come later, for those that are told about.
                let problem =
                    Problem::UnknownKey { key: child, suggestions: Vec::new(), place: self.place.clone() };
                self.problems.push((Some(name.span().start), problem));
            }
        }
    }

    fn value(&mut self, key: &'static Key, value: &Spanned<DeValue<'_>>) {
        let offset = Some(value.span().start);
        match (key.rule().kind, value.get_ref()) {
            (Kind::Switch, DeValue::Boolean(on)) => self.keep(key, Value::Switch(*on), offset),
            (Kind::Count { .. }, DeValue::Integer(number)) => {
                self.count(key, integer(number), number.to_string(), offset);
            }
            (Kind::Level(choices), DeValue::String(word)) => self.level(key, choices, word, offset),
            (Kind::Text, DeValue::String(text)) => {
                self.keep(key, Value::Text(text.clone().into_owned()), offset);
            }
            (Kind::Names | Kind::Folders, DeValue::Array(items)) => {
                let strings: Option<Vec<_>> = items
                    .iter()
                    .map(|item| Some((item.get_ref().as_str()?, Some(item.span().start))))
                    .collect();
                match strings {
                    Some(strings) => self.list(key, strings, offset),
                    None => self.wrong_type(key, "a list with other things in it".to_owned(), offset),
                }
            }
            (Kind::Tools, DeValue::Array(items)) => self.tools(key, items, offset),
            (Kind::Agents, DeValue::Array(items)) => self.agents(key, items, offset),
            (Kind::Rules, DeValue::Array(_)) => self.rules(key, self.text, offset),
            (_, other) => self.wrong_type(key, described(other).to_owned(), offset),
        }
    }

    fn count(&mut self, key: &'static Key, number: Option<i128>, written: String, offset: Offset) {
        let Kind::Count { min, max } = key.rule().kind else {
            return;
        };
        match number.and_then(|number| u64::try_from(number).ok()) {
            Some(number) if (min..=max).contains(&number) => self.keep(key, Value::Count(number), offset),
            _ => {
                let (key, found) = (key.path().to_owned(), visible::shortened(&visible::plain(&written)));
                let problem = Problem::OutOfRange { key, found, min, max, place: self.place.clone() };
                self.problems.push((offset, problem));
            }
        }
    }

    fn level(&mut self, key: &'static Key, choices: &'static [&'static str], word: &str, offset: Offset) {
        if let Some(choice) = choices.iter().find(|choice| **choice == word) {
            self.keep(key, Value::Level(choice), offset);
            return;
        }
        let problem = Problem::UnknownChoice {
            key: key.path().to_owned(),
            found: visible::shortened(&visible::quoted(word)),
            choices,
            suggestion: nearest(word, choices.iter().copied()),
            place: self.place.clone(),
        };
        self.problems.push((offset, problem));
    }

    fn list(&mut self, key: &'static Key, items: Vec<(&str, Offset)>, offset: Offset) {
        let is_folders = matches!(key.rule().kind, Kind::Folders);
        let mut names: Vec<String> = Vec::with_capacity(items.len());
        let mut folders: Vec<PathBuf> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (item, item_offset) in items {
            match entry_fault(item).or_else(|| entries::fault(key.path(), item)) {
                Some(fault) => self.bad_entry(key.path(), item, fault, item_offset),
                None if !seen.insert(item) => {}
                None if is_folders => match self.folder(item) {
                    Some(folder) => folders.push(folder),
                    None => self.bad_entry(key.path(), item, EntryFault::NoHome, item_offset),
                },
                None => names.push(item.to_owned()),
            }
        }
        if !is_folders {
            self.keep(key, Value::Names(names), offset);
        } else if seen.is_empty() && key.default_value() != Value::Folders(Vec::new()) {
            let problem = Problem::NoFolder { key: key.path().to_owned(), place: self.place.clone() };
            self.problems.push((offset, problem));
        } else {
            self.keep(key, Value::Folders(folders), offset);
        }
    }

    /// The folder a text means, or `None` where it starts at a home folder that is not known.
    fn folder(&self, text: &str) -> Option<PathBuf> {
        let folder = match text.strip_prefix('~') {
            Some("") => self.start.home?.to_path_buf(),
            Some(rest) if rest.starts_with('/') => self.start.home?.join(rest.trim_start_matches('/')),
            Some(_) | None => match self.start.folder {
                // Without the `.` that `join` keeps.
                Some(start) => start.join(text).components().collect(),
                None => PathBuf::from(text),
            },
        };
        Some(folder)
    }

    /// Rules as haft-guard reads them, from the whole text: it knows their lines, and checks their examples.
    fn rules(&mut self, key: &'static Key, text: &str, offset: Offset) {
        let base = self.start.rules.unwrap_or(Path::new("/")).to_string_lossy();
        let line_start = |line: usize| match line.checked_sub(2) {
            None => 0,
            Some(before) => text.match_indices('\n').nth(before).map_or(text.len(), |(end, _)| end + 1),
        };
        match haft_guard::policy::read_policy_section(text, &base) {
            Ok(rules) => {
                let file = match &self.place {
                    Place::File { .. } => Some(self.place.to_string()),
                    Place::Variable { .. } | Place::Chosen { .. } | Place::Flag { .. } => None,
                };
                let place = |rule: haft_guard::policy::Rule| haft_guard::policy::Rule {
                    line: rule.line.filter(|_| file.is_some()),
                    file: Some(file.clone().unwrap_or_else(|| self.place.to_string())),
                    ..rule
                };
                let rules = rules.into_iter().map(place).collect();
                self.keep(key, Value::Rules(rules), offset);
            }
            Err(found) => {
                for problem in found.0 {
                    let (rule, what) = (problem.rule, problem.message);
                    let problem_offset = offset.and(problem.line).map(line_start);
                    let bad = Problem::BadRule { rule, what, place: self.place.clone() };
                    self.problems.push((problem_offset.or(offset), bad));
                }
            }
        }
    }

    pub(super) fn keep(&mut self, key: &'static Key, value: Value, offset: Offset) {
        let place = offset.map_or_else(|| self.place.clone(), |offset| at(&self.place, self.text, offset));
        // TOML refuses one name twice; a section has two where it was called something else before.
        if self.entries.iter().any(|entry| entry.key.path() == key.path()) {
            self.problems.push((offset, Problem::SetTwice { key: key.path().to_owned(), place }));
            return;
        }
        self.entries.push(Entry { key, value, place });
    }

    pub(super) fn bad_entry(&mut self, key: &str, found: &str, fault: EntryFault, offset: Offset) {
        let found = visible::shortened(&visible::quoted(found));
        let problem = Problem::BadEntry { key: key.to_owned(), found, fault, place: self.place.clone() };
        self.problems.push((offset, problem));
    }

    pub(super) fn wrong_type(&mut self, key: &'static Key, found: String, offset: Offset) {
        let expected = match key.rule().kind {
            Kind::Level(choices) => choices_in_words(choices),
            Kind::Count { .. } => "a whole number".to_owned(),
            Kind::Switch
            | Kind::Text
            | Kind::Names
            | Kind::Folders
            | Kind::Tools
            | Kind::Rules
            | Kind::Agents => key.rule().expected(),
        };
        let example = match key.rule().kind {
            Kind::Agents => "[[agents]]".to_owned(),
            Kind::Tools | Kind::Rules => format!("[[{}]]", key.path()),
            _ => format!("{} = {}", key.name(), key.default_value()),
        };
        let (key, place) = (key.path().to_owned(), self.place.clone());
        self.problems.push((offset, Problem::WrongType { key, expected, found, example, place }));
    }

    pub(super) fn mismatch(
        &mut self,
        key: String,
        expected: &str,
        found: &str,
        example: String,
        offset: Offset,
    ) {
        let (expected, found, place) = (expected.to_owned(), found.to_owned(), self.place.clone());
        self.problems.push((offset, Problem::WrongType { key, expected, found, example, place }));
    }

    /// Orders the problems as the file has them, and does the costly part only for those that are told about.
    fn finish(mut self) -> Reading {
        self.problems.sort_by_key(|(offset, _)| *offset);
        self.entries.sort_by_key(|entry| entry.place.position());
        let left_out = self.problems.len().saturating_sub(MAX_PROBLEMS);
        self.problems.truncate(MAX_PROBLEMS);
        let mut problems = Vec::with_capacity(self.problems.len());
        for (offset, mut problem) in self.problems {
            if let Some(offset) = offset {
                *problem.place_mut() = at(&self.place, self.text, offset);
            }
            if let Problem::UnknownKey { key, suggestions, .. } = &mut problem {
                if suggestions.is_empty() && !key.contains('[') {
                    *suggestions = suggest::paths_like(key);
                }
                *key = visible::shortened(key);
            }
            problems.push(problem);
        }
        Reading { entries: self.entries, problems, left_out }
    }
}

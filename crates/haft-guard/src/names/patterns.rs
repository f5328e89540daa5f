//! Sets of patterns for paths.

use super::fold::fold;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("'{pattern}' is not a pattern for paths: {reason}. An example of one is **/*.pem")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Patterns. What is below something that one matches is matched as well.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    set: GlobSet,
    /// The place in the caller's list, for each one of the set.
    places: Vec<usize>,
}

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> Result<Self, BadPattern> {
        let mut set = GlobSetBuilder::new();
        let mut places = Vec::new();
        for (place, pattern) in patterns.iter().enumerate() {
            let folded = fold(pattern);
            // Where all that is in a folder is meant, so is the folder: its listing would tell what is in it. What is
            // below is found by its folder.
            let glob = folded.strip_suffix("/**").unwrap_or(&folded);
            let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
            set.add(built.map_err(|error| bad(pattern, &error))?);
            places.push(place);
        }
        let set = set.build().map_err(|error| bad(&patterns.join(", "), &error))?;
        Ok(Patterns { set, places })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The first pattern that is about this very path, which is folded already.
    pub(super) fn of_entry(&self, folded: &str) -> Option<usize> {
        if self.set.is_empty() {
            return None;
        }
        let place = *self.set.matches(folded).first()?;
        self.places.get(place).copied()
    }

    /// The first pattern that is about a path or a folder around it.
    pub(super) fn first(&self, folded: &str) -> Option<usize> {
        if self.set.is_empty() {
            return None;
        }
        let around = Path::new(folded).ancestors().filter_map(Path::to_str);
        around.filter(|path| !path.is_empty() && *path != "/").find_map(|path| self.of_entry(path))
    }
}

fn bad(pattern: &str, error: &globset::Error) -> BadPattern {
    BadPattern { pattern: pattern.to_owned(), reason: error.kind().to_string() }
}

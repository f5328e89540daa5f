//! Which patterns of all rules a path matches.
//!
//! Compiling patterns is what reading rules costs most, and few of them are ever about the paths of a call. So they are
//! kept by the folder that they start with, and those of a folder are compiled when a call first touches something
//! below it.

use foldhash::HashMap;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::sync::OnceLock;

/// The path patterns of all rules. They are known by the order in which they came.
#[derive(Default)]
pub(super) struct PathPatterns {
    /// By the folder that every match is in.
    by_folder: HashMap<String, Together>,
    /// What calls around a match are told by: the folder, or nothing where that does not count.
    pub(super) fixed: Vec<String>,
}

/// Patterns of one folder.
#[derive(Default)]
struct Together {
    globs: Vec<(Glob, usize)>,
    compiled: OnceLock<Vec<Part>>,
    /// Those of rules that ask or deny.
    tightening: Vec<usize>,
}

/// Some of them: as a set, or those of which none could be made.
enum Part {
    Set(GlobSet, Vec<usize>),
    Unusable(usize),
}

impl PathPatterns {
    /// Adds a pattern of a rule that allows, or of one that asks or denies.
    pub(super) fn add(&mut self, pattern: &str, allows: bool) -> Result<(), globset::Error> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build()?;
        let (place, folder) = (self.fixed.len(), fixed_part(pattern));
        self.fixed.push(if allows { String::new() } else { folder.clone() });
        let together = self.by_folder.entry(folder).or_default();
        together.globs.push((glob, place));
        if !allows {
            together.tightening.push(place);
        }
        Ok(())
    }

    /// Those that a path matches, ascending.
    pub(super) fn matches(&self, path: &str) -> Vec<usize> {
        let mut found = Vec::new();
        let around = path.match_indices('/').map(|(end, _)| &path[..end]);
        // Before the first `/` stands the name of what has no folder around it: nothing, for a path from the root.
        let folders = std::iter::once("").chain(around.filter(|folder| !folder.is_empty())).chain([path]);
        for together in folders.filter_map(|folder| self.by_folder.get(folder)) {
            together.matches(path, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Together {
    fn matches(&self, path: &str, found: &mut Vec<usize>) {
        for part in self.compiled.get_or_init(|| compile(&self.globs)) {
            match part {
                Part::Set(set, places) => found.extend(set.matches(path).into_iter().map(|at| places[at])),
                // What cannot be known counts against the call.
                Part::Unusable(place) => found.extend(self.tightening.contains(place).then_some(*place)),
            }
        }
    }
}

/// As few sets as can be made: one has a limit to its size.
fn compile(globs: &[(Glob, usize)]) -> Vec<Part> {
    let mut set = GlobSetBuilder::new();
    for (glob, _) in globs {
        set.add(glob.clone());
    }
    match (set.build(), globs) {
        (Ok(set), _) => vec![Part::Set(set, globs.iter().map(|(_, place)| *place).collect())],
        (Err(_), [(_, place)]) => vec![Part::Unusable(*place)],
        (Err(_), several) => {
            let (one, other) = several.split_at(several.len() / 2);
            compile(one).into_iter().chain(compile(other)).collect()
        }
    }
}

/// What a pattern says without a wildcard, up to a whole folder: every match is in it, or is it.
fn fixed_part(pattern: &str) -> String {
    let wild = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    match wild == pattern.len() {
        true => pattern.to_owned(),
        false => pattern[..wild].rfind('/').map_or_else(String::new, |end| pattern[..end].to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> PathPatterns {
        let mut all = PathPatterns::default();
        patterns.into_iter().for_each(|pattern| all.add(pattern, false).unwrap());
        all
    }

    #[test]
    fn a_pattern_is_found_from_the_folder_that_it_starts_with() {
        let patterns = of([
            "/work/secrets/**",
            "/work/secrets",
            "**/*.pem",
            "/work/*/a",
            "/*",
            "/work/a\\*b",
            "name",
            "/work/{a,b}/c",
            "/work/s[ae]crets/x",
        ]);
        for (path, expected) in [
            ("/work/secrets/x", &[0, 8][..]),
            ("/work/secrets", &[1]),
            ("/work/secrets/k.pem", &[0, 2]),
            ("/k.pem", &[2, 4]),
            ("k.pem", &[2]),
            ("/work/x/a", &[3]),
            ("/work", &[4]),
            ("/work/a*b", &[5]),
            ("/work/axb", &[]),
            ("name", &[6]),
            ("/name", &[4]),
            ("/work/b/c", &[7]),
            ("/work/secretsx", &[]),
            ("/", &[4]),
            ("", &[]),
        ] {
            assert_eq!(patterns.matches(path), expected, "{path}");
        }
    }

    #[test]
    fn what_cannot_be_compiled_counts_against_the_call() {
        let mut patterns = of(["/a/**"]);
        patterns.add("/a/*", true).unwrap();
        let together = patterns.by_folder.get_mut("/a").unwrap();
        together.compiled = OnceLock::from(vec![Part::Unusable(0), Part::Unusable(1)]);
        assert_eq!(patterns.matches("/a/anything"), [0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: std::env::var("HAFT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256),
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(8),
            ..ProptestConfig::default()
        })]

        /// Patterns by folder match what one set of all patterns matches.
        #[test]
        fn folders_change_nothing(
            patterns in prop::collection::vec("(/|\\*\\*/)?([ab](/|/\\*\\*/|\\*|\\?|/\\*)?){1,4}(/\\*\\*)?", 1..8),
            paths in prop::collection::vec("/?([ab]/?){0,5}", 1..12),
        ) {
            let mut set = GlobSetBuilder::new();
            for pattern in &patterns {
                set.add(GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().unwrap());
            }
            let set = set.build().unwrap();
            let by_folder = of(patterns.iter().map(String::as_str));
            for path in &paths {
                prop_assert_eq!(by_folder.matches(path), set.matches(path), "{} in {:?}", path, patterns);
            }
        }
    }
}

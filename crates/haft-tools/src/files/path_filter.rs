//! Which paths a pattern means.

use globset::{Candidate, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use haft_core::{ToolError, text::one_line};
use std::path::Path;

/// The longest pattern, in bytes.
const MOST_BYTES: usize = 4096;
/// The most patterns of one call.
const MOST_PATTERNS: usize = 100;

/// A pattern of whole paths: `*` stays within a name, `**` does not.
#[derive(Debug)]
pub(super) enum PathPattern {
    /// Every path fits: nothing needs to be compared.
    Everything,
    Some(GlobMatcher),
}

pub(super) fn path_pattern(pattern: &str) -> Result<PathPattern, ToolError> {
    let glob = glob(pattern, pattern)?;
    Ok(match glob.glob() {
        "**" | "**/*" | "**/**" => PathPattern::Everything,
        _ => PathPattern::Some(glob.compile_matcher()),
    })
}

impl PathPattern {
    pub(super) fn is_match(&self, below: &Path) -> bool {
        match self {
            PathPattern::Everything => true,
            PathPattern::Some(matcher) => matcher.is_match(below),
        }
    }
}

fn glob(pattern: &str, written: &str) -> Result<globset::Glob, ToolError> {
    if written.trim().is_empty() {
        return Err(ToolError::bad_args("Bad args: pattern must not be empty"));
    }
    let refuse = |reason: &str| {
        let shown = one_line(written, 200);
        Err(ToolError::bad_args(format!("Bad args: '{shown}' is not a pattern for paths: {reason}")))
    };
    if written.len() > MOST_BYTES {
        return refuse(&format!("it has more than {MOST_BYTES} bytes"));
    }
    if written.starts_with('/') || written.split('/').any(|name| name == "..") {
        return refuse("patterns begin in the folder that `path` names; name another one there");
    }
    let plain = pattern.strip_prefix("./").unwrap_or(pattern);
    match GlobBuilder::new(plain).literal_separator(true).build() {
        Ok(glob) => Ok(glob),
        Err(error) => refuse(&error.kind().to_string()),
    }
}

/// Which files are wanted: those of some patterns, and not those of others.
#[derive(Debug, Default)]
pub(super) struct PathFilter {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
}

impl PathFilter {
    pub(super) fn new(include: &[String], exclude: &[String]) -> Result<Self, ToolError> {
        Ok(PathFilter { include: name_patterns(include)?, exclude: name_patterns(exclude)? })
    }

    pub(super) fn wants(&self, below: &Path) -> bool {
        if self.include.is_none() && self.exclude.is_none() {
            return true;
        }
        let candidate = Candidate::new(below);
        self.include.as_ref().is_none_or(|set| set.is_match_candidate(&candidate))
            && !self.exclude.as_ref().is_some_and(|set| set.is_match_candidate(&candidate))
    }
}

/// Patterns as people write them to filter: one without a slash is about names, wherever they are.
fn name_patterns(patterns: &[String]) -> Result<Option<GlobSet>, ToolError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    if patterns.len() > MOST_PATTERNS {
        return Err(ToolError::bad_args(format!("Bad args: there are more than {MOST_PATTERNS} patterns")));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        match pattern.strip_suffix('/') {
            // A folder, with all that is in it.
            Some(folder) if !folder.contains('/') => set.add(glob(&format!("**/{folder}/**"), pattern)?),
            Some(folder) => set.add(glob(&format!("{folder}/**"), pattern)?),
            None if !pattern.contains('/') => set.add(glob(&format!("**/{pattern}"), pattern)?),
            None => set.add(glob(pattern, pattern)?),
        };
    }
    set.build()
        .map(Some)
        .map_err(|error| ToolError::bad_args(format!("Bad args: the patterns cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        path_pattern(pattern).unwrap().is_match(Path::new(path))
    }

    #[test]
    fn a_star_stays_within_a_name() {
        assert!(fits("*.rs", "a.rs") && !fits("*.rs", "src/a.rs"));
        assert!(fits("**/*.rs", "a.rs") && fits("**/*.rs", "src/deep/a.rs"));
        assert!(fits("./src/*.{rs,toml}", "src/a.toml") && !fits("src/*.{rs,toml}", "src/a.md"));
        assert!(fits("**", "a/b") && fits("src/**", "src/a/b") && !fits("src/**", "lib/a"));
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        for pattern in ["", "  ", "/etc/*", "../*", "a/../b", "a{b", "a[", &"a".repeat(5000)] {
            assert!(path_pattern(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn filters_without_a_slash_are_about_names() {
        let all = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
        let filter = PathFilter::new(&all(&["*.rs", "docs/*.md"]), &all(&["target/", "gen_*"])).unwrap();
        for path in ["a.rs", "x/y/a.rs", "docs/a.md"] {
            assert!(filter.wants(Path::new(path)), "{path}");
        }
        for path in ["a.md", "x/docs/a.md", "target/a.rs", "x/target/y/a.rs", "x/gen_a.rs"] {
            assert!(!filter.wants(Path::new(path)), "{path}");
        }
    }
}

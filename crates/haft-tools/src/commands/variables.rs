//! Which variables a call may set, and a tool may be handed.

use globset::{GlobBuilder, GlobMatcher};
use haft_core::{ToolError, text};
use std::{fmt, sync::Arc};

/// Patterns of names that no program gets, such as `*_TOKEN`. Letters count in any case.
///
/// ```
/// let denied = haft_tools::commands::DeniedVariables::new(["*_TOKEN"]);
/// assert!(denied.allow("CI").is_ok());
/// assert!(denied.allow("github_token").is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeniedVariables(Arc<[(String, Option<GlobMatcher>)]>);

impl DeniedVariables {
    /// These patterns. One that cannot be read denies every name, rather than none.
    pub fn new<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let compile = |pattern: S| {
            let pattern = pattern.into();
            let glob = GlobBuilder::new(&pattern).case_insensitive(true).build().ok();
            (pattern, glob.map(|glob| glob.compile_matcher()))
        };
        DeniedVariables(patterns.into_iter().map(compile).collect())
    }

    /// Whether a variable of that name may be there, or why not.
    pub fn allow(&self, name: &str) -> Result<(), ToolError> {
        let denies = |glob: &Option<GlobMatcher>| glob.as_ref().is_none_or(|glob| glob.is_match(name));
        match self.0.iter().find(|(_, glob)| denies(glob)) {
            None => Ok(()),
            Some((pattern, _)) => {
                let (name, pattern) = (text::one_line(name, 60), text::one_line(pattern, 60));
                let text = format!(
                    "Bad args: env: '{name}' matches `{pattern}` in tools.environment.denylist: programs never get it"
                );
                Err(ToolError::bad_args(text))
            }
        }
    }
}

/// Where the values of variables come from: tools do not read haft's environment themselves.
///
/// ```
/// use haft_tools::commands::Variables;
/// let variables = Variables::new(|name| (name == "CI").then(|| "1".to_owned()));
/// assert_eq!(variables.get("CI").as_deref(), Some("1"));
/// assert_eq!(Variables::default().get("CI"), None);
/// ```
#[derive(Clone, Default)]
pub struct Variables(Option<Arc<Lookup>>);

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Variables {
    /// Those that this function knows.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Variables(Some(Arc::new(lookup)))
    }

    /// The value of one.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.as_ref().and_then(|lookup| lookup(name))
    }
}

impl fmt::Debug for Variables {
    /// Without values: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variables")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_denied_in_any_case_and_a_bad_pattern_denies_all() {
        let denied = DeniedVariables::new(["*_TOKEN", "AWS_*"]);
        for name in ["GITHUB_TOKEN", "github_token", "AWS_REGION", "aws_x"] {
            assert!(denied.allow(name).unwrap_err().message.contains("denylist"), "{name}");
        }
        for name in ["TOKEN", "TOKENS", "PATH", "MY_AWS"] {
            assert!(denied.allow(name).is_ok(), "{name}");
        }
        assert!(DeniedVariables::new(["["]).allow("PATH").is_err());
        assert!(DeniedVariables::default().allow("PATH").is_ok());
    }
}

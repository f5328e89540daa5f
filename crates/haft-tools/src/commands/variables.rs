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
pub struct DeniedVariables(Arc<[(String, Matcher)]>);

/// How a name is compared with a pattern.
#[derive(Clone, Debug)]
enum Matcher {
    /// Letters, digits, `_` and `*` alone, as nearly every pattern has them: nothing to compile.
    Stars,
    Glob(Box<GlobMatcher>),
    /// One that cannot be read.
    Everything,
}

impl Matcher {
    fn new(pattern: &str) -> Self {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*');
        if pattern.bytes().all(is_plain) && !pattern.contains("**") {
            return Matcher::Stars;
        }
        let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
        glob.map_or(Matcher::Everything, |glob| Matcher::Glob(Box::new(glob.compile_matcher())))
    }

    fn fits(&self, pattern: &str, name: &str) -> bool {
        match self {
            Matcher::Stars => fits_stars(pattern, name),
            Matcher::Glob(glob) => glob.is_match(name),
            Matcher::Everything => true,
        }
    }
}

/// Whether a name is what a pattern says, in which `*` is anything. Letters count in any case.
fn fits_stars(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name.eq_ignore_ascii_case(pattern) };
    let (mut name, first) = (name.as_bytes(), first.as_bytes());
    let begins =
        |name: &[u8], part: &[u8]| name.get(..part.len()).is_some_and(|n| n.eq_ignore_ascii_case(part));
    if !begins(name, first) {
        return false;
    }
    name = &name[first.len()..];
    let mut parts: Vec<&[u8]> = rest.split('*').map(str::as_bytes).collect();
    let last = parts.pop().unwrap_or_default();
    // Each part as far to the left as it goes: whatever fits then leaves most for those after it.
    for part in parts {
        let Some(at) = (0..=name.len()).find(|at| begins(&name[*at..], part)) else { return false };
        name = &name[at + part.len()..];
    }
    name.len() >= last.len() && name[name.len() - last.len()..].eq_ignore_ascii_case(last)
}

impl DeniedVariables {
    /// These patterns. One that cannot be read denies every name, rather than none.
    pub fn new<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let compile = |pattern: S| {
            let pattern = pattern.into();
            let matcher = Matcher::new(&pattern);
            (pattern, matcher)
        };
        DeniedVariables(patterns.into_iter().map(compile).collect())
    }

    /// Whether a variable of that name may be there, or why not.
    pub fn allow(&self, name: &str) -> Result<(), ToolError> {
        match self.0.iter().find(|(pattern, matcher)| matcher.fits(pattern, name)) {
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
        assert!(DeniedVariables::new(["A[WX]S_*"]).allow("axs_region").is_err());
        assert!(DeniedVariables::new(["["]).allow("PATH").is_err());
        assert!(DeniedVariables::default().allow("PATH").is_ok());
    }

    #[test]
    fn stars_are_compared_as_patterns_of_files_are() {
        let letters = ["", "A", "a", "b", "AB", "_", "ab", "k\u{212a}", "x/y"];
        let patterns = ["", "*", "A", "a*", "*a", "*a*", "a*b", "a*b*a", "*_*", "ab*ab", "*k"];
        for pattern in patterns {
            let glob = GlobBuilder::new(pattern).case_insensitive(true).build().unwrap().compile_matcher();
            assert!(matches!(Matcher::new(pattern), Matcher::Stars), "{pattern}");
            for (first, second, third) in
                letters.iter().flat_map(|a| letters.iter().flat_map(move |b| letters.map(|c| (a, b, c))))
            {
                let name = format!("{first}{second}{third}");
                assert_eq!(fits_stars(pattern, &name), glob.is_match(&name), "{pattern} {name}");
            }
        }
    }
}

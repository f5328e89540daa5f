//! Which environment variables a program gets.

use crate::wildcard::wildcard_any_case;

/// Variables that tend to hold secrets. Whatever is configured comes on top of these.
pub const DENIED_VARIABLES: &[&str] =
    &["*_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "AWS_*", "ANTHROPIC_*", "OPENAI_*"];

/// Variables: names and values.
pub type Variables<'a, V> = Vec<(&'a str, V)>;

/// Whether names of variables differ by case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCase {
    /// `Path` and `PATH` are two.
    Differs,
    /// They are one, as on Windows.
    IsIgnored,
}

impl NameCase {
    /// As it is on this system.
    pub const fn of_this_system() -> Self {
        if cfg!(windows) { NameCase::IsIgnored } else { NameCase::Differs }
    }
}

/// Keeps variables that may hold secrets from programs.
///
/// Patterns are only ever added: a list that is configured does not take the defaults away.
///
/// ```
/// use haft_guard::{EnvironmentFilter, NameCase};
/// let filter = EnvironmentFilter::new(["COMPANY_*"], NameCase::Differs);
/// assert!(filter.allows("PATH"));
/// assert!(!filter.allows("COMPANY_ID"));
/// assert!(!filter.allows("GITHUB_TOKEN"), "the defaults still hold");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentFilter {
    patterns: Vec<String>,
    case: NameCase,
}

impl EnvironmentFilter {
    /// The defaults and these.
    pub fn new<P: Into<String>>(added: impl IntoIterator<Item = P>, case: NameCase) -> Self {
        let defaults = DENIED_VARIABLES.iter().map(|&pattern| pattern.to_owned());
        let mut patterns: Vec<String> = defaults.chain(added.into_iter().map(Into::into)).collect();
        patterns.sort_unstable();
        patterns.dedup();
        EnvironmentFilter { patterns, case }
    }

    /// Whether a program may get a variable of that name.
    pub fn allows(&self, name: &str) -> bool {
        !self.patterns.iter().any(|pattern| match self.case {
            NameCase::Differs => crate::wildcard(pattern, name),
            NameCase::IsIgnored => wildcard_any_case(pattern, name),
        })
    }

    /// Variables that a program gets, and those that are kept from it: their values are secrets to redact.
    ///
    /// ```
    /// use haft_guard::{EnvironmentFilter, KnownSecrets, NameCase};
    /// let filter = EnvironmentFilter::new([] as [&str; 0], NameCase::Differs);
    /// let all = [("HOME", "/home/ada"), ("DEPLOY_KEY", "k-123456789")];
    /// let (kept, held_back) = filter.split(all);
    /// assert_eq!(kept, [("HOME", "/home/ada")]);
    /// let secrets = KnownSecrets::new(held_back);
    /// ```
    pub fn split<'a, V>(
        &self,
        variables: impl IntoIterator<Item = (&'a str, V)>,
    ) -> (Variables<'a, V>, Variables<'a, V>) {
        variables.into_iter().partition(|(name, _)| self.allows(name))
    }

    /// The patterns, defaults included.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second trap: a configured list must not replace the defaults.
    #[test]
    fn what_is_configured_is_added() {
        let none: [&str; 0] = [];
        for filter in [
            EnvironmentFilter::new(none, NameCase::Differs),
            EnvironmentFilter::new(["X_*"], NameCase::Differs),
            EnvironmentFilter::new([""], NameCase::Differs),
        ] {
            for name in [
                "MY_KEY",
                "GH_TOKEN",
                "A_SECRET",
                "DB_PASSWORD",
                "AWS_REGION",
                "ANTHROPIC_BASE",
                "OPENAI_ORG",
            ] {
                assert!(!filter.allows(name), "{name} with {:?}", filter.patterns());
            }
        }
        assert!(!EnvironmentFilter::new(["X_*"], NameCase::Differs).allows("X_1"));
    }

    #[test]
    fn case_counts_except_on_windows() {
        let (differs, ignored) = (NameCase::Differs, NameCase::IsIgnored);
        for (name, case, allowed) in [
            ("my_key", differs, true),
            ("my_key", ignored, false),
            ("Aws_Region", ignored, false),
            ("PATH", differs, true),
            ("PATH", ignored, true),
            ("KEYBOARD", ignored, true),
            ("_KEY", differs, false),
        ] {
            assert_eq!(EnvironmentFilter::new(["X"], case).allows(name), allowed, "{name} {case:?}");
        }
    }
}

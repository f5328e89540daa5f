//! What an untrusted folder's file added to lists that decide about more than the folder may choose.

use std::collections::HashSet;

use super::keys::Config;

/// What of a configuration an untrusted folder's file added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FromFolder {
    /// The names in `tools.environment.denylist` that only its file has.
    pub denied_variables: Vec<String>,
}

impl FromFolder {
    /// What is in effect now and was not before the folder's file had its say.
    pub(super) fn between(before: &Config, now: &Config) -> Self {
        let known: HashSet<&String> = before.tools.environment.denylist.iter().collect();
        let added = now.tools.environment.denylist.iter().filter(|name| !known.contains(name));
        FromFolder { denied_variables: added.cloned().collect() }
    }
}

impl Config {
    /// The variables whose values are secrets, as patterns: those that the owner keeps from programs, and those that
    /// the owner names. A folder that nobody trusts keeps variables from programs; it does not choose what is taken out
    /// of results, where it could blank any text that some variable happens to have.
    ///
    /// ```
    /// let config = haft_config::parse("tools.environment.denylist = ['MINE']\n")?;
    /// assert!(config.secret_variables().any(|pattern| pattern == "MINE"));
    /// # Ok::<(), haft_config::ConfigError>(())
    /// ```
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let theirs: HashSet<&String> = self.from_folder.denied_variables.iter().collect();
        let owners = self.tools.environment.denylist.iter().filter(move |name| !theirs.contains(name));
        owners.chain(&self.redaction.values_from_environment).map(String::as_str)
    }
}

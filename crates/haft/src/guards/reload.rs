//! Policy in a process that lives long: read again when its files change.

use crate::{
    Haft,
    config::{self, FolderSource, LoadOptions, SourceText, Surroundings},
};
use std::time::Duration;

/// What a look at the configuration came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// Nothing has changed.
    Same,
    /// It has, and holds from now on.
    Done,
    /// It has, and cannot be used: what held before goes on holding. This is why.
    Kept(String),
}

/// Keeps the policy of a [`Haft`] as its files are: changed lists and rules take effect at once, a file that is
/// broken changes nothing and says so once.
///
/// ```
/// use haft::{Haft, PolicyReload, Reloaded, config::{LoadOptions, Surroundings}};
/// # let folder = tempfile::tempdir()?;
/// # let surroundings = Surroundings { working_folder: folder.path().into(), ..Surroundings::default() };
/// let haft = Haft::builder().build()?;
/// let mut reload = PolicyReload::new(surroundings.clone(), LoadOptions::default());
/// assert_eq!(reload.look(&haft), Reloaded::Same);
/// let rule = "[[policy.rules]]\nname = 'no'\neffect = 'deny'\ntool = 'get_metrics'\n";
/// std::fs::write(surroundings.working_folder.join("haft.toml"), rule)?;
/// assert_eq!(reload.look(&haft), Reloaded::Done);
/// std::fs::write(surroundings.working_folder.join("haft.toml"), "[[policy.rules]]\neffect = 'denny'\n")?;
/// assert!(matches!(reload.look(&haft), Reloaded::Kept(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolicyReload {
    surroundings: Surroundings,
    options: LoadOptions,
    seen: Option<Files>,
}

/// What policy comes from, as it was read.
type Files = (Option<SourceText>, Option<FolderSource>);

impl PolicyReload {
    /// For a [`Haft`] that was just built from the configuration of these surroundings.
    pub fn new(surroundings: Surroundings, options: LoadOptions) -> Self {
        let seen =
            config::gather(&surroundings, &options).ok().map(|(inputs, _)| (inputs.user, inputs.folder));
        PolicyReload { surroundings, options, seen }
    }

    /// Looks once. The files are read whole: they are small, and a time of change can lie.
    pub fn look(&mut self, haft: &Haft) -> Reloaded {
        let inputs = match config::gather(&self.surroundings, &self.options) {
            Ok((inputs, _)) => inputs,
            // Said once: until it can be read again there is nothing else to say.
            Err(_) if self.seen.is_none() => return Reloaded::Same,
            Err(error) => {
                self.seen = None;
                return kept(error.to_string());
            }
        };
        let files = (inputs.user.clone(), inputs.folder.clone());
        if self.seen.as_ref() == Some(&files) {
            return Reloaded::Same;
        }
        self.seen = Some(files);
        let config = match config::resolve(&inputs) {
            Ok(resolved) => resolved.config,
            Err(error) => return kept(error.to_string()),
        };
        match haft.reload_policy(&config) {
            Ok(()) => {
                tracing::info!(code = "POLICY_RELOADED", "the policy was read again");
                Reloaded::Done
            }
            Err(error) => kept(error.to_string()),
        }
    }

    /// Looks again and again, for as long as it is polled. What a look came to is in the log.
    pub async fn keep_current(mut self, haft: Haft, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            self.look(&haft);
        }
    }
}

fn kept(reason: String) -> Reloaded {
    tracing::warn!(
        code = "POLICY_KEPT",
        reason,
        "the policy was changed and cannot be used; the old one holds"
    );
    Reloaded::Kept(reason)
}

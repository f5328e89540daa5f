//! What trusting a file would change: the text a person reads before `haft trust` pins it.

use std::fmt;
use std::path::PathBuf;

use super::layer::{Layers, Stack};
use super::place::Place;
use super::problem::ConfigError;
use super::read::Entry;
use super::resolve::Inputs;
use super::rule::Effect;
use super::value::Value;
use super::visible;

/// What trusting the file in the folder would change. It prints like a diff, what loosens first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The file.
    pub path: PathBuf,
    /// Every key that it changes, in the order of the file.
    pub changes: Vec<Change>,
}

/// A key that the file changes, seen from the defaults and the user's own file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The key.
    pub key: &'static str,
    /// What is in effect without the file.
    pub from: Value,
    /// What would be in effect with it.
    pub to: Value,
    /// Which way that goes.
    pub effect: Effect,
    /// Where the file says so.
    pub place: Place,
}

/// What trusting the folder's file would change. Variables and flags are left aside: they are there today and
/// gone tomorrow, while the trust stays.
///
/// ```
/// use haft_config::{FolderSource, Inputs, SourceText, explain};
///
/// let text = "[tools.approval]\nmode = 'auto'\ndenylist = ['execute_code', 'deploy']\n";
/// let folder = FolderSource { source: SourceText::new("/repo/haft.toml", text), pinned: false };
/// let inputs = Inputs { folder: Some(folder), working_folder: "/repo".into(), ..Inputs::default() };
/// let explanation = explain(&inputs)?;
/// assert_eq!(
///     explanation.to_string(),
///     "haft.toml would loosen:
///   tools.approval.mode (line 2)
///     - \"prompt\"
///     + \"auto\"
///   tools.approval.denylist (line 3)
///     - \"run_command\"
///     - \"start_command\"
///     + \"deploy\"
///       \"execute_code\""
/// );
/// # Ok::<(), haft_config::ConfigError>(())
/// ```
///
/// # Errors
///
/// Everything that is wrong in any of the sources.
pub fn explain(inputs: &Inputs) -> Result<Explanation, ConfigError> {
    let layers = Layers::read(inputs)?;
    let mut without = Stack::default();
    without.apply(&layers.profile(false));
    without.apply(&layers.user);
    without.apply(&layers.chosen);
    let mut with = Stack::default();
    with.apply(&layers.profile(true));
    with.apply(&layers.user);
    with.apply(&layers.chosen);
    with.apply(&layers.folder);
    let changes = layers.folder.into_iter().map(|Entry { key, place, .. }| {
        let (from, to) = (without.value(key), with.value(key));
        let effect = key.rule().compare(&from, &to, &inputs.ground());
        Change { key: key.path(), from, to, effect, place }
    });
    let path = inputs.folder.as_ref().map_or_else(PathBuf::new, |folder| inputs.shown(&folder.source.path));
    Ok(Explanation { path, changes: changes.filter(|change| change.effect != Effect::Same).collect() })
}

impl Explanation {
    /// What it loosens: what a person has to agree to.
    pub fn loosens(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.effect == Effect::Looser)
    }

    /// What it tightens: that applies without trust, too.
    pub fn tightens(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.effect == Effect::Tighter)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = visible::path(&self.path);
        if self.loosens().next().is_none() {
            write!(f, "{path} loosens nothing, so it applies without trust")?;
        } else {
            write!(f, "{path} would loosen:")?;
            self.loosens().try_for_each(|change| write!(f, "\n{change}"))?;
        }
        if self.tightens().next().is_some() {
            f.write_str("\nand tighten:")?;
            self.tightens().try_for_each(|change| write!(f, "\n{change}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}", self.key)?;
        if let Some(position) = self.place.position() {
            write!(f, " (line {})", position.line)?;
        }
        // Nothing is shortened here: a person is about to agree to it.
        let (from, to) = (lines(&self.from), lines(&self.to));
        let mut line = |sign: char, text: &String| write!(f, "\n    {sign} {text}");
        from.iter().filter(|text| !to.contains(text)).try_for_each(|text| line('-', text))?;
        to.iter().filter(|text| !from.contains(text)).try_for_each(|text| line('+', text))?;
        to.iter().filter(|text| from.contains(text)).try_for_each(|text| line(' ', text))
    }
}

/// A list as a line for each entry, anything else as one line.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Names(names) => names.iter().map(|name| visible::quoted(name)).collect(),
        Value::Folders(folders) => {
            folders.iter().map(|folder| visible::quoted(&folder.to_string_lossy())).collect()
        }
        Value::Tools(tools) => tools.iter().map(ToString::to_string).collect(),
        Value::Rules(rules) => rules.iter().map(super::value::rule_text).collect(),
        Value::Agents(agents) => agents.iter().map(super::value::agent_text).collect(),
        Value::Switch(_) | Value::Count(_) | Value::Level(_) | Value::Text(_) => vec![value.to_string()],
    }
}

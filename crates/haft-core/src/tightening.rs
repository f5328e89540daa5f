//! What an administrator may tighten on any tool, no matter who wrote it.

use crate::{IsolationLevel, Tier, ToolDefinition, iso_duration};
use serde_json::{Map, Value};
use std::time::Duration;

/// Settings that every tool has, named as its definition names them. Each makes the tool stricter than it says itself.
///
/// ```
/// use haft_core::{Tightening, ToolDefinition};
/// use serde_json::json;
/// let written = ToolDefinition::new("count", "Counts");
/// let settings = json!({"maxExecutionTime": "PT5S", "requiresConfirmation": true});
/// let tightening = Tightening::read(settings.as_object().unwrap(), &written, false).unwrap();
/// let tightened = tightening.of(&written);
/// assert_eq!(tightened.constraints.max_execution_time.as_secs(), 5);
/// assert!(tightened.requires_confirmation && !written.requires_confirmation);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tightening {
    tier: Option<Tier>,
    max_execution_time: Option<Duration>,
    max_output_size: Option<u64>,
    required_isolation: Option<IsolationLevel>,
    requires_confirmation: bool,
}

impl Tightening {
    /// The names of these settings.
    pub const KEYS: [&'static str; 5] =
        ["tier", "maxExecutionTime", "maxOutputSize", "requiredIsolation", "requiresConfirmation"];

    /// Those among the settings of a tool; others are left alone.
    ///
    /// # Errors
    ///
    /// A value is of another kind, or looser than what the tool says itself: with the key and the reason.
    ///
    /// `works_in_jail` says whether a tool of haft's own process can work in a jail all the same.
    pub fn read(
        settings: &Map<String, Value>,
        written: &ToolDefinition,
        works_in_jail: bool,
    ) -> Result<Self, String> {
        let mut read = Tightening::default();
        for (key, value) in settings {
            let wrong = |expected: &str| format!("{key} is {expected}, not {value}");
            match key.as_str() {
                "tier" => {
                    let tier = serde_json::from_value(value.clone());
                    let tier: Tier = tier.map_err(|_| wrong("Core, WriterPro, Teams or Enterprise"))?;
                    if tier < written.tier {
                        return Err(format!(
                            "{key} is {:?} at the least, and {tier:?} is below it",
                            written.tier
                        ));
                    }
                    read.tier = Some(tier);
                }
                "maxExecutionTime" => {
                    let expected = || wrong("a duration such as \"PT30S\" or \"30s\"");
                    let time =
                        iso_duration::parse(value.as_str().ok_or_else(expected)?).map_err(|_| expected())?;
                    let most = written.constraints.max_execution_time;
                    if time.is_zero() || time > most {
                        let most = iso_duration::format(most);
                        return Err(format!(
                            "{key} is above zero and at most {most}, which the tool itself allows"
                        ));
                    }
                    read.max_execution_time = Some(time);
                }
                "maxOutputSize" => {
                    let size = value.as_u64().ok_or_else(|| wrong("a number of bytes"))?;
                    let most = written.constraints.max_output_size;
                    if size > most {
                        return Err(format!("{key} is at most {most}, which the tool itself allows"));
                    }
                    read.max_output_size = Some(size);
                }
                "requiredIsolation" => {
                    let level = serde_json::from_value(value.clone());
                    let level: IsolationLevel =
                        level.map_err(|_| wrong("None, Standard, Strict or Restricted"))?;
                    let least = written.constraints.required_isolation;
                    if level < least {
                        return Err(format!("{key} is {least:?} at the least, and {level:?} is below it"));
                    }
                    if least == IsolationLevel::None && level > least && !works_in_jail {
                        return Err(format!("{key} cannot be raised: the tool runs in haft's own process"));
                    }
                    read.required_isolation = Some(level);
                }
                "requiresConfirmation" => match value {
                    Value::Bool(false) if written.requires_confirmation => {
                        return Err(format!("{key} is true: the tool itself says so"));
                    }
                    Value::Bool(asks) => read.requires_confirmation = *asks,
                    _ => return Err(wrong("true or false")),
                },
                _ => {}
            }
        }
        Ok(read)
    }

    /// A definition that is as strict as itself and as this. Should the definition have become stricter since, it stays so.
    pub fn of(&self, written: &ToolDefinition) -> ToolDefinition {
        let mut tightened = written.clone();
        let constraints = &mut tightened.constraints;
        if let Some(most) = self.max_execution_time {
            constraints.max_execution_time = constraints.max_execution_time.min(most);
            constraints.default_timeout = constraints.default_timeout.map(|usual| usual.min(most));
        }
        constraints.max_output_size =
            self.max_output_size.unwrap_or(u64::MAX).min(constraints.max_output_size);
        constraints.required_isolation =
            self.required_isolation.unwrap_or(IsolationLevel::None).max(constraints.required_isolation);
        tightened.tier = self.tier.unwrap_or_default().max(tightened.tier);
        tightened.requires_confirmation |= self.requires_confirmation;
        tightened
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Tightening::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_looser_is_refused_with_the_key() {
        let mut written = ToolDefinition::new("t", "A tool");
        written.tier = Tier::WriterPro;
        written.requires_confirmation = true;
        written.constraints.max_execution_time = Duration::from_secs(60);
        written.constraints.max_output_size = 100;
        for (settings, refused) in [
            (json!({"tier": "Core"}), true),
            (json!({"tier": "Teams"}), false),
            (json!({"tier": "best"}), true),
            (json!({"maxExecutionTime": "PT61S"}), true),
            (json!({"maxExecutionTime": "PT0S"}), true),
            (json!({"maxExecutionTime": 5}), true),
            (json!({"maxExecutionTime": "5s"}), false),
            (json!({"maxOutputSize": 101}), true),
            (json!({"maxOutputSize": -1}), true),
            (json!({"maxOutputSize": 0}), false),
            (json!({"requiredIsolation": "None"}), true),
            (json!({"requiredIsolation": "Strict"}), false),
            (json!({"requiresConfirmation": false}), true),
            (json!({"requiresConfirmation": "yes"}), true),
            (json!({"requiresConfirmation": true}), false),
            (json!({"other": 1}), false),
        ] {
            let settings = settings.as_object().unwrap();
            let read = Tightening::read(settings, &written, false);
            assert_eq!(read.is_err(), refused, "{settings:?}: {read:?}");
            if let Err(problem) = read {
                assert!(settings.keys().any(|key| problem.starts_with(key)), "{problem}");
            }
        }
        let in_process = {
            let mut definition = written.clone();
            definition.constraints.required_isolation = IsolationLevel::None;
            definition
        };
        let settings = json!({"requiredIsolation": "Standard"});
        let settings = settings.as_object().unwrap();
        let problem = Tightening::read(settings, &in_process, false).unwrap_err();
        assert!(problem.contains("haft's own process"), "{problem}");
        let jailed = Tightening::read(settings, &in_process, true).unwrap();
        assert_eq!(jailed.of(&in_process).constraints.required_isolation, IsolationLevel::Standard);
    }

    #[test]
    fn a_definition_that_became_stricter_stays_so() {
        let mut written = ToolDefinition::new("t", "A tool");
        let settings = json!({"tier": "WriterPro", "maxExecutionTime": "PT30S", "maxOutputSize": 1000,
            "requiredIsolation": "Standard"});
        let tightening = Tightening::read(settings.as_object().unwrap(), &written, false).unwrap();
        assert_eq!(tightening.of(&written).constraints.max_execution_time.as_secs(), 30);
        written.tier = Tier::Teams;
        written.constraints.max_execution_time = Duration::from_secs(5);
        written.constraints.max_output_size = 10;
        written.constraints.required_isolation = IsolationLevel::Strict;
        written.requires_confirmation = true;
        assert_eq!(tightening.of(&written), written);
    }
}

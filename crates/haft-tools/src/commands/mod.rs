//! Tools that run programs, in a jail.
//!
//! | tool | what it does |
//! |---|---|
//! | `run_command` | runs a command to its end |

mod run_command;

pub use run_command::{CommandReport, RunCommand, RunCommandArgs};

use haft_core::IsolationLevel;
use haft_sdk::{Tool, typed_with};
use std::time::Duration;

/// How the command tools behave on this installation.
///
/// ```
/// let settings = haft_tools::CommandToolSettings::default();
/// assert_eq!(settings.isolation, haft_core::IsolationLevel::Strict);
/// ```
#[derive(Clone, Debug)]
pub struct CommandToolSettings {
    /// The least containment.
    pub isolation: IsolationLevel,
    /// How long a command may take that does not say.
    pub timeout: Option<Duration>,
    /// Names of variables that a call may not set, such as `*_TOKEN`.
    pub denied_variables: Vec<String>,
}

impl Default for CommandToolSettings {
    fn default() -> Self {
        CommandToolSettings {
            isolation: IsolationLevel::Strict,
            timeout: Some(Duration::from_secs(300)),
            denied_variables: Vec::new(),
        }
    }
}

/// The tools for commands, by name.
///
/// ```
/// let tools = haft_tools::command_tools(&haft_tools::CommandToolSettings::default());
/// assert!(tools.iter().all(|tool| tool.definition().requires_confirmation));
/// ```
pub fn command_tools(settings: &CommandToolSettings) -> Vec<Box<dyn Tool>> {
    let (isolation, timeout) = (settings.isolation, settings.timeout);
    vec![Box::new(typed_with(RunCommand, move |definition| {
        definition.constraints.required_isolation = isolation;
        definition.constraints.default_timeout = timeout;
    }))]
}

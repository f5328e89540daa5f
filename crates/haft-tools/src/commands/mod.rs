//! Tools that run programs, in a jail.
//!
//! | tool | what it does |
//! |---|---|
//! | `run_command` | runs a command to its end |
//! | `start_command` and what goes with it | lets one run on: see [`background`] |
//! | a [`CommandTool`] | any program as a tool |

pub mod background;
mod program;
mod run_command;
mod taken;
mod variables;

pub use background::BackgroundCommands;
pub use program::CommandTool;
pub use run_command::{CommandReport, RunCommand, RunCommandArgs};
pub use variables::{DeniedVariables, Variables};

use background::{
    KillCommand, ListCommands, PollCommand, ResizeCommand, SignalCommand, StartCommand, WriteCommand,
};
use haft_core::IsolationLevel;
use haft_sdk::{Tool, typed, typed_with};
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
    /// Names of variables that no program gets, such as `*_TOKEN`.
    pub denied_variables: DeniedVariables,
    /// haft's own environment, of which a [`CommandTool`] may name variables.
    pub variables: Variables,
}

impl Default for CommandToolSettings {
    fn default() -> Self {
        CommandToolSettings {
            isolation: IsolationLevel::Strict,
            timeout: Some(Duration::from_secs(300)),
            denied_variables: DeniedVariables::default(),
            variables: Variables::default(),
        }
    }
}

/// The tools for commands. Those that run on are kept in `background`, and end with it.
///
/// ```
/// use haft_tools::{CommandToolSettings, command_tools, commands::BackgroundCommands};
/// let tools = command_tools(&CommandToolSettings::default(), &BackgroundCommands::default());
/// let asks = |name: &str| tools.iter().any(|tool| {
///     tool.definition().name == name && tool.definition().requires_confirmation
/// });
/// assert!(asks("run_command") && asks("start_command"));
/// ```
pub fn command_tools(settings: &CommandToolSettings, background: &BackgroundCommands) -> Vec<Box<dyn Tool>> {
    let (isolation, timeout) = (settings.isolation, settings.timeout);
    let denied = settings.denied_variables.clone();
    let start = StartCommand { commands: background.clone(), denied: denied.clone() };
    vec![
        Box::new(typed_with(RunCommand { denied }, move |definition| {
            definition.constraints.required_isolation = isolation;
            definition.constraints.default_timeout = timeout;
        })),
        Box::new(typed_with(start, move |definition| {
            definition.constraints.required_isolation = isolation;
        })),
        Box::new(typed(PollCommand(background.clone()))),
        Box::new(typed(WriteCommand(background.clone()))),
        Box::new(typed(ResizeCommand(background.clone()))),
        Box::new(typed(SignalCommand(background.clone()))),
        Box::new(typed(KillCommand(background.clone()))),
        Box::new(typed(ListCommands(background.clone()))),
    ]
}

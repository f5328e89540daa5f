//! The switches that decide what happens to calls at all.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// What the engine does with calls.
///
/// ```
/// use haft_core::ToolsMode;
/// assert_eq!(serde_json::to_string(&ToolsMode::ParseOnly).unwrap(), "\"parse_only\"");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsMode {
    /// No tool is offered; every call is refused.
    Disabled,
    /// Calls are captured; somebody else supplies the results.
    ParseOnly,
    /// Calls are checked, approved and run.
    #[default]
    Enabled,
}

/// What happens to calls that no rule and no list speaks about.
///
/// ```
/// use haft_core::ApprovalMode;
/// assert_eq!(ApprovalMode::default(), ApprovalMode::Prompt);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Refused unless on the allowlist.
    Deny,
    /// A person is asked before side effects.
    #[default]
    Prompt,
    /// Run unless denied.
    Auto,
}

/// When a person is asked about a command.
///
/// ```
/// use haft_core::AskCommands;
/// assert_eq!(AskCommands::default(), AskCommands::Before);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskCommands {
    /// Before it runs.
    #[default]
    Before,
    /// After it ran in a jail, about what it changed, which is kept apart until then.
    Effects,
    /// Not at all: what would need an answer is not applied.
    Never,
}

/// Where the writes of commands go.
///
/// ```
/// use haft_core::CommandWrites;
/// assert_eq!(serde_json::to_string(&CommandWrites::StagedIfPossible).unwrap(), "\"staged_if_possible\"");
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CommandWrites {
    /// To a layer above the files, which is applied or thrown away when the command has ended. Where that cannot be
    /// had, the command is refused.
    Staged,
    /// To such a layer where it can be had, else to the files themselves.
    StagedIfPossible,
    /// To the files themselves.
    #[default]
    Live,
}

/// By which way a person is asked, and answers.
///
/// ```
/// use haft_core::Channel;
/// assert_eq!("command_line".parse(), Ok(Channel::CommandLine));
/// assert_eq!(Channel::Http.to_string(), "http");
/// assert!("telepathy".parse::<Channel>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The program that embeds haft: its own [`Approver`](crate::port::Approver).
    Program,
    /// The prompt in a terminal where a call waits.
    Terminal,
    /// `haft approvals`, from another terminal.
    CommandLine,
    /// The HTTP API.
    Http,
    /// An MCP client.
    Mcp,
}

impl Channel {
    /// Those that an operator can allow or leave out; the program's own always counts.
    pub const CONFIGURABLE: [Channel; 4] =
        [Channel::Terminal, Channel::CommandLine, Channel::Http, Channel::Mcp];

    /// Its name in configuration, records and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Channel::Program => "program",
            Channel::Terminal => "terminal",
            Channel::CommandLine => "command_line",
            Channel::Http => "http",
            Channel::Mcp => "mcp",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no [`Channel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no channel: there are program, terminal, command_line, http and mcp")]
pub struct UnknownChannel(String);

impl FromStr for Channel {
    type Err = UnknownChannel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::CONFIGURABLE.into_iter().chain([Channel::Program]);
        known
            .into_iter()
            .find(|channel| channel.as_str() == name)
            .ok_or_else(|| UnknownChannel(name.to_owned()))
    }
}

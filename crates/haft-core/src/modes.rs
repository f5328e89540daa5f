//! The switches that decide what happens to calls at all.

use serde::{Deserialize, Serialize};

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

//! An MCP server behind a tool: how it is reached, and what the tool is called there.

use crate::{Limits, port::Preset};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The MCP server behind a tool whose source is `mcp`.
///
/// It has either a `program`, which haft runs in a jail and speaks to over pipes, or a `url`. Every tool of a server
/// says the same about it, so that a definition is whole by itself: what a person accepted is what is started.
///
/// ```
/// use haft_core::McpSource;
/// let mcp: McpSource =
///     serde_json::from_str(r#"{"server": "clock", "tool": "now", "program": "clock-server"}"#).unwrap();
/// assert_eq!(mcp, McpSource { program: Some("clock-server".into()), ..McpSource::new("clock", "now") });
/// assert!(mcp.is_same_server(&McpSource { tool: "later".into(), ..mcp.clone() }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSource {
    /// What the server is called here; it stands before the names of its tools.
    pub server: String,
    /// What the tool is called there.
    pub tool: String,
    /// The program, for a server over pipes. Without a slash it is looked for in `PATH`; else it is an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of haft's own environment that it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Hosts that it may reach, of those that are configured for commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Toolchains that it uses, of those that are configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<Preset>,
    /// Files and folders that it reads besides its own program and what every command may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What it may use, where that is less than every command may.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// The address, for a server over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request. A value `env:NAME` is that variable of haft's, `file:PATH` the first line of that
    /// file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl McpSource {
    /// That tool of that server. How the server is reached is still to be said.
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> Self {
        McpSource { server: server.into(), tool: tool.into(), ..McpSource::default() }
    }

    /// The server alone: the same for all of its tools.
    #[must_use]
    pub fn without_tool(&self) -> Self {
        McpSource { tool: String::new(), ..self.clone() }
    }

    /// Whether both are tools of one server, reached in the same way.
    pub fn is_same_server(&self, other: &McpSource) -> bool {
        self.without_tool() == other.without_tool()
    }

    /// The host of its address, with the port where that is not the usual one; `None` for a program.
    pub fn host(&self) -> Option<String> {
        crate::HttpSource::new(self.url.as_deref()?).host()
    }
}

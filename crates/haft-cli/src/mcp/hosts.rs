//! Programs that speak MCP, and where each one looks for servers.

use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Host {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    Vscode,
    Windsurf,
    Zed,
}

/// How the file of a host looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, maybe with comments, with servers by name under that key.
    Json(&'static str),
    /// TOML, with a table for each server under that name.
    Toml(&'static str),
}

impl Host {
    pub(super) fn title(self) -> &'static str {
        match self {
            Host::ClaudeCode => "Claude Code",
            Host::ClaudeDesktop => "Claude Desktop",
            Host::Codex => "Codex",
            Host::Copilot => "GitHub Copilot CLI",
            Host::Cursor => "Cursor",
            Host::Gemini => "Gemini CLI",
            Host::Vscode => "Visual Studio Code",
            Host::Windsurf => "Windsurf",
            Host::Zed => "Zed",
        }
    }

    pub(super) fn form(self) -> Form {
        match self {
            Host::ClaudeCode
            | Host::ClaudeDesktop
            | Host::Copilot
            | Host::Cursor
            | Host::Gemini
            | Host::Windsurf => Form::Json("mcpServers"),
            Host::Vscode => Form::Json("servers"),
            Host::Zed => Form::Json("context_servers"),
            Host::Codex => Form::Toml("mcp_servers"),
        }
    }

    /// The file, for this user on this system.
    pub(super) fn file(self, surroundings: &Surroundings) -> Option<PathBuf> {
        let home = surroundings.home.as_deref()?;
        let variable = |name: &str| {
            let found = surroundings.env.iter().find(|(known, value)| known == name && !value.is_empty());
            found.map(|(_, value)| PathBuf::from(value))
        };
        let config = || {
            if cfg!(target_os = "macos") {
                home.join("Library/Application Support")
            } else if cfg!(windows) {
                variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
            } else {
                variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
            }
        };
        Some(match self {
            Host::ClaudeCode => {
                variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.to_owned()).join(".claude.json")
            }
            Host::ClaudeDesktop => config().join("Claude/claude_desktop_config.json"),
            Host::Codex => variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Host::Copilot => home.join(".copilot/mcp-config.json"),
            Host::Cursor => home.join(".cursor/mcp.json"),
            Host::Gemini => home.join(".gemini/settings.json"),
            Host::Vscode => config().join("Code/User/mcp.json"),
            Host::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Host::Zed if cfg!(windows) => config().join("Zed/settings.json"),
            // Zed keeps to ~/.config on macOS, too.
            Host::Zed => {
                variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("zed/settings.json")
            }
        })
    }

    /// The entry that starts haft.
    pub(super) fn entry(self, program: &str, arguments: &[String]) -> Value {
        match self {
            Host::Vscode | Host::ClaudeCode => {
                json!({"type": "stdio", "command": program, "args": arguments})
            }
            Host::Zed => json!({"source": "custom", "command": program, "args": arguments}),
            _ => json!({"command": program, "args": arguments}),
        }
    }
}

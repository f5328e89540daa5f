//! Programs that call tools for a model, and where each one keeps what.

use super::settings::Form;
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A program that calls tools for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
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

impl Host {
    pub(crate) fn title(self) -> &'static str {
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

    /// As it is typed.
    pub(crate) fn name(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The names that lead to its MCP servers.
    pub(super) fn servers(self) -> &'static str {
        match self {
            Host::Vscode => "servers",
            Host::Zed => "context_servers",
            Host::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// How its file of MCP servers is written.
    pub(super) fn form(self) -> Form {
        match self {
            Host::Codex => Form::Toml,
            _ => Form::Json,
        }
    }

    /// The file with the MCP servers of one project; `None` where the host has none that it documents.
    pub(super) fn project_servers(self, project: &Path) -> Option<PathBuf> {
        Some(project.join(match self {
            Host::ClaudeCode => ".mcp.json",
            Host::Codex => ".codex/config.toml",
            Host::Cursor => ".cursor/mcp.json",
            Host::Gemini => ".gemini/settings.json",
            Host::Vscode => ".vscode/mcp.json",
            Host::Zed => ".zed/settings.json",
            Host::ClaudeDesktop | Host::Copilot | Host::Windsurf => return None,
        }))
    }

    /// The file with its hooks: of a project, or of this user; `None` where it has no hooks that haft knows.
    pub(super) fn hooks(self, surroundings: &Surroundings, project: bool) -> Option<PathBuf> {
        let home = surroundings.home.as_deref()?;
        let folder = &surroundings.working_folder;
        let own = |variable: &str, usual: &str| {
            let found = surroundings.env.iter().find(|(known, value)| known == variable && !value.is_empty());
            found.map_or_else(|| home.join(usual), |(_, value)| PathBuf::from(value))
        };
        Some(match (self, project) {
            (Host::ClaudeCode, true) => folder.join(".claude/settings.json"),
            (Host::ClaudeCode, false) => own("CLAUDE_CONFIG_DIR", ".claude").join("settings.json"),
            (Host::Codex, true) => folder.join(".codex/hooks.json"),
            (Host::Codex, false) => own("CODEX_HOME", ".codex").join("hooks.json"),
            (Host::Copilot, true) => folder.join(".github/hooks/haft.json"),
            (Host::Copilot, false) => home.join(".copilot/hooks/haft.json"),
            (Host::Cursor, true) => folder.join(".cursor/hooks.json"),
            (Host::Cursor, false) => home.join(".cursor/hooks.json"),
            (Host::Gemini, true) => folder.join(".gemini/settings.json"),
            (Host::Gemini, false) => home.join(".gemini/settings.json"),
            (Host::ClaudeDesktop | Host::Vscode | Host::Windsurf | Host::Zed, _) => return None,
        })
    }

    /// The file with the MCP servers of this user on this system.
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

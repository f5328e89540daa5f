//! What agents need in order to run in a jail: their provider's hosts, a folder of their own, their keys.
//!
//! An agent in a jail keeps its sessions and its login in a folder of its own, and never writes the one that it has
//! outside: what it could change there (hooks, plugins, MCP servers) would run later, outside the jail. Its owner's
//! settings are copied into that folder at each start.

use super::own_folder::OwnFolder;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What an agent needs.
#[derive(Debug)]
pub(super) struct Agent {
    /// The name of its program.
    pub(super) program: &'static str,
    /// Its provider's hosts.
    pub(super) hosts: &'static [&'static str],
    /// Variables with its keys, and those that say where its provider is; it gets those that are set.
    pub(super) variables: &'static [&'static str],
    /// Variables that say where it keeps what it writes, each with a name below its own folder.
    pub(super) folders: &'static [(&'static str, &'static str)],
    /// Its owner's settings: below the owner's home, and where they are copied to below its own folder.
    pub(super) settings: &'static [(&'static str, &'static str)],
    /// Files in its own folder that have protected names elsewhere.
    pub(super) unprotected: &'static [&'static str],
    /// Arguments that come before those that were typed, and variables: they switch its own sandbox off, which cannot
    /// be made inside a jail.
    pub(super) arguments: &'static [&'static str],
    /// See `arguments`.
    pub(super) set: &'static [(&'static str, &'static str)],
}

const AGENTS: &[Agent] = &[
    Agent {
        program: "claude",
        hosts: &[
            "api.anthropic.com",
            "claude.ai",
            "console.anthropic.com",
            "platform.claude.com",
            "statsig.anthropic.com",
        ],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        folders: &[("CLAUDE_CONFIG_DIR", "config")],
        settings: &[
            (".claude/settings.json", "config/settings.json"),
            (".claude/CLAUDE.md", "config/CLAUDE.md"),
        ],
        unprotected: &["config/.claude.json"],
        arguments: &[],
        // Truthful, and what lets root skip its questions. Updates would go to a folder that is read-only.
        set: &[("IS_SANDBOX", "1"), ("DISABLE_AUTOUPDATER", "1")],
    },
    Agent {
        program: "codex",
        hosts: &["api.openai.com", "chatgpt.com", "auth.openai.com"],
        variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"],
        folders: &[("CODEX_HOME", "config")],
        settings: &[(".codex/config.toml", "config/config.toml"), (".codex/AGENTS.md", "config/AGENTS.md")],
        unprotected: &[],
        arguments: &["-c", "sandbox_mode=\"danger-full-access\""],
        set: &[],
    },
    Agent {
        program: "gemini",
        hosts: &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "accounts.google.com",
        ],
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_MODEL", "GOOGLE_GEMINI_BASE_URL"],
        folders: &[("GEMINI_CLI_HOME", "home")],
        settings: &[
            (".gemini/settings.json", "home/.gemini/settings.json"),
            (".gemini/GEMINI.md", "home/.gemini/GEMINI.md"),
        ],
        unprotected: &["home/.gemini"],
        arguments: &[],
        set: &[("GEMINI_SANDBOX", "false")],
    },
    Agent {
        program: "opencode",
        hosts: &["api.anthropic.com", "api.openai.com", "opencode.ai", "models.dev"],
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
        folders: &[
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ],
        settings: &[(".config/opencode/opencode.json", "config/opencode/opencode.json")],
        unprotected: &["config/opencode/opencode.json"],
        arguments: &[],
        set: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    },
    Agent {
        program: "aider",
        hosts: &["api.anthropic.com", "api.openai.com", "openrouter.ai"],
        variables: &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "GEMINI_API_KEY",
            "AIDER_MODEL",
        ],
        folders: &[("XDG_CACHE_HOME", "cache")],
        settings: &[],
        unprotected: &[],
        arguments: &["--no-check-update"],
        set: &[("AIDER_ANALYTICS", "false")],
    },
];

/// What the program of that name needs, where it is an agent that haft knows.
pub(super) fn of(program: &str) -> Option<&'static Agent> {
    let name = Path::new(program).file_name()?.to_str()?;
    AGENTS.iter().find(|agent| agent.program == name)
}

impl Agent {
    /// Makes its own folder ready below `data`: what it says it needs is there, with its owner's settings of today. What
    /// the agent wrote in their place is not what its owner set, and is removed.
    pub(super) fn prepare(&self, data: &Path, home: Option<&Path>) -> io::Result<PathBuf> {
        let path = data.join("haft/agents").join(self.program);
        let folder = OwnFolder::create(&path)?;
        for (_, below) in self.folders {
            folder.folder(below.as_ref())?;
        }
        for (from, to) in self.settings {
            let read = home.map(|home| fs::read(home.join(from)));
            let bytes = match read {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Some(Err(_)) | None => None,
            };
            folder.put(to.as_ref(), bytes.as_deref())?;
        }
        Ok(path)
    }
}

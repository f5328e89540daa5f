//! What makes haft known to a host, in each mode: which settings of which file. A pure function.

use super::{
    host::Host,
    settings::{Change, Form},
};
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How a host uses haft.
// Without doc comments on the choices: with them, clap spreads the whole help over three lines an option.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    // haft's tools over MCP.
    #[default]
    Mcp,
    // The host asks haft before and after its own tools.
    Hook,
    // As hook, and shell commands run through `haft exec`.
    Exec,
}

/// What is asked for.
pub(super) struct Wish<'a> {
    pub(super) host: Host,
    pub(super) mode: Mode,
    pub(super) only_haft: bool,
    pub(super) project: bool,
    /// The name of haft among the host's MCP servers.
    pub(super) name: &'a str,
    /// The path of haft.
    pub(super) program: &'a str,
    /// What haft is started with, as an MCP server or as a hook.
    pub(super) arguments: &'a [String],
}

/// Changes of one file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileChanges {
    pub(super) file: PathBuf,
    pub(super) form: Form,
    pub(super) changes: Vec<Change>,
}

/// Tools of Claude Code that reach files, programs or the network. A denied tool is not offered to the model.
const CLAUDE_CODE: [&str; 20] = [
    "Bash",
    "BashOutput",
    "CronCreate",
    "Edit",
    "EnterWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "LSP",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "RemoteTrigger",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
    "TaskOutput",
];

/// Seconds that a host gives the hook. haft answers before that.
pub(super) const TIMEOUT: u64 = 60;

/// Everything that has to be written; or why that host cannot be used so.
pub(super) fn plan(wish: &Wish<'_>, surroundings: &Surroundings) -> Result<Vec<FileChanges>, String> {
    let title = wish.host.title();
    if wish.only_haft && wish.mode != Mode::Mcp {
        return Err(
            "--only-haft denies the host's own tools, so there is nothing to hook: use it with --mode mcp"
                .to_owned(),
        );
    }
    match wish.mode {
        Mode::Mcp => {
            let mut files = vec![servers(wish, surroundings)?];
            if wish.only_haft {
                deny_own_tools(wish, surroundings, &mut files)?;
            }
            Ok(files)
        }
        Mode::Exec
            if crate::hook::protocol(wish.host).is_none_or(|protocol| protocol.rewritten.is_none()) =>
        {
            Err(format!(
                "{title} does not let a hook change a command. Use --mode hook, or --mode mcp --only-haft"
            ))
        }
        Mode::Hook | Mode::Exec => {
            let file = wish.host.hooks(surroundings, wish.project);
            let file = file.ok_or_else(|| format!("{title} has no hooks that haft knows. Use --mode mcp"))?;
            Ok(vec![FileChanges { file, form: Form::Json, changes: hooks(wish) }])
        }
    }
}

fn servers(wish: &Wish<'_>, surroundings: &Surroundings) -> Result<FileChanges, String> {
    let host = wish.host;
    let file = match wish.project {
        true => host.project_servers(&surroundings.working_folder).ok_or_else(|| {
            format!("{} has no file of MCP servers for one project. Leave --project out", host.title())
        })?,
        false => host.file(surroundings).ok_or("there is no home folder, so there is no file to write")?,
    };
    let entry = host.entry(wish.program, wish.arguments);
    let changes = vec![Change::member(&[host.servers(), wish.name], entry)];
    Ok(FileChanges { file, form: host.form(), changes })
}

/// Switches off what the host has itself, as far as its settings can.
fn deny_own_tools(
    wish: &Wish<'_>,
    surroundings: &Surroundings,
    files: &mut Vec<FileChanges>,
) -> Result<(), String> {
    match wish.host {
        Host::ClaudeCode => {
            let file = wish.host.hooks(surroundings, wish.project);
            let file = file.ok_or("there is no home folder, so there is no file to write")?;
            let deny = |tool: &&str| Change::element(&["permissions", "deny"], json!(tool));
            let changes = CLAUDE_CODE.iter().map(deny).collect();
            files.push(FileChanges { file, form: Form::Json, changes });
        }
        Host::Codex => {
            let off = |feature: &str| Change::member(&["features", feature], json!(false));
            let changes = ["shell_tool", "unified_exec", "view_image"].map(off).into_iter();
            let search = Change::member(&["web_search"], json!("disabled"));
            files[0].changes.extend(changes.chain([search]));
        }
        Host::Gemini => {
            // Its list of tools that it does not offer would take those of haft away that have the same names.
            let offered = json!(["write_todos", format!("mcp_{}_*", wish.name)]);
            files[0].changes.push(Change::member(&["tools", "core"], offered));
        }
        other => {
            return Err(format!(
                "{} has no settings that deny its own tools, so others than haft's would remain. Leave out --only-haft",
                other.title()
            ));
        }
    }
    Ok(())
}

/// The entries that call haft before and after a tool of the host.
fn hooks(wish: &Wish<'_>) -> Vec<Change> {
    let command = command_line(wish.program, wish.arguments);
    let element = |event: &str, entry: Value| Change::element(&["hooks", event], entry);
    match wish.host {
        Host::ClaudeCode => {
            // A hook that fails, or takes too long, blocks the call: in versions that know `onFailure`.
            let before = json!({"matcher": "*", "hooks": [
                {"type": "command", "command": command, "timeout": TIMEOUT, "onFailure": "block"}]});
            let after = json!({"matcher": "*", "hooks": [
                {"type": "command", "command": command, "timeout": TIMEOUT}]});
            vec![
                element("PreToolUse", before),
                element("PostToolUse", after.clone()),
                element("PostToolUseFailure", after),
            ]
        }
        Host::Codex => {
            let entry = json!({"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT}]});
            vec![element("PreToolUse", entry.clone()), element("PostToolUse", entry)]
        }
        Host::Cursor => {
            let entry = json!({"command": command, "timeout": TIMEOUT, "failClosed": true});
            vec![
                Change::member(&["version"], json!(1)),
                element("preToolUse", entry.clone()),
                element("postToolUse", entry),
            ]
        }
        Host::Gemini => {
            let entry = json!({"matcher": "*", "hooks": [
                {"name": "haft", "type": "command", "command": command, "timeout": TIMEOUT * 1000}]});
            vec![element("BeforeTool", entry.clone()), element("AfterTool", entry)]
        }
        _ => {
            let entry = json!({"type": "command", "bash": command, "timeoutSec": TIMEOUT});
            vec![
                Change::member(&["version"], json!(1)),
                element("preToolUse", entry.clone()),
                element("postToolUse", entry),
            ]
        }
    }
}

/// A line of shell that starts the program with those arguments.
pub(crate) fn command_line(program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_home() -> Surroundings {
        Surroundings {
            working_folder: "/work".into(),
            home: Some("/home/ada".into()),
            ..Surroundings::default()
        }
    }

    fn files(host: Host, mode: Mode, only_haft: bool, project: bool) -> Result<Vec<String>, String> {
        let wish =
            Wish { host, mode, only_haft, project, name: "haft", program: "/bin/haft", arguments: &[] };
        let planned = plan(&wish, &at_home())?;
        Ok(planned.iter().map(|file| format!("{} {}", file.file.display(), file.changes.len())).collect())
    }

    #[test]
    fn every_mode_has_its_files() {
        use {Host::*, Mode::*};
        for (host, mode, only, project, expected) in [
            (ClaudeCode, Mcp, false, false, Some("/home/ada/.claude.json 1")),
            (ClaudeCode, Mcp, false, true, Some("/work/.mcp.json 1")),
            (ClaudeCode, Mcp, true, true, Some("/work/.mcp.json 1, /work/.claude/settings.json 20")),
            (ClaudeCode, Hook, false, false, Some("/home/ada/.claude/settings.json 3")),
            (ClaudeCode, Exec, false, true, Some("/work/.claude/settings.json 3")),
            (Codex, Mcp, true, false, Some("/home/ada/.codex/config.toml 5")),
            (Codex, Hook, false, false, Some("/home/ada/.codex/hooks.json 2")),
            (Gemini, Mcp, true, false, Some("/home/ada/.gemini/settings.json 2")),
            (Gemini, Hook, false, true, Some("/work/.gemini/settings.json 2")),
            (Cursor, Hook, false, true, Some("/work/.cursor/hooks.json 3")),
            (Copilot, Hook, false, true, Some("/work/.github/hooks/haft.json 3")),
            (Copilot, Mcp, false, true, None),
            (Gemini, Exec, false, true, None),
            (Cursor, Mcp, true, false, None),
            (Zed, Hook, false, false, None),
            (ClaudeCode, Hook, true, false, None),
        ] {
            let found = files(host, mode, only, project);
            assert_eq!(
                found.as_ref().ok().map(|files| files.join(", ")).as_deref(),
                expected,
                "{host:?} {mode:?} {found:?}"
            );
        }
    }

    #[test]
    fn a_shell_reads_the_words_as_they_are() {
        let words = [
            "/a b/haft".to_owned(),
            "it's".to_owned(),
            String::new(),
            "--set".to_owned(),
            "$HOME".to_owned(),
        ];
        let line = format!("printf '%s\\n' {}", command_line(&words[0], &words[1..]));
        let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), words.join("\n") + "\n");
    }
}

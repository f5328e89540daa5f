//! What hosts really said, and what haft makes of it. Those of Claude Code, Codex and Gemini CLI were recorded with the
//! programs; those of the others are from their documentation.

use super::of;
use crate::{
    hook::{
        event::{Event, Moment, Reply, Verdict},
        map::{Foreign, Mapped, Touches},
    },
    hosts::Host,
};
use haft::config::Surroundings;
use serde_json::{Value, json};

fn surroundings() -> Surroundings {
    Surroundings {
        working_folder: "/work/p".into(),
        env: vec![
            ("AI_AGENT".into(), "claude-code_2-1-327_harness".into()),
            ("CLAUDE_PROJECT_DIR".into(), "/work/p".into()),
        ],
        ..Surroundings::default()
    }
}

fn event(host: Host, said: &Value) -> Event {
    (of(host).unwrap().read)(said, &surroundings()).unwrap_or_else(|| panic!("{host:?} does not say {said}"))
}

fn mapped(host: Host, said: &Value) -> Mapped {
    (of(host).unwrap().map)(&event(host, said))
}

fn claude(tool: &str, input: Value) -> Value {
    json!({
        "session_id": "38c9d42c", "transcript_path": "/home/ada/.claude/projects/p/38c9d42c.jsonl", "cwd": "/work/p/sub",
        "prompt_id": "5a3c9ab0", "permission_mode": "bypassPermissions", "effort": {"level": "high"},
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_000",
    })
}

fn codex(tool: &str, input: Value) -> Value {
    json!({
        "session_id": "01a1ef0d", "turn_id": "01a1ef0e", "transcript_path": null, "cwd": "/work/p",
        "hook_event_name": "PreToolUse", "model": "gpt-5", "permission_mode": "bypassPermissions",
        "tool_name": tool, "tool_input": input, "tool_use_id": "call_0",
    })
}

fn cursor(tool: &str, input: Value) -> Value {
    json!({
        "conversation_id": "c1", "generation_id": "g1", "hook_event_name": "preToolUse", "cursor_version": "2.4.0",
        "workspace_roots": ["/work/p"], "user_email": null, "transcript_path": null,
        "tool_name": tool, "tool_input": input, "tool_use_id": "t1", "cwd": "/work/p",
    })
}

fn gemini(tool: &str, input: Value) -> Value {
    json!({
        "session_id": "g1", "transcript_path": "/t", "cwd": "/work/p", "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-18T00:00:00Z", "tool_name": tool, "tool_input": input,
    })
}

fn copilot(tool: &str, input: Value) -> Value {
    json!({"timestamp": 1, "cwd": "/work/p", "toolName": tool, "toolArgs": input.to_string()})
}

fn foreign(name: &str, touches: Touches, arguments: Value) -> Mapped {
    Mapped::Foreign(Foreign { name: name.to_owned(), touches, arguments })
}

#[test]
fn a_tool_of_a_host_is_a_call_of_haft() {
    use Host::{ClaudeCode, Codex, Copilot, Cursor, Gemini};
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n";
    let read = |path: &str| Mapped::Known("read_file", json!({"path": path}));
    let write = |path: &str, content: &str| {
        Mapped::Known("write_file", json!({"path": path, "content": content, "mode": "overwrite"}))
    };
    let edit = |path: &str, all: bool| {
        Mapped::Known("edit_file", json!({"path": path, "old_text": "a", "new_text": "b", "all": all}))
    };
    for (host, said, expected) in [
        (
            ClaudeCode,
            claude("Bash", json!({"command": "rm -rf x", "description": "d"})),
            Mapped::Command(json!({"command": "rm -rf x", "working_dir": "sub"})),
        ),
        (ClaudeCode, claude("Read", json!({"file_path": "/work/p/made"})), read("made")),
        (ClaudeCode, claude("Read", json!({"file_path": "/etc/passwd"})), read("/etc/passwd")),
        (ClaudeCode, claude("Read", json!({"file_path": "near"})), read("sub/near")),
        (
            ClaudeCode,
            claude(
                "Edit",
                json!({"file_path": "/work/p/.git/config", "old_string": "a", "new_string": "b", "replace_all": false}),
            ),
            edit(".git/config", false),
        ),
        (
            ClaudeCode,
            claude("Edit", json!({"file_path": "/work/p/n", "old_string": "", "new_string": "b"})),
            write("n", "b"),
        ),
        (ClaudeCode, claude("Write", json!({"file_path": "/work/p/new", "content": "x"})), write("new", "x")),
        (
            ClaudeCode,
            claude("WebFetch", json!({"url": "https://u:p@Example.com:8443/a?b#c", "prompt": "p"})),
            foreign(
                "web_fetch",
                Touches::Network("example.com".to_owned()),
                json!({"url": "https://u:p@Example.com:8443/a?b#c", "prompt": "p"}),
            ),
        ),
        (
            ClaudeCode,
            claude("WebFetch", json!({"url": "nonsense"})),
            foreign("web_fetch", Touches::Anything, json!({"url": "nonsense"})),
        ),
        (ClaudeCode, claude("TodoWrite", json!({})), foreign("todo_write", Touches::Nothing, json!({}))),
        (
            ClaudeCode,
            claude("mcp__GitHub__create-issue", json!({"a": 1})),
            foreign("mcp__git_hub__create_issue", Touches::Anything, json!({"a": 1})),
        ),
        (ClaudeCode, claude("Bash", json!({})), foreign("bash", Touches::Anything, json!({}))),
        (ClaudeCode, claude("Newest", json!(3)), foreign("newest", Touches::Anything, json!({"input": 3}))),
        (Codex, codex("Bash", json!({"command": "ls"})), Mapped::Command(json!({"command": "ls"}))),
        (
            Codex,
            codex("apply_patch", json!({"command": patch})),
            Mapped::Known("apply_patch", json!({"patch": patch})),
        ),
        (Codex, codex("update_plan", json!({})), foreign("update_plan", Touches::Nothing, json!({}))),
        (Codex, codex("mcp__fs__read", json!({})), foreign("mcp__fs__read", Touches::Anything, json!({}))),
        (Cursor, cursor("Shell", json!({"command": "ls"})), Mapped::Command(json!({"command": "ls"}))),
        (Cursor, cursor("Read", json!({"file_path": "/work/p/a"})), read("a")),
        (
            Cursor,
            cursor("Delete", json!({"path": "/work/p/a"})),
            Mapped::Known("delete_file", json!({"path": "a"})),
        ),
        (
            Gemini,
            gemini("run_shell_command", json!({"command": "ls", "dir_path": "src"})),
            Mapped::Command(json!({"command": "ls", "working_dir": "src"})),
        ),
        (
            Gemini,
            gemini("replace", json!({"file_path": "a", "old_string": "a", "new_string": "b"})),
            edit("a", true),
        ),
        (Copilot, copilot("bash", json!({"command": "ls"})), Mapped::Command(json!({"command": "ls"}))),
        (Copilot, copilot("create", json!({"path": "/work/p/n", "file_text": "x"})), write("n", "x")),
    ] {
        assert_eq!(mapped(host, &said), expected, "{host:?} {said}");
    }
}

#[test]
fn when_and_in_which_version_is_told() {
    let before = event(Host::ClaudeCode, &claude("Bash", json!({})));
    assert_eq!((before.moment, before.version.as_deref()), (Moment::Before, Some("2.1.327")));
    assert!(before.asks);
    let mut said = claude("Bash", json!({}));
    said["permission_mode"] = json!("dontAsk");
    assert!(!event(Host::ClaudeCode, &said).asks, "nobody would be asked");
    for (name, moment) in [
        ("PostToolUse", Moment::After),
        ("PostToolUseFailure", Moment::After),
        ("SessionStart", Moment::Other),
        ("Unheard", Moment::Other),
    ] {
        said["hook_event_name"] = json!(name);
        assert_eq!(event(Host::ClaudeCode, &said).moment, moment, "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let transcript = folder.path().join("rollout.jsonl");
    let head = r#"{"timestamp":"2026-11-18T14:26:57.750Z","type":"session_meta","payload":{"originator":"codex_exec","cli_version":"0.169.0","source":"exec"#;
    std::fs::write(&transcript, format!("{head}{}", "é".repeat(9000))).unwrap();
    let mut said = codex("Bash", json!({}));
    assert_eq!(event(Host::Codex, &said).version, None, "without a transcript nobody knows");
    said["transcript_path"] = json!(transcript);
    assert_eq!(event(Host::Codex, &said).version.as_deref(), Some("0.169.0"));
    assert!(!event(Host::Codex, &said).asks, "Codex runs a command whose hook says ask");
}

#[test]
fn nonsense_is_no_event() {
    for host in [Host::ClaudeCode, Host::Codex, Host::Copilot, Host::Cursor, Host::Gemini] {
        for said in
            [json!(null), json!([]), json!({}), json!({"hook_event_name": 3}), json!({"cwd": "/work"})]
        {
            assert_eq!((of(host).unwrap().read)(&said, &surroundings()), None, "{host:?} {said}");
        }
    }
    let mut said = claude("Bash", json!({}));
    said["tool_name"] = json!("");
    assert_eq!((of(Host::ClaudeCode).unwrap().read)(&said, &surroundings()), None);
}

#[test]
fn a_no_is_exit_code_2_for_every_host_and_nothing_else_is() {
    for (host, said) in [
        (Host::ClaudeCode, claude("Bash", json!({"command": "ls"}))),
        (Host::Codex, codex("Bash", json!({"command": "ls"}))),
        (Host::Cursor, cursor("Shell", json!({"command": "ls"}))),
        (Host::Gemini, gemini("run_shell_command", json!({"command": "ls"}))),
        (Host::Copilot, copilot("bash", json!({"command": "ls"}))),
    ] {
        let (protocol, event) = (of(host).unwrap(), event(host, &said));
        let denied = (protocol.reply)(&event, Verdict::Deny("no".to_owned()));
        assert_eq!((denied.exit, denied.stderr.as_deref()), (2, Some("no")), "{host:?}");
        for allowed in [Verdict::Allow { input: None, is_final: false }, Verdict::Noted(None)] {
            let reply = (protocol.reply)(&event, allowed);
            assert_eq!(reply.exit, 0, "{host:?}");
            let said = reply.stdout.unwrap_or_default();
            assert!(
                !said.contains("allow"),
                "{host:?}: haft's yes does not take the host's own question away: {said}"
            );
        }
    }
}

#[test]
fn claude_code_is_asked_in_its_own_form() {
    let (protocol, event) =
        (of(Host::ClaudeCode).unwrap(), event(Host::ClaudeCode, &claude("Bash", json!({"command": "ls"}))));
    let json_of = |reply: Reply| serde_json::from_str::<Value>(&reply.stdout.unwrap()).unwrap();
    let asked = json_of((protocol.reply)(&event, Verdict::Ask("why".to_owned())));
    assert_eq!(
        asked,
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "why"}})
    );
    let input = protocol.rewritten.unwrap()(&event, "haft exec");
    let changed = json_of((protocol.reply)(&event, Verdict::Allow { input: Some(input), is_final: false }));
    assert_eq!(
        changed,
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "haft exec"}}})
    );
    let alarm = json_of((protocol.reply)(&event, Verdict::Alarm("past haft".to_owned())));
    assert_eq!(alarm["continue"], json!(false));
}

//! Codex: PreToolUse and PostToolUse of hooks.json.
//!
//! Tried: exit code 2 and `deny` block; `ask` is an error of the hook, and then the command runs, so haft never says
//! it; `updatedInput` with `allow` is kept; every other end of the hook lets the call through; after a tool nothing
//! ends the session, so haft blocks what comes next; a hook that nobody trusted in Codex (`/hooks`) is not called at
//! all.

use crate::hook::{
    event::{Event, Moment, Protocol, Reply, Verdict, text},
    map::{self, Mapped, Touches},
};
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::{fs::File, io::Read as _, path::PathBuf};

pub(super) const PROTOCOL: Protocol =
    Protocol { read, map, reply, rewritten: Some(rewritten), tried: &["0.169.0"] };

/// Tools that reach nothing outside of the conversation.
const HARMLESS: [&str; 5] = ["update_plan", "request_user_input", "get_goal", "create_goal", "update_goal"];

fn read(said: &Value, _surroundings: &Surroundings) -> Option<Event> {
    let moment = match text(said, &["hook_event_name"])? {
        "PreToolUse" => Moment::Before,
        "PostToolUse" => Moment::After,
        _ => Moment::Other,
    };
    let cwd = PathBuf::from(text(said, &["cwd"])?);
    Some(Event {
        moment,
        tool: text(said, &["tool_name"]).or((moment == Moment::Other).then_some("none"))?.to_owned(),
        input: said.get("tool_input").cloned().unwrap_or_default(),
        output: said.get("tool_response").cloned().unwrap_or_default(),
        failed: false,
        session: text(said, &["session_id"])?.to_owned(),
        call: text(said, &["tool_use_id"]).unwrap_or_default().to_owned(),
        folder: cwd.clone(),
        cwd,
        asks: false,
        version: text(said, &["transcript_path"]).and_then(version),
    })
}

/// Codex says its version at the beginning of the session's transcript, and nowhere else.
fn version(transcript: &str) -> Option<String> {
    let mut head = Vec::new();
    File::open(transcript).ok()?.take(4096).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let rest = head.split_once("\"cli_version\":\"")?.1;
    rest.split('"').next().filter(|version| !version.is_empty()).map(str::to_owned)
}

fn map(event: &Event) -> Mapped {
    let command = map::field(event, &["command"]);
    match (event.tool.as_str(), command) {
        ("Bash", Some(line)) => map::command(event, line),
        ("apply_patch", Some(patch)) => Mapped::Known("apply_patch", json!({"patch": patch})),
        (tool, _) if HARMLESS.contains(&tool) => map::foreign(event, Touches::Nothing),
        _ => map::foreign(event, Touches::Anything),
    }
}

fn rewritten(event: &Event, command: &str) -> Value {
    let mut input = event.input.clone();
    input["command"] = json!(command);
    input
}

fn reply(_event: &Event, verdict: Verdict) -> Reply {
    match verdict {
        Verdict::Allow { input: Some(input), .. } => Reply::json(&json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input,
        }})),
        Verdict::Allow { input: None, .. } | Verdict::Noted(None) => Reply::nothing(),
        Verdict::Ask(why) | Verdict::Deny(why) | Verdict::Alarm(why) => Reply::blocked(why),
        Verdict::Noted(Some(text)) => Reply::json(&json!({
            "systemMessage": text,
            "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text},
        })),
    }
}

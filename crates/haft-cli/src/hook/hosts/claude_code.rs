//! Claude Code: PreToolUse, PostToolUse and PostToolUseFailure.
//!
//! Tried: exit code 2 blocks in every permission mode; `ask` is kept in every mode, and is a no where nobody is there;
//! `updatedInput` is kept with and without `allow`, and PostToolUse shows the input that ran; `continue: false` after a
//! tool ends the session. A hook that ends with another code, or is killed, or takes too long, blocks only with
//! `onFailure: "block"`, which 2.1.197 does not know.

use crate::hook::{
    event::{Event, Moment, Protocol, Reply, Verdict, text, variable},
    map::{self, Mapped, Touches},
};
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const PROTOCOL: Protocol =
    Protocol { read, map, reply, rewritten: Some(rewritten), tried: &["2.1.197", "2.1.327"] };

/// Tools that reach nothing outside of the conversation.
const HARMLESS: [&str; 14] = [
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "ListAgents",
    "ReportFindings",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
];

fn read(said: &Value, surroundings: &Surroundings) -> Option<Event> {
    let moment = match text(said, &["hook_event_name"])? {
        "PreToolUse" => Moment::Before,
        "PostToolUse" | "PostToolUseFailure" => Moment::After,
        _ => Moment::Other,
    };
    let cwd = PathBuf::from(text(said, &["cwd"])?);
    let failed = text(said, &["hook_event_name"]) == Some("PostToolUseFailure");
    Some(Event {
        moment,
        tool: text(said, &["tool_name"]).or((moment == Moment::Other).then_some("none"))?.to_owned(),
        input: said.get("tool_input").cloned().unwrap_or_default(),
        output: said.get(if failed { "error" } else { "tool_response" }).cloned().unwrap_or_default(),
        failed,
        session: text(said, &["session_id"])?.to_owned(),
        call: text(said, &["tool_use_id"]).unwrap_or_default().to_owned(),
        folder: variable(surroundings, "CLAUDE_PROJECT_DIR").map_or_else(|| cwd.clone(), PathBuf::from),
        cwd,
        asks: text(said, &["permission_mode"]) != Some("dontAsk"),
        version: variable(surroundings, "AI_AGENT").as_deref().and_then(version),
    })
}

/// `claude-code_2-1-327_harness`
fn version(agent: &str) -> Option<String> {
    let version = agent.strip_prefix("claude-code_")?.split('_').next()?;
    Some(version.replace('-', "."))
}

fn map(event: &Event) -> Mapped {
    let file = map::field(event, &["file_path", "notebook_path"]);
    match (event.tool.as_str(), file) {
        ("Bash", _) => match map::field(event, &["command"]) {
            Some(line) => map::command(event, line),
            None => map::foreign(event, Touches::Anything),
        },
        ("Read", Some(file)) => map::read(event, file),
        ("Write", Some(file)) => map::write(event, file, map::any(event, &["content"])),
        ("NotebookEdit", Some(file)) => map::write(event, file, map::any(event, &["new_source"])),
        ("Edit", Some(file)) => {
            let (old, new) = (map::any(event, &["old_string"]), map::any(event, &["new_string"]));
            map::edit(event, file, old, new, map::flag(event, "replace_all"))
        }
        // Which pieces is not asked about: the file is.
        ("MultiEdit", Some(file)) => map::write(event, file, &event.input["edits"].to_string()),
        ("Glob", _) => map::glob(event, map::any(event, &["pattern"]), map::field(event, &["path"])),
        ("Grep", _) => map::search(event, map::any(event, &["pattern"]), map::field(event, &["path"])),
        ("LS", _) => map::list(event, map::field(event, &["path"]).unwrap_or(".")),
        ("WebFetch", _) => map::web(event, map::field(event, &["url"])),
        (tool, _) if HARMLESS.contains(&tool) => map::foreign(event, Touches::Nothing),
        _ => map::foreign(event, Touches::Anything),
    }
}

fn rewritten(event: &Event, command: &str) -> Value {
    let mut input = event.input.clone();
    input["command"] = json!(command);
    input
}

fn reply(event: &Event, verdict: Verdict) -> Reply {
    let before = |mut answer: Value| {
        answer["hookEventName"] = json!("PreToolUse");
        Reply::json(&json!({"hookSpecificOutput": answer}))
    };
    match verdict {
        Verdict::Allow { input: None, is_final: false } => Reply::nothing(),
        Verdict::Allow { input, is_final } => {
            let mut answer = json!({});
            if let Some(input) = input {
                answer["updatedInput"] = input;
            }
            if is_final {
                answer["permissionDecision"] = json!("allow");
                answer["permissionDecisionReason"] = json!("haft allows it");
            }
            before(answer)
        }
        Verdict::Ask(why) => before(json!({"permissionDecision": "ask", "permissionDecisionReason": why})),
        Verdict::Deny(why) => Reply::blocked(why),
        Verdict::Noted(None) => Reply::nothing(),
        Verdict::Noted(Some(text)) => {
            let name = if event.failed { "PostToolUseFailure" } else { "PostToolUse" };
            let output = json!({"hookEventName": name, "additionalContext": text});
            Reply::json(&json!({"hookSpecificOutput": output, "systemMessage": text}))
        }
        Verdict::Alarm(why) => {
            Reply::json(&json!({"continue": false, "stopReason": why, "systemMessage": why}))
        }
    }
}

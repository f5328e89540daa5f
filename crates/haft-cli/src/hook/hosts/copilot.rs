//! GitHub Copilot CLI: preToolUse and postToolUse, as its documentation has them. Not tried with Copilot CLI itself.

use crate::hook::{
    event::{Event, Moment, Protocol, Reply, Verdict, text},
    map::{self, Mapped, Touches},
};
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const PROTOCOL: Protocol = Protocol { read, map, reply, rewritten: None, tried: &[] };

/// The events have no name here: one with a result is one that ran.
fn read(said: &Value, _surroundings: &Surroundings) -> Option<Event> {
    let ran = said.get("toolResult").or_else(|| said.get("tool_result"));
    let cwd = PathBuf::from(text(said, &["cwd"])?);
    let tool = text(said, &["toolName", "tool_name"])?.to_owned();
    let input = said.get("toolArgs").or_else(|| said.get("tool_input"))?;
    // It comes as the text of a JSON object.
    let input = match input {
        Value::String(text) => serde_json::from_str(text).ok()?,
        value => value.clone(),
    };
    let failed =
        ran.is_some_and(|ran| matches!(text(ran, &["resultType"]), Some("failure" | "denied" | "error")));
    Some(Event {
        moment: if ran.is_some() { Moment::After } else { Moment::Before },
        output: ran.cloned().unwrap_or_default(),
        failed,
        session: text(said, &["sessionId", "session_id"]).unwrap_or("copilot").to_owned(),
        call: text(said, &["toolCallId", "tool_use_id"])
            .map_or_else(|| format!("{tool} {input}"), str::to_owned),
        tool,
        input,
        folder: cwd.clone(),
        cwd,
        asks: false,
        version: None,
    })
}

fn map(event: &Event) -> Mapped {
    let file = map::field(event, &["path", "file_path"]);
    match (event.tool.as_str(), file) {
        ("bash", _) => match map::field(event, &["command"]) {
            Some(line) => map::command(event, line),
            None => map::foreign(event, Touches::Anything),
        },
        ("view", Some(file)) => map::read(event, file),
        ("create", Some(file)) => map::write(event, file, map::any(event, &["file_text", "content"])),
        ("edit" | "str_replace", Some(file)) => {
            let (old, new) = (map::any(event, &["old_str"]), map::any(event, &["new_str"]));
            map::edit(event, file, old, new, false)
        }
        ("glob", folder) => map::glob(event, map::any(event, &["pattern"]), folder),
        ("grep" | "rg", folder) => map::search(event, map::any(event, &["pattern"]), folder),
        ("web_fetch" | "fetch", _) => map::web(event, map::field(event, &["url"])),
        ("report_intent" | "update_todo" | "ask_user", _) => map::foreign(event, Touches::Nothing),
        _ => map::foreign(event, Touches::Anything),
    }
}

fn reply(_event: &Event, verdict: Verdict) -> Reply {
    match verdict {
        Verdict::Allow { is_final: true, .. } => Reply::json(&json!({"permissionDecision": "allow"})),
        Verdict::Allow { .. } | Verdict::Noted(_) => Reply::nothing(),
        // Its documentation has the JSON; a code that is not 0 blocks, too.
        Verdict::Ask(why) | Verdict::Deny(why) | Verdict::Alarm(why) => {
            let answer = json!({"permissionDecision": "deny", "permissionDecisionReason": why});
            Reply { stdout: Some(answer.to_string()), ..Reply::blocked(why) }
        }
    }
}

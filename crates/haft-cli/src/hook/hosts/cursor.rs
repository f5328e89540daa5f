//! Cursor: preToolUse and postToolUse of hooks.json, as Cursor documents them. Not tried with Cursor itself.

use crate::hook::{
    event::{Event, Moment, Protocol, Reply, Verdict, text},
    map::{self, Mapped, Touches},
};
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const PROTOCOL: Protocol = Protocol { read, map, reply, rewritten: Some(rewritten), tried: &[] };

fn read(said: &Value, surroundings: &Surroundings) -> Option<Event> {
    let moment = match text(said, &["hook_event_name"])? {
        "preToolUse" => Moment::Before,
        "postToolUse" | "postToolUseFailure" => Moment::After,
        _ => Moment::Other,
    };
    let root = said.get("workspace_roots").and_then(|roots| roots.get(0)?.as_str());
    let folder = root.map_or_else(|| surroundings.working_folder.clone(), PathBuf::from);
    let cwd = text(said, &["cwd"]).map_or_else(|| folder.clone(), PathBuf::from);
    let failed = text(said, &["hook_event_name"]) == Some("postToolUseFailure");
    Some(Event {
        moment,
        tool: text(said, &["tool_name"]).or((moment == Moment::Other).then_some("none"))?.to_owned(),
        input: said.get("tool_input").cloned().unwrap_or_default(),
        output: said.get(if failed { "error_message" } else { "tool_output" }).cloned().unwrap_or_default(),
        failed,
        session: text(said, &["conversation_id", "session_id"])?.to_owned(),
        call: text(said, &["tool_use_id"]).unwrap_or_default().to_owned(),
        folder,
        cwd,
        // Documented for shell commands alone, and ignored for other tools.
        asks: false,
        version: text(said, &["cursor_version"]).map(str::to_owned),
    })
}

fn map(event: &Event) -> Mapped {
    let file = map::field(event, &["file_path", "path", "target_file"]);
    match (event.tool.as_str(), file) {
        ("Shell", _) => match map::field(event, &["command"]) {
            Some(line) => map::command(event, line),
            None => map::foreign(event, Touches::Anything),
        },
        ("Read", Some(file)) => map::read(event, file),
        ("Write", Some(file)) => map::write(event, file, map::any(event, &["content", "contents"])),
        ("StrReplace" | "Edit", Some(file)) => {
            let (old, new) = (map::any(event, &["old_string"]), map::any(event, &["new_string"]));
            map::edit(event, file, old, new, map::flag(event, "replace_all"))
        }
        ("Delete", Some(_)) => {
            let Mapped::Known(_, arguments) = map::read(event, file.unwrap_or_default()) else {
                return map::foreign(event, Touches::Anything);
            };
            Mapped::Known("delete_file", arguments)
        }
        ("Grep", folder) => map::search(event, map::any(event, &["pattern"]), folder),
        ("Glob", folder) => map::glob(event, map::any(event, &["pattern", "glob_pattern"]), folder),
        ("WebFetch", _) => map::web(event, map::field(event, &["url"])),
        ("TodoWrite" | "TodoRead", _) => map::foreign(event, Touches::Nothing),
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
        Verdict::Allow { input: Some(input), .. } => {
            Reply::json(&json!({"permission": "allow", "updated_input": input}))
        }
        Verdict::Allow { input: None, is_final } if is_final => Reply::json(&json!({"permission": "allow"})),
        // Without an answer a hook that fails closed would block.
        Verdict::Allow { .. } | Verdict::Noted(None) => Reply::json(&json!({})),
        Verdict::Ask(why) | Verdict::Deny(why) | Verdict::Alarm(why) => Reply::blocked(why),
        Verdict::Noted(Some(text)) => Reply::json(&json!({"additional_context": text})),
    }
}

//! Gemini CLI: BeforeTool and AfterTool.
//!
//! Tried by hand: exit code 2 and `deny` block, in `--yolo`, too; a hook that ends with 1, is killed or takes too long
//! lets the call through; `continue: false` after a tool ends the session. It tells a hook no version, so haft works
//! with it only where `--untried` says so.

use crate::hook::{
    event::{Event, Moment, Protocol, Reply, Verdict, text},
    map::{self, Mapped, Touches},
};
use haft::config::Surroundings;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const PROTOCOL: Protocol = Protocol { read, map, reply, rewritten: None, tried: &["0.61.0"] };

fn read(said: &Value, _surroundings: &Surroundings) -> Option<Event> {
    let moment = match text(said, &["hook_event_name"])? {
        "BeforeTool" => Moment::Before,
        "AfterTool" => Moment::After,
        _ => Moment::Other,
    };
    let cwd = PathBuf::from(text(said, &["cwd"])?);
    let tool = text(said, &["tool_name"]).or((moment == Moment::Other).then_some("none"))?;
    let input = said.get("tool_input").cloned().unwrap_or_default();
    Some(Event {
        moment,
        tool: tool.to_owned(),
        output: said.get("tool_response").cloned().unwrap_or_default(),
        failed: said.pointer("/tool_response/error").is_some_and(|error| !error.is_null()),
        session: text(said, &["session_id"])?.to_owned(),
        // Gemini CLI names no call: one is told from another by its tool and its input. A changed command would have
        // other input afterwards and find no ticket, so haft changes none.
        call: format!("{tool} {input}"),
        input,
        folder: cwd.clone(),
        cwd,
        asks: false,
        version: None,
    })
}

fn map(event: &Event) -> Mapped {
    let file = map::field(event, &["file_path", "absolute_path", "path", "dir_path"]);
    match (event.tool.as_str(), file) {
        ("run_shell_command", _) => match map::field(event, &["command"]) {
            Some(line) => {
                let folder = map::field(event, &["dir_path", "directory"]);
                let cwd = folder.map_or_else(|| event.cwd.clone(), |folder| event.cwd.join(folder));
                map::command(&Event { cwd, ..event.clone() }, line)
            }
            None => map::foreign(event, Touches::Anything),
        },
        ("read_file", Some(file)) => map::read(event, file),
        ("write_file", Some(file)) => map::write(event, file, map::any(event, &["content"])),
        ("replace", Some(file)) => {
            let (old, new) = (map::any(event, &["old_string"]), map::any(event, &["new_string"]));
            map::edit(event, file, old, new, true)
        }
        ("list_directory", folder) => map::list(event, folder.unwrap_or(".")),
        ("glob", folder) => map::glob(event, map::any(event, &["pattern"]), folder),
        ("search_file_content" | "grep_search", folder) => {
            map::search(event, map::any(event, &["pattern"]), folder)
        }
        ("write_todos" | "update_topic" | "ask_user", _) => map::foreign(event, Touches::Nothing),
        _ => map::foreign(event, Touches::Anything),
    }
}

fn reply(_event: &Event, verdict: Verdict) -> Reply {
    match verdict {
        Verdict::Allow { .. } | Verdict::Noted(None) => Reply::json(&json!({})),
        Verdict::Ask(why) | Verdict::Deny(why) => Reply::blocked(why),
        Verdict::Noted(Some(text)) => {
            Reply::json(&json!({"hookSpecificOutput": {"additionalContext": text}, "systemMessage": text}))
        }
        Verdict::Alarm(why) => Reply::json(&json!({"continue": false, "stopReason": why})),
    }
}

//! `haft hook`: a host's own tools, decided about and recorded.

use super::support::{Place, Said};
use serde_json::{Value, json};
use std::{io::Write as _, process::Stdio};

/// What Claude Code says before a tool.
fn before(place: &Place, tool: &str, input: Value) -> Value {
    json!({
        "session_id": "s1", "cwd": place.work(), "permission_mode": "default", "hook_event_name": "PreToolUse",
        "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_1",
    })
}

fn after(place: &Place, tool: &str, input: Value, output: Value) -> Value {
    let mut said = before(place, tool, input);
    said["hook_event_name"] = json!("PostToolUse");
    said["tool_response"] = output;
    said
}

/// Calls the hook as Claude Code in a tried version does.
fn hook(place: &Place, args: &[&str], said: &[u8]) -> Said {
    hook_of(place, "claude-code_2-1-327_harness", args, said)
}

fn hook_of(place: &Place, agent: &str, args: &[&str], said: &[u8]) -> Said {
    let args: Vec<&str> = ["hook", "claude-code"].into_iter().chain(args.iter().copied()).collect();
    let mut command = place.program(&args);
    let mut child = command.env("AI_AGENT", agent).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end before it has read everything.
    let _ = stdin.write_all(said);
    drop(stdin);
    Said::of(child.wait_with_output().unwrap())
}

fn asked(place: &Place, args: &[&str], said: &Value) -> Said {
    hook(place, args, said.to_string().as_bytes())
}

fn records(place: &Place) -> Vec<Value> {
    let said = place.haft(&["runs", "list", "--json"]);
    let json = said.json();
    json["runs"].as_array().or(json.as_array()).cloned().unwrap_or_else(|| panic!("{json}"))
}

#[test]
fn what_haft_allows_is_left_to_the_host_and_recorded_once() {
    let place = Place::new();
    place.write("notes", "x");
    let said = asked(&place, &[], &before(&place, "Read", json!({"file_path": place.work().join("notes")})));
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "no `allow`: the host may still ask: {said:?}");
    let listed = records(&place);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        (&listed[0]["tool"], &listed[0]["status"]),
        (&json!("read_file"), &json!("Success")),
        "{listed:?}"
    );
    let said = asked(
        &place,
        &["--allow"],
        &before(&place, "Read", json!({"file_path": place.work().join("notes")})),
    );
    assert_eq!(said.json()["hookSpecificOutput"]["permissionDecision"], "allow");
}

#[test]
fn what_haft_denies_is_blocked_by_exit_code_2() {
    let place = Place::new();
    for (tool, input, why) in [
        ("Bash", json!({"command": "rm -rf ~"}), "denylist"),
        ("Edit", json!({"file_path": ".git/config", "old_string": "a", "new_string": "b"}), "denied pattern"),
        ("Read", json!({"file_path": "/etc/passwd"}), "outside sandbox"),
        ("Read", json!({"file_path": place.home().join(".config/haft/haft.toml")}), "outside sandbox"),
    ] {
        let said = asked(&place, &[], &before(&place, tool, input));
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{tool}: {said:?}");
        assert!(said.stderr.contains(why), "{tool}: {said:?}");
    }
    assert!(records(&place).iter().all(|record| record["status"] != "Success"));
}

#[test]
fn what_needs_a_person_becomes_the_hosts_own_question() {
    let place = Place::new();
    place.write("notes", "old\n");
    let input = json!({"file_path": place.work().join("notes"), "old_string": "old", "new_string": "new"});
    let said = asked(&place, &[], &before(&place, "Edit", input.clone()));
    let answer = said.json();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "ask", "{said:?}");
    assert_eq!(said.code, 0);
    let unknown = asked(&place, &[], &before(&place, "mcp__github__create_issue", json!({"title": "x"})));
    assert_eq!(unknown.json()["hookSpecificOutput"]["permissionDecision"], "ask", "{unknown:?}");
    // Nobody would be asked: haft waits for `haft approvals`, and then it is a no.
    let mut quiet = before(&place, "Edit", input);
    quiet["permission_mode"] = json!("dontAsk");
    let said = asked(&place, &["--wait", "100ms"], &quiet);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("haft approvals approve"), "{said:?}");
}

#[test]
fn a_yes_from_elsewhere_allows_it_within_the_wait() {
    let place = Place::new();
    let mut said = before(&place, "Write", json!({"file_path": place.work().join("new"), "content": "x"}));
    said["permission_mode"] = json!("dontAsk");
    let first = asked(&place, &["--wait", "1ms"], &said);
    assert_eq!(first.code, 2, "{first:?}");
    let id = first.stderr.split("apr_").nth(1).unwrap();
    let id: String = id.chars().take_while(|c| c.is_ascii_hexdigit()).collect();
    assert_eq!(place.haft(&["approvals", "approve", &format!("apr_{id}")]).code, 0);
    let second = asked(&place, &["--wait", "1ms"], &said);
    assert_eq!(second.code, 0, "{second:?}");
    assert!(!place.work().join("new").exists(), "haft itself wrote nothing");
}

#[test]
fn unknown_tools_are_denied_where_the_mode_denies() {
    let place = Place::new();
    place.own_config("[tools.approval]\nmode = 'deny'\n");
    let said = asked(&place, &[], &before(&place, "NewestTool", json!({})));
    assert_eq!(said.code, 2, "{said:?}");
    place.own_config("[tools.approval]\nmode = 'auto'\n[[policy.rules]]\nname = 'no new tools'\neffect = 'deny'\ntool = 'newest_tool'\n");
    let said = asked(&place, &[], &before(&place, "NewestTool", json!({})));
    assert_eq!(said.code, 2, "a rule can name it: {said:?}");
    assert_eq!(asked(&place, &[], &before(&place, "OtherTool", json!({}))).code, 0);
}

#[test]
fn whatever_goes_wrong_blocks() {
    let place = Place::new();
    let good = before(&place, "Read", json!({"file_path": "x"})).to_string();
    for said in [&b""[..], b"nonsense", b"{}", b"[]", b"\xff\xfe", b"{\"hook_event_name\":\"PreToolUse\"}"] {
        assert_eq!(hook(&place, &[], said).code, 2, "{said:?}");
    }
    assert_eq!(hook(&place, &["--no-such-flag"], good.as_bytes()).code, 2);
    place.own_config("this is = not toml at all [");
    assert_eq!(hook(&place, &[], good.as_bytes()).code, 2, "a configuration that cannot be read");
    let place = Place::new();
    let unusable = place.work().join("state");
    std::fs::write(&unusable, "a file where the state should be").unwrap();
    let mut command = place.program(&["hook", "claude-code"]);
    command
        .env("HAFT_STATE_DIR", &unusable)
        .env("AI_AGENT", "claude-code_2-1-327_harness")
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(good.as_bytes());
    assert_eq!(
        child.wait_with_output().unwrap().status.code(),
        Some(2),
        "what cannot be recorded does not run"
    );
}

#[test]
fn versions_that_were_not_tried_are_refused() {
    let place = Place::new();
    place.write("notes", "x");
    let said = before(&place, "Read", json!({"file_path": "notes"})).to_string();
    for agent in ["claude-code_9-9-9_harness", "", "nonsense"] {
        let refused = hook_of(&place, agent, &[], said.as_bytes());
        assert_eq!(refused.code, 2, "{agent}: {refused:?}");
        assert!(refused.stderr.contains("not tried") && refused.stderr.contains("--untried"), "{refused:?}");
        assert_eq!(hook_of(&place, agent, &["--untried"], said.as_bytes()).code, 0, "{agent}");
    }
    let other = place.haft_with(&["hook", "gemini"], said.replace("PreToolUse", "BeforeTool"));
    assert_eq!(other.code, 2, "{other:?}");
    assert_eq!(place.haft_with(&["hook", "zed"], said).code, 2);
}

/// A policy under which every command may run without a question.
const COMMANDS_ARE_ALLOWED: &str =
    "[tools.approval]\ndenylist = []\nmode = 'auto'\n[tools.commands]\nask = 'never'\n";

/// The rewritten command; `None`, with a word about it, where this machine has no jail that a decision needs.
fn rewritten(place: &Place, test: &str, line: &str) -> Option<String> {
    place.own_config(COMMANDS_ARE_ALLOWED);
    let said =
        asked(place, &["--exec"], &before(place, "Bash", json!({"command": line, "description": "d"})));
    if said.code == 2 && (said.stderr.contains("isolation") || said.stderr.contains("jail")) {
        haft_testkit::not_run(test, &said.stderr);
        return None;
    }
    let input = said.json()["hookSpecificOutput"]["updatedInput"].clone();
    assert_eq!(input["description"], "d", "what haft does not change stays: {said:?}");
    Some(input["command"].as_str().unwrap().to_owned())
}

#[test]
fn a_command_that_ran_past_its_ticket_is_an_alarm_that_blocks_the_session() {
    let place = Place::new();
    let test = "a_command_that_ran_past_its_ticket_is_an_alarm_that_blocks_the_session";
    let Some(command) = rewritten(&place, test, "echo 'it is' > x") else { return };
    assert!(
        command.contains(" exec --ticket ") && command.ends_with(r"-- bash -c 'echo '\''it is'\'' > x'"),
        "{command}"
    );

    // The host ran the old command: nobody took the ticket.
    let ran = after(&place, "Bash", json!({"command": "echo 'it is' > x"}), json!({"stdout": ""}));
    let said = asked(&place, &["--exec"], &ran);
    assert_eq!(said.json()["continue"], json!(false), "{said:?}");
    let read = before(&place, "Read", json!({"file_path": "x"}));
    let blocked = asked(&place, &["--exec"], &read);
    assert_eq!(blocked.code, 2, "{blocked:?}");
    assert!(blocked.stderr.contains("blocked this session"), "{blocked:?}");
    assert!(place.haft(&["hosts"]).stderr.contains("session s1 is blocked"));
    let mut other = read;
    other["session_id"] = json!("s2");
    place.write("x", "");
    assert_eq!(asked(&place, &["--exec"], &other).code, 0, "another session goes on");
    let alarms = records(&place)
        .iter()
        .filter(|record| record["tool"] == "host_result" && record["status"] == "Failed")
        .count();
    assert_eq!(alarms, 1, "the alarm is on record");
}

#[test]
fn a_command_that_haft_never_saw_is_an_alarm() {
    let place = Place::new();
    let ran = after(&place, "Bash", json!({"command": "ls"}), json!({"stdout": ""}));
    assert_eq!(asked(&place, &["--exec"], &ran).json()["continue"], json!(false));
    let place = Place::new();
    let ran = after(&place, "Bash", json!({"command": "ls"}), json!({"stdout": ""}));
    assert_eq!(asked(&place, &[], &ran).code, 0, "without --exec there are no tickets");
}

#[test]
fn what_a_tool_gave_is_recorded_and_a_secret_in_it_is_told() {
    let place = Place::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let ran = after(&place, "Bash", json!({"command": "env"}), json!({"stdout": format!("TOKEN={token}")}));
    let said = asked(&place, &[], &ran);
    assert!(said.stdout.contains("has a secret in it") && !said.stdout.contains(&token), "{said:?}");
    let quiet = after(&place, "Bash", json!({"command": "ls"}), json!({"stdout": "a\nb"}));
    assert_eq!(asked(&place, &[], &quiet).stdout, "");
    let listed = records(&place);
    assert_eq!(listed.iter().filter(|record| record["tool"] == "host_result").count(), 2, "{listed:?}");
}

#[test]
fn nobody_waits_longer_than_the_deadline() {
    let place = Place::new();
    // Standard input that never ends: the host's timeout would let the call through.
    let mut command = place.program(&["hook", "claude-code", "--wait", "1ms"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let begun = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(begun.elapsed() < std::time::Duration::from_secs(30));
    drop(stdin);
}

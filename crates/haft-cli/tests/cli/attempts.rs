//! Attempts through the real program: each is held in as the first one is, and decided about right before it runs.

use crate::support::Place;
use serde_json::{Value, json};

/// Adds a program of the system as a tool; `None` where nothing here can hold it.
fn place_with(name: &str, script: &str, changes: bool) -> Option<Place> {
    let place = Place::new();
    place.own_config("[tools.approval]\nmode = 'auto'\n[scheduling.retry]\nmax_retries = 1\nbase_ms = 1\n");
    let definition = json!({
        "name": "tricky", "description": "Does something", "source": "command", "version": "1.0.0", "idempotent": changes,
        "command": {"program": "sh", "args": ["-c", script], "input": "flags"},
        "constraints": {"allowSideEffects": changes}, "parameters": [],
    });
    place.write("tricky.tool.json", definition.to_string());
    let added = place.haft(&["tools", "add", "tricky.tool.json"]);
    assert_eq!(added.code, 0, "{added:?}");
    let probe = place.haft(&["call", "tricky", "--timeout", "10ms", "--json"]).json();
    if probe["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
        haft_testkit::not_run(name, probe["error"]["message"].as_str().unwrap());
        return None;
    }
    let _ = std::fs::remove_file(place.work().join("leak"));
    Some(place)
}

/// Writes, or sleeps where it cannot.
const WRITES: &str = "(echo leaked > leak) 2>/dev/null && exit 0; sleep 30";

#[test]
fn a_read_only_tool_that_is_tried_again_writes_in_no_attempt() {
    for changes in [false, true] {
        let Some(place) = place_with("attempts::a_read_only_tool", WRITES, changes) else { return };
        let said = place.haft(&["call", "tricky", "--attempt-timeout", "2s", "--retries", "1", "--json"]);
        let result = said.json();
        assert_eq!(place.work().join("leak").exists(), changes, "it can where it may: {said:?}");
        if changes {
            assert_eq!(said.code, 0, "the control: {said:?}");
            continue;
        }
        assert_eq!((said.code, &result["metadata"]["attempts"]), (124, &json!(2)), "{said:?}");
        let records = result["metadata"]["attemptRecords"].as_array().unwrap();
        assert_eq!(records.len(), 2, "{said:?}");
        assert_eq!(records[0]["enforcement"], records[1]["enforcement"]);
        assert_eq!(records[1]["enforcement"], result["metadata"]["enforcement"]);
        // What is kept has each of them, too.
        let id = result["metadata"]["executionId"].as_str().unwrap();
        let kept = place.haft(&["runs", "show", id, "--json"]).stdout;
        assert!(kept.contains("attemptRecords"), "{kept}");
        let shown = place.haft(&["runs", "show", id]).stdout;
        assert!(shown.contains("attempt 1") && shown.contains("TIMEOUT, retried after"), "{shown}");
        let verified = place.haft(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

const RULES: &str = "\
[tools.approval]
mode = 'auto'
denylist = []
allowlist = ['run_command']

[[policy.rules]]
name = 'no private files'
effect = 'deny'
path = 'private/**'
category = 'FileSystem'
";

/// `mv src src2; ln -s private src` in a jail, then the file tools of the same batch.
#[test]
fn a_batch_that_swaps_a_folder_gets_nothing_that_a_rule_denies() {
    for is_control in [true, false] {
        let place = Place::new();
        let rules = if is_control { RULES.replace("'deny'", "'allow'") } else { RULES.to_owned() };
        place.own_config(&rules);
        for folder in ["src", "private"] {
            std::fs::create_dir(place.work().join(folder)).unwrap();
        }
        place.write("src/x", "open");
        place.write("private/x", "kept-back");
        let calls = json!([
            {"name": "run_command", "arguments": {"command": "mv src src2; ln -s private src"}},
            {"name": "read_file", "arguments": {"path": "src/x"}},
            {"name": "write_file", "arguments": {"path": "src/y", "content": "planted"}},
        ]);
        // A command always asks; what comes after it in the batch does not.
        let asked = place.haft_with(&["batch", "-", "--json"], calls.to_string()).json();
        if let Some(id) = asked["results"][0]["error"]["data"]["approvalId"].as_str() {
            let approved = place.haft(&["approvals", "approve", id]);
            assert_eq!(approved.code, 0, "{approved:?}");
        }
        let said = place.haft_with(&["batch", "-", "--json"], calls.to_string());
        let document: Value = said.json();
        let results = document["results"].as_array().unwrap();
        if results[0]["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
            let reason = results[0]["error"]["message"].as_str().unwrap();
            haft_testkit::not_run("attempts::a_batch_that_swaps_a_folder", reason);
            return;
        }
        assert_eq!(results[0]["status"], json!("Success"), "{said:?}");
        assert!(place.work().join("src").is_symlink(), "{said:?}");
        assert_eq!(said.stdout.contains("kept-back"), is_control, "{said:?}");
        assert_eq!(place.work().join("private/y").exists(), is_control, "{said:?}");
        for denied in results[1..].iter().filter(|_| !is_control) {
            assert_eq!(denied["error"]["code"], json!("TOOL_DENIED"), "{denied}");
            assert_eq!(denied["error"]["data"]["rule"], json!("no private files"));
        }
    }
}

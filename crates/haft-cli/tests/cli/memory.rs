//! What outlasts a process: calls, the audit, long outputs, and what a crash left. Through the real program.

use crate::{
    stop::Running,
    support::{Place, Said},
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

/// Lets calls with side effects run without a person.
pub(crate) const FREELY: [&str; 2] = ["--set", "tools.approval.prompt_side_effects=false"];

impl Place {
    fn state(&self) -> PathBuf {
        self.home().join(".local/state/haft")
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let said = self.haft(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        said.json()
    }

    /// The document of a command that ends with another code than 0.
    pub(crate) fn json_at(&self, code: i32, args: &[&str]) -> Value {
        let said = self.haft(args);
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        said.json()
    }

    pub(crate) fn runs(&self, args: &[&str]) -> Vec<Value> {
        let list = self.json(&[&["runs", "list", "--json"], args].concat());
        list["runs"].as_array().expect("a list").clone()
    }
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn a_call_is_there_in_the_next_process() {
    let place = Place::new();
    place.haft(&["call", "validate_content", "content=[1]", "--id", "c1"]);
    place.haft(&["call", "validate_content", "content=[1"]);
    place.haft(&["call", "sing"]);
    let runs = place.runs(&[]);
    let tools: Vec<_> = runs.iter().map(|run| (text(run, "tool"), text(run, "status"))).collect();
    assert_eq!(
        tools,
        [("sing", "Failed"), ("validate_content", "Success"), ("validate_content", "Success")],
        "newest first, and every exit"
    );
    let first = text(&runs[2], "executionId").to_owned();
    let run = place.json(&["runs", "show", &first, "--json"]);
    assert_eq!(run["arguments"], json!({"content": "[1]"}));
    assert_eq!((&run["callId"], &run["result"]["status"]), (&json!("c1"), &json!("Success")));
    let page = place.haft(&["runs", "show", &first]);
    assert!(
        page.stdout.contains("tool       validate_content") && page.stdout.contains("\narguments\n"),
        "{page:?}"
    );

    let watched = place.haft(&["runs", "watch", &first]);
    assert_eq!((watched.code, watched.stdout), (0, page.stdout), "what has ended is shown at once");

    let stats = place.json(&["runs", "stats", "--json"]);
    let numbers: Vec<_> =
        stats["tools"].as_array().unwrap().iter().map(|tool| (text(tool, "tool"), &tool["count"])).collect();
    assert_eq!(numbers, [("sing", &json!(1)), ("validate_content", &json!(2))]);
}

#[test]
fn calls_are_found_by_what_is_known_about_them_and_paged() {
    let place = Place::new();
    for content in ["[1]", "[2]", "[3]"] {
        place.haft(&["call", "validate_content", &format!("content={content}")]);
    }
    place.haft(&["call", "sing"]);
    let count = |args: &[&str]| place.runs(args).len();
    assert_eq!(count(&["--tool", "validate_content"]), 3);
    assert_eq!(count(&["--status", "failed"]), 1);
    assert_eq!(count(&["--code", "tool_not_found"]), 1);
    assert_eq!(count(&["--since", "1h"]), 4);
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    assert_eq!(count(&["--agent", "somebody"]), 0);
    assert_eq!(count(&["--tenant", "another"]), 0);
    assert_eq!(count(&["--text", "SING"]), 1);

    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut args = vec!["runs", "list", "--json", "--limit", "3"];
        args.extend(after.iter().flat_map(|key| ["--after", key]));
        let page = place.json(&args);
        seen.extend(page["runs"].as_array().unwrap().iter().map(|run| text(run, "executionId").to_owned()));
        match page["next"].as_str() {
            Some(key) => after = Some(key.to_owned()),
            None => break,
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 4, "each once");
    let wrong = place.haft(&["runs", "list", "--status", "sucess"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean success?"), "{wrong:?}");
}

#[test]
fn what_is_not_there_says_what_to_do() {
    let place = Place::new();
    let id = "0197f3a2-1c5b-7def-8a90-123456789abc";
    let mut shown = String::new();
    for args in [
        &["runs", "list"][..],
        &["runs", "list", "--running"],
        &["runs", "stats"],
        &["runs", "show", id],
        &["runs", "show", "abc"],
        &["runs", "watch", id],
        &["runs", "cancel", id],
        &["recover"],
        &["recover", "--resume", id],
        &["audit", "query"],
        &["audit", "verify"],
        &["gc"],
    ] {
        shown.push_str(&format!("$ haft {}\n{}\n", args.join(" "), place.haft(args).shown()));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn the_audit_verifies_until_somebody_changes_it() {
    let place = Place::new();
    for _ in 0..3 {
        place.haft(&["call", "get_metrics"]);
    }
    let verified = place.json(&["audit", "verify", "--json"]);
    assert_eq!((&verified["verified"], &verified["last"]), (&json!(true), &json!(3)));
    place.write("head.json", verified.to_string());
    assert_eq!(place.haft(&["audit", "verify", "--head", "head.json"]).code, 0);

    let csv = place.haft(&["audit", "export", "--format", "csv"]);
    assert_eq!(csv.stdout.lines().count(), 4, "{csv:?}");
    let said = place.haft(&["audit", "export", "-o", "audit.jsonl", "--tool", "get_metrics"]);
    assert_eq!(said.stderr, "3 records written to audit.jsonl\n");
    let exported = std::fs::read_to_string(place.work().join("audit.jsonl")).unwrap();
    for line in exported.lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["tool"], "get_metrics");
    }

    place.write("old.json", verified.to_string().replace("\"mac\":\"", "\"mac\":\"00"));
    let told = place.haft(&["audit", "verify", "--head", "old.json"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stdout.contains("record 3: it is not what was told elsewhere"), "{told:?}");
    assert_eq!(place.haft(&["audit", "verify", "--head", "audit.jsonl"]).code, 2, "that is no head");
    place.write("none.json", "");
    assert_eq!(place.haft(&["audit", "verify", "--head", "none.json"]).code, 2);
}

#[test]
fn a_backup_is_a_database_of_its_own() {
    let place = Place::new();
    place.haft(&["call", "get_metrics"]);
    let backup = place.json(&["backup", "copy.db", "--json"]);
    assert!(backup["bytes"].as_u64().unwrap() > 0);
    let again = place.haft(&["backup", "copy.db"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already exists"), "{again:?}");
    // In another state folder it is what is remembered there.
    let other = Place::new();
    std::fs::create_dir_all(other.state()).unwrap();
    std::fs::copy(place.work().join("copy.db"), other.state().join("haft.db")).unwrap();
    std::fs::copy(place.state().join("audit.key"), other.state().join("audit.key")).unwrap();
    assert_eq!(other.runs(&[]).len(), 1);
    assert_eq!(other.json(&["audit", "verify", "--json"])["verified"], true);
}

#[test]
fn old_records_go_to_an_archive_that_verifies() {
    let place = Place::new();
    place.own_config("[store]\nretention = ['get_metrics 1ms']\n");
    for _ in 0..3 {
        place.haft(&["call", "get_metrics"]);
    }
    place.haft(&["call", "validate_content", "content=[1]"]);
    let gone = place.json(&["gc", "--json"]);
    let archive = text(&gone["archives"][0], "path");
    assert_eq!(gone["archives"][0]["records"], 3);
    assert_eq!(place.haft(&["audit", "verify", "--archive", archive]).code, 0);
    assert_eq!(place.haft(&["audit", "verify"]).code, 0);
    assert_eq!(place.runs(&[]).len(), 1);
    place.own_config("[store]\nretention = ['soon']\n");
    let wrong = place.haft(&["gc"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("`soon` is not like"), "{wrong:?}");
}

#[test]
fn a_long_output_is_read_on_in_another_process() {
    let place = Place::new();
    let cut = place.run_with_tools(&["call", "long", "--json", "--set", "tools.output.max_bytes=256"]).json();
    let handle = text(&cut["metadata"], "outputHandle").to_owned();
    assert!(text(&cut["content"][0], "text").contains(&format!("read_output {handle}")), "{cut}");
    let read = |args: &[&str]| {
        let said = place.haft(&[&["call", "read_output", &format!("handle={handle}")], args].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout
    };
    assert_eq!(
        read(&["pattern=^line 4\\d$", "max_lines=2"]),
        "40: line 40\n41: line 41\n[there are more; go on with from_line 42]\n"
    );
    assert_eq!(read(&["from_line=50"]), "50: line 50\n[no more lines]\n");
    assert_eq!(read(&["offset=7", "length=7"]), "line 2\n[bytes 7 to 14 of 391; go on with offset 14]\n");
    let whole = place.json(&["call", "GetArtifact", &format!("handle={handle}"), "--json"]);
    assert_eq!(text(&whole["output"], "text").lines().count(), 50);
    for wrong in [&["from_line=1", "offset=1"][..], &["pattern=("], &["from_line=0"]] {
        let said = place.haft(&[&["call", "read_output", &format!("handle={handle}")], wrong].concat());
        assert_eq!(said.code, 4, "{wrong:?}: {said:?}");
    }
    let said = place.haft(&["call", "read_output", "handle=out_nothing"]);
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("there is no output `out_nothing`"), "{said:?}");
}

/// A call with side effects, and its process killed in the middle of it.
pub(crate) fn crash(place: &Place, args: &[&str]) {
    let mut running = Running::start(place, &[args, &FREELY, &["--events"]].concat());
    running.wait_for("half way");
    running.kill();
}

#[test]
fn a_crash_leaves_a_decision_and_nothing_is_run_again() {
    let place = Place::new();
    place.write(
        "calls.json",
        r#"[{"id":"c1","name":"get_metrics"},{"id":"c2","name":"slow_touch"},{"id":"c3","name":"touch"}]"#,
    );
    crash(&place, &["batch", "calls.json"]);
    let other = place.haft(&["call", "get_metrics"]);
    assert_eq!(other.code, 0);
    assert_eq!(
        other.stderr,
        "warning: recovery needed: 1 batch or call was cut off by a crash; decide with `haft recover`\n"
    );
    let shown = place.haft(&["recover"]);
    assert_eq!(shown.code, 6, "{shown:?}");
    for line in [
        "✓ get_metrics (c1)  finished",
        "✗ slow_touch (c2)  outcome unknown, not re-run",
        "• touch (c3)  never started",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {shown:?}");
    }
    let listed = place.haft(&["recover", "--json"]);
    assert_eq!(listed.code, 6);
    let unfinished = &listed.json()["unfinished"][0];
    let states: Vec<_> =
        unfinished["calls"].as_array().unwrap().iter().map(|call| text(call, "state").to_owned()).collect();
    assert_eq!(states, ["finished", "outcomeUnknown", "neverStarted"]);

    let id = text(unfinished, "id").to_owned();
    let decided = place.haft(&["recover", "--resume", &id, "--json"]);
    assert_eq!(decided.code, 0, "{decided:?}");
    let texts: Vec<_> = decided.json()["decided"][0]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| text(call, "text").to_owned())
        .collect();
    assert_eq!(texts[0], "No calls have ended yet");
    assert_eq!(texts[1..], ["Tool result missing after crash", "Tool result missing after crash"]);
    assert_eq!(place.haft(&["recover"]).code, 0, "decided once");
    assert_eq!(place.haft(&["recover", "--discard", &id]).code, 1);

    // The evidence stays: each call has one end.
    let runs = place.runs(&["--batch", &id]);
    let mut codes: Vec<_> = runs.iter().map(|run| (text(run, "callId"), run["code"].as_str())).collect();
    codes.sort();
    assert_eq!(codes, [("c1", None), ("c2", Some("OUTCOME_UNKNOWN")), ("c3", Some("NOT_STARTED"))]);
    let batch = place.haft(&["runs", "show", &id]);
    assert_eq!(batch.stdout.lines().count(), 4, "{batch:?}");
    assert_eq!(place.haft(&["audit", "verify"]).code, 0);
}

#[test]
fn what_a_call_had_printed_is_kept_when_its_process_is_killed() {
    let place = Place::new();
    let mut running = Running::start(&place, &[&["call", "prints", "--events"][..], &FREELY].concat());
    running.wait_for("half way");
    // It is written with the next group.
    std::thread::sleep(Duration::from_secs(1));
    running.kill();
    let runs = place.runs(&["--tool", "prints"]);
    assert_eq!(text(&runs[0], "code"), "OUTCOME_UNKNOWN");
    let handle = text(&runs[0]["metadata"], "outputHandle").to_owned();
    let shown = place.haft(&["runs", "show", text(&runs[0], "executionId")]);
    assert!(shown.stdout.contains(&handle), "{shown:?}");
    assert!(
        shown.stdout.contains("isolation  not known") && !shown.stdout.contains("not started"),
        "{shown:?}"
    );
    let read = place.haft(&["call", "read_output", &format!("handle={handle}")]);
    assert_eq!(read.stdout, "wrote the first half\n[bytes 0 to 21 of 21: the end]\n", "{read:?}");
}

#[test]
fn discarding_lets_all_results_go() {
    let place = Place::new();
    crash(&place, &["call", "slow_touch"]);
    crash(&place, &["call", "slow_touch"]);
    let decided = place.haft(&["recover", "--discard", "all"]);
    assert_eq!(decided.code, 0, "{decided:?}");
    let said = "slow_touch: Tool results discarded after crash; look whether it had its effect";
    assert_eq!(decided.stdout.matches(said).count(), 2, "{decided:?}");
    assert_eq!(place.haft(&["recover"]).stdout, "nothing is unfinished\n");
}

/// What runs, as soon as something does.
fn first_running(place: &Place) -> Value {
    let begun = Instant::now();
    loop {
        let list = place.json(&["runs", "list", "--running", "--json"]);
        if let Some(found) = list["running"].as_array().unwrap().first() {
            return found.clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing runs");
    }
}

#[test]
fn a_call_of_another_process_is_seen_watched_and_stopped() {
    let place = Place::new();
    let mut running = Running::start(&place, &["call", "slow", "--json", "--events"]);
    running.wait_for("half way");
    let found = first_running(&place);
    assert_eq!(found["tools"], json!(["slow"]));
    let id = text(&found, "id").to_owned();
    let early = place.haft(&["runs", "show", &id[..13]]);
    assert_eq!(early.code, 1);
    assert!(early.stderr.contains("is still running"), "{early:?}");
    let patient = place.haft(&["runs", "watch", &id, "--timeout", "300ms"]);
    assert!(patient.stderr.contains("is still running"), "{patient:?}");

    let watcher = place.program(&["runs", "watch", &id, "--json"]).spawn().unwrap();
    assert_eq!(place.haft(&["runs", "cancel", &id[..13]]).code, 0, "by a prefix of its id");
    let said = running.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert!(said.stderr.contains("cancelled by `haft runs cancel`"), "{said:?}");
    let watched = Said::of(watcher.wait_with_output().unwrap());
    assert_eq!((watched.code, &watched.json()["status"]), (130, &json!("Cancelled")), "{watched:?}");
    assert_eq!(place.haft(&["runs", "list", "--running"]).stdout, "no call runs now\n");
    assert_eq!(place.haft(&["runs", "cancel", &id]).code, 1, "it is over");
}

#[test]
fn a_watcher_hears_that_a_process_was_killed() {
    let place = Place::new();
    let mut running = Running::start(&place, &[&["call", "slow_touch", "--events"][..], &FREELY].concat());
    running.wait_for("half way");
    let id = text(&first_running(&place), "id").to_owned();
    let watcher = place.program(&["runs", "watch", &id, "--json"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    running.kill();
    let watched = Said::of(watcher.wait_with_output().unwrap());
    assert_eq!((watched.code, &watched.json()["code"]), (6, &json!("OUTCOME_UNKNOWN")), "{watched:?}");
}

#[test]
fn a_command_that_remembers_nothing_opens_nothing() {
    let place = Place::new();
    for args in
        [&["tools", "list"][..], &["call", "get_metrics", "--dry-run"], &["init"], &["completions", "bash"]]
    {
        assert_eq!(place.haft(args).code, 0, "{args:?}");
    }
    assert!(!place.state().join("haft.db").exists());
    place.haft(&["call", "get_metrics"]);
    assert!(place.state().join("haft.db").exists());
}

#[test]
fn a_database_that_cannot_be_used_stops_calls_with_a_way_out() {
    let place = Place::new();
    std::fs::create_dir_all(place.state()).unwrap();
    std::fs::write(place.state().join("haft.db"), "this is no database, and long enough to be seen as none")
        .unwrap();
    let said = place.haft(&["call", "get_metrics"]);
    assert_ne!(said.code, 0, "a call that nothing remembers did not succeed: {said:?}");
    let said = place.haft(&["runs", "list"]);
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("haft cannot reach its database"), "{said:?}");
    place.own_config("[store]\nbackend = 'postgres'\n");
    let said = place.haft(&["runs", "list"]);
    assert!(said.stderr.contains("store.url") && said.stderr.contains("env:"), "{said:?}");
}

#[test]
fn arguments_are_in_the_audit_unless_that_is_switched_off() {
    let place = Place::new();
    let find = |place: &Place| place.runs(&["--text", "needle-in-the-arguments"]).len();
    place.haft(&["call", "validate_content", "content=needle-in-the-arguments"]);
    assert_eq!(find(&place), 1);
    place.own_config("[store]\naudit_input = false\n");
    place.haft(&["call", "validate_content", "content=needle-in-the-arguments"]);
    assert_eq!(find(&place), 1, "only the hash of the second one's is");
}

#[test]
fn the_log_is_json_lines_and_holds_no_arguments() {
    let place = Place::new();
    let said = place.haft(&["--log", "call", "validate_content", "content=needle-in-the-arguments"]);
    assert_eq!(said.code, 0);
    let lines: Vec<Value> = said.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["fields"]["message"] == "Tool execution finished."), "{said:?}");
    assert!(lines.iter().any(|line| line["span"]["gen_ai.tool.name"] == "validate_content"), "{said:?}");
    assert!(!said.stderr.contains("needle"), "{said:?}");
    assert_eq!(place.haft(&["call", "get_metrics"]).stderr, "", "and nothing without it");
}

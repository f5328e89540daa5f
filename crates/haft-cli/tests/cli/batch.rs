//! `haft batch`: documents of calls.

use crate::support::Place;
use serde_json::{Value, json};

fn statuses(document: &Value) -> Vec<&str> {
    document["results"].as_array().unwrap().iter().map(|result| result["status"].as_str().unwrap()).collect()
}

const TWO: &str =
    r#"[{"id":"a","name":"get_metrics"},{"id":"b","name":"validate_content","arguments":{"content":"[1]"}}]"#;

#[test]
fn array_lines_and_standard_input_are_the_same() {
    let place = Place::new();
    place.write("calls.json", TWO);
    place.write(
        "calls.jsonl",
        TWO.trim_matches(['[', ']']).replace("},{", "}\n{").replace("\"[1\"", "\"[1]\""),
    );
    let array = place.haft(&["batch", "calls.json", "--json"]);
    let lines = place.haft(&["batch", "calls.jsonl", "--json"]);
    let stdin = place.haft_with(&["batch", "-", "--json"], TWO);
    for said in [&array, &lines, &stdin] {
        assert_eq!(said.code, 0, "{said:?}");
        let document = said.json();
        assert_eq!(statuses(&document), ["Success", "Success"]);
        assert_eq!(document["results"][1]["callId"], "b");
        assert_eq!(document["summary"]["succeeded"], 2);
        assert_eq!(document.as_object().unwrap().len(), 2, "results and summary, nothing else");
    }
}

#[test]
fn the_exit_code_is_that_of_the_first_call_that_did_not_succeed() {
    let place = Place::new();
    let batch = |names: &[&str]| {
        let calls: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        place.haft_with(&["batch", "-"], json!(calls).to_string()).code
    };
    assert_eq!(batch(&["get_metrics", "get_metrics"]), 0);
    assert_eq!(batch(&["get_metrics", "nothing", "validate_content"]), 1);
    assert_eq!(batch(&["get_metrics", "validate_content", "nothing"]), 4);
}

#[test]
fn a_call_with_bad_arguments_spoils_itself_alone() {
    let place = Place::new();
    let calls = r#"[
        {"id": "1", "name": "get_metrics", "arguments": 5},
        {"id": "2", "name": "get_metrics", "arguments": {"tool": [7]}},
        {"id": "3", "name": "get_metrics", "arguments": {"tool": "a", "tool": "b"}},
        {"id": "4", "name": "get_metrics", "arguments": "{}"},
        {"id": "5", "name": "get_metrics\u0000"},
        {"id": "6", "name": "get_metrics", "arguments": null},
        {"id": "7", "name": "get_metrics"}
    ]"#;
    let said = place.haft_with(&["batch", "-", "--json"], calls);
    assert_eq!(said.code, 4, "{said:?}");
    assert_eq!(
        statuses(&said.json()),
        [
            "ValidationError",
            "ValidationError",
            "ValidationError",
            "ValidationError",
            "Failed",
            "Success",
            "Success"
        ]
    );
}

#[test]
fn equal_ids_are_refused_after_the_first() {
    let place = Place::new();
    let said = place.haft_with(
        &["batch", "-", "--json"],
        r#"[{"id":"x","name":"get_metrics"},{"id":"x","name":"get_metrics"},{"name":"get_metrics"},{"name":"get_metrics"}]"#,
    );
    let document = said.json();
    assert_eq!(statuses(&document), ["Success", "ValidationError", "Success", "Success"]);
    assert_eq!(document["results"][1]["error"]["code"], "DUPLICATE_CALL_ID");
    assert_eq!(said.code, 4);
}

#[test]
fn an_empty_array_is_nothing_to_do() {
    let place = Place::new();
    let said = place.haft_with(&["batch", "-", "--json"], "[]");
    assert_eq!((said.code, said.json()["results"].clone()), (0, json!([])));
    let said = place.haft_with(&["batch", "-"], "[]");
    assert_eq!((said.code, said.stdout.as_str()), (0, "no calls, nothing to do\n"));
}

#[test]
fn what_is_no_batch_is_wrong_usage_with_a_place() {
    let place = Place::new();
    for (text, error) in [
        (&b""[..], "error: standard input:1:1: there are no calls in it\n"),
        (b"[{\"name\":\"a\"},]", "error: standard input:1:15: trailing comma\n"),
        (b"[{\"name\":\"a\"}\n{\"name\":\"b\"}]", "error: standard input:2:1: expected `,` or `]`\n"),
        (b"{\"calls\": []}", "error: standard input:1:2: call 1 has an unknown member `calls`\n"),
        (
            b"[{\"name\":\"a\",\"argumets\":{}}]",
            "error: standard input:1:14: call 1 has an unknown member `argumets`\n  help: did you mean `arguments`?\n",
        ),
        (b"[{\"name\":\"a\0\"}]", "error: standard input:1:11: control character"),
        (b"\0\0\0", "error: standard input:1:1: this begins neither an array nor an object\n"),
        (b"[{\"name\":\"\xff\"}]", "error: standard input is not UTF-8 text: line 1 has invalid bytes\n"),
        (b"\"calls\"", "error: standard input:1:1: this begins neither an array nor an object\n"),
        (b"[[]]", "error: standard input:1:2: call 1 is not an object\n"),
    ] {
        let said = place.haft_with(&["batch", "-", "--json"], text);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
        assert!(said.stderr.starts_with(error), "{}", said.stderr);
        assert!(said.stderr.contains("\n  help: "), "{}", said.stderr);
    }
    let said = place.haft(&["batch", "missing.json"]);
    assert_eq!(said.code, 2);
    assert_eq!(
        said.stderr,
        "error: missing.json cannot be read: No such file or directory\n  help: check the path; a relative path starts at the working folder\n"
    );
}

#[test]
fn ten_megabytes_of_arguments_are_refused_by_limit() {
    let place = Place::new();
    let calls = json!([
        {"id": "big", "name": "validate_content", "arguments": {"content": "x".repeat(10 << 20)}},
        {"id": "small", "name": "get_metrics"},
    ]);
    let said = place.haft_with(&["batch", "-", "--json"], calls.to_string());
    let document = said.json();
    assert_eq!(document["results"][0]["error"]["code"], "LIMIT_EXCEEDED");
    assert_eq!(statuses(&document), ["ValidationError", "Success"]);
    assert_eq!(said.code, 4);
    assert!(said.stdout.len() < 10_000, "the arguments do not come back");
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let place = Place::new();
    // Holes take no room on the disk.
    std::fs::File::create(place.work().join("huge.json")).unwrap().set_len(1 << 40).unwrap();
    let said = place.haft(&["batch", "huge.json"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.stderr.starts_with("error: huge.json is larger than 67108864 bytes\n  help: "),
        "{}",
        said.stderr
    );
}

#[test]
fn stop_on_failure_starts_nothing_more() {
    let place = Place::new();
    let calls = r#"[{"name":"get_metrics"},{"name":"nothing"},{"name":"get_metrics"}]"#;
    let said = place.haft_with(&["batch", "-", "--json", "--stop-on-failure"], calls);
    let document = said.json();
    assert_eq!(statuses(&document), ["Success", "Failed", "Cancelled"]);
    assert_eq!(document["results"][2]["error"]["code"], "NOT_STARTED");
    assert_eq!(said.code, 1);
    let said = place.haft_with(&["batch", "-", "--json"], calls);
    assert_eq!(statuses(&said.json()), ["Success", "Failed", "Success"]);
}

#[test]
fn a_dry_run_runs_nothing() {
    let place = Place::new();
    let calls = r#"[{"id":"a","name":"get_metrics"},{"id":"b","name":"validate_content"}]"#;
    let said = place.haft_with(&["batch", "-", "--json", "--dry-run"], calls);
    let document = said.json();
    let decisions: Vec<_> =
        document["plans"].as_array().unwrap().iter().map(|plan| plan["decision"].as_str().unwrap()).collect();
    assert_eq!((decisions, said.code), (vec!["ready", "refused"], 4));
    let said = place.haft_with(&["batch", "-", "--dry-run"], calls);
    assert!(said.stdout.ends_with("1 of 2 would run; nothing was run\n"), "{}", said.stdout);
}

#[test]
fn events_of_a_batch_name_each_call() {
    let place = Place::new();
    let said = place.haft_with(&["batch", "-", "--json", "--events"], TWO);
    let events: Vec<Value> = said.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let ran = ["InProgress", "Completed", "InProgress", "Completed"];
    assert_eq!(kinds, [&["BatchStarted", "Started", "Started"], &ran[..], &["BatchCompleted"]].concat());
    assert_eq!(events[5]["batchIndex"], 1);
}

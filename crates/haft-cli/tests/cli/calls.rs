//! `haft call`: exit codes, JSON, arguments.

use crate::support::Place;
use serde_json::json;

#[test]
fn every_end_has_its_exit_code() {
    let place = Place::new();
    let deny = "tools.approval.denylist=get_metrics";
    let cases: &[(&[&str], i32, &str)] = &[
        (&["call", "get_metrics"], 0, ""),
        (&["call", "GetMetrics"], 0, ""),
        (&["call", "nothing_like_it"], 1, "error: Unknown tool: nothing_like_it\n"),
        (
            &["call", "inspect_tool", "name=zzz"],
            1,
            "error: inspect_tool failed: There is no tool named `zzz`.",
        ),
        (&["call", "get_metrics", "--isolation", "strict"], 1, "error: `get_metrics` needs Strict isolation"),
        (&["--set", deny, "call", "get_metrics"], 3, "error: `get_metrics` is on the denylist"),
        (&["--set", deny, "call", "GETMETRICS"], 3, "error: `get_metrics` is on the denylist"),
        (&["--set", "tools.mode=disabled", "call", "get_metrics"], 3, "error: Tool execution disabled\n"),
        (
            &["--set", "tools.approval.enabled=false", "call", "get_metrics"],
            3,
            "error: Tool execution disabled by policy",
        ),
        (
            &["--set", "tools.approval.mode=deny", "call", "get_metrics"],
            3,
            "error: `get_metrics` is not on the allowlist",
        ),
        (&["call", "validate_content"], 4, "error: Bad args: "),
        (&["call", "validate_content", "--args", "{"], 4, "error: Invalid tool arguments JSON: "),
        (&["call", "get_metrics", "--args", "[1]"], 4, "error: Invalid tool arguments JSON: "),
        (
            &["--set", "tools.max_tool_args_bytes=10", "call", "validate_content", "content=long enough"],
            4,
            "error: Tool arguments too large",
        ),
        (&["call", "get_metrics", "--timeout", "2h"], 4, "error: A timeout of PT2H is above"),
        (&["call", "validate_content", "content=1", "schema={\"type\": 5}"], 4, "error: invalid schema"),
        (&["--set", "tools.mode=parse_only", "call", "get_metrics"], 130, "error: Cancelled"),
        (&["call", "get_metrics", "--dry-run"], 0, ""),
        (&["call", "nothing_like_it", "--dry-run"], 1, ""),
        (&["--set", deny, "call", "get_metrics", "--dry-run"], 3, ""),
        (&[], 2, "Run the tools"),
        (&["call"], 2, "error: the following required arguments were not provided"),
        (
            &["call", "get_metrics", "--jsn"],
            2,
            "error: unexpected argument '--jsn' found\n\n  help: a similar argument exists: '--json'",
        ),
        (
            &["tols"],
            2,
            "error: unrecognized subcommand 'tols'\n\n  help: a similar subcommand exists: 'tools'",
        ),
        (&["call", "get_metrics", "tool"], 2, "error: `tool` is not KEY=VALUE\n  help: "),
        (
            &["call", "get_metrics", "{\"a\":1}"],
            2,
            "error: `{\"a\":1}` is not KEY=VALUE\n  help: put all arguments",
        ),
        (&["call", "get_metrics", "tool=a", "tool=b"], 2, "error: `tool` is given twice\n  help: "),
        (
            &["call", "get_metrics", "tool=a", "--args", "{}"],
            2,
            "error: the argument '[KEY=VALUE]...' cannot be used with",
        ),
        (&["call", "get_metrics", "--timeout", "5"], 2, "error: invalid value '5' for '--timeout <TIME>'"),
        (
            &["call", "validate_content", "content=@missing"],
            2,
            "error: missing cannot be read: No such file or directory\n  help: ",
        ),
        (
            &["call", "validate_content", "content=@."],
            2,
            "error: . cannot be read: is a directory\n  help: name a file",
        ),
        (
            &["call", "validate_content", "content=@-", "schema=@-"],
            2,
            "error: two arguments read standard input, which can be read only once",
        ),
        (
            &["--config", "missing.toml", "call", "get_metrics"],
            2,
            "error: there is no file missing.toml\n  help: ",
        ),
        (&["tools", "show", "zzz"], 1, "error: there is no tool named `zzz`\n  help: "),
    ];
    for (args, code, begin) in cases {
        let said = place.haft(args);
        assert_eq!(said.code, *code, "{args:?}: {said:?}");
        assert!(said.stderr.starts_with(begin), "{args:?}: {}", said.stderr);
        assert_eq!(said.stderr.is_empty(), begin.is_empty(), "{args:?}: {}", said.stderr);
    }
}

#[test]
fn json_is_one_result_and_nothing_else_whatever_happens() {
    let place = Place::new();
    // The folder's file gives a warning: that goes to standard error.
    place.write("haft.toml", "[tools.approval]\nmode = 'auto'\n");
    for (args, status, code) in [
        (&["call", "get_metrics", "--json"][..], "Success", 0),
        (&["call", "validate_content", "content={", "--json"], "Success", 0),
        (&["call", "none", "--json"], "Failed", 1),
        (&["call", "validate_content", "--json"], "ValidationError", 4),
        (&["--set", "tools.mode=disabled", "call", "get_metrics", "--json"], "PermissionDenied", 3),
        (&["--set", "tools.mode=parse_only", "call", "get_metrics", "--json"], "Cancelled", 130),
        (&["-v", "call", "get_metrics", "--json", "--events"], "Success", 0),
    ] {
        let said = place.haft(args);
        assert_eq!(
            (said.json()["status"].as_str().unwrap(), said.code),
            (status, code),
            "{args:?}: {said:?}"
        );
        assert_eq!(said.stdout.lines().count(), 1, "{args:?}");
        assert!(said.stderr.contains("haft.toml is not trusted"), "{args:?}: {}", said.stderr);
    }
}

#[test]
fn arguments_come_in_three_ways() {
    let place = Place::new();
    place.write("data.toml", "a = \"1\"\n");
    place.write("schema.json", r#"{"properties": {"a": {"type": "integer"}}}"#);
    let pairs = [
        "call",
        "validate_content",
        "content=@data.toml",
        "format=toml",
        "schema=@schema.json",
        "max_problems=1",
    ];
    let said = place.haft(&pairs);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.stdout.starts_with("invalid TOML: 1 problem\nline 1, column 5: /a: expected an integer"),
        "{said:?}"
    );
    let args = json!({
        "content": "a = \"1\"\n", "format": "toml", "max_problems": 1,
        "schema": {"properties": {"a": {"type": "integer"}}}
    });
    let as_json = place.haft(&["call", "validate_content", "--args", &args.to_string()]);
    let from_stdin = place.haft_with(&["call", "validate_content", "--args", "-"], args.to_string());
    assert_eq!(as_json.stdout, said.stdout);
    assert_eq!(from_stdin.stdout, said.stdout);
    let content = place.haft_with(&["call", "validate_content", "content=@-"], "[1, 2]");
    assert_eq!(content.stdout, "valid JSON\n", "{content:?}");
}

#[test]
fn id_and_key_come_back() {
    let place = Place::new();
    let said = place.haft(&["call", "get_metrics", "--id", "mine", "--idempotency-key", "k1", "--json"]);
    assert_eq!((said.code, &said.json()["callId"]), (0, &json!("mine")), "{said:?}");
}

#[test]
fn results_carry_their_input_without_secrets() {
    let place = Place::new();
    let key = format!("ghp_{}", "a1B2c3D4e5".repeat(4).chars().take(36).collect::<String>());
    let said =
        place.haft(&["call", "validate_content", &format!("content=token {key}"), "format=text", "--json"]);
    let result = said.json();
    assert!(result["input"]["content"].as_str().unwrap().starts_with("token "), "{said:?}");
    assert!(!said.stdout.contains(&key), "{said:?}");
    let long = "x".repeat(100_000);
    let said = place.haft_with(&["call", "validate_content", "content=@-", "format=text", "--json"], long);
    let input = said.json()["input"].to_string();
    assert!(input.len() <= 8 << 10 && input.contains("truncated"), "{}", input.len());
    let unknown = place.haft(&["call", "nothing_like_it", "a=1", "--json"]).json();
    assert_eq!(unknown["input"], json!({"a": "1"}), "{unknown}");
}

#[test]
fn nfr_err_01_facts_of_errors_are_there_for_programs() {
    let place = Place::new();
    let data = |args: &[&str]| {
        let said = place.haft(args);
        said.json()["error"]["data"].clone()
    };
    assert_eq!(data(&["call", "nothing_like_it", "--json"])["tool"], "nothing_like_it");
    let missing = data(&["call", "read_file", "path=no.txt", "--json"]);
    assert_eq!((&missing["file"], &missing["reason"]), (&json!("no.txt"), &json!("not_found")), "{missing}");
    assert_eq!(missing["tool"], "read_file");
    let outside = data(&["call", "read_file", "path=../no.txt", "--json"]);
    assert_eq!((&outside["file"], &outside["reason"]), (&json!("../no.txt"), &json!("outside")), "{outside}");
    place.own_config("[tools.approval]\nmode = 'auto'\nprompt_side_effects = false\n");
    place.write("a.txt", "one\n");
    let stale = data(&["call", "edit_file", "path=a.txt", "old_text=one", "new_text=two", "--json"]);
    assert!(stale["file"] == "a.txt" && stale["reason"].is_string(), "{stale}");
    let talk = ["--conversation", "c", "--json"];
    let call = |args: &[&str]| data(&[&["call"][..], args, &talk[..]].concat());
    assert_eq!(call(&["read_file", "path=a.txt"]), json!(null));
    let patch = call(&["edit_file", "path=a.txt", "old_text=none", "new_text=two"]);
    assert_eq!(patch["file"], "a.txt", "{patch}");
}

#[test]
fn the_block_for_a_model_is_printed_where_asked_for() {
    let place = Place::new();
    place.write("a.txt", "x".repeat(5000));
    let said = place.haft(&["call", "read_file", "path=a.txt", "--for-model"]);
    assert!(said.stdout.starts_with("Tool: read_file\nStatus: Success\nDuration: "), "{said:?}");
    assert!(said.stdout.contains(&"x".repeat(4000)) && !said.stdout.contains(&"x".repeat(4001)), "{said:?}");
    let short = place.haft(&["call", "read_file", "path=a.txt", "--for-model=10"]);
    assert!(short.stdout.contains("x") && !short.stdout.contains(&"x".repeat(11)), "{short:?}");
    let failed = place.haft(&["call", "read_file", "path=no.txt", "--for-model"]);
    assert!(failed.code != 0 && failed.stdout.contains("Error: "), "{failed:?}");
}

#[test]
fn text_that_is_not_utf8_has_a_line() {
    let place = Place::new();
    place.write("bad.json", b"[\n\"\xff\"]");
    let said = place.haft(&["call", "validate_content", "content=@bad.json"]);
    assert_eq!(said.code, 2);
    assert_eq!(
        said.stderr,
        "error: bad.json is not UTF-8 text: line 2 has invalid bytes\n  help: save it as UTF-8\n"
    );
}

#[test]
fn what_a_model_wrote_cannot_drive_the_terminal() {
    let place = Place::new();
    let said = place.haft(&["call", "evil\u{1b}[2Jname\u{202e}", "--id", "\u{1b}]0;title\u{7}"]);
    assert!(!said.stderr.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{:?}", said.stderr);
    let said = place.haft(&["call", "validate_content", "content=\u{1b}[31m\u{9b}1m", "--json"]);
    assert!(!said.stdout.contains(['\u{1b}', '\u{9b}']), "{:?}", said.stdout);
    assert_eq!(said.code, 0);
}

#[test]
fn events_are_json_lines_beside_the_result() {
    let place = Place::new();
    let said = place.haft(&["call", "get_metrics", "--events", "--json"]);
    let events: Vec<serde_json::Value> =
        said.stderr.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["tool:executing", "tool:progress", "tool:executed"]);
    assert_eq!(events[0]["executionId"], said.json()["metadata"]["executionId"]);
}

#[test]
fn verbose_names_the_rule() {
    let place = Place::new();
    let said = place.haft(&["call", "get_metrics", "-v"]);
    assert!(said.stderr.contains(", rule mode, in_process, "), "{}", said.stderr);
    assert_eq!(place.haft(&["call", "get_metrics"]).stderr, "", "and only then");
}

#[test]
fn it_works_without_a_home_and_in_an_empty_environment() {
    let place = Place::new();
    let said =
        crate::support::Said::of(place.program(&["call", "get_metrics"]).env_clear().output().unwrap());
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    let said = crate::support::Said::of(place.program(&["init", "--user"]).env_clear().output().unwrap());
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("help: set HOME"), "{said:?}");
    let said = crate::support::Said::of(place.program(&["trust", "--list"]).env_clear().output().unwrap());
    assert!(said.code == 1 && said.stderr.contains("help: set HAFT_STATE_DIR or HOME"), "{said:?}");
}

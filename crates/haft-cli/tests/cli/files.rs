//! Files on the command line: roots, conversations, undoing, and what a killed process left.

use crate::support::Place;
use serde_json::Value;
use std::fs;

const AUTO: [&str; 2] = ["--set", "tools.approval.mode=auto"];

#[test]
fn reading_stays_in_the_working_folder() {
    let place = Place::new();
    fs::write(place.work().join("notes.txt"), "hello\n").unwrap();
    fs::write(place.home().join("secret.txt"), "secret\n").unwrap();
    assert_eq!(place.haft(&["call", "read_file", "path=notes.txt"]).stdout, "hello\n");
    for (path, part) in [
        ("../home/secret.txt", "Path outside sandbox (attempted: ../home/secret.txt)"),
        ("/etc/passwd", "Path outside sandbox (attempted: /etc/passwd, resolved: /etc/passwd)"),
        ("nope.txt", "'nope.txt' does not exist"),
    ] {
        let said = place.haft(&["call", "read_file", &format!("path={path}")]);
        assert_ne!(said.code, 0, "{path}");
        assert!(said.stderr.contains(part), "{path}: {}", said.stderr);
    }
    // Its own state is out of reach, too, also where the folder above it is a root.
    let root = format!("tools.files.allowed_roots={}", place.work().parent().unwrap().display());
    let state = place.haft(&["--set", &root, "call", "glob", "pattern=**/*.jsonl", "hidden=true"]);
    assert!(state.stdout.starts_with("No files match"), "{state:?}");
}

/// The level that the source document has for it.
#[test]
fn read_file_at_standard_is_in_a_jail() {
    let place = Place::new();
    fs::write(place.work().join("notes.txt"), "hello\n").unwrap();
    let read = |more: &[&str]| {
        let mut args = vec!["call", "read_file", "path=notes.txt", "--json"];
        args.extend(more);
        place.haft(&args).json()
    };
    let plain = read(&[]);
    assert_eq!(plain["metadata"]["enforcement"]["jail"], "in_process", "{plain}");
    let held = read(&["--isolation", "standard"]);
    if held["error"]["code"] == "SANDBOX_CREATION_FAILED" {
        haft_testkit::not_run(
            "cli::read_file_at_standard_is_in_a_jail",
            &held["error"]["message"].to_string(),
        );
        return;
    }
    assert_eq!(held["output"], plain["output"], "{held}");
    let by = &held["metadata"]["enforcement"];
    assert_eq!(by["level"], "Standard", "{by}");
    assert!(["process", "namespace"].map(Value::from).contains(&by["jail"]), "{by}");
    assert_eq!(
        (&by["details"]["seccomp"], &by["details"]["network"]),
        (&true.into(), &"none".into()),
        "{by}"
    );
}

#[test]
fn a_file_is_read_edited_and_put_back_over_several_processes() {
    let place = Place::new();
    let path = place.work().join("notes.txt");
    fs::write(&path, "one\ntwo\n").unwrap();
    let edit = |conversation: &str| {
        let mut args = AUTO.to_vec();
        args.extend(["call", "edit_file", "path=notes.txt", "old_text=two", "new_text=2", "--json"]);
        args.extend(["--conversation", conversation]);
        place.haft(&args)
    };
    assert_eq!(edit("c1").json()["error"]["code"], "STALE_FILE");
    place.haft(&["call", "read_file", "path=notes.txt", "--conversation", "c1"]);
    assert_eq!(edit("c2").json()["error"]["code"], "STALE_FILE", "another conversation has not read it");
    let edited = edit("c1").json();
    assert_eq!(edited["status"], "Success", "{edited}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n2\n");

    let id = edited["metadata"]["executionId"].as_str().unwrap();
    let undone = place.haft(&["undo", id, "--json"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    let again = undone.json()["metadata"]["executionId"].as_str().unwrap().to_owned();
    assert_eq!(place.haft(&["undo", &again]).stdout, "modified: notes.txt\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n2\n");
    fs::write(&path, "my own\n").unwrap();
    let refused = place.haft(&["undo", id]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is not as the call left it"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), "my own\n");
}

#[test]
fn a_dry_run_shows_the_diff_and_changes_nothing() {
    let place = Place::new();
    let said = place.haft(&["call", "write_file", "path=a.txt", "content=hello", "--dry-run"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.stdout.contains("+hello"), "{}", said.stdout);
    let json =
        place.haft(&["call", "write_file", "path=a.txt", "content=hello", "--dry-run", "--json"]).json();
    assert!(json["change"].as_str().unwrap().contains("+hello"), "{json}");
    assert_eq!(json["decision"], "needs_approval", "as HTTP says it: {json}");
    assert!(!place.work().join("a.txt").exists());
}

#[test]
fn wrong_roots_and_patterns_are_said() {
    let place = Place::new();
    for (setting, part) in [
        ("tools.files.allowed_roots=/not/there", "the root '/not/there' cannot be opened"),
        ("tools.files.denied_patterns=a/{b", "'a/{b' is not a pattern for paths"),
    ] {
        let said = place.haft(&["--set", setting, "tools", "list"]);
        assert_ne!(said.code, 0, "{setting}");
        assert!(said.stderr.contains(part), "{setting}: {}", said.stderr);
    }
}

/// A record as a killed process leaves it: its manifest is written, its file has the new bytes.
fn cut(place: &Place) -> std::path::PathBuf {
    let path = place.work().join("notes.txt");
    fs::write(&path, "old\n").unwrap();
    let state = place.home().join(".local/state/haft/changes/open/0197f3a2-1c5b-7def-8a90-123456789abc.0000");
    fs::create_dir_all(&state).unwrap();
    let sha256 = |text: &str| {
        use sha2::{Digest as _, Sha256};
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let real = path.canonicalize().unwrap();
    let manifest = serde_json::json!({
        "version": 1, "by": "0197f3a2-1c5b-7def-8a90-123456789abc", "tenant": "local", "summary": "Edit notes.txt",
        "at": "2026-01-01T00:00:00Z", "roots": [real.parent().unwrap()],
        "steps": [{
            "step": "turn", "path": real,
            "before": {"is": "file", "sha256": sha256("old\n"), "len": 4, "mode": 0o640, "image": "before-0"},
            "after": {"is": "file", "sha256": sha256("new\n"), "len": 4},
            "staged": ".haft-x-0.tmp",
        }],
    });
    fs::write(state.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(state.join("before-0"), "old\n").unwrap();
    fs::write(&path, "new\n").unwrap();
    path
}

#[test]
fn what_a_killed_process_left_is_taken_back_and_said() {
    // The next process does it, also where nothing else is done with files.
    let commands: [&[&str]; 8] = [
        &["tools", "list"],
        &["recover"],
        &["audit", "verify"],
        &["audit", "query"],
        &["runs", "list"],
        &["approvals", "list"],
        &["grants", "list"],
        &["gc"],
    ];
    for command in commands {
        let place = Place::new();
        let path = cut(&place);
        let said = place.haft(command);
        assert_eq!(said.code, 0, "{command:?}: {said:?}");
        let expected = "a crash cut off an earlier call (Edit notes.txt): haft restored 1 file";
        assert!(said.stderr.contains(expected), "{command:?}: {}", said.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n", "{command:?}");
        assert!(!place.haft(command).stderr.contains("cut off"), "{command:?}: once");
    }
}

#[test]
fn a_missing_root_takes_nothing_from_the_others() {
    let place = Place::new();
    fs::write(place.work().join("notes.txt"), "hello\n").unwrap();
    let read = |roots: &str| place.haft(&["--set", roots, "call", "read_file", "path=notes.txt"]);
    let said = read("tools.files.allowed_roots=.,missing");
    assert_eq!(said.stdout, "hello\n", "{said:?}");
    assert!(said.stderr.contains("missing, which tools.files.allowed_roots has"), "{said:?}");
    // Where none is left, or one that would only be read: what appears there could be written.
    let none = read("tools.files.allowed_roots=missing");
    let read_only = place.haft(&["--set", "tools.files.read_only_roots=vendor", "tools", "list"]);
    for refused in [none, read_only] {
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains("to folders that are there"), "{refused:?}");
        assert!(!refused.stderr.contains("another name"), "{refused:?}");
    }
}

//! Files that run programs later: changing one is asked about, whatever else is allowed; a program that makes one loses
//! it.

use crate::support::{Place, Said};
use serde_json::{Value, json};

/// Everything is allowed in every way that there is.
const ALLOWED: &str = "\
[tools.approval]
mode = 'auto'
prompt_side_effects = false
denylist = []
allowlist = ['write_file', 'edit_file', 'apply_patch', 'move_file', 'copy_file', 'delete_file', 'undo_changes']

[tools.delete]
allow_delete_dirs = true

[[policy.rules]]
name = 'all'
effect = 'allow'
confirms = true
path = '**'
category = 'FileSystem'

[tools.files]
include_default_denies = false
";

fn place(config: &str) -> Place {
    let place = Place::new();
    place.own_config(config);
    for (name, text) in [
        ("sub/.vscode/tasks.json", "{}"),
        ("plain/file", "x"),
        ("bare/HEAD", "x"),
        ("bare/refs/x", ""),
        ("bare/objects/x", ""),
        ("half/HEAD", "x"),
        ("half/refs/x", ""),
    ] {
        std::fs::create_dir_all(place.work().join(name).parent().unwrap()).unwrap();
        place.write(name, text);
    }
    place
}

fn call(place: &Place, tool: &str, arguments: &Value) -> Said {
    place.haft_with(&["call", tool, "--json", "--args", "-"], arguments.to_string())
}

fn approve(place: &Place, said: &Said) {
    let id =
        said.json()["error"]["data"]["approvalId"].as_str().unwrap_or_else(|| panic!("{said:?}")).to_owned();
    assert_eq!(place.haft(&["approvals", "approve", &id]).code, 0);
}

#[test]
fn changing_what_runs_later_is_asked_about_whatever_is_allowed() {
    let place = place(ALLOWED);
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
    let patch = "*** Begin Patch\n*** Add File: deep/.ENVRC\n+x\n*** End Patch\n";
    // A repository, in one change and part by part: its settings name programs, and git needs no `.git` to read them.
    let repository = "*** Begin Patch\n*** Add File: e/config\n+x\n*** Add File: e/HEAD\n+x\n*** Add File: e/objects/x\n+x\n\
                      *** Add File: e/refs/x\n+x\n*** End Patch\n";
    let asked = [
        write(".envrc"),
        write("new/.vscode/settings.json"),
        write(".git/config"),
        write(".git/hooks/pre-commit"),
        write("haft.toml"),
        write("bare/config"),
        ("apply_patch", json!({"patch": patch})),
        ("apply_patch", json!({"patch": repository})),
        write("new/head"),
        write("half/Objects/x"),
        ("move_file", json!({"source": "plain", "destination": "half/objects"})),
        ("move_file", json!({"source": "plain", "destination": ".claude"})),
        ("move_file", json!({"source": "sub", "destination": "other"})),
        ("delete_file", json!({"path": "sub"})),
        ("copy_file", json!({"source": "plain/file", "destination": ".bashrc"})),
    ];
    for (tool, arguments) in asked {
        let said = call(&place, tool, &arguments);
        assert_eq!(said.code, 5, "{tool} {arguments}: {said:?}");
        let id = said.json()["error"]["data"]["approvalId"].as_str().unwrap().to_owned();
        let shown = place.haft(&["approvals", "show", &id, "--json"]).json();
        let reason = shown["reason"].as_str().or(shown["request"]["reason"].as_str()).unwrap_or_default();
        assert!(reason.contains("protected"), "{tool}: {shown}");
    }
    // Controls: the same in the same place, of files that nothing runs.
    for (tool, arguments) in [
        write("envrc"),
        write(".git/refs/heads/topic"),
        write("plain/objects/x"),
        write("half/refs/y"),
        ("move_file", json!({"source": "plain", "destination": "moved"})),
        ("delete_file", json!({"path": "moved"})),
    ] {
        let said = call(&place, tool, &arguments);
        assert_eq!(said.code, 0, "{tool} {arguments}: {said:?}");
    }
    assert_eq!(
        call(&place, "read_file", &json!({"path": "sub/.vscode/tasks.json"})).code,
        0,
        "reading is allowed"
    );
}

#[test]
fn a_yes_is_enough_and_undoing_is_no_way_round() {
    let place = place(ALLOWED);
    let write = json!({"path": ".envrc", "content": "x"});
    approve(&place, &call(&place, "write_file", &write));
    let said = call(&place, "write_file", &write);
    assert_eq!(said.code, 0, "{said:?}");
    let of = said.json()["metadata"]["executionId"].as_str().unwrap().to_owned();
    let undone = call(&place, "undo_changes", &json!({"execution_id": of}));
    assert_eq!(undone.code, 5, "{undone:?}");
    assert!(place.work().join(".envrc").exists());
    // With a yes of its own it is undone.
    approve(&place, &undone);
    let undone = call(&place, "undo_changes", &json!({"execution_id": of}));
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(!place.work().join(".envrc").exists());
}

#[test]
fn names_that_an_operator_allows_are_like_others() {
    let place = place(&format!("{ALLOWED}unprotected_names = ['.envrc']\nprotected_names = ['deploy.sh']\n"));
    assert_eq!(call(&place, "write_file", &json!({"path": ".envrc", "content": "x"})).code, 0);
    assert_eq!(call(&place, "write_file", &json!({"path": "a/deploy.sh", "content": "x"})).code, 5);
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_command_makes_to_be_run_later_is_taken_away_and_told() {
    let place = place(ALLOWED);
    let command = "echo evil > .envrc; mkdir -p n; echo y > n/plain";
    let run = || place.haft(&["call", "run_command", &format!("command={command}"), "--json"]);
    let said = run();
    if said.json()["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
        haft_testkit::not_run(
            "protected::what_a_command_makes",
            said.json()["error"]["message"].as_str().unwrap(),
        );
        return;
    }
    approve(&place, &said);
    let said = run();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!place.work().join(".envrc").exists() && place.work().join("n/plain").exists());
    let result = said.json();
    let violation = &result["metadata"]["violations"][0];
    let text = violation["description"].as_str().unwrap_or_else(|| panic!("{result}"));
    assert!(
        text.contains("haft moved it to") && violation["resource"].as_str().unwrap().ends_with(".envrc"),
        "{text}"
    );
    // As it says.
    let way_back = text.split('`').nth(1).unwrap();
    assert!(place.command("sh").args(["-c", way_back]).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(place.work().join(".envrc")).unwrap(), "evil\n");
}

/// A file that was moved away shows in what people and models read, not only in the metadata.
#[test]
fn what_a_sandbox_moved_away_is_said() {
    let place = Place::new();
    place.own_config(
        "[tools.approval]\nmode = 'auto'\nprompt_side_effects = false\ndenylist = []\n\
         [[policy.rules]]\nname = 'run'\neffect = 'allow'\ncommand = ['./x.sh']\nconfirms = true\n",
    );
    place.write("x.sh", "#!/bin/sh\necho b > .envrc; echo done\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.work().join("x.sh"), mode).unwrap();
    let said = place.haft(&["call", "run_command", "command=./x.sh"]);
    if said.stderr.contains("jail") && said.code != 0 {
        let reason = format!("no program runs here: {}", said.stderr);
        return haft_testkit::not_run("what_a_sandbox_moved_away_is_said", &reason);
    }
    let mut lines = said.stdout.lines();
    assert_eq!(lines.next(), Some("done"), "{said:?}");
    assert!(lines.any(|line| line.starts_with("haft: ") && line.contains(".envrc")), "{said:?}");
    let result = call(&place, "run_command", &json!({"command": "./x.sh"})).json();
    assert!(result["content"].to_string().contains("haft: "), "{result}");
    let shown = place.haft(&["runs", "show", result["metadata"]["executionId"].as_str().unwrap()]);
    assert!(shown.stdout.contains("sandbox") && shown.stdout.contains(".envrc"), "{shown:?}");
    place.write("x.sh", "#!/bin/sh\necho b > envrc; echo done\n");
    let control = place.haft(&["call", "run_command", "command=./x.sh"]);
    assert_eq!((control.code, control.stdout.trim_end()), (0, "done"), "{control:?}");
}

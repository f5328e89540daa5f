//! `haft approvals` and `haft grants`, and calls that wait for them.

use crate::support::{Place, Said};
use serde_json::{Value, json};
use std::process::Stdio;

const WRITE: [&str; 5] = ["call", "write_file", "path=notes.txt", "content=hello", "--json"];

/// The id of the question that a call left.
fn question(said: &Said) -> String {
    assert_eq!(said.code, 5, "{said:?}");
    said.json()["error"]["data"]["approvalId"].as_str().unwrap().to_owned()
}

fn open(place: &Place) -> Vec<Value> {
    place.haft(&["approvals", "list", "--json"]).json()["approvals"].as_array().unwrap().clone()
}

fn state(place: &Place, id: &str) -> Value {
    place.haft(&["approvals", "show", id, "--json"]).json()["state"].clone()
}

#[test]
fn a_yes_from_another_process_lets_the_same_call_run_once() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let listed = open(&place);
    assert_eq!((listed.len(), &listed[0]["id"], &listed[0]["tool"]), (1, &json!(id), &json!("write_file")));
    assert!(listed[0]["preview"].as_str().unwrap().contains("+hello"), "{listed:?}");
    let shown = place.haft(&["approvals", "show", &id[..10]]);
    for part in ["write_file  medium risk", "+hello", "--remember folder: ", "state", "open"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    // Another call is another question, whatever is agreed to here.
    let other = question(&place.haft(&["call", "write_file", "path=other.txt", "content=hello", "--json"]));
    let said = place.haft(&["approvals", "approve", &id[..10]]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.starts_with(&format!("approved {}  write_file: ", &id[..12])), "{}", said.stdout);
    assert!(!place.work().join("notes.txt").exists(), "an answer runs nothing by itself");
    let ran = place.haft(&WRITE);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.work().join("notes.txt")).unwrap(), "hello");
    assert_eq!((state(&place, &id), state(&place, &other)), (json!("used"), json!("open")));
    for (answer, expected) in [("approve", 1), ("deny", 1)] {
        let said = place.haft(&["approvals", answer, &id]);
        assert_eq!(said.code, expected, "{said:?}");
        assert!(said.stderr.contains("already has an answer: used by"), "{}", said.stderr);
    }
}

/// What is approved has been seen: each call is shown whole before it is answered, also those that `--all` brings
/// along.
#[test]
fn a_yes_shows_what_it_covers() {
    let place = Place::new();
    let name = "p\u{430}y.txt";
    let content = format!("one\n{}\nthe last line", "x".repeat(300));
    let calls = json!([
        {"id": "1", "name": "write_file", "arguments": {"path": name, "content": content}},
        {"id": "2", "name": "write_file", "arguments": {"path": "other.txt", "content": "of the other call"}},
    ]);
    place.write("calls.json", calls.to_string());
    assert_eq!(place.haft(&["batch", "calls.json", "--json"]).code, 5);
    let id = open(&place)[0]["id"].as_str().unwrap().to_owned();
    let shown = place.haft(&["approvals", "show", &id]).stdout;
    let said = place.haft(&["approvals", "approve", &id, "--all"]);
    assert_eq!(said.code, 0, "{said:?}");
    for part in ["what you approve", "the last line", "of the other call", "p⟨U+0430⟩y.txt"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    for text in [shown, said.stderr, said.stdout] {
        assert!(!text.contains("⟨U+27E8⟩"), "spelled twice: {text}");
    }
    // A program that reads JSON gets that alone.
    let id = question(&place.haft(&WRITE));
    let said = place.haft(&["approvals", "approve", &id, "--json"]);
    assert!(said.code == 0 && said.stderr.is_empty(), "{said:?}");
}

#[test]
fn a_no_reaches_the_model_with_its_reason_and_the_next_step() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let said = place.haft(&["approvals", "deny", &id, "--reason", "use docs/", "--json"]);
    assert_eq!(said.json(), json!({"denied": [id]}));
    let said = place.haft(&WRITE);
    assert_eq!(said.code, 3, "{said:?}");
    let message = said.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("Tool call denied by user: use docs/. Do not send the same call again"),
        "{message}"
    );
    assert_ne!(question(&place.haft(&WRITE)), id, "and then it is a new question");
}

/// Terminal A waits, terminal B answers.
#[test]
fn a_call_waits_for_an_answer_from_elsewhere() {
    let place = Place::new();
    for (answer, code) in [("approve", 0), ("deny", 3)] {
        let mut args = WRITE.to_vec();
        let file = format!("path={answer}.txt");
        args[2] = &file;
        args.extend(["--wait", "60s"]);
        let waiting = place.program(&args).stdin(Stdio::null()).spawn().unwrap();
        let id = loop {
            if let Some(question) = open(&place).first() {
                break question["id"].as_str().unwrap().to_owned();
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        };
        assert_eq!(place.haft(&["approvals", answer, &id]).code, 0);
        let said = Said::of(waiting.wait_with_output().unwrap());
        assert_eq!(said.code, code, "{said:?}");
        assert!(
            said.stderr.contains(&format!("waiting for an answer: `haft approvals approve {id}`")),
            "{}",
            said.stderr
        );
        assert_eq!(place.work().join(format!("{answer}.txt")).exists(), code == 0);
    }
    let mut args = WRITE.to_vec();
    args.extend(["--wait", "200ms"]);
    assert_eq!(place.haft(&args).code, 5, "nobody came");
}

/// What is on standard input is never an answer.
#[test]
fn what_is_piped_in_agrees_to_nothing() {
    let place = Place::new();
    let said = place.haft_with(&WRITE, "y\ny\nyes\n\n".repeat(100));
    assert_eq!(said.code, 5, "{said:?}");
    assert!(!place.work().join("notes.txt").exists());
}

#[test]
fn all_of_a_batch_is_answered_with_one_of_it() {
    let place = Place::new();
    let calls: Vec<Value> = ["a", "b", "c"]
        .map(|name| json!({"id": name, "name": "write_file", "arguments": {"path": name, "content": name}}))
        .to_vec();
    place.write("calls.json", Value::from(calls).to_string());
    assert_eq!(place.haft(&["batch", "calls.json", "--json"]).code, 5);
    let alone = question(&place.haft(&WRITE));
    let listed = open(&place);
    assert_eq!(listed.len(), 4);
    let id = listed[0]["id"].as_str().unwrap();
    let said = place.haft(&["approvals", "approve", id, "--all", "--json"]);
    assert_eq!(said.json()["approved"].as_array().unwrap().len(), 3, "{said:?}");
    assert_eq!(state(&place, &alone), json!("open"), "which is not of the batch");
    let said = place.haft(&["batch", "calls.json", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn changed_arguments_are_asked_about_again() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    for (args, problem) in [
        (&["--args", "[1]"][..], "must be a JSON object"),
        (&["--args", "{\"content\":\"hello\",\"path\":\"notes.txt\"}"], "they did not change"),
        (&["--edit"], "there is no editor; set EDITOR"),
    ] {
        let said = place.haft(&[&["approvals", "approve", &id][..], args].concat());
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.stderr.contains(problem), "{}", said.stderr);
    }
    assert_eq!(state(&place, &id), json!("open"), "nothing was answered");
    let changed = r#"{"path": "notes.txt", "content": "changed"}"#;
    assert_eq!(place.haft(&["approvals", "approve", &id, "--args", changed, "--json"]).code, 0);
    let next = question(&place.haft(&WRITE));
    assert_ne!(next, id);
    let shown = place.haft(&["approvals", "show", &next, "--json"]).json();
    assert_eq!((&shown["replaces"], &shown["arguments"]["content"]), (&json!(id), &json!("changed")));
    assert!(shown["preview"].as_str().unwrap().contains("+changed"));
    assert!(!place.work().join("notes.txt").exists());
}

#[test]
fn what_is_remembered_is_not_asked_about_until_it_is_revoked() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let said = place.haft(&["approvals", "approve", &id, "--remember", "host"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("help: use --remember exact, folder"), "{}", said.stderr);
    let said = place.haft(&["approvals", "approve", &id, "--remember", "folder", "--for", "8h", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let write = |name: &str| {
        let path = format!("path={name}");
        place.haft(&["call", "write_file", &path, "content=x", "--json", "-v"])
    };
    let said = write("one.txt");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains(", rule grant:grant_"), "{}", said.stderr);
    // Neither another tool, nor what always wants to be confirmed by itself, nor what is denied.
    assert_eq!(place.haft(&["call", "delete_file", "path=one.txt", "--json"]).code, 5);
    assert_eq!(
        place
            .haft(&[
                "--set",
                "tools.approval.denylist=write_file",
                "call",
                "write_file",
                "path=z",
                "content=z"
            ])
            .code,
        3
    );
    let listed = place.haft(&["grants", "list", "--json"]).json();
    let grant = &listed["grants"][0];
    assert!(
        grant["shown"]
            .as_str()
            .unwrap()
            .starts_with("`write_file`, every call that touches only what is in `/"),
        "{grant}"
    );
    assert!(grant["expiresAt"].is_string() && grant["grantedBy"].is_string(), "{grant}");
    let grant_id = grant["id"].as_str().unwrap();
    assert!(place.haft(&["grants", "list"]).stdout.contains(grant_id));
    assert!(place.haft(&["grants", "show", grant_id]).stdout.contains("granted by"));
    assert!(
        place.haft(&["grants", "list", "--tenant", "other"]).stdout.contains("there are no active grants")
    );
    assert_eq!(place.haft(&["grants", "revoke", grant_id, "--tenant", "other"]).code, 1);
    let said = place.haft(&["grants", "revoke", grant_id]);
    assert!(
        said.code == 0 && said.stdout.starts_with(&format!("revoked {grant_id}: `write_file`")),
        "{said:?}"
    );
    assert_eq!(write("two.txt").code, 5, "it is asked about again");
    assert!(place.haft(&["grants", "list", "--all"]).stdout.contains("(revoked)"));
    assert_eq!(place.haft(&["grants", "revoke", grant_id]).code, 1);
}

#[test]
fn a_grant_that_has_expired_covers_nothing() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let said = place.haft(&["approvals", "approve", &id, "--remember", "folder", "--for", "1ms"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.haft(&WRITE).code, 0, "the yes itself");
    assert_eq!(place.haft(&["call", "write_file", "path=b.txt", "content=x", "--json"]).code, 5);
}

#[test]
fn a_grant_for_a_session_is_for_that_session() {
    let place = Place::new();
    let write = |name: &str, session: &str| {
        let path = format!("path={name}");
        place.haft(&["call", "write_file", &path, "content=x", "--json", "--conversation", session])
    };
    let id = question(&write("a.txt", "s1"));
    assert_eq!(
        place.haft(&["approvals", "approve", &id, "--remember", "folder", "--for", "session"]).code,
        0
    );
    assert_eq!((write("b.txt", "s1").code, write("c.txt", "s2").code), (0, 5));
    let id = question(&place.haft(&WRITE));
    let said = place.haft(&["approvals", "approve", &id, "--remember", "folder", "--for", "session"]);
    assert!(said.code == 2 && said.stderr.contains("belongs to no session"), "{said:?}");
}

#[test]
fn where_answers_do_not_count_none_is_given() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let only = "tools.approval.accept_from=terminal";
    for answer in ["approve", "deny"] {
        let said = place.haft(&["--set", only, "approvals", answer, &id]);
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.stderr.contains("help: add \"command_line\" to accept_from"), "{}", said.stderr);
    }
    // One that was given where it counts does not count where it does not.
    assert_eq!(place.haft(&["approvals", "approve", &id]).code, 0);
    let said = place.haft(&[&["--set", only][..], &WRITE].concat());
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!place.work().join("notes.txt").exists());
}

/// What is remembered is an answer, too: it counts where answers of its kind count.
#[test]
fn a_grant_counts_where_the_answer_that_gave_it_counts() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let remember = ["approvals", "approve", &id, "--remember", "folder", "--for", "always"];
    assert_eq!(place.haft(&remember).code, 0);
    let write = |path: &str, set: &[&str]| {
        let path = format!("path={path}");
        place.haft(&[set, &["call", "write_file", &path, "content=x"]].concat()).code
    };
    let only = ["--set", "tools.approval.accept_from=terminal"];
    // The first call has the yes itself, which does not count either.
    assert_eq!(write("b.txt", &only), 5, "it is asked about");
    assert!(!place.work().join("b.txt").exists());
    assert_eq!(write("b.txt", &[]), 0, "the control");
    let grants = place.haft(&["grants", "list", "--json"]).json();
    assert_eq!(grants["grants"][0]["grantedFrom"], "command_line", "{grants}");
}

/// The advice is about the tool that is asked about: the one that calls it is allowed already.
#[test]
fn advice_names_the_tool_that_is_asked_about() {
    let place = Place::new();
    let inner = r#"arguments:={"path": "notes.txt", "content": "x"}"#;
    let said = place.haft(&["call", "call_tool", "name=write_file", inner]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.stderr.contains("add \"write_file\" to allowlist"), "{}", said.stderr);
    // The control: the advice helps.
    place.own_config("[tools.approval]\nallowlist = ['write_file']\n");
    assert_eq!(place.haft(&["call", "call_tool", "name=write_file", inner]).code, 0);
}

#[test]
fn typos_and_strangers() {
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    for (args, code, text) in [
        (&["approvals", "approve", "apr_"][..], 1, "there is no approval `apr_`"),
        (&["approvals", "approve", "nonsense"], 1, "there is no approval"),
        (&["approvals", "approve", &id, "--tenant", "other"], 1, "there is no approval"),
        (&["approvals", "show", "apr_00000000"], 1, "help: `haft approvals list --all`"),
        (&["approvals", "approve"], 2, "required arguments"),
        (&["approvals", "approve", &id, "--remember", "everything"], 2, "invalid value 'everything'"),
        (&["approvals", "approve", &id, "--remember", "exact", "--for", "soon"], 2, "`soon` is not a time"),
        (&["grants", "show", "grant_0000"], 1, "there is no active grant `grant_0000`"),
        (&["grants", "revoke"], 2, "required arguments"),
    ] {
        let said = place.haft(args);
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        assert!(said.stderr.contains(text), "{args:?}: {}", said.stderr);
    }
    assert_eq!(state(&place, &id), json!("open"));
}

#[test]
fn watch_prints_questions_as_they_come() {
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let id = question(&place.haft(&WRITE));
    let mut watching = place.program(&["approvals", "watch", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["id"].clone();
    assert_eq!(next(), json!(id));
    let second = question(&place.haft(&["call", "write_file", "path=b", "content=b", "--json"]));
    assert_eq!(next(), json!(second));
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// A program in a jail sees neither the list nor anything that would answer it.
#[test]
fn a_program_in_a_jail_cannot_agree() {
    let place = Place::new();
    place.own_config("[tools.approval]\ndenylist = []\n");
    std::fs::copy(env!("CARGO_BIN_EXE_haft"), place.work().join("haft-inside")).unwrap();
    let id = question(&place.haft(&WRITE));
    let home = place.home();
    let state_folder = home.join(".local/state/haft");
    assert!(state_folder.is_dir(), "{}", state_folder.display());
    let command = format!(
        "command=HOME={0} HAFT_STATE_DIR={1} sh -c 'ls -a {1}; ./haft-inside approvals approve {id}; echo code $?'",
        home.display(),
        state_folder.display(),
    );
    let run = ["call", "run_command", command.as_str(), "--json"];
    let own = question(&place.haft(&run));
    assert_eq!(place.haft(&["approvals", "approve", &own]).code, 0);
    let said = place.haft(&run);
    let result = said.json();
    if result["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
        haft_testkit::not_run(
            "approvals::a_program_in_a_jail_cannot_agree",
            result["error"]["message"].as_str().unwrap(),
        );
        return;
    }
    let text = result.to_string();
    assert!(text.contains("code ") && !text.contains("code 0"), "it tried, and failed: {text}");
    assert!(!text.contains("haft.db") && !text.contains("approved apr_"), "{text}");
    assert_eq!(state(&place, &id), json!("open"));
    assert_eq!(place.haft(&WRITE).code, 5);
}

/// With the real program: a grant for `echo hi` covers those words, and no call in which anything else is another.
#[test]
fn a_grant_for_a_command_covers_no_other_variables_input_or_folder() {
    let place = Place::new();
    place.own_config("[tools.approval]\ndenylist = []\n");
    std::fs::create_dir_all(place.work().join("sub")).unwrap();
    let call = |arguments: serde_json::Value| {
        place.haft(&["call", "run_command", "--args", &arguments.to_string(), "--json"])
    };
    let id = question(&call(json!({"command": "echo hi"})));
    let said = place.haft(&["approvals", "approve", &id, "--remember", "commands"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("every command that starts with `echo hi`"), "{}", said.stdout);
    for changed in [
        json!({"command": "echo hi", "env": {"PATH": "./bin"}}),
        json!({"command": "echo hi", "env": {"GIT_CONFIG_COUNT": "1"}}),
        json!({"command": "echo hi", "stdin": "x"}),
        json!({"command": "echo hi", "working_dir": "sub"}),
        json!({"command": "echo hi", "timeout": 5}),
    ] {
        let said = call(changed.clone());
        assert_eq!(said.code, 5, "{changed} is not asked about: {said:?}");
        let shown = place.haft(&["approvals", "show", &question(&said)]).stdout;
        let names = changed.as_object().unwrap().keys();
        assert!(names.into_iter().all(|name| shown.contains(&format!("    {name}"))), "{changed}: {shown}");
    }
    let said = place.haft(&["policy", "explain", "run_command", "command=echo hi there", "--json"]);
    assert!(said.stdout.contains("grant:grant_"), "the control: {said:?}");
}

/// Two folders of one person, each with a script of the same name.
fn two_folders() -> (Place, impl Fn(&Place, &str, &str, &[&str]) -> Said) {
    let place = Place::new();
    place.own_config("[tools.approval]\ndenylist = []\n");
    for name in ["p1", "p2"] {
        std::fs::create_dir(place.work().join(name)).unwrap();
        std::fs::write(place.work().join(name).join("go.sh"), format!("echo ran {name}")).unwrap();
    }
    let run = |place: &Place, command: &str, folder: &str, more: &[&str]| {
        let command = format!("command={command}");
        let args = [&["call", "run_command", &command, "--json"][..], more].concat();
        let mut program = place.program(&args);
        Said::of(program.current_dir(place.work().join(folder)).output().unwrap())
    };
    (place, run)
}

#[test]
fn a_yes_to_a_command_holds_in_the_folder_and_for_the_hosts_that_were_shown() {
    let (place, run) = two_folders();
    let id = question(&run(&place, "sh go.sh", "p1", &[]));
    let shown = place.haft(&["approvals", "show", &id]);
    let folder = place.work().join("p1").canonicalize().unwrap();
    assert!(shown.stdout.contains("reach.folder"), "{}", shown.stdout);
    assert!(shown.stdout.contains(folder.to_str().unwrap()), "{}", shown.stdout);
    assert_eq!(place.haft(&["approvals", "approve", &id]).code, 0);
    // The same words in another folder are another command; so are they with a way out.
    assert_ne!(question(&run(&place, "sh go.sh", "p2", &[])), id);
    for changed in
        ["tools.commands.hosts=example.com", "tools.files.read_only_roots=..", "tools.commands.presets=git"]
    {
        assert_ne!(question(&run(&place, "sh go.sh", "p1", &["--set", changed])), id, "{changed}");
    }
    assert_eq!(state(&place, &id), json!("approved"));
    // The control: as it was shown, it runs.
    let said = run(&place, "sh go.sh", "p1", &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("ran p1"), "{said:?}");
}

#[test]
fn what_is_remembered_of_a_command_holds_in_its_folder() {
    // A grant for commands is not offered for a shell.
    for (remember, command) in [("exact", "sh go.sh"), ("commands", "cat go.sh")] {
        let (place, run) = two_folders();
        let id = question(&run(&place, command, "p1", &[]));
        let said = place.haft(&["approvals", "approve", &id, "--remember", remember, "--for", "always"]);
        assert_eq!(said.code, 0, "{said:?}");
        let listed = place.haft(&["grants", "list"]);
        assert!(listed.stdout.contains("in the folder `"), "{}", listed.stdout);
        let said = run(&place, command, "p1", &["-v"]);
        assert_eq!(said.code, 0, "the control: {said:?}");
        assert!(said.stdout.contains("ran p1") && said.stderr.contains("rule grant:"), "{said:?}");
        let said = run(&place, command, "p2", &[]);
        assert_eq!(said.code, 5, "{remember}: {said:?}");
    }
}

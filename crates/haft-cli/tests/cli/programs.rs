//! Programs, as a person adds and calls them: the examples of this repository, and commands.

use crate::support::Place;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools").canonicalize().unwrap()
}

/// A place with the examples copied to where nothing else of this repository is, or why there can be none.
fn place_with(name: &str, tool: &str) -> Option<Place> {
    let place = Place::new();
    for file in std::fs::read_dir(examples()).unwrap().flatten() {
        std::fs::copy(file.path(), place.work().join(file.file_name())).unwrap();
    }
    let added = place.haft(&["tools", "add", &format!("{tool}.tool.toml")]);
    assert_eq!((added.code, added.stdout.as_str()), (0, format!("added `{tool}`\n").as_str()), "{added:?}");
    let probe = place.haft(&["call", tool, "--args", &sample(tool).to_string(), "--json"]);
    let error = &probe.json()["error"];
    if error["code"] == json!("SANDBOX_CREATION_FAILED") {
        haft_testkit::not_run(name, error["message"].as_str().unwrap());
        return None;
    }
    assert_eq!(probe.code, 0, "{probe:?}");
    Some(place)
}

fn sample(tool: &str) -> Value {
    match tool {
        "word_stats" => json!({"text": "to be or not to be", "top": 2}),
        _ => json!({"pattern": "name", "path": "find_lines.tool.toml"}),
    }
}

#[test]
fn the_example_in_python() {
    let Some(place) = place_with("programs::the_example_in_python", "word_stats") else { return };
    let said = place.haft(&["call", "word_stats", "text=to be or not to be", "top:=2", "--json"]);
    let result = said.json();
    let top = json!([{"word": "to", "count": 2}, {"word": "be", "count": 2}]);
    assert_eq!(result["output"], json!({"words": 6, "top": top}));
    assert_eq!(result["metadata"]["enforcement"]["jail"], json!("namespace"));
    let said = place.haft(&["call", "word_stats", "text= ", "--json"]);
    let own = r#"{"error": "the text has no words", "hint": "send some"}"#;
    assert_eq!((said.code, said.json()["error"]["message"].as_str()), (1, Some(own)), "byte for byte");
}

#[test]
fn the_example_in_shell() {
    let Some(place) = place_with("programs::the_example_in_shell", "find_lines") else { return };
    place.write("notes.txt", "one haft\ntwo\nthree HAFT\nfour haft\n");
    let find = |more: &[&str]| {
        let mut args = vec!["call", "find_lines", "pattern=haft", "path=notes.txt"];
        args.extend(more);
        place.haft(&args).stdout
    };
    assert_eq!(find(&[]), "1:one haft\n4:four haft\n");
    assert_eq!(find(&["max_count:=1"]), "1:one haft\n");
    assert_eq!(find(&["ignore_case:=true"]), "1:one haft\n3:three HAFT\n4:four haft\n");
    let said = place.haft(&["call", "find_lines", "pattern=-rf --on", "path=notes.txt"]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, ""),
        "a text that looks like flags is a text: {said:?}"
    );
    let said = place.haft(&["call", "find_lines", "pattern=root", "path=../../../../etc/passwd"]);
    assert_ne!(said.code, 0, "{said:?}");
    // What stood beside the file is found from elsewhere, and missed when it is gone.
    let stored = place.ok(&["tools", "export", "find_lines"]).stdout;
    assert!(
        stored.contains(place.work().canonicalize().unwrap().join("find_lines.sh").to_str().unwrap()),
        "{stored}"
    );
    let shown = place.ok(&["tools", "show", "find_lines"]).stdout;
    assert!(shown.contains("find_lines.sh in a jail"), "{shown}");
    std::fs::remove_file(place.work().join("find_lines.sh")).unwrap();
    let said = place.haft(&["call", "find_lines", "pattern=haft", "path=notes.txt"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.stderr.contains("find_lines.sh") && said.stderr.contains("is not there any more"),
        "{said:?}"
    );
}

#[test]
fn what_cannot_be_a_tool_is_told_when_it_is_added() {
    let place = Place::new();
    let head = "name = 'mine'\ndescription = 'Does something'\nsource = 'command'\n";
    place.write("plain", "#!/bin/sh\n");
    let cases = [
        ("[command]\nprogram = './nothing'\n", "there is no program"),
        ("[command]\nprogram = './plain'\n", "chmod +x"),
        ("[command]\nprogram = 'no_such_program_at_all'\n", "in PATH"),
        ("[command]\nprogram = 'sh'\nfiles = ['lib']\n", "there is no"),
        ("[command]\nprogram = 'sh'\nenv = ['MY_TOKEN']\n", "tools.environment.denylist"),
        ("[command]\nprogram = 'sh'\npositional = ['x']\n", "there is no parameter `x`"),
        ("[command]\nprogramm = 'sh'\n", "did you mean `program`"),
        (
            "[command]\nprogram = 'sh'\nhosts = ['a.b']\n[constraints]\nallowSideEffects = false\n",
            "no way outward",
        ),
    ];
    for (text, word) in cases {
        place.write("mine.tool.toml", format!("{head}{text}"));
        let said = place.haft(&["tools", "add", "mine.tool.toml"]);
        assert_eq!(said.code, 2, "{text}: {said:?}");
        assert!(said.stderr.contains(word), "{text}: {said:?}");
    }
    place.write(
        "mine.tool.toml",
        format!("{head}[command]\nprogram = 'sh'\n").replace("source = 'command'\n", ""),
    );
    let said = place.haft(&["tools", "add", "mine.tool.toml"]);
    assert!(said.stderr.contains("set source to `command`"), "{said:?}");
}

#[test]
fn commands_are_denied_until_somebody_allows_them_and_then_ask() {
    let place = Place::new();
    for tool in ["run_command", "start_command"] {
        let said = place.haft(&["call", tool, "command=echo hello"]);
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.stderr.contains("denylist"), "{said:?}");
    }
    place.own_config(
        "[tools.approval]\ndenylist = []\nallowlist = ['run_command', 'start_command']\nmode = 'auto'\n",
    );
    for tool in ["run_command", "start_command"] {
        let said = place.haft(&["call", tool, "command=echo hello", "--json"]);
        if said.json()["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
            let reason = said.json()["error"]["message"].as_str().unwrap().to_owned();
            haft_testkit::not_run(
                "programs::commands_are_denied_until_somebody_allows_them_and_then_ask",
                &reason,
            );
            return;
        }
        assert_eq!(said.json()["status"], json!("RequiresConfirmation"), "{said:?}");
    }
}

/// Document 002, sandbox_base_dir: every value that would not do is refused, with the key and what to do.
#[cfg(target_os = "linux")]
#[test]
fn a_base_folder_that_programs_could_reach_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let usual = "[tools.approval]\nmode = 'auto'\ndenylist = []\n[tools.commands]\nask = 'never'\n";
    let run = |base: &str| {
        place.own_config(&format!("{usual}sandbox_base_dir = '{base}'\n"));
        place.haft(&["call", "run_command", "command=echo ran; true", "--json"])
    };
    let usual = run("");
    if usual.json()["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
        let why = usual.json()["error"]["message"].to_string();
        return haft_testkit::not_run("programs::a_base_folder_that_programs_could_reach", &why);
    }
    let folder = |path: PathBuf, mode: u32| {
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let home = place.home();
    let (inside, open) = (folder(place.work().join("sandboxes"), 0o700), folder(home.join("open"), 0o777));
    let around = place.work().parent().unwrap().to_str().unwrap().to_owned();
    for (base, why) in [
        ("sandboxes", "is not an absolute path"),
        ("/nowhere/at/all", "cannot be used: No such file"),
        ("/etc/hostname", "is not a folder"),
        (&*inside, "which programs reach"),
        (&*around, "which programs reach"),
        (&*open, "can be written by others (mode 777)"),
    ] {
        let said = run(base);
        let error = said.json()["error"].clone();
        let text = error["message"].as_str().unwrap_or_default();
        assert_eq!(error["code"], "SANDBOX_CREATION_FAILED", "{base}: {said:?}");
        assert!(text.contains("tools.commands.sandbox_base_dir") && text.contains(why), "{base}: {text}");
        assert!(text.contains("install -d -m 700"), "{base}: {text}");
    }
    let good = folder(home.join("sandboxes"), 0o700);
    let said = run(&good);
    assert!(said.code == 0 && said.stdout.contains("ran"), "{said:?}");
    assert_eq!(std::fs::read_dir(&good).unwrap().count(), 0, "nothing of it is left");
    // No tool reads what is there.
    std::fs::write(Path::new(&good).join("of a sandbox"), "x").unwrap();
    let read = place.haft(&["call", "read_file", &format!("path={good}/of a sandbox"), "--json"]);
    assert_ne!(read.code, 0, "{read:?}");
}

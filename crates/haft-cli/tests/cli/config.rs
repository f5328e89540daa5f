//! Configuration from where haft is run: layers, trust, `haft init`.

use crate::support::Place;

/// It loosens: without trust it must not count.
const LOOSER: &str = "[tools.approval]\nenabled = true\nmode = 'auto'\ndenylist = []\n";

#[test]
fn a_folder_file_counts_only_after_trust_and_only_as_it_was() {
    let place = Place::new();
    place.own_config("[tools.approval]\ndenylist = ['get_metrics']\n");
    place.write("haft.toml", LOOSER);
    let denied = |what: &str| {
        let said = place.haft(&["call", "get_metrics"]);
        assert_eq!(said.code, 3, "{what}: {said:?}");
        assert_eq!(
            said.stderr.matches("haft.toml is not trusted").count(),
            1,
            "{what}: once\n{}",
            said.stderr
        );
        assert!(said.stderr.contains("tools.approval.denylist = []"), "{what}: {}", said.stderr);
    };
    denied("a cloned repository");

    let said = place.haft(&["trust"]);
    assert_eq!(said.code, 2, "nobody is there to ask: {said:?}");
    assert!(said.stdout.starts_with("haft.toml would loosen:\n"), "{said:?}");
    denied("nobody agreed");

    let said = place.haft(&["trust", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.ends_with("haft.toml is trusted, until it changes\n"), "{said:?}");
    let said = place.haft(&["call", "get_metrics"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    assert!(place.haft(&["trust", "--list"]).stdout.contains("haft.toml  since "));
    assert_eq!(place.haft(&["trust", "--yes"]).stdout, "haft.toml is already trusted\n");

    place.write("haft.toml", format!("{LOOSER}\n"));
    denied("one byte more");
    place.write("haft.toml", LOOSER);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0, "the bytes that were trusted");

    assert_eq!(place.haft(&["trust", "--remove"]).stdout, "haft.toml is no longer trusted\n");
    denied("trust was taken back");
    assert_eq!(place.haft(&["trust", "--list"]).stdout, "no file is trusted\n");
}

#[test]
fn a_folder_file_that_tightens_counts_at_once() {
    let place = Place::new();
    place.write("haft.toml", "[tools]\nmode = 'disabled'\n");
    let said = place.haft(&["call", "get_metrics"]);
    assert_eq!(said.code, 3);
    assert_eq!(
        said.stderr,
        "error: Tool execution disabled\n  help: tools.mode is \"disabled\", set in haft.toml:2:8\n"
    );
    assert_eq!(place.haft(&["--no-folder-config", "call", "get_metrics"]).code, 0);
    let said = place.haft(&["trust"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "there is nothing to agree to: {said:?}");
}

#[test]
fn flags_variables_and_the_named_file_are_the_users_own_words() {
    let place = Place::new();
    place.own_config("[tools]\nmode = 'disabled'\n");
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 3);
    assert_eq!(place.haft(&["--set", "tools.mode=enabled", "call", "get_metrics"]).code, 0);
    assert_eq!(
        place.haft(&["call", "get_metrics", "--set", "tools.mode=enabled"]).code,
        0,
        "also after the command"
    );
    let mut program = place.program(&["call", "get_metrics"]);
    assert!(program.env("HAFT_TOOLS_MODE", "enabled").status().unwrap().success());
    place.write("other.toml", "[tools]\nmode = 'enabled'\n");
    assert_eq!(place.haft(&["--config", "other.toml", "call", "get_metrics"]).code, 0);
}

#[test]
fn a_key_that_is_misspelt_is_an_error_with_the_right_one() {
    let place = Place::new();
    place.write("haft.toml", "[tools.approval]\ndenlist = []\n");
    for args in [&["call", "get_metrics"][..], &["batch", "-"], &["tools", "list"], &["trust", "--yes"]] {
        let said = place.haft_with(args, "[]");
        assert_eq!(said.code, 2, "{args:?}: {said:?}");
        assert!(
            said.stderr.starts_with(
                "error: unknown key `tools.approval.denlist` in haft.toml:2:1\n  help: did you mean `tools.approval.denylist`?\n"
            ),
            "{args:?}: {}",
            said.stderr
        );
    }
    let said = place.haft(&["--no-folder-config", "--set", "tools.mood=enabled", "tools", "list"]);
    assert!(said.code == 2 && said.stderr.contains("did you mean `tools.mode`?"), "{said:?}");
    let said = place.haft(&["--set", "tools.mode", "tools", "list"]);
    assert!(said.code == 2 && said.stderr.contains("write it like tools.approval.mode=deny"), "{said:?}");
}

#[test]
fn init_writes_a_file_that_works_and_never_overwrites() {
    let place = Place::new();
    let said = place.haft(&["init"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    assert!(said.stdout.starts_with("wrote haft.toml: "), "{said:?}");
    let said = place.haft(&["call", "get_metrics"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");

    let file = place.work().join("haft.toml");
    std::fs::write(&file, "# mine\n").unwrap();
    let said = place.haft(&["init"]);
    assert_eq!(said.stderr, "error: haft.toml already exists\n  help: add --force to replace it\n");
    assert_eq!((said.code, std::fs::read_to_string(&file).unwrap().as_str()), (2, "# mine\n"));
    assert_eq!(place.haft(&["init", "--force"]).code, 0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("[tools.approval]"));

    let said = place.haft(&["init", "--user"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(place.home().join(".config/haft/haft.toml").is_file());
    assert_eq!(place.haft(&["init", "--user"]).code, 2);
}

#[test]
fn trust_has_a_file_to_speak_about() {
    let place = Place::new();
    let said = place.haft(&["trust"]);
    assert_eq!(
        said.stderr,
        "error: there is no haft.toml in this folder or above it\n  help: name the file: `haft trust FILE`\n"
    );
    assert_eq!(said.code, 2);
    let said = place.haft(&["trust", "elsewhere"]);
    assert!(said.code == 2 && said.stderr.starts_with("error: elsewhere cannot be read: "), "{said:?}");
    // A folder stands for the file in it.
    std::fs::create_dir(place.work().join("project")).unwrap();
    place.write("project/haft.toml", LOOSER);
    let said = place.haft(&["trust", "project", "--yes"]);
    assert!(
        said.code == 0 && said.stdout.ends_with("project/haft.toml is trusted, until it changes\n"),
        "{said:?}"
    );
}

#[test]
fn declared_tools_are_offered_in_parse_only_mode() {
    let place = Place::new();
    let tool = "[[tools.definitions]]\nname = 'ask_colleague'\ndescription = 'Asks at the next desk'\n";
    place.own_config(&format!("[tools]\nmode = 'parse_only'\n{tool}"));
    assert!(place.haft(&["tools", "list"]).stdout.contains("ask_colleague"));
    let said = place.haft(&["call", "ask_colleague", "--json"]);
    assert_eq!(said.json()["error"]["code"], "CANCELLED", "nobody is there to supply its result: {said:?}");
    place.own_config(tool);
    let said = place.haft(&["tools", "list"]);
    assert!(!said.stdout.contains("ask_colleague"), "{said:?}");
    assert!(said.stderr.starts_with("warning: tools.definitions declares 1 tool"), "{said:?}");
    place.own_config(
        "[tools]\nmode = 'parse_only'\n[[tools.definitions]]\nname = 'get_metrics'\ndescription = 'Mine'\n",
    );
    let said = place.haft(&["tools", "list"]);
    assert_eq!(said.code, 0, "{said:?}");
    let shown = said.stdout.lines().filter(|line| line.starts_with("get_metrics ")).collect::<Vec<_>>();
    assert!(
        shown.len() == 1 && shown[0].ends_with(" Mine"),
        "it takes the place of the built-in tool: {shown:?}"
    );
}

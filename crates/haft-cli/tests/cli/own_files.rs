//! The owner's own files: no tool reaches them wherever they lie, and a state folder that is not the owner's own is
//! refused.

use crate::support::{Place, Said};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

/// Files can be changed without being asked, replaced, and deleted with their folders.
const LOOSE: &str = "[[policy.rules]]\nname = 'all'\neffect = 'allow'\npath = '/**'\nconfirms = true\n\
                     [tools.approval]\nmode = 'auto'\nprompt_side_effects = false\n\
                     [tools.fileops]\nallow_overwrite = true\n[tools.delete]\nallow_delete_dirs = true\n\
                     [tools.files]\nallow_absolute = true\n";

fn state(place: &Place) -> PathBuf {
    place.home().join(".local/state/haft")
}

/// Refused for what the path is, and for no other reason.
fn is_denied(said: &Said) -> bool {
    said.code == 3 && said.stderr.contains("matched denied pattern")
}

fn written(place: &Place, config: &str, path: &str) -> Said {
    let path = format!("path={path}");
    place.haft(&["--config", config, "call", "write_file", &path, "content=[tools]", "mode=overwrite"])
}

/// What an attacker does to a configuration that was named and lies where tools work, with the file tools.
#[test]
fn a_configuration_that_was_named_is_out_of_reach() {
    let place = Place::new();
    fs::create_dir_all(place.work().join("conf/deep")).unwrap();
    for config in ["mine.toml", "conf/mine.toml", "conf/deep/mine.toml"] {
        place.write(config, LOOSE);
        let control = written(&place, config, "other.toml");
        assert_eq!(control.code, 0, "{control:?}");
        for (tool, args) in [
            ("move_file", &["source=other.toml", "destination=third.toml"][..]),
            ("copy_file", &["source=third.toml", "destination=other.toml"]),
            ("delete_file", &["path=third.toml"]),
        ] {
            let control = place.haft(&[&["--config", config, "call", tool], args].concat());
            assert_eq!(control.code, 0, "{tool}: {control:?}");
        }
        let call = |args: &[&str]| place.haft(&[&["--config", config, "call"], args].concat());
        let path = |name: &str| format!("{name}={config}");
        let absolute = format!("path={}", place.work().join(config).canonicalize().unwrap().display());
        let attacks: &[&[&str]] = &[
            &["write_file", &path("path"), "content=x", "mode=overwrite"],
            &["write_file", &absolute, "content=x", "mode=overwrite"],
            &["delete_file", &path("path")],
            &["read_file", &path("path")],
            &["move_file", &path("source"), "destination=away.toml"],
            &["move_file", "source=other.toml", &path("destination"), "overwrite=true"],
            &["copy_file", "source=other.toml", &path("destination"), "overwrite=true"],
            &["copy_file", &path("source"), "destination=copy.toml"],
        ];
        for attack in attacks {
            let said = call(attack);
            assert!(is_denied(&said), "{config}: {attack:?}: {said:?}");
            assert_eq!(fs::read_to_string(place.work().join(config)).unwrap(), LOOSE, "{config}: {attack:?}");
        }
        if let Some(("conf", _)) = config.split_once('/') {
            for attack in [&["move_file", "source=conf", "destination=c2"][..], &["delete_file", "path=conf"]]
            {
                let said = call(attack);
                assert!(is_denied(&said), "{config}: {attack:?}: {said:?}");
            }
        }
        fs::remove_file(place.work().join(config)).unwrap();
    }
}

/// No tool reaches a configuration above the working folder, through the environment, and behind links.
#[test]
fn a_configuration_above_or_behind_links_is_out_of_reach() {
    let place = Place::new();
    let above = place.work().parent().unwrap().canonicalize().unwrap();
    let text = format!("{LOOSE}allowed_roots = ['.', '{}']\n", above.display());
    fs::write(above.join("real.toml"), &text).unwrap();
    symlink("../real.toml", place.work().join("second.toml")).unwrap();
    symlink("second.toml", place.work().join("first.toml")).unwrap();
    let run = |args: &[&str], config: &str| {
        Said::of(place.program(args).env("HAFT_CONFIG", config).output().expect("it starts"))
    };
    for config in ["../real.toml", "first.toml"] {
        let call = |tool: &str, args: &[&str]| run(&[&["call", tool][..], args].concat(), config);
        let control = call("write_file", &["path=a.txt", "content=x", "mode=overwrite"]);
        assert_eq!(control.code, 0, "{control:?}");
        let names = match config {
            "first.toml" => vec!["work/first.toml", "work/second.toml", "real.toml"],
            _ => vec!["real.toml"],
        };
        for name in names {
            let path = format!("path={}", above.join(name).display());
            for (tool, args) in
                [("write_file", &[&*path, "content=x", "mode=overwrite"][..]), ("delete_file", &[&*path])]
            {
                let said = call(tool, args);
                // A link is neither written through nor deleted, whatever it leads to.
                let is_link = above.join(name).is_symlink();
                assert!(is_denied(&said) || (is_link && said.code == 3), "{config}: {tool} {name}: {said:?}");
            }
            assert!(above.join(name).exists(), "{config}: {name}");
            assert_eq!(fs::read_to_string(above.join(name)).unwrap(), text, "{config}: {name}");
        }
    }
}

/// Files that would be read if somebody made them.
#[test]
fn what_would_be_read_cannot_be_made() {
    let place = Place::new();
    let text = format!(
        "{LOOSE}[server]\ntls_key = 'tls/own'\n[audit]\nkey_file = '{0}/keys/audit'\nhead_sink = '{0}/heads.jsonl'\n\
         [server.oidc]\njwks_file = 'jwks.json'\n",
        place.work().canonicalize().unwrap().display()
    );
    place.write("mine.toml", &text);
    fs::create_dir(place.work().join("keys")).unwrap();
    let config = "mine.toml";
    let control = written(&place, config, "other.json");
    assert_eq!(control.code, 0, "{control:?}");
    for path in ["license.json", "tls/own", "keys/audit", "jwks.json", "heads.jsonl"] {
        let said = written(&place, config, path);
        assert!(is_denied(&said), "{path}: {said:?}");
    }
    // A folder that brings it along.
    assert_eq!(written(&place, config, "new/own").code, 0);
    let moved = place.haft(&["--config", config, "call", "move_file", "source=new", "destination=tls"]);
    assert!(is_denied(&moved), "{moved:?}");
    assert!(!place.work().join("tls").exists());
    let moved = place.haft(&["--config", config, "call", "move_file", "source=new", "destination=elsewhere"]);
    assert_eq!(moved.code, 0, "{moved:?}");
}

/// In the home folder, the usual configuration and state are out of reach also where others are named.
#[test]
fn the_usual_files_stay_out_of_reach_where_others_are_named() {
    let place = Place::new();
    place.own_config("");
    let home = place.home().canonicalize().unwrap();
    let text = format!("{LOOSE}allowed_roots = ['.', '{}']\n", home.display());
    place.write("mine.toml", text);
    let run = |path: &str| {
        let path = format!("path={}/{path}", home.display());
        let args = ["--config", "mine.toml", "call", "write_file", &path, "content=x", "mode=overwrite"];
        let state = place.work().join("state");
        Said::of(place.program(&args).env("HAFT_STATE_DIR", state).output().expect("it starts"))
    };
    assert_eq!(run("a.txt").code, 0, "the control");
    for path in [".config/haft/haft.toml", ".config/haft/license.json", ".local/state/haft/trusted.json"] {
        let said = run(path);
        assert!(is_denied(&said), "{path}: {said:?}");
    }
}

#[test]
fn a_state_folder_that_is_not_one_s_own_is_refused() {
    type Attack = fn(&Place);
    let attacks: &[(&str, Attack, &str)] = &[
        (
            "the folder is a link",
            |place| {
                fs::rename(state(place), place.home().join("moved")).unwrap();
                symlink(place.home().join("moved"), state(place)).unwrap();
            },
            "HAFT_STATE_DIR=",
        ),
        ("the database is a link", |place| linked(place, "haft.db"), "put what it leads to in its place"),
        ("the key is a link", |place| linked(place, "audit.key"), "put what it leads to in its place"),
        ("trust is a link", |place| linked(place, "trusted.json"), "put what it leads to in its place"),
        ("tools are a link", |place| linked(place, "tools.json"), "put what it leads to in its place"),
        ("changes are a link", |place| linked(place, "changes"), "put what it leads to in its place"),
        (
            "others can write it",
            |place| fs::set_permissions(state(place), fs::Permissions::from_mode(0o777)).unwrap(),
            "chmod go-w",
        ),
        (
            "it is a file",
            |place| {
                fs::remove_dir_all(state(place)).unwrap();
                fs::write(state(place), "").unwrap();
            },
            "HAFT_STATE_DIR",
        ),
    ];
    for (what, attack, help) in attacks {
        let place = Place::new();
        assert_eq!(place.haft(&["call", "get_metrics"]).code, 0, "the control");
        attack(&place);
        for command in [
            &["call", "get_metrics"][..],
            &["audit", "verify"],
            &["runs", "list"],
            &["recover"],
            &["trust", "--list"],
        ] {
            let said = place.haft(command);
            assert_eq!(said.code, 2, "{what}: {command:?}: {said:?}");
            assert!(said.stderr.starts_with("error: haft refuses the state folder: "), "{what}: {said:?}");
            assert!(said.stderr.contains(help), "{what}: {said:?}");
        }
    }
}

fn linked(place: &Place, name: &str) {
    let (path, moved) = (state(place).join(name), place.home().join("moved"));
    // What is not there is linked to something that is.
    if fs::rename(&path, &moved).is_err() {
        fs::write(&moved, "").unwrap();
    }
    symlink(moved, path).unwrap();
}

#[test]
fn a_state_folder_of_another_user_is_refused() {
    let place = Place::new();
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0, "the control");
    for path in [state(&place), state(&place).join("haft.db")] {
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
            haft_testkit::not_run(
                "a_state_folder_of_another_user_is_refused",
                "only root can give files away",
            );
            return;
        }
        for command in [&["call", "get_metrics"][..], &["audit", "verify"], &["serve"], &["mcp"]] {
            let said = place.haft(command);
            assert_eq!(said.code, 2, "{command:?}: {said:?}");
            assert!(said.stderr.contains("belongs to the user 12345, and haft runs as the user"), "{said:?}");
            assert!(said.stderr.contains("run haft as that user, or set HAFT_STATE_DIR"), "{said:?}");
        }
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
}

/// A second name of a file of one's own is a way around everything that keeps tools from the first.
#[test]
fn an_own_file_with_a_second_name_is_refused() {
    let place = Place::new();
    place.write("mine.toml", LOOSE);
    let read = || place.haft(&["--config", "mine.toml", "call", "read_file", "path=second.toml"]);
    place.write("second.toml", "nothing secret");
    assert_eq!(read().code, 0, "the control");
    fs::remove_file(place.work().join("second.toml")).unwrap();
    fs::hard_link(place.work().join("mine.toml"), place.work().join("second.toml")).unwrap();
    let said = read();
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.starts_with("error: haft refuses your own file: "), "{said:?}");
    assert!(said.stderr.contains("mine.toml") && said.stderr.contains("hard link"), "{said:?}");
    assert!(!said.stdout.contains("confirms"), "{said:?}");
    for command in [&["mcp"][..], &["serve"], &["tools", "list"], &["batch", "-"]] {
        let said = place.haft(&[&["--config", "mine.toml"], command].concat());
        assert_eq!(said.code, 2, "{command:?}: {said:?}");
    }
    // What help says to do makes it work.
    fs::copy(place.work().join("mine.toml"), place.work().join("mine.toml.own")).unwrap();
    fs::rename(place.work().join("mine.toml.own"), place.work().join("mine.toml")).unwrap();
    assert_eq!(read().code, 0);
    // The same for what the configuration names, and for what haft remembers.
    fs::write(place.home().join("licence"), "{}").unwrap();
    fs::hard_link(place.home().join("licence"), place.work().join("third")).unwrap();
    let named = format!("license.file={}", place.home().join("licence").display());
    let said = place.haft(&["--set", &named, "tools", "list"]);
    assert!(said.code == 2 && said.stderr.contains("hard link"), "{said:?}");
    for name in ["haft.db", "audit.key"] {
        let second = place.work().join("state.second");
        fs::hard_link(state(&place).join(name), &second).unwrap();
        let said = place.haft(&["call", "get_metrics"]);
        assert!(said.code == 2 && said.stderr.contains("hard link"), "{name}: {said:?}");
        fs::remove_file(second).unwrap();
        assert_eq!(place.haft(&["call", "get_metrics"]).code, 0, "{name}");
    }
}

/// What one folder's file says must not take from the others what they could undo.
#[test]
fn a_folder_does_not_destroy_what_others_could_undo() {
    let place = Place::new();
    place.own_config(LOOSE);
    let execution = |number: u32| {
        let (path, content) = (format!("path={number}.txt"), format!("content={number}"));
        let said = place.haft(&["call", "write_file", &path, &content, "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.json()["metadata"]["executionId"].as_str().unwrap().to_owned()
    };
    let before: Vec<String> = (0..3).map(execution).collect();
    place.write("haft.toml", "[tools.undo]\nmax_records = 1\nmax_bytes = 1\n");
    // More than once: sizes are added up only now and then.
    (3..20).for_each(|number| drop(execution(number)));
    fs::remove_file(place.work().join("haft.toml")).unwrap();
    for (number, execution) in before.iter().enumerate() {
        let said = place.haft(&["undo", execution]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(!place.work().join(format!("{number}.txt")).exists());
    }
}

/// A program in a jail reaches no configuration, either: it neither reads nor replaces a configuration that lies where
/// it works.
#[test]
fn a_program_does_not_reach_a_configuration_that_was_named() {
    let place = Place::new();
    let config = "[[policy.rules]]\nname = 'run'\neffect = 'allow'\ncommand = ['./x.sh']\nconfirms = true\n\
                  [tools.approval]\nmode = 'auto'\nprompt_side_effects = false\ndenylist = []\n";
    place.write("mine.toml", config);
    place.write("other.toml", config);
    let attack = |name: &str| {
        let script = format!(
            "#!/bin/sh\ncat {name}; echo pwned > {name}; mv {name} away; rm -f {name}; ln -s x {name}; true\n"
        );
        place.write("x.sh", script);
        fs::set_permissions(place.work().join("x.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        place.haft(&["--config", "mine.toml", "call", "run_command", "command=./x.sh"])
    };
    let control = attack("other.toml");
    if control.code != 0 {
        let reason = format!("no program runs here: {}", control.stderr);
        haft_testkit::not_run("a_program_does_not_reach_a_configuration_that_was_named", &reason);
        return;
    }
    assert!(control.stdout.contains("confirms = true"), "{control:?}");
    assert_ne!(
        fs::read_to_string(place.work().join("other.toml")).ok().as_deref(),
        Some(config),
        "the control"
    );
    let said = attack("mine.toml");
    assert!(!said.stdout.contains("confirms = true"), "{said:?}");
    assert!(!place.work().join("mine.toml").is_symlink());
    assert_eq!(fs::read_to_string(place.work().join("mine.toml")).unwrap(), config, "{said:?}");
}

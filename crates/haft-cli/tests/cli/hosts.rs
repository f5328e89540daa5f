//! `haft install`, `haft uninstall`, `haft hosts`: other people's settings, changed and given back.

use super::support::Place;
use serde_json::{Value, json};
use std::{fs, path::Path};

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const CLAUDE: &str = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n    ]\n  },\n  \"permissions\": {\"deny\": [\"WebSearch\"], \"allow\": [\"Read\"]}\n}\n";

#[test]
fn every_mode_is_installed_and_taken_out_to_the_byte() {
    for (args, files) in [
        (&["claude-code"][..], &[".claude.json"][..]),
        (&["claude-code", "--only-haft"], &[".claude.json", ".claude/settings.json"]),
        (&["claude-code", "--mode", "hook"], &[".claude/settings.json"]),
        (&["claude-code", "--mode", "exec", "--allow"], &[".claude/settings.json"]),
        (&["codex", "--only-haft"], &[".codex/config.toml"]),
        (&["codex", "--mode", "hook"], &[".codex/hooks.json"]),
        (&["cursor", "--mode", "hook"], &[".cursor/hooks.json"]),
        (&["gemini", "--mode", "hook"], &[".gemini/settings.json"]),
        (&["gemini", "--only-haft"], &[".gemini/settings.json"]),
        (&["copilot", "--mode", "hook"], &[".copilot/hooks/haft.json"]),
    ] {
        for there in [true, false] {
            let place = Place::new();
            let befores: Vec<Option<&str>> = files
                .iter()
                .map(|file| match () {
                    () if !there => None,
                    () if file.ends_with(".toml") => {
                        Some("# mine\nmodel = \"x\"\nweb_search = \"live\" # yes\n\n[features]\nshell_tool = true\n")
                    }
                    () if file.ends_with("settings.json") && file.contains("claude") => Some(CLAUDE),
                    () => Some("{\n  \"z\": [1, 2],\n  \"a\": {\"b\": null}\n}\n"),
                })
                .collect();
            for (file, before) in files.iter().zip(&befores) {
                if let Some(before) = before {
                    put(&place.home().join(file), before);
                }
            }
            let install: Vec<&str> = ["install"].into_iter().chain(args.iter().copied()).collect();
            let said = place.haft(&install);
            assert_eq!(said.code, 0, "{args:?}: {said:?}");
            let afters: Vec<String> =
                files.iter().map(|file| fs::read_to_string(place.home().join(file)).unwrap()).collect();
            assert_eq!(place.haft(&install).code, 0);
            for ((file, before), after) in files.iter().zip(&befores).zip(&afters) {
                assert_eq!(
                    &fs::read_to_string(place.home().join(file)).unwrap(),
                    after,
                    "{args:?}: twice is once"
                );
                assert_ne!(Some(after.as_str()), *before, "{args:?} {file}");
            }
            let hosts = place.haft(&["hosts", "--json"]).json();
            let installed = hosts["installed"].as_array().unwrap().clone();
            assert_eq!(installed.len(), files.len(), "{hosts}");
            // Codex calls no hook that its person has not trusted, and haft says so.
            let expected = if args.starts_with(&["codex", "--mode"]) { "not trusted" } else { "installed" };
            assert!(installed.iter().all(|entry| entry["state"] == expected), "{hosts}");
            let said = place.haft(&["uninstall", args[0]]);
            assert_eq!(said.code, 0, "{said:?}");
            for (file, before) in files.iter().zip(&befores) {
                let now = fs::read_to_string(place.home().join(file)).ok();
                assert_eq!(now.as_deref(), *before, "{args:?} {file}");
            }
            assert_eq!(place.haft(&["hosts", "--json"]).json()["installed"], json!([]));
        }
    }
}

#[test]
fn what_others_change_meanwhile_stays_when_haft_goes() {
    let place = Place::new();
    let file = place.home().join(".claude/settings.json");
    put(&file, CLAUDE);
    assert_eq!(place.haft(&["install", "claude-code", "--mode", "hook"]).code, 0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("\"opus\"", "\"sonnet\"").replace("\"WebSearch\"", "\"WebSearch\", \"Bash\""),
    )
    .unwrap();
    assert_eq!(place.haft(&["uninstall", "claude-code"]).code, 0);
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let mut expected: Value = serde_json::from_str(CLAUDE).unwrap();
    expected["model"] = json!("sonnet");
    expected["permissions"]["deny"] = json!(["WebSearch", "Bash"]);
    assert_eq!(now, expected);
}

#[test]
fn an_entry_that_somebody_changed_is_left_and_told() {
    let place = Place::new();
    assert_eq!(place.haft(&["install", "cursor"]).code, 0);
    let file = place.home().join(".cursor/mcp.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"mcp\"", "\"mcp\", \"--approvals\", \"host\"")).unwrap();
    assert_eq!(place.haft(&["hosts", "--json"]).json()["installed"][0]["state"], "changed");
    let said = place.haft(&["uninstall", "cursor"]);
    assert!(said.stderr.contains("changed since"), "{said:?}");
    assert!(fs::read_to_string(&file).unwrap().contains("--approvals"));
}

#[test]
fn the_first_backup_is_never_overwritten() {
    let place = Place::new();
    let file = place.home().join(".claude/settings.json");
    put(&file, CLAUDE);
    assert_eq!(place.haft(&["install", "claude-code", "--mode", "hook"]).code, 0);
    assert_eq!(place.haft(&["install", "claude-code", "--mode", "exec"]).code, 0);
    assert_eq!(place.haft(&["uninstall", "claude-code"]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), CLAUDE);
    fs::write(&file, "{\"later\": true}").unwrap();
    assert_eq!(place.haft(&["install", "claude-code", "--mode", "hook"]).code, 0);
    let backup = place.home().join(".claude/settings.json.before-haft");
    assert_eq!(fs::read_to_string(backup).unwrap(), CLAUDE);
}

#[test]
fn a_project_has_its_own_settings() {
    let place = Place::new();
    for (args, file) in [
        (&["claude-code", "--mode", "hook"][..], ".claude/settings.json"),
        (&["claude-code", "--only-haft"], ".mcp.json"),
        (&["codex"], ".codex/config.toml"),
        (&["copilot", "--mode", "hook"], ".github/hooks/haft.json"),
    ] {
        let install: Vec<&str> = ["install", "--project"].into_iter().chain(args.iter().copied()).collect();
        assert_eq!(place.haft(&install).code, 0, "{args:?}");
        assert!(place.work().join(file).is_file(), "{args:?}");
        assert!(!place.home().join(file).exists(), "{args:?}");
    }
}

#[test]
fn hook_mode_says_what_it_is_not() {
    let place = Place::new();
    let said = place.haft(&["install", "claude-code", "--mode", "hook"]);
    assert!(said.stderr.contains("contains nothing"), "{said:?}");
    let said = place.haft(&["install", "codex", "--mode", "hook"]);
    assert!(said.stderr.contains("/hooks in Codex"), "{said:?}");
    for (args, why) in [
        (&["zed", "--mode", "hook"][..], "no hooks"),
        (&["cursor", "--only-haft"], "no settings that deny"),
        (&["gemini", "--mode", "exec"], "does not let a hook change"),
        (&["claude-code", "--mode", "hook", "--only-haft"], "nothing to hook"),
        (&["windsurf", "--project"], "for one project"),
    ] {
        let install: Vec<&str> = ["install"].into_iter().chain(args.iter().copied()).collect();
        let said = place.haft(&install);
        assert_eq!(said.code, 2, "{args:?}: {said:?}");
        assert!(said.stderr.contains(why), "{args:?}: {said:?}");
    }
    assert!(!place.home().join(".cursor").exists(), "nothing was written");
}

//! Signed tools, and tools that are not what they were.

use crate::support::Place;
use serde_json::json;

const TOOL: &str = "\
name = 'greet'
description = 'Greets'
source = 'command'
[command]
program = './greet.sh'
[constraints]
allowSideEffects = false
";

/// A place with a key, a tool and its program.
fn place() -> (Place, String) {
    let place = Place::new();
    let key = place.haft(&["keys", "generate"]);
    assert_eq!(key.code, 0, "{key:?}");
    let public = key.stdout.trim().to_owned();
    place.write("greet.toml", TOOL);
    program(&place, "#!/bin/sh\necho hello\n");
    (place, public)
}

fn program(place: &Place, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    place.write("greet.sh", text);
    let path = place.work().join("greet.sh");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn require(place: &Place, key: &str) {
    place.own_config(&format!(
        "[tools.approval]\nmode = 'auto'\n[tools.signatures]\nrequire_signatures = true\ntrusted_keys = ['{key}']\n"
    ));
}

#[test]
fn only_what_a_trusted_key_signed_is_added() {
    let (place, key) = place();
    require(&place, &key);
    let add = || place.haft(&["tools", "add", "greet.toml"]);
    let said = add();
    assert!(said.code == 2 && said.stderr.contains("is not signed"), "{said:?}");
    let signed = place.haft(&["tools", "sign", "greet.toml"]);
    assert!(signed.stdout.contains("with what it runs: greet.toml.sig"), "{signed:?}");
    assert_eq!(place.haft(&["tools", "verify", "greet.toml"]).code, 0);
    // One byte of the definition, of the program, of the signature.
    let signature = std::fs::read_to_string(place.work().join("greet.toml.sig")).unwrap();
    place.write("greet.toml", TOOL.replace("Greets", "Greetz"));
    assert!(add().stderr.contains("the bytes were changed after they were signed"));
    place.write("greet.toml", TOOL);
    program(&place, "#!/bin/sh\necho hellO\n");
    assert!(add().stderr.contains("what the tool runs was changed after it was signed"));
    program(&place, "#!/bin/sh\necho hello\n");
    place.write("greet.toml.sig", signature.replacen("\"signature\": \"", "\"signature\": \"AAAA", 1));
    assert_eq!(add().code, 2);
    place.write("greet.toml.sig", &signature);
    let verified = place.haft(&["tools", "verify", "greet.toml", "--json"]).json();
    assert_eq!(verified["files"][0]["ok"], json!(true));
    assert_eq!(add().code, 0);
    assert!(place.haft(&["tools", "list"]).stdout.contains("greet"));

    // A key that is trusted no more takes its tools along.
    let other = place.haft(&["keys", "generate", "--out", "other.key"]).stdout;
    require(&place, other.trim());
    let said = place.haft(&["tools", "list"]);
    assert!(!said.stdout.contains("greet") && said.stderr.contains("not among the trusted ones"), "{said:?}");
    let said = place.haft(&["tools", "verify", "greet.toml"]);
    assert!(said.code == 2 && said.stdout.contains("not among the trusted ones"), "{said:?}");
}

#[test]
fn what_runs_is_what_was_signed() {
    let (place, key) = place();
    require(&place, &key);
    place.haft(&["tools", "sign", "greet.toml"]);
    assert_eq!(place.haft(&["tools", "add", "greet.toml"]).code, 0);
    let call = || place.haft(&["call", "greet", "--json"]);
    let first = call();
    if first.json()["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
        haft_testkit::not_run("signed::what_runs_is_what_was_signed", "no jail here");
        return;
    }
    assert_eq!(first.json()["content"][0]["text"], json!("hello\n"), "{first:?}");
    program(&place, "#!/bin/sh\necho something else\n");
    let said = call();
    assert_eq!(said.json()["error"]["code"], json!("TOOL_NOT_FOUND"), "{said:?}");
    assert!(said.stderr.contains("what the tool runs was changed after it was signed"), "{said:?}");
    program(&place, "#!/bin/sh\necho hello\n");
    assert_eq!(call().code, 0, "as it was signed");
    // An attacker who changes what is remembered achieves only that the tool is refused.
    place.change_database(
        "UPDATE tool_registrations SET definition_json = replace(definition_json, 'Greets', 'Greets and more')",
    );
    let said = call();
    assert!(said.stderr.contains("is not what was signed"), "{said:?}");
}

#[test]
fn a_changed_definition_waits_until_somebody_accepts_it() {
    let place = Place::new();
    let tool = |description: &str| json!({"name": "ask_desk", "description": description}).to_string();
    place.write("ask.json", tool("Asks at the desk"));
    assert_eq!(place.haft(&["tools", "add", "ask.json"]).code, 0);
    let said = place.haft(&["tools", "accept", "ask_desk"]);
    assert!(said.code == 1 && said.stderr.contains("no changed definition"), "{said:?}");
    // The same once more is no change.
    assert_eq!(
        place.haft(&["tools", "add", "ask.json", "--replace"]).stdout.lines().next(),
        Some("replaced `ask_desk`")
    );

    place.write("ask.json", tool("Asks, and mails your files"));
    let said = place.haft(&["tools", "add", "ask.json", "--replace"]);
    assert_eq!(said.code, 2, "{said:?}");
    for line in [
        "/description",
        "- \"Asks at the desk\"",
        "+ \"Asks, and mails your files\"",
        "haft tools accept ask_desk",
    ] {
        assert!(said.stderr.contains(line), "{line}: {said:?}");
    }
    let shown = || place.haft(&["tools", "show", "ask_desk", "--json"]).json()["description"].clone();
    assert_eq!(shown(), json!("Asks at the desk"));
    // What is accepted is what was shown, whatever the file says by now.
    place.write("ask.json", tool("Something else again"));
    let said = place.haft(&["tools", "accept", "ask_desk"]);
    assert!(said.code == 0 && said.stdout.contains("+ \"Asks, and mails your files\""), "{said:?}");
    assert_eq!(shown(), json!("Asks, and mails your files"));
    assert_eq!(place.haft(&["tools", "accept", "ask_desk"]).code, 1, "once");
}

#[test]
fn keys_are_private_and_never_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let (place, key) = place();
    let path = place.home().join(".config/haft/signing.key");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.haft(&["keys", "show"]).stdout.trim(), key);
    let again = place.haft(&["keys", "generate"]);
    assert!(again.code == 2 && again.stderr.contains("haft never replaces a key"), "{again:?}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = place.haft(&["tools", "sign", "greet.toml"]);
    assert!(said.code == 2 && said.stderr.contains("other users can read it"), "{said:?}");
    std::fs::remove_file(&path).unwrap();
    let said = place.haft(&["tools", "sign", "greet.toml"]);
    assert!(said.code == 2 && said.stderr.contains("haft keys generate"), "{said:?}");
}

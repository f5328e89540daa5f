//! Tools that become others, come and go.

use super::world::World;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_changed_tool_is_not_called_until_accepted", changed),
        Trial::test("a_new_tool_is_not_there_until_accepted", new),
        Trial::test("changes_while_connected_are_noticed", while_connected),
        Trial::test("what_a_server_has_no_more_is_gone", gone),
        Trial::test("adding_again_shows_what_changed", added_again),
        Trial::test("what_a_person_set_stays", kept),
        Trial::test("a_list_that_changes_at_once_is_asked_for_again", eager),
    ]
}

fn changed() -> Result<(), Failed> {
    let world = World::new();
    world.script(json!({"echo": "Says it, and mails it to somebody"}));
    let refused = world.call("s__echo", &json!({"text": "a"}));
    assert_eq!(refused.json()["error"]["code"], "TOOL_DISABLED");
    assert!(refused.stderr.contains("mails it to somebody"), "the difference is shown: {refused:?}");
    // The others are as they were.
    assert_eq!(world.call("s__look", &json!({})).code, 0);
    let shown = world.place.haft(&["tools", "accept", "s__echo", "--show"]);
    assert!(shown.stdout.contains("mails it to somebody"), "{shown:?}");
    assert_eq!(world.call("s__echo", &json!({"text": "a"})).code, 3, "looking takes nothing");
    let accepted = world.place.haft(&["tools", "accept", "s__echo"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(world.call("s__echo", &json!({"text": "a"})).code, 0);
    Ok(())
}

fn new() -> Result<(), Failed> {
    let world = World::new();
    world.script(json!({"more": "extra"}));
    let said = world.call("s__look", &json!({}));
    assert_eq!(said.code, 0);
    assert!(said.stderr.contains("s__extra"), "{said:?}");
    assert_eq!(world.call("s__extra", &json!({})).json()["error"]["code"], "TOOL_NOT_FOUND");
    let listed = world.place.haft(&["tools", "list"]);
    assert!(listed.stdout.contains("haft tools accept NAME`: s__extra"), "{listed:?}");
    let again = world.call("s__look", &json!({}));
    assert!(!again.stderr.contains("s__extra"), "it is said once: {again:?}");
    let accepted = world.place.haft(&["tools", "accept", "--mcp", "s", "--json"]);
    assert_eq!(accepted.json()[0]["accepted"], "s__extra", "{accepted:?}");
    assert!(world.place.haft(&["tools", "show", "s__extra"]).stdout.contains("Was not there before"));
    assert_eq!(world.place.haft(&["tools", "accept", "--mcp", "s"]).code, 1);
    Ok(())
}

fn while_connected() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert_eq!(session.call("s__echo", json!({"text": "a"}))["content"][0]["text"], "a");
    assert_eq!(session.call("s__swap", json!({}))["content"][0]["text"], "swapped");
    let (code, text) = session.error("s__echo", json!({"text": "a"}));
    assert_eq!(code, "TOOL_DISABLED", "{text}");
    session.end();
    let waiting = world.place.haft(&["tools", "list"]).stdout;
    assert!(waiting.contains("accept NAME`: s__echo, s__extra"), "{waiting}");
    Ok(())
}

fn gone() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert!(session.names().contains(&"s__echo".to_owned()));
    world.script(json!({"noTools": true}));
    let refused = session.whole("tools/call", json!({"name": "s__echo", "arguments": {"text": "a"}}));
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("does not have this tool any more"),
        "{refused}"
    );
    let names = session.names();
    assert!(!names.iter().any(|name| name.starts_with("s__")), "{names:?}");
    session.end();
    // A person who adds the server again removes them for good.
    let said = world.add(&["--replace"]);
    assert!(said.stdout.contains("removed `s__echo`"), "{said:?}");
    assert!(!world.place.haft(&["tools", "list"]).stdout.contains("s__"));
    Ok(())
}

fn added_again() -> Result<(), Failed> {
    let world = World::new();
    assert_eq!(world.add(&[]).code, 2, "the names are taken");
    assert_eq!(world.add(&["--replace"]).code, 0, "nothing is other");
    world.script(json!({"echo": "Another one"}));
    let said = world.add(&["--replace"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.stderr.contains("Another one") && said.stderr.contains("haft tools accept s__echo"),
        "{said:?}"
    );
    assert_eq!(world.place.haft(&["tools", "accept", "s__echo"]).code, 0);
    assert_eq!(world.add(&["--replace"]).code, 0);
    // Another way to the server is another server: that is shown as well.
    let other = world.add(&["--replace", "--env", "CI"]);
    assert!(other.stderr.contains("/mcp/env"), "{other:?}");
    let removed = world.place.haft(&["tools", "remove", "--mcp", "s", "--json"]).json();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 14);
    assert_eq!(world.place.haft(&["tools", "remove", "--mcp", "s"]).code, 1);
    Ok(())
}

fn kept() -> Result<(), Failed> {
    let world = World::new();
    let mut exported = world.place.haft(&["tools", "export", "s__echo"]).json();
    exported["requiresConfirmation"] = json!(true);
    world.place.write("echo.json", exported.to_string());
    assert_eq!(world.place.haft(&["tools", "add", "echo.json", "--replace"]).code, 2);
    assert_eq!(world.place.haft(&["tools", "accept", "s__echo"]).code, 0);
    let asks = world.call("s__echo", &json!({"text": "a"}));
    assert_eq!(asks.code, 5, "{asks:?}");
    world.script(json!({"echo": "Another one"}));
    assert_eq!(world.add(&["--replace"]).code, 2);
    assert_eq!(world.place.haft(&["tools", "accept", "s__echo"]).code, 0);
    assert_eq!(world.call("s__echo", &json!({"text": "a"})).code, 5, "it still asks");
    Ok(())
}

/// Found with server-everything, which says so while its first list is on its way.
fn eager() -> Result<(), Failed> {
    let world = World::bare();
    world.script(json!({"eager": true}));
    assert_eq!(world.add(&[]).code, 0);
    for _ in 0..3 {
        assert_eq!(world.call("s__echo", &json!({"text": "a"})).code, 0);
    }
    Ok(())
}

//! Servers that end, and haft's own end: what calls are told, and that nothing is left.

use super::world::{World, processes};
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_server_that_dies_is_begun_again", dies),
        Trial::test("a_server_that_does_not_begin_is_left_alone_longer_each_time", does_not_begin),
        Trial::test("a_mute_server_is_given_up", mute),
        Trial::test("nothing_is_left_when_haft_is_killed", killed),
        Trial::test("nothing_is_left_of_what_a_server_started", lingering),
        Trial::test("nothing_is_left_when_the_server_is_killed", server_killed),
    ]
}

fn dies() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    let (code, text) = session.error("s__die", json!({}));
    assert_eq!(code, "OUTCOME_UNKNOWN", "{text}");
    assert!(world.wrote("effect") && text.contains("exit code 3") && text.contains("boom"), "{text}");
    // It ended right after it began, so it is left alone for half a second.
    let (code, text) = session.error("s__echo", json!({"text": "a"}));
    assert_eq!(code, "UPSTREAM_UNAVAILABLE", "{text}");
    assert!(text.contains("haft tries again in 1 s"), "{text}");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(session.call("s__echo", json!({"text": "b"}))["content"][0]["text"], "b");
    session.end();
    assert_eq!(world.processes(), 0);
    Ok(())
}

fn does_not_begin() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    world.script(json!({"dieAtStart": true}));
    let mut waits = Vec::new();
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        let answer = session.call("s__echo", json!({"text": "a"}));
        assert_eq!(answer["_meta"]["haft/error"]["code"], "UPSTREAM_UNAVAILABLE", "{answer}");
        if answer["content"][0]["text"].as_str().unwrap().contains("does not want to") {
            waits.push(Instant::now());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(world.wrote("began"));
    world.script(json!({}));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(session.call("s__echo", json!({"text": "b"}))["content"][0]["text"], "b");
    session.end();
    Ok(())
}

fn mute() -> Result<(), Failed> {
    let world = World::new();
    world.script(json!({"mute": true}));
    let said = world.place.haft(&["--set", "tools.mcp.connect_seconds=1", "call", "s__look", "--json"]);
    assert_eq!(said.json()["error"]["code"], "UPSTREAM_UNAVAILABLE", "{said:?}");
    assert!(world.none_left(Duration::from_secs(2)));
    Ok(())
}

fn killed() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert_eq!(session.call("s__echo", json!({"text": "a"}))["content"][0]["text"], "a");
    session.send("tools/call", json!({"name": "s__wait", "arguments": {"steps": 600}}));
    std::thread::sleep(Duration::from_millis(200));
    assert!(world.processes() >= 1);
    session.child.kill()?;
    session.child.wait()?;
    assert!(world.none_left(Duration::from_secs(5)), "{} are left", world.processes());
    Ok(())
}

fn lingering() -> Result<(), Failed> {
    let world = World::new();
    let marker = format!("98765.{}", std::process::id());
    let mut session = world.serve(&[]);
    let said = session.call("s__linger", json!({"marker": marker}));
    assert_eq!(said["content"][0]["text"], "left one", "{said}");
    assert!(processes(&marker) >= 1);
    let (code, _) = session.error("s__die", json!({}));
    assert_eq!(code, "OUTCOME_UNKNOWN");
    assert_eq!(processes(&marker), 0, "what a server left behind ended with it");
    session.end();
    Ok(())
}

fn server_killed() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert_eq!(session.call("s__echo", json!({"text": "a"}))["content"][0]["text"], "a");
    for entry in std::fs::read_dir("/proc")?.filter_map(Result::ok) {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if words.contains(&world.mark.as_bytes()) && words.contains(&&b"mcp-server"[..]) {
            let pid = entry.file_name().to_string_lossy().into_owned();
            std::process::Command::new("kill").args(["-9", &pid]).status()?;
        }
    }
    let (code, text) = session.error("s__echo", json!({"text": "a"}));
    assert!(["UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN"].contains(&code.as_str()), "{code} {text}");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(session.call("s__echo", json!({"text": "b"}))["content"][0]["text"], "b");
    session.end();
    assert_eq!(world.processes(), 0);
    Ok(())
}

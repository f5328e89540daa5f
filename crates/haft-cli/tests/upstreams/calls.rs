//! Calls: what arrives, what is refused, what holds a server in.

use super::world::World;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_server_runs_in_a_jail", in_a_jail),
        Trial::test("variables_are_granted_by_name", variables),
        Trial::test("metadata_of_a_call_reaches_the_server", metadata),
        Trial::test("answers_of_every_kind_arrive", answers),
        Trial::test("policy_decides_about_its_tools", policy),
        Trial::test("one_server_serves_many_calls", one_server),
        Trial::test("questions_of_a_server_are_declined", questions),
        Trial::test("progress_and_cancelling_pass_through", progress),
        Trial::test("hostile_answers_are_errors", hostile),
        Trial::test("a_server_that_asks_and_reads_nothing_is_ended", pesters),
        Trial::test("a_long_list_is_searched_instead", searched),
        Trial::test("every_attempt_is_held_in_alike", attempts),
    ]
}

fn metadata() -> Result<(), Failed> {
    let world = World::new();
    let call =
        ["call", "s__look", "--args", r#"{"meta": true}"#, "--id", "call_7", "--metadata", r#"{"trace": 7}"#];
    let said = world.place.haft(&call);
    let meta: Value = serde_json::from_str(said.stdout.trim())?;
    assert_eq!(
        (&meta["haft/callId"], &meta["haft/metadata"]),
        (&json!("call_7"), &json!({"trace": 7})),
        "{said:?}"
    );
    assert!(meta.get("haft/context").is_none(), "{said:?}");
    Ok(())
}

fn in_a_jail() -> Result<(), Failed> {
    let world = World::new();
    let outside = std::net::TcpListener::bind("127.0.0.1:0")?;
    let state = world.place.home().join(".local/state/haft/haft.db");
    assert!(state.exists());
    let said = world.call("s__look", &json!({"state": state, "port": outside.local_addr()?.port()}));
    let result = said.json();
    let seen: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap())?;
    assert_eq!(seen["state"], false, "haft's own state is out of reach");
    assert_eq!(seen["shadow"], false);
    assert_eq!(seen["connects"], false, "there is no network");
    assert!(seen["pid"].as_u64().unwrap() < 100, "it has processes of its own: {seen}");
    assert_eq!(result["metadata"]["enforcement"]["level"], "Strict");
    assert!(world.wrote("ended-in-order"), "its input ended first");
    assert_eq!(world.processes(), 0);
    Ok(())
}

fn variables() -> Result<(), Failed> {
    let world = World::bare();
    assert_eq!(world.add(&["--env", "HAFT_TEST_GRANTED"]).code, 0);
    let mut command = world.place.program(&["call", "s__look", "--json"]);
    command.env("HAFT_TEST_SECRET", "no").env("HAFT_TEST_GRANTED", "yes");
    let said = super::support::Said::of(command.output()?);
    let seen: Value = serde_json::from_str(said.json()["content"][0]["text"].as_str().unwrap())?;
    assert_eq!((&seen["variable"], &seen["granted"]), (&Value::Null, &json!("yes")));
    let refused = World::bare().add(&["--host", "example.com"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("tools.commands.hosts"), "{refused:?}");
    Ok(())
}

fn answers() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    let echoed = session.call("s__echo", json!({"text": "hello"}));
    assert_eq!(echoed["structuredContent"], json!({"echo": "hello"}));
    assert_eq!(echoed["content"][0]["text"], "hello");
    assert_ne!(echoed["isError"], true);

    let (code, text) = session.error("s__echo", json!({"text": "lie"}));
    assert_eq!(code, "OUTPUT_VALIDATION_FAILED", "{text}");
    let (code, text) = session.error("s__echo", json!({"text": [5]}));
    assert_eq!(code, "VALIDATION_FAILED", "{text}");
    let (code, text) = session.error("s__fail", json!({}));
    assert_eq!((code.as_str(), text.as_str()), ("EXECUTION_FAILED", "s__fail failed: no such city"));

    let shown = session.call("s__picture", json!({}));
    let kinds: Vec<&Value> = shown["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["text", "image"], "{shown}");
    session.end();
    Ok(())
}

fn policy() -> Result<(), Failed> {
    let world = World::new();
    world.place.own_config("");
    let waits = world.call("s__echo", &json!({"text": "a"}));
    assert_eq!(waits.code, 5, "a server that calls its tool read-only is not believed: {waits:?}");
    assert!(!world.wrote("began") || std::fs::remove_file(world.place.work().join("began")).is_ok());
    world.place.own_config("[tools.approval]\nmode = \"auto\"\ndenylist = [\"s__echo\"]\n");
    let denied = world.call("s__echo", &json!({"text": "a"}));
    assert_eq!(denied.json()["error"]["code"], "TOOL_DENIED");
    assert!(!world.wrote("began"), "what is denied begins nothing");
    let late =
        world.place.haft(&["call", "s__wait", "--timeout", "1s", "--json", "--args", "{\"steps\": 50}"]);
    assert_eq!(late.json()["error"]["code"], "TIMEOUT", "{late:?}");
    let audit = world.place.haft(&["audit", "query", "--json"]);
    assert!(audit.stdout.contains("s__wait") && audit.stdout.contains("s__echo"), "{audit:?}");
    Ok(())
}

fn one_server() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert_eq!(world.processes(), 0, "nothing is begun before it is needed");
    for text in ["a", "b", "c"] {
        assert_eq!(session.call("s__echo", json!({"text": text}))["content"][0]["text"], text);
        // The jail's own process may carry the same words.
        assert!(world.processes() >= 1);
    }
    let count = world.processes();
    let ids: Vec<u64> = (0..8)
        .map(|n| {
            session.send("tools/call", json!({"name": "s__echo", "arguments": {"text": format!("{n}")}}))
        })
        .collect();
    let mut texts: Vec<String> = Vec::new();
    while texts.len() < ids.len() {
        let message = session.next();
        if ids.iter().any(|id| message["id"] == *id) {
            texts.push(message["result"]["content"][0]["text"].as_str().unwrap().to_owned());
        }
    }
    texts.sort();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(world.processes(), count, "all of them shared one");
    session.end();
    assert_eq!(world.processes(), 0);
    Ok(())
}

fn questions() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert_eq!(session.call("s__ask", json!({}))["content"][0]["text"], "\"decline\"");
    let said = session.call("s__sample", json!({}))["content"][0]["text"].to_string();
    assert!(said.contains("haft lends no model"), "{said}");
    session.end();
    Ok(())
}

fn progress() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    let id = session.send(
        "tools/call",
        json!({"name": "s__wait", "arguments": {"steps": 3}, "_meta": {"progressToken": "mine"}}),
    );
    let mut messages = Vec::new();
    loop {
        let message = session.next();
        if message["id"] == id {
            assert_eq!(message["result"]["content"][0]["text"], "done");
            break;
        }
        messages.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
    }
    assert!(messages.iter().any(|message| message.contains("step 2")), "{messages:?}");

    let id = session.send("tools/call", json!({"name": "s__wait", "arguments": {"steps": 600}}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    session.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
    // The next call answers, so the server is still there, and has heard of it.
    assert_eq!(session.call("s__echo", json!({"text": "x"}))["content"][0]["text"], "x");
    for _ in 0..100 {
        if world.wrote("cancelled") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(world.wrote("cancelled"));
    session.end();
    Ok(())
}

fn hostile() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    let (code, text) = session.error("s__nonsense", json!({}));
    assert_eq!(code, "OUTPUT_VALIDATION_FAILED", "{text}");
    // A long answer is cut as any output is.
    let long = session.call("s__huge", json!({"bytes": 1_000_000}));
    assert!(long["content"][0]["text"].as_str().unwrap().len() < 200_000);
    assert_ne!(long["isError"], true);
    // One that is longer than a message may be is not taken; the server stays.
    let id = session.send("tools/call", json!({"name": "s__huge", "arguments": {"bytes": 17_000_000}}));
    assert_eq!(session.call("s__echo", json!({"text": "x"}))["content"][0]["text"], "x");
    session.notify("notifications/cancelled", json!({"requestId": id}));
    // One that never stops is ended by its size or by its deadline, and takes nobody along.
    let flooded = world.place.haft(&["call", "s__flood", "--timeout", "3s", "--json"]);
    let code = flooded.json()["error"]["code"].as_str().unwrap().to_owned();
    assert!(["TIMEOUT", "OUTCOME_UNKNOWN"].contains(&code.as_str()), "{flooded:?}");
    session.end();
    assert!(world.none_left(std::time::Duration::from_secs(2)));
    Ok(())
}

/// Kilobytes that a process has in memory.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default().to_owned();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0)
}

fn pesters() -> Result<(), Failed> {
    let world = World::new();
    let mut session = world.serve(&[]);
    assert_eq!(session.call("s__echo", json!({"text": "x"}))["content"][0]["text"], "x");
    let before = resident(session.pid());
    let begun = std::time::Instant::now();
    let (code, text) = session.error("s__pester", json!({}));
    assert_eq!(code, "OUTCOME_UNKNOWN", "{text}");
    assert!(
        text.contains("does not read the answers") || text.contains("asks more than is answered"),
        "{text}"
    );
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    let grown = resident(session.pid()).saturating_sub(before);
    // What a server said and nobody has read yet may be 64 MiB; its answers are nothing beside that.
    assert!(grown < 96 << 10, "it grew by {grown} kB");
    assert!(world.none_left(std::time::Duration::from_secs(5)), "and the server is gone");
    // Others go on, and the server is there again for the next call.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while session.call("s__echo", json!({"text": "y"}))["content"][0]["text"] != "y" {
        assert!(std::time::Instant::now() < until, "it was not begun again");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    session.end();
    Ok(())
}

fn searched() -> Result<(), Failed> {
    let world = World::new();
    world.place.own_config("[tools]\nmax_listed = 10\n[tools.approval]\nmode = \"auto\"\n");
    let mut session = world.serve(&[]);
    let names = session.names();
    assert!(names.iter().all(|name| !name.starts_with("s__")), "{names:?}");
    assert!(names.contains(&"search_tools".to_owned()) && names.contains(&"call_tool".to_owned()));
    let found = session.call("search_tools", json!({"query": "says what it is told"}));
    assert!(found["content"][0]["text"].as_str().unwrap().contains("s__echo"), "{found}");
    let called = session.call("call_tool", json!({"name": "s__echo", "arguments": {"text": "through"}}));
    assert!(called["content"][0]["text"].as_str().unwrap().contains("through"), "{called}");
    // By its own name it is there, too.
    assert_eq!(session.call("s__echo", json!({"text": "by name"}))["content"][0]["text"], "by name");
    session.end();
    let exported = world.place.haft(&["tools", "export", "--dialect", "openai-chat"]);
    assert!(
        !exported.stdout.contains("s__echo") && exported.stderr.contains("tools.max_listed"),
        "{exported:?}"
    );
    let named = world.place.haft(&["tools", "export", "--dialect", "openai-chat", "s__echo"]);
    assert!(named.stdout.contains("s__echo"), "{named:?}");
    world.place.own_config("[tools]\nmax_listed = 10\n[tools.approval]\nmode = \"auto\"\ndenylist = []\n");
    assert_eq!(world.place.haft(&["tools", "disable", "search_tools"]).code, 0);
    let mut session = world.serve(&[]);
    assert!(session.names().contains(&"s__echo".to_owned()), "without a search everything is listed");
    session.end();
    Ok(())
}

/// A tool that its owner says changes nothing, of a server that writes all the same, and dies where it cannot.
fn attempts() -> Result<(), Failed> {
    let world = World::new();
    let control = world.call("s__die", &json!({}));
    assert!(world.wrote("effect"), "the control: {control:?}");
    std::fs::remove_file(world.place.work().join("effect"))?;
    let exported = world.place.haft(&["tools", "export", "s__die"]);
    let mut definition: Value = serde_json::from_str(&exported.stdout)?;
    definition["constraints"]["allowSideEffects"] = json!(false);
    world.place.write("die.tool.json", definition.to_string());
    let removed = world.place.haft(&["tools", "remove", "s__die"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    let added = world.place.haft(&["tools", "add", "die.tool.json"]);
    assert_eq!(added.code, 0, "{added:?}");
    let said = world.place.haft(&["call", "s__die", "--attempt-timeout", "3s", "--timeout", "30s", "--json"]);
    let result = said.json();
    assert!(!world.wrote("effect"), "an attempt wrote: {said:?}");
    assert!(result["metadata"]["attempts"].as_u64().unwrap() > 1, "{said:?}");
    let records = result["metadata"]["attemptRecords"].as_array().unwrap();
    for attempt in records {
        assert_eq!(attempt["enforcement"]["level"], "Strict", "{said:?}");
    }
    assert_eq!(world.processes(), 0);
    Ok(())
}

//! `@modelcontextprotocol/server-everything`, which nobody here wrote: in a jail, through the real program.

use super::support::Place;
use super::world::Session;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("server_everything_in_a_jail", everything)]
}

fn everything() -> Result<(), Failed> {
    let Some(kit) = haft_testkit::mcp_kit() else {
        haft_testkit::not_run(
            "server_everything_in_a_jail",
            "the programs of others are not installed: `cargo xtask test` does that",
        );
        return Ok(());
    };
    let server = kit.modules.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    if !server.is_file() {
        haft_testkit::not_run(
            "server_everything_in_a_jail",
            "server-everything is not installed: `cargo xtask test` does that",
        );
        return Ok(());
    }
    let place = Place::new();
    place.own_config("[tools.approval]\nmode = \"auto\"\n");
    let node = kit.node.canonicalize()?;
    let modules = kit.modules.join("node_modules");
    let (node, modules, server) =
        (node.to_str().unwrap(), modules.to_str().unwrap(), server.to_str().unwrap());
    let added =
        place.haft(&["tools", "add", "--mcp", "every", "--file", modules, "--", node, server, "stdio"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(added.stdout.contains("every__echo"), "{added:?}");

    let mut session = Session::start(&mut place.program(&["mcp"]));
    let names: Vec<String> = session.names().into_iter().filter(|name| name.starts_with("every__")).collect();
    assert!(names.len() >= 8, "{names:?}");
    let echoed = session.call("every__echo", json!({"message": "hello"}));
    assert!(echoed["content"][0]["text"].as_str().unwrap().contains("hello"), "{echoed}");
    let sum = session.call("every__get_sum", json!({"a": 2, "b": 3}));
    assert!(sum["content"][0]["text"].as_str().unwrap().contains('5'), "{sum}");
    let picture = session.call("every__get_tiny_image", json!({}));
    assert!(picture["content"].as_array().unwrap().iter().any(|part| part["type"] == "image"), "{picture}");
    let structured = session.call("every__get_structured_content", json!({"location": "New York"}));
    assert!(structured["structuredContent"]["temperature"].is_number(), "{structured}");
    let (code, _) = session.error("every__get_sum", json!({"a": "two", "b": 3}));
    assert_eq!(code, "VALIDATION_FAILED");

    let id = session.send(
        "tools/call",
        json!({"name": "every__trigger_long_running_operation",
        "arguments": {"duration": 1, "steps": 4}, "_meta": {"progressToken": "p"}}),
    );
    let mut progress = 0;
    loop {
        let message = session.next();
        if message["id"] == id {
            assert_ne!(message["result"]["isError"], true, "{message}");
            break;
        }
        progress += usize::from(message["method"] == "notifications/progress");
    }
    assert!(progress >= 3, "{progress} times");
    session.end();
    Ok(())
}

//! `tool.invoke` of seeds/002, with the real program and real commands.

use crate::{
    serve::{listening, state, talk},
    stop::Running,
    support::Place,
};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;

/// Sends one invocation to the owner's own socket.
fn invoke(place: &Place, command: &str, timeout_seconds: u32) -> Value {
    let body = json!({
        "invocation_id": "0b8f5b5e-8a5b-4d53-9d1f-3f6f0f6f9d11",
        "tool_id": "Bash",
        "parameters": {"command": command},
        "resource_limits": {"timeout_seconds": timeout_seconds},
    });
    let socket = UnixStream::connect(state(place).join("haft.sock")).expect("it listens");
    let (_, answer) = talk(socket, "/v1/tool.invoke", None, Some(&body.to_string()));
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// ToolInvokeResponse, result: what a tool gave reaches its caller also where it failed.
#[test]
fn l03_a_failed_tool_gives_its_output_beside_its_error() {
    let place = Place::new();
    place.own_config("[tools.approval]\nmode = 'auto'\ndenylist = []\n[tools.commands]\nask = 'never'\n");
    let (server, _) = listening(Running::program(&place, &["serve", "--listen", "127.0.0.1:0"]));
    let fails = "echo seen-on-stdout; echo seen-on-stderr >&2; exit 7";
    let said = invoke(&place, fails, 30);
    if said["error"]["code"] == "E3101" {
        let why = said["error"]["message"].to_string();
        return haft_testkit::not_run("l03_a_failed_tool_gives_its_output_beside_its_error", &why);
    }
    assert_eq!((&said["status"], &said["error"]["code"]), (&json!("error"), &json!("E3108")), "{said}");
    assert_eq!(said["error"]["details"]["code"], "NON_ZERO_EXIT", "{said}");
    for stream in ["seen-on-stdout", "seen-on-stderr"] {
        assert!(said["result"].to_string().contains(stream), "{stream}: {said}");
    }
    // What a command put out before its time was over is there, too.
    let late = invoke(&place, "echo before-the-end; sleep 60", 2);
    assert_eq!((&late["status"], &late["error"]["code"]), (&json!("timeout"), &json!("E3103")), "{late}");
    assert!(late["result"].to_string().contains("before-the-end"), "{late}");
    // One that gave nothing has no result, and one that worked has no error.
    let silent = invoke(&place, "exit 3", 30);
    assert_eq!(silent["error"]["code"], "E3108", "{silent}");
    assert!(!silent["result"].to_string().contains("seen"), "{silent}");
    let worked = invoke(&place, "echo fine", 30);
    assert!(worked["error"].is_null() && worked["result"].to_string().contains("fine"), "{worked}");
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

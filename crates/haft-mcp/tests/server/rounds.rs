//! Tools that ask their client, and folders that a client works in.

use super::support::*;
use haft::{Haft, ToolCtx, ToolError, tool_fn};
use haft_mcp::server::Client;
use serde_json::json;

fn asking() -> Haft {
    let greet = tool_fn("greet", async |_: Given, _: ToolCtx| -> Result<String, ToolError> {
        let client = Client::current().ok_or_else(|| ToolError::failed("nobody to ask"))?;
        let schema =
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let questions = [("name".to_owned(), Client::form("Who are you?", schema)?)];
        let answers = client.ask_keeping(questions.into(), Some(json!({"n": 1}))).await?;
        Ok(format!("Hello, {}", answers["name"]["content"]["name"].as_str().unwrap_or("?")))
    });
    Haft::builder()
        .without_builtins()
        .tool(greet.read_only().define(described))
        .tools(tools())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_tool_asks_its_client_the_same_way_in_every_revision() {
    for version in LEGACY {
        let mut wire = Wire::new(&server(asking()).build(), version, json!({"elicitation": {}})).await;
        let id = wire.request("tools/call", json!({"name": "greet"})).await;
        let question = wire.line().await;
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        wire.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
        assert_eq!(wire.answer(id).await.0["result"]["content"][0]["text"], "Hello, Ada", "{version}");
    }
    let mut wire = Wire::new(&server(asking()).build(), STATELESS, json!({"elicitation": {}})).await;
    let first = wire.ask("tools/call", json!({"name": "greet"})).await["result"].clone();
    assert_eq!(first["inputRequests"]["name"]["params"]["message"], "Who are you?");
    let answers =
        json!({"name": {"action": "accept", "content": {"name": "Ada"}}, "more": {"action": "cancel"}});
    let call = json!({"name": "greet", "requestState": first["requestState"], "inputResponses": answers});
    assert_eq!(wire.ask("tools/call", call).await["result"]["content"][0]["text"], "Hello, Ada");
}

#[tokio::test]
async fn a_client_that_cannot_answer_is_told_what_it_lacks() {
    for version in LEGACY.into_iter().chain([STATELESS]) {
        let mut wire = Wire::new(&server(asking()).build(), version, json!({})).await;
        let answer = wire.ask("tools/call", json!({"name": "greet"})).await;
        assert_eq!(answer["error"]["code"], -32021, "{version}: {answer}");
    }
}

#[tokio::test]
async fn without_an_mcp_client_there_is_none() {
    let result = asking().execute(haft::ToolCall::new("greet", json!({}))).await;
    assert!(result.text().contains("nobody to ask"), "{}", result.text());
}

/// Says which folders its call keeps to.
fn telling() -> Haft {
    let tell = tool_fn("tell", async |_: Given, cx: ToolCtx| -> Result<String, ToolError> {
        Ok(cx.context().roots.as_ref().map_or_else(|| "any".to_owned(), |roots| roots.join(", ")))
    });
    Haft::builder()
        .without_builtins()
        .tool(tell.read_only().define(described))
        .repeat_guard(None)
        .build()
        .unwrap()
}

#[tokio::test]
async fn folders_of_a_client_are_asked_for_before_its_first_call_and_again_when_they_change() {
    let roots = |name: &str| json!({"roots": [{"uri": format!("file:///work/{name}%20b")}, {"uri": "https://elsewhere/"}]});
    for version in LEGACY {
        let mut wire =
            Wire::new(&server(telling()).build(), version, json!({"roots": {"listChanged": true}})).await;
        for name in ["a", "c"] {
            let call = wire.request("tools/call", json!({"name": "tell", "arguments": {}})).await;
            let question = wire.line().await;
            assert_eq!(question["method"], "roots/list", "nothing runs before they are known");
            wire.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": roots(name)})).await;
            let (told, _) = wire.answer(call).await;
            assert_eq!(told["result"]["content"][0]["text"], format!("/work/{name} b"), "{told}");
            let told = wire.call("tell", json!({})).await;
            assert_eq!(told["result"]["content"][0]["text"], format!("/work/{name} b"), "asked once");
            wire.send(json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;
        }
    }
    let mut wire = Wire::new(&server(telling()).build(), STATELESS, json!({"roots": {}})).await;
    let first = wire.call("tell", json!({})).await["result"].clone();
    assert_eq!(first["inputRequests"]["haft_roots"]["method"], "roots/list", "{first}");
    let call = json!({"name": "tell", "arguments": {}, "inputResponses": {"haft_roots": roots("a")}});
    assert_eq!(wire.ask("tools/call", call).await["result"]["content"][0]["text"], "/work/a b");
    let again = wire.call("tell", json!({})).await;
    assert_eq!(again["result"]["content"][0]["text"], "/work/a b", "asked once");
    // A client that has no folders is kept to none.
    let mut wire = Wire::new(&server(telling()).build(), STATELESS, json!({})).await;
    assert_eq!(wire.call("tell", json!({})).await["result"]["content"][0]["text"], "any");
}

//! `tools/call`, in every revision.

use super::support::*;
use haft::CallContext;
use haft_mcp::server::{Callers, McpServer};
use serde_json::{Value, json};

fn revisions() -> impl Iterator<Item = &'static str> {
    LEGACY.into_iter().chain([STATELESS])
}

#[tokio::test]
async fn a_call_is_answered_with_text_structure_and_its_walk() {
    if said_without_schemas("a_call_is_answered_with_text_structure_and_its_walk") {
        return;
    }
    for version in revisions() {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        let result = wire.call("echo", json!({"text": "hi"})).await["result"].clone();
        assert_eq!(result["content"], json!([{"type": "text", "text": "hi"}]), "{version}");
        assert_eq!(result["structuredContent"], json!({"said": "hi"}), "{version}");
        assert_ne!(result["isError"], true);
        assert!(result["_meta"]["haft/executionId"].as_str().unwrap().len() > 30);
        assert_eq!(result.get("resultType").is_some(), version == STATELESS, "{version}");
    }
}

#[tokio::test]
async fn absent_arguments_are_none() {
    for version in revisions() {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        let answer = wire.ask("tools/call", json!({"name": "echo"})).await;
        assert_eq!(answer["result"]["structuredContent"]["said"], "nothing", "{version}");
    }
}

#[tokio::test]
async fn a_value_that_is_no_object_is_structured_where_the_revision_has_that() {
    for version in revisions() {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        let result = wire.call("number", json!({})).await["result"].clone();
        assert_eq!(result["content"][0]["text"], "42");
        let expected = if version == STATELESS { json!(42) } else { Value::Null };
        assert_eq!(result["structuredContent"], expected, "{version}");
    }
}

#[tokio::test]
async fn parts_and_long_outputs_reach_the_client() {
    for version in revisions() {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        let parts = wire.call("parts", json!({})).await["result"]["content"].clone();
        let kinds: Vec<_> = parts.as_array().unwrap().iter().map(|part| part["type"].clone()).collect();
        assert_eq!(kinds, ["text", "image", "resource"], "{version}");

        let long = wire.call("long", json!({})).await["result"].clone();
        assert!(long["content"][0]["text"].as_str().unwrap().len() < 110_000);
        let link = long["content"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((link["type"].as_str(), link["size"].as_u64()), (Some("resource_link"), Some(300_000)));
        let whole = wire.ask("resources/read", json!({"uri": link["uri"]})).await;
        assert_eq!(whole["result"]["contents"][0]["text"].as_str().unwrap().len(), 300_000, "{version}");
        let part = format!("{}?offset=299995&length=100", link["uri"].as_str().unwrap());
        let part = wire.ask("resources/read", json!({"uri": part})).await;
        assert_eq!(part["result"]["contents"][0]["text"], "56789");
    }
}

#[tokio::test]
async fn errors_are_answers_that_a_model_can_read() {
    for version in revisions() {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        let wrong = wire.ask("tools/call", json!({"name": "no_such_tool", "arguments": {}})).await;
        assert_eq!(wrong["error"]["code"], -32602, "{version}");
        assert_eq!(wrong["error"]["data"]["haft/error"]["code"], "TOOL_NOT_FOUND");
        let open = wire.call("deploy", json!({})).await["result"].clone();
        assert_eq!(open["isError"], true);
        let error = &open["_meta"]["haft/error"];
        assert_eq!(error["code"], "CONFIRMATION_REQUIRED");
        let id = error["data"]["approvalId"].as_str().unwrap();
        assert!(open["content"].to_string().contains(id), "a model can tell a person the id: {open}");
        assert!(open.get("structuredContent").is_none());
    }
}

#[tokio::test]
async fn parameters_of_another_shape_are_named_as_such() {
    for version in revisions() {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        for wrong in [
            json!({"name": 5}),
            json!({"arguments": {}}),
            json!({"name": "echo", "arguments": [1]}),
            json!({"name": "echo", "arguments": "{}"}),
        ] {
            let answer = wire.ask("tools/call", wrong.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{version} {wrong}: {answer}");
        }
        assert_eq!(wire.ask("nothing/known", json!({})).await["error"]["code"], -32601, "{version}");
    }
}

#[tokio::test]
async fn progress_and_warnings_are_told_and_a_cancelled_call_ends() {
    for version in revisions() {
        let haft = haft();
        let mut wire = Wire::new(&server(haft.clone()).build(), version, json!({})).await;
        let mut meta = json!({"progressToken": "p1"});
        if version == STATELESS {
            meta["io.modelcontextprotocol/logLevel"] = json!("warning");
        } else {
            wire.ask("logging/setLevel", json!({"level": "warning"})).await;
        }
        let id = wire.request("tools/call", json!({"name": "slow", "arguments": {}, "_meta": meta})).await;
        let mut seen = Vec::new();
        let mut warned = false;
        while !warned || seen.len() < 3 {
            let line = wire.line().await;
            match line["method"].as_str() {
                Some("notifications/progress") => {
                    assert_eq!(line["params"]["progressToken"], "p1");
                    seen.push(line["params"]["progress"].as_f64().unwrap());
                }
                Some("notifications/message") => {
                    assert_eq!(line["params"]["level"], "warning");
                    warned = true;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
        assert_eq!(haft.running(), 1);
        wire.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}}))
            .await;
        while haft.running() > 0 {
            tokio::task::yield_now().await;
        }
        // No answer comes for it: the next line is that of the next request.
        let next = wire.request("tools/call", json!({"name": "echo", "arguments": {}})).await;
        assert_eq!(wire.line().await["id"], next, "{version}");
        let records = haft.store().for_tenant("local").audit(10).await.unwrap();
        let record = records.iter().find(|record| &*record.tool == "slow").unwrap();
        assert_eq!(record.status, haft::Status::Cancelled);
        assert_eq!(&*record.context.agent, "mcp:tester");
    }
}

#[tokio::test]
async fn a_client_that_goes_takes_its_calls_along() {
    let haft = haft();
    let mut wire = Wire::new(&server(haft.clone()).build(), "2025-11-25", json!({})).await;
    wire.request("tools/call", json!({"name": "slow", "arguments": {}})).await;
    while haft.running() == 0 {
        tokio::task::yield_now().await;
    }
    drop(wire);
    let gone = async {
        while haft.running() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(15), gone).await.expect("the call ended");
}

#[tokio::test]
async fn who_is_not_known_is_refused() {
    let server = McpServer::builder(haft().into_engine(), Callers::PerRequest).build();
    let mut wire = Wire::new(&server, STATELESS, json!({})).await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "echo"})),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "haft://tools/echo"})),
        ("resources/templates/list", json!({})),
    ] {
        assert_eq!(wire.ask(method, params).await["error"]["code"], -32600, "{method}");
    }
}

#[tokio::test]
async fn the_conversation_and_the_idempotency_key_come_from_the_request() {
    let haft = haft();
    let server = McpServer::builder(haft.clone().into_engine(), Callers::One(CallContext::owner())).build();
    let mut wire = Wire::new(&server, STATELESS, json!({})).await;
    let meta = json!({"haft/conversation": "talk-7", "haft/idempotencyKey": "k"});
    let call = json!({"name": "echo", "arguments": {"text": "a"}, "_meta": meta});
    let first = wire.ask("tools/call", call.clone()).await;
    assert_eq!(wire.ask("tools/call", call).await["result"]["content"], first["result"]["content"]);
    let other = json!({"name": "echo", "arguments": {"text": "b"}, "_meta": meta});
    let conflict = wire.ask("tools/call", other).await;
    assert_eq!(conflict["result"]["_meta"]["haft/error"]["code"], "IDEMPOTENCY_CONFLICT");
    let records = haft.store().for_tenant("local").audit(10).await.unwrap();
    assert!(records.iter().all(|record| record.context.conversation.as_deref() == Some("talk-7")));
}

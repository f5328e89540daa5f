//! What is sent against the schemas of the document, which are made of the types that are sent.

use crate::support::{problems, world};
use axum::http::StatusCode;
use haft_core::ToolResult;
use serde_json::{Value, json};

fn described(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A result with everything that one can hold.
fn whole() -> Value {
    let enforcement = json!({"level": "Strict", "jail": "namespaces", "details": {"network": "none"}});
    let metrics = json!({"peakMemoryBytes": 1, "cpuTimeMs": 1.5, "wallTimeMs": 2.5, "bytesRead": 1, "bytesWritten": 1,
        "filesystemOperations": 1, "networkRequests": 1, "networkBytesReceived": 1, "networkBytesSent": 1});
    let id = "0197a1b0-0000-7000-8000-000000000000";
    let at = "2026-01-02T03:04:05Z";
    json!({
        "callId": "a", "tool": "t", "status": "Failed", "output": {"any": ["thing"]},
        "content": [
            {"type": "text", "text": "x"},
            {"type": "image", "data": "eA==", "mimeType": "image/png"},
            {"type": "audio", "data": "eA==", "mimeType": "audio/wav"},
            {"type": "resource", "uri": "file:///x", "mimeType": "text/plain", "text": "x", "blob": "eA=="},
        ],
        "error": {"code": "TIMEOUT", "number": "E3003", "message": "late", "retryable": true, "data": {"any": 1},
            "problems": [{"pointer": "/a", "rule": "type", "message": "wrong"}]},
        "metadata": {
            "executionId": id, "batchId": id, "batchIndex": 1, "startedAt": at, "completedAt": at, "durationMs": 0.25,
            "attempts": 2, "outputSize": 3, "outputTruncated": true, "outputHandle": "out_1",
            "attemptRecords": [{"number": 1, "code": "TIMEOUT", "enforcement": enforcement, "sandboxId": "s",
                "metrics": metrics}],
            "scheduling": {"queueWaitMs": 1.5, "failedTries": [{"code": "TIMEOUT", "delayMs": 2.0}],
                "cache": {"executionId": id, "ageMs": 3.0, "shared": true}, "adaptiveTimeoutMs": 4.0,
                "repeatedFailures": 5},
            "sandboxId": "s", "enforcement": enforcement, "metrics": metrics,
            "violations": [{"type": "UnauthorizedFileAccess", "resource": "/x", "description": "no", "timestamp": at,
                "wasBlocked": true}],
            "sideEffects": [{"type": "Created", "resource": "x", "description": "made", "previousValue": "sha",
                "newValue": "sha", "timestamp": at, "isReversible": true}],
            "coercions": ["/a"], "correlationId": "c",
        },
    })
}

#[test]
fn a_result_with_everything_in_it_is_described() {
    let result = whole();
    let read: ToolResult = serde_json::from_value(result.clone()).unwrap();
    let sent = serde_json::to_value(&read).unwrap();
    assert_eq!(sent, result, "nothing of it is unknown to haft");
    assert_eq!(problems(described("ToolResult"), &sent), [""; 0]);
    assert_eq!(problems(described("ResultMetadata"), &sent["metadata"]), [""; 0]);
}

/// The control: the document is strict enough to tell a renamed member, a missing one, and a wrong one.
#[test]
fn what_is_not_sent_like_that_is_not_described() {
    for (member, value) in [("callID", json!("a")), ("status", json!("Fine")), ("metadata", json!({}))] {
        let mut result = whole();
        result[member] = value;
        assert!(!problems(described("ToolResult"), &result).is_empty(), "{member}");
    }
    let mut result = whole();
    result["metadata"]["scheduling"]["queueWait"] = json!("PT1S");
    assert!(!problems(described("ToolResult"), &result).is_empty());
}

/// Every answer is held against the document where it is received; here are those of each kind of thing.
#[tokio::test]
async fn real_answers_are_described() {
    let world = world().await;
    let echo = json!({"name": "echo", "arguments": {"text": "a"}});
    let batch = json!({"calls": [echo, {"name": "fails"}, {"name": "absent"}]});
    assert_eq!(world.post(&world.invoker, "/v1/batch", batch).await.status, StatusCode::OK);
    let flow = json!({"name": "one", "description": "One call",
        "nodes": [{"name": "first", "tool": "echo", "arguments": {"text": "a"}}]});
    let ended = world.post(&world.invoker, "/v1/flow", json!({"flow": flow})).await;
    assert_eq!(ended.status, StatusCode::OK, "{}", ended.text());
    let detached = json!({"name": "echo", "arguments": {"text": "a"}, "options": {"detached": true}});
    let task = world.post(&world.invoker, "/v1/invoke", detached).await.json();
    assert!(task["pollAfterMs"].is_u64(), "{task}");
    let path = format!("/v1/tasks/{}?wait=60", task["taskId"].as_str().unwrap());
    assert_eq!(world.get(&world.invoker, &path).await.json()["state"], "completed");
    assert_eq!(world.get(&world.invoker, "/v1/tasks").await.json()["tasks"].as_array().unwrap().len(), 1);
    let asked = json!({"name": "echo", "arguments": {"text": "a"}, "options": {"requireConfirmation": true}});
    let plan = world.post(&world.invoker, "/v1/plan", asked).await.json();
    assert_eq!(plan["decision"], "needs_approval", "{plan}");
    let plan = world.post(&world.invoker, "/v1/plan", json!({"name": "absent", "id": "mine"})).await.json();
    assert_eq!((&plan["decision"], &plan["callId"]), (&json!("refused"), &json!("mine")), "{plan}");
    assert_eq!(plan["error"]["code"], plan["code"], "{plan}");
    for path in ["/v1/approvals", "/v1/audit", "/v1/executions", "/v1/sandboxes", "/v1/grants"] {
        assert_eq!(world.get(&world.approver, path).await.status, StatusCode::OK, "{path}");
    }
}

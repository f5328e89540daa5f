//! `tool.invoke` as `seeds/002` has it: the request as it stands there, and an answer of one shape for every end.

use crate::support::{World, world};
use axum::http::header;
use serde_json::{Value, json};

/// What the documents of the platform send.
fn request(tool: &str, parameters: Value) -> Value {
    json!({
        "invocation_id": "0b8f5b5e-8a5b-4d53-9d1f-3f6f0f6f9d11",
        "tool_id": tool,
        "parameters": parameters,
        "agent_context": {"agent_did": "did:agent:abc123", "tenant_id": "acme", "session_id": "session-456"},
        "resource_limits": {"timeout_seconds": 30},
        "execution_options": {"async_mode": false},
    })
}

async fn invoke(world: &World, body: Value) -> (u16, Value) {
    let answer = world.post(&world.invoker, "/v1/tool.invoke", body).await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/json", "{}", answer.text());
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn l03_read_and_edit_are_taken_as_they_stand() {
    let world = world().await;
    let (status, read) = invoke(&world, request("Read", json!({"file_path": "note.txt"}))).await;
    assert_eq!(
        (status, &read["status"], &read["tool_id"]),
        (200, &json!("success"), &json!("read_file")),
        "{read}"
    );
    assert_eq!(read["invocation_id"], "0b8f5b5e-8a5b-4d53-9d1f-3f6f0f6f9d11");
    assert!(read["execution_metadata"]["duration_ms"].is_f64() && read["completed_at"].is_string(), "{read}");
    let edit = json!({"file_path": "note.txt", "old_string": "two", "new_string": "2"});
    let (status, edited) = invoke(&world, request("Edit", edit)).await;
    assert_eq!((status, &edited["status"]), (200, &json!("success")), "{edited}");
    let (_, read) = invoke(&world, request("Read", json!({"file_path": "note.txt"}))).await;
    assert!(read["result"].to_string().contains("one\\n2"), "{read}");
    // The address names the tool, and the body may say the same.
    let both = world
        .post(&world.invoker, "/v1/tools/read_file/invoke", request("Read", json!({"path": "note.txt"})))
        .await;
    assert_eq!(both.status.as_u16(), 200, "{}", both.text());
    let other = world.post(&world.invoker, "/v1/tools/echo/invoke", request("Read", json!({}))).await;
    assert_eq!(
        (other.status.as_u16(), &other.json()["error"]["code"]),
        (400, &json!("E3401")),
        "{}",
        other.text()
    );
}

#[tokio::test]
async fn l03_every_end_has_its_status_its_number_and_the_id() {
    let world = world().await;
    let mut late = request("wait", json!({}));
    late["resource_limits"]["timeout_seconds"] = json!(1);
    let mut asks = request("echo", json!({"text": "a"}));
    asks["execution_options"]["require_approval"] = json!(true);
    let mut lost = request("echo", json!({"text": "a"}));
    lost["agent_context"]["parent_sandbox_id"] = json!("sandbox-parent-789");
    let mut foreign = request("echo", json!({"text": "a"}));
    foreign["agent_context"]["tenant_id"] = json!("rival");
    for (body, http, status, number, code, retryable) in [
        (request("fails", json!({})), 200, "error", "E3108", "EXECUTION_FAILED", false),
        (request("ecko", json!({})), 404, "error", "E3001", "TOOL_NOT_FOUND", false),
        (request("echo", json!({"text": [1]})), 422, "error", "E3401", "VALIDATION_FAILED", false),
        (request("Bash", json!({"command": "ls"})), 403, "permission_denied", "E3201", "TOOL_DENIED", false),
        (late, 408, "timeout", "E3103", "TIMEOUT", true),
        (asks, 202, "pending_approval", "E3201", "CONFIRMATION_REQUIRED", false),
        (lost, 404, "error", "E3101", "SANDBOX_CREATION_FAILED", false),
        (foreign, 403, "permission_denied", "E3201", "PERMISSION_DENIED", false),
    ] {
        let (answered, said) = invoke(&world, body.clone()).await;
        let error = &said["error"];
        assert_eq!((answered, said["status"].as_str().unwrap()), (http, status), "{body}: {said}");
        assert_eq!((&error["code"], &error["retryable"]), (&json!(number), &json!(retryable)), "{said}");
        assert_eq!(error["details"]["code"], code, "{said}");
        assert_eq!(said["invocation_id"], body["invocation_id"], "{said}");
    }
    let mut unnamed = request("echo", json!({"text": "a"}));
    unnamed.as_object_mut().unwrap().remove("invocation_id");
    for tool in ["echo", "ecko"] {
        unnamed["tool_id"] = json!(tool);
        let (_, said) = invoke(&world, unnamed.clone()).await;
        assert!(said["invocation_id"].as_str().is_some_and(|id| id.len() == 36), "{said}");
    }
    unnamed.as_object_mut().unwrap().remove("tool_id");
    assert_eq!(invoke(&world, unnamed).await.0, 400, "a call without a tool is none");
}

/// BC-1: an agent's sandbox by the id that the platform gave it. What exceeds it gets its number.
#[tokio::test]
async fn l03_a_parent_sandbox_is_registered_by_its_own_id() {
    let world = world().await;
    let spec = json!({"id": "sandbox-parent-789", "level": "None", "mounts": ["."],
        "limits": {"memoryBytes": 256 << 20, "cpuMillicores": 500}});
    let made = world.post(&world.invoker, "/v1/sandboxes", spec.clone()).await;
    assert_eq!((made.status.as_u16(), &made.json()["id"]), (201, &spec["id"]), "{}", made.text());
    assert_eq!(world.post(&world.invoker, "/v1/sandboxes", spec.clone()).await.status.as_u16(), 409);
    let elsewhere = world.post(&world.rival, "/v1/sandboxes", spec).await;
    assert_eq!(elsewhere.status.as_u16(), 201, "another tenant has its own names: {}", elsewhere.text());
    // A file tool would need a jail here: nothing else holds it to that memory.
    let mut inside = request("validate_content", json!({"content": "{}"}));
    inside["agent_context"]["parent_sandbox_id"] = json!("sandbox-parent-789");
    let (status, said) = invoke(&world, inside.clone()).await;
    assert_eq!((status, &said["status"]), (200, &json!("success")), "{said}");
    inside["resource_limits"] = json!({"memory_mb_limit": 512});
    let (_, said) = invoke(&world, inside.clone()).await;
    assert_eq!((&said["status"], &said["error"]["code"]), (&json!("error"), &json!("E3102")), "{said}");
    let shown = world.get(&world.invoker, "/v1/sandboxes/sandbox-parent-789").await;
    assert_eq!(shown.json()["calls"], 1, "{}", shown.text());
    let ended = world.delete(&world.invoker, "/v1/sandboxes/sandbox-parent-789").await;
    assert_eq!(ended.status.as_u16(), 200);
    inside["resource_limits"] = json!({});
    assert_eq!(invoke(&world, inside).await.1["error"]["code"], "E3101");
}

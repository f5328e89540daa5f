//! What is one tenant's is not there for another.

use crate::{
    document::operations,
    support::{Answer, World, request, world},
};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Things of acme's, by the path that shows them: an id that is there, and one that never was.
pub async fn things(world: &World) -> BTreeMap<&'static str, (String, String)> {
    let key = &world.invoker;
    let done = world.post(key, "/v1/invoke", json!({"name": "lines", "arguments": {"count": 50_000}, "options": {"model": {"kind": "unknown"}}})).await.json();
    let batch = world
        .post(key, "/v1/batch", json!({"calls": [{"name": "echo", "arguments": {"text": "a"}}]}))
        .await
        .json();
    let task = json!({"name": "wait", "options": {"detached": true, "timeout": "PT30S"}});
    let task = world.post(key, "/v1/invoke", task).await.json();
    let sandbox = world.post(key, "/v1/sandboxes", json!({"level": "Strict"})).await;
    let execution = text(&done["metadata"]["executionId"]);
    let mut things = BTreeMap::from([
        ("/v1/executions/{id}", (execution, "0197a1b0-0000-7000-8000-000000000000".to_owned())),
        (
            "/v1/batches/{id}",
            (text(&batch["summary"]["batchId"]), "0197a1b0-0000-7000-8000-000000000001".to_owned()),
        ),
        ("/v1/tasks/{id}", (text(&task["taskId"]), "tsk_00000000000000000000000000000000".to_owned())),
        (
            "/v1/outputs/{handle}",
            (text(&done["metadata"]["outputHandle"]), "out_00000000000000000000000000000000".to_owned()),
        ),
        ("/v1/approvals/{id}", ("apr_a".to_owned(), "apr_0".to_owned())),
        // No command is staged in this world: `changes_are_shown_and_applied_over_http` has some, and a rival.
        (
            "/v1/changes/{id}",
            (
                "0197a1b0-0000-7000-8000-000000000002".to_owned(),
                "0197a1b0-0000-7000-8000-000000000003".to_owned(),
            ),
        ),
        ("/v1/grants/{id}", ("grant_a".to_owned(), "grant_0".to_owned())),
    ]);
    assert_eq!(sandbox.status, StatusCode::CREATED, "{}", sandbox.text());
    things.insert("/v1/sandboxes/{id}", (text(&sandbox.json()["id"]), "sandbox-x".to_owned()));
    things
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// What a client gets, but for the id that it sent itself.
fn seen(answer: &Answer, id: &str) -> (StatusCode, String) {
    (answer.status, String::from_utf8_lossy(&answer.body).replace(id, "ID"))
}

fn body(template: &str) -> Value {
    match template {
        "/v1/approvals/{id}" => json!({"decision": "approve"}),
        _ => json!({}),
    }
}

#[tokio::test]
async fn what_is_another_tenants_is_not_there() {
    let world = world().await;
    let things = things(&world).await;
    let mut asked = 0;
    // Changes last: what is looked at must still be there.
    let mut all = operations();
    all.sort_by_key(|(method, ..)| {
        [Method::GET, Method::POST, Method::DELETE].iter().position(|known| known == method)
    });
    for (method, template, ..) in all {
        // Tools are everybody's.
        if !template.contains('{') || template.starts_with("/v1/tools/{name}") {
            continue;
        }
        let (prefix, (there, never)) =
            things.iter().find(|(prefix, _)| template.starts_with(**prefix)).unwrap_or_else(|| {
                panic!("{template} is new: say here which id of another tenant it could show")
            });
        let path =
            |id: &str| format!("{}{}", prefix.split('{').next().unwrap(), template.replace(*prefix, id));
        let send = |key: &str, id: &str| {
            let body = (method == Method::POST).then(|| body(&template));
            request(method.clone(), &path(id), Some(key), body.as_ref())
        };
        let theirs = world.send(send(&world.rival, there)).await;
        let nobodys = world.send(send(&world.rival, never)).await;
        assert_eq!(theirs.status, StatusCode::NOT_FOUND, "{method} {template}: {}", theirs.text());
        assert_eq!(seen(&theirs, there), seen(&nobodys, never), "{method} {template}");
        asked += 1;
        // The same request of its own tenant hits, so the test could fail. Streams of what runs do not end.
        if template != "/v1/tasks/{id}/events" && !template.starts_with("/v1/changes/") {
            let right = if template.contains("approvals") || template.contains("grants") {
                &world.approver
            } else {
                &world.invoker
            };
            let own = world.send(send(right, there)).await;
            assert!(own.status.is_success(), "{method} {template}: {} {}", own.status, own.text());
        }
    }
    assert!(asked >= 15, "{asked}");
}

#[tokio::test]
async fn lists_have_only_ones_own() {
    let world = world().await;
    things(&world).await;
    for (path, list) in [
        ("/v1/executions", "records"),
        ("/v1/audit", "records"),
        ("/v1/audit/statistics", "tools"),
        ("/v1/tasks", "tasks"),
        ("/v1/approvals", "approvals"),
        ("/v1/grants", "grants"),
        ("/v1/sandboxes", "sandboxes"),
    ] {
        let own = world.get(&world.invoker, path).await.json();
        assert!(!own[list].as_array().unwrap().is_empty(), "{path} {own}");
        let theirs = world.get(&world.rival, path).await.json();
        assert_eq!(theirs[list], json!([]), "{path}");
    }
}

#[tokio::test]
async fn a_call_in_another_tenants_sandbox_finds_none() {
    let world = world().await;
    let things = things(&world).await;
    let (there, never) = &things["/v1/sandboxes/{id}"];
    let call = |id: &str| json!({"name": "echo", "arguments": {"text": "a"}, "context": {"sandbox": id}});
    let theirs = world.post(&world.rival, "/v1/invoke", call(there)).await;
    let nobodys = world.post(&world.rival, "/v1/invoke", call(never)).await;
    assert_eq!(theirs.status, StatusCode::NOT_FOUND);
    assert_eq!(theirs.text(), nobodys.text());
}

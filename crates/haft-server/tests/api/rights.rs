//! Which right each route needs: one table, held against the document.

use crate::{
    document::operations,
    support::{World, key, request, world},
    tenants::things,
};
use axum::http::{Method, StatusCode};
use haft_core::port::Right;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tower::ServiceExt as _;

/// Every route that needs an identity, with the right that it needs.
const NEEDS: &[(&str, &str, Option<Right>)] = &[
    ("GET", "/v1/me", None),
    ("GET", "/v1/openapi.json", None),
    ("GET", "/v1/stats", Some(Right::Operate)),
    ("GET", "/v1/doctor", Some(Right::Operate)),
    ("GET", "/metrics", Some(Right::Operate)),
    ("GET", "/v1/tools", None),
    ("GET", "/v1/tools/{name}", None),
    ("POST", "/v1/tools/search", None),
    ("GET", "/v1/definitions", None),
    ("POST", "/v1/tools/{name}/invoke", Some(Right::Invoke)),
    ("POST", "/v1/tool.invoke", Some(Right::Invoke)),
    ("POST", "/v1/invoke", Some(Right::Invoke)),
    ("POST", "/v1/plan", Some(Right::Invoke)),
    ("POST", "/v1/batch", Some(Right::Invoke)),
    ("POST", "/v1/flow", Some(Right::Invoke)),
    ("GET", "/v1/batches/{id}/events", None),
    ("POST", "/v1/batches/{id}/cancel", Some(Right::Invoke)),
    ("GET", "/v1/tasks", None),
    ("GET", "/v1/tasks/{id}", None),
    ("DELETE", "/v1/tasks/{id}", Some(Right::Invoke)),
    ("GET", "/v1/tasks/{id}/events", None),
    ("GET", "/v1/events", None),
    ("GET", "/v1/executions", None),
    ("GET", "/v1/executions/running", None),
    ("GET", "/v1/executions/{id}", None),
    ("GET", "/v1/executions/{id}/events", None),
    ("POST", "/v1/executions/{id}/cancel", Some(Right::Invoke)),
    ("GET", "/v1/approvals", None),
    ("GET", "/v1/approvals/{id}", None),
    ("POST", "/v1/approvals/{id}", Some(Right::Approve)),
    ("GET", "/v1/grants", None),
    ("DELETE", "/v1/grants/{id}", Some(Right::Approve)),
    ("POST", "/v1/policy/explain", Some(Right::Invoke)),
    ("GET", "/v1/audit", None),
    ("GET", "/v1/audit/statistics", None),
    ("GET", "/v1/audit/events", Some(Right::Operate)),
    ("GET", "/v1/outputs/{handle}", None),
    ("GET", "/v1/outputs/{handle}/lines", None),
    ("GET", "/v1/changes", None),
    ("GET", "/v1/changes/{id}", None),
    ("POST", "/v1/changes/{id}/apply", Some(Right::Approve)),
    ("POST", "/v1/changes/{id}/discard", Some(Right::Approve)),
    ("GET", "/v1/sandboxes", None),
    ("POST", "/v1/sandboxes", Some(Right::Invoke)),
    ("GET", "/v1/sandboxes/{id}", None),
    ("DELETE", "/v1/sandboxes/{id}", Some(Right::Invoke)),
    // Not in the document.
    #[cfg(feature = "mcp")]
    ("POST", "/mcp", Some(Right::Invoke)),
    #[cfg(feature = "mcp")]
    ("GET", "/mcp", Some(Right::Invoke)),
    #[cfg(feature = "mcp")]
    ("DELETE", "/mcp", Some(Right::Invoke)),
];

/// A body with which the request would do what it is for.
fn body(template: &str) -> Value {
    let call = json!({"name": "next", "arguments": {"text": "x"}});
    match template {
        "/v1/invoke" | "/v1/plan" | "/v1/policy/explain" => call,
        "/v1/tools/{name}/invoke" => json!({"parameters": {"text": "x"}}),
        "/v1/tool.invoke" => json!({"tool_id": "next", "parameters": {"text": "x"}}),
        "/v1/tools/search" => json!({"query": "echo"}),
        "/v1/batch" => json!({"calls": [call]}),
        "/v1/flow" => json!({"flow": {"name": "f", "description": "F", "nodes": [
            {"name": "a", "tool": "next", "arguments": {"text": "x"}}]}}),
        "/v1/approvals/{id}" => json!({"decision": "approve"}),
        "/mcp" => json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
        _ => json!({}),
    }
}

/// What the world's tenant has, as a caller with every right sees it.
async fn snapshot(world: &World, all: &str) -> BTreeMap<&'static str, Value> {
    let mut seen = BTreeMap::new();
    for path in ["/v1/executions", "/v1/tasks", "/v1/approvals", "/v1/grants", "/v1/sandboxes"] {
        let mut answer = world.get(all, path).await.json();
        // When to ask again is another each time, and a task that runs says every second that it does.
        for task in answer["tasks"].as_array_mut().into_iter().flatten() {
            task.as_object_mut().unwrap().retain(|name, _| !["pollAfterMs", "updatedAt"].contains(&&**name));
        }
        seen.insert(path, answer);
    }
    seen
}

#[test]
fn every_route_says_which_right_it_needs() {
    let mut documented: Vec<(String, String)> = operations()
        .into_iter()
        .filter(|(.., is_public)| !is_public)
        .map(|(method, template, ..)| (method.to_string(), template))
        .collect();
    let mut listed: Vec<(String, String)> = NEEDS
        .iter()
        .filter(|(_, template, _)| *template != "/mcp")
        .map(|(method, template, _)| ((*method).to_owned(), (*template).to_owned()))
        .collect();
    documented.sort();
    listed.sort();
    assert_eq!(listed, documented, "a route without an entry here, or an entry without a route");
}

#[tokio::test]
async fn every_route_needs_its_right_and_no_other() {
    let world = world().await;
    let things = things(&world).await;
    let all = key(&world.keys, "acme", &Right::ALL, |_| {}).await;
    let none = key(&world.keys, "acme", &[], |_| {}).await;
    let mut with = BTreeMap::new();
    for right in Right::ALL {
        let others: Vec<Right> = Right::ALL.into_iter().filter(|other| *other != right).collect();
        let without = key(&world.keys, "acme", &others, |key| key.id = format!("without_{right}")).await;
        let only = key(&world.keys, "acme", &[right], |key| key.id = format!("only_{right}")).await;
        with.insert(right.as_str(), (without, only));
    }
    let ask = |method: &str, template: &str, key: &str| {
        let path = things.iter().find(|(prefix, _)| template.starts_with(**prefix));
        let path = match path {
            Some((prefix, (there, _))) => {
                let inside = template.replace(*prefix, "");
                format!("{}{there}{inside}", prefix.split('{').next().unwrap())
            }
            None if template == "/v1/definitions" => format!("{template}?dialect=mcp"),
            None => template.replace("{name}", "next"),
        };
        let method: Method = method.parse().unwrap();
        let body = (method == Method::POST).then(|| body(template));
        let mut request = request(method, &path, Some(key), body.as_ref());
        request.headers_mut().insert("accept", "application/json, text/event-stream".parse().unwrap());
        world.router.clone().oneshot(request)
    };

    let before = snapshot(&world, &all).await;
    assert!(
        before.values().all(|list| list.to_string().len() > 30),
        "there is something to change: {before:?}"
    );
    for (method, template, needed) in NEEDS {
        let Some(needed) = needed else { continue };
        for key in [&with[needed.as_str()].0, &none] {
            let answer = ask(method, template, key).await.unwrap();
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{method} {template} without {needed}");
        }
        assert_eq!(snapshot(&world, &all).await, before, "{method} {template} changed something");
    }
    // The same requests do what they are for, so the part before could fail. What was ended by one is not there for the
    // next.
    let mut changed = 0;
    for (method, template, needed) in NEEDS {
        let key = needed.map_or(&none, |needed| &with[needed.as_str()].1);
        let before = snapshot(&world, &all).await;
        let answer = ask(method, template, key).await.unwrap();
        let status = answer.status();
        assert!(
            status != StatusCode::FORBIDDEN && status != StatusCode::UNAUTHORIZED && status.as_u16() < 500,
            "{method} {template} with {needed:?}: {status}"
        );
        // No command is staged in this program: `haft-cli/tests/cli/serve.rs` has one.
        let is_empty = template.starts_with("/v1/changes/{id}") && status == StatusCode::NOT_FOUND;
        assert!(
            status.is_success() || *template == "/mcp" || is_empty,
            "{method} {template} with {needed:?}: {status}"
        );
        drop(answer);
        changed += usize::from(snapshot(&world, &all).await != before);
    }
    assert!(changed >= 6, "only {changed} requests changed something");
}

use crate::support::{DOCUMENT, request, world};
use axum::http::{Method, StatusCode, header};
use serde_json::json;

const CHECKED_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

/// Every operation: its method, its path with `x` for each parameter, whether anybody may ask.
pub fn operations() -> Vec<(Method, String, String, bool)> {
    let mut all = Vec::new();
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parts: Vec<_> =
                template.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
            let is_public = operation["security"] == json!([{}]);
            let method = method.to_uppercase().parse().unwrap();
            all.push((method, template.clone(), parts.join("/"), is_public));
        }
    }
    all
}

#[test]
fn the_document_is_the_one_that_is_checked_in() {
    let now = format!("{}\n", serde_json::to_string_pretty(&*DOCUMENT).unwrap());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(CHECKED_IN, &now).unwrap();
    }
    let before = std::fs::read_to_string(CHECKED_IN).unwrap_or_default();
    assert!(
        now == before,
        "docs/openapi.json is not what the routes say: run this test with UPDATE_OPENAPI=1, and look at the diff"
    );
}

#[test]
fn only_health_is_for_anybody() {
    let mut public: Vec<_> =
        operations().into_iter().filter(|(.., is_public)| *is_public).map(|(_, path, ..)| path).collect();
    public.sort();
    let metadata = "/.well-known/oauth-protected-resource";
    assert_eq!(public, [metadata, &format!("{metadata}/mcp"), "/health", "/ready"]);
    assert!(operations().len() >= 42, "{}", operations().len());
}

#[test]
fn operations_have_names_of_their_own() {
    let mut names = std::collections::BTreeSet::new();
    for item in DOCUMENT["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} is there twice");
        }
    }
    assert!(names.contains("getTasksIdEvents") && names.contains("postInvoke"), "{names:?}");
}

/// OpenAPI 3.1 demands it; without them nothing that reads the document takes it.
#[test]
fn every_response_has_a_description() {
    let mut count = 0;
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let text = response["description"].as_str().unwrap_or_default();
                assert!(!text.trim().is_empty(), "{method} {path} {status} has no description");
                count += 1;
            }
        }
    }
    assert!(count >= 2 * operations().len(), "{count}");
}

#[tokio::test]
async fn no_route_answers_anybody_who_is_not_known() {
    let world = world().await;
    let wrong = format!("haft_{}", "0".repeat(64));
    let nobody = [None, Some(wrong.as_str()), Some("eyJhbGciOiJub25lIn0.e30."), Some("x")];
    let mut paths = operations();
    paths.push((Method::GET, String::new(), "/v1/nothing/here".into(), false));
    paths.push((Method::GET, String::new(), "/".into(), false));
    for method in [Method::POST, Method::GET, Method::DELETE] {
        paths.push((method, String::new(), "/mcp".into(), false));
    }
    paths.push((Method::TRACE, String::new(), "/v1/tools".into(), false));
    for (method, _, path, is_public) in paths {
        for key in nobody {
            let answer = world.send(request(method.clone(), &path, key, None)).await;
            match is_public {
                true => assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}"),
                false => {
                    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path} {key:?}");
                    assert_eq!(answer.json()["code"], "UNAUTHENTICATED");
                    assert!(answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer"));
                }
            }
        }
    }
}

#[tokio::test]
async fn the_document_is_served() {
    let world = world().await;
    assert_eq!(world.get(&world.approver, "/v1/openapi.json").await.json(), *DOCUMENT);
}

/// Every operation with garbage: never a 5xx, and always as described.
#[tokio::test]
async fn garbage_is_refused_in_words() {
    let world = world().await;
    let bodies = [
        json!(null),
        json!([]),
        json!({}),
        json!("x"),
        json!(7),
        json!({"name": 1}),
        json!({"name": "\u{0}"}),
        json!({"calls": {}}),
        json!({"flow": []}),
        json!({"decision": "maybe"}),
        json!({"zzz": true}),
        json!({"name": "echo", "arguments": [1], "options": {"timeout": "soon"}}),
        json!({"name": "echo", "options": {"executionId": "0197a1b0-0000-7000-8000-000000000000"}}),
        json!({"name": "echo", "context": {"tenant": "rival"}}),
        json!({"name": "echo", "context": []}),
        json!({"name": "echo", "context": {"agent": "a\nb"}}),
        json!({"parameters": 5, "resource_limits": {"memory_mb_limit": 1}}),
    ];
    for (method, _, path, _) in operations() {
        // Its answer does not end.
        if path == "/v1/events" {
            continue;
        }
        for suffix in [
            "",
            "?limit=0",
            "?limit=-1",
            "?limit=x",
            "?after=%00",
            "?zzz=1",
            "?offset=18446744073709551615",
            "?from=0",
            "?state=odd",
            "?wait=999",
        ] {
            let answer = world
                .send(request(method.clone(), &format!("{path}{suffix}"), Some(&world.rival), None))
                .await;
            assert!(
                answer.status.as_u16() < 500,
                "{method} {path}{suffix}: {} {}",
                answer.status,
                answer.text()
            );
        }
        if method == Method::POST {
            for body in &bodies {
                let answer = world.send(request(method.clone(), &path, Some(&world.rival), Some(body))).await;
                assert!(
                    answer.status.as_u16() < 500,
                    "{method} {path} {body}: {} {}",
                    answer.status,
                    answer.text()
                );
            }
        }
    }
}

use crate::support::{World, request, world};
use axum::http::{Method, StatusCode};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt as _;

/// Events of a stream as text: id, name, data.
fn parse(text: &str) -> Vec<(Option<u64>, String, Value)> {
    text.split("\n\n")
        .filter(|block| block.contains("data:"))
        .map(|block| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let data = field("data:").map_or(Value::Null, |data| serde_json::from_str(data).unwrap());
            // Those of a task name its execution, too.
            let number = |id: &str| id.rsplit('/').next().unwrap().parse().unwrap();
            (field("id:").map(number), field("event:").unwrap_or_default().to_owned(), data)
        })
        .collect()
}

async fn stream(world: &World, path: &str, last: Option<u64>) -> Vec<(Option<u64>, String, Value)> {
    let mut request = request(Method::GET, path, Some(&world.invoker), None);
    if let Some(last) = last {
        request.headers_mut().insert("last-event-id", last.into());
    }
    let answer = tokio::time::timeout(Duration::from_secs(20), world.send(request)).await.expect("it ends");
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    parse(&answer.text())
}

#[tokio::test]
async fn a_call_can_be_watched_while_it_runs() {
    let world = world().await;
    let body = json!({"name": "lines", "arguments": {"count": 3}});
    let mut watched = request(Method::POST, "/v1/invoke", Some(&world.invoker), Some(&body));
    watched.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let response = world.router.clone().oneshot(watched).await.unwrap();
    let text = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let events = parse(std::str::from_utf8(&text).unwrap());
    let names: Vec<_> = events.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!((names[0], *names.last().unwrap()), ("tool:executing", "result"), "{names:?}");
    assert!(names.contains(&"tool:executed"));
    assert_eq!(events.last().unwrap().2["status"], "Success");
}

#[tokio::test]
async fn a_call_whose_events_nobody_reads_has_its_deadline() {
    let world = world().await;
    let body = json!({"name": "wait", "options": {"timeout": "PT1S"}});
    let mut watched = request(Method::POST, "/v1/invoke", Some(&world.invoker), Some(&body));
    watched.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let response = world.router.clone().oneshot(watched).await.unwrap();
    // It is tried three times.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let text = axum::body::to_bytes(response.into_body(), 1 << 20);
    let text = tokio::time::timeout(Duration::from_secs(2), text).await.expect("it ended before").unwrap();
    let events = parse(std::str::from_utf8(&text).unwrap());
    assert_eq!(events.last().unwrap().2["status"], "Timeout", "{events:?}");
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_cut() {
    let world = world().await;
    let done = world
        .post(&world.invoker, "/v1/invoke", json!({"name": "lines", "arguments": {"count": 20}}))
        .await
        .json();
    let path = format!("/v1/executions/{}/events", done["metadata"]["executionId"].as_str().unwrap());
    let whole = stream(&world, &path, None).await;
    assert!(whole.len() > 5);
    for cut in [0, 3, whole.len() - 1] {
        let rest = stream(&world, &path, whole[cut].0).await;
        assert_eq!(rest, whole[cut + 1..], "after {cut}");
    }
    assert_eq!(stream(&world, &path, Some(i64::MAX as u64)).await, []);
    let mut bad = request(Method::GET, &path, Some(&world.invoker), None);
    bad.headers_mut().insert("last-event-id", "x".parse().unwrap());
    assert_eq!(world.send(bad).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_task_is_watched_to_its_end_and_cancelled() {
    let world = world().await;
    let task = world
        .post(&world.invoker, "/v1/invoke", json!({"name": "wait", "options": {"detached": true}}))
        .await
        .json();
    let id = task["taskId"].as_str().unwrap().to_owned();
    let watch = request(Method::GET, &format!("/v1/tasks/{id}/events"), Some(&world.invoker), None);
    let response = world.router.clone().oneshot(watch).await.unwrap();
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while !text.contains("tool:executing") && !text.contains("event: task") {
        text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    world.delete(&world.invoker, &format!("/v1/tasks/{id}")).await;
    if text.contains("tool:executing") {
        while let Some(chunk) = tokio::time::timeout(Duration::from_secs(10), body.next()).await.unwrap() {
            text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        let events = parse(&text);
        assert_eq!(events[events.len() - 2].1, "tool:cancelled", "{text}");
        assert_eq!(
            (events.last().unwrap().1.as_str(), &events.last().unwrap().2["state"]),
            ("task", &json!("cancelled"))
        );
    }
    let later = stream(&world, &format!("/v1/tasks/{id}/events"), None).await;
    assert!(!later.is_empty());
}

#[tokio::test]
async fn a_running_call_is_shown_and_ended() {
    let world = world().await;
    let body = json!({"name": "wait"});
    let running = tokio::spawn(world.router.clone().oneshot(request(
        Method::POST,
        "/v1/invoke",
        Some(&world.invoker),
        Some(&body),
    )));
    let task = world
        .post(&world.invoker, "/v1/invoke", json!({"name": "wait", "options": {"detached": true}}))
        .await
        .json();
    let id = task["executionId"].as_str().unwrap();
    for _ in 0..200 {
        if world.get(&world.invoker, &format!("/v1/executions/{id}")).await.status == StatusCode::OK {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.get(&world.invoker, &format!("/v1/executions/{id}")).await.json()["state"], "running");
    let ended = world
        .post(&world.invoker, &format!("/v1/executions/{id}/cancel"), json!({"reason": "enough"}))
        .await
        .json();
    assert_eq!(ended["cancelled"], true);
    let over = world
        .get(&world.invoker, &format!("/v1/tasks/{}?wait=10", task["taskId"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(over["state"], "cancelled");
    let again = world.post(&world.invoker, &format!("/v1/executions/{id}/cancel"), json!({})).await.json();
    assert_eq!(again["cancelled"], false);
    running.abort();
}

/// The next events of a stream that does not end, until there is one of that name.
async fn until_event(body: &mut axum::body::BodyDataStream, name: &str) -> String {
    let mut text = String::new();
    while !text.contains(&format!("event: {name}\n")) || !text.ends_with("\n\n") {
        let chunk = tokio::time::timeout(Duration::from_secs(20), body.next()).await.expect("an event");
        text.push_str(std::str::from_utf8(&chunk.expect("no end").unwrap()).unwrap());
    }
    text
}

async fn all_events(world: &World, key: &str, last: Option<&str>) -> axum::body::BodyDataStream {
    let mut asked = request(Method::GET, "/v1/events", Some(key), None);
    if let Some(last) = last {
        asked.headers_mut().insert("last-event-id", last.parse().unwrap());
    }
    let response = world.router.clone().oneshot(asked).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body().into_data_stream()
}

fn last_id(text: &str) -> &str {
    text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap()
}

#[tokio::test]
async fn all_calls_of_a_tenant_are_watched_and_nobody_elses() {
    let world = world().await;
    let mut ours = all_events(&world, &world.invoker, None).await;
    let mut theirs = all_events(&world, &world.rival, None).await;
    let begin = ours.next().await.unwrap().unwrap();
    let begin = last_id(std::str::from_utf8(&begin).unwrap()).to_owned();
    theirs.next().await.unwrap().unwrap();
    let echo = json!({"name": "echo", "arguments": {"text": "ours"}});
    let done = world.post(&world.invoker, "/v1/invoke", echo).await.json();
    let unknown = json!({"name": "no_such_tool", "arguments": {}});
    world.post(&world.invoker, "/v1/invoke", unknown).await;
    let text = until_event(&mut ours, "tool:error").await;
    for part in
        ["event: tool:executing", "event: tool:executed", done["metadata"]["executionId"].as_str().unwrap()]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let echo = json!({"name": "echo", "arguments": {"text": "theirs"}});
    world.post(&world.rival, "/v1/invoke", echo).await;
    let rivals = until_event(&mut theirs, "tool:executed").await;
    assert!(rivals.contains("theirs") && !rivals.contains("ours"), "{rivals}");

    // One that comes back gets what happened meanwhile; one that comes back too late is told.
    drop(ours);
    let mut again = all_events(&world, &world.invoker, Some(&begin)).await;
    let repeated = until_event(&mut again, "tool:error").await;
    assert_eq!(parse_text(&repeated), parse_text(&text));
    let mut late = all_events(&world, &world.invoker, Some("1-1")).await;
    until_event(&mut late, "tool:missed").await;
    let mut wrong = request(Method::GET, "/v1/events", Some(&world.invoker), None);
    wrong.headers_mut().insert("last-event-id", "1".parse().unwrap());
    assert_eq!(world.send(wrong).await.status, StatusCode::BAD_REQUEST);
}

fn parse_text(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("data:")).collect()
}

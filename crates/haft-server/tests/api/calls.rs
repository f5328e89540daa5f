use crate::support::{request, world};
use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn a_call_is_answered_with_the_status_of_the_error_table() {
    let world = world().await;
    let cases = [
        (json!({"name": "echo", "arguments": {"text": "hello"}}), 200, Value::Null),
        (json!({"name": "fails"}), 200, json!("EXECUTION_FAILED")),
        (json!({"name": "ecko"}), 404, json!("TOOL_NOT_FOUND")),
        (json!({"name": "echo", "arguments": {"text": [1]}}), 422, json!("VALIDATION_FAILED")),
        (json!({"name": "run_command", "arguments": {"command": "ls"}}), 403, json!("TOOL_DENIED")),
        (json!({"name": "wait", "options": {"timeout": "PT0.05S"}}), 408, json!("TIMEOUT")),
        (
            json!({"name": "echo", "arguments": {"text": "a"}, "options": {"requireConfirmation": true}}),
            202,
            json!("CONFIRMATION_REQUIRED"),
        ),
    ];
    for (call, status, code) in cases {
        let answer = world.post(&world.invoker, "/v1/invoke", call.clone()).await;
        assert_eq!(answer.status.as_u16(), status, "{call}: {}", answer.text());
        let said = answer.json();
        let found = said.get("code").unwrap_or(&said["error"]["code"]);
        assert_eq!(*found, code, "{call}");
        if status >= 400 {
            assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
            assert_eq!(said["result"]["error"]["code"], code, "the whole result is in it");
        }
        let platform = json!({"parameters": call.get("arguments").cloned().unwrap_or(json!({})),
            "execution_options": {"require_approval": call["options"]["requireConfirmation"] == json!(true)}});
        if call["options"]["timeout"].is_null() {
            let path = format!("/v1/tools/{}/invoke", call["name"].as_str().unwrap());
            let answer = world.post(&world.invoker, &path, platform).await;
            assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn the_block_for_a_model_comes_as_text() {
    let world = world().await;
    for (name, status, word) in
        [("echo", 200, "Status: Success"), ("fails", 200, "Error: fails failed"), ("ecko", 404, "")]
    {
        let body = json!({"name": name, "arguments": if name == "echo" { json!({"text": "hi"}) } else { json!({}) }});
        let mut request = request(Method::POST, "/v1/invoke", Some(&world.invoker), Some(&body));
        request.headers_mut().insert(header::ACCEPT, "text/plain".parse().unwrap());
        let answer = world.send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        if status == 404 {
            assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
            continue;
        }
        assert!(answer.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/plain"));
        assert!(
            answer.text().starts_with(&format!("Tool: {name}\n")) && answer.text().contains(word),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_were_sent() {
    let world = world().await;
    let text = "é\u{1F980} \\u0000? \"quoted\"";
    let answer = world
        .post(
            &world.invoker,
            "/v1/invoke",
            json!({"name": "echo", "arguments": {"text": text}, "id": "mine"}),
        )
        .await
        .json();
    assert_eq!(answer["callId"], "mine");
    assert_eq!(answer["content"][0]["text"], text);
    let read = world
        .post(&world.invoker, "/v1/invoke", json!({"name": "read_file", "arguments": {"path": "note.txt"}}))
        .await
        .json();
    assert_eq!(read["status"], "Success", "{read}");
}

#[tokio::test]
async fn the_same_key_has_an_effect_once() {
    let world = world().await;
    let call = |text: &str| {
        let body = json!({"name": "next", "arguments": {"text": text}});
        let mut request = request(Method::POST, "/v1/invoke", Some(&world.invoker), Some(&body));
        request.headers_mut().insert("idempotency-key", "once".parse().unwrap());
        request
    };
    let first = world.send(call("a")).await.json();
    let again = world.send(call("a")).await.json();
    assert_eq!((&first["status"], &first["content"]), (&json!("Success"), &again["content"]), "{first}");
    let other = world.send(call("b")).await;
    assert_eq!((other.status, &other.json()["code"]), (StatusCode::CONFLICT, &json!("IDEMPOTENCY_CONFLICT")));
    let mut differs = call("a");
    *differs.body_mut() = Body::from(json!({"name": "next", "idempotencyKey": "twice"}).to_string());
    assert_eq!(world.send(differs).await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn batches_and_flows_answer_each_call() {
    let world = world().await;
    let calls = json!([{"name": "echo", "arguments": {"text": "a"}, "id": "1"}, {"name": "fails", "id": "2"}, {"name": "none", "id": "3"}]);
    let answer =
        world.post(&world.invoker, "/v1/batch", json!({"calls": calls, "strategy": "parallel"})).await.json();
    let statuses: Vec<_> =
        answer["results"].as_array().unwrap().iter().map(|result| result["callId"].clone()).collect();
    assert_eq!(json!(statuses), json!(["1", "2", "3"]));
    assert_eq!((&answer["summary"]["succeeded"], &answer["summary"]["failed"]), (&json!(1), &json!(2)));

    let flow = json!({"name": "twice", "description": "Says it twice", "nodes": [
        {"name": "one", "tool": "echo", "arguments": {"text": "hi"}},
        {"name": "two", "tool": "echo", "arguments": {"text": "${one.text}"}, "depends_on": ["one"]}]});
    let ran = world.post(&world.invoker, "/v1/flow", json!({"flow": flow})).await;
    assert!(ran.status == StatusCode::OK || ran.json()["code"] == "BAD_DEFINITION", "{}", ran.text());
    let cycle = json!({"name": "c", "description": "C", "nodes": [{"name": "x", "tool": "nope"}]});
    let bad = world.post(&world.invoker, "/v1/flow", json!({"flow": cycle})).await;
    assert_eq!((bad.status.as_u16(), &bad.json()["code"]), (422, &json!("BAD_DEFINITION")), "{}", bad.text());
    assert!(!bad.json()["problems"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_detached_call_is_a_task() {
    let world = world().await;
    let body = json!({"name": "echo", "arguments": {"text": "later"}, "options": {"detached": true}});
    let answer = world.send(request(Method::POST, "/v1/invoke", Some(&world.invoker), Some(&body))).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let place = answer.headers[header::LOCATION].to_str().unwrap().to_owned();
    let done = world.get(&world.invoker, &format!("{place}?wait=10")).await.json();
    assert_eq!(
        (&done["state"], &done["result"]["content"][0]["text"]),
        (&json!("completed"), &json!("later"))
    );

    let waits = json!({"execution_options": {"async_mode": true}});
    let taken = world.post(&world.invoker, "/v1/tools/wait/invoke", waits).await;
    assert_eq!((taken.status, &taken.json()["status"]), (StatusCode::ACCEPTED, &json!("pending")));
    let url = taken.json()["polling_info"]["url"].as_str().unwrap().to_owned();
    world.delete(&world.invoker, &url).await;
    let over = world.get(&world.invoker, &format!("{url}?wait=10")).await.json();
    assert_eq!(over["state"], "cancelled");
    let twice = world.delete(&world.invoker, &url).await;
    assert_eq!((twice.status, &twice.json()["code"]), (StatusCode::CONFLICT, &json!("TASK_FINISHED")));
}

#[tokio::test]
async fn what_was_long_is_read_by_its_handle() {
    let world = world().await;
    let done = world.post(&world.invoker, "/v1/invoke", json!({"name": "lines", "arguments": {"count": 30_000}, "options": {"model": {"kind": "unknown"}}})).await.json();
    let handle = done["metadata"]["outputHandle"].as_str().unwrap();
    let part = world.get(&world.invoker, &format!("/v1/outputs/{handle}?offset=7&length=6")).await;
    assert_eq!(part.text(), "line 1");
    assert!(part.headers["haft-output-total"].to_str().unwrap().parse::<u64>().unwrap() > 100_000);
    let lines =
        world.get(&world.invoker, &format!("/v1/outputs/{handle}/lines?pattern=%20777%24")).await.json();
    assert_eq!(lines["lines"], json!([{"number": 778, "text": "line 777"}]));
    let bad = world.get(&world.invoker, &format!("/v1/outputs/{handle}/lines?pattern=(")).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn pages_go_on_where_they_ended() {
    let world = world().await;
    for text in ["a", "b", "c"] {
        world.post(&world.invoker, "/v1/invoke", json!({"name": "echo", "arguments": {"text": text}})).await;
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = world.get(&world.invoker, &format!("/v1/executions?limit=1{after}")).await.json();
        seen.extend(
            page["records"]
                .as_array()
                .unwrap()
                .iter()
                .map(|record| record["metadata"]["executionId"].to_string()),
        );
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
    let id = seen[0].trim_matches('"');
    let one = world.get(&world.invoker, &format!("/v1/executions/{id}")).await.json();
    assert_eq!((&one["state"], &one["result"]["content"][0]["text"]), (&json!("ended"), &json!("c")));
    let tools = world.get(&world.invoker, "/v1/tools?limit=2").await.json();
    let next = tools["next"].as_str().unwrap();
    let more = world.get(&world.invoker, &format!("/v1/tools?limit=2&after={next}")).await.json();
    assert!(more["tools"][0]["name"].as_str().unwrap() > next);
    let found = world.post(&world.invoker, "/v1/tools/search", json!({"query": "read a file"})).await.json();
    assert!(!found["tools"].as_array().unwrap().is_empty());
    let plan = world
        .post(&world.invoker, "/v1/plan", json!({"name": "echo", "arguments": {"text": "a"}}))
        .await
        .json();
    assert_eq!(plan["decision"], "ready");
}

#[tokio::test]
async fn tools_are_told_as_a_provider_takes_them() {
    let world = world().await;
    let ask = async |query: &str| world.get(&world.invoker, &format!("/v1/definitions?{query}")).await;
    let chat = ask("dialect=openai-chat&names=echo,lines,echo").await.json();
    let names: Vec<_> =
        chat["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["echo", "lines"], "each once, by name");
    assert_eq!(chat["tools"][0]["function"]["parameters"]["required"], json!(["text"]));
    assert_eq!(chat["renamed"], json!({}));
    let all = ask("dialect=anthropic").await.json();
    let count = all["tools"].as_array().unwrap().len();
    assert!(all["tools"][0]["input_schema"].is_object() && all["unlisted"] == 0, "{all}");
    assert_eq!(chat["unlisted"], count - 2, "what is left out is counted");
    let gemini = ask("dialect=gemini").await.json();
    assert_eq!(gemini["tools"][0]["functionDeclarations"].as_array().unwrap().len(), count);

    for (query, code) in [
        ("dialect=openai-chat&names=ecko", "TOOL_NOT_FOUND"),
        ("dialect=cobol", "BAD_REQUEST"),
        ("names=echo", "BAD_REQUEST"),
    ] {
        assert_eq!(ask(query).await.json()["code"], code, "{query}");
    }
    let long = format!("dialect=mcp&names={}", vec!["echo"; 401].join(","));
    assert_eq!(ask(&long).await.json()["code"], "BAD_REQUEST");
}

#[tokio::test]
async fn a_request_has_bounds() {
    let world = world().await;
    let long = json!({"name": "echo", "arguments": {"text": "x".repeat(2 << 20)}});
    let answer = world.post(&world.invoker, "/v1/invoke", long).await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (StatusCode::PAYLOAD_TOO_LARGE, &json!("LIMIT_EXCEEDED"))
    );
    let plain = Request::post("/v1/invoke")
        .header(header::AUTHORIZATION, format!("Bearer {}", world.invoker))
        .body(Body::from("{}"))
        .unwrap();
    assert_eq!(world.send(plain).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let method = world.send(request(Method::PUT, "/v1/tools", Some(&world.invoker), None)).await;
    assert_eq!(method.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(method.headers[header::ALLOW], "GET,HEAD");
    assert_eq!(method.json()["code"], "BAD_REQUEST");
    let nothing = world.get(&world.invoker, "/v1/nothing").await;
    assert_eq!((nothing.status, &nothing.json()["code"]), (StatusCode::NOT_FOUND, &json!("NOT_FOUND")));
    let mut zipped = request(Method::GET, "/v1/tools", Some(&world.invoker), None);
    zipped.headers_mut().insert(header::ACCEPT_ENCODING, "gzip".parse().unwrap());
    let response = tower::ServiceExt::oneshot(world.router.clone(), zipped).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
}

#[tokio::test]
async fn whoever_goes_away_cancels() {
    let world = world().await;
    let body = json!({"name": "wait"});
    let call = world.send(request(Method::POST, "/v1/invoke", Some(&world.invoker), Some(&body)));
    assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
    for _ in 0..100 {
        let records = world.get(&world.invoker, "/v1/audit?tool=wait").await.json();
        if records["records"][0]["status"] == "Cancelled" {
            assert_eq!(world.haft.running(), 0);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it runs on");
}

/// seeds/000 §4.3: an id for watching and cancelling; one that was used before is refused.
#[tokio::test]
async fn ids_can_be_chosen_and_are_used_once() {
    let world = world().await;
    let id = "0197a1b0-1111-7000-8000-000000000001";
    let call = json!({"name": "echo", "arguments": {"text": "a"}, "options": {"executionId": id}});
    let first = world.post(&world.invoker, "/v1/invoke", call.clone()).await;
    assert_eq!(first.json()["metadata"]["executionId"], id, "{}", first.text());
    let second = world.post(&world.invoker, "/v1/invoke", call.clone()).await;
    assert_eq!((second.status, &second.json()["code"]), (StatusCode::CONFLICT, &json!("DUPLICATE_CALL_ID")));
    let mut watched = request(Method::POST, "/v1/invoke", Some(&world.rival), Some(&call));
    watched.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let theirs = world.send(watched).await;
    assert_eq!(theirs.status, StatusCode::CONFLICT, "nobody watches another one's call: {}", theirs.text());

    let batch = json!({"calls": [{"name": "echo", "arguments": {"text": "a"}}], "batchId": id});
    let first = world.post(&world.invoker, "/v1/batch", batch.clone()).await;
    assert_eq!(first.json()["summary"]["batchId"], id, "{}", first.text());
    assert_eq!(world.post(&world.invoker, "/v1/batch", batch).await.status, StatusCode::CONFLICT);
    for (options, status) in
        [(json!({"detached": true, "executionId": id}), 422), (json!({"executionId": "one"}), 400)]
    {
        let wrong = json!({"name": "echo", "options": options});
        assert_eq!(world.post(&world.invoker, "/v1/invoke", wrong).await.status, status, "{options}");
    }
}

#[tokio::test]
async fn a_batch_streams_its_events_and_then_its_results() {
    let world = world().await;
    let calls = json!([{"name": "echo", "arguments": {"text": "a"}}, {"name": "no_such_tool"}]);
    let mut asked =
        request(Method::POST, "/v1/batch", Some(&world.invoker), Some(&json!({ "calls": calls })));
    asked.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let text = world.send(asked).await.text();
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names.first(), Some(&"tool:batch-start"), "{text}");
    assert_eq!(names[names.len() - 2..], ["tool:batch-complete", "result"], "{text}");
    let result = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let result: Value = serde_json::from_str(result).unwrap();
    assert_eq!(
        (&result["results"][0]["status"], &result["summary"]["failed"]),
        (&json!("Success"), &json!(1))
    );
}

#[tokio::test]
async fn what_runs_is_listed_for_its_own_tenant() {
    let world = world().await;
    let task = json!({"name": "wait", "options": {"detached": true}});
    let task = world.post(&world.invoker, "/v1/invoke", task).await.json();
    let id = task["executionId"].as_str().unwrap().to_owned();
    let mut listed = json!(null);
    for _ in 0..1000 {
        listed = world.get(&world.invoker, "/v1/executions/running").await.json()["executions"].clone();
        if listed[0]["lastEvent"] == "InProgress" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!((&listed[0]["executionId"], &listed[0]["tool"]), (&json!(id), &json!("wait")), "{listed}");
    assert_eq!(world.get(&world.rival, "/v1/executions/running").await.json()["executions"], json!([]));
    world.delete(&world.invoker, &format!("/v1/tasks/{}", task["taskId"].as_str().unwrap())).await;
    let path = format!("/v1/tasks/{}?wait=20", task["taskId"].as_str().unwrap());
    world.get(&world.invoker, &path).await;
    assert_eq!(world.get(&world.invoker, "/v1/executions/running").await.json()["executions"], json!([]));
}

//! Who approves, and what counts as a yes.

use super::support::*;
use haft::{ApprovalMode, Haft, ListPolicy};
use haft_mcp::server::Approvals;
use serde_json::{Value, json};

fn forms() -> Value {
    json!({"elicitation": {}})
}

async fn asked_now(version: &str, answer: Value) -> Value {
    let server = server(haft()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, version, forms()).await;
    let id = wire.request("tools/call", json!({"name": "deploy", "arguments": {"to": "production"}})).await;
    let question = wire.line().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("May deploy run?") && message.contains("production"), "{message}");
    wire.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    wire.answer(id).await.0["result"].clone()
}

#[tokio::test]
async fn a_person_before_the_client_decides_while_the_call_waits() {
    for version in LEGACY {
        let yes = asked_now(version, json!({"action": "accept", "content": {"decision": "approve"}})).await;
        assert_eq!(yes["content"][0]["text"], "deployed", "{version}");
        let no = asked_now(
            version,
            json!({"action": "accept", "content": {"decision": "deny", "reason": "not today"}}),
        )
        .await;
        assert_eq!(no["_meta"]["haft/error"]["code"], "CONFIRMATION_DENIED");
        assert!(no["content"][0]["text"].as_str().unwrap().contains("not today"));
        let declined = asked_now(version, json!({"action": "decline"})).await;
        assert_eq!(declined["_meta"]["haft/error"]["code"], "CONFIRMATION_DENIED");
        for open in [
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"decision": "yes"}}),
            json!({"action": "accept"}),
        ] {
            let result = asked_now(version, open.clone()).await;
            assert_eq!(result["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED", "{version}: {open}");
        }
    }
}

/// Two sessions that work in different folders ask the same at once: each is answered by its own client only.
#[tokio::test]
async fn a_yes_in_one_session_is_none_in_another() {
    for version in LEGACY {
        let server = server(haft()).approvals(Approvals::ThroughClient).build();
        let mut sessions = Vec::new();
        for folder in ["a", "b"] {
            let mut wire = Wire::new(&server, version, json!({"elicitation": {}, "roots": {}})).await;
            let id = wire.request("tools/call", json!({"name": "deploy", "arguments": {}})).await;
            let folders = wire.line().await;
            assert_eq!(folders["method"], "roots/list", "{folders}");
            let roots = json!({"roots": [{"uri": format!("file:///work/{folder}")}]});
            wire.send(json!({"jsonrpc": "2.0", "id": folders["id"], "result": roots})).await;
            let question = wire.line().await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            sessions.push((wire, id, question["id"].clone()));
        }
        // A yes to the first; the second says no after that, and it counts: nothing had answered it.
        let answers = [yes(), json!({"action": "decline"})];
        let mut results = Vec::new();
        for ((wire, id, question), answer) in sessions.iter_mut().zip(answers) {
            wire.send(json!({"jsonrpc": "2.0", "id": question, "result": answer})).await;
            results.push(wire.answer(*id).await.0["result"].clone());
        }
        assert_eq!(results[0]["content"][0]["text"], "deployed", "{version}");
        assert_eq!(
            results[1]["_meta"]["haft/error"]["code"], "CONFIRMATION_DENIED",
            "{version}: {}",
            results[1]
        );
    }
    // Between rounds: what the first session agreed to leaves the second one's question open.
    let server = server(haft()).approvals(Approvals::ThroughClient).build();
    let capabilities = json!({"elicitation": {}, "roots": {}});
    let mut first = Wire::new(&server, STATELESS, capabilities.clone()).await;
    let mut second = Wire::new(&server, STATELESS, capabilities).await;
    let mut states = Vec::new();
    for (wire, folder) in [(&mut first, "a"), (&mut second, "b")] {
        let roots = json!({"roots": [{"uri": format!("file:///work/{folder}")}]});
        let call = json!({"name": "deploy", "arguments": {}, "inputResponses": {"haft_roots": roots}});
        let asked = wire.ask("tools/call", call).await["result"].clone();
        assert_eq!(asked["inputRequests"]["haft_approval"]["method"], "elicitation/create", "{asked}");
        states.push(asked["requestState"].clone());
    }
    let own = first.ask("tools/call", again(&json!({}), &states[0], yes())).await;
    assert_eq!(own["result"]["content"][0]["text"], "deployed", "{own}");
    let other = second.call("deploy", json!({})).await["result"].clone();
    assert_eq!(other["resultType"], "input_required", "{other}");
    let used = second.ask("tools/call", again(&json!({}), &states[0], yes())).await;
    assert_ne!(used["result"]["content"][0]["text"], "deployed", "a yes is good once: {used}");
}

/// A form shows everything that the call is, written out; where it has no room for that, there is no form, and no
/// answer counts.
#[tokio::test]
async fn what_a_form_cannot_show_whole_is_not_asked_there() {
    let hidden = json!({"to": "production \u{1b}]0;touch X;\u{7}", "env": {"PATH": "./bin"}});
    let long = json!({"to": format!("production {}; touch X", "hello ".repeat(1000))});
    for version in LEGACY {
        let server = server(haft()).approvals(Approvals::ThroughClient).build();
        let mut wire = Wire::new(&server, version, forms()).await;
        let id = wire.request("tools/call", json!({"name": "deploy", "arguments": hidden})).await;
        let question = wire.line().await;
        let message = question["params"]["message"].as_str().unwrap();
        for seen in
            ["  to         │ production ⟨ESC⟩]0;touch X;⟨BEL⟩\n", "  env.PATH   │ ./bin\n", "isolation "]
        {
            assert!(message.contains(seen), "{seen}: {message}");
        }
        wire.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})).await;
        wire.answer(id).await;
        let result = wire.call("deploy", long.clone()).await["result"].clone();
        assert_eq!(result["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED", "{version}: {result}");
        let said = result["content"].to_string();
        assert!(said.contains("haft approvals show apr_"), "{said}");
    }
    let server = server(haft()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, STATELESS, forms()).await;
    let result = wire.call("deploy", long).await["result"].clone();
    assert_eq!(result["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED", "{result}");
}

#[tokio::test]
async fn a_client_that_fails_to_ask_approves_nothing() {
    let server = server(haft()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, "2025-11-25", forms()).await;
    let id = wire.request("tools/call", json!({"name": "deploy", "arguments": {}})).await;
    let question = wire.line().await;
    wire.send(json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32603, "message": "no"}}))
        .await;
    let (answer, _) = wire.answer(id).await;
    assert_eq!(answer["result"]["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED");
}

#[tokio::test]
async fn where_nobody_can_be_asked_through_the_client_the_question_stays_open() {
    for (approvals, capabilities) in [(Approvals::Elsewhere, forms()), (Approvals::ThroughClient, json!({}))]
    {
        for version in LEGACY.into_iter().chain([STATELESS]) {
            let server = server(haft()).approvals(approvals).build();
            let mut wire = Wire::new(&server, version, capabilities.clone()).await;
            let result = wire.call("deploy", json!({})).await["result"].clone();
            assert_eq!(
                result["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED",
                "{version} {approvals:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_host_asked_counts_and_what_is_denied_stays_denied() {
    for version in LEGACY.into_iter().chain([STATELESS]) {
        let server_of = |haft: Haft| server(haft).approvals(Approvals::Host).build();
        let mut wire = Wire::new(&server_of(haft()), version, json!({})).await;
        assert_eq!(
            wire.call("deploy", json!({})).await["result"]["content"][0]["text"],
            "deployed",
            "{version}"
        );

        for policy in [
            ListPolicy { denylist: ["deploy".to_owned()].into(), ..ListPolicy::default() },
            ListPolicy { mode: ApprovalMode::Deny, ..ListPolicy::default() },
        ] {
            let denying = Haft::builder().without_builtins().tools(tools()).policy(policy).build().unwrap();
            let mut wire = Wire::new(&server_of(denying), version, json!({})).await;
            let result = wire.call("deploy", json!({})).await["result"].clone();
            assert_eq!(result["_meta"]["haft/error"]["code"], "TOOL_DENIED", "{version}");
        }
    }
}

/// The question that a call of 2026-07-28 comes back with, and the state to send along.
async fn asked_between_rounds(wire: &mut Wire, arguments: &Value) -> Value {
    let result = wire.call("deploy", arguments.clone()).await["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert_eq!(result["inputRequests"]["haft_approval"]["method"], "elicitation/create");
    result["requestState"].clone()
}

fn again(arguments: &Value, state: &Value, answer: Value) -> Value {
    json!({"name": "deploy", "arguments": arguments, "requestState": state, "inputResponses": {"haft_approval": answer}})
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"decision": "approve"}})
}

#[tokio::test]
async fn between_rounds_a_yes_is_good_for_that_call_once() {
    let server = server(haft()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, STATELESS, forms()).await;
    let arguments = json!({"to": "staging"});
    let state = asked_between_rounds(&mut wire, &arguments).await;

    let other = wire.ask("tools/call", again(&json!({"to": "production"}), &state, yes())).await;
    assert_eq!(other["error"]["code"], -32602, "for other arguments: {other}");
    let mut forged = again(&arguments, &state, yes());
    forged["requestState"] = json!(format!("{}x", state.as_str().unwrap()));
    assert_eq!(wire.ask("tools/call", forged).await["error"]["code"], -32602);
    let mut without = again(&arguments, &state, yes());
    without.as_object_mut().unwrap().remove("requestState");
    assert_eq!(
        wire.ask("tools/call", without).await["result"]["resultType"],
        "input_required",
        "a yes without a question"
    );

    let done = wire.ask("tools/call", again(&arguments, &state, yes())).await;
    assert_eq!(done["result"]["content"][0]["text"], "deployed");
    let replayed = wire.ask("tools/call", again(&arguments, &state, yes())).await;
    assert_eq!(replayed["result"]["resultType"], "input_required", "a yes is good once: {replayed}");
}

#[tokio::test]
async fn between_rounds_a_yes_is_good_for_what_was_asked_about() {
    let haft = haft();
    let owner = haft::CallContext::owner();
    let deploy = |description: &'static str| {
        let tool = haft::tool_fn(
            "publish",
            async |_: Given, _: haft::ToolCtx| -> Result<&'static str, haft::ToolError> { Ok("published") },
        );
        tool.define(move |definition| definition.description = description.into())
    };
    haft.tools().add(deploy("Publishes to staging"), &owner).await.unwrap();
    let server = server(haft.clone()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, STATELESS, forms()).await;
    let ask = |state: &Value| json!({"name": "publish", "arguments": {}, "requestState": state, "inputResponses": {"haft_approval": yes()}});
    let first = wire.call("publish", json!({})).await["result"].clone();
    // The same tool, caller and arguments; but it is another tool now.
    haft.tools().replace(deploy("Publishes to everybody"), &owner).await.unwrap();
    let other = wire.ask("tools/call", ask(&first["requestState"])).await["result"].clone();
    assert_eq!(other["resultType"], "input_required", "{other}");
    let done = wire.ask("tools/call", ask(&other["requestState"])).await;
    assert_eq!(done["result"]["content"][0]["text"], "published", "{done}");
}

#[tokio::test]
async fn between_rounds_a_no_is_a_no_and_silence_is_none() {
    let server = server(haft()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, STATELESS, forms()).await;
    let arguments = json!({});
    for (answer, code) in [
        (json!({"action": "decline"}), "CONFIRMATION_DENIED"),
        (json!({"action": "accept", "content": {"decision": "deny"}}), "CONFIRMATION_DENIED"),
        (json!({"action": "cancel"}), "CONFIRMATION_REQUIRED"),
        (json!(7), "CONFIRMATION_REQUIRED"),
    ] {
        let state = asked_between_rounds(&mut wire, &arguments).await;
        let result =
            wire.ask("tools/call", again(&arguments, &state, answer.clone())).await["result"].clone();
        assert_eq!(result["_meta"]["haft/error"]["code"], code, "{answer}: {result}");
    }
}

#[tokio::test]
async fn one_yes_is_good_for_one_of_two_calls_inside_a_call() {
    // A tool that makes the same call twice, as a flow would.
    let twice =
        haft::tool_fn("twice", async |_: Given, cx: haft::ToolCtx| -> Result<String, haft::ToolError> {
            let mut said = Vec::new();
            for _ in 0..2 {
                let call = haft::ToolCall::new("deploy", json!({}));
                let result = cx.engine().call(cx.execution_id(), call).await?;
                said.push(if result.is_success() { "done" } else { "open" });
            }
            match said.contains(&"open") {
                false => Ok(said.join(" ")),
                true => Err(haft::ToolError::failed(said.join(" "))),
            }
        });
    let twice = twice.read_only().define(described);
    let haft =
        Haft::builder().without_builtins().tools(tools()).tool(twice).repeat_guard(None).build().unwrap();
    let server = server(haft.clone()).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, STATELESS, forms()).await;
    let first = wire.ask("tools/call", json!({"name": "twice"})).await["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    let call = json!({"name": "twice", "requestState": first["requestState"], "inputResponses": {"haft_approval": yes()}});
    let second = wire.ask("tools/call", call).await["result"].clone();
    assert_eq!(second["resultType"], "input_required", "the second one is asked about by itself: {second}");
    let records = haft.store().for_tenant("local").audit(100).await.unwrap();
    let deployed =
        records.iter().filter(|record| &*record.tool == "deploy" && record.status == haft::Status::Success);
    assert_eq!(deployed.count(), 1, "one yes, one run");
}

/// A tool needs an approval and then asks its client: the yes of one round holds in the next one, once, for one call.
#[tokio::test]
async fn a_yes_that_travels_with_a_call_is_good_once() {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&runs);
    let publish = haft::tool_fn("publish", move |_: Given, _: haft::ToolCtx| {
        let count = std::sync::Arc::clone(&count);
        async move {
            let client =
                haft_mcp::server::Client::current().ok_or_else(|| haft::ToolError::failed("nobody"))?;
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let form = haft_mcp::server::Client::form("Under which name?", schema)?;
            client.ask([("name".to_owned(), form)].into()).await?;
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok::<_, haft::ToolError>("published")
        }
    });
    let twice =
        haft::tool_fn("twice", async |_: Given, cx: haft::ToolCtx| -> Result<String, haft::ToolError> {
            for _ in 0..2 {
                let call = haft::ToolCall::new("publish", json!({}));
                let result = cx.engine().call(cx.execution_id(), call).await?;
                if !result.is_success() {
                    return Err(haft::ToolError::failed("open"));
                }
            }
            Ok("both".to_owned())
        });
    let haft = Haft::builder()
        .without_builtins()
        .tool(publish.define(described))
        .tool(twice.read_only().define(described))
        .repeat_guard(None)
        .build()
        .unwrap();
    let server = server(haft).approvals(Approvals::ThroughClient).build();
    let mut wire = Wire::new(&server, STATELESS, forms()).await;
    let ran = || runs.load(std::sync::atomic::Ordering::SeqCst);
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    for (tool, expected) in [("publish", 1), ("twice", 2)] {
        let send = |state: &Value, answers: Value| json!({"name": tool, "requestState": state, "inputResponses": answers});
        let first = wire.ask("tools/call", json!({"name": tool})).await["result"].clone();
        assert!(first["inputRequests"]["haft_approval"].is_object(), "{first}");
        let agreed = send(&first["requestState"], json!({"haft_approval": yes()}));
        let second = wire.ask("tools/call", agreed).await["result"].clone();
        assert!(second["inputRequests"]["name"].is_object(), "the yes holds, and the tool asks: {second}");
        assert!(second["inputRequests"]["haft_approval"].is_null(), "{second}");
        let last = send(&second["requestState"], json!({"name": name}));
        let third = wire.ask("tools/call", last.clone()).await["result"].clone();
        match tool {
            "publish" => assert_eq!(third["content"][0]["text"], "published", "{third}"),
            _ => assert!(
                third["inputRequests"]["haft_approval"].is_object(),
                "the second is asked about: {third}"
            ),
        }
        assert_eq!(ran(), expected, "{tool}: {third}");
        // The same state once more brings no yes.
        let replayed = wire.ask("tools/call", last).await["result"].clone();
        assert!(replayed["inputRequests"]["haft_approval"].is_object(), "{replayed}");
        assert_eq!(ran(), expected, "{tool}: {replayed}");
    }
}

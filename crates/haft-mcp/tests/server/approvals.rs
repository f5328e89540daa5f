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
        let yes = asked_now(version, json!({"action": "accept", "content": {"approve": true}})).await;
        assert_eq!(yes["content"][0]["text"], "deployed", "{version}");
        let no = asked_now(
            version,
            json!({"action": "accept", "content": {"approve": false, "reason": "not today"}}),
        )
        .await;
        assert_eq!(no["_meta"]["haft/error"]["code"], "CONFIRMATION_DENIED");
        assert!(no["content"][0]["text"].as_str().unwrap().contains("not today"));
        let declined = asked_now(version, json!({"action": "decline"})).await;
        assert_eq!(declined["_meta"]["haft/error"]["code"], "CONFIRMATION_DENIED");
        for open in [
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"approve": "yes"}}),
            json!({"action": "accept"}),
        ] {
            let result = asked_now(version, open.clone()).await;
            assert_eq!(result["_meta"]["haft/error"]["code"], "CONFIRMATION_REQUIRED", "{version}: {open}");
        }
    }
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
    json!({"action": "accept", "content": {"approve": true}})
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
        (json!({"action": "accept", "content": {"approve": false}}), "CONFIRMATION_DENIED"),
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

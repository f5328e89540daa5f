//! A flow that is called like any tool.

use super::*;
use common::{Answers, Setup, code, house, message, until};
use haft_core::{ErrorCode, ToolCall, port::Store as _};
use haft_engine::{FlowTool, Lanes, Request};
use haft_sdk::CancelReason;

fn adding(house: House, flows: impl IntoIterator<Item = Arc<Flow>>) -> House {
    for flow in flows {
        house.engine.register(FlowTool::new(flow)).unwrap();
    }
    house
}

fn named(name: &str, nodes: Value) -> Arc<Flow> {
    flow_with(json!({"name": name, "nodes": nodes,
        "parameters": {"type": "object", "properties": {"v": {"type": "integer"}}}}))
}

/// A tool that calls another one by its name, as `call_tool` does.
fn passes_on() -> Scripted {
    tool("passes_on", |args, cx| async move {
        let call = ToolCall::new(args.value["name"].as_str().unwrap(), json!({}));
        let result = cx.engine().call(cx.execution_id(), call).await?;
        match result.error {
            Some(error) => Err(ToolError::new(error.code, error.message)),
            None => Ok(ToolOutput::structured(result.output.unwrap_or_default())),
        }
    })
}

#[tokio::test]
async fn it_takes_and_gives_what_its_flow_does() {
    let both = named(
        "both",
        json!([
            {"name": "a", "tool": "echo", "arguments": {"v": "${input.v}"}},
            {"name": "b", "tool": "echo", "arguments": {"w": "${a.output.v}"}},
        ]),
    );
    let house = adding(house([echo()]), [both]);
    let result = house.engine.execute(ToolCall::new("both", json!({"v": 5}))).await;
    assert_eq!((code(&result), result.output.clone()), ("OK", Some(json!({"w": 5}))));
    assert_eq!(
        code(&house.engine.execute(ToolCall::new("both", json!({"v": "x"}))).await),
        "VALIDATION_FAILED"
    );
    let inside: Vec<_> = house
        .audit()
        .await
        .iter()
        .filter(|record| {
            record.metadata.batch_id.is_some_and(|id| id.as_uuid() == result.metadata.execution_id.as_uuid())
        })
        .map(|record| record.call_id.to_string())
        .collect();
    assert_eq!(inside, ["a", "b"], "its calls are found under its own id");
}

#[tokio::test]
async fn what_it_calls_passes_every_check() {
    let answers = Answers::by(|_| haft_core::Decision::Deny { reason: None });
    let policy = haft_guard::ListPolicy {
        mode: haft_core::ApprovalMode::Auto,
        denylist: ["denied".to_owned()].into(),
        ..haft_guard::ListPolicy::default()
    };
    let setup = Setup { approver: Arc::clone(&answers) as _, policy: Arc::new(policy), ..Setup::default() };
    let house = setup
        .build([tool("denied", |_, _| async { Ok("no") }), tool("asked", |_, _| async { Ok("no") }).asks()]);
    let house = adding(
        house,
        [
            named("first", json!([{"name": "a", "tool": "denied"}])),
            named("second", json!([{"name": "a", "tool": "asked"}])),
        ],
    );
    let first = house.engine.execute(ToolCall::new("first", json!({}))).await;
    assert_eq!(code(&first), "TOOL_DENIED", "{}", message(&first));
    assert!(message(&first).starts_with("The node `a` did not succeed"));
    assert_eq!(code(&house.engine.execute(ToolCall::new("second", json!({}))).await), "CONFIRMATION_DENIED");
    assert_eq!(answers.asked().len(), 1);
}

#[tokio::test]
async fn a_flow_that_calls_itself_is_refused() {
    let house = adding(
        house([echo(), passes_on()]),
        [
            named("left", json!([{"name": "a", "tool": "echo"}])),
            named("by_name", json!([{"name": "a", "tool": "passes_on", "arguments": {"name": "by_name"}}])),
        ],
    );
    // By its own name, as the file says it.
    let itself = named("round", json!([{"name": "a", "tool": "round"}]));
    house.engine.register(FlowTool::new(itself)).unwrap();
    let result = house.engine.execute(ToolCall::new("round", json!({}))).await;
    assert_eq!(code(&result), "BAD_DEFINITION");
    assert!(message(&result).contains("the flow would call itself: round → round"), "{}", message(&result));
    // Through another one.
    house.engine.register(FlowTool::new(named("there", json!([{"name": "a", "tool": "back"}])))).unwrap();
    house.engine.register(FlowTool::new(named("back", json!([{"name": "a", "tool": "there"}])))).unwrap();
    let result = house.engine.execute(ToolCall::new("there", json!({}))).await;
    assert!(message(&result).contains("there → back → there"), "{}", message(&result));
    // By a name that only a running tool knows.
    let result = house.engine.execute(ToolCall::new("by_name", json!({}))).await;
    assert_eq!(code(&result), "LIMIT_EXCEEDED", "{}", message(&result));
    assert!(message(&result).contains("would call itself"));
}

#[tokio::test]
async fn flows_inside_flows_need_one_slot_for_what_runs() {
    let slow = tool("slow", |_, _| async {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        Ok(ToolOutput::structured(json!({"v": 1})))
    });
    let setup = Setup {
        around: |builder| builder.lanes(Lanes { per_agent: Some(1), ..Lanes::default() }),
        ..Setup::default()
    };
    let house = adding(
        setup.build([slow, passes_on()]),
        [
            named("inner", json!([{"name": "a", "tool": "slow"}, {"name": "b", "tool": "slow"}])),
            named(
                "outer",
                json!([
                    {"name": "x", "tool": "inner"}, {"name": "y", "tool": "slow"},
                    {"name": "z", "tool": "passes_on", "arguments": {"name": "inner"}},
                ]),
            ),
        ],
    );
    let both = [(); 3].map(|()| house.engine.execute(ToolCall::new("outer", json!({}))));
    for result in within("all of them", futures_util::future::join_all(both)).await {
        assert_eq!(code(&result), "OK", "{}", message(&result));
    }
    assert_eq!(house.engine.stats().lanes.map(|lanes| lanes.running), Some(0));
}

#[tokio::test]
async fn cancelling_the_call_cancels_its_nodes_for_the_same_reason() {
    let alive = common::Count::default();
    let held = alive.clone();
    let hangs = tool("hangs", move |_, _| {
        let held = held.alive();
        async move {
            let _held = held;
            std::future::pending::<()>().await;
            Ok("never")
        }
    });
    let house = adding(house([hangs]), [named("both", json!([{"name": "a", "tool": "hangs"}]))]);
    let (id, options) = common::known_id();
    let request = Request::new(ToolCall::new("both", json!({}))).options(options);
    let running = tokio::spawn(house.engine.execute(request));
    until("it runs", || alive.get() == 1).await;
    house.engine.cancel(id, CancelReason::User, None);
    assert_eq!(running.await.unwrap().error_code(), Some(ErrorCode::Cancelled));
    house.idle().await;
    assert_eq!(alive.get(), 0);
    let records = house.store.for_tenant("local").audit(10).await.unwrap();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.code == Some(ErrorCode::Cancelled)));
}

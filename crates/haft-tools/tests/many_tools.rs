//! `search_tools` and `call_tool` in a real engine: what is found, and that a call inside a call is a call like any.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_core::{
    ApprovalRequest, Decision, ErrorCode, Status, ToolCall, ToolError, ToolResult,
    port::{Approver, AuditRecord, BoxFuture, GuardError, Store as _},
};
use haft_engine::Engine;
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{ToolCtx, tool_fn};
use haft_store::MemoryStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};

/// Nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Says yes, and remembers about which tools it was asked.
#[derive(Default)]
struct Person(Mutex<Vec<String>>);

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        self.0.lock().unwrap().extend(requests.iter().map(|request| request.tool.to_string()));
        Box::pin(std::future::ready(Ok(vec![Decision::Approve; requests.len()])))
    }
}

/// Counts how many of it there are.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn one_more(&self) -> Alive {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.clone()
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct House {
    engine: Engine,
    store: Arc<MemoryStore>,
    person: Arc<Person>,
    hanging: Alive,
}

struct Leaves(Alive);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn house() -> House {
    let (store, person, hanging) =
        (Arc::new(MemoryStore::new()), Arc::new(Person::default()), Alive::default());
    let touch = tool_fn("touch_file", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("touched"))
        .define(|definition| definition.constraints.required_isolation = haft_core::IsolationLevel::None);
    let alive = hanging.clone();
    let hangs = tool_fn("hang_about", move |_: Nothing, _: ToolCtx| {
        let here = Leaves(alive.one_more());
        async move {
            let _here = here;
            std::future::pending::<Result<String, ToolError>>().await
        }
    });
    let policy = ListPolicy { denylist: ["denied_tool".to_owned()].into(), ..ListPolicy::default() };
    let denied = tool_fn("denied_tool", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("no"));
    let mut builder = Engine::builder(Arc::new(policy), Arc::new(PermissionStrings), Arc::clone(&store) as _)
        .approver(Arc::clone(&person) as _)
        .tool(touch)
        .tool(hangs.read_only())
        .tool(denied.read_only());
    for tool in haft_tools::builtin() {
        builder = builder.boxed_tool(tool);
    }
    House { engine: builder.build().unwrap(), store, person, hanging }
}

impl House {
    async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.engine.execute(ToolCall::new("call_tool", json!({"name": name, "arguments": arguments}))).await
    }

    /// The audit records, oldest first.
    async fn audit(&self) -> Vec<AuditRecord> {
        let mut records = self.store.for_tenant("local").audit(100).await.unwrap();
        records.reverse();
        records
    }
}

fn code(result: &ToolResult) -> Option<ErrorCode> {
    result.error.as_ref().map(|error| error.code)
}

#[tokio::test]
async fn a_question_in_words_finds_the_tool() {
    let house = house();
    for query in ["is this json valid", "check a document against a schema"] {
        let result = house.engine.execute(ToolCall::new("search_tools", json!({"query": query}))).await;
        let tools = &result.output.as_ref().unwrap()["tools"];
        assert_eq!(tools[0]["name"], "validate_content", "{query}: {tools}");
        assert_eq!(tools[0]["parameters"]["required"], json!(["content"]));
        assert!(result.text().starts_with("validate_content 1.0.0\n"), "{}", result.text());
    }
    let one = ToolCall::new("SearchTools", json!({"query": "tool", "limit": 1}));
    assert_eq!(house.engine.execute(one).await.output.unwrap()["tools"].as_array().unwrap().len(), 1);
    let none = house.engine.execute(ToolCall::new("search_tools", json!({"query": "zebra"}))).await;
    assert_eq!(
        (none.output.as_ref().unwrap(), none.text()),
        (&json!({"tools": []}), "No tool fits. Try other words, or fewer.")
    );
}

#[tokio::test]
async fn what_is_disabled_is_not_found() {
    let house = house();
    house.engine.tools().set_enabled("validate_content", false).await.unwrap();
    let result =
        house.engine.execute(ToolCall::new("search_tools", json!({"query": "is this json valid"}))).await;
    let text = result.output.unwrap().to_string();
    assert!(!text.contains("\"validate_content\""), "{text}");
}

#[tokio::test]
async fn the_result_is_that_of_the_tool_inside() {
    let house = house();
    let arguments = json!({"content": "[1,]"});
    let inside = house.call("validate_content", arguments.clone()).await;
    let direct = house.engine.execute(ToolCall::new("validate_content", arguments)).await;
    assert_eq!((inside.status, &inside.output), (Status::Success, &direct.output));
    assert_eq!(inside.text(), direct.text());
    let alias = house.call("GetMetrics", json!({})).await;
    assert_eq!(alias.status, Status::Success, "{alias:?}");
}

#[tokio::test]
async fn an_error_inside_is_the_error() {
    let house = house();
    house.engine.tools().set_enabled("inspect_tool", false).await.unwrap();
    for (name, arguments, expected) in [
        ("denied_tool", json!({}), ErrorCode::ToolDenied),
        ("DENIED_TOOL", json!({}), ErrorCode::ToolDenied),
        ("inspect_tool", json!({"name": "get_metrics"}), ErrorCode::ToolDisabled),
        ("validate_contnet", json!({}), ErrorCode::ToolNotFound),
        ("validate_content", json!({"contnet": ""}), ErrorCode::ValidationFailed),
    ] {
        let inside = house.call(name, arguments.clone()).await;
        let direct = house.engine.execute(ToolCall::new(name, arguments)).await;
        assert_eq!(code(&inside), Some(expected), "{name}: {inside:?}");
        assert_eq!(inside.status, direct.status, "{name}");
        let (inside, direct) = (inside.error.unwrap(), direct.error.unwrap());
        assert_eq!((inside.message, inside.problems), (direct.message, direct.problems), "{name}");
    }
}

#[tokio::test]
async fn the_person_is_asked_about_the_tool_inside() {
    let house = house();
    let result = house.call("touch_file", json!({})).await;
    assert_eq!(result.text(), "touched", "{result:?}");
    assert_eq!(*house.person.0.lock().unwrap(), ["touch_file"], "once, and about what has the effect");
}

#[tokio::test]
async fn it_cannot_call_itself_by_any_name() {
    let house = house();
    for name in ["call_tool", "CALL_TOOL", "CallTool", "calltool"] {
        let arguments = json!({"name": "get_metrics", "arguments": {}});
        let result = house.call(name, arguments).await;
        assert_eq!(code(&result), Some(ErrorCode::ValidationFailed), "{name}: {result:?}");
        assert!(result.text().contains("call_tool cannot call itself"), "{}", result.text());
    }
    assert!(house.audit().await.iter().all(|record| &*record.tool == "call_tool"), "nothing else was called");
}

#[tokio::test]
async fn both_calls_are_recorded() {
    let house = house();
    let outer = ToolCall::new("call_tool", json!({"name": "get_metrics"})).with_id("c1");
    house.engine.execute(outer).await;
    house.call("denied_tool", json!({})).await;
    let records = house.audit().await;
    let shown: Vec<_> = records.iter().map(|record| (&*record.tool, record.code)).collect();
    let denied = Some(ErrorCode::ToolDenied);
    assert_eq!(
        shown,
        [("get_metrics", None), ("call_tool", None), ("denied_tool", denied), ("call_tool", denied)]
    );
    assert_ne!(records[0].metadata.execution_id, records[1].metadata.execution_id);
    assert_eq!(*records[0].call_id, *"c1", "both carry the caller's own name for it");
}

#[tokio::test]
async fn whoever_goes_away_ends_both() {
    let house = house();
    let call = ToolCall::new("call_tool", json!({"name": "hang_about"}));
    let outer = tokio::spawn(house.engine.execute(call));
    wait_until(|| house.hanging.count() == 1).await;
    outer.abort();
    wait_until(|| house.hanging.count() == 0 && house.engine.running() == 0).await;
    let ends: Vec<_> =
        house.audit().await.iter().map(|record| (record.tool.to_string(), record.status)).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(ends.iter().all(|(_, status)| *status == Status::Cancelled), "{ends:?}");
}

async fn wait_until(mut done: impl FnMut() -> bool) {
    let waiting = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it happens");
}

/// A call of somebody in a tenant.
fn by(tenant: &str, name: &str, arguments: Value) -> haft_engine::Request {
    haft_engine::Request::from(ToolCall::new(name, arguments))
        .context(haft_core::CallContext::new(tenant, "agent"))
}

/// seeds/001 §5 GetState.
#[tokio::test]
async fn get_state_says_what_runs_for_this_tenant_and_no_other() {
    let house = house();
    let engine = house.engine.clone();
    let hanging = tokio::spawn(async move { engine.execute(by("acme", "hang_about", json!({}))).await });
    while house.hanging.count() == 0 {
        tokio::task::yield_now().await;
    }
    let own = house.engine.execute(by("acme", "GetState", json!({}))).await;
    let state = own.output.unwrap();
    assert_eq!((&state["mode"], &state["tasks"]), (&json!("enabled"), &json!(0)), "{state}");
    let calls = state["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["tool"]), (1, &json!("hang_about")), "without itself: {state}");
    let other = house.engine.execute(by("rival", "get_state", json!({}))).await;
    assert_eq!(other.output.as_ref().unwrap()["calls"], json!([]));
    assert_eq!(other.text(), "Mode enabled; 0 calls running, 0 sandboxes, 0 tasks under way");
    hanging.abort();
}

/// seeds/001 §5 GetLogs.
#[tokio::test]
async fn get_logs_lists_calls_of_this_tenant_and_no_other() {
    let house = house();
    for (tenant, name) in [("acme", "denied_tool"), ("acme", "get_metrics"), ("rival", "inspect_tool")] {
        house.engine.execute(by(tenant, name, json!({}))).await;
    }
    let logs = async |tenant: &str, arguments: Value| {
        let result = house.engine.execute(by(tenant, "GetLogs", arguments)).await;
        let output = result.output.unwrap();
        let calls = output["calls"].as_array().unwrap();
        calls.iter().map(|call| (call["tool"].to_string(), call["code"].clone())).collect::<Vec<_>>()
    };
    let metrics = ("\"get_metrics\"".to_owned(), Value::Null);
    let denied = ("\"denied_tool\"".to_owned(), json!("TOOL_DENIED"));
    assert_eq!(logs("acme", json!({})).await, [metrics.clone(), denied.clone()]);
    assert_eq!(logs("acme", json!({"status": "PermissionDenied"})).await, [denied]);
    assert_eq!(logs("acme", json!({"tool": "GetMetrics", "limit": 1})).await, [metrics]);
    assert_eq!(logs("nobody", json!({})).await, []);
}

/// FR-APR-06: a person sees the command, and that it is of high risk.
#[test]
fn run_command_says_its_command_and_is_of_high_risk() {
    let tools = haft_tools::command_tools(
        &haft_tools::CommandToolSettings::default(),
        &haft_tools::commands::BackgroundCommands::default(),
    );
    let tool = tools.iter().find(|tool| tool.definition().name == "run_command").unwrap();
    let original = haft_core::Arguments::from(json!({"command": "rm -r target"}));
    let value = original.parse().unwrap();
    let prepared = tool.prepare(&haft_sdk::Args { value, original }).unwrap();
    assert_eq!(prepared.summary(), "Run command: rm -r target");
    assert_eq!(tool.definition().risk(), haft_core::Risk::High);
    assert!(tool.definition().requires_confirmation);
}

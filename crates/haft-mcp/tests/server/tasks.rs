//! Calls that go on without their client: the tasks extension of 2026-07-28, with the engine behind it.

use super::support::*;
use haft::{Haft, TaskSettings, ToolCtx, ToolError, tool_fn};
use haft_mcp::server::{Approvals, Callers, EngineTasks, McpServer};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn knows_tasks() -> Value {
    json!({"elicitation": {}, "extensions": {EXTENSION: {}}})
}

/// An engine that remembers questions, for as long as its folder is there.
struct World {
    haft: Haft,
    gate: Arc<tokio::sync::Semaphore>,
    built: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

/// Tools whose deadline is long: one that is quick, one that waits until somebody lets it go, one that has an effect.
fn long_tools(settings: haft::Settings) -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = haft::DurableStore::open_sqlite(folder.path(), haft::StoreOptions::default()).unwrap();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let built = Arc::new(AtomicUsize::new(0));
    let long = |definition: &mut haft::ToolDefinition| {
        described(definition);
        definition.constraints.default_timeout = Some(Duration::from_secs(60));
    };
    let quick = tool_fn("quick", async |_: Given, _: ToolCtx| -> Result<&str, ToolError> { Ok("at once") });
    let passes = Arc::clone(&gate);
    let waits = tool_fn("waits", move |_: Given, cx: ToolCtx| {
        let passes = Arc::clone(&passes);
        async move {
            cx.progress(40, "on its way");
            tokio::select! {
                pass = passes.acquire() => pass.map_err(|_| ToolError::failed("closed"))?.forget(),
                _ = cx.cancelled() => return Err(ToolError::cancelled()),
            }
            Ok::<_, ToolError>("at last")
        }
    });
    let count = Arc::clone(&built);
    let build = tool_fn("build", move |_: Given, _: ToolCtx| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ToolError>("built")
        }
    });
    let haft = Haft::builder()
        .without_builtins()
        .tools(tools())
        .tool(quick.read_only().define(long))
        .tool(waits.read_only().define(long))
        .tool(build.define(long))
        .repeat_guard(None)
        .settings(settings)
        .store(store)
        .build()
        .unwrap();
    World { haft, gate, built, _folder: folder }
}

fn ticking() -> haft::Settings {
    let tasks = TaskSettings { tick: Duration::from_millis(20), ..TaskSettings::default() };
    haft::Settings { tasks, ..haft::Settings::default() }
}

fn offering(haft: &Haft, approvals: Approvals) -> McpServer {
    let tasks = EngineTasks::new(haft.clone().into_engine()).patience(Duration::from_millis(100));
    server(haft.clone()).approvals(approvals).tasks(Arc::new(tasks)).build()
}

async fn as_it_stands(wire: &mut Wire, id: &Value) -> Value {
    wire.ask("tasks/get", json!({"taskId": id})).await["result"].clone()
}

/// The task, once it stands so.
async fn until(wire: &mut Wire, id: &Value, status: &str) -> Value {
    for _ in 0..500 {
        let task = as_it_stands(wire, id).await;
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never was {status}: {}", as_it_stands(wire, id).await);
}

/// Tasks are advertised where calls become tasks, and nowhere else.
#[tokio::test]
async fn tasks_are_advertised_only_where_they_work() {
    let world = long_tools(ticking());
    let server = offering(&world.haft, Approvals::Elsewhere);
    let mut wire = Wire::new(&server, STATELESS, knows_tasks()).await;
    let about = wire.ask("server/discover", json!({})).await;
    assert_eq!(about["result"]["capabilities"]["extensions"], json!({EXTENSION: {}}), "{about}");
    for version in LEGACY {
        let mut wire = Wire::new(&server, version, knows_tasks()).await;
        assert_eq!(wire.begun["capabilities"].get("extensions"), None, "{version}: {}", wire.begun);
        assert_eq!(wire.begun["capabilities"].get("tasks"), None, "{version}");
        let unknown = wire.ask("tasks/get", json!({"taskId": "x"})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{version}: {unknown}");
    }
}

#[tokio::test]
async fn a_call_that_takes_long_becomes_a_task_and_keeps_its_result() {
    let World { haft, gate, _folder, .. } = long_tools(ticking());
    let mut wire = Wire::new(&offering(&haft, Approvals::Elsewhere), STATELESS, knows_tasks()).await;
    let found = wire.ask("server/discover", json!({})).await;
    assert!(found["result"]["capabilities"]["extensions"][EXTENSION].is_object(), "{found}");
    let quick = wire.call("quick", json!({})).await["result"].clone();
    assert_eq!((&quick["resultType"], &quick["content"][0]["text"]), (&json!("complete"), &json!("at once")));

    let meta = json!({"progressToken": "p"});
    let id = wire.request("tools/call", json!({"name": "waits", "_meta": meta})).await;
    let (answer, before) = wire.answer(id).await;
    wire.check_result("tools/call", &answer);
    assert_eq!(before[0]["params"]["message"], "on its way", "progress while it is waited for: {before:?}");
    let task = answer["result"].clone();
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert!(task["pollIntervalMs"].as_u64().unwrap() >= 100 && task["ttlMs"].is_null(), "{task}");
    let working = as_it_stands(&mut wire, &task["taskId"]).await;
    assert_eq!((&working["status"], &working["statusMessage"]), (&json!("working"), &json!("on its way")));

    gate.add_permits(1);
    let done = until(&mut wire, &task["taskId"], "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "at last", "{done}");
    assert!(done["ttlMs"].as_u64().unwrap() > 1000 * 60 * 60, "{done}");
    assert_eq!(wire.ask("tasks/cancel", json!({"taskId": task["taskId"]})).await["error"], Value::Null);
    assert_eq!(as_it_stands(&mut wire, &task["taskId"]).await["status"], "completed");
}

#[tokio::test]
async fn only_for_clients_that_know_tasks_and_tools_that_take_long() {
    let World { haft, gate, _folder, .. } = long_tools(ticking());
    let server = offering(&haft, Approvals::Elsewhere);
    gate.add_permits(3);
    for version in LEGACY.into_iter().chain([STATELESS]) {
        let mut wire = Wire::new(&server, version, json!({})).await;
        let result = wire.call("waits", json!({})).await["result"].clone();
        assert_eq!(result["content"][0]["text"], "at last", "{version}: {result}");
        let unknown = wire.ask("tasks/get", json!({"taskId": "x"})).await;
        assert_eq!(unknown["error"]["code"], -32021, "{version}: {unknown}");
    }
    let mut wire = Wire::new(&server, STATELESS, knows_tasks()).await;
    wire.call("echo", json!({})).await;
    assert_eq!(haft.tasks("local").list(Default::default()).await.unwrap().tasks.len(), 0);
}

#[tokio::test]
async fn a_cancelled_task_ends_and_a_call_that_is_cancelled_before_leaves_none() {
    let World { haft, _folder, .. } = long_tools(ticking());
    let mut wire = Wire::new(&offering(&haft, Approvals::Elsewhere), STATELESS, knows_tasks()).await;
    let task = wire.call("waits", json!({})).await["result"].clone();
    wire.ask("tasks/cancel", json!({"taskId": task["taskId"]})).await;
    until(&mut wire, &task["taskId"], "cancelled").await;
    assert_eq!(haft.running(), 0);

    let tasks = EngineTasks::new(haft.clone().into_engine()).patience(Duration::from_secs(60));
    let patient = server(haft.clone()).tasks(Arc::new(tasks)).build();
    let mut wire = Wire::new(&patient, STATELESS, knows_tasks()).await;
    let id = wire.request("tools/call", json!({"name": "waits"})).await;
    while haft.running() == 0 {
        tokio::task::yield_now().await;
    }
    wire.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    let gone = async {
        while haft.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the call ended");
}

#[tokio::test]
async fn a_task_is_not_there_for_anybody_else() {
    let World { haft, _folder, .. } = long_tools(ticking());
    let mut wire = Wire::new(&offering(&haft, Approvals::Elsewhere), STATELESS, knows_tasks()).await;
    let id = wire.call("waits", json!({})).await["result"]["taskId"].clone();
    let absent = wire.ask("tasks/get", json!({"taskId": "tsk_0"})).await["error"].clone();
    assert_eq!(absent["code"], -32602);
    for (method, wrong) in [
        ("tasks/get", json!({"taskId": 7})),
        ("tasks/cancel", json!({})),
        ("tasks/update", json!({"taskId": id})),
    ] {
        assert_eq!(wire.ask(method, wrong).await["error"]["code"], -32602, "{method}");
    }
    for stranger in [
        owner_with(|context| context.tenant = "other".into()),
        owner_with(|context| context.user = Some("mallory".into())),
    ] {
        let tasks = EngineTasks::new(haft.clone().into_engine());
        let server = McpServer::builder(haft.clone().into_engine(), Callers::One(stranger));
        let mut theirs = Wire::new(&server.tasks(Arc::new(tasks)).build(), STATELESS, knows_tasks()).await;
        for (method, more) in [
            ("tasks/get", json!({})),
            ("tasks/cancel", json!({})),
            ("tasks/update", json!({"inputResponses": {}})),
        ] {
            let mut params = more;
            params["taskId"] = id.clone();
            let hidden = theirs.ask(method, params).await["error"].clone();
            assert_eq!(hidden["code"], absent["code"], "{method}");
            let same = hidden["message"].as_str().unwrap().replace(id.as_str().unwrap(), "tsk_0");
            assert_eq!(same, absent["message"], "{method}: no difference");
        }
    }
    assert_eq!(as_it_stands(&mut wire, &id).await["status"], "working");
}

#[tokio::test]
async fn a_task_that_needs_approval_asks_through_the_client() {
    let World { haft, built, _folder, .. } = long_tools(ticking());
    let mut wire = Wire::new(&offering(&haft, Approvals::ThroughClient), STATELESS, knows_tasks()).await;
    for (answer, status, runs) in [
        (json!({"action": "accept", "content": {"decision": "approve"}}), "completed", 1),
        (json!({"action": "decline"}), "cancelled", 1),
    ] {
        let task = wire.call("build", json!({"n": status})).await["result"].clone();
        assert_eq!(task["resultType"], "task", "{task}");
        let id = &task["taskId"];
        let asks = until(&mut wire, id, "input_required").await;
        let questions = asks["inputRequests"].as_object().unwrap().clone();
        let (name, question) = questions.iter().next().unwrap();
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("May build run?"), "{message}");
        // What is no answer to this changes nothing.
        for nothing in [
            json!({}),
            json!({"haft_approval_x": answer}),
            json!({name: {"action": "cancel"}}),
            json!({name: 7}),
        ] {
            wire.ask("tasks/update", json!({"taskId": id, "inputResponses": nothing})).await;
            assert_eq!(as_it_stands(&mut wire, id).await["status"], "input_required");
        }
        wire.ask("tasks/update", json!({"taskId": id, "inputResponses": {name: answer}})).await;
        let end = until(&mut wire, id, status).await;
        assert_eq!(built.load(Ordering::SeqCst), runs, "{end}");
        // The same answer once more is none: nothing is asked any more.
        wire.ask("tasks/update", json!({"taskId": id, "inputResponses": {name: answer}})).await;
        assert_eq!(as_it_stands(&mut wire, id).await["status"], status);
    }
}

#[tokio::test]
async fn a_task_asks_nobody_through_a_client_that_may_not_answer() {
    let accept = haft_core::port::AcceptAnswers::only([haft_core::Channel::Terminal]);
    let not_mcp = haft::Settings { accept_answers: accept, ..ticking() };
    let without_forms = json!({"extensions": {EXTENSION: {}}});
    for (settings, approvals, capabilities) in [
        (ticking(), Approvals::Elsewhere, knows_tasks()),
        (ticking(), Approvals::ThroughClient, without_forms),
        (not_mcp, Approvals::ThroughClient, knows_tasks()),
    ] {
        let World { haft, built, _folder, .. } = long_tools(settings);
        let mut wire = Wire::new(&offering(&haft, approvals), STATELESS, capabilities).await;
        let id = wire.call("build", json!({})).await["result"]["taskId"].clone();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let task = as_it_stands(&mut wire, &id).await;
        assert_eq!(task["status"], "working", "{task}");
        let approval = task["statusMessage"].as_str().unwrap().rsplit(": ").next().unwrap().to_owned();
        assert!(approval.starts_with("apr_"), "a person can be told: {task}");
        let yes = json!({"action": "accept", "content": {"decision": "approve"}});
        let named = json!({format!("haft_approval_{approval}"): yes});
        wire.ask("tasks/update", json!({"taskId": id, "inputResponses": named})).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        let still = as_it_stands(&mut wire, &id).await;
        assert_eq!((&still["status"], built.load(Ordering::SeqCst)), (&json!("working"), 0), "{still}");
    }
}

#[tokio::test]
async fn what_the_host_asked_counts_for_a_task_too() {
    let World { haft, built, _folder, .. } = long_tools(ticking());
    let mut wire = Wire::new(&offering(&haft, Approvals::Host), STATELESS, knows_tasks()).await;
    let done = wire.call("build", json!({})).await["result"].clone();
    assert_eq!((&done["resultType"], built.load(Ordering::SeqCst)), (&json!("complete"), 1), "{done}");
}

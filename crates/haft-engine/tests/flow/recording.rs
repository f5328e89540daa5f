//! Each node is on record under the id of its flow, and a crash leaves each where it was.

use super::*;
use common::{house, until};
use haft_core::{
    BatchId, CallOptions, ErrorCode, ExecutionId,
    port::{AuditQuery, Recovery, Store as _},
};
use haft_engine::Engine;
use haft_guard::{ListPolicy, PermissionStrings};
use haft_store::{DurableStore, Options};
use std::path::{Path, PathBuf};

#[tokio::test]
async fn each_node_is_found_under_the_flow() {
    let house = house([echo(), fails()]);
    let flow = flow(json!([
        {"name": "a", "tool": "echo", "arguments": {"v": 1}},
        {"name": "b", "tool": "fails", "after": ["a"]},
        {"name": "c", "tool": "echo", "arguments": {"v": "${b.output.v}"}},
        {"name": "d", "tool": "echo", "when": "a.output.v == 2"},
    ]));
    let result = run(&house, flow, json!({})).await;
    let mut found: Vec<_> = house
        .audit()
        .await
        .iter()
        .map(|record| {
            assert_eq!(record.metadata.batch_id, Some(result.batch_id));
            (record.metadata.batch_index, record.call_id.to_string(), record.code)
        })
        .collect();
    found.sort_by_key(|(index, ..)| *index);
    let expected = [
        (Some(0), "a".to_owned(), None),
        (Some(1), "b".to_owned(), Some(ErrorCode::ExecutionFailed)),
        (Some(2), "c".to_owned(), Some(ErrorCode::Blocked)),
    ];
    assert_eq!(found, expected);
    for node in result.nodes.iter().filter_map(|node| node.execution_id) {
        house.ended_once(node).await;
    }
    let kinds = house.kinds(result.batch_id).await;
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("BatchStarted", "BatchCompleted"), "{kinds:?}");
}

fn engine(folder: &Path) -> (Engine, DurableStore) {
    let store = DurableStore::open_sqlite(&folder.join("state"), Options::default()).unwrap();
    let effects = folder.join("effects");
    let write = tool("write", move |args, _| {
        let effects = effects.clone();
        async move {
            use std::io::Write as _;
            let mut file = std::fs::File::options().append(true).create(true).open(&effects).unwrap();
            writeln!(file, "{}", args.value["line"].as_str().unwrap()).unwrap();
            if args.value.contains_key("hang") {
                std::future::pending::<()>().await;
            }
            Ok(ToolOutput::structured(json!({"line": args.value["line"]})))
        }
    })
    .effects();
    let policy = Arc::new(ListPolicy { mode: haft_core::ApprovalMode::Auto, ..ListPolicy::default() });
    let builder = Engine::builder(policy, Arc::new(PermissionStrings), Arc::new(store.clone()));
    (builder.tool(write).build().unwrap(), store)
}

fn crashing() -> Arc<Flow> {
    flow(json!([
        {"name": "a", "tool": "write", "arguments": {"line": "one"}},
        {"name": "b", "tool": "write", "arguments": {"line": "two ${a.output.line}", "hang": true}},
        {"name": "c", "tool": "write", "arguments": {"line": "three"}, "after": ["b"]},
    ]))
}

/// A process that runs a flow until it is killed.
#[test]
#[ignore = "run by another test, as a process of its own"]
fn child() {
    let folder = PathBuf::from(std::env::var("HAFT_FLOW_FOLDER").expect("run by another test"));
    let id: ExecutionId = std::env::var("HAFT_FLOW_ID").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (engine, _store) = engine(&folder);
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        engine.run_flow(FlowRequest::new(crashing(), Map::new()).options(options)).unwrap().await;
    });
}

#[tokio::test]
async fn a_crash_leaves_each_node_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let id = ExecutionId::at(jiff::Timestamp::now());
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recording::child", "--ignored", "--nocapture"])
        .env("HAFT_FLOW_FOLDER", folder.path())
        .env("HAFT_FLOW_ID", id.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let effects = folder.path().join("effects");
    until("two effects", || std::fs::read_to_string(&effects).unwrap_or_default().lines().count() == 2).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_to_string(&effects).unwrap(), "one\ntwo one\n");

    let (engine, store) = engine(folder.path());
    let tenant = store.for_tenant("local");
    let unfinished = tenant.unfinished().await.unwrap();
    assert_eq!(unfinished.len(), 1, "{unfinished:?}");
    tenant.recover(unfinished[0].id, Recovery::Resume).await.unwrap().expect("it waits");
    let query =
        AuditQuery { batch: Some(BatchId::from_uuid(id.as_uuid())), limit: 10, ..AuditQuery::default() };
    let page = tenant.audit_page(query).await.unwrap();
    let mut ends: Vec<_> =
        page.records.iter().map(|(_, record)| (record.call_id.to_string(), record.code)).collect();
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(ends[0], ("a".to_owned(), None));
    assert_eq!(ends[1], ("b".to_owned(), Some(ErrorCode::OutcomeUnknown)));
    assert!(ends.iter().all(|(name, code)| name != "c" || code.is_some()), "{ends:?}");
    assert_eq!(std::fs::read_to_string(&effects).unwrap().lines().count(), 2, "nothing ran again");
    // A flow that ends leaves nothing to decide about.
    let fine = flow(json!([{"name": "a", "tool": "write", "arguments": {"line": "four"}}]));
    assert!(engine.run_flow(FlowRequest::new(fine, Map::new())).unwrap().await.is_success());
    assert!(tenant.unfinished().await.unwrap().is_empty());
}

//! Stopping a flow stops every node of it.

use super::*;
use common::{Count, house, until};
use haft_core::{BatchId, CallOptions, ErrorCode, ExecutionId};
use haft_engine::FlowStatus;
use haft_sdk::CancelReason;

fn hangs(alive: &Count) -> Scripted {
    let alive = alive.clone();
    tool("hangs", move |_, _| {
        let held = alive.alive();
        async move {
            let _held = held;
            std::future::pending::<()>().await;
            Ok("never")
        }
    })
}

fn nodes() -> Value {
    json!([
        {"name": "a", "tool": "hangs"},
        {"name": "b", "tool": "hangs"},
        {"name": "c", "tool": "hangs", "after": ["a"]},
        {"name": "d", "tool": "hangs", "after": ["c", "b"]},
    ])
}

fn with_id(flow: Arc<Flow>) -> (BatchId, FlowRequest) {
    let id = ExecutionId::at(jiff::Timestamp::now());
    let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
    (BatchId::from_uuid(id.as_uuid()), FlowRequest::new(flow, Map::new()).options(options))
}

#[tokio::test]
async fn cancelling_reaches_every_node() {
    let alive = Count::default();
    let house = house([hangs(&alive)]);
    let (id, request) = with_id(flow(nodes()));
    let running = tokio::spawn(house.engine.run_flow(request).unwrap());
    until("two run", || alive.get() == 2).await;
    assert!(house.engine.is_executing(id));
    assert!(house.engine.cancel(id, CancelReason::User, Some("enough")));
    let result = within("the end", running).await.unwrap();
    assert_eq!(statuses(&result), "a cancelled, b cancelled, c cancelled, d cancelled");
    assert_eq!((result.status, result.exit_code()), (FlowStatus::Cancelled, 130));
    assert_eq!(alive.get(), 0);
    assert!(!house.engine.is_executing(id) && !house.engine.cancel(id, CancelReason::User, None));
    for record in house.audit().await {
        assert_eq!(record.code, Some(ErrorCode::Cancelled), "{}", record.call_id);
    }
    assert_eq!(house.audit().await.len(), 4);
}

#[tokio::test]
async fn dropping_a_flow_ends_what_runs_and_records_it() {
    let alive = Count::default();
    let house = house([hangs(&alive)]);
    let (id, request) = with_id(flow(nodes()));
    let running = tokio::spawn(house.engine.run_flow(request).unwrap());
    until("two run", || alive.get() == 2).await;
    running.abort();
    let _ = running.await;
    house.idle().await;
    assert_eq!(alive.get(), 0);
    let records = house.audit().await;
    assert_eq!(records.len(), 2, "what ran is on record");
    assert!(records.iter().all(|record| record.code == Some(ErrorCode::Cancelled)));
    assert!(!house.engine.is_executing(id));
}

#[tokio::test]
async fn a_flow_that_is_never_polled_leaves_nothing() {
    let house = house([echo()]);
    let (id, request) = with_id(flow(json!([{"name": "a", "tool": "echo"}])));
    drop(house.engine.run_flow(request).unwrap());
    assert!(!house.engine.is_executing(id));
    assert!(house.audit().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_flow_may_take_so_long_and_no_longer() {
    let alive = Count::default();
    let house = house([hangs(&alive)]);
    let flow = flow_with(json!({"timeout": "PT3S", "nodes": nodes()}));
    let result = run(&house, flow, json!({})).await;
    assert_eq!((result.status, result.error_code()), (FlowStatus::Cancelled, Some(ErrorCode::Timeout)));
    assert!(reason(&result, "a").contains("the flow took longer than its `timeout`"));
    assert_eq!(alive.get(), 0);
}

#[tokio::test]
async fn a_shutdown_ends_a_flow() {
    let alive = Count::default();
    let house = house([hangs(&alive)]);
    let (_, request) = with_id(flow(nodes()));
    let running = tokio::spawn(house.engine.run_flow(request).unwrap());
    until("two run", || alive.get() == 2).await;
    house.engine.shutdown_now().await;
    let result = within("the end", running).await.unwrap();
    assert_eq!(statuses(&result), "a cancelled, b cancelled, c cancelled, d cancelled");
    assert_eq!(alive.get(), 0);
}

#[tokio::test]
async fn cancelling_in_the_middle_of_many_short_nodes_leaves_none_running() {
    let quick = tool("quick", |_, _| async {
        tokio::task::yield_now().await;
        Ok("done")
    });
    let house = house([quick]);
    for after in 0..40_u32 {
        let nodes: Vec<Value> = (0..30_usize)
            .map(|n| {
                let earlier: Vec<String> = n.checked_sub(3).map(|n| format!("n{n}")).into_iter().collect();
                json!({"name": format!("n{n}"), "tool": "quick", "after": earlier})
            })
            .collect();
        let (id, request) = with_id(flow(Value::Array(nodes)));
        let running = tokio::spawn(house.engine.run_flow(request).unwrap());
        for _ in 0..after {
            tokio::task::yield_now().await;
        }
        house.engine.cancel(id, CancelReason::User, None);
        let result = within("the end", running).await.unwrap();
        assert_eq!(result.nodes.len(), 30);
        assert_eq!(house.engine.running(), 0);
    }
}

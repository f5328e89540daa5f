//! Every attempt at a call is held in alike, wherever the call comes from: by itself, in a batch, as a node of a flow.

use crate::{
    common::{House, Scripted, call, code, house, tool, with, within},
    flow, object,
};
use haft_core::{
    BatchOptions, CallContext, CallOptions, Enforcement, ErrorCode, ExecutionId, Footprint, IsolationLevel,
    Limits, Metrics, ParentGrant, Resource, Retry, Status, ToolError, ToolResult, Violation,
    port::{GuestEnd, GuestSpec},
};
use haft_engine::{BatchRequest, FlowRequest, Request};
use haft_sdk::files::Access;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// What a tool found in one attempt.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    number: u32,
    effect: ExecutionId,
    fitted: Result<GuestSpec, ErrorCode>,
    /// Whether files were there that it did not say it touches.
    reached: bool,
}

type Seen = Arc<Mutex<Vec<Found>>>;

/// Wants everything, and fails twice. Each attempt says that another jail held it.
fn greedy(seen: &Seen) -> Scripted {
    let seen = Arc::clone(seen);
    let greedy = tool("greedy", move |_, cx| {
        let seen = Arc::clone(&seen);
        async move {
            let wanted = GuestSpec {
                writable: vec!["/work".into()],
                hosts: vec!["a.example".into(), "b.example".into()],
                limits: Limits { memory_bytes: Some(1 << 40), ..Limits::default() },
                ..GuestSpec::default()
            };
            let number = cx.attempt();
            seen.lock().unwrap().push(Found {
                number,
                effect: cx.effect_id(),
                fitted: cx.fit(wanted).map_err(|error| error.code),
                reached: cx.workspace().locate("/work/other", Access::Write).is_ok()
                    && cx.workspace().open("/work/other").is_ok(),
            });
            let jail = Enforcement {
                level: IsolationLevel::Strict,
                jail: format!("jail {number}").into(),
                ..Enforcement::in_process()
            };
            let metrics = Metrics { cpu_time_ms: Some(f64::from(number)), ..Metrics::default() };
            let violation = Violation {
                kind: "Test".into(),
                resource: format!("of attempt {number}"),
                description: String::new(),
                timestamp: jiff::Timestamp::UNIX_EPOCH,
                was_blocked: true,
            };
            let end = GuestEnd { metrics, violations: vec![violation], ..GuestEnd::default() };
            cx.note_end(&format!("sandbox {number}"), &jail, &end);
            match number {
                3 => Ok("done"),
                _ => Err(ToolError::new(ErrorCode::RateLimited, "not now")),
            }
        }
    });
    greedy.on_footprint(|_| Footprint::reads([Resource::path("/work/a")]))
}

fn options() -> CallOptions {
    let limits = Limits { scratch_bytes: Some(7), ..Limits::default() };
    CallOptions {
        retry: Some(Retry { max_retries: 2, base: Duration::ZERO, on: Vec::new() }),
        limits: Some(Box::new(limits)),
        ..CallOptions::default()
    }
}

/// Somebody in a sandbox.
fn inside() -> Arc<CallContext> {
    let parent = ParentGrant {
        sandbox_id: "sb".into(),
        limits: Limits { memory_bytes: Some(1 << 20), ..Limits::default() },
        mounts: vec!["/work/a".into()],
        hosts: vec!["a.example".into()],
        ..ParentGrant::default()
    };
    Arc::new(CallContext { parent: Some(parent), ..CallContext::clone(&CallContext::owner()) })
}

fn checked(result: &ToolResult, seen: &Seen) {
    assert_eq!((code(result), result.metadata.attempts), ("OK", 3), "{result:?}");
    let mut seen = seen.lock().unwrap().clone();
    let first = seen[0].fitted.as_ref().unwrap().limits.wall_time;
    for found in &mut seen {
        let wall_time = &mut found.fitted.as_mut().unwrap().limits.wall_time;
        assert!(*wall_time <= first, "attempts share the time of the call: a later one has what is left");
        *wall_time = first;
    }
    assert_eq!(seen.iter().map(|found| found.number).collect::<Vec<_>>(), [1, 2, 3]);
    for found in &seen {
        let first = Found { number: found.number, ..seen[0].clone() };
        assert_eq!(*found, first, "an attempt is held in as the first one is");
        assert_eq!(found.effect, result.metadata.execution_id);
        assert!(!found.reached, "{found:?}");
        let fitted = found.fitted.as_ref().unwrap();
        assert!(fitted.writable.is_empty() && fitted.hosts.is_empty(), "it only reads: {fitted:?}");
        assert_eq!(fitted.readable, [std::path::PathBuf::from("/work/a")], "the sandbox's");
        let limits = (fitted.limits.memory_bytes, fitted.limits.scratch_bytes);
        assert_eq!(limits, (Some(1 << 20), Some(7)), "the sandbox's and the call's");
        assert_eq!(fitted.environment["HAFT_EFFECT_ID"], result.metadata.execution_id.to_string());
    }
    // Each is on record as what it was.
    let records = &result.metadata.attempt_records;
    let shown: Vec<_> = records
        .iter()
        .map(|attempt| {
            let jail = attempt.enforcement.as_ref().unwrap().jail.to_string();
            (attempt.number, attempt.code, jail, attempt.sandbox_id.clone().unwrap())
        })
        .collect();
    let expected = |number: u32, code| (number, code, format!("jail {number}"), format!("sandbox {number}"));
    let failed = Some(ErrorCode::RateLimited);
    assert_eq!(shown, [expected(1, failed), expected(2, failed), expected(3, None)]);
    assert_eq!(result.metadata.enforcement, records[2].enforcement);
    assert_eq!(result.metadata.metrics.as_ref().unwrap().cpu_time_ms, Some(6.0), "of all of them");
    let resources: Vec<_> = result.metadata.violations.iter().map(|one| one.resource.as_str()).collect();
    assert_eq!(resources, ["of attempt 1", "of attempt 2", "of attempt 3"]);
}

fn greedy_house() -> (House, Seen) {
    let seen = Seen::default();
    (house([greedy(&seen)]), seen)
}

#[tokio::test(start_paused = true)]
async fn of_a_single_call() {
    let (house, seen) = greedy_house();
    let request: Request = with(call("greedy"), options()).context(inside());
    let result = house.engine.execute(request).await;
    checked(&result, &seen);
    let record = &house.audit_of(result.metadata.execution_id).await[0];
    assert_eq!(record.metadata.attempt_records, result.metadata.attempt_records);
}

#[tokio::test(start_paused = true)]
async fn of_a_call_in_a_batch() {
    let (house, seen) = greedy_house();
    let options = BatchOptions { call: options(), ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call("greedy")]).options(options).context(inside());
    let (results, _) = house.engine.execute_batch(request).await;
    checked(&results[0], &seen);
}

#[tokio::test(start_paused = true)]
async fn of_a_node_in_a_flow() {
    let (house, seen) = greedy_house();
    let retry = json!({"max_retries": 2, "base": "PT0.01S"});
    let nodes = json!([{"name": "a", "tool": "greedy", "retry": retry}]);
    let options = CallOptions { retry: None, ..options() };
    let request = FlowRequest::new(flow(nodes), object(json!({}))).options(options).context(inside());
    let result = within("the end of the flow", house.engine.run_flow(request).unwrap()).await;
    checked(result.nodes[0].result.as_ref().unwrap(), &seen);
}

/// A thread of an attempt that ran out of time is still there when the next one runs.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_over_starts_nothing_and_is_not_the_next_ones() {
    let kept: Arc<Mutex<Option<haft_sdk::ToolCtx>>> = Arc::default();
    let seen: Arc<Mutex<Option<Result<(), ErrorCode>>>> = Arc::default();
    let (keeps, sees) = (Arc::clone(&kept), Arc::clone(&seen));
    let lingering = tool("lingering", move |_, cx| {
        let (keeps, sees) = (Arc::clone(&keeps), Arc::clone(&sees));
        async move {
            if cx.attempt() == 1 {
                *keeps.lock().unwrap() = Some(cx.clone());
                std::future::pending::<()>().await;
            }
            let earlier = keeps.lock().unwrap().take().unwrap();
            let fitted = earlier.fit(GuestSpec::default()).map(drop).map_err(|error| error.code);
            *sees.lock().unwrap() = Some(fitted);
            earlier.note_contained(
                "another",
                &Enforcement { jail: "another".into(), ..Enforcement::in_process() },
            );
            Ok("done")
        }
    });
    let house = house([lingering]);
    let options = CallOptions { attempt_timeout: Some(Duration::from_secs(1)), ..options() };
    let result = house.engine.execute(with(call("lingering"), options)).await;
    assert_eq!((result.status, result.metadata.attempts), (Status::Success, 2), "{result:?}");
    assert_eq!(*seen.lock().unwrap(), Some(Err(ErrorCode::Cancelled)));
    let jails = |result: &ToolResult| -> Vec<String> {
        let records = result.metadata.attempt_records.iter();
        records.map(|attempt| attempt.enforcement.as_ref().unwrap().jail.to_string()).collect()
    };
    assert_eq!(jails(&result), ["another", "in_process"], "what it says late is about itself");
    assert_eq!(result.metadata.enforcement.as_ref().unwrap().jail, "in_process");
}

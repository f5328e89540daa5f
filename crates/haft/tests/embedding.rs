//! haft as a crate: the example, and what an embedder relies on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft::{
    ApprovalMode, ApprovalRequest, Decision, GrantTime, ListPolicy, Remember, Reply, WhichOffer, ask_with,
    ask_with_async, prelude::*,
};
use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

#[test]
fn the_example_is_short_and_runs() {
    let lines = include_str!("../examples/embed.rs").lines().count();
    assert!(lines <= 25, "{lines} lines");
    // Examples are built beside the folder of this program.
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/embed");
    if !program.exists() {
        // `cargo test` builds it; a run of this file alone does not.
        let build = ["build", "--quiet", "--package", "haft", "--example", "embed"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "6 words, 1 min\n");
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn touch() -> impl haft::Tool {
    tool_fn("touch", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("touched"))
}

async fn status(haft: &Haft) -> (Status, Option<ErrorCode>) {
    let result = haft.execute(ToolCall::new("touch", json!({}))).await;
    (result.status, result.error_code())
}

#[tokio::test]
async fn without_anybody_to_ask_side_effects_do_not_happen() {
    let haft = Haft::builder().tool(touch()).build().unwrap();
    assert_eq!(status(&haft).await, (Status::RequiresConfirmation, Some(ErrorCode::ConfirmationRequired)));
}

/// What waits is answered later, in the same process and without a durable store; what is remembered holds until it is
/// revoked.
#[tokio::test]
async fn approvals_are_answered_later_and_remembered() {
    let haft = Haft::builder().tool(touch()).build().unwrap();
    let waits = (Status::RequiresConfirmation, Some(ErrorCode::ConfirmationRequired));
    assert_eq!(status(&haft).await, waits);
    let approvals = haft.approvals("local");
    let open = approvals.open().await.unwrap().remove(0).request;
    assert!(!open.offers.is_empty(), "{open:?}");
    let remember = Remember { offer: WhichOffer::Place(0), lasts: GrantTime::Always };
    let reply = Reply::Approve { remember: Some(remember) };
    let grant =
        approvals.answer(&open.id, reply, "ada", haft::Channel::Program).await.unwrap().grant.unwrap();
    for _ in 0..3 {
        assert_eq!(status(&haft).await, (Status::Success, None), "the grant spares the question");
    }
    assert!(haft.approvals("other").grants(true).await.unwrap().is_empty());
    assert!(approvals.revoke(&grant.id, "ada").await.unwrap());
    // The yes itself is for one call, and none has used it so far.
    assert_eq!(status(&haft).await, (Status::Success, None));
    assert_eq!(status(&haft).await, waits);
}

#[tokio::test]
async fn a_function_can_approve_and_deny() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let approve = move |requests: &[ApprovalRequest]| {
        count.fetch_add(requests.len(), Ordering::Relaxed);
        vec![Decision::Approve; requests.len()]
    };
    let haft = Haft::builder().tool(touch()).approver(ask_with(approve)).build().unwrap();
    assert_eq!(status(&haft).await, (Status::Success, None));
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    let deny = |requests: Vec<ApprovalRequest>| async move {
        tokio::task::yield_now().await;
        requests.iter().map(|_| Decision::Deny { reason: Some("not today".into()) }).collect()
    };
    let haft = Haft::builder().tool(touch()).approver(ask_with_async(deny)).build().unwrap();
    assert_eq!(status(&haft).await, (Status::Cancelled, Some(ErrorCode::ConfirmationDenied)));
}

#[tokio::test]
async fn a_function_that_panics_or_says_too_little_approves_nothing() {
    let haft = Haft::builder().tool(touch()).approver(ask_with(|_| panic!("oh no"))).build().unwrap();
    assert_eq!(status(&haft).await, (Status::PermissionDenied, Some(ErrorCode::ToolDenied)));

    let haft = Haft::builder()
        .tool(touch())
        .approver(ask_with_async(|_| async {
            tokio::task::yield_now().await;
            panic!("oh no")
        }))
        .build()
        .unwrap();
    assert_eq!(status(&haft).await, (Status::PermissionDenied, Some(ErrorCode::ToolDenied)));

    let haft = Haft::builder().tool(touch()).approver(ask_with(|_| Vec::new())).build().unwrap();
    assert_eq!(status(&haft).await.0, Status::RequiresConfirmation);
}

#[tokio::test]
async fn a_policy_that_names_an_alias_means_the_tool() {
    let lists = ListPolicy { denylist: ["InspectModule".to_owned()].into(), ..ListPolicy::default() };
    let haft = Haft::builder().policy(lists).build().unwrap();
    let result = haft.execute(ToolCall::new("inspect_tool", json!({"name": "get_metrics"}))).await;
    assert_eq!(result.error_code(), Some(ErrorCode::ToolDenied));
}

#[tokio::test]
async fn the_built_in_tools_answer() {
    let haft = Haft::builder().build().unwrap();
    let names: Vec<String> = haft.definitions().iter().map(|definition| definition.name.clone()).collect();
    assert_eq!(
        names,
        [
            "call_tool",
            "get_logs",
            "get_metrics",
            "get_state",
            "inspect_tool",
            "read_output",
            "search_tools",
            "validate_content"
        ]
    );

    let calls = vec![
        ToolCall::new("validate_content", json!({"content": "{}"})),
        ToolCall::new("InspectModule", json!({"name": "GetMetrics"})),
        ToolCall::new("inspect_tool", json!({"name": "valdate_content"})),
        ToolCall::new("get_metrics", json!({"tool": "validate_content"})),
        ToolCall::new("get_metrics", json!({"tool": "valdate_content"})),
    ];
    let (results, summary) = haft.execute_batch(calls).await;
    assert_eq!(summary.succeeded, 3, "{results:?}");
    assert_eq!(results[0].output.as_ref().unwrap()["valid"], true);
    assert_eq!(results[1].output.as_ref().unwrap()["name"], "get_metrics");
    for wrong in [&results[2], &results[4]] {
        assert!(wrong.text().contains("Did you mean `validate_content`?"), "{}", wrong.text());
    }
    let metrics = results[3].output.as_ref().unwrap();
    assert_eq!(metrics["all"]["total"], 1, "only the tool that was asked about: {metrics}");
    for definition in haft.definitions() {
        assert!(!definition.has_side_effects(), "{}", definition.name);
        assert_eq!(definition.version.as_deref(), Some("1.0.0"), "{}", definition.name);
        // What `call_tool` gives is whatever the tool inside gives.
        let is_anything = definition.name == "call_tool";
        assert!(definition.output_schema.is_some() || is_anything, "{}", definition.name);
    }
}

#[tokio::test]
async fn modes_and_lists_come_from_a_configuration() {
    let config = haft::config::parse("[tools.approval]\nmode = 'auto'\n").unwrap();
    let haft = Haft::builder().tool(touch()).config(&config).build().unwrap();
    assert_eq!(status(&haft).await, (Status::Success, None));
    let strict = ListPolicy { mode: ApprovalMode::Deny, ..ListPolicy::default() };
    let haft = Haft::builder().tool(touch()).config(&config).policy(strict).build().unwrap();
    assert_eq!(status(&haft).await.1, Some(ErrorCode::ToolDenied), "what is set later wins");
}

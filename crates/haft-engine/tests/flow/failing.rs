//! What fails, what that blocks, and what goes on.

use super::*;
use common::{Answers, Setup, house};
use haft_core::Decision;
use haft_engine::FlowStatus;

#[tokio::test]
async fn a_failure_blocks_its_dependents_with_the_reason_and_nothing_else() {
    let house = house([echo(), fails()]);
    let flow = flow(json!([
        {"name": "bad", "tool": "fails"},
        {"name": "needs", "tool": "echo", "after": ["bad"]},
        {"name": "needs_that", "tool": "echo", "arguments": {"v": "${needs.output.v}"}},
        {"name": "apart", "tool": "echo", "arguments": {"v": 1}},
    ]));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "bad failed, needs blocked, needs_that blocked, apart success");
    assert_eq!(result.status, FlowStatus::PartialFailure);
    assert_eq!(
        result.error.as_ref().unwrap().message,
        "The node `bad` did not succeed: fails failed: it broke"
    );
    assert_eq!(
        reason(&result, "needs"),
        "Not started, because it depends on `bad`, which did not succeed (EXECUTION_FAILED)"
    );
    assert_eq!(
        reason(&result, "needs_that"),
        "Not started, because it depends on `needs`, which is blocked itself"
    );
    let codes: Vec<_> =
        house.audit().await.iter().map(|record| (record.call_id.to_string(), record.code)).collect();
    assert!(codes.contains(&("needs".to_owned(), Some(haft_core::ErrorCode::Blocked))), "{codes:?}");
    assert_eq!(codes.len(), 4, "each node is on record");
    assert_eq!(result.exit_code(), 1);
}

#[tokio::test]
async fn continue_on_failure_lets_dependents_go_on() {
    let house = house([echo(), fails()]);
    let flow = flow(json!([
        {"name": "bad", "tool": "fails", "continue_on_failure": true},
        {"name": "after", "tool": "echo", "after": ["bad"], "arguments": {"v": 1}},
        {"name": "told", "tool": "echo", "arguments": {"why": "${bad.error.code}", "else": "${bad.output.x ?? 7}"}},
        {"name": "wants", "tool": "echo", "arguments": {"v": "${bad.output.x}"}},
    ]));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "bad failed, after success, told success, wants blocked");
    let told = result.nodes[2].result.as_ref().unwrap().output.clone();
    assert_eq!(told, Some(json!({"why": "EXECUTION_FAILED", "else": 7})));
    assert_eq!(
        reason(&result, "wants"),
        "Not started, because there is no `bad.output.x`: `bad` gave no structured output"
    );
}

#[tokio::test]
async fn a_failure_that_may_be_is_no_failure_of_the_flow() {
    let house = house([echo(), fails()]);
    let flow = flow(json!([
        {"name": "bad", "tool": "fails", "continue_on_failure": true},
        {"name": "after", "tool": "echo", "after": ["bad"], "arguments": {"v": 1}},
    ]));
    let result = run(&house, flow, json!({})).await;
    assert_eq!((result.status, result.exit_code()), (FlowStatus::Success, 0));
    assert_eq!(result.output, Some(json!({"v": 1})));
}

#[tokio::test]
async fn stop_on_failure_starts_nothing_more() {
    let house = house([echo(), fails()]);
    let flow = flow_with(json!({"stop_on_failure": true, "max_parallelism": 1, "nodes": [
        {"name": "bad", "tool": "fails"},
        {"name": "apart", "tool": "echo"},
        {"name": "later", "tool": "echo", "after": ["apart"]},
    ]}));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "bad failed, apart blocked, later blocked");
    let code = result.nodes[1].result.as_ref().and_then(|result| result.error_code());
    assert_eq!(code, Some(haft_core::ErrorCode::NotStarted));
    assert_eq!(result.status, FlowStatus::Failed);
}

#[tokio::test]
async fn a_condition_without_an_answer_fails_its_node_with_its_place() {
    let house = house([echo()]);
    let list: Vec<u32> = (0..3000).collect();
    let flow = flow(json!([
        {"name": "a", "tool": "echo", "arguments": {"list": list}},
        {"name": "wrong", "tool": "echo", "when": "a.output.list"},
        {"name": "none", "tool": "echo", "when": "a.output.lost > 1"},
        {"name": "away", "tool": "echo", "when": "a.output.list.all(x, a.output.list.all(y, x + y >= 0))"},
        {"name": "after", "tool": "echo", "after": ["away"]},
    ]));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "a success, wrong failed, none failed, away failed, after blocked");
    assert!(reason(&result, "wrong").contains("it is to give true or false, and gave a list"));
    assert!(reason(&result, "none").contains("there is no `lost`"));
    assert!(reason(&result, "away").contains("it runs away"), "{}", reason(&result, "away"));
    assert!(reason(&result, "away").contains("(line 1, column "));
    assert_eq!(result.exit_code(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_node_has_its_own_deadline_and_retries() {
    let count = common::Count::default();
    let counted = count.clone();
    let slow = tool("slow", move |_, _| {
        let first = counted.up() == 0;
        async move {
            if first {
                tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
            }
            Ok("done")
        }
    });
    let nodes = json!([{"name": "a", "tool": "slow", "timeout": "PT5S", "retry": {"max_retries": 1, "base": "PT0.01S"}}]);
    let attempt_timeout = Some(std::time::Duration::from_secs(2));
    let options = haft_core::CallOptions { attempt_timeout, ..haft_core::CallOptions::default() };
    let request = FlowRequest::new(flow(nodes), object(json!({}))).options(options);
    let slow_house = house([slow.clone()]);
    let result = within("the end of the flow", slow_house.engine.run_flow(request).unwrap()).await;
    assert_eq!((statuses(&result).as_str(), count.get()), ("a success", 2));
    let hangs = tool("hangs", |_, _| async {
        std::future::pending::<()>().await;
        Ok("never")
    });
    let nodes = json!([{"name": "a", "tool": "hangs", "timeout": "PT2S"}]);
    let result = run(&house([hangs]), flow(nodes), json!({})).await;
    assert_eq!((statuses(&result).as_str(), result.exit_code()), ("a failed", 124));
}

#[tokio::test]
async fn questions_of_one_moment_are_asked_together_and_the_rest_does_not_wait() {
    let answers = Answers::by(|request| match &*request.call_id {
        "c" => Decision::Deny { reason: Some("not that one".to_owned()) },
        _ => Decision::Approve,
    });
    let setup = Setup { approver: Arc::clone(&answers) as _, ..Setup::default() };
    let house = setup.build([echo(), tool("grave", |_, _| async { Ok("done") }).asks()]);
    let flow = flow(json!([
        {"name": "a", "tool": "grave"},
        {"name": "b", "tool": "grave"},
        {"name": "free", "tool": "echo"},
        {"name": "c", "tool": "grave", "after": ["a"]},
        {"name": "after_c", "tool": "echo", "after": ["c"]},
    ]));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "a success, b success, free success, c failed, after_c blocked");
    let asked: Vec<usize> = answers.asked().iter().map(Vec::len).collect();
    assert_eq!(asked, [2, 1]);
    assert_eq!(result.exit_code(), 3);
}

#[tokio::test]
async fn with_nobody_to_ask_the_rest_runs() {
    let house = house([echo(), tool("grave", |_, _| async { Ok("done") }).asks()]);
    let flow = flow(json!([
        {"name": "a", "tool": "grave"}, {"name": "b", "tool": "echo"}, {"name": "c", "tool": "echo", "after": ["a"]},
    ]));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "a failed, b success, c blocked");
    assert_eq!(result.exit_code(), 5);
}

#[tokio::test]
async fn a_text_that_was_cut_is_not_passed_on() {
    let long = tool("long", |_, _| async { Ok("x".repeat(300 * 1024)) });
    let flow = flow(json!([
        {"name": "a", "tool": "long"},
        {"name": "b", "tool": "echo", "arguments": {"v": "${a.text}"}},
    ]));
    let result = run(&house([echo(), long]), flow, json!({})).await;
    assert_eq!(statuses(&result), "a success, b blocked");
    assert!(reason(&result, "b").contains("too long to be passed on whole"), "{}", reason(&result, "b"));
}

#[tokio::test]
async fn an_output_that_cannot_be_put_together_fails_the_flow() {
    let flow = flow_with(json!({
        "nodes": [{"name": "a", "tool": "echo", "arguments": {"v": 1}}],
        "output": {"w": "${a.output.w}"},
    }));
    let result = run(&house([echo()]), flow, json!({})).await;
    assert_eq!(
        result.error.as_ref().unwrap().message,
        "The flow's output cannot be put together: there is no `a.output.w`"
    );
    assert!(!result.is_success() && result.output.is_none());
}

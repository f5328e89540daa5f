//! A call that another program runs: decided and recorded as any other, and never started here.

use crate::common::{Answers, House, Setup, call, call_with, code, tool, within};
use haft_core::{ApprovalMode, Decision, ErrorCode, Status, ToolsMode};
use haft_engine::Settings;
use haft_guard::ListPolicy;
use serde_json::json;
use std::sync::Arc;

/// An engine in that mode, with one tool that changes things, has an output schema and must never run.
fn house(mode: ApprovalMode, around: impl FnOnce(Setup) -> Setup) -> House {
    let setup = Setup { policy: Arc::new(ListPolicy { mode, ..ListPolicy::default() }), ..Setup::default() };
    around(setup).build([tool("change", |_, _| async {
        if true {
            panic!("a call that was only decided about was run")
        }
        Ok(())
    })
    .takes(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
    .gives(json!({"type": "object"}))
    .effects()])
}

#[tokio::test]
async fn what_is_allowed_has_one_record_and_no_attempt() {
    let house = house(ApprovalMode::Auto, |setup| setup);
    let result = within("the decision", house.engine.decide(call("change"))).await;
    assert_eq!((result.status, result.metadata.attempts), (Status::Success, 0), "{result:?}");
    assert!(result.text().starts_with("Allowed. haft did not run it"), "{}", result.text());
    let records = house.audit().await;
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.status, record.metadata.attempts, &*record.tool), (Status::Success, 0, "change"));
    assert!(record.rule.is_some(), "the rule that allowed it is on record");
    assert_eq!(house.kinds(result.metadata.execution_id).await.last(), Some(&"Completed"));
}

#[tokio::test]
async fn what_is_denied_wrong_or_unknown_is_refused_as_it_is_for_a_run() {
    let house = house(ApprovalMode::Deny, |setup| setup);
    for (call, expected) in [
        (call("change"), "TOOL_DENIED"),
        (call("no_such_tool"), "TOOL_NOT_FOUND"),
        (call_with("change", json!({"n": "one"})), "VALIDATION_FAILED"),
    ] {
        let decided = within("the decision", house.engine.decide(call.clone())).await;
        let run = within("the run", house.engine.execute(call)).await;
        assert_eq!(code(&decided), expected);
        assert_eq!(code(&run), expected);
        assert_eq!(decided.error.map(|error| error.message), run.error.map(|error| error.message));
    }
    assert_eq!(house.audit().await.len(), 6, "each has its record");
}

#[tokio::test]
async fn a_person_is_asked_and_the_answer_decides() {
    for (answer, expected) in [
        (Decision::Approve, Status::Success),
        (Decision::Deny { reason: None }, Status::Cancelled),
        (Decision::Unanswered, Status::RequiresConfirmation),
    ] {
        let answers = Answers::by(move |_| answer.clone());
        let house = house(ApprovalMode::Prompt, |setup| Setup { approver: answers, ..setup });
        let result = within("the decision", house.engine.decide(call("change"))).await;
        assert_eq!((result.status, result.metadata.attempts), (expected, 0), "{result:?}");
        let records = house.audit().await;
        assert_eq!(records.len(), 1);
        assert!(records[0].approval.is_some(), "the question is on record");
    }
}

#[tokio::test]
async fn nobody_may_run_what_gets_its_result_from_elsewhere() {
    let settings = Settings { mode: ToolsMode::ParseOnly, ..Settings::default() };
    let house = house(ApprovalMode::Auto, |setup| Setup { settings, ..setup });
    let result = within("the decision", house.engine.decide(call("change"))).await;
    assert_eq!(result.error_code(), Some(ErrorCode::NotStarted));
    assert!(house.engine.pending().is_empty());
}

#[tokio::test]
async fn a_decision_that_nobody_waits_for_is_recorded_all_the_same() {
    let house = house(ApprovalMode::Auto, |setup| setup);
    drop(house.engine.decide(call("change")));
    house.idle().await;
    let records = house.audit().await;
    assert_eq!(records.iter().map(|record| record.status).collect::<Vec<_>>(), [Status::Cancelled]);
}

#[tokio::test]
async fn what_a_person_agreed_to_with_other_arguments_does_not_run_with_these() {
    let answers = Answers::by(|request| match request.arguments.as_str().contains('2') {
        true => Decision::Approve,
        false => Decision::Edit { arguments: json!({"n": 2}).into() },
    });
    let house = house(ApprovalMode::Prompt, |setup| Setup { approver: answers, ..setup });
    let result = within("the decision", house.engine.decide(call_with("change", json!({"n": 1})))).await;
    assert_eq!(result.error_code(), Some(ErrorCode::ConfirmationDenied), "{result:?}");
    assert!(
        result.content.iter().any(|part| format!("{part:?}").contains("\\\"n\\\":2")),
        "{:?}",
        result.content
    );
}

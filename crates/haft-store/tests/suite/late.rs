//! Answers that come too late, or second: none of them counts, whether or not somebody has looked meanwhile.
//!
//! Nobody looks at the list between the steps of a case, so that each check is on its own: what one of them lets pass,
//! no other one catches.

use super::{
    Home,
    durable::approval,
    make::{TestClock, after, call, noon},
};
use haft_core::{
    ApprovalId, ApprovalRequest, Arguments, Decision, ExecutionId,
    port::{Answer, ApprovalState, Store as _, TakenAnswer, TenantStore as _},
};
use haft_store::{DurableStore, Options, Tenant};
use std::sync::Arc;

/// Every decision that answers something.
fn decisions() -> [Decision; 4] {
    [
        Decision::Approve,
        Decision::Deny { reason: Some("not today".into()) },
        Decision::Edit { arguments: Arguments::from_text("{\"n\":2}") },
        Decision::Expired,
    ]
}

fn answer(decision: Decision, by: &str) -> Answer {
    Answer { decision, by: by.to_owned(), from: haft_core::Channel::CommandLine }
}

/// When questions expire here, after noon.
const EXPIRES: i64 = 60_000;

/// A store whose time a test sets.
struct Late {
    store: DurableStore,
    clock: Arc<TestClock>,
}

impl Late {
    fn new(home: &dyn Home) -> Late {
        let clock = Arc::new(TestClock::at(noon()));
        let options = Options { clock: clock.clone(), ..Options::default() };
        Late { store: home.open_with(options), clock }
    }

    fn tenant(&self) -> Tenant {
        self.store.tenant("ask")
    }

    /// A new question, asked at noon.
    async fn ask(&self) -> ApprovalRequest {
        self.clock.set(noon());
        let fingerprint = ApprovalId::random().as_str().to_owned();
        let request = ApprovalRequest {
            fingerprint,
            expires_at: Some(after(EXPIRES)),
            execution_id: ExecutionId::at(noon()),
            ..approval("late")
        };
        let id = self.tenant().ask(request.clone(), Vec::new()).await.unwrap();
        assert_eq!(id, request.id);
        request
    }

    async fn answers(&self, id: &ApprovalId, decision: &Decision, by: &str) -> bool {
        self.tenant().answer(id, answer(decision.clone(), by)).await.unwrap()
    }

    async fn take(&self, id: &ApprovalId, call: ExecutionId) -> TakenAnswer {
        self.tenant().take_answer(id, call).await.unwrap()
    }

    /// Whether a call with that id may begin with that approval.
    async fn begins(&self, id: &ApprovalId, execution: ExecutionId) -> Result<(), String> {
        let mut intent = call("ask", "late").intent();
        (intent.execution_id, intent.approval) = (execution, Some(id.clone()));
        intent.at = haft_core::port::Clock::now(&*self.clock);
        self.store.intent(intent).await.map_err(|error| error.0)
    }

    async fn state(&self, id: &ApprovalId) -> (ApprovalState, Option<String>) {
        let found = self.tenant().approval(id).await.unwrap().expect("it is kept");
        (found.state, found.answered_by)
    }
}

pub async fn run(home: &dyn Home) {
    let late = Late::new(home);
    an_answer_after_the_end_does_not_count(&late).await;
    a_second_answer_does_not_count(&late).await;
    an_answer_that_nobody_took_in_time_is_gone(&late).await;
    an_answer_that_a_call_took_in_time_is_its_own(&late).await;
    only_a_yes_lets_a_call_begin(&late).await;
    what_has_ended_is_asked_again(&late).await;
    answers_of_others_do_not_count(&late).await;
}

async fn an_answer_after_the_end_does_not_count(late: &Late) {
    for decision in decisions() {
        for (moment, counts) in
            [(EXPIRES - 1, true), (EXPIRES, false), (EXPIRES + 1, false), (10 * EXPIRES, false)]
        {
            let request = late.ask().await;
            late.clock.set(after(moment));
            assert_eq!(late.answers(&request.id, &decision, "ada").await, counts, "{decision:?} at {moment}");
            if !counts {
                assert_eq!(
                    late.state(&request.id).await,
                    (ApprovalState::Expired, None),
                    "{decision:?} at {moment}"
                );
                // Not even for a clock that goes back.
                late.clock.set(noon());
                assert!(!late.answers(&request.id, &decision, "ada").await, "{decision:?} at {moment}");
            }
        }
    }
    // A call that waits for it hears so at the same moment, without anybody having looked.
    let request = late.ask().await;
    late.clock.set(after(EXPIRES - 1));
    assert_eq!(late.take(&request.id, request.execution_id).await, TakenAnswer::Open);
    late.clock.set(after(EXPIRES));
    assert_eq!(late.take(&request.id, request.execution_id).await, TakenAnswer::Expired);
    let request = late.ask().await;
    assert!(!late.answers(&request.id, &Decision::Unanswered, "ada").await, "no answer is none");
    assert_eq!(late.state(&request.id).await.0, ApprovalState::Open);
}

async fn a_second_answer_does_not_count(late: &Late) {
    for first in decisions() {
        for second in decisions() {
            let request = late.ask().await;
            assert!(late.answers(&request.id, &first, "ada").await);
            let before = late.state(&request.id).await;
            assert!(!late.answers(&request.id, &second, "bob").await, "{second:?} after {first:?}");
            assert_eq!(late.state(&request.id).await, before, "{second:?} after {first:?}");
            // Nor after a call took the first one.
            let taken = late.take(&request.id, request.execution_id).await;
            assert!(!late.answers(&request.id, &second, "bob").await, "{second:?} after {first:?} was taken");
            assert_eq!(
                late.take(&request.id, request.execution_id).await,
                taken,
                "{second:?} after {first:?}"
            );
        }
    }
    for second in decisions() {
        let request = late.ask().await;
        assert!(late.answers(&request.id, &Decision::Approve, "ada").await);
        late.begins(&request.id, request.execution_id).await.unwrap();
        assert!(!late.answers(&request.id, &second, "bob").await, "{second:?} of one that was used");
        assert_eq!(late.state(&request.id).await, (ApprovalState::Used, Some("ada".to_owned())));
    }
}

async fn an_answer_that_nobody_took_in_time_is_gone(late: &Late) {
    for decision in decisions() {
        let request = late.ask().await;
        assert!(late.answers(&request.id, &decision, "ada").await);
        late.clock.set(after(EXPIRES));
        let taken = late.take(&request.id, request.execution_id).await;
        assert_eq!(taken, TakenAnswer::Expired, "{decision:?}");
    }
    // The same where a call begins with it at once, without having taken it.
    for (moment, may) in [(EXPIRES - 1, true), (EXPIRES, false), (EXPIRES + 1, false)] {
        let request = late.ask().await;
        assert!(late.answers(&request.id, &Decision::Approve, "ada").await);
        late.clock.set(after(moment));
        let begun = late.begins(&request.id, request.execution_id).await;
        assert_eq!(begun.is_ok(), may, "at {moment}: {begun:?}");
        if let Err(reason) = begun {
            assert!(reason.contains("has expired; ask again"), "{reason}");
        }
    }
}

async fn an_answer_that_a_call_took_in_time_is_its_own(late: &Late) {
    let request = late.ask().await;
    assert!(late.answers(&request.id, &Decision::Approve, "ada").await);
    let yes = TakenAnswer::Answered(answer(Decision::Approve, "ada"));
    assert_eq!(late.take(&request.id, request.execution_id).await, yes);
    let another = ExecutionId::at(noon());
    late.clock.set(after(10 * EXPIRES));
    assert_eq!(late.take(&request.id, another).await, TakenAnswer::Gone, "somebody has it");
    assert!(late.begins(&request.id, another).await.is_err(), "somebody has it");
    assert_eq!(late.take(&request.id, request.execution_id).await, yes, "and keeps it");
    late.begins(&request.id, request.execution_id).await.unwrap();
    assert!(late.begins(&request.id, another).await.is_err(), "it was used");
    assert_eq!(late.take(&request.id, another).await, TakenAnswer::Gone);
}

async fn only_a_yes_lets_a_call_begin(late: &Late) {
    for decision in decisions() {
        let is_yes = decision == Decision::Approve;
        for takes in [false, true] {
            let request = late.ask().await;
            assert!(late.answers(&request.id, &decision, "ada").await);
            if takes {
                late.take(&request.id, request.execution_id).await;
            }
            let begun = late.begins(&request.id, request.execution_id).await;
            assert_eq!(begun.is_ok(), is_yes, "{decision:?}, taken: {takes}: {begun:?}");
        }
    }
    let request = late.ask().await;
    assert!(late.begins(&request.id, request.execution_id).await.is_err(), "nobody has answered");
    late.clock.set(after(EXPIRES));
    assert!(late.begins(&request.id, request.execution_id).await.is_err(), "nor ever will");
}

async fn what_has_ended_is_asked_again(late: &Late) {
    for decision in [None, Some(Decision::Approve), Some(Decision::Deny { reason: None })] {
        let request = late.ask().await;
        if let Some(decision) = &decision {
            assert!(late.answers(&request.id, decision, "ada").await);
        }
        late.clock.set(after(EXPIRES));
        let again = ApprovalRequest {
            id: ApprovalId::random(),
            expires_at: Some(after(2 * EXPIRES)),
            ..request.clone()
        };
        let id = late.tenant().ask(again.clone(), Vec::new()).await.unwrap();
        assert_eq!(id, again.id, "{decision:?}: an answer to the old one is none to the new one");
        assert_eq!(late.take(&id, request.execution_id).await, TakenAnswer::Open, "{decision:?}");
    }
}

async fn answers_of_others_do_not_count(late: &Late) {
    let other = late.store.tenant("other");
    for decision in decisions() {
        let request = late.ask().await;
        assert!(!other.answer(&request.id, answer(decision, "eve")).await.unwrap());
        assert_eq!(late.state(&request.id).await, (ApprovalState::Open, None));
    }
    let request = late.ask().await;
    assert!(late.answers(&request.id, &Decision::Approve, "ada").await);
    let mut intent = call("other", "late").intent();
    intent.approval = Some(request.id.clone());
    assert!(late.store.intent(intent).await.is_err());
    let taken_by_others =
        async |id: &ApprovalId, call: ExecutionId| other.take_answer(id, call).await.unwrap();
    let their_call = ExecutionId::at(noon());
    assert_eq!(taken_by_others(&request.id, their_call).await, TakenAnswer::Gone);
    assert_eq!(taken_by_others(&request.id, request.execution_id).await, TakenAnswer::Gone);
    assert_eq!(late.state(&request.id).await, (ApprovalState::Approved, Some("ada".to_owned())));
    // It is still there for its own call; and then it is not for others either, whatever they call themselves.
    let yes = TakenAnswer::Answered(answer(Decision::Approve, "ada"));
    assert_eq!(late.take(&request.id, request.execution_id).await, yes);
    assert_eq!(taken_by_others(&request.id, request.execution_id).await, TakenAnswer::Gone);
    // Nor do they hear that a question is open.
    let open = late.ask().await;
    assert_eq!(taken_by_others(&open.id, open.execution_id).await, TakenAnswer::Gone);
}

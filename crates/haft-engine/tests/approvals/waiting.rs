//! Who waits for an answer: a program that asks for it, calls, tasks.

use crate::{
    common::{Door, code, within},
    deny, edit, first_open, places, request, write,
};
use haft_core::{
    ApprovalId, Channel, ErrorCode, Task, TaskId, TaskState,
    port::{ApprovalState, NobodyToAsk},
};
use haft_engine::{ApprovalError, Engine, Reply};
use serde_json::json;
use std::{sync::Arc, time::Duration};

#[tokio::test]
async fn an_answer_is_waited_for_until_it_comes_or_the_time_is_over() {
    for place in places() {
        let approvals = place.approvals();
        let id = place.ask(&request("apr_1")).await;
        let over = within("the deadline", approvals.wait(&id, Some(Duration::from_millis(1)))).await.unwrap();
        assert_eq!(over.state, ApprovalState::Open, "{}", place.name);
        let waiting = {
            let (approvals, id) = (approvals.clone(), id.clone());
            tokio::spawn(async move { approvals.wait(&id, None).await })
        };
        approvals.answer(&id, deny("no"), "ada", Channel::Terminal).await.unwrap();
        let heard = within("the answer", waiting).await.unwrap().unwrap();
        assert_eq!((heard.state, heard.answered_by.as_deref()), (ApprovalState::Denied, Some("ada")));
        let unknown = approvals.wait(&ApprovalId::from_text("apr_9"), None).await.unwrap_err();
        assert_eq!(unknown.code(), ErrorCode::NotFound);
    }
}

#[tokio::test]
async fn who_subscribes_hears_of_each_open_approval_once() {
    for place in places() {
        let approvals = place.approvals();
        let over = place.ask(&request("apr_0")).await;
        approvals.answer(&over, Reply::approve(), "ada", Channel::Http).await.unwrap();
        for id in ["apr_1", "apr_2"] {
            place.ask(&request(id)).await;
        }
        let mut open = approvals.subscribe();
        let mut heard = Vec::new();
        for later in [None, None, Some("apr_3"), Some("apr_4")] {
            if let Some(id) = later {
                // Nothing is lost with a future that was dropped.
                assert!(tokio::time::timeout(Duration::from_millis(1), open.next()).await.is_err());
                place.ask(&request(id)).await;
            }
            heard.push(within("an approval", open.next()).await.unwrap().request.id.to_string());
        }
        assert_eq!(heard, ["apr_1", "apr_2", "apr_3", "apr_4"], "{}", place.name);
    }
}

#[tokio::test]
async fn a_call_that_waits_goes_on_with_an_answer_from_elsewhere() {
    for place in places() {
        let (engine, ran) = place.engine(Door::closed());
        let running = tokio::spawn({
            let engine = engine.clone();
            async move { engine.execute(write("x")).await }
        });
        let approvals = place.approvals();
        let open = first_open(&approvals).await;
        assert_eq!(engine.approvals("local").get(&open.request.id).await.unwrap(), open, "the same list");
        assert!(ran.lock().unwrap().is_empty(), "nothing runs before the answer");
        approvals.answer(&open.request.id, Reply::approve(), "ada", Channel::CommandLine).await.unwrap();
        assert_eq!(code(&within("the call", running).await.unwrap()), "OK", "{}", place.name);
        assert_eq!(*ran.lock().unwrap(), [r#"{"text":"x"}"#]);
        assert_eq!(place.state(&open.request.id).await, ApprovalState::Used);
        // A yes is for one call.
        let (engine, ran) = place.engine(Arc::new(NobodyToAsk));
        assert_eq!(code(&engine.execute(write("x")).await), "CONFIRMATION_REQUIRED");
        let next = first_open(&approvals).await;
        assert_ne!(next.request.id, open.request.id);
        engine
            .approvals("local")
            .answer(&next.request.id, Reply::approve(), "ada", Channel::Program)
            .await
            .unwrap();
        assert!(ran.lock().unwrap().is_empty(), "an answer runs nothing by itself");
        assert_eq!(code(&engine.execute(write("x")).await), "OK");
        assert_eq!(ran.lock().unwrap().len(), 1);
    }
}

/// A person who is asked about a call answers that call, also while somebody else makes the same one.
#[tokio::test]
async fn two_calls_that_are_the_same_and_wait_have_an_approval_each() {
    for place in places() {
        let (engine, ran) = place.engine(Door::closed());
        let approvals = place.approvals();
        let mut open = approvals.subscribe();
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let engine = engine.clone();
            let call = tokio::spawn(async move { engine.execute(write("x")).await });
            waiting.push((call, within("an approval", open.next()).await.unwrap().request.id));
        }
        for ((call, id), (reply, expected)) in
            waiting.into_iter().zip([(deny("no"), "CONFIRMATION_DENIED"), (Reply::approve(), "OK")])
        {
            approvals.answer(&id, reply, "ada", Channel::Http).await.unwrap();
            assert_eq!(code(&within("the call", call).await.unwrap()), expected, "{}", place.name);
        }
        assert_eq!(ran.lock().unwrap().len(), 1);
        // Once nobody waits, the same call is the same approval again.
        let (engine, _) = place.engine(Arc::new(NobodyToAsk));
        for _ in 0..2 {
            assert_eq!(code(&engine.execute(write("x")).await), "CONFIRMATION_REQUIRED");
        }
        assert_eq!(approvals.open().await.unwrap().len(), 1, "{}", place.name);
    }
}

#[tokio::test]
async fn a_changed_call_is_asked_about_again_and_its_approval_is_found() {
    for place in places() {
        let (engine, ran) = place.engine(Door::closed());
        let running = tokio::spawn(async move { engine.execute(write("x")).await });
        let approvals = place.approvals();
        let open = first_open(&approvals).await.request;
        approvals.answer(&open.id, edit(json!({"text": "y"})), "ada", Channel::Http).await.unwrap();
        let changed = approvals.replacement(&open.id, Duration::from_secs(20)).await.unwrap();
        let changed = changed.expect("somebody waits for it").request;
        assert_eq!(
            (changed.replaces.as_ref(), &changed.arguments),
            (Some(&open.id), &json!({"text": "y"}).into())
        );
        assert!(ran.lock().unwrap().is_empty());
        approvals.answer(&changed.id, Reply::approve(), "ada", Channel::Http).await.unwrap();
        assert_eq!(code(&within("the call", running).await.unwrap()), "OK");
        assert_eq!(*ran.lock().unwrap(), [r#"{"text":"y"}"#], "{}", place.name);
        // Nobody waits for this one.
        let id = place.ask(&request("apr_1")).await;
        approvals.answer(&id, edit(json!({"path": "b"})), "ada", Channel::Http).await.unwrap();
        assert_eq!(approvals.replacement(&id, Duration::ZERO).await.unwrap(), None);
    }
}

/// Waits until a task waits for a person, or is over.
async fn stands(engine: &Engine, id: &TaskId, state: TaskState) -> Task {
    within("the task", async {
        loop {
            let task = engine.tasks("local").wait(id, None).await.unwrap();
            // Until its execution has ended it waits with its approver.
            if task.state == state && engine.running() == 0 {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_task_goes_on_with_the_answer_or_the_changed_call() {
    for place in places() {
        let (engine, ran) = place.engine(Arc::new(NobodyToAsk));
        let approvals = place.approvals();
        let id = engine.submit(write("x"), Default::default()).await.unwrap().id;
        let first = stands(&engine, &id, TaskState::AwaitingApproval).await.approval_id.unwrap();
        approvals.answer(&first, edit(json!({"text": "y"})), "ada", Channel::Http).await.unwrap();
        let changed = within("the changed call", async {
            let mut open = approvals.subscribe();
            open.next().await.unwrap().request
        })
        .await;
        assert_eq!(changed.replaces.as_ref(), Some(&first), "{}", place.name);
        assert!(ran.lock().unwrap().is_empty());
        stands(&engine, &id, TaskState::AwaitingApproval).await;
        approvals.answer(&changed.id, Reply::approve(), "ada", Channel::Http).await.unwrap();
        let done = stands(&engine, &id, TaskState::Completed).await;
        assert_eq!(code(done.result.as_ref().unwrap()), "OK", "{}", place.name);
        assert_eq!(*ran.lock().unwrap(), [r#"{"text":"y"}"#]);
        // Nobody can agree any more to what was cancelled.
        let id = engine.submit(write("z"), Default::default()).await.unwrap().id;
        let asked = stands(&engine, &id, TaskState::AwaitingApproval).await.approval_id.unwrap();
        engine.tasks("local").cancel(&id, None).await.unwrap();
        stands(&engine, &id, TaskState::Cancelled).await;
        assert_eq!(place.state(&asked).await, ApprovalState::Expired, "{}", place.name);
        let late = approvals.answer(&asked, Reply::approve(), "ada", Channel::Http).await.unwrap_err();
        assert_eq!(late.code(), ErrorCode::AlreadyAnswered);
        engine.shutdown_now().await;
    }
}

/// Whether something is hidden is a fact of the approval, and no matter of what the text looks like.
#[tokio::test]
async fn arguments_can_be_changed_where_nothing_is_hidden() {
    for place in places() {
        let approvals = place.approvals();
        for (text, can_edit) in
            [("use hunter2hunter2", false), ("write [redacted:TOKEN] into the page", true)]
        {
            let (engine, ran) = place.engine(Door::closed());
            let running = tokio::spawn(async move { engine.execute(write(text)).await });
            let open = first_open(&approvals).await.request;
            assert!(open.arguments.as_str().contains("[redacted:TOKEN]"), "{}", open.arguments.as_str());
            assert_eq!(open.can_edit(), can_edit, "{text}");
            let answered = approvals.answer(&open.id, edit(json!({"text": "y"})), "ada", Channel::Http).await;
            if !can_edit {
                assert_eq!(answered.unwrap_err(), ApprovalError::Hidden);
                approvals.answer(&open.id, deny("no"), "ada", Channel::Http).await.unwrap();
                assert_eq!(code(&within("the call", running).await.unwrap()), "CONFIRMATION_DENIED");
                continue;
            }
            answered.unwrap();
            let changed = approvals.replacement(&open.id, Duration::from_secs(20)).await.unwrap().unwrap();
            approvals.answer(&changed.request.id, Reply::approve(), "ada", Channel::Http).await.unwrap();
            assert_eq!(code(&within("the call", running).await.unwrap()), "OK", "{}", place.name);
            assert_eq!(*ran.lock().unwrap(), [r#"{"text":"y"}"#]);
        }
    }
}

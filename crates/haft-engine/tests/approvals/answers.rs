//! Which answers are taken, and what comes of them.

use crate::{covers, deny, edit, ids, places, remember, request};
use haft_core::{
    ApprovalId, ApprovalRequest, Channel, ErrorCode, GrantOffer, ToolError,
    port::{AcceptAnswers, ApprovalState, Store as _},
};
use haft_engine::{ApprovalError, Approvals, GrantTime, LONGEST_GRANT, Remember, Reply, WhichOffer};
use haft_guard::{Covers, Grant, Lasts};
use haft_store::MemoryStore;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn an_approval_is_found_and_answered_once() {
    for place in places() {
        let approvals = place.approvals();
        for id in ["apr_1111aaaa", "apr_1111bbbb", "apr_2222cccc"] {
            place.ask(&request(id)).await;
        }
        assert_eq!(ids(&approvals.open().await.unwrap()), ["apr_1111aaaa", "apr_1111bbbb", "apr_2222cccc"]);
        let found = approvals.find("apr_2222").await.unwrap();
        assert_eq!(found.request.id.as_str(), "apr_2222cccc");
        let several = approvals.find("apr_1111").await.unwrap_err();
        assert!(several.to_string().starts_with("several ids begin with `apr_1111`:"), "{several}");
        for unknown in ["apr_", "apr_222", "apr_3333", "nonsense"] {
            let error = approvals.find(unknown).await.unwrap_err();
            assert_eq!(error.to_string(), format!("there is no approval `{unknown}`"), "{}", place.name);
        }
        let others = Approvals::over(place.answers.for_tenant("other"), AcceptAnswers::default());
        let id = found.request.id;
        for error in [
            others.get(&id).await.unwrap_err(),
            others.answer(&id, Reply::approve(), "eve", Channel::Http).await.unwrap_err(),
        ] {
            assert_eq!(error.code(), ErrorCode::NotFound);
        }
        let answered = approvals.answer(&id, deny("not today"), "ada", Channel::Http).await.unwrap();
        assert_eq!((answered.approval.state, answered.grant), (ApprovalState::Denied, None));
        assert_eq!(answered.approval.answer_reason.as_deref(), Some("not today"));
        // The first answer is final.
        let late = approvals.answer(&id, Reply::approve(), "bob", Channel::Terminal).await.unwrap_err();
        assert_eq!(
            late.to_string(),
            "`apr_2222cccc` already has an answer: denied by ada (http): not today",
            "{}",
            place.name
        );
        assert_eq!(ToolError::from(late).code, ErrorCode::AlreadyAnswered);
        // What is over does not make a prefix ambiguous.
        approvals
            .answer(&ApprovalId::from_text("apr_1111aaaa"), Reply::approve(), "ada", Channel::Http)
            .await
            .unwrap();
        assert_eq!(approvals.find("apr_1111").await.unwrap().request.id.as_str(), "apr_1111bbbb");
    }
}

#[tokio::test]
async fn an_answer_from_where_none_is_accepted_changes_nothing() {
    for place in places() {
        let id = place.ask(&request("apr_1")).await;
        let list = || place.answers.for_tenant("local");
        let only_here = Approvals::over(list(), AcceptAnswers::only([Channel::Terminal]));
        let refused = only_here.answer(&id, Reply::approve(), "ada", Channel::Http).await.unwrap_err();
        assert_eq!(refused.to_string(), "haft does not accept answers from `http` here");
        let error = ToolError::from(refused);
        assert_eq!(error.code, ErrorCode::PermissionDenied);
        assert!(error.message.ends_with(": add \"http\" to accept_from under [tools.approval]"), "{error}");
        assert_eq!(place.state(&id).await, ApprovalState::Open, "{}", place.name);
        only_here.answer(&id, Reply::approve(), "ada", Channel::Terminal).await.unwrap();
        assert_eq!(place.state(&id).await, ApprovalState::Approved);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_changes_nothing() {
    for place in places() {
        let approvals = place.approvals();
        let id = place.ask(&request("apr_1")).await;
        let mut hidden = request("apr_2");
        hidden.detail.hidden = Some(String::new());
        let hidden = place.ask(&hidden).await;
        let mut plain = request("apr_3");
        plain.offers.clear();
        let plain = place.ask(&plain).await;
        let refused = [
            (&hidden, edit(json!({"path": "b"})), "the arguments cannot be changed: they hold secrets"),
            (&id, edit(json!({"path": "a"})), "they did not change"),
            (&id, edit(json!([1])), "must be a JSON object"),
            (&id, remember("everything", GrantTime::Always), "haft can remember only this of the call: host"),
            (&plain, remember("host", GrantTime::Always), "haft can remember nothing of this call"),
            (&id, remember("host", GrantTime::Session), "the call belongs to no session"),
            (&id, remember("host", GrantTime::For(Duration::ZERO)), "a grant must last longer than"),
            (&id, remember("host", GrantTime::For(LONGEST_GRANT * 2)), "365 days at most"),
            (&id, deny(&"x".repeat(1001)), "`reason` must have 1000 characters at most"),
        ];
        for (id, reply, words) in refused {
            let approval = approvals.get(id).await.unwrap();
            let checked = approvals.check(&approval, &reply, Channel::Http).unwrap_err();
            let error = approvals.answer(id, reply.clone(), "ada", Channel::Http).await.unwrap_err();
            assert_eq!(checked, error);
            assert!(error.to_string().contains(words), "{reply:?}: {error}");
            assert_eq!(place.state(id).await, ApprovalState::Open, "{} {reply:?}", place.name);
        }
        assert_eq!(approvals.grants(true).await.unwrap(), []);
        // The control: the same with what fits.
        approvals.answer(&id, edit(json!({"path": "b"})), "ada", Channel::Http).await.unwrap();
        assert_eq!(approvals.get(&id).await.unwrap().edited, Some(json!({"path": "b"}).into()));
        approvals.answer(&hidden, deny(&"x".repeat(1000)), "ada", Channel::Http).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_remembered_is_what_the_guard_offered() {
    for place in places() {
        let approvals = place.approvals();
        let mut asked = request("apr_1");
        asked.asker.session = Some("s1".into());
        let cases = [
            (GrantTime::Always, None, None),
            (GrantTime::Session, Some("s1"), None),
            (GrantTime::For(Duration::from_secs(60)), None, Some(Duration::from_secs(60))),
        ];
        for (number, (lasts, session, time)) in cases.into_iter().enumerate() {
            let name = format!("apr_{number}");
            let id = ApprovalId::from_text(&name);
            asked = ApprovalRequest { id, fingerprint: name, ..asked };
            let id = place.ask(&asked).await;
            let answered =
                approvals.answer(&id, remember("host", lasts), "ada", Channel::Http).await.unwrap();
            assert_eq!(answered.approval.state, ApprovalState::Approved);
            let grant = answered.grant.unwrap();
            let end = time.map(|time| grant.granted_at.checked_add(time).unwrap());
            assert_eq!((grant.session.as_deref(), grant.expires_at), (session, end));
            assert_eq!(
                (&*grant.tool, grant.agent.as_deref(), &*grant.granted_by),
                ("fetch", Some("helper"), "ada")
            );
            let understood = Covers::from_document(&serde_json::from_str(&grant.covers).unwrap()).unwrap();
            assert_eq!(understood, covers());
            let lasts = match (session, end) {
                (Some(session), _) => Lasts::Session(session.to_owned()),
                (None, Some(end)) => Lasts::Until(end),
                (None, None) => Lasts::Always,
            };
            assert_eq!(grant.shown, Grant::new("g", "local", understood, lasts).to_string());
            assert_eq!(approvals.grants(false).await.unwrap().last(), Some(&grant), "{}", place.name);
        }
        let first = approvals.grants(false).await.unwrap().remove(0);
        assert!(approvals.revoke(&first.id, "ada").await.unwrap());
        assert!(!approvals.revoke(&first.id, "ada").await.unwrap());
        assert_eq!(
            (approvals.grants(false).await.unwrap().len(), approvals.grants(true).await.unwrap().len()),
            (2, 3)
        );
    }
}

#[test]
fn every_offer_can_be_taken_by_its_place() {
    // Two offers of one kind: the first is meant by its kind, each by its place.
    let offer = |host: &str| {
        let covers = Covers::Host { tool: "fetch".into(), host: host.into(), fixed: Default::default() };
        covers.offer().unwrap()
    };
    let offers: Vec<GrantOffer> = vec![offer("a.example"), offer("b.example")];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = MemoryStore::new();
        let approvals = Approvals::over(store.for_tenant("local"), AcceptAnswers::default());
        for (which, host) in [
            (WhichOffer::Kind("host".into()), "a.example"),
            (WhichOffer::Place(0), "a.example"),
            (WhichOffer::Place(1), "b.example"),
        ] {
            let id = ApprovalId::random();
            let asked = ApprovalRequest { offers: offers.clone(), ..request(id.as_str()) };
            let id = store.for_tenant("local").ask(asked, Vec::new()).await.unwrap();
            let remember = Some(Remember { offer: which, lasts: GrantTime::Always });
            let answered = approvals.answer(&id, Reply::Approve { remember }, "ada", Channel::Terminal).await;
            assert!(answered.unwrap().grant.unwrap().shown.contains(host));
        }
        let id = store.for_tenant("local").ask(request("apr_1"), Vec::new()).await.unwrap();
        let remember = Some(Remember { offer: WhichOffer::Place(7), lasts: GrantTime::Always });
        let refused =
            approvals.answer(&id, Reply::Approve { remember }, "ada", Channel::Terminal).await.unwrap_err();
        assert_eq!(refused, ApprovalError::NoOffer { kinds: vec!["host".into()] });
    });
}

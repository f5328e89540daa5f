//! Stored results and shared runs.

use crate::{
    MS, caller,
    common::{Count, Scripted, call_with, code, known_id, tool, until, with, within},
    kinds, with_around,
};
use futures_util::future::join_all;
use haft_core::{CacheUse, CallContext, CallOptions, Tier, ToolError, ToolOutput};
use haft_engine::{Request, ResultCache};
use haft_sdk::{Args, CancelReason, ToolCtx};
use serde_json::json;

/// A tool that counts its runs and takes 10 ms.
fn counting(name: &str, runs: &Count) -> Scripted {
    let runs = runs.clone();
    tool(name, move |args: Args, _: ToolCtx| {
        let number = runs.up() + 1;
        async move {
            tokio::time::sleep(MS(10)).await;
            match args.value.get("fail") {
                Some(_) => Err(ToolError::failed(format!("run {number}"))),
                None => Ok(ToolOutput::text(format!("run {number}"))),
            }
        }
    })
    .define(|definition| definition.cacheable = true)
}

fn house_of(tools: impl IntoIterator<Item = Scripted>) -> crate::common::House {
    with_around(tools, |builder| builder.cache(ResultCache::default()))
}

#[tokio::test(start_paused = true)]
async fn the_same_call_is_answered_by_its_first_result_for_five_minutes() {
    let runs = Count::default();
    let house = house_of([counting("looks_up", &runs)]);
    let ask = |arguments| house.engine.execute(call_with("looks_up", arguments));
    let first = ask(json!({"a": 1, "b": 2})).await;
    let again = ask(json!({"b": 2, "a": 1})).await;
    assert_eq!((first.text(), again.text(), again.metadata.attempts), ("run 1", "run 1", 0));
    let from = again.metadata.scheduling.as_ref().unwrap().cache.clone().unwrap();
    assert_eq!((from.execution_id, from.shared), (first.metadata.execution_id, false));
    assert_eq!(kinds(&house.events(again.metadata.execution_id).await), ["Started", "CacheHit", "Completed"]);
    assert_eq!(ask(json!({"a": 1, "b": 3})).await.text(), "run 2", "other arguments");
    tokio::time::advance(MS(300_000)).await;
    assert_eq!(ask(json!({"a": 1, "b": 2})).await.text(), "run 3", "too old");
    let stats = house.engine.stats().cache.unwrap();
    assert_eq!((stats.hits, stats.misses, stats.shared), (1, 3, 0));
    assert_eq!(house.audit().await.len(), 4, "a stored answer leaves a record, too");
}

#[tokio::test(start_paused = true)]
async fn only_tools_that_say_so_and_change_nothing() {
    let runs: [Count; 2] = std::array::from_fn(|_| Count::default());
    let house = house_of([
        counting("plain", &runs[0]).define(|definition| definition.cacheable = false),
        counting("writes", &runs[1]).on_footprint(|_| haft_core::Footprint::undeclared(true)),
    ]);
    for name in ["plain", "writes"] {
        house.engine.execute(call_with(name, json!({}))).await;
        house.engine.execute(call_with(name, json!({}))).await;
    }
    assert_eq!(runs.each_ref().map(Count::get), [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn no_tenant_person_or_permission_sees_anothers() {
    let runs = Count::default();
    let house = house_of([counting("looks_up", &runs)]);
    let ada = caller("t", "a", Tier::Teams);
    let others = [
        ada.clone(),
        CallContext { agent: "another agent of the same tenant".into(), ..ada.clone() },
        CallContext { tenant: "u".into(), ..ada.clone() },
        CallContext { user: Some("bob".into()), ..ada.clone() },
        CallContext { permissions: vec!["*".into(), "more".into()], ..ada.clone() },
        CallContext { roles: vec!["admin".into()], ..ada.clone() },
        CallContext {
            parent: Some(haft_core::ParentGrant { sandbox_id: "sb".into(), ..Default::default() }),
            ..ada.clone()
        },
    ];
    let mut texts = Vec::new();
    for context in others {
        let request = Request::new(call_with("looks_up", json!({}))).context(context);
        texts.push(house.engine.execute(request).await.text().to_owned());
    }
    assert_eq!(texts, ["run 1", "run 1", "run 2", "run 3", "run 4", "run 5", "run 6"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_not_stored_and_a_caller_may_refuse_what_is() {
    let runs = Count::default();
    let house = house_of([counting("looks_up", &runs)]);
    let failing = || house.engine.execute(call_with("looks_up", json!({"fail": true})));
    assert!(failing().await.text().contains("run 1") && failing().await.text().contains("run 2"));
    let ask = |cache| {
        let options = CallOptions { cache, ..CallOptions::default() };
        house.engine.execute(with(call_with("looks_up", json!({})), options))
    };
    assert_eq!(ask(CacheUse::Off).await.text(), "run 3");
    assert_eq!(ask(CacheUse::Allowed).await.text(), "run 4", "nothing was stored");
    assert_eq!(ask(CacheUse::Refresh).await.text(), "run 5");
    assert_eq!(ask(CacheUse::Allowed).await.text(), "run 5", "what was fetched again is stored");
    house.engine.clear_cache(Some("looks_up"));
    assert_eq!(ask(CacheUse::Allowed).await.text(), "run 6");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_equal_calls_at_once_run_once() {
    for (arguments, expected) in [(json!({}), "run 1"), (json!({"fail": 1}), "looks_up failed: run 1")] {
        let runs = Count::default();
        let house = house_of([counting("looks_up", &runs)]);
        let results =
            join_all((0..100).map(|_| house.engine.execute(call_with("looks_up", arguments.clone())))).await;
        assert_eq!(runs.get(), 1);
        assert!(results.iter().all(|result| result.text() == expected));
        assert_eq!(house.engine.stats().cache.unwrap().shared, 99);
        house.idle().await;
    }
}

#[tokio::test]
async fn where_the_one_that_runs_is_cancelled_another_takes_over() {
    let runs = Count::default();
    let counted = runs.clone();
    let first_hangs = tool("first_hangs", move |_: Args, _: ToolCtx| {
        let number = counted.up() + 1;
        async move {
            if number == 1 {
                std::future::pending::<()>().await;
            }
            Ok(format!("run {number}"))
        }
    })
    .define(|definition| definition.cacheable = true);
    let house = house_of([first_hangs]);
    let (id, options) = known_id();
    let leader = tokio::spawn(house.engine.execute(with(call_with("first_hangs", json!({})), options)));
    until("it runs", || runs.get() == 1).await;
    let followers: Vec<_> =
        (0..5).map(|_| tokio::spawn(house.engine.execute(call_with("first_hangs", json!({}))))).collect();
    tokio::time::sleep(MS(20)).await;
    house.engine.cancel(id, CancelReason::User, None);
    assert_eq!(code(&within("the end", leader).await.unwrap()), "CANCELLED");
    for follower in followers {
        assert_eq!(within("a follower", follower).await.unwrap().text(), "run 2");
    }
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_only_streamed_is_not_stored() {
    let runs = Count::default();
    let counted = runs.clone();
    let prints = tool("prints", move |_: Args, cx: ToolCtx| {
        counted.up();
        async move {
            cx.print("streamed");
            Ok(ToolOutput::default())
        }
    })
    .define(|definition| definition.cacheable = true);
    let house = house_of([prints]);
    for _ in 0..2 {
        assert_eq!(house.engine.execute(call_with("prints", json!({}))).await.text(), "streamed");
    }
    assert_eq!(runs.get(), 2);
}

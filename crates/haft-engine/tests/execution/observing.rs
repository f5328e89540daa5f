//! Observers: early, late, slow, of a call and of a batch; and the counts that tools can see.

use crate::common::{Count, Scripted, Setup, call, house, known_id, tool, until, with, within};
use haft_core::{BatchId, BatchOptions, CallContext, Event, EventPayload, ExecutionId, Tier, ToolError};
use haft_engine::{BatchRequest, Request, Settings};
use haft_sdk::ToolCtx;
use serde_json::json;
use std::time::{Duration, Instant};

fn chatty() -> Scripted {
    tool("chatty", |_, cx: ToolCtx| async move {
        cx.progress(10, "begun");
        cx.print("some ");
        tokio::task::yield_now().await;
        cx.warn("slow disk");
        cx.print("output");
        Ok(())
    })
}

fn failing() -> Scripted {
    tool("fails", |_, _| async { Err::<(), _>(ToolError::failed("no")) })
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.payload.kind()).collect()
}

#[tokio::test]
async fn a_batch_observer_gets_every_event_of_every_call_with_its_place_and_then_the_end() {
    let house = house([chatty(), failing()]);
    let (id, options) = known_id();
    let batch = BatchId::from_uuid(id.as_uuid());
    let options = BatchOptions { call: options, ..BatchOptions::default() };
    let request = BatchRequest::from(["chatty", "fails", "no_such_tool", "chatty"].map(call).to_vec());
    let running = house.engine.execute_batch(request.options(options));
    let watching = house.events(batch);
    let ((results, _), events) = tokio::join!(running, watching);

    assert!(
        events.iter().all(|event| event.batch_id == Some(batch)),
        "an event without its batch: {events:?}"
    );
    assert_eq!(
        events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        (0..events.len() as u64).collect::<Vec<_>>()
    );
    let of = |index: u32| -> Vec<Event> {
        events.iter().filter(|event| event.batch_index == Some(index)).cloned().collect()
    };
    let chatty = ["Started", "InProgress", "InProgress", "Output", "Warning", "Output", "Completed"];
    let expected: [&[&str]; 4] =
        [&chatty, &["Started", "InProgress", "Failed"], &["Started", "Failed"], &chatty];
    for (index, (expected, result)) in (0..).zip(expected.iter().zip(&results)) {
        let of_call = of(index);
        assert_eq!(kinds(&of_call), *expected, "call {index}");
        assert!(of_call.iter().all(|event| event.execution_id == Some(result.metadata.execution_id)));
        // The call's own log has the same, in the same order.
        let own = house.events(result.metadata.execution_id).await;
        let payloads =
            |events: &[Event]| events.iter().map(|event| event.payload.clone()).collect::<Vec<_>>();
        assert_eq!(payloads(&own), payloads(&of_call), "call {index}");
        assert!(own.iter().all(|event| event.batch_index == Some(index)));
    }
    assert_eq!(events.first().map(|event| event.payload.kind()), Some("BatchStarted"));
    assert_eq!(events.last().map(|event| event.payload.kind()), Some("BatchCompleted"));
}

#[tokio::test]
async fn a_late_observer_gets_the_whole_log_and_the_end() {
    let house = house([chatty()]);
    let (id, options) = known_id();
    let live = async {
        let mut observer = house.engine.observe(id).expect("a call can be watched once it is made");
        let mut events = Vec::new();
        while let Some(event) = observer.next().await {
            events.push(event);
        }
        events
    };
    let running = house.engine.execute(with(call("chatty"), options));
    let (live, result) = tokio::join!(live, running);
    let all = ["Started", "InProgress", "InProgress", "Output", "Warning", "Output", "Completed"];
    assert_eq!(kinds(&live), all);
    assert_eq!(house.events(id).await, live, "a late observer sees something else");
    assert!(
        live.last().unwrap().elapsed >= result.metadata.duration,
        "an event has the time since the call came in"
    );
    assert!(
        live.windows(2)
            .all(|pair| pair[0].elapsed <= pair[1].elapsed && pair[0].timestamp <= pair[1].timestamp)
    );
}

#[tokio::test]
async fn there_is_nothing_to_observe_where_there_is_no_call() {
    let settings = Settings { observable_after_end: 16, ..Settings::default() };
    let house = Setup { settings, ..Setup::default() }.build([chatty()]);
    assert!(house.engine.observe(ExecutionId::at(jiff::Timestamp::now())).is_none());
    assert!(house.engine.observe(BatchId::at(jiff::Timestamp::now())).is_none());
    let (id, options) = known_id();
    house.engine.execute(with(call("chatty"), options)).await;
    assert!(house.engine.observe(id).is_some());
    for _ in 0..2000 {
        house.engine.execute(call("no_such_tool")).await;
    }
    assert!(house.engine.observe(id).is_none(), "the logs of ended calls pile up");
}

#[tokio::test]
async fn a_stalled_observer_delays_nobody_gets_a_gap_and_can_catch_up_from_the_stored_output() {
    const CHUNKS: usize = 100_000;
    let house = house([tool("floods", |_, cx: ToolCtx| async move {
        for n in 0..CHUNKS {
            cx.print(&format!("{n:05}\n"));
        }
        cx.warn("that was all");
        Ok(())
    })]);
    let (id, options) = known_id();
    let mut running = Box::pin(house.engine.execute(with(call("floods"), options)));
    let mut stalled = house.engine.observe(id).unwrap();
    let before = Instant::now();
    let result = within("the tool", running.as_mut()).await;
    let took = before.elapsed();
    // The first event is fetched only now.
    let mut events = Vec::new();
    while let Some(event) = stalled.next().await {
        events.push(event);
    }
    assert!(result.is_success());
    assert!(
        took < Duration::from_secs(10),
        "100,000 chunks took {took:?} beside an observer that reads nothing"
    );

    let kept = house.engine.settings().event_log_capacity;
    assert_eq!(kinds(&events[..3]), ["Started", "InProgress", "Gap"]);
    assert_eq!(events.len(), kept + 5, "start, tool starts, gap, what is kept, warning, end");
    assert_eq!(events[2].payload, EventPayload::Gap { from: 2, to: (CHUNKS - kept) as u64 + 1 });
    assert_eq!(kinds(&events[events.len() - 2..]), ["Warning", "Completed"]);

    let EventPayload::Output { offset, chunk, .. } = &events[3].payload else { panic!("{:?}", events[3]) };
    assert_eq!(*chunk, format!("{:05}\n", CHUNKS - kept), "the chunks after the gap go on where it ends");
    let handle = result.metadata.output_handle.as_ref().expect("600 kB are stored");
    let stored = house.stored("local", handle).await.unwrap();
    let missed = &stored[..usize::try_from(*offset).unwrap()];
    let expected: String = (0..CHUNKS - kept).map(|n| format!("{n:05}\n")).collect();
    assert!(missed == expected.as_bytes(), "what was missed cannot be read back");
    let rest: String = events[3..]
        .iter()
        .filter_map(|event| match &event.payload {
            EventPayload::Output { chunk, .. } => Some(chunk.as_str()),
            _ => None,
        })
        .collect();
    assert!(stored[missed.len()..] == *rest.as_bytes(), "stored output and events differ");
}

#[tokio::test]
async fn a_tier_below_teams_gets_only_changes_of_state() {
    let house = house([chatty()]);
    for (tier, full) in
        [(Tier::Core, false), (Tier::WriterPro, false), (Tier::Teams, true), (Tier::Enterprise, true)]
    {
        let context = CallContext { tier, ..CallContext::new("local", "agent") };
        let result = house.engine.execute(Request::new(call("chatty")).context(context.clone())).await;
        let events = house.events(result.metadata.execution_id).await;
        let droppable = events.iter().filter(|event| event.payload.is_droppable()).count();
        assert_eq!(droppable, if full { 3 } else { 0 }, "{tier:?}: {:?}", kinds(&events));
        assert_eq!(
            house.kinds(result.metadata.execution_id).await,
            ["Started", "InProgress", "Warning", "Completed"],
            "{tier:?}"
        );
        assert_eq!(result.text(), "some output", "{tier:?}: the result is the same for all");

        let (_, summary) =
            house.engine.execute_batch(BatchRequest::from(vec![call("chatty")]).context(context)).await;
        let events = house.events(summary.batch_id).await;
        assert_eq!(events.iter().any(|event| event.payload.is_droppable()), full, "{tier:?}: in a batch");
    }
}

#[tokio::test]
async fn a_tool_can_read_the_counts_of_the_engine() {
    let metrics = tool("get_metrics", |args, cx: ToolCtx| async move {
        Ok(cx.engine().metrics(&cx.context().tenant, args.value.get("tool").and_then(|tool| tool.as_str())))
    });
    let aliased = failing().define(|definition| definition.aliases = vec!["Breaks".into()]);
    let house = house([metrics, aliased, tool("ping", |_, _| async { Ok(()) })]);
    for name in ["ping", "ping", "fails", "Breaks", "ping", "no_such_tool"] {
        house.engine.execute(call(name)).await;
    }
    let seen = house.engine.execute(call("get_metrics")).await.output.unwrap();
    assert_eq!(seen["all"]["total"], 5, "what is no tool has no counts: {seen}");
    assert_eq!(seen["all"]["byStatus"], json!({"Success": 3, "Failed": 2}));
    assert_eq!(seen["tools"]["ping"]["total"], 3);
    assert_eq!(seen["tools"]["fails"]["byStatus"], json!({"Failed": 2}), "an alias counts as its tool");
    assert!(seen["tools"].get("get_metrics").is_none(), "it has not ended yet: {seen}");
    let times = &seen["tools"]["ping"]["durationMs"];
    assert!(["mean", "p50", "p95", "p99"].iter().all(|name| times[*name].is_number()), "{times}");

    let one = haft_core::ToolCall::new("get_metrics", json!({"tool": "Breaks"}));
    let seen = house.engine.execute(one).await.output.unwrap();
    assert_eq!((&seen["all"]["total"], seen["tools"].as_object().unwrap().len()), (&json!(2), 1), "{seen}");
}

#[tokio::test]
async fn is_executing_follows_a_call_and_a_batch() {
    let runs = Count::default();
    let (gate, counted) = (std::sync::Arc::new(tokio::sync::Semaphore::new(0)), runs.clone());
    let inside = std::sync::Arc::clone(&gate);
    let house = house([tool("waits", move |_, _| {
        counted.up();
        let gate = std::sync::Arc::clone(&inside);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(())
        }
    })]);
    let (id, options) = known_id();
    let batch = BatchId::from_uuid(id.as_uuid());
    let options = BatchOptions { call: options, ..BatchOptions::default() };
    let engine = house.engine.clone();
    let request = BatchRequest::from(vec![call("waits"), call("waits")]).options(options);
    assert!(!house.engine.is_executing(batch));
    let running = tokio::spawn(async move { engine.execute_batch(request).await });
    until("it runs", || runs.get() == 1).await;
    assert!(house.engine.is_executing(batch));
    assert_eq!(house.engine.running(), 2);
    gate.add_permits(1);
    until("the first has ended", || house.engine.running() == 1).await;
    assert!(house.engine.is_executing(batch));
    gate.add_permits(1);
    within("the batch", running).await.unwrap();
    assert!(!house.engine.is_executing(batch));
}

/// seeds/000 §4.4, §4.5, §5.1: Started is the first event of every call, InProgress comes when its tool starts, and
/// every event says in words what happened.
#[tokio::test]
async fn started_is_first_also_where_a_call_is_refused_and_every_event_has_words() {
    let house = house([chatty().asks(), failing()]);
    let bad = haft_core::ToolCall::new("fails", haft_core::Arguments::from_text("{not json"));
    let huge = "x".repeat(house.engine.settings().max_args_bytes);
    let huge = haft_core::ToolCall::new("nothing", serde_json::json!({ "text": huge }));
    for (sent, expected) in [
        (call("no_such_tool"), ["Started", "Failed"].as_slice()),
        (bad, &["Started", "Failed"]),
        (huge, &["Started", "Failed"]),
        (call("fails"), &["Started", "InProgress", "Failed"]),
    ] {
        let name = sent.name.clone();
        let result = house.engine.execute(sent).await;
        let events = house.events(result.metadata.execution_id).await;
        assert_eq!(kinds(&events), expected, "{name}");
        for event in &events {
            let sent = serde_json::to_value(event).unwrap();
            assert!(sent["message"].as_str().is_some_and(|words| !words.is_empty()), "{sent}");
            assert!(
                sent.to_string().len() < 10_000,
                "arguments that were refused as too large are in an event"
            );
        }
        let error = result.error.as_ref().unwrap();
        assert_eq!(events.last().unwrap().payload.message(), error.message, "{name}");
    }
}

/// seeds/000 §3.1 IMediator, §4.4; seeds/003 §8: events of all executions reach any subscriber, of its tenant.
#[tokio::test]
async fn an_engine_wide_stream_has_every_event_of_a_tenants_calls_and_batches() {
    let house = house([chatty()]);
    let of = |tenant: &str| CallContext { tier: Tier::Teams, ..CallContext::new(tenant, "agent") };
    let (mut ours, mut others) = (house.engine.events("local"), house.engine.events("other"));
    let result = house.engine.execute(Request::new(call("chatty")).context(of("local"))).await;
    let batch = BatchRequest::from(vec![call("chatty"), call("no_such_tool")]).context(of("local"));
    let (results, summary) = house.engine.execute_batch(batch).await;
    let foreign = house.engine.execute(Request::new(call("chatty")).context(of("other"))).await;

    let mut own = house.events(result.metadata.execution_id).await;
    own.extend(house.events(summary.batch_id).await);
    let payloads = |events: &[Event]| events.iter().map(|event| event.payload.clone()).collect::<Vec<_>>();
    let mut heard = Vec::new();
    while heard.len() < own.len() {
        heard.push(within("an event", ours.next()).await.unwrap());
    }
    assert_eq!(payloads(&heard), payloads(&own), "the stream and the logs differ");
    assert!(heard.iter().zip(0..).all(|(event, number)| event.seq == number), "numbers have no holes");
    let ids: std::collections::BTreeSet<_> = heard.iter().filter_map(|event| event.execution_id).collect();
    let expected = results.iter().chain([&result]).map(|result| result.metadata.execution_id);
    assert_eq!(ids, expected.collect());
    assert_eq!(heard.last().unwrap().batch_id, Some(summary.batch_id));

    let place = ours.position();
    drop(ours);
    house.engine.execute(Request::new(call("no_such_tool")).context(of("local"))).await;
    let mut again = house.engine.events_from("local", place);
    let next = [again.next().await.unwrap(), again.next().await.unwrap()];
    assert_eq!(kinds(&next), ["Started", "Failed"], "nothing is lost between two connections");

    let first = within("an event", others.next()).await.unwrap();
    assert_eq!(first.execution_id, Some(foreign.metadata.execution_id), "only the other tenant's own");
    house.engine.shutdown_now().await;
    while within("the end", again.next()).await.is_some() {}
}

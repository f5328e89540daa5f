//! Strategies: what overlaps, what does not, what stops, and what is said about it.

use crate::{
    Diary, batch, caller,
    common::{Scripted, call_with, codes, house, tool, within},
    kinds,
};
use haft_core::{
    BatchOptions, BatchOrigin, EventPayload, Footprint, Resource, Strategy, Tier, ToolCall, ToolError,
};
use haft_engine::BatchRequest;
use haft_sdk::{Args, ToolCtx};
use serde_json::json;

fn note(name: &str, n: u64) -> ToolCall {
    call_with(name, json!({"n": n}))
}

/// A tool whose footprint is in its arguments: `r` and `w` are paths.
fn touches(diary: &Diary) -> Scripted {
    diary.tool("touches").effects().on_footprint(|args: &haft_sdk::Args| {
        let of = |key: &str| args.value.get(key).and_then(|path| path.as_str()).map(Resource::path);
        Footprint { reads: of("r").into_iter().collect(), writes: of("w").into_iter().collect() }
    })
}

#[tokio::test(start_paused = true)]
async fn sequential_starts_each_call_when_the_one_before_has_ended() {
    let diary = Diary::default();
    let house = house([diary.tool("reads")]);
    let calls = (0..4).map(|n| note("reads", n)).collect();
    let (results, summary) = house.engine.execute_batch(batch(calls, Strategy::Sequential, 4)).await;
    assert_eq!(diary.text(), "+0 -0 +1 -1 +2 -2 +3 -3 ");
    assert_eq!(results.iter().map(|result| result.text()).collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert_eq!((summary.total, summary.executed, summary.succeeded, summary.failed), (4, 4, 4, 0));
    assert_eq!((summary.read_only, summary.mutating, summary.overlapped), (4, 0, 0));
    assert!(summary.duration >= std::time::Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn parallel_starts_all_up_to_the_limit_and_answers_in_call_order() {
    let diary = Diary::default();
    let house = house([diary.tool("reads")]);
    // The first takes longest, so that the ends are in another order than the calls.
    let calls = (0..5).map(|n| call_with("reads", json!({"n": n, "ms": 50 - 10 * n}))).collect();
    let (results, summary) = house.engine.execute_batch(batch(calls, Strategy::Parallel, 5)).await;
    assert_eq!(diary.text(), "+0 +1 +2 +3 +4 -4 -3 -2 -1 -0 ");
    assert_eq!(results.iter().map(|result| result.text()).collect::<Vec<_>>(), ["0", "1", "2", "3", "4"]);
    assert_eq!(summary.overlapped, 5);
}

#[tokio::test(start_paused = true)]
async fn max_parallelism_bounds_what_runs_at_once() {
    for most in [2, 3, 7] {
        let diary = Diary::default();
        let house = house([diary.tool("reads")]);
        let calls = (0..20).map(|n| note("reads", n)).collect();
        house.engine.execute_batch(batch(calls, Strategy::Smart, most)).await;
        assert_eq!(diary.most_at_once(), most);
    }
}

#[tokio::test(start_paused = true)]
async fn smart_never_moves_a_read_across_a_conflicting_write() {
    let diary = Diary::default();
    let house = house([touches(&diary)]);
    let call = |n: u64, key: &str, path: &str| call_with("touches", json!({"n": n, key: path}));
    let calls = vec![
        call(0, "r", "/a/x"),
        call(1, "r", "/b"),
        call(2, "w", "/a"),
        call(3, "r", "/a/y"),
        call(4, "w", "/c"),
    ];
    let (_, summary) = house.engine.execute_batch(batch(calls, Strategy::Smart, 8)).await;
    // 2 waits for 0, and 3 for 2; 1 and 4 wait for nobody.
    assert_eq!(diary.text(), "+0 +1 +4 -0 -1 -4 +2 -2 +3 -3 ");
    assert_eq!((summary.mutating, summary.overlapped), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn side_effects_without_a_footprint_run_alone() {
    let diary = Diary::default();
    let silent = diary.tool("silent").effects().on_footprint(|_| Footprint::default());
    let house = house([diary.tool("reads"), silent, diary.tool("effects").effects()]);
    let calls =
        vec![note("reads", 0), note("silent", 1), note("reads", 2), note("effects", 3), note("reads", 4)];
    house.engine.execute_batch(batch(calls, Strategy::Smart, 8)).await;
    assert_eq!(diary.text(), "+0 -0 +1 -1 +2 -2 +3 -3 +4 -4 ");
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_nothing_new_starts_and_what_runs_may_end() {
    let diary = Diary::default();
    let fails = tool("fails", |_: Args, _: ToolCtx| async {
        tokio::time::sleep(crate::MS(5)).await;
        Err::<(), _>(ToolError::failed("no"))
    });
    let house = house([diary.tool("reads"), fails]);
    let calls = vec![note("reads", 0), note("fails", 1), note("reads", 2), note("reads", 3)];
    let options = BatchOptions {
        strategy: Strategy::Parallel,
        max_parallelism: 2,
        continue_on_failure: false,
        ..BatchOptions::default()
    };
    let (results, summary) =
        house.engine.execute_batch(BatchRequest::from(calls.clone()).options(options.clone())).await;
    assert_eq!(codes(&results), ["OK", "EXECUTION_FAILED", "NOT_STARTED", "NOT_STARTED"]);
    assert_eq!((summary.executed, summary.succeeded, summary.failed), (2, 1, 3));
    assert_eq!(diary.text(), "+0 -0 ");
    let text = "Not started, because call 2 of this batch did not succeed";
    assert_eq!(results[2].error.as_ref().unwrap().message, text);

    let options = BatchOptions { continue_on_failure: true, ..options };
    let (results, _) = house.engine.execute_batch(BatchRequest::from(calls).options(options)).await;
    assert_eq!(codes(&results), ["OK", "EXECUTION_FAILED", "OK", "OK"]);
}

#[tokio::test(start_paused = true)]
async fn parallel_needs_the_teams_tier_and_says_so() {
    for (tier, at_once, parallel) in [
        (Tier::Core, 1, false),
        (Tier::WriterPro, 1, false),
        (Tier::Teams, 10, true),
        (Tier::Enterprise, 12, true),
    ] {
        let diary = Diary::default();
        let house = house([diary.tool("reads")]);
        let count = if tier == Tier::Core { 5 } else { 12 };
        let request = batch((0..count).map(|n| note("reads", n)).collect(), Strategy::Parallel, 12)
            .context(caller("t", "a", tier));
        let (_, summary) = house.engine.execute_batch(request).await;
        assert_eq!(diary.most_at_once(), at_once, "{tier:?}");
        let events = house.events(summary.batch_id).await;
        let EventPayload::BatchStarted { is_parallel, .. } = events[0].payload else { panic!("{events:?}") };
        assert_eq!(is_parallel, parallel);
        let notes: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.payload {
                EventPayload::Warning { message } => Some(message.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(notes.len(), usize::from(tier != Tier::Enterprise), "{notes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_answer_overlap_only_where_that_is_allowed() {
    for (allow_parallel, at_once) in [(false, 1), (true, 3)] {
        let diary = Diary::default();
        let setup = crate::common::Setup {
            settings: haft_engine::Settings { allow_parallel, ..haft_engine::Settings::default() },
            ..crate::common::Setup::default()
        };
        let house = setup.build([diary.tool("reads")]);
        let options =
            BatchOptions { strategy: Strategy::Smart, origin: BatchOrigin::Model, ..BatchOptions::default() };
        let calls = BatchRequest::from((0..3).map(|n| note("reads", n)).collect::<Vec<_>>());
        house.engine.execute_batch(calls.options(options)).await;
        assert_eq!(diary.most_at_once(), at_once);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_overlaps_says_when_it_begins_and_ends() {
    let diary = Diary::default();
    let house = house([diary.tool("reads"), diary.tool("writes").writes("/w")]);
    let calls = vec![note("reads", 0), note("writes", 1), note("reads", 2)];
    let (_, summary) = house.engine.execute_batch(batch(calls, Strategy::Smart, 4)).await;
    let events = house.events(summary.batch_id).await;
    let of_the_batch: Vec<_> = events.iter().filter(|event| event.execution_id.is_none()).cloned().collect();
    assert_eq!(
        kinds(&of_the_batch),
        ["BatchStarted", "ParallelStarted", "ParallelCompleted", "BatchCompleted"]
    );
    assert_eq!(of_the_batch[1].payload, EventPayload::ParallelStarted { read_only: 2, mutating: 1 });
    let EventPayload::ParallelCompleted { total: 3, succeeded: 3, failed: 0, overlapped: 3, .. } =
        of_the_batch[2].payload
    else {
        panic!("{:?}", of_the_batch[2])
    };
    assert_eq!((summary.read_only, summary.mutating, summary.overlapped), (2, 1, 3));
}

#[tokio::test]
async fn results_that_are_made_at_the_same_time_do_not_share_the_same_rest_of_a_models_context() {
    let long = tool("long", |_: Args, _: ToolCtx| async { Ok("x".repeat(40_000)) });
    let setup = crate::common::Setup::default();
    // Storing what is left out takes a while, and meanwhile the others are made.
    setup.store.take_your_time();
    let house = setup.build([long]);
    let mut request = batch((0..4).map(|n| note("long", n)).collect(), Strategy::Parallel, 4);
    request.options.call.model = haft_core::ModelBudget::Unknown;
    let (results, _) = house.engine.execute_batch(request).await;
    let lengths: Vec<_> = results.iter().map(|result| result.text().len()).collect();
    let sum: usize = lengths.iter().sum();
    assert!(sum <= haft_core::UNKNOWN_BUDGET_BYTES, "{lengths:?}");
    assert!(sum > haft_core::UNKNOWN_BUDGET_BYTES / 2, "{lengths:?}");
    assert!(
        results.iter().all(|result| result.text().len() == 40_000 || result.metadata.output_handle.is_some())
    );
}

#[tokio::test]
async fn cancelling_a_batch_ends_what_runs_and_what_waits() {
    let hangs = tool("hangs", |_: Args, _: ToolCtx| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let house = house([hangs]);
    let calls: Vec<_> = (0..6).map(|n| note("hangs", n)).collect();
    let id = haft_core::ExecutionId::at(jiff::Timestamp::now());
    let mut request = batch(calls, Strategy::Parallel, 2);
    request.options.call.execution_id = Some(id);
    let target = haft_core::BatchId::from_uuid(id.as_uuid());
    let running = tokio::spawn(house.engine.execute_batch(request));
    tokio::time::sleep(crate::MS(30)).await;
    assert!(house.engine.cancel(target, haft_sdk::CancelReason::User, None));
    let (results, summary) = within("the results", running).await.unwrap();
    assert_eq!(codes(&results), ["CANCELLED"; 6]);
    assert_eq!((summary.executed, summary.total), (2, 6));
    house.idle().await;
}

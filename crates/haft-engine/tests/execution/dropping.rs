//! A caller that goes away: its calls are ended, recorded and announced all the same, once.

use crate::common::{Count, House, Scripted, Setup, call, codes, known_id, poll_once, tool, until, with};
use haft_core::{BatchId, BatchOptions, EventPayload, Status};
use haft_engine::{BatchRequest, Settings};
use std::time::Duration;

fn hanging(alive: &Count) -> Scripted {
    let alive = alive.clone();
    tool("hangs", move |_, _| {
        let here = alive.alive();
        async move {
            let _here = here;
            std::future::pending::<()>().await;
            Ok(())
        }
    })
    .effects()
}

fn setup() -> (House, Count) {
    let alive = Count::default();
    // Room for the logs of all calls, so that each can be looked at afterwards.
    let settings = Settings { observable_after_end: 16_384, ..Settings::default() };
    let setup = Setup { settings, ..Setup::default() };
    (setup.build([hanging(&alive), tool("ping", |_, _| async { Ok("pong") })]), alive)
}

/// That everything which was recorded ended once, and nothing is left.
async fn is_settled(house: &House, alive: &Count, calls: usize) {
    house.idle().await;
    let audit = house.audit().await;
    assert_eq!(audit.len(), calls, "one audit record each");
    for record in &audit {
        house.ended_once(record.metadata.execution_id).await;
    }
    assert_eq!(alive.get(), 0, "a tool's future is still there");
    assert_eq!(house.store.memory.open_intents(), 0);
}

#[tokio::test]
async fn before_the_first_poll() {
    let (house, alive) = setup();
    let (id, options) = known_id();
    let call = house.engine.execute(with(call("hangs"), options));
    assert!(house.engine.is_executing(id), "a call is taken when it is made");
    drop(call);
    is_settled(&house, &alive, 1).await;
    let record = &house.audit_of(id).await[0];
    assert_eq!((record.status, record.metadata.attempts), (Status::Cancelled, 0));
    let events = house.events(id).await;
    assert_eq!(house.kinds(id).await, ["Started", "Cancelled"]);
    let EventPayload::Cancelled { message, .. } = &events[1].payload else { panic!("{events:?}") };
    assert_eq!(message, "Cancelled, because the caller did not wait for the result");
}

#[tokio::test]
async fn in_the_middle() {
    let (house, alive) = setup();
    let (id, options) = known_id();
    let mut running = Box::pin(house.engine.execute(with(call("hangs"), options)));
    poll_once(&mut running).await;
    assert_eq!(alive.get(), 1);
    drop(running);
    assert_eq!(alive.get(), 0, "dropping the caller's future ends the tool at once");
    is_settled(&house, &alive, 1).await;
    assert_eq!(house.kinds(id).await, ["Started", "InProgress", "Cancelled"]);
    assert_eq!(house.audit_of(id).await[0].metadata.attempts, 1, "it was started, and the record says so");
}

#[tokio::test]
async fn when_its_task_is_aborted() {
    let (house, alive) = setup();
    let engine = house.engine.clone();
    let task = tokio::spawn(async move { engine.execute(call("hangs")).await });
    until("it runs", || alive.get() == 1).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    is_settled(&house, &alive, 1).await;
}

#[tokio::test]
async fn after_the_end_nothing_more_happens() {
    let (house, alive) = setup();
    let mut running = Box::pin(house.engine.execute(call("ping")));
    let result = running.as_mut().await;
    drop(running);
    tokio::time::sleep(Duration::from_millis(5)).await;
    is_settled(&house, &alive, 1).await;
    assert!(result.is_success());
}

fn batch(names: &[&str]) -> (BatchId, BatchRequest) {
    let (id, options) = known_id();
    let options = BatchOptions { call: options, ..BatchOptions::default() };
    let calls: Vec<_> = names.iter().map(|name| call(name)).collect();
    (BatchId::from_uuid(id.as_uuid()), BatchRequest::from(calls).options(options))
}

#[tokio::test]
async fn a_batch_before_the_first_poll() {
    let (house, alive) = setup();
    let (id, request) = batch(&["ping", "hangs", "ping"]);
    drop(house.engine.execute_batch(request));
    is_settled(&house, &alive, 3).await;
    assert!(!house.engine.is_executing(id));
    assert!(house.audit().await.iter().all(|record| record.status == Status::Cancelled));
}

#[tokio::test]
async fn a_batch_in_the_middle() {
    let (house, alive) = setup();
    let (id, request) = batch(&["ping", "hangs", "ping"]);
    let mut running = Box::pin(house.engine.execute_batch(request));
    poll_once(&mut running).await;
    drop(running);
    is_settled(&house, &alive, 3).await;
    assert!(!house.engine.is_executing(id));
    let mut audit = house.audit().await;
    audit.sort_by_key(|record| record.metadata.batch_index);
    let statuses: Vec<_> = audit.iter().map(|record| (record.status, record.metadata.attempts)).collect();
    assert_eq!(statuses, [(Status::Success, 1), (Status::Cancelled, 1), (Status::Cancelled, 0)]);
}

/// Who watches the batch sees every call of it end, and then the end.
#[tokio::test]
async fn whoever_watches_an_abandoned_batch_sees_every_call_of_it_end() {
    let (house, alive) = setup();
    let (id, request) = batch(&["ping", "hangs", "ping"]);
    let mut running = Box::pin(house.engine.execute_batch(request));
    poll_once(&mut running).await;
    drop(running);
    let events = house.events(id).await;
    let mut ended: Vec<u32> = events
        .iter()
        .filter(|event| event.payload.is_terminal())
        .filter_map(|event| event.batch_index)
        .collect();
    ended.sort_unstable();
    let kinds: Vec<_> = events.iter().map(|event| (event.batch_index, event.payload.kind())).collect();
    assert_eq!(ended, [0, 1, 2], "calls of the batch that were never seen to end: {kinds:?}");
    assert_eq!(events.last().unwrap().execution_id, None, "the batch's own end is last: {kinds:?}");
    is_settled(&house, &alive, 3).await;
}

/// The future is made inside a runtime, never polled, and dropped by a thread that knows nothing of runtimes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_thread_outside_of_the_runtime() {
    let (house, alive) = setup();
    let unpolled = house.engine.execute(call("hangs"));
    std::thread::spawn(move || drop(unpolled)).join().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        house.engine.running(),
        0,
        "it is neither ended nor recorded, and a shutdown would wait for it"
    );
    is_settled(&house, &alive, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_on_two_threads() {
    let (house, alive) = setup();
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let engine = house.engine.clone();
            tokio::spawn(async move {
                let calls = engine.execute_batch(vec![call("ping"), call("hangs"), call("ping")]);
                tokio::time::timeout(Duration::from_micros(n * 50), calls).await.is_err()
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap(), "a batch with a call that hangs came to an end");
    }
    is_settled(&house, &alive, 64 * 3).await;
}

#[tokio::test]
async fn one_caller_that_goes_away_ends_no_other_call() {
    let (house, alive) = setup();
    let mut gone = Box::pin(house.engine.execute(call("hangs")));
    let mut stays = Box::pin(house.engine.execute(call("hangs")));
    poll_once(&mut gone).await;
    poll_once(&mut stays).await;
    drop(gone);
    until("one is left", || house.engine.running() == 1).await;
    assert_eq!(alive.get(), 1);
    let result = house.engine.execute(call("ping")).await;
    assert_eq!(codes(&[result]), ["OK"]);
    drop(stays);
    is_settled(&house, &alive, 3).await;
}

//! A tool that panics, wherever it does, ends its own call and nothing else.

use crate::common::{
    Answers, House, Scripted, Setup, call, code, codes, known_id, message, poll_once, quiet, timeout, tool,
    until, with, within,
};
use haft_core::{Footprint, ToolDefinition, ToolError, ToolOutput};
use haft_engine::Preview;
use haft_sdk::{Args, Prepared, Tool, ToolCtx, ToolFuture};
use std::sync::Arc;
use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    time::Duration,
};

fn boom() -> ! {
    panic!("planned panic")
}

/// Panics when it is dropped, unless the thread panics already.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            boom()
        }
    }
}

fn fine(name: &str) -> Scripted {
    tool(name, |_, _| async { Ok("fine") })
}

/// Tools that panic, each in another place.
fn everywhere() -> Vec<Scripted> {
    vec![
        fine("in_prepare").on_prepare(|_| boom()),
        fine("in_footprint").on_footprint(|_| boom()),
        fine("in_summary").asks().on_summary(|_| boom()),
        tool("at_once", |_, _| {
            if true {
                boom()
            }
            async { Ok(()) }
        }),
        tool("in_first_poll", |_, _| async {
            if true {
                boom()
            }
            Ok(())
        }),
        tool("after_await", |_, _| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if true {
                boom()
            }
            Ok(())
        }),
        tool("while_it_returns", |_, _| async {
            let _bomb = Bomb;
            Ok(())
        }),
        tool("after_it_returned", |_, _| {
            // A future that is dropped only after it is done keeps what it holds until then.
            let mut bomb = Some(Bomb);
            std::future::poll_fn(move |_| {
                let _ = &mut bomb;
                std::task::Poll::Ready(Ok("done"))
            })
        }),
    ]
}

fn setup(tools: Vec<Scripted>) -> House {
    quiet();
    Setup { approver: Answers::yes(), ..Setup::default() }.build(tools)
}

#[tokio::test]
async fn wherever_a_tool_panics_its_call_fails_and_the_batch_goes_on() {
    for panics in everywhere() {
        let name = panics.definition().name.clone();
        let house = setup(vec![panics, fine("fine")]);
        let calls = vec![call("fine"), call(&name), call("fine")];
        let (results, _) = within("the batch", house.engine.execute_batch(calls)).await;
        assert_eq!(codes(&results), ["OK", "PANICKED", "OK"], "{name}");
        assert_eq!(message(&results[1]), "Tool panicked: planned panic", "{name}");
        for result in &results {
            house.ended_once(result.metadata.execution_id).await;
        }
    }
}

#[tokio::test]
async fn a_panic_in_the_clean_up_of_a_call_that_was_ended_is_contained() {
    let house = setup(vec![
        tool("hangs", |_, _| async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
            Ok(())
        }),
        fine("fine"),
    ]);
    let options = haft_core::BatchOptions { call: timeout(Duration::from_millis(20)), ..Default::default() };
    let request = haft_engine::BatchRequest::from(vec![call("hangs"), call("fine")]).options(options);
    let (results, _) = within("the batch", house.engine.execute_batch(request)).await;
    assert_eq!(codes(&results), ["TIMEOUT", "OK"], "the deadline is what ended it");
}

#[tokio::test]
async fn a_panic_in_the_clean_up_does_not_reach_the_caller_that_went_away() {
    let house = setup(vec![tool("hangs", |_, _| async {
        let _bomb = Bomb;
        std::future::pending::<()>().await;
        Ok(())
    })]);
    let (id, options) = known_id();
    let mut running = Box::pin(house.engine.execute(with(call("hangs"), options)));
    poll_once(&mut running).await;
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(running)));
    house.idle().await;
    house.ended_once(id).await;
    assert!(dropped.is_ok(), "the tool's panic reached the one who only dropped a future");
}

#[tokio::test]
async fn a_fixed_text_is_shown_and_a_formatted_one_is_for_the_operator() {
    let secret = "hunter2";
    let house = setup(vec![
        tool("fixed", |_, _| async {
            if true {
                panic!("planned: index out of range")
            }
            Ok(())
        }),
        tool("formatted", move |_, _| async move {
            if true {
                panic!("planned: cannot log in with {secret}")
            }
            Ok(())
        }),
        tool("neither", |_, _| async {
            if true {
                panic_any(42)
            }
            Ok(())
        }),
    ]);
    for (name, shown, diagnostics) in [
        ("fixed", "Tool panicked: planned: index out of range", None),
        (
            "formatted",
            "Tool panicked. Its message is in the operator's record",
            Some("planned: cannot log in with hunter2"),
        ),
        ("neither", "Tool panicked. Its message is in the operator's record", None),
    ] {
        let result = house.engine.execute(call(name)).await;
        assert_eq!((code(&result), message(&result), result.text()), ("PANICKED", shown, shown), "{name}");
        assert_eq!(result.diagnostics.as_deref(), diagnostics, "{name}");
        let seen = serde_json::to_string(&result).unwrap();
        let events = serde_json::to_string(&house.events(result.metadata.execution_id).await).unwrap();
        assert!(!seen.contains(secret) && !events.contains(secret), "{name}: {seen} {events}");
        let record = house.audit_of(result.metadata.execution_id).await.remove(0);
        assert_eq!(record.diagnostics.as_deref(), diagnostics, "{name}: the operator's record");
    }
}

#[tokio::test]
async fn a_panic_whose_payload_panics_again_is_contained() {
    quiet();
    let house = setup(vec![
        tool("twice", |_, _| async {
            if true {
                panic_any(Bomb)
            }
            Ok(())
        }),
        fine("fine"),
    ]);
    let engine = house.engine.clone();
    let batch = tokio::spawn(async move { engine.execute_batch(vec![call("twice"), call("fine")]).await });
    let (results, _) = within("the batch", batch).await.expect("the panic reached the caller");
    assert_eq!(codes(&results), ["PANICKED", "OK"]);
}

#[tokio::test]
async fn a_dry_run_contains_panics_as_a_run_does() {
    let house = setup(everywhere());
    for name in ["in_prepare", "in_footprint", "in_summary"] {
        let engine = house.engine.clone();
        let planned = tokio::spawn(async move { engine.plan(vec![call(name), call("at_once")]).await });
        let previews = planned.await.unwrap_or_else(|_| panic!("`{name}` took the dry run down with it"));
        assert!(matches!(previews[0], Preview::Refused(_)), "{name}: {previews:?}");
        assert!(matches!(previews[1], Preview::Ready { .. }), "{name}: {previews:?}");
    }
}

/// A tool whose prepared calls panic when they are dropped without having run.
struct Fragile(Arc<ToolDefinition>);

struct FragileCall(Bomb);

impl Tool for Fragile {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn prepare(&self, _: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Ok(Box::new(FragileCall(Bomb)))
    }
}

impl Prepared for FragileCall {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    fn summary(&self) -> String {
        let FragileCall(_bomb) = self;
        "fragile".into()
    }

    fn execute(self: Box<Self>, _: ToolCtx) -> ToolFuture {
        std::mem::forget(self);
        Box::pin(async { Ok(ToolOutput::text("fine")) })
    }
}

#[tokio::test]
async fn a_prepared_call_that_panics_when_it_is_let_go_is_contained() {
    quiet();
    let person = Answers::by(|_| haft_core::Decision::Deny { reason: None });
    let house = Setup { approver: person, ..Setup::default() }.build([fine("fine")]);
    house.engine.register(Fragile(fine("fragile").asks().definition().clone())).unwrap();
    let engine = house.engine.clone();
    let batch = tokio::spawn(async move { engine.execute_batch(vec![call("fragile"), call("fine")]).await });
    let (results, _) = within("the batch", batch).await.expect("the panic reached the caller");
    assert_eq!(codes(&results), ["CONFIRMATION_DENIED", "OK"]);
    until("nothing runs", || house.engine.running() == 0).await;
}

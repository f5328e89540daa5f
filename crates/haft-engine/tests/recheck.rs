//! What was decided is decided once more right before each attempt: rules, switches and paths may be others by then.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Answers, Count, Scripted, Setup, call, call_with, code, tool, until, with, within};
use haft_core::{
    Arguments, BatchOptions, CallContext, CallOptions, Decision, ErrorCode, Footprint, ParentGrant, Resource,
    Strategy, ToolDefinition, ToolError, ToolResult,
    port::{GuardError, Policy, Subject, Verdict},
};
use haft_engine::{BatchRequest, Lanes};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// What is other than it was when the call was planned.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Change {
    Nothing,
    SwitchedOff,
    Listed,
    Denied,
    Asked,
    /// The tool itself says that a person has to agree; policy does not.
    Confirms,
    Moved,
}

/// What holds now; the policy and the tools of a test look at it.
#[derive(Clone, Default)]
struct Now(Arc<AtomicU8>);

impl Now {
    fn set(&self, change: Change) {
        self.0.store(change as u8, Ordering::SeqCst);
    }

    fn is(&self, change: Change) -> bool {
        self.0.load(Ordering::SeqCst) == change as u8
    }
}

impl Policy for Now {
    fn is_enabled(&self) -> bool {
        !self.is(Change::SwitchedOff)
    }

    fn denies(&self, _: &CallContext, definition: &ToolDefinition) -> Result<Option<String>, GuardError> {
        Ok((self.is(Change::Listed) && definition.name == "acts").then(|| "it is on the list".to_owned()))
    }

    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError> {
        let rule = "now".into();
        let is_it = subject.definition.name == "acts";
        Ok(match is_it {
            true if self.is(Change::Denied) => Verdict::Deny { rule, reason: "not now".into() },
            true if self.is(Change::Asked) || subject.definition.requires_confirmation => {
                Verdict::Ask { rule, reason: "now it asks".into() }
            }
            _ => Verdict::Allow { rule, confirmed: false },
        })
    }
}

/// A tool that counts its runs. The first one changes what holds, and fails.
fn acts(now: &Now, runs: &Count, then: Change) -> Scripted {
    let (seen, confirms, runs, now) = (now.clone(), now.clone(), runs.clone(), now.clone());
    let acts = tool("acts", move |_, _| {
        let is_first = runs.up() == 0;
        if is_first && then != Change::Nothing {
            now.set(then);
        }
        async move {
            match is_first && then != Change::Nothing {
                true => Err(ToolError::new(ErrorCode::RateLimited, "try again")),
                false => Ok("acted"),
            }
        }
    });
    let acts = acts.on_confirm(move || confirms.is(Change::Confirms).then(|| "by now it matters".to_owned()));
    acts.on_footprint(move |_| match seen.is(Change::Moved) {
        true => Footprint::reads([Resource::path("/elsewhere")]),
        false => Footprint::default(),
    })
}

/// Another call of the batch changes what holds; the call was planned before that.
async fn after_another_call(change: Change) -> (ToolResult, usize) {
    let (now, runs) = (Now::default(), Count::default());
    let changes = {
        let now = now.clone();
        tool("changes", move |_, _| {
            now.set(change);
            async { Ok("changed") }
        })
    };
    let setup = Setup { policy: Arc::new(now.clone()), ..Setup::default() };
    let house = setup.build([changes, acts(&now, &runs, Change::Nothing)]);
    let options = BatchOptions { strategy: Strategy::Sequential, ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call("changes"), call("acts")]).options(options);
    let (mut results, _) = house.engine.execute_batch(request).await;
    (results.remove(1), runs.get())
}

/// A person takes a while to agree.
async fn after_a_question(change: Change) -> (ToolResult, usize) {
    let (now, runs) = (Now::default(), Count::default());
    let approver = {
        let now = now.clone();
        Answers::by(move |_| {
            now.set(change);
            Decision::Approve
        })
    };
    let setup = Setup { policy: Arc::new(now.clone()), approver, ..Setup::default() };
    let house = setup.build([acts(&now, &runs, Change::Nothing).asks()]);
    (house.engine.execute(call("acts")).await, runs.get())
}

/// Another call held the only slot.
async fn after_waiting_for_a_slot(change: Change) -> (ToolResult, usize) {
    let (now, runs, holds) = (Now::default(), Count::default(), Count::default());
    let go = Arc::new(tokio::sync::Notify::new());
    let holder = {
        let (holds, go) = (holds.clone(), Arc::clone(&go));
        tool("holds", move |_, _| {
            holds.up();
            let go = Arc::clone(&go);
            async move {
                go.notified().await;
                Ok("held")
            }
        })
    };
    let setup = Setup {
        policy: Arc::new(now.clone()),
        around: |builder| builder.lanes(Lanes { per_agent: Some(1), ..Lanes::default() }),
        ..Setup::default()
    };
    // What does not say what it reads is decided about once where it does not wait.
    let acts = acts(&now, &runs, Change::Nothing).on_footprint(|_| Footprint::undeclared(false));
    let engine = setup.build([holder, acts]).engine;
    let held = tokio::spawn(engine.execute(call("holds")));
    until("the other call runs", || holds.get() == 1).await;
    let waits = tokio::spawn(engine.execute(call("acts")));
    until("it waits", || engine.stats().lanes.is_some_and(|lanes| lanes.queued == 1)).await;
    now.set(change);
    go.notify_one();
    held.await.unwrap();
    (waits.await.unwrap(), runs.get())
}

/// The first attempt failed.
async fn before_another_attempt(change: Change) -> (ToolResult, usize) {
    let (now, runs) = (Now::default(), Count::default());
    let setup = Setup { policy: Arc::new(now.clone()), ..Setup::default() };
    let house = setup.build([acts(&now, &runs, change)]);
    (house.engine.execute(call("acts")).await, runs.get())
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_that_was_decided_otherwise_since() {
    use Change::{Asked, Confirms, Denied, Listed, Moved, Nothing, SwitchedOff};
    // What comes of the call, and how often it ran.
    for (change, expected, runs) in [
        (Nothing, "OK", 1),
        (SwitchedOff, "TOOL_DISABLED", 0),
        (Listed, "TOOL_DENIED", 0),
        (Denied, "TOOL_DENIED", 0),
        (Asked, "CONFIRMATION_REQUIRED", 0),
        (Confirms, "CONFIRMATION_REQUIRED", 0),
        // Decided on as it is now, and allowed.
        (Moved, "OK", 1),
    ] {
        let (result, ran) = after_another_call(change).await;
        assert_eq!((code(&result), ran), (expected, runs), "{change:?} by another call");
    }
    for (change, expected, runs) in [
        (Nothing, "OK", 1),
        (SwitchedOff, "TOOL_DISABLED", 0),
        (Listed, "TOOL_DENIED", 0),
        (Denied, "TOOL_DENIED", 0),
        // It was asked about.
        (Asked, "OK", 1),
        (Confirms, "OK", 1),
        (Moved, "APPROVAL_EXPIRED", 0),
    ] {
        let (result, ran) = after_a_question(change).await;
        assert_eq!((code(&result), ran), (expected, runs), "{change:?} while a person was asked");
    }
    for (change, expected, runs) in [
        (Nothing, "OK", 1),
        (SwitchedOff, "TOOL_DISABLED", 0),
        (Listed, "TOOL_DENIED", 0),
        (Denied, "TOOL_DENIED", 0),
        (Asked, "CONFIRMATION_REQUIRED", 0),
        (Confirms, "CONFIRMATION_REQUIRED", 0),
    ] {
        let (result, ran) = after_waiting_for_a_slot(change).await;
        assert_eq!((code(&result), ran), (expected, runs), "{change:?} while it waited for a slot");
    }
    for (change, expected) in [
        (SwitchedOff, "TOOL_DISABLED"),
        (Listed, "TOOL_DENIED"),
        (Denied, "TOOL_DENIED"),
        (Asked, "CONFIRMATION_REQUIRED"),
        (Confirms, "CONFIRMATION_REQUIRED"),
        (Moved, "RATE_LIMITED"),
    ] {
        let (result, ran) = before_another_attempt(change).await;
        assert_eq!((code(&result), ran), (expected, 1), "{change:?} between two attempts");
    }
}

/// What a call touches must still be granted by its sandbox when it begins.
#[tokio::test(start_paused = true)]
async fn a_call_that_leads_out_of_its_sandbox_by_now_does_not_run() {
    for (moves, expected, ran) in [(false, "OK", 1), (true, "FILESYSTEM_POLICY_VIOLATION", 0)] {
        let (now, runs) = (Now::default(), Count::default());
        let changes = {
            let now = now.clone();
            tool("changes", move |_, _| {
                now.set(if moves { Change::Moved } else { Change::Nothing });
                async { Ok("changed") }
            })
        };
        let seen = now.clone();
        let acts = acts(&now, &runs, Change::Nothing).on_footprint(move |_| {
            Footprint::reads([Resource::path(if seen.is(Change::Moved) { "/etc/x" } else { "/work/x" })])
        });
        let house = Setup { policy: Arc::new(now), ..Setup::default() }.build([changes, acts]);
        let parent =
            ParentGrant { sandbox_id: "s".into(), mounts: vec!["/work".into()], ..ParentGrant::default() };
        let context = CallContext { parent: Some(parent), ..(*CallContext::owner()).clone() };
        let options = BatchOptions { strategy: Strategy::Sequential, ..BatchOptions::default() };
        let request =
            BatchRequest::from(vec![call("changes"), call("acts")]).options(options).context(context);
        let (results, _) = house.engine.execute_batch(request).await;
        assert_eq!((code(&results[1]), runs.get()), (expected, ran), "{results:?}");
    }
}

/// An administrator switches a tool off while a call of it waits for another one of its batch.
#[tokio::test]
async fn a_tool_that_was_switched_off_meanwhile_does_not_run() {
    let (now, runs, waits) = (Now::default(), Count::default(), Count::default());
    let go = Arc::new(tokio::sync::Notify::new());
    let waiting = {
        let (waits, go) = (waits.clone(), Arc::clone(&go));
        tool("waits", move |_, _| {
            waits.up();
            let go = Arc::clone(&go);
            async move {
                go.notified().await;
                Ok("waited")
            }
        })
    };
    let setup = Setup { policy: Arc::new(now.clone()), ..Setup::default() };
    let house = setup.build([waiting, acts(&now, &runs, Change::Nothing)]);
    let options = BatchOptions { strategy: Strategy::Sequential, ..BatchOptions::default() };
    let request = BatchRequest::from(vec![call("waits"), call("acts")]).options(options);
    let running = tokio::spawn({
        let engine = house.engine.clone();
        async move { engine.execute_batch(request).await.0 }
    });
    until("the first call runs", || waits.get() == 1).await;
    house.engine.tools().set_enabled("acts", false).await.unwrap();
    go.notify_one();
    let results = within("the end of the batch", running).await.unwrap();
    assert_eq!((code(&results[0]), code(&results[1]), runs.get()), ("OK", "TOOL_DISABLED", 0));
    // The control: one that is asked for now hears the same.
    let result = house.engine.execute(with(call("acts"), CallOptions::default())).await;
    assert_eq!(code(&result), "TOOL_DISABLED");
}

/// Asks where the arguments say so.
struct ByArguments;

impl Policy for ByArguments {
    fn is_enabled(&self) -> bool {
        true
    }

    fn denies(&self, _: &CallContext, _: &ToolDefinition) -> Result<Option<String>, GuardError> {
        Ok(None)
    }

    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError> {
        let rule = "arguments".into();
        Ok(match subject.arguments["ask"] == true {
            true => Verdict::Ask { rule, reason: "it says so".into() },
            false => Verdict::Allow { rule, confirmed: false },
        })
    }
}

/// A person changes the arguments of a call: it is decided on as if it had come with them. Nobody agreed to it by that.
#[tokio::test]
async fn a_changed_call_is_another_call() {
    let secret = "s3cr3t-value";
    for (key, expected, ran) in [("plain", "OK", 1), (secret, "CONFIRMATION_DENIED", 0)] {
        let runs = Count::default();
        let acts = acts(&Now::default(), &runs, Change::Nothing);
        let changed = Arguments::from(json!({"ask": false, "key": "another"}));
        let approver = Answers::by(move |_| Decision::Edit { arguments: changed.clone() });
        let redactor = haft_guard::Secrets::full(haft_guard::KnownSecrets::new([("KEY", secret)]));
        let setup = Setup {
            policy: Arc::new(ByArguments),
            approver: approver.clone(),
            redactor: Some(Arc::new(redactor)),
            ..Setup::default()
        };
        let house = setup.build([acts]);
        let result = house.engine.execute(call_with("acts", json!({"ask": true, "key": key}))).await;
        // What was not shown whole is not changed by a person: the marks would be the new arguments.
        assert_eq!((code(&result), runs.get()), (expected, ran), "{result:?}");
        assert_eq!(approver.asked().len(), 1);
        let [record] = &house.audit_of(result.metadata.execution_id).await[..] else { panic!("one record") };
        assert_eq!(record.approval, None, "nobody agreed");
    }
}

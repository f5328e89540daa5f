//! Approve: all questions at once, before anything runs; what was shown is what runs; what nobody answered blocks only
//! what it touches.

use crate::common::{
    Answers, Count, Door, Setup, call, call_with, code, codes, house, known_id, message, tool, until, with,
    within,
};
use haft_core::{
    BatchId, BatchOptions, CallOptions, Decision, ErrorCode, ExecutionId, Footprint, Status, ToolDefinition,
    ToolError, ToolResult,
    port::{Approver, BoxFuture, GuardError, GuestSpec},
};
use haft_engine::{BatchRequest, Engine, Request};
use haft_guard::PermissionStrings;
use haft_sdk::{Args, CancelReason, Prepared, Tool, ToolCtx, ToolFuture};
use serde_json::json;
use std::{
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};

/// A tool that counts its runs and always asks, and one that counts and does not.
fn pair(runs: &Count) -> [crate::common::Scripted; 2] {
    ["asks", "free"].map(|name| {
        let runs = runs.clone();
        let tool = tool(name, move |_, _| {
            runs.up();
            async { Ok("ran") }
        });
        if name == "asks" { tool.asks() } else { tool }
    })
}

#[tokio::test]
async fn t_apr_01_mixed_batch_prompts_before_any_execution() {
    let runs = Count::default();
    let seen = runs.clone();
    let person = Answers::by(move |_| {
        assert_eq!(seen.get(), 0, "something ran before everybody was asked");
        Decision::Approve
    });
    let house = Setup { approver: person.clone(), ..Setup::default() }.build(pair(&runs));
    let calls = ["free", "asks", "no_such_tool", "asks", "free"].map(call);
    let (results, _) = house.engine.execute_batch(calls.to_vec()).await;
    assert_eq!(codes(&results), ["OK", "OK", "TOOL_NOT_FOUND", "OK", "OK"]);
    let asked = person.asked();
    assert_eq!(
        asked.iter().map(Vec::len).collect::<Vec<_>>(),
        [2],
        "all questions of a batch are asked at once"
    );
    assert_ne!(asked[0][0].id, asked[0][1].id, "each question has an id of its own");
}

#[tokio::test]
async fn t_apr_02_approve_selected_executes_only_selected() {
    let runs = Count::default();
    let person = Answers::by(|request| match &*request.call_id {
        "b" => Decision::Approve,
        "c" => Decision::Deny { reason: Some("not on a Friday".into()) },
        _ => Decision::Deny { reason: None },
    });
    let house = Setup { approver: person, ..Setup::default() }.build(pair(&runs));
    let calls = ["a", "b", "c"].map(|id| call("asks").with_id(id));
    let (results, _) = house.engine.execute_batch(calls.to_vec()).await;
    assert_eq!(codes(&results), ["CONFIRMATION_DENIED", "OK", "CONFIRMATION_DENIED"]);
    assert_eq!(results[0].status, Status::Cancelled);
    let next =
        ". Do not send the same call again: do it in another way, or ask the person what they would agree to";
    assert_eq!(message(&results[0]), format!("Tool call denied by user{next}"));
    assert_eq!(message(&results[2]), format!("Tool call denied by user: not on a Friday{next}"));
    assert_eq!(runs.get(), 1);
    for (result, kinds) in [
        (&results[0], ["Started", "ConfirmationRequested", "ConfirmationReceived", "Cancelled"].as_slice()),
        (
            &results[1],
            &["Started", "ConfirmationRequested", "ConfirmationReceived", "InProgress", "Completed"],
        ),
    ] {
        assert_eq!(house.kinds(result.metadata.execution_id).await, kinds);
    }
}

#[tokio::test]
async fn a_denied_call_blocks_nothing() {
    let runs = Count::default();
    let counted = runs.clone();
    let write = tool("write", move |_, _| {
        counted.up();
        async { Ok(()) }
    });
    let person = Answers::by(|_| Decision::Deny { reason: None });
    let house = Setup { approver: person, ..Setup::default() }
        .build([write.clone().writes("/a").asks(), tool("read", |_, _| async { Ok(()) }).reads("/a")]);
    let (results, _) = house.engine.execute_batch(vec![call("write"), call("read")]).await;
    assert_eq!(codes(&results), ["CONFIRMATION_DENIED", "OK"]);
    assert_eq!(runs.get(), 0);
}

#[tokio::test]
async fn unanswered_calls_wait_and_block_only_what_they_touch() {
    let runs = Count::default();
    let step = |name: &'static str| {
        let runs = runs.clone();
        tool(name, move |_, _| {
            runs.up();
            async { Ok(()) }
        })
    };
    // Nobody is there to ask: that is the default.
    let house = Setup::default().build([
        step("edit").writes("/src").asks(),
        step("read_inside").reads("/src/main.rs"),
        step("read_beside").reads("/src2/main.rs"),
        step("write_anything").effects(),
        step("pure"),
    ]);
    let names = ["read_inside", "edit", "read_inside", "read_beside", "write_anything", "pure"];
    let (results, summary) = house.engine.execute_batch(names.map(call).to_vec()).await;
    assert_eq!(codes(&results), ["OK", "CONFIRMATION_REQUIRED", "BLOCKED", "OK", "BLOCKED", "OK"]);
    assert_eq!(results[1].status, Status::RequiresConfirmation);
    assert_eq!(results[2].status, Status::Cancelled);
    assert!(message(&results[2]).contains("call 2 of this batch"), "{}", message(&results[2]));
    assert_eq!((runs.get(), summary.executed), (3, 3));

    let data = results[1].error.as_ref().unwrap().data.as_ref().expect("the way to answer");
    let approval = data["approvalId"].as_str().unwrap();
    assert!(approval.starts_with("apr_"), "{data}");
    assert_eq!(data["fingerprint"].as_str().unwrap().len(), 64, "{data}");
    let record = &house.audit_of(results[1].metadata.execution_id).await[0];
    assert_eq!(
        record.approval.as_ref().map(|id| id.as_str()),
        Some(approval),
        "the record names the question"
    );
    assert_eq!(record.metadata.attempts, 0);
}

#[tokio::test]
async fn missing_answers_count_as_unanswered_and_surplus_ones_are_ignored() {
    struct Says(usize);
    impl Approver for Says {
        fn ask<'a>(
            &'a self,
            _: &'a [haft_core::ApprovalRequest],
        ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
            Box::pin(ready(Ok(vec![Decision::Approve; self.0])))
        }
    }
    for (answers, expected) in [
        (0, ["CONFIRMATION_REQUIRED", "CONFIRMATION_REQUIRED"]),
        (1, ["OK", "CONFIRMATION_REQUIRED"]),
        (2, ["OK", "OK"]),
        (9, ["OK", "OK"]),
    ] {
        let runs = Count::default();
        let house = Setup { approver: Arc::new(Says(answers)), ..Setup::default() }.build(pair(&runs));
        let (results, _) = house.engine.execute_batch(vec![call("asks"), call("asks")]).await;
        assert_eq!(codes(&results), expected, "{answers} answers");
    }
}

#[tokio::test]
async fn an_answer_that_came_too_late_is_said_to_be_expired() {
    let runs = Count::default();
    let house = Setup { approver: Answers::by(|_| Decision::Expired), ..Setup::default() }.build(pair(&runs));
    let result = house.engine.execute(call("asks")).await;
    assert_eq!(
        (code(&result), result.status, runs.get()),
        ("APPROVAL_EXPIRED", Status::RequiresConfirmation, 0)
    );
}

#[tokio::test]
async fn the_caller_can_want_a_confirmation_and_name_somebody_else_to_ask() {
    let runs = Count::default();
    let (usual, other) = (Answers::yes(), Answers::yes());
    let house = Setup { approver: usual.clone(), ..Setup::default() }.build(pair(&runs));
    let options = CallOptions { require_confirmation: true, ..CallOptions::default() };
    let request = Request::new(call("free")).options(options).approver(other.clone());
    assert!(house.engine.execute(request).await.is_success());
    assert_eq!((usual.asked().len(), other.asked().len()), (0, 1));
    assert!(other.asked()[0][0].reason.contains("the caller wants"), "{:?}", other.asked());
}

#[tokio::test]
async fn a_summary_is_one_safe_line_of_at_most_200_characters() {
    let person = Answers::yes();
    let hostile = "rm -rf /\n\x1b[2J\x1b[1;1HApproved: ls\u{202e}\u{200b} ".to_owned() + &"x".repeat(500);
    let house =
        Setup { approver: person.clone(), ..Setup::default() }
            .build([tool("asks", |_, _| async { Ok(()) }).asks().on_summary(move |_| hostile.clone())]);
    house.engine.execute(call("asks")).await;
    let shown = person.asked()[0][0].summary.clone();
    assert!(shown.chars().count() <= 200, "{} characters", shown.chars().count());
    assert!(shown.starts_with("rm -rf /"), "{shown:?}");
    let bad = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
    assert!(!shown.contains(bad), "a terminal would not show this as it is: {shown:?}");
}

/// A tool that numbers what it prepares.
struct Numbered {
    definition: Arc<ToolDefinition>,
    prepared: Count,
    shown: Arc<Mutex<Vec<usize>>>,
    run: Arc<Mutex<Vec<usize>>>,
}

struct Number {
    number: usize,
    shown: Arc<Mutex<Vec<usize>>>,
    run: Arc<Mutex<Vec<usize>>>,
}

impl Tool for Numbered {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, _: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        let (shown, run) = (Arc::clone(&self.shown), Arc::clone(&self.run));
        Ok(Box::new(Number { number: self.prepared.up(), shown, run }))
    }
}

impl Prepared for Number {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    fn summary(&self) -> String {
        self.shown.lock().unwrap().push(self.number);
        format!("object {}", self.number)
    }

    fn execute(self: Box<Self>, _: ToolCtx) -> ToolFuture {
        self.run.lock().unwrap().push(self.number);
        Box::pin(ready(Ok(haft_core::ToolOutput::text(format!("object {}", self.number)))))
    }
}

#[tokio::test]
async fn the_prepared_object_that_was_shown_is_the_one_that_runs() {
    let person = Answers::by(|request| match &*request.call_id {
        "no" => Decision::Deny { reason: None },
        _ => Decision::Approve,
    });
    let house = Setup { approver: person.clone(), ..Setup::default() }.build([]);
    let (prepared, shown, run) = (Count::default(), Arc::default(), Arc::default());
    let described =
        |definition: &mut ToolDefinition| definition.description = "Numbers what it prepares".into();
    let definition =
        Arc::clone(tool("numbered", |_, _| async { Ok(()) }).asks().define(described).definition());
    let numbered =
        Numbered { definition, prepared: prepared.clone(), shown: Arc::clone(&shown), run: Arc::clone(&run) };
    house.engine.register(numbered).unwrap();

    let calls = ["a", "no", "c"].map(|id| call("numbered").with_id(id));
    let (results, _) = house.engine.execute_batch(calls.to_vec()).await;
    assert_eq!(codes(&results), ["OK", "CONFIRMATION_DENIED", "OK"]);
    assert_eq!(prepared.get(), 3, "each call is prepared once");
    assert_eq!(*shown.lock().unwrap(), [0, 1, 2]);
    assert_eq!(*run.lock().unwrap(), [0, 2], "what ran is not what was shown");
    for (result, request) in results.iter().zip(&person.asked()[0]) {
        assert!(!result.is_success() || result.text() == request.summary, "{request:?}");
    }
}

#[tokio::test]
async fn the_fingerprint_tells_apart_what_an_approval_does_not_cover() {
    let person = Answers::yes();
    let house = Setup { approver: person.clone(), ..Setup::default() }.build(pair(&Count::default()));
    let ask = async |request: Request| {
        house.engine.execute(request).await;
        person.asked().last().unwrap()[0].fingerprint.clone()
    };
    let base = ask(Request::new(call("asks"))).await;
    assert_eq!(ask(Request::new(call("asks"))).await, base, "the same call has the same fingerprint");
    let another =
        haft_core::CallContext { session: Some("s2".into()), ..(*haft_core::CallContext::owner()).clone() };
    let limits = haft_core::Limits { read_bytes: Some(1), ..Default::default() };
    let limited = CallOptions { limits: Some(Box::new(limits)), ..CallOptions::default() };
    for (what, request) in [
        ("arguments", Request::new(call_with("asks", json!({"n": 1})))),
        ("session", Request::new(call("asks")).context(another)),
        ("limits", with(call("asks"), limited)),
    ] {
        assert_ne!(ask(request).await, base, "other {what}, same fingerprint");
    }
}

/// The fingerprint also tells apart what a caller cannot say: each engine is like the first in all but one thing.
#[tokio::test]
async fn the_fingerprint_tells_apart_what_a_call_runs_in() {
    let plain = || tool("asks", |_, _| async { Ok("ran") }).asks().on_preview(|_| "+a".into());
    let template = |hosts: &[&str]| GuestSpec {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        ..GuestSpec::default()
    };
    let engine = |tool: crate::common::Scripted, template: GuestSpec| {
        let person = Answers::yes();
        let store = crate::common::TestStore::default();
        let policy = Setup::default().policy;
        let engine = Engine::builder(policy, Arc::new(PermissionStrings), Arc::new(store))
            .approver(person.clone())
            .commands(template)
            .tool(tool)
            .build()
            .unwrap();
        (engine, person)
    };
    let asked = async |tool, template, options| {
        let (engine, person) = engine(tool, template);
        let result = engine.execute(with(call("asks"), options)).await;
        let asked = person.asked();
        assert!(!asked.is_empty(), "{:?}", result.error);
        asked[0][0].clone()
    };
    let usual = CallOptions::default;
    let base = asked(plain(), template(&[]), usual()).await;
    assert_eq!(asked(plain(), template(&[]), usual()).await.fingerprint, base.fingerprint, "the control");
    let others = [
        ("definition", asked(plain().define(|it| it.description.push('!')), template(&[]), usual()).await),
        ("reach", asked(plain(), template(&["example.com"]), usual()).await),
        ("preview", asked(plain().on_preview(|_| "+b".into()), template(&[]), usual()).await),
    ];
    for (what, other) in others {
        assert_ne!(other.fingerprint, base.fingerprint, "another {what}, the same fingerprint");
        assert_ne!(other.view(), base.view(), "another {what} looks the same");
    }
}

/// What a call hides from a terminal, a person sees. Each of these showed nothing but `echo hello`.
#[tokio::test]
async fn what_a_person_sees_is_what_runs() {
    let person = Answers::yes();
    let says = tool("asks", |_, _| async { Ok("ran") })
        .asks()
        .on_summary(|args| format!("Run: {}", args.value["command"].as_str().unwrap()))
        .on_preview(|args| format!("+{}", args.value["command"].as_str().unwrap()));
    let house = Setup { approver: person.clone(), ..Setup::default() }.build([says]);
    let pushed_out = format!("echo hello{}; touch X", " ".repeat(200));
    let long = format!("echo {}; touch X", "hello ".repeat(1000));
    for command in [
        "echo hello \x1b]0;touch X;\x07",
        "echo hello \x1bPtouch X\x1b\\",
        "echo hello \u{9d}touch X\u{9c}",
        "echo hello \x1b[|touch X",
        &pushed_out,
        &long,
    ] {
        house.engine.execute(call_with("asks", json!({"command": command, "env": {"PATH": "./bin"}}))).await;
        let request = person.asked().pop().unwrap().remove(0);
        let view = request.view().to_string();
        let spelled = haft_core::text::spelled_line(command);
        assert_eq!(view.matches(&spelled).count(), 3, "does, arguments and change of {command:?}: {view}");
        assert!(view.contains("  env.PATH   │ ./bin\n"), "{view}");
        assert!(request.summary.chars().count() <= 200, "{}", request.summary);
        assert!(!request.summary.contains(char::is_control), "{:?}", request.summary);
    }
}

/// A change that is too large to be kept and shown whole cannot be agreed to: nobody is asked, and nothing runs.
#[tokio::test]
async fn what_cannot_be_shown_whole_cannot_be_approved() {
    let (person, runs) = (Answers::yes(), Count::default());
    let counted = runs.clone();
    let changes = tool("asks", move |_, _| {
        counted.up();
        async { Ok("ran") }
    })
    .asks()
    .on_preview(|args| "+x\n".repeat(args.value["lines"].as_u64().unwrap() as usize));
    let house = Setup { approver: person.clone(), ..Setup::default() }.build([changes]);
    let result = house.engine.execute(call_with("asks", json!({"lines": 1_000_000}))).await;
    assert!(result.is_success(), "three megabytes are shown: {:?}", result.error);
    let shown = person.take_asked().remove(0).remove(0);
    assert_eq!(shown.preview.as_ref().unwrap().len(), 3_000_000, "not a part of it");
    let result = house.engine.execute(call_with("asks", json!({"lines": 2_000_000}))).await;
    assert_eq!((code(&result), runs.get()), ("CONFIRMATION_DENIED", 1));
    assert!(message(&result).contains("more than the 4194304 that can be shown"), "{}", message(&result));
    assert!(person.asked().is_empty());
}

/// A batch of three calls that ask, behind a closed door.
async fn at_the_door() -> (crate::common::House, Arc<Door>, BatchId, tokio::task::JoinHandle<Vec<ToolResult>>)
{
    let door = Door::closed();
    let house = Setup { approver: door.clone(), ..Setup::default() }.build(pair(&Count::default()));
    let (id, options) = known_id();
    let request = BatchRequest::from(vec![call("asks"), call("asks"), call("asks")])
        .options(BatchOptions { call: options, ..BatchOptions::default() });
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute_batch(request).await.0 });
    until("all are asked", || door.asked() == 3).await;
    (house, door, BatchId::from_uuid(id.as_uuid()), running)
}

/// The execution ids of a batch's calls, as far as they have been announced.
async fn ids_in(house: &crate::common::House, batch: BatchId, count: usize) -> Vec<ExecutionId> {
    let mut observer = house.engine.observe(batch).unwrap();
    let mut ids = Vec::new();
    while ids.len() < count {
        let event = within("an event of the batch", observer.next()).await.expect("the batch goes on");
        ids.extend(event.execution_id.filter(|id| !ids.contains(id)));
    }
    ids
}

#[tokio::test]
async fn cancelling_the_batch_while_a_person_is_asked_ends_all_of_it() {
    let (house, _door, batch, running) = at_the_door().await;
    assert!(house.engine.cancel(batch, CancelReason::User, None));
    let results = within("the batch", running).await.unwrap();
    assert_eq!(codes(&results), ["CANCELLED"; 3]);
}

#[tokio::test]
async fn cancelling_one_call_while_a_person_is_asked_leaves_the_others() {
    for place in 0..3 {
        let (house, door, batch, running) = at_the_door().await;
        let ids = ids_in(&house, batch, 3).await;
        assert!(house.engine.cancel(ids[place], CancelReason::User, None));
        tokio::time::sleep(Duration::from_millis(20)).await;
        door.open();
        let results = within("the batch", running).await.unwrap();
        let mut expected = ["OK"; 3];
        expected[place] = "CANCELLED";
        assert_eq!(codes(&results), expected, "call {place} of the batch was cancelled, and only that");
    }
}

#[tokio::test]
async fn a_tool_that_is_denied_is_never_asked_about() {
    let (door, runs) = (Door::closed(), Count::default());
    let setup = Setup { approver: door.clone(), ..Setup::default() };
    let counted = runs.clone();
    let house = setup.build([tool("run_command", move |_, _| {
        counted.up();
        async { Ok(()) }
    })
    .asks()]);
    let options = CallOptions { require_confirmation: true, ..CallOptions::default() };
    let result = within("the refusal", house.engine.execute(with(call("run_command"), options))).await;
    assert_eq!((result.error_code(), door.asked(), runs.get()), (Some(ErrorCode::ToolDenied), 0, 0));
}

/// Call 3 reads what call 2 would write, and call 2 waits for what call 1 may write.
#[tokio::test]
async fn what_a_blocked_call_would_touch_is_blocked_as_well() {
    let house = house([
        tool("first", |_, _| async { Ok(()) }).writes("a").asks(),
        tool("second", |_, _| async { Ok(()) })
            .on_footprint(|_| haft_core::Footprint {
                reads: vec![haft_core::Resource::path("a")],
                writes: vec![haft_core::Resource::path("b")],
            })
            .define(|definition| definition.constraints.allow_side_effects = false),
        tool("third", |_, _| async { Ok(()) }).reads("b"),
        tool("fourth", |_, _| async { Ok(()) }).reads("c"),
    ]);
    let calls = ["first", "second", "third", "fourth"].map(call).to_vec();
    let (results, _) = house.engine.execute_batch(calls).await;
    assert_eq!(codes(&results), ["CONFIRMATION_REQUIRED", "BLOCKED", "BLOCKED", "OK"]);
}

//! Plan: the order of checks, guards that fail, dry runs, execution ids, coercion.

use crate::common::{
    Answers, Count, Door, Setup, call, call_with, code, codes, house, known_id, message, quiet, tool, with,
    within,
};
use haft_core::{
    ApprovalMode, ApprovalRequest, BatchOptions, BatchOrigin, CallContext, CallOptions, Decision, ErrorCode,
    ExecutionId, Tier, ToolDefinition, ToolError, ToolsMode,
    port::{
        Approver, Authorisation, Authoriser, BoxFuture, ClaimRequest, GuardError, Policy, Store, Subject,
        Verdict,
    },
};
use haft_engine::{BatchRequest, Preview, Request, Settings};
use haft_guard::ListPolicy;
use serde_json::json;
use std::{
    future::ready,
    sync::{Arc, Barrier},
    time::Duration,
};

/// What can be wrong with a call, in the order in which it must be found out (DESIGN §4).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Fault {
    Context,
    ModeOff,
    PolicyOff,
    TooManyCalls,
    DuplicateId,
    TooLarge,
    NotJson,
    Unknown,
    AboveTier,
    Denylisted,
    NotPermitted,
    KeyConflict,
    BadArguments,
    TimeoutTooLong,
    PrepareFails,
    PolicyDenies,
    Asks,
    None,
}

const LADDER: [(Fault, &str, &str); 18] = [
    (Fault::Context, "PERMISSION_DENIED", "names no agent"),
    (Fault::ModeOff, "TOOL_DISABLED", "Tool execution disabled"),
    (Fault::PolicyOff, "TOOL_DISABLED", "disabled by policy"),
    (Fault::TooManyCalls, "LIMIT_EXCEEDED", "Exceeded max tool calls"),
    (Fault::DuplicateId, "DUPLICATE_CALL_ID", "Duplicate tool call id: same"),
    (Fault::TooLarge, "LIMIT_EXCEEDED", "arguments too large"),
    (Fault::NotJson, "VALIDATION_FAILED", "Invalid tool arguments JSON"),
    (Fault::Unknown, "TOOL_NOT_FOUND", "Unknown tool"),
    (Fault::AboveTier, "LICENSE_REQUIRED", "Enterprise"),
    (Fault::Denylisted, "TOOL_DENIED", "denylist"),
    (Fault::NotPermitted, "PERMISSION_DENIED", "`tool.test`"),
    (Fault::KeyConflict, "IDEMPOTENCY_CONFLICT", "idempotency key"),
    (Fault::BadArguments, "VALIDATION_FAILED", "Bad args"),
    (Fault::TimeoutTooLong, "VALIDATION_FAILED", "timeout"),
    (Fault::PrepareFails, "VALIDATION_FAILED", "it cannot be prepared"),
    (Fault::PolicyDenies, "TOOL_DENIED", "not on the allowlist"),
    (Fault::Asks, "CONFIRMATION_REQUIRED", "A person has to approve"),
    (Fault::None, "OK", ""),
];

/// Makes a call that has the fault `first` and every fault that is checked later.
async fn climb(first: Fault) -> (String, String) {
    let has = move |fault: Fault| fault >= first && first != Fault::None;
    let names = |has: bool| if has { ["target".to_owned()].into() } else { Default::default() };
    let policy = ListPolicy {
        enabled: !has(Fault::PolicyOff),
        mode: if has(Fault::PolicyDenies) { ApprovalMode::Deny } else { ApprovalMode::Auto },
        denylist: names(has(Fault::Denylisted)),
        ..ListPolicy::default()
    };
    let settings = Settings {
        mode: if has(Fault::ModeOff) { ToolsMode::Disabled } else { ToolsMode::Enabled },
        max_calls_per_answer: 2,
        max_args_bytes: 100,
        ..Settings::default()
    };
    let house = Setup { policy: Arc::new(policy), settings, ..Setup::default() }.build([
        tool("ping", |_, _| async { Ok(()) }),
        tool("target", |_, _| async { Ok(()) })
            .takes(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
            .define(|definition| {
                definition.tier = if has(Fault::AboveTier) { Tier::Enterprise } else { Tier::Core };
                definition.required_permissions = vec!["tool.test".into()];
                definition.requires_confirmation = has(Fault::Asks);
            })
            .on_prepare(move |_| match has(Fault::PrepareFails) {
                true => Err(ToolError::bad_args("it cannot be prepared")),
                false => Ok(()),
            }),
    ]);
    let context = CallContext {
        permissions: if has(Fault::NotPermitted) { Vec::new() } else { vec!["*".into()] },
        ..CallContext::new("local", if has(Fault::Context) { "" } else { "agent" })
    };
    if has(Fault::KeyConflict) {
        let taken = ClaimRequest {
            execution_id: ExecutionId::at(jiff::Timestamp::UNIX_EPOCH),
            tenant: "local".into(),
            principal: "\u{1f}agent".into(),
            tool: "target".into(),
            key: "key".into(),
            arguments: json!({"other": "arguments"}).into(),
        };
        house.store.claim(taken).await.unwrap();
    }
    let mut text = format!(r#"{{"n": {}"#, if has(Fault::BadArguments) { r#""one""# } else { "1" });
    if has(Fault::TooLarge) {
        text.push_str(&format!(r#", "pad": "{}""#, "x".repeat(200)));
    }
    if !has(Fault::NotJson) {
        text.push('}');
    }
    let mut target = call(if has(Fault::Unknown) { "no_such_tool" } else { "target" })
        .with_id(if has(Fault::DuplicateId) { "same" } else { "other" })
        .with_idempotency_key("key");
    target.arguments = haft_core::Arguments::from_text(text);
    let mut calls = vec![call("ping").with_id("same")];
    calls.extend(has(Fault::TooManyCalls).then(|| call("ping").with_id("third")));
    calls.push(target);
    let timeout = has(Fault::TimeoutTooLong).then_some(Duration::from_secs(3600));
    let options = BatchOptions {
        call: CallOptions { timeout, ..CallOptions::default() },
        origin: BatchOrigin::Model,
        ..BatchOptions::default()
    };
    let request = BatchRequest::from(calls).context(context).options(options);
    let (results, _) = house.engine.execute_batch(request).await;
    let last = results.last().unwrap();
    (code(last).to_owned(), message(last).to_owned())
}

#[tokio::test]
async fn each_check_wins_over_all_later_ones() {
    let mut wrong = Vec::new();
    for (fault, expected, part) in LADDER {
        let (code, message) = climb(fault).await;
        if code != expected || !message.contains(part) {
            wrong.push(format!(
                "{fault:?} and all later faults: expected {expected} ({part}), got {code}: {message}"
            ));
        }
    }
    assert!(wrong.is_empty(), "the order of DESIGN §4 is not kept:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_batch_above_the_tier_is_refused_whole_before_any_event() {
    let runs = Count::default();
    let counted = runs.clone();
    let house = house([tool("ping", move |_, _| {
        counted.up();
        async { Ok(()) }
    })]);
    let context = CallContext { tier: Tier::Core, ..CallContext::new("local", "agent") };
    let request = BatchRequest::from(vec![call("ping"); 6]).context(context);
    let (results, summary) = house.engine.execute_batch(request).await;
    assert_eq!(codes(&results), ["LIMIT_EXCEEDED"; 6]);
    assert_eq!((runs.get(), summary.executed, house.audit().await.len()), (0, 0, 6));
    let kinds = house.kinds(summary.batch_id).await;
    assert!(
        !kinds.contains(&"BatchStarted"),
        "DESIGN §12: refused before any event, but it began: {kinds:?}"
    );
}

#[tokio::test]
async fn an_alias_in_any_case_cannot_dodge_the_denylist() {
    let runs = Count::default();
    let counted = runs.clone();
    let shell = tool("run_command", move |_, _| {
        counted.up();
        async { Ok(()) }
    })
    .define(|definition| definition.aliases = vec!["Bash".into(), "RunCommand".into()]);
    let house = house([shell]);
    for name in ["run_command", "RUN_COMMAND", "Bash", "bash", "BASH", "RunCommand", "runcommand"] {
        let result = house.engine.execute(call(name)).await;
        assert_eq!(code(&result), "TOOL_DENIED", "{name}");
        assert_eq!(
            &*result.tool, "run_command",
            "the record names what would have run, not how it was called"
        );
    }
    assert_eq!(runs.get(), 0);
    assert!(house.audit().await.iter().all(|record| record.rule.as_deref() == Some("denylist")));
}

/// A guard that fails at one of its questions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    PolicyDenies,
    PolicyDecides,
    Authoriser,
    Approver,
}

#[derive(Clone, Copy)]
struct Guard {
    broken: Broken,
    panics: bool,
}

const WHY: &str = "planned: ldap://10.0.0.7 is down";

impl Guard {
    fn fail<T>(&self, at: Broken, otherwise: T) -> Result<T, GuardError> {
        match (self.broken == at, self.panics) {
            (false, _) => Ok(otherwise),
            (true, true) => panic!("{WHY}"),
            (true, false) => Err(GuardError(WHY.to_owned())),
        }
    }
}

impl Policy for Guard {
    fn is_enabled(&self) -> bool {
        true
    }

    fn denies(&self, _: &CallContext, _: &ToolDefinition) -> Result<Option<String>, GuardError> {
        self.fail(Broken::PolicyDenies, None)
    }

    fn decide(&self, _: &Subject<'_>) -> Result<Verdict, GuardError> {
        self.fail(Broken::PolicyDecides, Verdict::Ask { rule: "test".into(), reason: "it is a test".into() })
    }
}

impl Authoriser for Guard {
    fn authorise<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Authorisation, GuardError>> {
        Box::pin(ready(self.fail(Broken::Authoriser, Authorisation::Granted)))
    }
}

impl Approver for Guard {
    fn ask<'a>(&'a self, asked: &'a [ApprovalRequest]) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(ready(self.fail(Broken::Approver, vec![Decision::Approve; asked.len()])))
    }
}

fn guarded_by(guard: Guard, runs: &Count) -> crate::common::House {
    let (runs, guard) = (runs.clone(), Arc::new(guard));
    Setup { policy: guard.clone(), authoriser: guard.clone(), approver: guard, ..Setup::default() }.build([
        tool("ping", move |_, _| {
            runs.up();
            async { Ok(()) }
        }),
    ])
}

const GUARDS: [Broken; 4] =
    [Broken::PolicyDenies, Broken::PolicyDecides, Broken::Authoriser, Broken::Approver];

#[tokio::test]
async fn a_guard_that_errors_denies() {
    for broken in GUARDS {
        let runs = Count::default();
        let house = guarded_by(Guard { broken, panics: false }, &runs);
        let result = house.engine.execute(call("ping")).await;
        assert_eq!((code(&result), runs.get()), ("TOOL_DENIED", 0), "{broken:?} failed open");
        assert_eq!(result.diagnostics.as_deref(), Some(WHY), "{broken:?}: the operator is told why");
        let seen = serde_json::to_string(&result).unwrap();
        assert!(
            !seen.contains("10.0.0.7"),
            "{broken:?}: what only the operator may know reached the model: {seen}"
        );
        assert_eq!(house.audit().await[0].diagnostics.as_deref(), Some(WHY), "{broken:?}");
        house.ended_once(result.metadata.execution_id).await;
    }
}

#[tokio::test]
async fn a_guard_that_panics_lets_nothing_run_and_the_call_is_on_record() {
    quiet();
    for broken in GUARDS {
        let runs = Count::default();
        let house = guarded_by(Guard { broken, panics: true }, &runs);
        let (id, options) = known_id();
        let engine = house.engine.clone();
        // The panic may reach the caller or become a refusal; it must not become a run.
        let _ = tokio::spawn(async move { engine.execute(with(call("ping"), options)).await }).await;
        house.idle().await;
        assert_eq!(runs.get(), 0, "{broken:?} failed open");
        house.ended_once(id).await;
    }
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_a_guard_thinks() {
    struct Thinks;
    impl Authoriser for Thinks {
        fn authorise<'a>(
            &'a self,
            _: &'a CallContext,
            _: &'a ToolDefinition,
        ) -> BoxFuture<'a, Result<Authorisation, GuardError>> {
            Box::pin(std::future::pending())
        }
    }
    let house = Setup { authoriser: Arc::new(Thinks), ..Setup::default() }
        .build([tool("ping", |_, _| async { Ok(()) })]);
    let (id, options) = known_id();
    let engine = house.engine.clone();
    let running = tokio::spawn(async move { engine.execute(with(call("ping"), options)).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(house.engine.cancel(id, haft_sdk::CancelReason::User, None));
    let ended = tokio::time::timeout(Duration::from_millis(500), running).await;
    let result = ended.expect("`cancel` said yes, and the call goes on waiting for the guard").unwrap();
    assert_eq!(code(&result), "CANCELLED");
}

#[tokio::test]
async fn plan_is_a_dry_run_that_asks_nobody_and_leaves_no_record() {
    let (door, runs) = (Door::closed(), Count::default());
    let counted = runs.clone();
    let ping = tool("ping", move |_, _| {
        counted.up();
        async { Ok(()) }
    });
    let house = Setup { approver: door.clone(), ..Setup::default() }
        .build([ping.reads("/a"), tool("asks", |_, _| async { Ok(()) }).asks()]);
    let keyed = call("ping").with_idempotency_key("key");
    let calls = vec![keyed.clone(), call("asks"), call("no_such_tool"), keyed.clone()];
    let previews = within("the plan", house.engine.plan(calls)).await;
    assert!(
        matches!(
            &previews[..],
            [
                Preview::Ready { .. },
                Preview::NeedsApproval { .. },
                Preview::Refused(ToolError { code: ErrorCode::ToolNotFound, .. }),
                Preview::Ready { .. }
            ]
        ),
        "{previews:?}"
    );
    assert_eq!((runs.get(), door.asked(), house.engine.running()), (0, 0, 0));
    assert_eq!(house.store.notes(), Vec::<String>::new(), "a dry run wrote to the store");
    let result = house.engine.execute(keyed).await;
    assert_eq!((code(&result), runs.get()), ("OK", 1), "the dry run took the key");
}

#[tokio::test]
async fn an_execution_id_is_used_once() {
    let runs = Count::default();
    let counted = runs.clone();
    let house = house([tool("ping", move |_, _| {
        counted.up();
        async { Ok(()) }
    })]);
    let (id, options) = known_id();
    let first = house.engine.execute(with(call("ping"), options.clone())).await;
    let second = house.engine.execute(with(call("ping"), options.clone())).await;
    assert_eq!(codes(&[first, second.clone()]), ["OK", "DUPLICATE_CALL_ID"]);
    assert_ne!(second.metadata.execution_id, id, "the refusal has an id of its own");
    assert_eq!(runs.get(), 1);
    house.ended_once(id).await;
    house.ended_once(second.metadata.execution_id).await;

    let batch = BatchOptions { call: options, ..BatchOptions::default() };
    let request = || BatchRequest::from(vec![call("ping"), call("ping")]).options(batch.clone());
    let (first, _) = house.engine.execute_batch(request()).await;
    let (second, _) = house.engine.execute_batch(request()).await;
    assert_eq!(codes(&first), ["OK"; 2]);
    assert_eq!(codes(&second), ["DUPLICATE_CALL_ID"; 2]);
    assert_eq!((runs.get(), house.engine.running()), (3, 0));
}

/// Two calls with the same id at the same moment: one is taken, one refused, and the books are right afterwards.
#[test]
fn two_calls_that_race_for_one_execution_id_are_still_counted_right() {
    let house = house([tool("ping", |_, _| async { Ok(()) })]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for round in 0..3000 {
        let (id, options) = known_id();
        let options = Arc::new(options);
        let barrier = Barrier::new(2);
        let mut results = std::thread::scope(|scope| {
            let race = || {
                barrier.wait();
                let request = Request::new(call("ping")).options(Arc::clone(&options));
                runtime.block_on(house.engine.execute(request))
            };
            let (one, two) = (scope.spawn(race), scope.spawn(race));
            [one.join().unwrap(), two.join().unwrap()]
        });
        results.sort_by_key(|result| code(result).len());
        assert_eq!(codes(&results), ["OK", "DUPLICATE_CALL_ID"], "round {round}");
        assert_eq!(house.engine.running(), 0, "round {round}: the count of running calls is wrong");
        assert_ne!(results[1].metadata.execution_id, id, "round {round}: two executions have one id");
    }
}

#[tokio::test]
async fn coercion_loses_nothing_is_recorded_and_can_be_switched_off() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}});
    let house = house([tool("echo", |args, _| async move { Ok(json!(args.value)) }).takes(schema)]);
    let arguments = json!({"n": "5", "s": "5"});
    let options = CallOptions { coerce: Some(false), ..CallOptions::default() };
    let strict = house.engine.execute(with(call_with("echo", arguments.clone()), options)).await;
    assert_eq!((code(&strict), strict.metadata.coercions.len()), ("VALIDATION_FAILED", 0));

    let lenient = house.engine.execute(call_with("echo", arguments.clone())).await;
    assert_eq!(lenient.output, Some(json!({"n": 5, "s": "5"})));
    assert_eq!(lenient.metadata.coercions, ["/n"]);

    let clean = house.engine.execute(call_with("echo", json!({"n": 5}))).await;
    assert!(clean.is_success() && clean.metadata.coercions.is_empty(), "nothing was coerced");
    let lossy = house.engine.execute(call_with("echo", json!({"n": "5.5"}))).await;
    assert_eq!(code(&lossy), "VALIDATION_FAILED", "5 would be another number");

    // Where the operator switched it off, a call can still ask for it.
    let settings = haft_engine::Settings { coerce_arguments: false, ..Default::default() };
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}});
    let echo = tool("echo", |args, _| async move { Ok(json!(args.value)) }).takes(schema);
    let house = Setup { settings, ..Setup::default() }.build([echo]);
    assert_eq!(code(&house.engine.execute(call_with("echo", arguments.clone())).await), "VALIDATION_FAILED");
    let options = CallOptions { coerce: Some(true), ..CallOptions::default() };
    assert_eq!(code(&house.engine.execute(with(call_with("echo", arguments), options)).await), "OK");
}

#[tokio::test]
async fn duplicate_call_ids_fail_and_the_first_one_runs() {
    let runs = Count::default();
    let counted = runs.clone();
    let house = Setup { approver: Answers::yes(), ..Setup::default() }.build([tool("ping", move |_, _| {
        counted.up();
        async { Ok(()) }
    })]);
    let calls = ["a", "b", "a", "", "", "b"].map(|id| call("ping").with_id(id));
    let (results, _) = house.engine.execute_batch(calls.to_vec()).await;
    assert_eq!(codes(&results), ["OK", "OK", "DUPLICATE_CALL_ID", "OK", "OK", "DUPLICATE_CALL_ID"]);
    assert_eq!((runs.get(), house.audit().await.len()), (4, 6));
}

//! What holds the first attempt at a call holds every other one. Each attack has a control that shows that it would
//! work.

use crate::{
    program::{add, definition},
    world::{World, in_world, in_world_with},
};
use haft::{
    CallContext, CallOptions, CommandInput, CommandSource, ErrorCode, IsolationLevel, Limits, Request, Retry,
    SandboxSpec, ToolCall, ToolResult,
};
use libtest_mimic::Trial;
use serde_json::json;
use std::{sync::Arc, time::Duration};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 5] = [
        ("attempts::a_tool_that_only_reads_writes_in_none", a_tool_that_only_reads_writes_in_none),
        ("attempts::the_level_holds_in_each", the_level_holds_in_each),
        ("attempts::the_sandbox_around_it_holds_in_each", the_sandbox_around_it_holds_in_each),
        ("attempts::the_effect_has_one_name", the_effect_has_one_name),
        ("attempts::what_was_enforced_and_used_is_on_record", what_was_enforced_and_used_is_on_record),
    ];
    crate::world::trials(tests)
}

/// One more attempt, at once, when the first one runs out of time.
fn twice(isolation: Option<IsolationLevel>) -> CallOptions {
    let retry = Retry { max_retries: 1, base: Duration::ZERO, on: Vec::new() };
    CallOptions {
        attempt_timeout: Some(Duration::from_millis(1500)),
        retry: Some(retry),
        isolation,
        ..CallOptions::default()
    }
}

/// Adds a tool of that script. What changes something says that it may be done twice.
fn tool(world: &World, text: &str, changes: bool) {
    // A program of the system: in some jails nothing else is there.
    let mut definition = definition(CommandSource {
        args: vec!["-c".into(), text.into()],
        input: CommandInput::Flags,
        ..CommandSource::new("sh")
    });
    definition.constraints.allow_side_effects = changes;
    definition.idempotent = changes;
    add(world, definition);
}

async fn call(world: &World, options: CallOptions, context: &Arc<CallContext>) -> ToolResult {
    let request = Request::new(ToolCall::new("my_tool", json!({}))).context(Arc::clone(context));
    world.haft.execute(request.options(options)).await
}

fn timed_out_twice(result: &ToolResult) {
    let code = result.error.as_ref().map(|error| error.code);
    assert_eq!((code, result.metadata.attempts), (Some(ErrorCode::Timeout), 2), "{result:?}");
    let records = &result.metadata.attempt_records;
    assert_eq!(records.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    for attempt in records {
        assert_eq!(attempt.code, Some(ErrorCode::Timeout), "{records:?}");
        assert!(attempt.sandbox_id.is_some() && attempt.metrics.is_some(), "{records:?}");
    }
    // One of them may have got a kernel that stood ready.
    let held = |attempt: usize| {
        let mut enforcement = records[attempt].enforcement.clone();
        enforcement.iter_mut().for_each(|by| drop(by.details.remove("startedBefore")));
        enforcement
    };
    assert_eq!(held(0), held(1), "held by the same");
    assert_eq!(records[1].enforcement, result.metadata.enforcement);
}

/// Writes, or sleeps where it cannot.
const WRITES: &str = "(echo leaked > leak) 2>/dev/null && exit 0; sleep 30";

fn a_tool_that_only_reads_writes_in_none(name: &str) {
    for changes in [false, true] {
        in_world(name, async move |world| {
            tool(&world, WRITES, changes);
            let result = call(&world, twice(None), &CallContext::owner()).await;
            let leaked = world.work().join("leak").exists();
            if changes {
                assert!(leaked && result.error.is_none(), "the control: {result:?}");
                assert!(result.metadata.attempt_records.is_empty(), "one attempt is the result itself");
            } else {
                timed_out_twice(&result);
                assert!(!leaked, "an attempt wrote: {result:?}");
            }
        });
    }
}

fn the_level_holds_in_each(name: &str) {
    in_world(name, async |world| {
        world.write("secret", "from-the-workspace");
        let path = world.work().join("secret");
        tool(&world, &format!("cat '{}' && exit 0; sleep 30", path.display()), false);
        let control = call(&world, twice(None), &CallContext::owner()).await;
        assert!(control.text().contains("from-the-workspace"), "the control: {control:?}");
        let options = twice(Some(IsolationLevel::Restricted));
        let result = call(&world, options, &CallContext::owner()).await;
        if result.error.as_ref().is_some_and(|error| error.code == ErrorCode::SandboxCreationFailed) {
            haft_testkit::not_run("commands::attempts::the_level_holds_in_each", result.text());
            return;
        }
        timed_out_twice(&result);
        assert!(!format!("{result:?}").contains("from-the-workspace"), "{result:?}");
        for attempt in &result.metadata.attempt_records {
            let enforcement = attempt.enforcement.as_ref().unwrap();
            assert_eq!(enforcement.level, IsolationLevel::Restricted, "{enforcement:?}");
        }
    });
}

fn the_sandbox_around_it_holds_in_each(name: &str) {
    in_world_with(name, "", |world| async move {
        world.write("b/secret", "from-beside-the-sandbox");
        world.write("a/inside", "");
        let secret = world.work().join("b/secret");
        // The first attempt only leaves a mark; the second one reads and eats what it can.
        let text = format!(
            "cd '{}'; [ -e mark ] || {{ touch mark; sleep 30; }}; cat '{}' 2>/dev/null; \
             n=$(head -c 200M /dev/zero | tail -c 150M | wc -c); [ \"$n\" = 157286400 ] && echo ate; exit 0",
            world.work().join("a").display(),
            secret.display()
        );
        tool(&world, &text, true);
        let control = call(&world, twice(None), &CallContext::owner()).await;
        assert_eq!(control.metadata.attempts, 2, "{control:?}");
        assert!(control.text().contains("from-beside-the-sandbox"), "the control: {control:?}");
        assert!(control.text().contains("ate"), "the control: {control:?}");
        std::fs::remove_file(world.work().join("a/mark")).unwrap();
        let spec = SandboxSpec {
            limits: Limits { memory_bytes: Some(64 << 20), ..Limits::default() },
            mounts: vec!["a".to_owned()],
            ..SandboxSpec::default()
        };
        let made = world.haft.sandboxes().create(&CallContext::owner(), spec).await.unwrap();
        let inside = world.haft.sandboxes().enter(&CallContext::owner(), &made.id).unwrap();
        let result = call(&world, twice(None), &inside).await;
        assert_eq!(result.metadata.attempts, 2, "{result:?}");
        assert!(!format!("{result:?}").contains("from-beside-the-sandbox"), "{result:?}");
        assert!(!result.text().contains("ate"), "its memory is that of the sandbox: {result:?}");
        let status = world.haft.sandboxes().status("local", &made.id).unwrap();
        assert_eq!(status.calls, 1, "of however many attempts: {status:?}");
    });
}

fn the_effect_has_one_name(name: &str) {
    in_world(name, async |world| {
        let text = "echo \"$HAFT_EFFECT_ID\" >> ids; [ \"$(wc -l < ids)\" -ge 2 ] && exit 0; sleep 30";
        tool(&world, text, true);
        let result = call(&world, twice(None), &CallContext::owner()).await;
        assert_eq!((result.error.is_none(), result.metadata.attempts), (true, 2), "{result:?}");
        let ids = std::fs::read_to_string(world.work().join("ids")).unwrap();
        let id = result.metadata.execution_id.to_string();
        assert_eq!(ids.lines().collect::<Vec<_>>(), [id.as_str(), id.as_str()]);
        let records = &result.metadata.attempt_records;
        let codes: Vec<_> = records.iter().map(|attempt| attempt.code).collect();
        assert_eq!(codes, [Some(ErrorCode::Timeout), None]);
    });
}

fn what_was_enforced_and_used_is_on_record(name: &str) {
    in_world(name, async |world| {
        // Both attempts keep a core busy.
        tool(&world, "while :; do :; done", false);
        let result = call(&world, twice(None), &CallContext::owner()).await;
        timed_out_twice(&result);
        let used =
            |metrics: &Option<Box<haft::Metrics>>| metrics.as_ref().unwrap().cpu_time_ms.unwrap_or(0.0);
        let each: Vec<f64> = result.metadata.attempt_records.iter().map(|one| used(&one.metrics)).collect();
        let all = used(&result.metadata.metrics);
        assert!(each.iter().all(|one| *one > 100.0), "{each:?}");
        assert!((all - each.iter().sum::<f64>()).abs() < 0.01, "{all} of {each:?}");
        let record = world.audit().await;
        assert_eq!(record.metadata.attempt_records, result.metadata.attempt_records);
    });
}

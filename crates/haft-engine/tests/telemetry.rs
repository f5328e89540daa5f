//! What an observer sees: spans through the five stages, log messages, counts. Never a secret.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Setup, call, tool};
use haft_core::{ToolCall, ToolError};
use haft_engine::{BatchRequest, Request};
use haft_guard::{KnownSecrets, ListPolicy};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};
use tracing_subscriber::{
    Layer,
    fmt::{MakeWriter, format::FmtSpan},
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

const SECRET: &str = "s3cr3t-value-42";

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

/// The path of each span that was closed, outermost first.
#[derive(Clone, Default)]
struct Paths(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Paths {
    fn on_close(&self, id: tracing::Id, context: Context<'_, S>) {
        let names: Vec<_> = context.span(&id).unwrap().scope().from_root().map(|span| span.name()).collect();
        self.0.lock().unwrap().push(names.join(" > "));
    }
}

/// Everything that is seen while a future runs: each closed span and each message.
fn seen(future: impl Future<Output = ()>) -> (Vec<Value>, String, Vec<String>) {
    let (lines, paths) = (Lines::default(), Paths::default());
    let text = tracing_subscriber::fmt::layer().json().with_span_events(FmtSpan::CLOSE);
    let subscriber = tracing_subscriber::registry().with(text.with_writer(lines.clone())).with(paths.clone());
    tracing::subscriber::with_default(subscriber, || {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let paths = paths.0.lock().unwrap().clone();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), text, paths)
}

fn messages<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["fields"]["message"] == message).collect()
}

#[test]
fn a_call_is_a_span_through_the_five_stages() {
    let (lines, _, paths) = seen(async {
        let house = Setup::default().build([tool("echo", |_, _| async { Ok("hello") })]);
        house.engine.execute(call("echo")).await;
    });
    assert_eq!(
        paths,
        [
            "haft.execution > haft.plan",
            "haft.execution > haft.approve",
            "haft.execution > haft.schedule > execute_tool > haft.run",
            "haft.execution > haft.schedule > execute_tool > haft.finish",
            "haft.execution > haft.schedule > execute_tool",
            "haft.execution > haft.schedule",
            "haft.execution",
        ]
    );
    let span = &lines.iter().find(|line| line["span"]["name"] == "execute_tool").unwrap()["span"];
    let closed = lines.iter().rfind(|line| line["span"]["name"] == "execute_tool").unwrap();
    assert_eq!(span["gen_ai.operation.name"], "execute_tool");
    assert_eq!(span["gen_ai.tool.name"], "echo");
    assert_eq!(span["otel.name"], "execute_tool echo");
    assert_eq!(closed["span"]["haft.status"], "Success");
    for message in ["Tool execution started.", "Tool execution finished."] {
        let [line] = messages(&lines, message)[..] else { panic!("{message}: {lines:?}") };
        assert_eq!((&line["fields"]["code"], &line["fields"]["tool"]), (&json!("TLS-EXE"), &json!("echo")));
    }
}

#[test]
fn what_goes_wrong_is_told_and_holds_no_secret() {
    let (lines, text, _) = seen(async {
        let secrets = KnownSecrets::new([("TOKEN", SECRET.to_owned())]);
        let setup = Setup { redactor: Some(Arc::new(secrets)), ..Setup::default() };
        let house = setup.build([tool("leaks", |_, _| async {
            Err::<(), _>(ToolError::failed(SECRET).with_diagnostics(SECRET))
        })]);
        let calls = vec![
            ToolCall::new("leaks", json!({"token": SECRET})).with_id(SECRET),
            ToolCall::new(format!("no_{SECRET}"), json!({})).with_id("b"),
        ];
        house.engine.execute_batch(BatchRequest::from(calls)).await;
    });
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(messages(&lines, "Tool not found.").len(), 1);
    let [batch] = messages(&lines, "Batch execution completed.")[..] else { panic!("{lines:?}") };
    assert_eq!((&batch["fields"]["total"], &batch["fields"]["failed"]), (&json!(2), &json!(2)));
    let failed = lines.iter().rfind(|line| line["span"]["gen_ai.tool.name"] == "leaks").unwrap();
    assert_eq!(failed["span"]["error.type"], "EXECUTION_FAILED");
}

/// Every message of the sources, with what each says.
#[test]
fn each_message_is_told_with_what_it_is_about() {
    let (lines, _, _) = seen(async {
        let slow = tool("slow", |_, _| async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            Ok("never")
        });
        let denied = ["denied".to_owned()].into();
        let policy =
            ListPolicy { mode: haft_core::ApprovalMode::Auto, denylist: denied, ..ListPolicy::default() };
        let setup = Setup { policy: Arc::new(policy), ..Setup::default() };
        let house = setup.build([
            slow,
            tool("denied", |_, _| async { Ok("no") }),
            tool("echo", |_, _| async { Ok("hello") }),
        ]);
        let options = haft_core::CallOptions {
            timeout: Some(std::time::Duration::from_millis(20)),
            ..haft_core::CallOptions::default()
        };
        house.engine.execute(Request::new(call("slow")).options(options)).await;
        let calls = ["denied", "nobody", "echo"].map(|name| ToolCall::new(name, json!({}))).to_vec();
        house.engine.execute_batch(BatchRequest::from(calls)).await;
    });
    for (message, level, fields) in [
        ("Tool execution started.", "INFO", &["execution_id", "tool"][..]),
        ("Tool execution finished.", "INFO", &["execution_id", "tool", "status", "duration_ms"]),
        ("Tool not found.", "WARN", &["execution_id", "tool"]),
        ("Authorization denied.", "WARN", &["execution_id", "tool", "reason"]),
        ("Execution timed out.", "WARN", &["execution_id", "tool", "timeout"]),
        ("Batch execution completed.", "INFO", &["execution_id", "total", "success", "failed"]),
    ] {
        let found = messages(&lines, message);
        let line = found.first().unwrap_or_else(|| panic!("{message} in {lines:#?}"));
        assert_eq!(
            (&line["level"], &line["fields"]["code"]),
            (&json!(level), &json!("TLS-EXE")),
            "{message}"
        );
        for field in fields {
            assert!(!line["fields"][field].is_null(), "{field} of {message}: {line}");
        }
    }
}

/// seeds/000 §4.6: messages for calls that are invalid, cancelled or fail, and for batches that are too large or stop.
#[test]
fn every_other_end_is_told_too() {
    let (lines, text, _) = seen(async {
        let hangs = tool("hangs", |_, _| async {
            std::future::pending::<()>().await;
            Ok("never")
        });
        let fails = tool("fails", |_, _| async { Err::<(), _>(ToolError::failed("no luck")) });
        let house = Setup::default().build([hangs, fails, tool("echo", |_, _| async { Ok("hello") })]);
        let bad = haft_core::Arguments::from_text("{needle");
        house.engine.execute(ToolCall::new("echo", bad)).await;
        let calls = |names: &[&str]| names.iter().map(|name| call(name)).collect::<Vec<_>>();
        let core = haft_core::CallContext::new("local", "agent");
        house.engine.execute_batch(BatchRequest::from(calls(&["echo"; 6])).context(core)).await;
        let stops =
            haft_core::BatchOptions { continue_on_failure: false, ..haft_core::BatchOptions::default() };
        house.engine.execute_batch(BatchRequest::from(calls(&["fails", "echo"])).options(stops)).await;
        let (id, options) = common::known_id();
        let running = house.engine.execute(Request::new(call("hangs")).options(options));
        let cancelling = async {
            tokio::task::yield_now().await;
            assert!(house.engine.cancel(id, haft_sdk::CancelReason::User, None));
        };
        tokio::join!(running, cancelling);
    });
    for (message, level, fields) in [
        ("Parameter validation failed.", "WARN", &["execution_id", "tool", "errors"][..]),
        ("Batch size exceeds limit.", "WARN", &["count", "max", "tier"]),
        ("Execution failed.", "ERROR", &["execution_id", "tool", "error"]),
        ("Batch execution stopped due to failure.", "INFO", &["execution_id", "tool", "status"]),
        ("Cancellation requested.", "INFO", &["execution_id"]),
        ("Execution cancelled.", "INFO", &["execution_id", "tool"]),
    ] {
        let found = messages(&lines, message);
        let [line] = found[..] else { panic!("{message}, {} times in {lines:#?}", found.len()) };
        assert_eq!(
            (&line["level"], &line["fields"]["code"]),
            (&json!(level), &json!("TLS-EXE")),
            "{message}"
        );
        for field in fields {
            assert!(!line["fields"][field].is_null(), "{field} of {message}: {line}");
        }
    }
    assert!(!text.contains("needle"), "arguments are in no log: {text}");
}

/// seeds/001 §2, executeWithRetry: `logger.warn` with the attempt, how many there are, the tool and the error's text.
#[test]
fn each_retry_is_a_warning_with_the_errors_text() {
    let retry = haft_core::Retry {
        max_retries: 2,
        base: std::time::Duration::from_millis(1),
        ..haft_core::Retry::default()
    };
    let (lines, text, _) = seen(async {
        let secrets = KnownSecrets::new([("TOKEN", SECRET.to_owned())]);
        let setup = Setup { redactor: Some(Arc::new(secrets)), ..Setup::default() };
        let house = setup.build([
            tool("flaky", |_, _| async {
                let text = format!("no answer to {SECRET}\nsecond line");
                Err::<(), _>(ToolError::new(haft_core::ErrorCode::UpstreamUnavailable, text))
            }),
            tool("fails", |_, _| async { Err::<(), _>(ToolError::failed("for good")) }),
        ]);
        let options = || haft_core::CallOptions { retry: Some(retry.clone()), ..Default::default() };
        house.engine.execute(Request::new(call("fails")).options(options())).await;
        house.engine.execute(Request::new(call("flaky")).options(options())).await;
    });
    let warnings = messages(&lines, "Attempt failed, retrying.");
    let [first, second] = warnings[..] else { panic!("{} warnings in {lines:#?}", warnings.len()) };
    for (attempt, line) in [(1, first), (2, second)] {
        let fields = &line["fields"];
        assert_eq!((&line["level"], &fields["code"]), (&json!("WARN"), &json!("TLS-EXE")), "{line}");
        assert_eq!((&fields["tool"], &fields["attempt"]), (&json!("flaky"), &json!(attempt)), "{line}");
        assert_eq!(fields["max_attempts"], 3, "{line}");
        assert!(fields["execution_id"].is_string(), "{line}");
        let error = fields["error"].as_str().unwrap();
        assert!(error.contains("no answer to") && error.contains("second line"), "{line}");
        assert!(!error.contains('\n'), "a line of a log is one line: {line}");
    }
    assert!(!text.contains(SECRET), "no secret is in a log: {text}");
}

/// seeds/000 §7: every call is counted, and no counter falls.
#[test]
fn unknown_tools_are_counted_and_counters_never_fall() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let house = Setup::default().build([tool("echo", |_, _| async { Ok("hello") })]);
        let by = haft_core::CallContext::owner();
        let other = |text: &'static str| tool("other", move |_, _| async move { Ok(text) });
        let has = |lines: &[&str]| {
            let text = house.engine.metrics_text();
            for line in lines {
                assert!(text.lines().any(|found| found == *line), "{line} in\n{text}");
            }
        };
        house.engine.tools().add(other("one"), &by).await.unwrap();
        for name in ["echo", "nobody", "other", "other"] {
            house.engine.execute(call(name)).await;
        }
        let before = ["tools_executions_total 4", "tools_executions_by_tool{tool=\"other\"} 2"];
        has(&before);
        house.engine.tools().remove("other").await.unwrap();
        has(&before);
        house.engine.execute(call("other")).await;
        house.engine.tools().add(other("two"), &by).await.unwrap();
        house.engine.execute(call("other")).await;
        has(&[
            "tools_executions_total 6",
            "tools_executions_by_tool{tool=\"other\"} 3",
            "tools_executions_by_tool{tool=\"(none)\"} 2",
            "tools_executions_by_status{status=\"Success\"} 4",
            "tools_executions_by_status{status=\"Failed\"} 2",
            "tools_registry_lookups 6",
            "tools_registry_lookups_misses 2",
        ]);
    });
}

/// Every name of the sources, with its kind. `tools.executions` and `tools.batches` are those of the executor's own
/// page; the rest is from the pages about definitions, the registry, sandboxes and results.
const NAMES: [(&str, &str); 27] = [
    ("tools.executions.total", "counter"),
    ("tools.executions.duration", "histogram"),
    ("tools.executions.by_status", "counter"),
    ("tools.executions.by_tool", "counter"),
    ("tools.executions.timeouts", "counter"),
    ("tools.batches.total", "counter"),
    ("tools.batches.size", "histogram"),
    ("tools.definitions.validation.duration", "summary"),
    ("tools.definitions.validation.failures", "counter"),
    ("tools.definitions.created", "counter"),
    ("tools.definitions.by_category", "gauge"),
    ("tools.registry.registrations.total", "counter"),
    ("tools.registry.registrations.failures", "counter"),
    ("tools.registry.lookups", "counter"),
    ("tools.registry.lookups.misses", "counter"),
    ("tools.registry.searches", "counter"),
    ("tools.registry.tools.by_category", "gauge"),
    ("tools.registry.tools.by_tier", "gauge"),
    ("sandbox.executions.total", "counter"),
    ("sandbox.executions.duration", "summary"),
    ("sandbox.memory.peak", "gauge"),
    ("sandbox.violations.total", "counter"),
    ("sandbox.violations.by_type", "counter"),
    ("sandbox.timeouts", "counter"),
    ("tools.results.stored", "counter"),
    ("tools.results.by_status", "counter"),
    ("tools.results.output_size", "summary"),
];

#[test]
fn every_name_of_the_sources_is_there_once() {
    let house = Setup::default().build([tool("echo", |_, _| async { Ok("hello") })]);
    let text = house.engine.metrics_text();
    let more = [
        ("tools.results.truncated", "counter"),
        ("tools.results.validation_failures", "counter"),
        ("tools.results.side_effects", "counter"),
        ("tools.retries.total", "counter"),
        ("tools.rate_limited.total", "counter"),
        ("tools.circuit.refused.total", "counter"),
        ("tools.circuit.breakers", "gauge"),
        ("tools.cache.hits.total", "counter"),
        ("tools.cache.misses.total", "counter"),
        ("tools.cache.shared.total", "counter"),
        ("tools.cache.entries", "gauge"),
        ("tools.queue.refused.total", "counter"),
        ("tools.queue.waiting", "gauge"),
        ("tools.executions.running", "gauge"),
    ];
    for (name, kind) in NAMES.iter().chain(&more) {
        let line = format!("# TYPE {} {kind}", name.replace('.', "_"));
        assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{line} in\n{text}");
    }
    let declared = text.lines().filter(|line| line.starts_with("# TYPE")).count();
    assert_eq!(declared, NAMES.len() + more.len(), "no other name:\n{text}");
}

#[test]
fn counts_of_tools_and_results_say_what_happened() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let text = runtime.block_on(async {
        let house = Setup::default().build([tool("echo", |_, _| async { Ok("hello") })]);
        house.engine.execute(call("echo")).await;
        house.engine.execute(call("nobody")).await;
        let tools = house.engine.tools();
        tools.find(&haft_engine::ToolQuery::default(), haft_core::Tier::Core).unwrap();
        tools.rank("say hello", 3, haft_core::Tier::Teams).unwrap();
        let (twice, by) = (tool("echo", |_, _| async { Ok("twice") }), haft_core::CallContext::owner());
        assert!(house.engine.tools().add(twice, &by).await.is_err());
        house.engine.metrics_text()
    });
    for line in [
        "tools_definitions_validation_duration_count 2",
        "tools_definitions_validation_failures 0",
        "tools_definitions_created 1",
        "tools_definitions_by_category{category=\"System\"} 1",
        "tools_registry_registrations_total 1",
        "tools_registry_registrations_failures 1",
        "tools_registry_lookups 2",
        "tools_registry_lookups_misses 1",
        "tools_registry_searches 2",
        "tools_registry_tools_by_category{category=\"System\"} 1",
        "tools_registry_tools_by_tier{tier=\"Core\"} 1",
        "tools_results_by_status{status=\"Success\"} 1",
        "tools_results_output_size_sum 5",
        "tools_results_output_size_count 2",
        "tools_executions_by_tool{tool=\"(none)\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn counts_are_as_prometheus_reads_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let text = runtime.block_on(async {
        let house = Setup::default().build([
            tool("echo", |_, _| async { Ok("hello") }),
            tool("fails", |_, _| async { Err::<(), _>(ToolError::failed("no")) }),
        ]);
        let calls =
            |names: &[&str]| names.iter().map(|name| ToolCall::new(*name, json!({}))).collect::<Vec<_>>();
        house.engine.execute_batch(BatchRequest::from(calls(&["echo", "fails", "nobody"]))).await;
        house.engine.execute(call("echo")).await;
        house.engine.metrics_text()
    });
    for line in [
        "tools_executions_total 4",
        "tools_executions_by_status{status=\"Success\"} 2",
        "tools_executions_by_status{status=\"Failed\"} 2",
        "tools_executions_by_tool{tool=\"echo\"} 2",
        "tools_executions_by_tool{tool=\"fails\"} 1",
        "tools_executions_duration_bucket{le=\"+Inf\"} 4",
        "tools_executions_duration_count 4",
        "tools_executions_timeouts 0",
        "tools_batches_total 1",
        "tools_batches_size_sum 3",
        "tools_registry_lookups_misses 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = name.split('{').next().unwrap();
        let base =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let declared = |name: &str| text.contains(&format!("# TYPE {name} "));
        assert!(declared(name) || declared(base), "{name} has no type");
    }
}

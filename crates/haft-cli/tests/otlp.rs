//! Spans as a collector gets them: sent by the real program, and by a program that embeds haft, to a receiver of this
//! test.

#![cfg(feature = "otlp")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test says what it expects, and fails where that is not so"
)]

use haft::{BatchRequest, Haft, KnownSecrets, Otlp, ToolCall, ToolError};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Output},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};
use tracing_subscriber::layer::SubscriberExt as _;

const SECRET: &str = "s3cr3t-value-42";

/// What somebody sent.
struct Sent {
    path: String,
    kind: String,
    body: Vec<u8>,
}

/// A collector on a port of its own, which answers everything in the same way.
struct Collector {
    endpoint: String,
    sent: Receiver<Sent>,
}

impl Collector {
    fn start(answer: &'static str) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (send, sent) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let send = send.clone();
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream.unwrap());
                    while let Some(request) = request(&mut reader) {
                        reader.get_mut().write_all(answer.as_bytes()).unwrap();
                        let _ = send.send(request);
                    }
                });
            }
        });
        Collector { endpoint, sent }
    }

    fn taking() -> Collector {
        Collector::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    }

    /// Everything that came, as spans by name.
    fn spans(&self) -> (BTreeMap<String, Value>, String) {
        let (mut spans, mut text) = (BTreeMap::new(), String::new());
        while let Ok(sent) = self.sent.recv_timeout(Duration::from_millis(200)) {
            assert_eq!((&*sent.path, &*sent.kind), ("/v1/traces", "application/json"));
            text.push_str(std::str::from_utf8(&sent.body).unwrap());
            let document: Value = serde_json::from_slice(&sent.body).unwrap();
            for resource in document["resourceSpans"].as_array().unwrap() {
                for scope in resource["scopeSpans"].as_array().unwrap() {
                    for span in scope["spans"].as_array().unwrap() {
                        spans.insert(span["name"].as_str().unwrap().to_owned(), span.clone());
                    }
                }
            }
        }
        (spans, text)
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Sent> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let field = |name: &str| {
        let found = head
            .iter()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let mut body = vec![0; field("content-length").parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    Some(Sent { path: head[0].split(' ').nth(1)?.to_owned(), kind: field("content-type"), body })
}

/// An attribute's value.
fn attribute(span: &Value, key: &str) -> Option<String> {
    let found = span["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    let value = found["value"].as_object()?.values().next()?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The real program in an empty folder, with nothing but these variables.
fn haft(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command.env_clear().current_dir(folder.path()).env("HOME", folder.path()).args(args);
    command.envs(variables.iter().copied()).output().unwrap()
}

const JSON: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
const CALL: [&str; 5] = ["call", "validate_content", "content=[1]", "--id", "call-7"];

#[test]
fn the_five_stages_of_a_call_arrive_as_spans() {
    let collector = Collector::taking();
    let secret = format!("content=\"{SECRET}\"");
    let args = ["call", "validate_content", &secret, "--id", "call-7", "--conversation", "talk-1"];
    let said = haft(&args, &[("HAFT_TELEMETRY_OTLP_ENDPOINT", &collector.endpoint), JSON]);
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    let (spans, text) = collector.spans();
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "execute_tool validate_content",
            "haft.approve",
            "haft.execution",
            "haft.finish",
            "haft.plan",
            "haft.run",
            "haft.schedule",
        ]
    );
    let within = |inner: &str, outer: &str| {
        assert_eq!(spans[inner]["parentSpanId"], spans[outer]["spanId"], "{inner} in {outer}");
        assert_eq!(spans[inner]["traceId"], spans[outer]["traceId"]);
    };
    for stage in ["haft.plan", "haft.approve", "haft.schedule"] {
        within(stage, "haft.execution");
    }
    within("execute_tool validate_content", "haft.schedule");
    for stage in ["haft.run", "haft.finish"] {
        within(stage, "execute_tool validate_content");
    }
    let call = &spans["execute_tool validate_content"];
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "validate_content"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.call.id", "call-7"),
        ("gen_ai.conversation.id", "talk-1"),
        ("haft.status", "Success"),
    ] {
        assert_eq!(attribute(call, key).as_deref(), Some(value), "{key} in {call:#}");
    }
    assert_eq!(call["status"]["code"], 1, "{call:#}");
    assert!(text.contains("Tool execution started."), "messages are events of their span: {text}");
    assert!(!text.contains(SECRET) && !text.contains(".rs"), "no argument, no place in the source: {text}");
    assert!(text.contains("service.name") && text.contains("\"haft\""), "{text}");
}

#[test]
fn the_variables_of_opentelemetry_count_and_the_key_comes_first() {
    let (by_variable, by_key) = (Collector::taking(), Collector::taking());
    let variable = ("OTEL_EXPORTER_OTLP_ENDPOINT", &*by_variable.endpoint);
    haft(&CALL, &[variable, JSON, ("OTEL_SERVICE_NAME", "agents")]);
    let (spans, text) = by_variable.spans();
    assert!(spans.contains_key("haft.run") && text.contains("\"agents\""), "{text}");
    haft(&CALL, &[variable, JSON, ("HAFT_TELEMETRY_OTLP_ENDPOINT", &by_key.endpoint)]);
    assert!(by_variable.spans().0.is_empty());
    assert!(by_key.spans().0.contains_key("haft.run"));
    haft(&CALL, &[variable, JSON, ("OTEL_SDK_DISABLED", "true")]);
    assert!(by_variable.spans().0.is_empty());
}

#[test]
fn the_form_is_protobuf_unless_asked() {
    let collector = Collector::taking();
    haft(&CALL, &[("HAFT_TELEMETRY_OTLP_ENDPOINT", &collector.endpoint)]);
    let sent = collector.sent.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(sent.kind, "application/x-protobuf");
    let holds = |name: &[u8]| sent.body.windows(name.len()).any(|window| window == name);
    assert!(holds(b"haft.plan") && holds(b"execute_tool validate_content"));
}

#[test]
fn a_collector_that_is_not_there_or_refuses_changes_no_call() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}");
    let refusing = Collector::start("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
    for (endpoint, why) in [
        (&*gone, "look whether the collector is there"),
        (&*refusing.endpoint, "401"),
        ("https://127.0.0.1:1", "without encryption"),
        ("nonsense", "does not begin with http://"),
    ] {
        let begun = Instant::now();
        let said = haft(&CALL, &[("HAFT_TELEMETRY_OTLP_ENDPOINT", endpoint)]);
        assert!(said.status.success(), "{endpoint}: {said:?}");
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert_eq!(stderr.lines().count(), 1, "{endpoint}: {stderr}");
        assert!(stderr.starts_with("warning: ") && stderr.contains(why), "{endpoint}: {stderr}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{endpoint}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_collector_that_never_answers_holds_nobody_for_long() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let begun = Instant::now();
    let said = haft(&CALL, &[("HAFT_TELEMETRY_OTLP_ENDPOINT", &endpoint)]);
    assert!(said.status.success(), "{said:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(String::from_utf8_lossy(&said.stderr).contains("spans could not be sent"), "{said:?}");
}

/// Leaks.
#[derive(haft::serde::Deserialize, haft::schemars::JsonSchema)]
#[serde(crate = "haft::serde")]
#[schemars(crate = "haft::schemars")]
struct Token {
    /// What must not be seen.
    #[expect(dead_code, reason = "it is only sent")]
    token: String,
}

#[test]
fn a_program_that_embeds_haft_sends_no_secret() {
    let collector = Collector::taking();
    let otlp = Otlp::new(&collector.endpoint).unwrap();
    let subscriber = tracing_subscriber::registry().with(otlp.layer());
    tracing::subscriber::with_default(subscriber, || {
        let _other = tracing::info_span!("of somebody else").entered();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let leaks =
                haft::tool_fn("leaks", async |_: Token, _: haft::ToolCtx| -> Result<String, ToolError> {
                    Err(ToolError::failed(SECRET).with_diagnostics(SECRET))
                });
            let secrets = KnownSecrets::new([("TOKEN", SECRET.to_owned())]);
            let haft = Haft::builder().tool(leaks.read_only()).redactor(secrets).build().unwrap();
            let calls = vec![
                ToolCall::new("leaks", json!({"token": SECRET})).with_id(SECRET),
                ToolCall::new(format!("no_{SECRET}"), json!({})).with_id("b"),
            ];
            haft.execute_batch(BatchRequest::from(calls)).await;
        });
    });
    otlp.end().unwrap();
    let mut body = Vec::new();
    while let Ok(sent) = collector.sent.recv_timeout(Duration::from_millis(200)) {
        body.extend(sent.body);
    }
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("execute_tool leaks") && text.contains("EXECUTION_FAILED"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
    assert!(!text.contains("of somebody else"), "{text}");
}

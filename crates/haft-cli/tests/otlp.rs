//! Spans, log records and counts as a collector gets them: sent by the real program, and by a program that embeds haft, to
//! a receiver of this test, in the clear and over TLS.

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
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};
use tracing_subscriber::layer::SubscriberExt as _;

const SECRET: &str = "s3cr3t-value-42";

/// What somebody sent.
struct Sent {
    path: String,
    kind: String,
    head: Vec<String>,
    body: Vec<u8>,
}

/// A collector on a port of its own, which answers everything in the same way.
struct Collector {
    endpoint: String,
    sent: Receiver<Sent>,
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Answers every request of a connection.
fn serve(stream: impl Read + Write, answer: &str, send: &Sender<Sent>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = request(&mut reader) {
        if reader.get_mut().write_all(answer.as_bytes()).is_err() || reader.get_mut().flush().is_err() {
            return;
        }
        let _ = send.send(request);
    }
}

impl Collector {
    fn start(answer: &'static str) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (send, sent) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let send = send.clone();
                thread::spawn(move || serve(stream.unwrap(), answer, &send));
            }
        });
        Collector { endpoint, sent }
    }

    fn taking() -> Collector {
        Collector::start(TAKEN)
    }

    /// One that speaks TLS with that certificate.
    fn encrypted(certificate: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Collector {
        let chain = vec![certificate.cert.der().clone()];
        let key =
            rustls::pki_types::PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let (send, sent) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (send, config) = (send.clone(), Arc::clone(&config));
                thread::spawn(move || {
                    let connection = rustls::ServerConnection::new(config).unwrap();
                    serve(rustls::StreamOwned::new(connection, stream.unwrap()), TAKEN, &send);
                });
            }
        });
        Collector { endpoint, sent }
    }

    /// Everything that came, by where it was sent to.
    fn documents(&self) -> BTreeMap<String, Vec<Sent>> {
        let mut all: BTreeMap<String, Vec<Sent>> = BTreeMap::new();
        while let Ok(sent) = self.sent.recv_timeout(Duration::from_millis(500)) {
            all.entry(sent.path.clone()).or_default().push(sent);
        }
        all
    }

    /// Everything that came, as spans by name.
    fn spans(&self) -> (BTreeMap<String, Value>, String) {
        let (mut spans, mut text) = (BTreeMap::new(), String::new());
        while let Ok(sent) = self.sent.recv_timeout(Duration::from_millis(200)) {
            assert_eq!(sent.kind, "application/json");
            text.push_str(std::str::from_utf8(&sent.body).unwrap());
            if sent.path != "/v1/traces" {
                continue;
            }
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

fn request(reader: &mut BufReader<impl Read>) -> Option<Sent> {
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
    let (path, kind) = (head[0].split(' ').nth(1)?.to_owned(), field("content-type"));
    Some(Sent { path, kind, head, body })
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
    let sent = collector.documents();
    for (path, name) in [
        ("/v1/traces", &b"execute_tool validate_content"[..]),
        ("/v1/metrics", b"tools.executions.total"),
        ("/v1/logs", b"Tool execution finished."),
    ] {
        let [one] = &sent[path][..] else { panic!("{path}: {} documents", sent[path].len()) };
        assert_eq!(one.kind, "application/x-protobuf", "{path}");
        assert!(one.body.windows(name.len()).any(|window| window == name), "{path}");
    }
}

#[test]
fn a_collector_that_is_not_there_or_refuses_changes_no_call() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}");
    let refusing = Collector::start("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
    for (endpoint, why) in [
        (&*gone, "look whether the collector is there"),
        (&*refusing.endpoint, "401"),
        ("https://127.0.0.1:1", "look whether the collector is there"),
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
    assert!(String::from_utf8_lossy(&said.stderr).contains("telemetry could not be sent"), "{said:?}");
}

/// A certificate for `localhost` that nobody knows.
fn certificate() -> rcgen::CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// What the program says where its configuration names a collector, and how long it took.
fn told(folder: &Path, telemetry: &str) -> (Output, Duration) {
    std::fs::create_dir_all(folder.join(".config/haft")).unwrap();
    std::fs::write(folder.join(".config/haft/haft.toml"), format!("[telemetry]\n{telemetry}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command.env_clear().current_dir(folder).env("HOME", folder).env(JSON.0, JSON.1).args(CALL);
    let begun = Instant::now();
    (command.output().unwrap(), begun.elapsed())
}

#[cfg(unix)]
fn private(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn spans_log_records_and_counts_arrive_over_tls_with_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate();
    let collector = Collector::encrypted(&certificate);
    std::fs::write(folder.path().join("ca.pem"), certificate.cert.pem()).unwrap();
    private(&folder.path().join("headers"), &format!("# of the collector\nx-key: {SECRET}\n"), 0o600);
    let telemetry = format!(
        "otlp_endpoint = '{}'\notlp_ca_file = 'ca.pem'\notlp_headers_file = 'headers'\n",
        collector.endpoint
    );
    let (said, _) = told(folder.path(), &telemetry);
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    let sent = collector.documents();
    assert_eq!(sent.keys().collect::<Vec<_>>(), ["/v1/logs", "/v1/metrics", "/v1/traces"]);
    for one in sent.values().flatten() {
        assert!(
            one.head.iter().any(|line| line == &format!("x-key: {SECRET}")),
            "{}: {:?}",
            one.path,
            one.head
        );
        assert!(!String::from_utf8_lossy(&one.body).contains(SECRET), "{}", one.path);
    }
    let document = |path: &str| serde_json::from_slice::<Value>(&sent[path][0].body).unwrap();
    let records = document("/v1/logs");
    let records = records["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone();
    let ended = records.iter().find(|record| record["body"]["stringValue"] == "Tool execution finished.");
    let ended = ended.unwrap_or_else(|| panic!("{records:#?}"));
    assert_eq!(
        (attribute(ended, "status").as_deref(), &ended["severityText"]),
        (Some("Success"), &json!("INFO"))
    );
    let spans = document("/v1/traces");
    let trace = &spans["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"];
    assert!(trace.is_string() && ended["traceId"] == *trace, "a record is part of its trace: {ended:#}");
    let counts = document("/v1/metrics");
    let counts = counts["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone();
    let count =
        |name: &str| counts.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{counts:#?}"));
    let executions = &count("tools.executions.total")["sum"]["dataPoints"][0];
    assert_eq!(attribute(executions, "tool").as_deref(), Some("validate_content"), "{executions:#}");
    assert_eq!(attribute(executions, "status").as_deref(), Some("Success"));
    assert_eq!(
        executions["asInt"].as_str().map_or(executions["asInt"].clone(), |text| json!(text)),
        json!("1")
    );
    assert_eq!(count("tools.executions.duration")["unit"], "s");
}

#[cfg(unix)]
#[test]
fn a_wrong_certificate_is_refused_and_said_and_no_call_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, other) = (Collector::encrypted(&certificate()), certificate());
    std::fs::write(folder.path().join("other.pem"), other.cert.pem()).unwrap();
    std::fs::write(folder.path().join("none.pem"), "no certificate\n").unwrap();
    private(&folder.path().join("headers"), &format!("x-key: {SECRET}\n"), 0o600);
    private(&folder.path().join("open"), &format!("x-key: {SECRET}\n"), 0o644);
    private(&folder.path().join("wrong"), &format!("{SECRET}\n"), 0o600);
    let endpoint = format!("otlp_endpoint = '{}'\n", collector.endpoint);
    for (telemetry, why) in [
        (endpoint.clone() + "otlp_ca_file = 'other.pem'\n", "invalid peer certificate"),
        (endpoint.clone() + "otlp_ca_file = 'none.pem'\n", "there is none in the file"),
        (endpoint.clone() + "otlp_ca_file = 'missing.pem'\n", "missing.pem"),
        (endpoint.clone() + "otlp_ca_file = 'other.pem'\notlp_headers_file = 'open'\n", "chmod 600"),
        (endpoint.clone() + "otlp_ca_file = 'other.pem'\notlp_headers_file = 'wrong'\n", "line 1 is not"),
        ("otlp_endpoint = 'http://192.0.2.1:4318'\notlp_headers_file = 'headers'\n".into(), "use https://"),
    ] {
        let (said, took) = told(folder.path(), &telemetry);
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{telemetry}: {stderr}");
        assert!(stderr.starts_with("warning: ") && stderr.contains(why), "{telemetry}: {stderr}");
        assert!(!stderr.contains(SECRET), "{telemetry}: {stderr}");
        assert!(took < Duration::from_secs(20), "{telemetry}: {took:?}");
    }
    assert!(collector.documents().is_empty(), "nobody was told anything");
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

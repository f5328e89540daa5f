//! What haft costs a client over HTTP, with 32 of them, against the bare libraries: the same echo, each in a process of
//! its own, which this program starts, in turns. `/v1/invoke` beside a bare axum handler, and MCP over streamable HTTP
//! beside a bare rmcp server.
//!
//! `cargo bench -p haft-server --bench http`. With `HAFT_PROGRAM` the memory and the start of `haft serve` are
//! measured, too.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a program for a terminal, which ends where something is not as it should be"
)]

use axum::{Json, Router, routing::post};
use haft::{Haft, StoreOptions, ToolCtx, ToolError, prelude::*, tool_fn};
use haft_core::port::{ApiKey, KeyStore as _, Right};
use haft_mcp::{
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
            ServerConfig,
        },
        service::RequestContext,
        transport::streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
    server::{Callers, McpServer, http},
};
use haft_server::{ApiSecret, Listener, Server, ServerBackend};
use haft_store::MemoryKeys;
use serde_json::Value;
use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader as Lines},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

const ROUNDS: usize = 15;
const REQUESTS: usize = 6400;
const CLIENTS: usize = 32;

const INVOKE: &str = r#"{"name":"echo","arguments":{"text":"hello there"}}"#;
const MCP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const MCP_HEADERS: &str = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";

struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// What a client of the bare handler sends.
#[derive(Deserialize)]
struct Asked {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
}

/// Everybody may everything.
struct Everything;

impl ServerBackend for Everything {
    fn tier(&self, _tenant: &str) -> haft::Tier {
        haft::Tier::Enterprise
    }
}

/// Says where it listens and, where one is needed, with which key, and serves until it is killed.
async fn serve(what: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    match what {
        "axum" => {
            println!("{address} none");
            let echo = post(|Json(asked): Json<Asked>| async move {
                Json(serde_json::json!({"text": asked.arguments.text}))
            });
            axum::serve(listener, Router::new().route("/v1/invoke", echo)).await.unwrap();
        }
        "rmcp" => {
            println!("{address} none");
            let config = StreamableHttpServerConfig::default().with_json_response(true);
            let service =
                StreamableHttpService::new(|| Ok(Bare), Arc::<LocalSessionManager>::default(), config);
            axum::serve(listener, Router::new().route_service("/mcp", service)).await.unwrap();
        }
        durable => {
            type Given = HashMap<String, Value>;
            let echo = tool_fn("echo", async |given: Given, _: ToolCtx| -> Result<String, ToolError> {
                Ok(given.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
            });
            let echo = echo.read_only().define(|definition| definition.description = "Says it again".into());
            // As many at once as clients send, as the bare ones have it.
            let mut haft = Haft::builder().tool(echo).lanes(None);
            if durable == "haft-sqlite" {
                let folder = std::env::var_os("HAFT_BENCH_FOLDER").expect("a folder");
                haft = haft.durable(std::path::Path::new(&folder), StoreOptions::default());
            }
            let engine = haft.build().unwrap().into_engine();
            let (keys, secret) = (Arc::new(MemoryKeys::default()), ApiSecret::random().unwrap());
            let key = ApiKey {
                id: "key_bench".into(),
                name: "bench".into(),
                tenant: "acme".into(),
                agent: None,
                user: None,
                roles: vec!["admin".into()],
                rights: vec![Right::Invoke],
                created_at: jiff::Timestamp::now(),
                created_by: "bench".into(),
                expires_at: None,
                revoked_at: None,
            };
            keys.add(key, secret.hash()).await.unwrap();
            let mcp = McpServer::builder(engine.clone(), Callers::PerRequest).build();
            let server = Server::builder(engine).keys(keys).backend(Everything);
            let server = server.mcp(http::service(&mcp, http::HttpOptions::default()));
            println!("{address} {}", secret.as_str());
            server.build().serve(vec![Listener::Tcp(listener)], Default::default()).await.unwrap();
        }
    }
}

/// A server in a process of its own.
struct Served {
    child: Child,
    address: SocketAddr,
    key: String,
}

impl Served {
    fn start(what: &str, folder: &std::path::Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("HAFT_BENCH_SERVE", what).env("HAFT_BENCH_FOLDER", folder).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        Lines::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, key) = line.trim().split_once(' ').expect("where it listens");
        Served { child, address: address.parse().unwrap(), key: key.to_owned() }
    }

    /// Requests a second, with that many clients, each of whom sends the next when it has the answer to the one before.
    async fn rate(&self, path: &str, headers: &str, body: &str) -> f64 {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        let request: Arc<str> = request.into();
        let mut streams = Vec::new();
        for _ in 0..CLIENTS {
            let stream = TcpStream::connect(self.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            streams.push(BufReader::new(stream));
        }
        let started = Instant::now();
        let clients: Vec<_> = streams
            .into_iter()
            .map(|mut stream| {
                let request = Arc::clone(&request);
                tokio::spawn(async move {
                    for _ in 0..REQUESTS / CLIENTS {
                        stream.get_mut().write_all(request.as_bytes()).await.unwrap();
                        let answer = read(&mut stream).await;
                        assert!(answer.contains("hello there"), "{answer}");
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        REQUESTS as f64 / started.elapsed().as_secs_f64()
    }

    fn resident_mb(&self) -> f64 {
        resident_mb(self.child.id())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resident_mb(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
}

/// One answer, whose length is said in either way.
async fn read(stream: &mut BufReader<TcpStream>) -> String {
    let (mut line, mut head, mut length) = (String::new(), String::new(), None);
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        if let Some(count) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = Some(count.trim().parse::<usize>().unwrap());
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut body = Vec::new();
    match length {
        Some(length) => {
            body.resize(length, 0);
            stream.read_exact(&mut body).await.unwrap();
        }
        None => loop {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).await.unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        },
    }
    String::from_utf8(body).unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match std::env::var("HAFT_BENCH_SERVE") {
        Ok(what) => runtime.block_on(serve(&what)),
        Err(_) => runtime.block_on(measure()),
    }
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let start = |what: &str| Served::start(what, folder.path());
    let (axum, rmcp, haft, sqlite) =
        (start("axum"), start("rmcp"), start("haft-memory"), start("haft-sqlite"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let idle = (axum.resident_mb(), rmcp.resident_mb(), haft.resident_mb());
    println!("echo over HTTP with {CLIENTS} clients, requests a second");
    for (name, bare, path, headers, body) in [
        ("/v1/invoke, bare axum", &axum, "/v1/invoke", "", INVOKE),
        ("MCP, bare rmcp", &rmcp, "/mcp", MCP_HEADERS, MCP),
    ] {
        let (mut bares, mut memory, mut durable) = (Vec::new(), Vec::new(), Vec::new());
        let (mut ratios, mut durable_ratios) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let one = bare.rate(path, headers, body).await;
            let other = haft.rate(path, headers, body).await;
            let third = sqlite.rate(path, headers, body).await;
            // The first round warms all of them up.
            if round > 0 {
                bares.push(one);
                memory.push(other);
                durable.push(third);
                ratios.push(other / one);
                durable_ratios.push(third / one);
            }
        }
        println!(
            "  {name}: {:>6.0}; haft {:>6.0}, {:.2} of it (goal 0.80); with SQLite {:>6.0}, {:.2}",
            median(bares),
            median(memory),
            median(ratios),
            median(durable),
            median(durable_ratios)
        );
    }
    println!(
        "memory when idle: bare axum {:.1} MB, bare rmcp {:.1} MB, haft {:.1} MB",
        idle.0, idle.1, idle.2
    );
    println!(
        "memory afterwards: haft {:.1} MB, with SQLite {:.1} MB",
        haft.resident_mb(),
        sqlite.resident_mb()
    );
    if let Some(program) = std::env::var_os("HAFT_PROGRAM") {
        real_program(&program, folder.path());
    }
}

/// `haft serve` as people start it.
fn real_program(program: &std::ffi::OsStr, folder: &std::path::Path) {
    let (home, mut firsts) = (folder.join("home"), Vec::new());
    std::fs::create_dir_all(&home).unwrap();
    let mut idle = 0.0;
    for round in 0..6 {
        let started = Instant::now();
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0"]).env_clear().env("HOME", &home).current_dir(&home);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let mut lines = Lines::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("serving at") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let address = line.rsplit("http://").next().unwrap().trim().to_owned();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        std::io::Write::write_all(
            &mut stream,
            b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
        std::io::Read::read_to_end(&mut stream, &mut Vec::new()).unwrap();
        // The first one makes the database.
        if round > 0 {
            firsts.push(started.elapsed().as_secs_f64() * 1e3);
        }
        std::thread::sleep(Duration::from_millis(300));
        idle = resident_mb(child.id());
        let _ = child.kill();
        let _ = child.wait();
    }
    println!(
        "haft serve with its durable store: {idle:.1} MB idle (goal 25), first answer {:.1} ms after start (goal 30)",
        median(firsts)
    );
}

//! What haft costs an MCP client on pipes, against the bare protocol library: the same echo, each in a process of its
//! own, which this program starts, in turns.
//!
//! `cargo bench -p haft-mcp --bench stdio`; with `-- --brief`, few rounds. With `HAFT_PROGRAM` the real program's start
//! and memory are measured, too; with `HAFT_MCP_KIT`, servers of the official Python and TypeScript SDKs take their
//! turns.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a program for a terminal, which ends where something is not as it should be"
)]

use haft::{CallContext, DurableStore, Haft, StoreOptions, ToolCtx, ToolError, tool_fn};
use haft_mcp::{
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
            ServerConfig,
        },
        service::RequestContext,
        transport::io::stdio_pipes,
    },
    server::{Callers, McpServer, serve_stdio},
};
use serde_json::Value;
use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 15;
const REQUESTS: usize = 4000;
/// Of servers that are many times slower.
const FEW_REQUESTS: usize = 400;

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

fn main() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match std::env::var("HAFT_BENCH_SERVE").as_deref() {
        Ok("bare") => runtime().block_on(async {
            let running = Bare.serve(stdio_pipes()).await.unwrap();
            let _ = running.waiting().await;
        }),
        Ok(kind @ ("haft" | "haft-sqlite")) => runtime().block_on(async {
            type Given = HashMap<String, Value>;
            let echo = tool_fn("echo", async |given: Given, _: ToolCtx| -> Result<String, ToolError> {
                Ok(given.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
            });
            let echo = echo.read_only().define(|definition| definition.description = "Says it again".into());
            // As many at once as the client sends, as the bare one has it.
            let haft = Haft::builder().tool(echo).lanes(None);
            let folder = Folder::new();
            let haft = match kind {
                "haft" => haft,
                _ => haft.store(DurableStore::open_sqlite(&folder.0, StoreOptions::default()).unwrap()),
            };
            let haft = haft.build().unwrap();
            let server = McpServer::builder(haft.into_engine(), Callers::One(CallContext::owner())).build();
            serve_stdio(&server, Default::default()).await.unwrap();
            drop(folder);
        }),
        _ => measure(),
    }
}

/// A folder of this process, until it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("haft-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Server {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    first_answer: Duration,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let started = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut to = child.stdin.take().unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let begin = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        writeln!(to, "{begin}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let first_answer = started.elapsed();
        writeln!(to, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        Server { child, to: Some(to), from, first_answer }
    }

    fn of(name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("HAFT_BENCH_SERVE", name);
        Server::start(command)
    }

    /// Requests a second, with so many in flight.
    fn rate(&mut self, in_flight: usize, requests: usize) -> f64 {
        let request = |id: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello there"}}}}}}"#
            ) + "\n"
        };
        let started = Instant::now();
        let mut line = String::new();
        let mut sent = 0;
        let first: String = (0..in_flight).map(request).collect();
        let to = self.to.as_mut().unwrap();
        to.write_all(first.as_bytes()).unwrap();
        sent += in_flight;
        for _ in 0..requests {
            line.clear();
            self.from.read_line(&mut line).unwrap();
            assert!(line.contains("hello there"), "{line}");
            if sent < requests {
                to.write_all(request(sent).as_bytes()).unwrap();
                sent += 1;
            }
        }
        requests as f64 / started.elapsed().as_secs_f64()
    }

    fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input ends it, and it takes its folder along.
        drop(self.to.take());
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Servers of the official SDKs, where they are installed.
fn official() -> Vec<(&'static str, Command)> {
    let Some(kit) = std::env::var_os("HAFT_MCP_KIT").map(PathBuf::from) else {
        println!("not run: servers of the official SDKs; HAFT_MCP_KIT names no folder with them");
        return Vec::new();
    };
    let script = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches").join(name);
    let mut python = Command::new(kit.join("python/bin/python"));
    python.arg(script("echo.py")).stderr(Stdio::null());
    let mut node = Command::new(kit.join("node"));
    node.arg(script("echo.mjs")).arg(&kit);
    vec![("TypeScript SDK", node), ("Python SDK", python)]
}

/// One of those that take turns.
struct Turn {
    name: &'static str,
    server: Server,
    requests: usize,
    rates: Vec<f64>,
    ratios: Vec<f64>,
}

fn measure() {
    let rounds = if std::env::args().any(|argument| argument == "--brief") { 3 } else { ROUNDS };
    let turn = |name, server, requests| Turn { name, server, requests, rates: vec![], ratios: vec![] };
    let mut turns = vec![
        turn("bare rmcp", Server::of("bare"), REQUESTS),
        turn("haft", Server::of("haft"), REQUESTS),
        turn("haft, SQLite", Server::of("haft-sqlite"), REQUESTS),
    ];
    for (name, command) in official() {
        turns.push(turn(name, Server::start(command), FEW_REQUESTS));
    }
    std::thread::sleep(Duration::from_millis(300));
    println!("memory when idle (goal for haft: 25 MB)");
    for Turn { name, server, .. } in &turns {
        println!("  {name:<15} {:>6.1} MB", server.resident_mb());
    }
    for in_flight in [1, 32] {
        for round in 0..=rounds {
            let mut bare = None;
            for turn in &mut turns {
                let rate = turn.server.rate(in_flight, turn.requests);
                let bare = *bare.get_or_insert(rate);
                // The first round warms all of them up.
                if round > 0 {
                    turn.rates.push(rate);
                    turn.ratios.push(rate / bare);
                }
            }
        }
        println!("MCP echo on pipes, {in_flight} in flight, requests a second (goal for haft / bare: 0.90)");
        for Turn { name, rates, ratios, .. } in &mut turns {
            let (rate, ratio) = (median(std::mem::take(rates)), median(std::mem::take(ratios)));
            println!("  {name:<15} {rate:>7.0}, {ratio:.2} of bare rmcp");
        }
    }
    drop(turns);
    println!("first answer after start (goal for haft: 30 ms)");
    for name in ["bare", "haft", "haft-sqlite"] {
        let first: Vec<f64> = (0..9).map(|_| Server::of(name).first_answer.as_secs_f64() * 1e3).collect();
        println!("  {name:<15} {:>6.1} ms", median(first));
    }
    program();
}

/// The program itself, with all of its tools and its durable store.
fn program() {
    let Some(program) = std::env::var_os("HAFT_PROGRAM") else {
        println!("not run: the program itself; HAFT_PROGRAM does not name it");
        return;
    };
    let folder = Folder::new();
    let start = || {
        let mut command = Command::new(&program);
        command.arg("mcp").env_clear().env("HOME", &folder.0).current_dir(&folder.0).stderr(Stdio::null());
        Server::start(command)
    };
    drop(start());
    let first = median((0..9).map(|_| start().first_answer.as_secs_f64() * 1e3).collect());
    let idle = start();
    std::thread::sleep(Duration::from_millis(500));
    println!(
        "haft mcp, the program itself: {:.1} MB idle (goal 25), first answer {first:.1} ms (goal 30)",
        idle.resident_mb()
    );
}

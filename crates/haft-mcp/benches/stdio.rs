//! What haft costs an MCP client on pipes, against the bare protocol library: the same echo, each in a process of its own, which
//! this program starts, in turns.
//!
//! `cargo bench -p haft-mcp --bench stdio`. With `HAFT_PROGRAM` the real program's start and memory are measured, too.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a program for a terminal, which ends where something is not as it should be"
)]

use haft::{CallContext, Haft, ToolCtx, ToolError, tool_fn};
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
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 15;
const REQUESTS: usize = 4000;

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
        Ok("haft") => runtime().block_on(async {
            type Given = HashMap<String, Value>;
            let echo = tool_fn("echo", async |given: Given, _: ToolCtx| -> Result<String, ToolError> {
                Ok(given.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
            });
            let echo = echo.read_only().define(|definition| definition.description = "Says it again".into());
            // As many at once as the client sends, as the bare one has it.
            let haft = Haft::builder().tool(echo).lanes(None).build().unwrap();
            let server = McpServer::builder(haft.into_engine(), Callers::One(CallContext::owner())).build();
            serve_stdio(&server, Default::default()).await.unwrap();
        }),
        _ => measure(),
    }
}

struct Server {
    child: Child,
    to: ChildStdin,
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
        Server { child, to, from, first_answer }
    }

    fn of(name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("HAFT_BENCH_SERVE", name);
        Server::start(command)
    }

    /// Requests a second, with so many in flight.
    fn rate(&mut self, in_flight: usize) -> f64 {
        let request = |id: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello there"}}}}}}"#
            ) + "\n"
        };
        let started = Instant::now();
        let mut line = String::new();
        let mut sent = 0;
        let first: String = (0..in_flight).map(request).collect();
        self.to.write_all(first.as_bytes()).unwrap();
        sent += in_flight;
        for _ in 0..REQUESTS {
            line.clear();
            self.from.read_line(&mut line).unwrap();
            assert!(line.contains("hello there"), "{line}");
            if sent < REQUESTS {
                self.to.write_all(request(sent).as_bytes()).unwrap();
                sent += 1;
            }
        }
        REQUESTS as f64 / started.elapsed().as_secs_f64()
    }

    fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure() {
    let (mut bare, mut haft) = (Server::of("bare"), Server::of("haft"));
    std::thread::sleep(Duration::from_millis(300));
    let (bare_mb, haft_mb) = (bare.resident_mb(), haft.resident_mb());
    println!("MCP echo on pipes, requests a second");
    for in_flight in [1, 32] {
        let (mut slow, mut fast, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let (one, other) = (bare.rate(in_flight), haft.rate(in_flight));
            // The first round warms both up.
            if round > 0 {
                fast.push(one);
                slow.push(other);
                ratios.push(other / one);
            }
        }
        println!(
            "  {in_flight:>2} in flight: bare rmcp {:>7.0}, haft {:>7.0}, haft / bare {:.2} (goal 0.90)",
            median(fast),
            median(slow),
            median(ratios)
        );
    }
    println!("memory when idle: bare rmcp {bare_mb:.1} MB, haft {haft_mb:.1} MB (goal 25)");
    let answers =
        |name: &str| median((0..9).map(|_| Server::of(name).first_answer.as_secs_f64() * 1e3).collect());
    println!(
        "first answer after start: bare rmcp {:.1} ms, haft {:.1} ms (goal 30)",
        answers("bare"),
        answers("haft")
    );
    if let Some(program) = std::env::var_os("HAFT_PROGRAM") {
        let folder = std::env::temp_dir().join(format!("haft-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let start = || {
            let mut command = Command::new(&program);
            command.arg("mcp").env_clear().env("HOME", &folder).current_dir(&folder).stderr(Stdio::null());
            Server::start(command)
        };
        drop(start());
        let first = median((0..9).map(|_| start().first_answer.as_secs_f64() * 1e3).collect());
        let idle = start();
        std::thread::sleep(Duration::from_millis(500));
        println!(
            "haft mcp with its durable store: {:.1} MB idle (goal 25), first answer {first:.1} ms (goal 30)",
            idle.resident_mb()
        );
        drop(idle);
        let _ = std::fs::remove_dir_all(&folder);
    }
}

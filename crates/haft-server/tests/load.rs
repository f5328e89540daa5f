//! Many who watch, some of whom stall, while others call: nobody is slowed, no end is lost, memory stays bounded.
//!
//! Three seconds by default; `HAFT_LOAD_SECONDS=30` for the whole.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "tests"
)]

use haft::{Haft, prelude::*};
use haft_core::port::{ApiKey, KeyStore, Right};
use haft_server::{ApiSecret, Host, Listener, Server};
use haft_store::MemoryKeys;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

const WATCHERS: usize = 1000;
const STALLED: usize = 100;
const CALLERS: usize = 64;
/// Calls that are watched; each by so many.
const WATCHED: usize = 10;

/// Says something again.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What.
    text: String,
}

/// Talks for a while.
#[derive(Deserialize, JsonSchema)]
struct Talk {
    /// How long.
    seconds: u64,
}

/// Everything is shown, output included.
struct Everything;

impl Host for Everything {
    fn tier(&self, _tenant: &str) -> haft::Tier {
        haft::Tier::Enterprise
    }
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default().to_owned();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0)
}

async fn post(stream: &mut BufReader<TcpStream>, key: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.get_mut().write_all(request.as_bytes()).await.unwrap();
    let (mut line, mut length, mut status) = (String::new(), 0, 0);
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        if let Some(code) = line.strip_prefix("HTTP/1.1 ") {
            status = code[..3].parse().unwrap();
        } else if let Some(count) = line.to_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse().unwrap();
        } else if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    (status, body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_slow_nobody() {
    let seconds: u64 =
        std::env::var("HAFT_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let echo = tool_fn("echo", async |args: Echo, _: ToolCtx| -> Result<String, ToolError> { Ok(args.text) });
    let talk = tool_fn("talk", async |args: Talk, cx: ToolCtx| -> Result<String, ToolError> {
        let until = Instant::now() + Duration::from_secs(args.seconds);
        while Instant::now() < until {
            cx.print(&"x".repeat(400));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok("said".to_owned())
    });
    let policy = haft::ListPolicy { mode: haft::ApprovalMode::Auto, ..haft::ListPolicy::default() };
    let haft = Haft::builder()
        .tools([Box::new(echo.read_only()) as Box<dyn haft::Tool>, Box::new(talk.read_only())])
        .policy(policy)
        .build()
        .unwrap();
    let keys = Arc::new(MemoryKeys::default());
    let secret = ApiSecret::random().unwrap();
    let key = ApiKey {
        id: "key_load".into(),
        name: "load".into(),
        tenant: "acme".into(),
        agent: None,
        user: None,
        roles: vec!["admin".into()],
        rights: vec![Right::Invoke],
        created_at: jiff::Timestamp::now(),
        created_by: "load".into(),
        expires_at: None,
        revoked_at: None,
    };
    keys.add(key, secret.hash()).await.unwrap();
    let server = Server::builder(haft.clone().into_engine()).keys(keys).host(Everything).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(vec![Listener::Tcp(listener)], stop.clone()));
    let key: Arc<str> = secret.as_str().into();

    let mut first = BufReader::new(TcpStream::connect(address).await.unwrap());
    let mut watched = Vec::new();
    for place in 0..WATCHED {
        let body = json!({"name": "talk", "arguments": {"seconds": seconds + 3}, "context": {"agent": format!("a{place}")},
            "options": {"detached": true, "timeout": format!("PT{}S", seconds + 60)}});
        let (status, body) = post(&mut first, &key, "/v1/invoke", &body.to_string()).await;
        assert_eq!(status, 202);
        let task: serde_json::Value = serde_json::from_slice(&body).unwrap();
        watched.push(task["taskId"].as_str().unwrap().to_owned());
    }
    let before = resident();
    let ended = Arc::new(AtomicUsize::new(0));
    let mut watchers = Vec::new();
    for place in 0..WATCHERS {
        let (task, key, ended) = (watched[place % WATCHED].clone(), Arc::clone(&key), Arc::clone(&ended));
        watchers.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET /v1/tasks/{task}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            if place < STALLED {
                // Reads nothing until everything is over.
                tokio::time::sleep(Duration::from_secs(seconds + 4)).await;
            }
            let mut text = Vec::new();
            let _ = stream.read_to_end(&mut text).await;
            let text = String::from_utf8_lossy(&text);
            assert!(text.contains("tool:executed"), "watcher {place} lost the end");
            ended.fetch_add(1, Ordering::Relaxed);
        }));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;

    let over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for place in 0..CALLERS {
        let (key, over) = (Arc::clone(&key), Arc::clone(&over));
        callers.push(tokio::spawn(async move {
            let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
            let body = json!({"name": "echo", "arguments": {"text": "hello"}, "context": {"agent": format!("c{place}")}}).to_string();
            let mut times = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                let (status, body) = post(&mut stream, &key, "/v1/invoke", &body).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
                times.push(began.elapsed());
            }
            times
        }));
    }
    let mut most = before;
    for _ in 0..seconds * 4 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        most = most.max(resident());
    }
    over.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for caller in callers {
        times.extend(caller.await.expect("no caller fails"));
    }
    for watcher in watchers {
        watcher.await.expect("no watcher loses the end");
    }
    times.sort();
    let at = |part: usize| times[times.len() * part / 1000].as_secs_f64() * 1000.0;
    eprintln!(
        "{} calls in {seconds} s with {WATCHERS} watchers: p50 {:.1} ms, p99 {:.1} ms, worst {:.1} ms; memory {} MB before, {} MB at most",
        times.len(),
        at(500),
        at(990),
        times.last().unwrap().as_secs_f64() * 1000.0,
        before >> 10,
        most >> 10
    );
    assert_eq!(ended.load(Ordering::Relaxed), WATCHERS);
    assert!(times.len() > CALLERS, "callers were served: {}", times.len());
    assert!(most < before + (300 << 10), "memory grew from {before} to {most} kB");
    stop.cancel();
    serving.await.unwrap().unwrap();
    haft.shutdown_now().await;
}

//! Many who watch, some of whom stall, while others call: nobody is slowed, no end is lost, memory stays bounded.
//!
//! Three runs beside each other: without watchers, with those who read, and with those who stall, too. Two seconds each
//! by default; `HAFT_LOAD_SECONDS=30` for the whole (`cargo xtask soak` does that).
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
use haft_server::{ApiSecret, Limits, Listener, Server, ServerBackend};
use haft_store::MemoryKeys;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_util::sync::CancellationToken;

const WATCHERS: usize = 1000;
const STALLED: usize = 100;
const CALLERS: usize = 64;
/// Calls that are watched; each by so many.
const WATCHED: usize = 10;

/// How often it is tried, where the machine has other things to do.
const TRIES: usize = 3;
/// Bytes of its stream that a watcher keeps.
const KEPT: usize = 16 << 10;
/// Kilobytes that the process may grow by in one run.
const MOST_GROWN: u64 = 300 << 10;

/// Says something again.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say.
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

impl ServerBackend for Everything {
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

/// What one run came to.
struct Figures {
    calls: usize,
    p50: f64,
    p99: f64,
    worst: f64,
    /// Kilobytes that the process grew by at most, with everything that plays its clients.
    grown: u64,
}

impl Figures {
    fn is_sound(&self) -> bool {
        self.calls > CALLERS && self.grown < MOST_GROWN
    }
}

/// A server that echoes and talks, and how to reach it.
struct Load {
    haft: Haft,
    address: SocketAddr,
    key: Arc<str>,
    seconds: u64,
}

impl Load {
    /// Tasks that talk while callers call; each is watched by many.
    async fn talkers(&self) -> Vec<String> {
        let mut stream = BufReader::new(TcpStream::connect(self.address).await.unwrap());
        let mut watched = Vec::new();
        for place in 0..WATCHED {
            let body = json!({"name": "talk", "arguments": {"seconds": self.seconds + 3}, "context": {"agent": format!("a{place}")},
                "options": {"detached": true, "timeout": format!("PT{}S", self.seconds + 60)}});
            let (status, body) = post(&mut stream, &self.key, "/v1/invoke", &body.to_string()).await;
            assert_eq!(status, 202);
            let task: serde_json::Value = serde_json::from_slice(&body).unwrap();
            watched.push(task["taskId"].as_str().unwrap().to_owned());
        }
        watched
    }

    /// One who watches to the end. Who stalls reads nothing until everything is over, and has no room for what comes.
    async fn watch(self: Arc<Self>, task: String, place: usize, stalls: bool, over: Arc<AtomicBool>) {
        let socket = TcpSocket::new_v4().unwrap();
        if stalls {
            socket.set_recv_buffer_size(4096).unwrap();
        }
        let mut stream = socket.connect(self.address).await.unwrap();
        let key = &self.key;
        let request = format!(
            "GET /v1/tasks/{task}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        while stalls && !over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Only the end is kept: what a thousand have read would be counted as the server's.
        let (mut text, mut piece, mut is_first, mut saw_end) = (Vec::new(), vec![0; 16 << 10], true, false);
        loop {
            let count = stream.read(&mut piece).await.unwrap();
            if std::mem::take(&mut is_first) {
                assert!(piece.starts_with(b"HTTP/1.1 200"), "watcher {place}");
            }
            text.extend_from_slice(&piece[..count]);
            saw_end |= String::from_utf8_lossy(&text).contains("event: tool:executed");
            if count == 0 {
                break;
            }
            text.drain(..text.len().saturating_sub(KEPT));
        }
        let is_whole = String::from_utf8_lossy(&text).contains("\"state\":\"completed\"");
        assert!(saw_end && is_whole, "watcher {place} lost the last events");
    }

    async fn call(self: Arc<Self>, place: usize, over: Arc<AtomicBool>) -> Vec<Duration> {
        let mut stream = BufReader::new(TcpStream::connect(self.address).await.unwrap());
        let body = json!({"name": "echo", "arguments": {"text": "hello"}, "context": {"agent": format!("c{place}")}});
        let (body, mut times) = (body.to_string(), Vec::new());
        while !over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let (status, answer) = post(&mut stream, &self.key, "/v1/invoke", &body).await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
            times.push(began.elapsed());
        }
        times
    }

    async fn run(self: &Arc<Self>, watchers: usize, stalled: usize) -> Figures {
        let before = resident();
        let talkers = self.talkers().await;
        let (over, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let watching: Vec<_> = (0..watchers)
            .map(|place| {
                let task = talkers[place % WATCHED].clone();
                tokio::spawn(Arc::clone(self).watch(task, place, place < stalled, Arc::clone(&ended)))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let calling: Vec<_> =
            (0..CALLERS).map(|place| tokio::spawn(Arc::clone(self).call(place, Arc::clone(&over)))).collect();
        let mut most = before;
        for _ in 0..self.seconds * 4 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            most = most.max(resident());
        }
        over.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for caller in calling {
            times.extend(caller.await.expect("no caller fails"));
        }
        // Those who talk end by themselves; only then do the stalled ones begin to read.
        while self.haft.running() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ended.store(true, Ordering::Relaxed);
        for watcher in watching {
            watcher.await.expect("no watcher loses the end");
        }
        times.sort();
        let at = |part: usize| times[times.len() * part / 1000].as_secs_f64() * 1000.0;
        let figures = Figures {
            calls: times.len(),
            p50: at(500),
            p99: at(990),
            worst: at(1000 - 1),
            grown: most.saturating_sub(before),
        };
        eprintln!(
            "{} calls in {} s with {watchers} watchers, {stalled} of them stalled: p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms; memory grew by {} MB",
            figures.calls,
            self.seconds,
            figures.p50,
            figures.p99,
            figures.worst,
            figures.grown >> 10
        );
        figures
    }
}

/// A server of these tools with room for so many, and its key.
async fn server(haft: &Haft, most: usize) -> (Server, ApiSecret) {
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
    let server = Server::builder(haft.clone().into_engine())
        .keys(keys)
        .backend(Everything)
        // All of them have one key, and come from one address.
        .limits(Limits {
            connections: most,
            connections_per_address: most,
            requests_per_key: most,
            requests_per_tenant: most,
            ..Limits::default()
        })
        .build();
    (server, secret)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_lose_nothing_and_stalled_ones_slow_nobody() {
    let seconds: u64 =
        std::env::var("HAFT_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
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
    let (server, secret) = server(&haft, 4096).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(vec![Listener::Tcp(listener)], stop.clone()));
    let load = Arc::new(Load { haft: haft.clone(), address, key: secret.as_str().into(), seconds });

    let alone = load.run(0, 0).await;
    assert!(alone.is_sound(), "without watchers");
    // What else the machine does can slow any one run. Stalled watchers that slow callers do so every time.
    let mut said = String::new();
    for _ in 0..TRIES {
        let watched = load.run(WATCHERS - STALLED, 0).await;
        let stalled = load.run(WATCHERS, STALLED).await;
        assert!(watched.is_sound() && stalled.is_sound(), "callers are served, and memory is bounded");
        // The same nine hundred read in both; the stalled ones are what is more.
        if stalled.p50 < 1.5 * watched.p50 + 5.0 && stalled.p99 < 1.5 * watched.p99 + 25.0 {
            said.clear();
            break;
        }
        said = format!(
            "p50 {:.1} and {:.1} ms, p99 {:.1} and {:.1} ms",
            watched.p50, stalled.p50, watched.p99, stalled.p99
        );
    }
    assert!(said.is_empty(), "stalled watchers slow callers: {said}");
    stop.cancel();
    serving.await.unwrap().unwrap();
    haft.shutdown_now().await;
}

/// Calls that are all under way at the same moment.
const IN_FLIGHT: usize = 10_000;
/// Says that this process is the server: it and the clients have each an open file for every call.
const SERVES: &str = "HAFT_LOAD_SERVES";

/// Waits until everybody is there.
#[derive(Deserialize, JsonSchema)]
struct Together {}

/// The server of the test below, in a process of its own. It ends with its input.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serves_calls_that_wait_for_each_other() {
    if std::env::var_os(SERVES).is_none() {
        return;
    }
    let (there, all) =
        (Arc::new(std::sync::atomic::AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let together = tool_fn("together", move |_: Together, _: ToolCtx| {
        let (there, all) = (Arc::clone(&there), Arc::clone(&all));
        async move {
            let mut woken = std::pin::pin!(all.notified());
            woken.as_mut().enable();
            match there.fetch_add(1, Ordering::AcqRel) + 1 == IN_FLIGHT {
                true => all.notify_waiters(),
                false => woken.await,
            }
            Ok::<_, ToolError>("all were there".to_owned())
        }
    });
    let policy = haft::ListPolicy { mode: haft::ApprovalMode::Auto, ..haft::ListPolicy::default() };
    let haft = Haft::builder()
        .tools([Box::new(together.read_only()) as Box<dyn haft::Tool>])
        .policy(policy)
        .build()
        .unwrap();
    let (server, secret) = server(&haft, IN_FLIGHT + 100).await;
    let listener = haft_server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    eprintln!("serves {} {}", listener.local_addr().unwrap(), secret.as_str());
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.serve(vec![Listener::Tcp(listener)], stop.clone()));
    let mut input = String::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut input)).await.unwrap().unwrap();
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_are_under_way_at_once_and_each_gets_its_answer() {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let room = files.maximum.unwrap_or(u64::MAX);
    assert!(
        room >= IN_FLIGHT as u64 + 500,
        "the system allows {room} open files (`ulimit -Hn`), which is too few"
    );
    let raised = rustix::process::Rlimit { current: files.maximum, ..files };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serves_calls_that_wait_for_each_other", "--nocapture"])
        .env(SERVES, "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let line = said.find_map(|line| line.unwrap().strip_prefix("serves ").map(str::to_owned)).unwrap();
    let (address, key) = line.split_once(' ').unwrap();
    let (address, key): (SocketAddr, Arc<str>) = (address.parse().unwrap(), key.into());
    let begun = Instant::now();
    let mut calls = Vec::with_capacity(IN_FLIGHT);
    for place in 0..IN_FLIGHT {
        let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
        let own = Arc::clone(&key);
        calls.push(tokio::spawn(async move {
            let body = json!({"name": "together", "arguments": {}, "context": {"agent": format!("c{place}")},
                "options": {"timeout": "PT5M"}});
            let (status, answer) = post(&mut stream, &own, "/v1/invoke", &body.to_string()).await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
            assert!(String::from_utf8_lossy(&answer).contains("all were there"));
        }));
        // Connections are taken in their order: once a later one is answered, none of those waits at the door.
        if place % 500 == 499 {
            let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
            assert_eq!(post(&mut stream, &key, "/v1/tools/search", r#"{"query": "all"}"#).await.0, 200);
        }
    }
    for call in calls {
        // None answers before all of them are under way.
        call.await.unwrap();
    }
    eprintln!("{IN_FLIGHT} calls at once, all answered after {:.1} s", begun.elapsed().as_secs_f64());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

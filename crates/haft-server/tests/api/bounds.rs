//! What is bounded: bodies in time and bytes, requests by key and tenant, connections by address, answers that nobody
//! reads; and that nothing stays open for a caller whose key was revoked.

use crate::support::{World, key, request, world, world_with};
use axum::http::{Method, StatusCode};
use futures_util::StreamExt as _;
use haft_core::port::{KeyStore as _, Right};
use haft_server::{Limits, Listener};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

/// Serves a world on a port, until the guard is dropped.
async fn served(limits: Limits) -> (SocketAddr, String, DropGuard) {
    let world = world_with(|builder| builder.limits(limits)).await;
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, key) = (tcp.local_addr().unwrap(), world.invoker.clone());
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    tokio::spawn(async move {
        let World { server, .. } = world;
        server.serve(vec![Listener::Tcp(tcp)], stop).await.unwrap();
    });
    (address, key, guard)
}

fn head(key: &str, path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// The first line of an answer, within ten seconds.
async fn status(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 4096];
    let length =
        timeout(Duration::from_secs(10), stream.read(&mut answer)).await.expect("it answers").unwrap();
    String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_body_that_drips_or_stops_is_not_waited_for() {
    let limits = Limits {
        body_grace: Duration::from_millis(400),
        body_silence: Duration::from_millis(300),
        ..Limits::default()
    };
    let (address, key, _guard) = served(limits).await;
    for path in ["/v1/invoke", "/mcp"] {
        // It says nothing.
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(head(&key, path, 100).as_bytes()).await.unwrap();
        assert!(status(&mut silent).await.contains("408"), "{path}");
        // It always says something, and never much.
        let mut dripping = TcpStream::connect(address).await.unwrap();
        dripping.write_all(head(&key, path, 100_000).as_bytes()).await.unwrap();
        let (mut read, mut write) = dripping.into_split();
        let drip = tokio::spawn(async move {
            while write.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(10), read.read_to_end(&mut answer)).await.expect("it is closed");
        drip.abort();
        assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 408"), "{path}");
        // One that takes a while, and comes, is answered.
        let body = r#"{"name": "echo", "arguments": {"text": "hello"}}"#;
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(head(&key, path, body.len()).as_bytes()).await.unwrap();
        for part in body.as_bytes().chunks(16) {
            slow.write_all(part).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let said = status(&mut slow).await;
        assert!(if path == "/mcp" { !said.contains("408") } else { said.contains("200") }, "{path}: {said}");
    }
}

#[tokio::test]
async fn a_head_that_drips_is_not_waited_for() {
    let limits = Limits { head_time: Duration::from_millis(500), ..Limits::default() };
    let (address, _, _guard) = served(limits).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let drip = tokio::spawn(async move {
        write.write_all(b"GET /v1/me HTTP/1.1\r\n").await.unwrap();
        while write.write_all(b"X-A: b\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(10), read.read_to_end(&mut answer)).await.expect("it is closed");
    drip.abort();
}

/// The bound is a bound, in however many pieces the head comes, and one header or many.
#[tokio::test]
async fn a_head_has_64_kib() {
    const MOST: usize = 64 << 10;
    let (address, key, _guard) = served(Limits::default()).await;
    let sized = |length: usize, headers: usize| {
        let start = format!("GET /v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n");
        let room = length - start.len() - "\r\n".len();
        let each = room / headers;
        let header = |of: usize| format!("X-A: {}\r\n", "a".repeat(of - "X-A: \r\n".len()));
        let padding = header(each).repeat(headers - 1) + &header(room - each * (headers - 1));
        let head = format!("{start}{padding}\r\n");
        assert_eq!(head.len(), length);
        head
    };
    for (length, expected) in [
        (1000, "200"),
        (MOST - 1, "200"),
        (MOST, "200"),
        (MOST + 1, "431"),
        (66_000, "431"),
        (100_000, "431"),
    ] {
        for headers in [1, 50] {
            for piece in [1 << 20, 4096] {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let (mut read, mut write) = stream.split();
                let head = sized(length, headers);
                // A server that has seen enough closes: then the rest cannot be written.
                let writing = async {
                    for piece in head.as_bytes().chunks(piece) {
                        if write.write_all(piece).await.is_err() {
                            break;
                        }
                    }
                };
                let reading = async {
                    let mut answer = vec![0; 64];
                    let length = read.read(&mut answer).await.unwrap();
                    String::from_utf8_lossy(&answer[..length]).into_owned()
                };
                let both = async { tokio::join!(writing, reading).1 };
                let answer = timeout(Duration::from_secs(10), both).await.expect("it answers");
                let at = format!("{length} bytes, {headers} headers, pieces of {piece}: {answer}");
                assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{at}");
            }
        }
    }
}

#[tokio::test]
async fn bodies_have_bounds_together() {
    let limits = Limits { body_bytes: 64 << 10, bodies_bytes: 256 << 10, ..Limits::default() };
    let (address, key, _guard) = served(limits).await;
    let mut open = Vec::new();
    let mut refused = None;
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head(&key, "/v1/invoke", 60 << 10).as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; 59 << 10]).await.unwrap();
        let mut answer = [0; 512];
        match timeout(Duration::from_millis(500), stream.read(&mut answer)).await {
            Ok(Ok(length)) => {
                refused = Some(String::from_utf8_lossy(&answer[..length]).to_lowercase());
                break;
            }
            _ => open.push(stream),
        }
    }
    let refused = refused.expect("one key has a quarter of all room");
    assert!(refused.starts_with("http/1.1 429") && refused.contains("retry-after: 1"), "{refused}");
    assert_eq!(open.len(), 1);
    drop(open);
    // The room is free again.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let body = format!(r#"{{"name": "echo", "arguments": {{"text": "{}"}}}}"#, "x".repeat(40 << 10));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head(&key, "/v1/invoke", body.len()).as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let said = status(&mut stream).await;
        if said.contains("200") {
            break;
        }
        assert!(said.contains("429") && Instant::now() < deadline, "{said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_key_and_a_tenant_have_so_many_requests_open() {
    let limits = Limits { requests_per_key: 3, requests_per_tenant: 4, ..Limits::default() };
    let world = world_with(|builder| builder.limits(limits)).await;
    let second = key(&world.keys, "acme", &[Right::Invoke], |key| key.id = "second".into()).await;
    let task = json!({"name": "wait", "options": {"detached": true, "timeout": "PT30S"}});
    let task = world.post(&world.invoker, "/v1/invoke", task).await.json();
    let path = format!("/v1/tasks/{}/events", task["taskId"].as_str().unwrap());
    let watch = |key: &str| world.router.clone().oneshot(request(Method::GET, &path, Some(key), None));
    let mut open = Vec::new();
    for _ in 0..3 {
        let answer = watch(&world.invoker).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        open.push(answer);
    }
    let refused = world.get(&world.invoker, "/v1/me").await;
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (StatusCode::TOO_MANY_REQUESTS, &json!("CONCURRENT_LIMIT_EXCEEDED"))
    );
    assert_eq!(refused.headers["retry-after"], "1");
    open.push(watch(&second).await.unwrap());
    let refused = world.get(&second, "/v1/me").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "its tenant has four");
    assert_eq!(world.get(&world.rival, "/v1/me").await.status, StatusCode::OK, "others are not held up");
    open.clear();
    assert_eq!(
        world.get(&world.invoker, "/v1/me").await.status,
        StatusCode::OK,
        "what has ended counts no more"
    );
}

#[tokio::test]
async fn an_address_has_so_many_connections() {
    let (address, key, _guard) = served(Limits { connections_per_address: 2, ..Limits::default() }).await;
    let get = format!("GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(get.as_bytes()).await.unwrap();
        assert!(status(&mut stream).await.contains("200"));
        open.push(stream);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    let mut answer = String::new();
    let _ = third.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After"), "{answer:?}");
    drop(open);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(get.as_bytes()).await;
        if status(&mut stream).await.contains("200") {
            break;
        }
        assert!(Instant::now() < deadline, "connections that ended still count");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn one_who_reads_nothing_is_left() {
    let limits = Limits { write_silence: Duration::from_millis(500), ..Limits::default() };
    let (address, key, _guard) = served(limits).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    // An answer that fits in no buffer of the system: many calls in one batch.
    let call = format!(r#"{{"name": "echo", "arguments": {{"text": "{}"}}}}"#, "x".repeat(60_000));
    let body = format!(r#"{{"calls": [{}]}}"#, vec![call; 60].join(","));
    let whole = head(&key, "/v1/batch", body.len()).replace("text/event-stream", "application/json");
    stream.write_all(whole.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    // The answer begins, and is not read for longer than anybody waits.
    stream.readable().await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut all = Vec::new();
    let ended = timeout(Duration::from_secs(20), stream.read_to_end(&mut all)).await.expect("it was closed");
    let length = String::from_utf8_lossy(&all[..all.len().min(2000)]).to_lowercase();
    let whole =
        length.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    let whole = whole.unwrap_or_else(|| panic!("{length}"));
    assert!(ended.is_err() || all.len() < whole, "{} of {whole} bytes came", all.len());
}

/// Reads a stream until it ends.
async fn end_of(body: axum::body::Body) -> Duration {
    let begun = Instant::now();
    let mut stream = body.into_data_stream();
    let all = async { while let Some(Ok(_)) = stream.next().await {} };
    timeout(Duration::from_secs(10), all).await.expect("the stream ends");
    begun.elapsed()
}

/// Streams of all kinds for that key: of a task, of a call, of an MCP session.
async fn streams(world: &World, key: &str) -> Vec<axum::body::Body> {
    let task = json!({"name": "wait", "options": {"detached": true, "timeout": "PT60S"}});
    let task = world.post(key, "/v1/invoke", task).await.json();
    let mut bodies = Vec::new();
    let mut watched = request(Method::POST, "/v1/invoke", Some(key), Some(&json!({"name": "wait"})));
    watched.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let path = format!("/v1/tasks/{}/events", task["taskId"].as_str().unwrap());
    for request in [request(Method::GET, &path, Some(key), None), watched] {
        let answer = world.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        bodies.push(answer.into_body());
    }
    #[cfg(feature = "mcp")]
    bodies.push(mcp_stream(world, key).await);
    bodies
}

#[cfg(feature = "mcp")]
async fn mcp_stream(world: &World, key: &str) -> axum::body::Body {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let headers = |mut request: axum::http::Request<axum::body::Body>| {
        request.headers_mut().insert("accept", "application/json, text/event-stream".parse().unwrap());
        request.headers_mut().insert("host", "localhost".parse().unwrap());
        request
    };
    let begin = headers(request(Method::POST, "/mcp", Some(key), Some(&initialize)));
    let begun = world.router.clone().oneshot(begin).await.unwrap();
    assert_eq!(begun.status(), StatusCode::OK);
    let mut listen = headers(request(Method::GET, "/mcp", Some(key), None));
    listen.headers_mut().insert("mcp-session-id", begun.headers()["mcp-session-id"].clone());
    listen.headers_mut().insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
    let answer = world.router.clone().oneshot(listen).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.into_body()
}

#[tokio::test]
async fn a_revoked_key_has_nothing_open_within_two_seconds() {
    let world = world().await;
    let secret = key(&world.keys, "acme", &[Right::Invoke], |key| key.id = "leaked".into()).await;
    let open = streams(&world, &secret).await;
    let kept = streams(&world, &world.invoker).await;
    // A call that is waited for, too.
    let waiting = request(Method::POST, "/v1/invoke", Some(&secret), Some(&json!({"name": "wait"})));
    let waiting = tokio::spawn(world.router.clone().oneshot(waiting));
    assert!(world.keys.revoke("leaked", "ada").await.unwrap());
    let ended = futures_util::future::join_all(open.into_iter().map(end_of)).await;
    assert!(ended.iter().all(|took| *took < Duration::from_secs(2)), "{ended:?}");
    let answer = timeout(Duration::from_secs(2), waiting).await.expect("it is answered").unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    // Callers whose keys are still valid go on.
    for body in kept {
        let mut stream = body.into_data_stream();
        let end = async { while let Some(Ok(_)) = stream.next().await {} };
        assert!(timeout(Duration::from_millis(300), end).await.is_err(), "another key's stream ended");
    }
}

#[tokio::test]
async fn a_key_that_expires_has_nothing_open() {
    let world = world().await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1500);
    let secret = key(&world.keys, "acme", &[Right::Invoke], |key| {
        (key.id, key.expires_at) = ("brief".into(), Some(soon));
    })
    .await;
    let open = streams(&world, &secret).await;
    let ended = futures_util::future::join_all(open.into_iter().map(end_of)).await;
    assert!(ended.iter().all(|took| *took < Duration::from_millis(3500)), "{ended:?}");
}

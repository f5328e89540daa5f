//! The way in through HTTP: who is let in, and whose a session is.

use super::support::*;
use haft::CallContext;
use haft_mcp::server::{
    Callers, McpServer,
    http::{HttpOptions, SessionLimits, Token, listen, service},
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// A request, byte by byte, and its answer: status, head, body.
async fn send(address: SocketAddr, headers: &[(&str, &str)], body: &Value) -> (u16, String, String) {
    send_text(address, headers, &body.to_string()).await
}

async fn send_text(address: SocketAddr, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n",
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(std::time::Duration::from_secs(10), reading).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_ascii_lowercase(), body.to_owned())
}

fn discover() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

const MODERN: [(&str, &str); 2] = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "server/discover")];

async fn guarded() -> (SocketAddr, String) {
    let server = McpServer::builder(haft().into_engine(), Callers::PerRequest).build();
    let token = Token::random(CallContext::owner());
    let secret = token.as_str().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(listen(listener, token.guard(service(&server, HttpOptions::default())), Default::default()));
    (address, secret)
}

/// A message that says one thing twice is refused as on pipes.
#[tokio::test]
async fn a_message_says_everything_once() {
    let (address, secret) = guarded().await;
    let body = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a","text":"b"}}}"#;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nAuthorization: Bearer {secret}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 "), "{answer}");
    let body: Value = serde_json::from_str(body).unwrap();
    let words = "Invalid tool arguments JSON: the key \"text\" is there twice (line 1 column 18)";
    let error = &body["error"]["data"]["haft/error"];
    assert_eq!((&body["id"], &error["message"]), (&json!(4), &json!(words)), "{body}");
    assert_eq!(error["code"], "VALIDATION_FAILED");
}

/// What is no message is answered with an error of JSON-RPC, not with text.
#[tokio::test]
async fn malformed_json_is_an_error_of_json_rpc() {
    let (address, secret) = guarded().await;
    let token = format!("Bearer {secret}");
    for (sent, id, code) in [
        ("not json", json!(null), -32700),
        ("", json!(null), -32700),
        (r#"{"jsonrpc":"2.0","id":7,"method":"#, json!(null), -32700),
        ("[]", json!(null), -32600),
        (r#"{"jsonrpc":"2.0","id":8}"#, json!(8), -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, json!("a"), -32600),
    ] {
        let (status, head, body) = send_text(address, &[("Authorization", &token)], sent).await;
        assert_eq!(status, 400, "{sent}: {head}");
        assert!(head.contains("content-type: application/json"), "{sent}: {head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        let got = (&body["jsonrpc"], &body["id"], &body["error"]["code"]);
        assert_eq!(got, (&json!("2.0"), &id, &json!(code)), "{sent}: {body}");
    }
    let (status, _, _) = send_text(address, &[], "not json").await;
    assert_eq!(status, 401, "nobody is told anything before they are known");
}

#[tokio::test]
async fn only_who_has_the_token_is_let_in() {
    let (address, secret) = guarded().await;
    let with = |value: String| async move {
        let headers: Vec<_> = MODERN.into_iter().chain([("Authorization", value.as_str())]).collect();
        send(address, &headers, &discover()).await.0
    };
    assert_eq!(with(format!("Bearer {secret}")).await, 200);
    assert_eq!(with(format!("bearer {secret}")).await, 200);
    for wrong in [
        format!("Bearer {secret}x"),
        format!("Basic {secret}"),
        secret.clone(),
        "Bearer ".into(),
        "Bearer".into(),
    ] {
        assert_eq!(with(wrong.clone()).await, 401, "{wrong}");
    }
    let (status, head, _) = send(address, &MODERN, &discover()).await;
    assert_eq!(status, 401);
    assert!(head.contains("www-authenticate: bearer"));
}

#[tokio::test]
async fn pages_of_others_and_other_names_are_refused() {
    let (address, secret) = guarded().await;
    let token = format!("Bearer {secret}");
    for (name, value) in [
        ("Host", "evil.example"),
        ("Host", "localhost.evil.example"),
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://localhost:3000"),
    ] {
        let headers: Vec<_> =
            MODERN.into_iter().chain([("Authorization", token.as_str()), (name, value)]).collect();
        assert_eq!(send(address, &headers, &discover()).await.0, 403, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_session_is_of_who_began_it() {
    let server = McpServer::builder(haft().into_engine(), Callers::PerRequest).build();
    let one = service(&server, HttpOptions::default());
    // Two doors to the same service, for two people.
    let mut doors = Vec::new();
    for agent in ["ada", "bob"] {
        let token = Token::random(owner_with(|context| context.agent = agent.into()));
        let secret = format!("Bearer {}", token.as_str());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        doors.push((listener.local_addr().unwrap(), secret));
        tokio::spawn(listen(listener, token.guard(one.clone()), Default::default()));
    }
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let (address, secret) = &doors[0];
    let (status, head, _) = send(*address, &[("Authorization", secret)], &begin).await;
    assert_eq!(status, 200);
    let session =
        head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let as_ = |door: usize, session: String| {
        let (address, secret) = doors[door].clone();
        let ping = ping.clone();
        async move {
            let headers = [
                ("Authorization", secret.as_str()),
                ("Mcp-Session-Id", session.as_str()),
                ("MCP-Protocol-Version", "2025-11-25"),
            ];
            send(address, &headers, &ping).await.0
        }
    };
    assert_eq!(as_(0, session.clone()).await, 200);
    assert_eq!(as_(1, session.clone()).await, 404);
    assert_eq!(as_(1, "00000000-0000-0000-0000-000000000000".into()).await, 404, "as one that is not there");
    assert_eq!(as_(0, session[..session.len() - 1].to_owned()).await, 404);
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }})
}

/// Ends a session, and says with which status.
async fn end(address: SocketAddr, secret: &str, session: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\nMcp-Session-Id: {session}\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test]
async fn sessions_have_bounds_and_what_ended_or_was_idle_is_free_again() {
    let server = McpServer::builder(haft().into_engine(), Callers::PerRequest).build();
    let mut options = HttpOptions::default();
    let idle = std::time::Duration::from_millis(1500);
    options.sessions = SessionLimits { per_caller: 4, idle, ..SessionLimits::default() };
    let token = Token::random(CallContext::owner());
    let secret = token.as_str().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(listen(listener, token.guard(service(&server, options)), Default::default()));
    let authorization = format!("Bearer {secret}");
    let begin = || async {
        let (status, head, _) = send(address, &[("Authorization", &authorization)], &initialize()).await;
        (status, head)
    };
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let (status, head) = begin().await;
        assert_eq!(status, 200);
        let id =
            head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
        sessions.push(id);
    }
    let (status, head) = begin().await;
    assert!(status == 429 && head.contains("retry-after: 10"), "{status} {head}");
    let ended = end(address, &secret, &sessions[0]).await;
    assert!(ended.starts_with("HTTP/1.1 204"), "{ended}");
    let again = end(address, &secret, &sessions[0]).await;
    assert!(again.starts_with("HTTP/1.1 404"), "{again}");
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    let mut begun = begin().await.0;
    while begun != 200 && tokio::time::Instant::now() < until {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        begun = begin().await.0;
    }
    assert_eq!(begun, 200, "one that was ended makes room");
    // Nobody says anything: all of them end.
    while begin().await.0 != 200 {
        assert!(tokio::time::Instant::now() < until, "idle sessions still count");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

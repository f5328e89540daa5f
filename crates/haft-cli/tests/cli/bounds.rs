//! What a client can make a real server hold: bodies in single bytes, sessions, folders, figures of others.
#![cfg(unix)]

use crate::{
    serve::{listening, serve, talk},
    stop::Running,
    support::Place,
};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Kilobytes that a process has in memory.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default().to_owned();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0)
}

fn key(place: &Place, name: &str, tenant: &str) -> String {
    let args =
        ["keys", "create", name, "--right", "invoke", "--role", "editor", "--tenant", tenant, "--json"];
    let made = place.haft(&args);
    assert_eq!(made.code, 0, "{}", made.shown());
    made.json()["secret"].as_str().unwrap().to_owned()
}

fn ended(server: Running) {
    server.signal("TERM");
    server.end();
}

#[test]
fn a_body_in_single_bytes_costs_what_it_has() {
    let place = Place::new();
    let secret = key(&place, "ci", "acme");
    let (server, address) = serve(&place);
    // Warm: what a first request costs is no part of it.
    let call = r#"{"name": "get_metrics", "arguments": {}}"#;
    assert_eq!(talk(TcpStream::connect(&address).unwrap(), "/v1/invoke", Some(&secret), Some(call)).0, 200);
    let before = resident(server.pid());
    let dripping: Vec<_> = (0..16)
        .map(|_| {
            let (address, secret) = (address.clone(), secret.clone());
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_nodelay(true).unwrap();
                let head = format!(
                    "POST /v1/invoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\nContent-Type: \
                     application/json\r\nContent-Length: 100000\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).unwrap();
                for _ in 0..2000 {
                    // One packet each: it is read before the next one comes.
                    stream.write_all(b" ").unwrap();
                    std::thread::sleep(Duration::from_micros(500));
                }
                stream
            })
        })
        .collect();
    let open: Vec<TcpStream> = dripping.into_iter().map(|thread| thread.join().unwrap()).collect();
    let grown = resident(server.pid()).saturating_sub(before);
    // 32,000 packets that pinned a read buffer each were more than a hundred megabytes.
    assert!(grown < 24 << 10, "32 kB in single bytes took {grown} kB");
    drop(open);
    assert_eq!(talk(TcpStream::connect(&address).unwrap(), "/v1/invoke", Some(&secret), Some(call)).0, 200);
    ended(server);
}

/// A request to `/mcp` of a session: status, head, and what came of the body.
fn mcp(address: &str, key: &str, session: Option<&str>, body: &Value) -> (u16, String) {
    let mut stream = mcp_open(address, key, session, body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

fn mcp_open(address: &str, key: &str, session: Option<&str>, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let session = session
        .map(|id| format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n"))
        .unwrap_or_default();
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\n{session}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn initialize(capabilities: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}})
}

/// Begins a session, and gives its id.
fn begin(address: &str, key: &str, capabilities: Value) -> Result<String, u16> {
    let (status, answer) = mcp(address, key, None, &initialize(capabilities));
    let id = answer.lines().find_map(|line| Some(line.split_once("mcp-session-id: ")?.1.trim().to_owned()));
    id.filter(|_| status == 200).ok_or(status)
}

#[test]
fn sessions_are_counted_by_key_and_cost_little() {
    let place = Place::new();
    place.own_config("[server]\nmax_mcp_sessions_per_key = 40\n");
    let (ada, bob) = (key(&place, "ada", "acme"), key(&place, "bob", "rival"));
    let (server, address) = serve(&place);
    begin(&address, &ada, json!({})).unwrap();
    let before = resident(server.pid());
    let begun: Vec<_> = (0..400).map(|_| begin(&address, &ada, json!({}))).collect();
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 39);
    assert!(begun.iter().all(|begun| matches!(begun, Ok(_) | Err(429))), "{begun:?}");
    let grown = resident(server.pid()).saturating_sub(before);
    assert!(grown < 24 << 10, "400 beginnings took {grown} kB");
    let (status, answer) = mcp(&address, &ada, None, &initialize(json!({})));
    assert!(status == 429 && answer.to_lowercase().contains("retry-after"), "{answer}");
    begin(&address, &bob, json!({})).expect("others are not held up");
    ended(server);
}

/// Calls `read_file` in a session whose client answers a question for its folders so; the answer.
fn read_with_roots(address: &str, key: &str, session: &str, path: &str, roots: &Value) -> String {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "read_file", "arguments": {"path": path}}});
    let mut stream = mcp_open(address, key, Some(session), &call);
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    let mut is_answered = false;
    loop {
        let length = stream.read(&mut buffer).unwrap_or(0);
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
        let asked = seen.lines().find_map(|line| {
            let message: Value = serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()?;
            (message["method"] == "roots/list").then(|| message["id"].clone())
        });
        if let (Some(id), false) = (asked, is_answered) {
            let mut answer = json!({"jsonrpc": "2.0", "id": id});
            answer.as_object_mut().unwrap().extend(roots.as_object().unwrap().clone());
            assert_eq!(mcp(address, key, Some(session), &answer).0, 202);
            is_answered = true;
        }
        if length == 0 {
            return seen;
        }
    }
}

#[test]
fn folders_of_each_client_over_http_narrow_what_it_gets() {
    let place = Place::new();
    for folder in ["one", "two"] {
        std::fs::create_dir(place.work().join(folder)).unwrap();
        place.write(&format!("{folder}/in.txt"), format!("the inside of {folder}"));
    }
    place.write("out.txt", "the outside");
    let secret = key(&place, "ci", "acme");
    let (server, address) = serve(&place);
    let roots = |folder: &str| {
        let uri = format!("file://{}", place.work().join(folder).display());
        json!({"result": {"roots": [{"uri": uri}]}})
    };
    let session = || begin(&address, &secret, json!({"roots": {"listChanged": true}})).unwrap();
    let (one, two) = (session(), session());
    for (session, folder) in [(&one, "one"), (&two, "two"), (&one, "one")] {
        let read = |path: &str| read_with_roots(&address, &secret, session, path, &roots(folder));
        let inside = read("in.txt");
        assert!(inside.contains(&format!("the inside of {folder}")), "{inside}");
        for outside in ["../out.txt", place.work().join("out.txt").to_str().unwrap()] {
            let refused = read(outside);
            assert!(refused.contains("isError") && !refused.contains("the outside"), "{refused}");
        }
    }
    // Until its folders are known, a client gets nothing.
    let silent = session();
    let error = json!({"error": {"code": -1, "message": "no"}});
    let refused = read_with_roots(&address, &secret, &silent, "out.txt", &error);
    assert!(refused.contains("did not say in which") && !refused.contains("the outside"), "{refused}");
    // Folders that are not here are none.
    let elsewhere = json!({"result": {"roots": [{"uri": "file:///nowhere/at/all"}]}});
    let refused = read_with_roots(&address, &secret, &silent, "out.txt", &elsewhere);
    assert!(refused.contains("isError") && !refused.contains("the outside"), "{refused}");
    // One without folders works where haft does, as before.
    let plain = begin(&address, &secret, json!({})).unwrap();
    let read = read_with_roots(&address, &secret, &plain, "out.txt", &error);
    assert!(read.contains("the outside"), "{read}");
    ended(server);
}

#[test]
fn folders_of_a_client_narrow_a_request_that_stands_for_itself() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("one")).unwrap();
    place.write("one/in.txt", "the inside");
    place.write("out.txt", "the outside");
    let secret = key(&place, "ci", "acme");
    let (server, address) = serve(&place);
    let ask = |path: &str, answers: Value| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_file",
            "arguments": {"path": path}, "inputResponses": answers, "_meta": meta}})
        .to_string();
        let mut stream = TcpStream::connect(&address).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: read_file\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let asked = ask("out.txt", json!({}));
    assert!(asked.contains("haft_roots") && !asked.contains("the outside"), "{asked}");
    let uri = format!("file://{}", place.work().join("one").display());
    let roots = || json!({"haft_roots": {"roots": [{"uri": uri}]}});
    let read = ask("in.txt", roots());
    assert!(read.contains("the inside"), "{read}");
    let refused = ask("../out.txt", roots());
    assert!(refused.contains("\"isError\":true") && !refused.contains("the outside"), "{refused}");
    ended(server);
}

#[test]
fn figures_are_those_of_ones_own_tenant() {
    let place = Place::new();
    place.write("note.txt", "hello\n");
    let (acme, rival) = (key(&place, "acme", "acme"), key(&place, "rival", "rival"));
    let (server, address) = serve(&place);
    let invoke = |key: &str, call: &str| {
        let (status, answer) =
            talk(TcpStream::connect(&address).unwrap(), "/v1/invoke", Some(key), Some(call));
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str::<Value>(&answer).unwrap()["output"].clone()
    };
    for _ in 0..3 {
        invoke(&acme, r#"{"name": "read_file", "arguments": {"path": "note.txt"}}"#);
    }
    let metrics = r#"{"name": "get_metrics", "arguments": {}}"#;
    assert_eq!(invoke(&acme, metrics)["tools"]["read_file"]["total"], 3);
    let theirs = invoke(&rival, metrics);
    assert_eq!((&theirs["all"]["total"], &theirs["tools"]), (&json!(0), &json!({})), "{theirs}");
    let one = r#"{"name": "get_metrics", "arguments": {"tool": "read_file"}}"#;
    assert_eq!(invoke(&rival, one)["all"]["total"], 0);
    ended(server);
}

#[test]
fn a_revoked_key_loses_its_open_stream() {
    let place = Place::new();
    let made = place.haft(&["keys", "create", "ci", "--right", "invoke", "--role", "editor", "--json"]);
    let (secret, id) = (made.json()["secret"].clone(), made.json()["key"]["id"].clone());
    let (secret, id) = (secret.as_str().unwrap(), id.as_str().unwrap());
    let (server, address) = listening(Running::start(&place, &["serve", "--listen", "127.0.0.1:0"]));
    let session = begin(&address, secret, json!({})).unwrap();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\nAccept: text/event-stream\r\n\
         Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut buffer = [0; 4096];
    let length = stream.read(&mut buffer).unwrap();
    assert!(String::from_utf8_lossy(&buffer[..length]).starts_with("HTTP/1.1 200"));
    assert_eq!(place.haft(&["keys", "revoke", id]).code, 0);
    let revoked = Instant::now();
    // The end of a body in chunks.
    let mut rest = String::new();
    while !rest.ends_with("0\r\n\r\n") {
        let length = stream.read(&mut buffer).expect("the stream ends");
        assert!(length > 0 || rest.ends_with("0\r\n\r\n"), "{rest}");
        rest.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(revoked.elapsed() < Duration::from_secs(3), "{:?}", revoked.elapsed());
    ended(server);
}

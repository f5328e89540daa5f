//! Servers over HTTP: which are reached, what happens when they go, and that none leads elsewhere.

use super::{support::Place, world::Session};
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::Child,
    time::Duration,
};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_server_over_http_is_reached_where_granted", reached),
        Trial::test("a_server_over_http_that_goes_is_asked_again", goes),
        Trial::test("a_redirect_is_not_followed", redirect),
        Trial::test("a_call_that_was_sent_is_never_said_not_to_be", sent),
        Trial::test("an_event_without_end_is_given_up", endless),
        Trial::test("the_newest_revision_is_spoken_over_pipes_too", newest),
    ]
}

/// `haft mcp --http` in a place of its own: a server that nobody wrote for this test.
struct Server {
    place: Place,
    child: Child,
    address: String,
}

impl Server {
    fn start(place: Place, address: &str) -> Server {
        let mut child = place.program(&["mcp", "--http", address]).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("serving MCP at")).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        // A closed standard error must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Server { place, child, address }
    }

    fn token(&self) -> String {
        let token = std::fs::read_to_string(self.place.home().join(".local/state/haft/mcp-token")).unwrap();
        format!("Bearer {}", token.trim())
    }

    fn stop(mut self) -> Place {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let Server { place, .. } = self;
        place
    }
}

fn granted(address: &str) -> Place {
    let place = Place::new();
    let config = "[tools.approval]\nmode = \"auto\"\n[tools.http]\nprivate_hosts = [\"ADDRESS\"]\n";
    place.own_config(&config.replace("ADDRESS", address));
    place
}

fn add(place: &Place, url: &str, token: &str) -> super::support::Said {
    let args = ["tools", "add", "--mcp", "up", "--url", url, "--header", "Authorization: env:UP_TOKEN"];
    super::support::Said::of(place.program(&args).env("UP_TOKEN", token).output().unwrap())
}

fn reached() -> Result<(), Failed> {
    let server = Server::start(Place::new(), "127.0.0.1:0");
    let url = format!("http://{}/mcp", server.address);
    let elsewhere = Place::new();
    let refused = add(&elsewhere, &url, &server.token());
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("tools.http.private_hosts"), "{refused:?}");

    let place = granted(&server.address);
    let unknown = add(&place, &url, "Bearer wrong");
    assert_eq!(unknown.code, 1, "{unknown:?}");
    let added = add(&place, &url, &server.token());
    assert_eq!(added.code, 0, "{added:?}");
    assert!(added.stdout.contains("up__validate_content"), "{added:?}");
    let database = rusqlite::Connection::open(place.home().join(".local/state/haft/haft.db"))?;
    let remembered: String =
        database.query_row("SELECT group_concat(definition_json) FROM tool_registrations", [], |row| {
            row.get(0)
        })?;
    assert!(remembered.contains("UP_TOKEN"), "it is named: {remembered}");
    assert!(!remembered.contains(&server.token()), "secrets stay where they are");

    let call = ["call", "up__validate_content", "content=[1]", "--json"];
    let said = super::support::Said::of(place.program(&call).env("UP_TOKEN", server.token()).output()?);
    let result = said.json();
    assert_eq!(result["output"]["valid"], true, "{said:?}");
    assert_eq!(result["metadata"]["enforcement"]["level"], "None", "no code of others runs here");
    let without = place.haft(&call);
    assert!(without.json()["error"]["message"].as_str().unwrap().contains("UP_TOKEN"), "{without:?}");
    server.stop();
    Ok(())
}

fn goes() -> Result<(), Failed> {
    let server = Server::start(Place::new(), "127.0.0.1:0");
    let (address, token) = (server.address.clone(), server.token());
    let place = granted(&address);
    assert_eq!(add(&place, &format!("http://{address}/mcp"), &token).code, 0);
    let mut session = Session::start(place.program(&["mcp"]).env("UP_TOKEN", &token));
    let call = |session: &mut Session| session.call("up__validate_content", json!({"content": "[1]"}));
    assert_eq!(call(&mut session)["structuredContent"]["valid"], true);
    let kept = server.stop();
    let (code, text) = session.error("up__validate_content", json!({"content": "[1]"}));
    assert_eq!(code, "UPSTREAM_UNAVAILABLE", "nothing was sent: {text}");
    let server = Server::start(kept, &address);
    std::thread::sleep(Duration::from_millis(1200));
    let again = call(&mut session);
    assert_eq!(again["structuredContent"]["valid"], true, "{again}");
    session.end();
    server.stop();
    Ok(())
}

/// Answers every request with these bytes, for as long as somebody asks.
fn answers(bytes: &'static [u8], repeat: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
                let _ = stream.read(&mut [0; 65536]);
                let _ = stream.write_all(bytes);
                while repeat && stream.write_all(&[b'x'; 65536]).is_ok() {}
            });
        }
    });
    address
}

fn redirect() -> Result<(), Failed> {
    let address = answers(
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
        false,
    );
    let place = granted(&address);
    let said = add(&place, &format!("http://{address}/mcp"), "x");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("307"), "{said:?}");
    Ok(())
}

/// One request: its first line and its body.
fn request(stream: &mut std::net::TcpStream) -> (String, serde_json::Value) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    let _ = reader.read_line(&mut first);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(count) = line.to_lowercase().strip_prefix("content-length:") {
            length = count.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    (first, serde_json::from_slice(&body).unwrap_or_default())
}

/// A server that takes a call, goes, and answers neither it nor anything else: what haft asks meanwhile finds nobody.
fn takes_and_goes() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut listener = Some(listener);
        let mut streams = Vec::new();
        while let Some(open) = &listener {
            let Ok((mut stream, _)) = open.accept() else { break };
            let (first, asked) = request(&mut stream);
            let answer = |stream: &mut std::net::TcpStream, result: serde_json::Value| {
                let body = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
                let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
            };
            match (first.split(' ').next().unwrap_or_default(), asked["method"].as_str().unwrap_or_default())
            {
                ("POST", "initialize") => answer(
                    &mut stream,
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "goes", "version": "1"}}),
                ),
                ("POST", "tools/list") => answer(
                    &mut stream,
                    json!({"tools": [{"name": "pay", "description": "Pays", "inputSchema": {"type": "object"}}]}),
                ),
                ("POST", "tools/call") => {
                    // From here on nobody listens; the stream of events ends, and is asked for again in vain.
                    listener = None;
                    streams.clear();
                    std::thread::sleep(Duration::from_secs(3));
                }
                ("POST", method) if method.starts_with("notifications/") => {
                    let _ = stream.write_all(
                        b"HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                    );
                }
                ("GET", _) => {
                    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n";
                    let _ = stream.write_all(head);
                    streams.push(stream);
                }
                _ => {
                    let _ = stream.write_all(
                        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                    );
                }
            }
        }
    });
    address
}

fn sent() -> Result<(), Failed> {
    let address = takes_and_goes();
    let place = granted(&address);
    let added = add(&place, &format!("http://{address}/mcp"), "x");
    assert_eq!(added.code, 0, "{added:?}");
    let call = |place: &Place| {
        let args = ["call", "up__pay", "--json", "--args", "{}"];
        super::support::Said::of(place.program(&args).env("UP_TOKEN", "x").output().unwrap())
    };
    let said = call(&place);
    let error = said.json()["error"].clone();
    assert_eq!(error["code"], "OUTCOME_UNKNOWN", "{said:?}");
    // Where nobody listens from the beginning, it was not.
    let said = call(&place);
    assert_eq!(said.json()["error"]["code"], "UPSTREAM_UNAVAILABLE", "{said:?}");
    Ok(())
}

fn endless() -> Result<(), Failed> {
    let address = answers(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: ",
        true,
    );
    let place = granted(&address);
    let started = std::time::Instant::now();
    let said = add(&place, &format!("http://{address}/mcp"), "x");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    Ok(())
}

fn newest() -> Result<(), Failed> {
    let place = Place::new();
    place.own_config("[tools.approval]\nmode = \"auto\"\n");
    let haft = env!("CARGO_BIN_EXE_haft");
    let added = place.haft(&["--log", "tools", "add", "--mcp", "inner", "--", haft, "mcp"]);
    assert_eq!(added.code, 0, "{added:?}");
    let said = place.haft(&["--log", "call", "inner__validate_content", "content=[1]"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("2026-07-28"), "{said:?}");
    Ok(())
}

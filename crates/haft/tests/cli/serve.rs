//! `haft serve` and `haft keys`: a real server, a real socket.
#![cfg(unix)]

use crate::{stop::Running, support::Place};
use serde_json::Value;
use std::{
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::PathBuf,
};

fn talk(
    mut stream: impl std::io::Read + std::io::Write,
    path: &str,
    key: Option<&str>,
    body: Option<&str>,
) -> (u16, String) {
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let (method, body) = body.map_or(("GET", ""), |body| ("POST", body));
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{key}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it is heard");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer[9..12].parse().expect("a status");
    (status, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
}

fn state(place: &Place) -> PathBuf {
    place.home().join(".local/state/haft")
}

/// A server on a port that the system chose.
fn serve(place: &Place) -> (Running, String) {
    let mut server = Running::start(place, &["serve", "--listen", "127.0.0.1:0"]);
    server.wait_for("serving at");
    let line =
        server.heard().lines().find(|line| line.contains("serving at")).expect("it said so").to_owned();
    let address = line.rsplit("http://").next().expect("an address").trim().to_owned();
    (server, address)
}

#[test]
fn a_server_knows_its_owner_and_its_keys_and_ends_in_order() {
    let place = Place::new();
    place.write("note.txt", "hello\n");
    let made = place.haft(&[
        "keys", "create", "ci", "--right", "invoke", "--role", "editor", "--tenant", "acme", "--json",
    ]);
    assert_eq!(made.code, 0, "{}", made.shown());
    let (secret, id) = (
        made.json()["secret"].as_str().unwrap().to_owned(),
        made.json()["key"]["id"].as_str().unwrap().to_owned(),
    );
    let (server, address) = serve(&place);
    let port = || TcpStream::connect(&address).expect("it listens");

    let socket = state(&place).join("haft.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let (status, me) = talk(UnixStream::connect(&socket).unwrap(), "/v1/me", None, None);
    assert_eq!(
        (status, &serde_json::from_str::<Value>(&me).unwrap()["tenant"]),
        (200, &Value::from("local"))
    );
    assert_eq!(talk(port(), "/v1/me", None, None).0, 401);
    let call = r#"{"name": "read_file", "arguments": {"path": "note.txt"}}"#;
    let (status, result) = talk(port(), "/v1/invoke", Some(&secret), Some(call));
    assert!(status == 200 && result.contains("hello"), "{status} {result}");
    let (status, _) = talk(port(), "/v1/stats", Some(&secret), None);
    assert_eq!(status, 403);
    let (status, page) = talk(port(), "/v1/approvals", Some(&secret), None);
    assert_eq!((status, page.as_str()), (200, r#"{"questions":[]}"#));

    let second = place.haft(&["serve"]);
    assert!(second.code == 2 && second.stderr.contains("a server runs at"), "{}", second.shown());
    assert_eq!(place.haft(&["keys", "revoke", &id]).code, 0);
    let again = place.haft(&["keys", "revoke", &id]);
    assert!(again.code == 2 && again.stderr.contains("haft keys list"), "{}", again.shown());
    let begun = std::time::Instant::now();
    while talk(port(), "/v1/me", Some(&secret), None).0 != 401 {
        assert!(begun.elapsed().as_secs() < 10, "a revoked key still counts");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    server.signal("TERM");
    let said = server.end();
    assert_eq!(said.code, 0, "{}", said.shown());
    assert!(!socket.exists());
    // What was recorded is there for other processes.
    let runs = place.haft(&["runs", "list", "--tenant", "acme", "--json"]);
    assert!(runs.shown().contains("read_file"), "{}", runs.shown());
}

#[test]
fn a_key_that_both_calls_and_approves_must_be_wished_for() {
    let place = Place::new();
    let both = ["keys", "create", "both", "--right", "invoke", "--right", "approve", "--role", "editor"];
    let refused = place.haft(&both);
    assert!(refused.code == 2 && refused.stderr.contains("server.invoke_and_approve"), "{}", refused.shown());
    place.own_config("[server]\ninvoke_and_approve = true\n");
    assert_eq!(place.haft(&both).code, 0);
    let list = place.haft(&["keys", "list"]);
    assert!(list.stdout.contains("both") && !list.stdout.contains("haft_"), "{}", list.shown());
}

#[test]
fn answers_over_http_count_where_they_are_wished_for() {
    let place = Place::new();
    let key = |name: &str, rest: &[&str]| {
        let made = place.haft(&[&["keys", "create", name, "--json"], rest].concat());
        made.json()["secret"].as_str().expect("a secret").to_owned()
    };
    let (caller, person) =
        (key("ci", &["--right", "invoke", "--role", "editor"]), key("phone", &["--right", "approve"]));
    let call = r#"{"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}}"#;
    let yes = Some(r#"{"decision": "approve"}"#);

    let (server, address) = serve(&place);
    let port = || TcpStream::connect(&address).expect("it listens");
    let (status, result) = talk(port(), "/v1/invoke", Some(&caller), Some(call));
    assert!(result.contains("CONFIRMATION_REQUIRED"), "{status} {result}");
    let (_, open) = talk(port(), "/v1/approvals", Some(&person), None);
    let open: Value = serde_json::from_str(&open).unwrap();
    let question = format!("/v1/approvals/{}", open["questions"][0]["id"].as_str().expect("a question"));
    let (status, refused) = talk(port(), &question, Some(&person), yes);
    assert!(status == 403 && refused.contains("accept_from"), "{status} {refused}");
    server.signal("TERM");
    server.end();

    place.own_config("[tools.approval]\naccept_from = ['http']\n");
    let (server, address) = serve(&place);
    let port = || TcpStream::connect(&address).expect("it listens");
    let (status, _) = talk(port(), &question, Some(&caller), yes);
    assert_eq!(status, 403, "who makes calls does not approve them");
    let (status, answered) = talk(port(), &question, Some(&person), yes);
    assert!(status == 200 && answered.contains("\"approved\""), "{status} {answered}");
    assert_eq!(talk(port(), &question, Some(&person), yes).0, 409);
    let (status, result) = talk(port(), "/v1/invoke", Some(&caller), Some(call));
    assert_eq!(status, 200, "{result}");
    server.signal("TERM");
    server.end();
}

#[test]
fn other_machines_are_served_with_tls_or_not_at_all() {
    let place = Place::new();
    let refused = place.haft(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(refused.code == 2 && refused.stderr.contains("server.tls_certificate"), "{}", refused.shown());
    assert!(!state(&place).join("haft.sock").exists(), "nothing is left of it");
}

#[test]
fn a_socket_that_a_killed_server_left_is_used_again() {
    let place = Place::new();
    let (server, _) = serve(&place);
    server.kill();
    assert!(state(&place).join("haft.sock").exists());
    let (server, _) = serve(&place);
    server.signal("INT");
    assert_eq!(server.end().code, 0);
}

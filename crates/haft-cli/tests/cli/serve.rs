//! `haft serve` and `haft keys`: a real server, a real socket.
#![cfg(unix)]

use crate::{stop::Running, support::Place};
use serde_json::Value;
use std::{
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::PathBuf,
};

pub(crate) fn talk(
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

pub(crate) fn state(place: &Place) -> PathBuf {
    place.home().join(".local/state/haft")
}

/// A server on a port that the system chose.
pub(crate) fn serve(place: &Place) -> (Running, String) {
    listening(Running::start(place, &["serve", "--listen", "127.0.0.1:0"]))
}

/// A server, with where it listens.
pub(crate) fn listening(mut server: Running) -> (Running, String) {
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
    assert!(!server.heard().contains("there is no API key"), "{}", server.heard());
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
    assert_eq!((status, page.as_str()), (200, r#"{"approvals":[]}"#));

    let second = place.haft(&["serve"]);
    assert!(second.code == 2 && second.stderr.contains("a server already runs at"), "{}", second.shown());
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
fn a_key_with_a_role_that_is_none_is_not_made() {
    let place = Place::new();
    place.own_config("[permissions]\nroles = ['acme/deployer: tool.deploy.*']\n");
    let key = |role: &str, tenant: &str| {
        place.haft(&["keys", "create", "x", "--right", "invoke", "--role", role, "--tenant", tenant])
    };
    let said = key("edtor", "acme");
    assert!(said.code == 2 && said.stderr.contains("did you mean `editor`?"), "{}", said.shown());
    assert_eq!(key("deployer", "other").code, 2, "it is another tenant's");
    let own = key("deployer", "acme");
    assert_eq!(own.code, 0, "{}", own.shown());
    assert_eq!(key("editor", "acme").code, 0);
}

#[test]
fn a_key_does_not_stand_for_the_owner() {
    let place = Place::new();
    let key = |which: &str, name: &str| {
        place.haft(&["keys", "create", "x", "--right", "invoke", "--role", "editor", which, name])
    };
    for name in ["owner", " Owner", "owner/x", "mcp:Code", "key_1"] {
        for which in ["--agent", "--user"] {
            let said = key(which, name);
            let told = said.stderr.contains("a key cannot stand for") && said.stderr.contains("haft's own");
            assert!(said.code == 2 && told, "{which} {name}: {}", said.shown());
        }
    }
    assert_eq!(key("--agent", "owners").code, 0);
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
    let question = format!("/v1/approvals/{}", open["approvals"][0]["id"].as_str().expect("a question"));
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
    let mut lonely = Running::start(&place, &["serve", "--no-socket", "--listen", "127.0.0.1:0"]);
    lonely.wait_for("there is no API key yet");
    lonely.signal("TERM");
    assert_eq!(lonely.end().code, 0);
    let (server, _) = serve(&place);
    server.signal("INT");
    assert_eq!(server.end().code, 0);
}

fn json(answer: (u16, String)) -> (u16, Value) {
    let value = serde_json::from_str(&answer.1).unwrap_or_else(|error| panic!("{error}: {}", answer.1));
    (answer.0, value)
}

#[test]
fn a_task_waits_for_a_person_is_changed_approved_and_remembered_over_http() {
    let place = Place::new();
    place.own_config("[tools.approval]\naccept_from = ['http']\n");
    let key = |name: &str, rest: &[&str]| {
        let made = place.haft(&[&["keys", "create", name, "--json"], rest].concat());
        made.json()["secret"].as_str().expect("a secret").to_owned()
    };
    let (caller, person) =
        (key("ci", &["--right", "invoke", "--role", "editor"]), key("phone", &["--right", "approve"]));
    let (server, address) = serve(&place);
    let ask = |key: &str, path: &str, body: Option<&str>| {
        json(talk(TcpStream::connect(&address).expect("it listens"), path, Some(key), body))
    };
    // The first question of that tool that is open, however long it takes to be asked.
    let asked = |replaces: Option<&str>| {
        let begun = std::time::Instant::now();
        loop {
            let (_, page) = ask(&person, "/v1/approvals", None);
            let open = page["approvals"].as_array().expect("a list").clone();
            if let Some(found) = open.into_iter().find(|one| one["replaces"].as_str() == replaces) {
                return found;
            }
            assert!(begun.elapsed().as_secs() < 20, "nobody is asked: {page}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let detached = |file: &str| {
        let body = format!(
            r#"{{"name": "write_file", "arguments": {{"path": "{file}", "content": "x"}}, "options": {{"detached": true}}}}"#
        );
        let (status, task) = ask(&caller, "/v1/invoke", Some(&body));
        assert_eq!(status, 202, "{task}");
        task["taskId"].as_str().expect("an id").to_owned()
    };

    // Changed, then approved; somebody watches all the while.
    let task = detached("first.txt");
    let watching = std::thread::spawn({
        let (address, caller, path) = (address.clone(), caller.clone(), format!("/v1/tasks/{task}/events"));
        move || talk(TcpStream::connect(address).expect("it listens"), &path, Some(&caller), None).1
    });
    let question = asked(None);
    let id = question["id"].as_str().expect("an id").to_owned();
    assert_eq!(question["arguments"]["path"], "first.txt");
    assert!(question["offers"].as_array().is_some_and(|offers| !offers.is_empty()), "{question}");
    let (_, shown) = ask(&person, &format!("/v1/approvals/{id}"), None);
    assert_eq!((&shown["id"], &shown["state"]), (&question["id"], &Value::from("open")));
    let place_of = |id: &str| format!("/v1/approvals/{id}");
    for wrong in [
        r#"{"decision": "edit"}"#,
        r#"{"decision": "edit", "arguments": {"path": "first.txt", "content": "x"}}"#,
        r#"{"decision": "approve", "remember": {"kind": "everything"}}"#,
        r#"{"decision": "approve", "remember": {"kind": "exact_call", "lasts": "session"}}"#,
        r#"{"decision": "deny", "arguments": {}}"#,
    ] {
        let (status, said) = ask(&person, &place_of(&id), Some(wrong));
        assert!((400..500).contains(&status), "{wrong}: {said}");
    }
    let edit = r#"{"decision": "edit", "arguments": {"path": "second.txt", "content": "y"}}"#;
    assert_eq!(
        ask(&caller, &place_of(&id), Some(edit)).0,
        403,
        "who makes calls does not change them, either"
    );
    let (status, said) = ask(&person, &place_of(&id), Some(edit));
    assert_eq!((status, &said["state"]), (200, &Value::from("edited")), "{said}");
    let changed = asked(Some(&id));
    assert_eq!(changed["arguments"]["path"], "second.txt");
    assert!(!place.work().join("second.txt").exists(), "nothing runs before it is approved");
    let changed = changed["id"].as_str().expect("an id").to_owned();
    let yes = r#"{"decision": "approve", "remember": {"kind": "exact_call", "seconds": 3600}}"#;
    let (status, said) = ask(&person, &place_of(&changed), Some(yes));
    assert_eq!(status, 200, "{said}");
    let grant = said["grant"]["id"].as_str().expect("it is remembered").to_owned();
    let (_, done) = ask(&caller, &format!("/v1/tasks/{task}?wait=20"), None);
    let done = match done["state"] == "completed" {
        true => done,
        // The answer is looked for once a second.
        false => {
            std::thread::sleep(std::time::Duration::from_secs(3));
            ask(&caller, &format!("/v1/tasks/{task}?wait=20"), None).1
        }
    };
    assert_eq!(
        (&done["state"], &done["result"]["status"]),
        (&"completed".into(), &"Success".into()),
        "{done}"
    );
    assert!(place.work().join("second.txt").exists() && !place.work().join("first.txt").exists());
    let seen = watching.join().expect("it watched");
    assert!(seen.contains("\"awaiting_approval\""), "that it waits: {seen}");
    assert!(seen.contains("event: tool:executed"), "{seen}");
    let last = seen.rsplit("event: ").next().expect("an event");
    assert!(last.starts_with("task") && last.contains("\"completed\""), "the end is last: {last}");

    // Denied, with words for the model.
    let task = detached("third.txt");
    let question = asked(None);
    let no = r#"{"decision": "deny", "reason": "not on a Friday"}"#;
    assert_eq!(ask(&person, &place_of(question["id"].as_str().unwrap()), Some(no)).0, 200);
    let begun = std::time::Instant::now();
    let over = loop {
        let (_, task) = ask(&caller, &format!("/v1/tasks/{task}"), None);
        if task["finishedAt"].is_string() {
            break task;
        }
        assert!(begun.elapsed().as_secs() < 20, "{task}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(
        over["result"]["error"]["message"].as_str().is_some_and(|text| text.contains("Friday")),
        "{over}"
    );
    assert!(!place.work().join("third.txt").exists());

    // What was remembered spares the question, until it is taken back.
    std::fs::remove_file(place.work().join("second.txt")).expect("it is there");
    let again = r#"{"name": "write_file", "arguments": {"path": "second.txt", "content": "y"}}"#;
    assert_eq!(ask(&caller, "/v1/invoke", Some(again)).0, 200);
    let (_, grants) = ask(&person, "/v1/grants", None);
    assert_eq!(grants["grants"][0]["id"].as_str(), Some(&*grant));
    server.signal("TERM");
    assert_eq!(server.end().code, 0);

    // Keys are on the record; secrets are not.
    let events = place.haft(&["audit", "events", "--json"]);
    let events = events.json();
    let names: Vec<_> = events["events"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["phone", "ci"], "{events}");
    assert!(!events.to_string().contains("haft_"), "{events}");
    assert_eq!(place.haft(&["audit", "verify"]).code, 0);
}

#[test]
fn what_is_wrong_with_a_server_is_said_with_what_to_do() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let said = |config: &str, args: &[&str], what: &str, help: &str| {
        place.own_config(config);
        let said = place.haft(&[&["serve"], args].concat());
        assert_eq!(said.code, 2, "{}", said.shown());
        assert!(said.stderr.contains(what) && said.stderr.contains(help), "{what} {help}: {}", said.shown());
        assert!(!state(&place).join("haft.sock").exists(), "nothing is left of it");
    };
    said("", &["--listen", &address], "haft cannot listen on", "choose another port");
    said("", &["--no-socket"], "no socket and no address", "--listen");
    said("[server]\nlisten = 'here'\n", &[], "which is not an address", "127.0.0.1:8484");
    let listen: &[&str] = &["--listen", "127.0.0.1:0"];
    said(
        "[server]\ntls_certificate = '/absent.pem'\n",
        listen,
        "a certificate and its key",
        "server.tls_key",
    );
    let both = "[server]\ntls_certificate = '/absent.pem'\ntls_key = '/absent.key'\n";
    said(both, listen, "/absent.pem", "both files are PEM");
    let oidc = "[server.oidc]\nissuer = 'https://id.example'\n";
    said(oidc, listen, "server.oidc.audience is not", "server.oidc.audience");
    let plain = format!("{oidc}audience = 'haft'\njwks_url = 'http://id.example/keys'\n");
    said(&plain, listen, "not be encrypted", "https");
    let two =
        format!("{oidc}audience = 'haft'\njwks_url = 'https://id.example/keys'\njwks_file = 'keys.json'\n");
    said(&two, listen, "are both set", "one of");
    std::fs::create_dir_all(state(&place)).expect("a folder");
    std::fs::write(state(&place).join("haft.sock"), "mine").expect("written");
    place.own_config("");
    let said = place.haft(&["serve"]);
    assert!(said.code == 2 && said.stderr.contains("is not a socket"), "{}", said.shown());
    assert_eq!(std::fs::read_to_string(state(&place).join("haft.sock")).unwrap(), "mine", "it is left alone");
}

#[test]
fn a_server_that_ends_lets_calls_end_and_streams_know() {
    let place = Place::new();
    let (server, address) = serve(&place);
    let socket = state(&place).join("haft.sock");
    let call = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let stream = UnixStream::connect(socket).expect("it listens");
            talk(stream, "/v1/invoke", None, Some(r#"{"name": "slow", "options": {"timeout": "PT60S"}}"#))
        }
    });
    let detached = r#"{"name": "slow", "options": {"detached": true, "timeout": "PT60S"}}"#;
    let (status, task) =
        json(talk(UnixStream::connect(&socket).expect("it listens"), "/v1/invoke", None, Some(detached)));
    assert_eq!(status, 202, "{task}");
    let watching = std::thread::spawn({
        let (socket, path) =
            (socket.clone(), format!("/v1/tasks/{}/events", task["taskId"].as_str().expect("an id")));
        move || talk(UnixStream::connect(socket).expect("it listens"), &path, None, None)
    });
    // Long enough for both to be on their way.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    server.signal("TERM");
    let begun = std::time::Instant::now();
    let said = server.end();
    assert_eq!(said.code, 0, "{}", said.shown());
    assert!(begun.elapsed().as_secs() < 15, "it took {:?}", begun.elapsed());
    let (status, result) = call.join().expect("it was answered");
    assert!(result.contains("CANCELLED") || status == 200, "{status} {result}");
    let (status, events) = watching.join().expect("the stream ended");
    assert!(status == 200 && events.contains("tool:executing"), "{events}");
    assert!(TcpStream::connect(&address).is_err() && !socket.exists());
    let runs = place.haft(&["runs", "list", "--json"]);
    assert!(runs.stdout.contains("slow"), "it is on the record: {}", runs.shown());
}

/// Base64 as tokens have it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let number = piece
            .iter()
            .chain([&0; 2])
            .take(3)
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let letters = (0..4).map(|place| char::from(LETTERS[number >> (18 - 6 * place) & 63]));
        text.extend(letters.take(piece.len() + 1));
    }
    text
}

#[test]
fn a_token_counts_by_keys_that_its_issuer_serves_over_https() {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let jwk =
        serde_json::json!({"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": base64(pair.public_key_raw())});
    let issuer = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let (port, certificate) = crate::http_tools::tls_service({
        let issuer = std::sync::Arc::clone(&issuer);
        move |sent: &str| {
            let issuer = issuer.get().expect("it is known");
            match sent.starts_with("GET /.well-known/openid-configuration ") {
                true => {
                    serde_json::json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string()
                }
                false => serde_json::json!({"keys": [jwk]}).to_string(),
            }
        }
    });
    let issuer = issuer.get_or_init(|| format!("https://localhost:{port}")).clone();
    let now = jiff::Timestamp::now().as_second();
    let claims = serde_json::json!({"iss": issuer, "aud": "haft", "exp": now + 300, "sub": "ada", "tenant": "acme",
        "scope": "haft:invoke", "roles": ["editor"]});
    let message =
        format!("{}.{}", base64(br#"{"alg":"EdDSA","kid":"1"}"#), base64(claims.to_string().as_bytes()));
    let signature = rcgen::SigningKey::sign(&pair, message.as_bytes()).expect("a signature");
    let token = format!("{message}.{}", base64(&signature));

    let place = Place::new();
    place.write("trusted.pem", certificate);
    place.own_config(&format!("[server.oidc]\nissuer = '{issuer}'\naudience = 'haft'\n"));
    for trusted in [true, false] {
        let mut command = place.program(&["serve", "--listen", "127.0.0.1:0"]);
        if trusted {
            command.env("SSL_CERT_FILE", place.work().join("trusted.pem"));
        }
        let (server, address) = listening(Running::of(command));
        let (status, me) = json(talk(TcpStream::connect(&address).unwrap(), "/v1/me", Some(&token), None));
        match trusted {
            true => {
                assert_eq!((status, &me["user"], &me["tenant"]), (200, &"ada".into(), &"acme".into()), "{me}")
            }
            // Keys from a server that only claims to be the issuer are refused.
            false => assert_eq!(status, 503, "{me}"),
        }
        server.signal("TERM");
        assert_eq!(server.end().code, 0);
    }
}

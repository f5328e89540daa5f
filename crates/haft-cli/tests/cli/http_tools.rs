//! HTTP services as tools, with a service on loopback that writes down what it was sent.

use crate::support::Place;
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

/// Answers each request with what `answer` makes of its head and body, and hands on what was sent.
fn service(answer: impl Fn(&str) -> String + Send + 'static) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut piece) {
                bytes.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&bytes);
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
                });
                if body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let _ = stream.write_all(answer(&text).as_bytes());
            if tell.send(text).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

fn json_answer(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn place(definition: &str, config: &str) -> Place {
    let place = Place::new();
    place.own_config(config);
    place.write("x.tool.toml", definition);
    let said = place.haft(&["tools", "add", "x.tool.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.stdout.contains("only described"), "{said:?}");
    place
}

fn definition(port: u16, method: &str, has_effects: bool) -> String {
    format!(
        "name = 'items'\ndescription = 'Asks for items'\nsource = 'http'\ncategory = 'ExternalApi'\n\
         [http]\nurl = 'http://localhost:{port}/v1/{{id}}'\nmethod = '{method}'\n\
         headers = {{ Authorization = 'env:ITEMS_KEY', 'X-From' = 'haft' }}\n\
         [constraints]\nallowSideEffects = {has_effects}\n\
         [[parameters]]\nname = 'id'\ndescription = 'Which'\ntype = 'String'\nrequired = true\n\
         [[parameters]]\nname = 'note'\ndescription = 'Why'\ntype = 'String'\n"
    )
}

#[test]
fn arguments_go_where_they_belong_and_json_comes_back() {
    let (port, heard) = service(|_| json_answer("{\"name\": \"pencil\"}"));
    let config =
        format!("[tools.http]\nprivate_hosts = ['localhost:{port}']\n[tools.approval]\nmode = 'auto'\n");
    let place = place(&definition(port, "GET", false), &config);
    let mut command = place.program(&["call", "items", "id=a/b", "note=why not", "--json"]);
    let said = crate::support::Said::of(command.env("ITEMS_KEY", "k-123").output().expect("it starts"));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json()["output"]["name"], "pencil", "{said:?}");
    let sent = heard.recv_timeout(Duration::from_secs(10)).expect("a request");
    assert!(sent.starts_with("GET /v1/a%2Fb?note=why%20not HTTP/1.1\r\n"), "{sent}");
    let lower = sent.to_lowercase();
    assert!(lower.contains("authorization: k-123\r\n") && lower.contains("x-from: haft\r\n"), "{sent}");
    assert!(!lower.contains("idempotency-key"), "what only reads has no effect to name: {sent}");
}

#[test]
fn an_effect_carries_its_name() {
    let (port, heard) = service(|_| json_answer("{}"));
    let config = format!(
        "[tools.http]\nprivate_hosts = ['localhost:{port}']\n[tools.approval]\nmode = 'auto'\nprompt_side_effects = false\n"
    );
    let place = place(&definition(port, "POST", true), &config);
    let mut command = place.program(&["call", "items", "id=1", "note=x", "--json"]);
    let said = crate::support::Said::of(command.env("ITEMS_KEY", "k").output().expect("it starts"));
    assert_eq!(said.code, 0, "{said:?}");
    let sent = heard.recv_timeout(Duration::from_secs(10)).expect("a request");
    let id = said.json()["metadata"]["executionId"].as_str().expect("an id").to_owned();
    assert!(sent.to_lowercase().contains(&format!("idempotency-key: {id}\r\n")), "{sent}");
    assert!(sent.ends_with("\r\n\r\n{\"note\":\"x\"}"), "{sent}");
}

#[test]
fn metadata_of_a_call_reaches_the_service() {
    let (port, heard) = service(|_| json_answer("{}"));
    let config =
        format!("[tools.http]\nprivate_hosts = ['localhost:{port}']\n[tools.approval]\nmode = 'auto'\n");
    let place = place(&definition(port, "GET", false), &config);
    let call = ["call", "items", "id=1", "--id", "call_7", "--metadata", r#"{"trace": "grün"}"#, "--json"];
    let mut command = place.program(&call);
    let said = crate::support::Said::of(command.env("ITEMS_KEY", "k").output().expect("it starts"));
    assert_eq!(said.code, 0, "{said:?}");
    let sent = heard.recv_timeout(Duration::from_secs(10)).expect("a request").to_lowercase();
    assert!(sent.contains("haft-call-id: call_7\r\n"), "{sent}");
    assert!(sent.contains("haft-call-metadata: {\"trace\":\"gr\\u00fcn\"}\r\n"), "{sent}");
    assert!(!sent.contains("haft-call-context"), "there is none: {sent}");
    let bad = place.haft(&["call", "items", "id=1", "--metadata", "[1]"]);
    assert!(bad.code == 2 && bad.stderr.contains("JSON object"), "{bad:?}");
}

#[test]
fn nothing_is_sent_to_a_host_that_nobody_granted() {
    let (port, heard) = service(|_| json_answer("{}"));
    for config in ["", "[tools.http]\nhosts = ['*.example.com']\nprivate_hosts = ['localhost:1']\n"] {
        let config = format!("{config}[tools.approval]\nmode = 'auto'\n");
        let place = place(&definition(port, "GET", false), &config);
        let mut command = place.program(&["call", "items", "id=1"]);
        let said = crate::support::Said::of(command.env("ITEMS_KEY", "k").output().expect("it starts"));
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.stderr.contains("tools.http."), "the way out is named: {said:?}");
    }
    assert!(heard.recv_timeout(Duration::from_millis(300)).is_err(), "nothing came");
}

#[test]
fn errors_and_redirects_are_told_as_they_are() {
    let (port, _heard) = service(|sent| match sent.contains("/v1/gone") {
        true => "HTTP/1.1 404 Not Found\r\ncontent-length: 14\r\n\r\n{\"error\":\"no\"}".to_owned(),
        false => {
            "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".to_owned()
        }
    });
    let config =
        format!("[tools.http]\nprivate_hosts = ['localhost:{port}']\n[tools.approval]\nmode = 'auto'\n");
    let place = place(&definition(port, "GET", false), &config);
    let ask = |id: &str| {
        let mut command = place.program(&["call", "items", id, "--json"]);
        crate::support::Said::of(command.env("ITEMS_KEY", "k").output().expect("it starts")).json()
    };
    let gone = ask("id=gone");
    assert_eq!(gone["error"]["message"], "{\"error\":\"no\"}", "{gone}");
    let moved = ask("id=moved").to_string();
    assert!(moved.contains("follows no redirects") && moved.contains("169.254.169.254"), "{moved}");
    let said = place.haft(&["call", "items", "id=1"]);
    assert!(said.stderr.contains("ITEMS_KEY"), "a variable that is not there is named: {said:?}");
}

/// A server that shows this certificate, and answers each request as it is told.
pub(crate) fn tls_service(answer: impl Fn(&str) -> String + Send + 'static) -> (u16, String) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a server");
    let config = std::sync::Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(config.clone()).expect("a connection");
            let mut stream = rustls::StreamOwned::new(connection, stream.expect("a connection"));
            let mut piece = [0; 4096];
            if let Ok(count @ 1..) = stream.read(&mut piece) {
                let sent = String::from_utf8_lossy(&piece[..count]).into_owned();
                let _ = stream.write_all(json_answer(&answer(&sent)).as_bytes());
                let _ = stream.flush();
            }
        }
    });
    (port, own.cert.pem())
}

#[test]
fn a_server_is_trusted_where_this_machine_trusts_it_and_nowhere_else() {
    let (port, certificate) = tls_service(|_| "{\"name\": \"safe\"}".to_owned());
    let config =
        format!("[tools.http]\nprivate_hosts = ['localhost:{port}']\n[tools.approval]\nmode = 'auto'\n");
    let place = place(&definition(port, "GET", false).replace("http://", "https://"), &config);
    place.write("trusted.pem", certificate);
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    place.write("other.pem", other.cert.pem());
    let ask = |trusted: &str| {
        let mut command = place.program(&["call", "items", "id=1", "--json"]);
        command.env("ITEMS_KEY", "k").env("SSL_CERT_FILE", place.work().join(trusted));
        crate::support::Said::of(command.output().expect("it starts")).json()
    };
    let safe = ask("trusted.pem");
    assert_eq!(safe["output"]["name"], "safe", "{safe}");
    let refused = ask("other.pem");
    assert!(
        refused["error"]["message"].as_str().is_some_and(|text| text.contains("was not trusted")),
        "{refused}"
    );
}

/// Every attempt goes through the same gate, and names the same effect.
#[test]
fn a_second_attempt_is_held_in_as_the_first_one_is() {
    let requests = std::sync::atomic::AtomicUsize::new(0);
    let (port, heard) = service(move |sent| {
        let is_first = requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst).is_multiple_of(2);
        match (is_first, sent.contains("/v1/away")) {
            (true, _) => {
                "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            (false, false) => json_answer("{\"name\": \"pencil\"}"),
            (false, true) => {
                "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"
                    .to_owned()
            }
        }
    });
    let config = format!(
        "[tools.http]\nprivate_hosts = ['localhost:{port}']\n[tools.approval]\nmode = 'auto'\nprompt_side_effects = false\n\
         [scheduling.retry]\nmax_retries = 1\nbase_ms = 1\n"
    );
    let definition = definition(port, "POST", true).replacen("[http]", "idempotent = true\n[http]", 1);
    let place = place(&definition, &config);
    let ask = |id: &str| {
        let mut command = place.program(&["call", "items", id, "--json"]);
        crate::support::Said::of(command.env("ITEMS_KEY", "k").output().expect("it starts")).json()
    };
    let done = ask("id=1");
    assert_eq!(done["output"]["name"], "pencil", "{done}");
    assert_eq!(done["metadata"]["attempts"], 2, "{done}");
    let records = done["metadata"]["attemptRecords"].as_array().expect("a record of each attempt");
    assert_eq!(records.len(), 2, "{done}");
    let effect = format!("idempotency-key: {}\r\n", done["metadata"]["executionId"].as_str().expect("an id"));
    for attempt in 1..=2 {
        let sent = heard.recv_timeout(Duration::from_secs(10)).expect("a request").to_lowercase();
        assert!(sent.contains(&effect), "attempt {attempt}: {sent}");
    }
    let away = ask("id=away").to_string();
    assert!(away.contains("follows no redirects"), "{away}");
}

//! The HTTP API, tried out by programs that nobody here wrote: schemathesis, curl, the SDKs of model providers, and
//! programs that read an OpenAPI document.
#![cfg(unix)]

use crate::{
    serve::{listening, talk},
    stop::Running,
    support::Place,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Output},
};

const PAGE: &str = include_str!("../../../../docs/http.md");

/// The first block of code on the page after these words.
fn block(after: &str) -> &'static str {
    let rest = PAGE.split_once(after).unwrap_or_else(|| panic!("the page has no {after:?}")).1;
    let code = rest.split_once("```").expect("a block").1;
    let code = code.split_once('\n').expect("its language").1;
    code.split_once("```").expect("its end").0
}

fn worked(name: &str, output: &Output) -> String {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (shown(&output.stdout), shown(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{stdout}\n{stderr}", output.status);
    stdout
}

/// haft itself, on a port that the system chose.
fn serve(place: &Place) -> (Running, String) {
    listening(Running::program(place, &["serve", "--listen", "127.0.0.1:0"]))
}

fn key(place: &Place, rights: &[&str]) -> String {
    let rights: Vec<&str> = rights.iter().flat_map(|right| ["--right", right]).collect();
    let made = place.haft(&[&["keys", "create", "test", "--role", "admin"], &*rights].concat());
    assert_eq!(made.code, 0, "{}", made.shown());
    made.stdout.trim().to_owned()
}

#[test]
fn schemathesis_finds_nothing() {
    let Some(kit) = haft_testkit::http_kit() else {
        return haft_testkit::not_run("schemathesis_finds_nothing", "schemathesis is not installed");
    };
    let place = Place::new();
    place.write("note.txt", "hello\n");
    place.own_config("[server]\ninvoke_and_approve = true\n[tools.approval]\naccept_from = ['http']\n");
    let secret = key(&place, &["invoke", "approve", "operate"]);
    let (server, address) = serve(&place);
    let things = things(&address, &secret);
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/schemathesis.toml");
    for known in [true, false] {
        let mut tries = place.command(&kit.schemathesis);
        tries.arg("--config-file").arg(&settings).arg("run").arg(&document);
        tries.args(["--url", &format!("http://{address}"), "--checks", "all", "--seed", "1"]);
        tries.args(["--max-examples", "20", "--request-timeout", "20", "--no-color"]);
        tries.envs(things.iter().map(|(name, id)| (*name, id)));
        if known {
            tries.args(["--header", &format!("Authorization: Bearer {secret}")]);
        }
        let said = worked("schemathesis", &tries.output().expect("it starts"));
        // It counts what it did not get to as no failure: all of it must have been tried.
        let operations = serde_json::from_str::<Value>(&std::fs::read_to_string(&document).unwrap()).unwrap();
        let count: usize = operations["paths"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(path, _)| *path != "/v1/events")
            .map(|(_, item)| item.as_object().unwrap().len())
            .sum();
        assert!(said.contains(&format!("Tested: {count}")), "{said}");
        assert_eq!(status(&address, "/ready"), 200, "the server is as well as before, known: {known}");
    }
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

/// Whether openapi-spec-validator takes that document as OpenAPI 3.1, and what it says.
fn validated(place: &Place, python: &Path, document: &Value) -> (bool, String) {
    place.write("checked.json", document.to_string());
    let mut validator = place.command(python);
    validator.args(["-m", "openapi_spec_validator", "--schema", "3.1", "--validation-errors", "all"]);
    let said = validator.arg("checked.json").output().expect("it starts");
    (said.status.success(), String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
}

#[test]
fn the_document_is_valid_and_a_client_made_of_it_makes_calls() {
    let Some(kit) = haft_testkit::http_kit() else {
        return haft_testkit::not_run(
            "the_document_is_valid_and_a_client_made_of_it_makes_calls",
            "openapi-spec-validator and openapi-python-client are not installed",
        );
    };
    let place = Place::new();
    place.write("note.txt", "hello\n");
    let secret = key(&place, &["invoke"]);
    let (server, address) = serve(&place);
    let stream = TcpStream::connect(&address).expect("it listens");
    let (status, served) = talk(stream, "/v1/openapi.json", Some(&secret), None);
    assert_eq!(status, 200, "{served}");
    let document: Value = serde_json::from_str(&served).expect("JSON");

    let (is_valid, said) = validated(&place, &kit.python, &document);
    assert!(is_valid, "{said}");
    let mut worse = document;
    worse["paths"]["/health"]["get"]["responses"]["200"].as_object_mut().unwrap().remove("description");
    let (is_valid, said) = validated(&place, &kit.python, &worse);
    assert!(!is_valid, "the validator looks: {said}");

    place.write("openapi.json", &served);
    // Formatting needs a program on the path, and nobody reads this client.
    place.write("settings.json", r#"{"post_hooks": []}"#);
    let mut generator = place.command(&kit.python);
    generator.args(["-m", "openapi_python_client", "generate", "--fail-on-warning", "--meta", "none"]);
    generator.args(["--config", "settings.json", "--path", "openapi.json", "--output-path", "haft_client"]);
    let said = worked("openapi-python-client", &generator.output().expect("it starts"));
    // It counts a route that it left out as a warning, and says so.
    assert!(!said.to_lowercase().contains("warning") && !said.contains("Unable"), "{said}");

    place.write("calls.py", include_str!("generated_client.py"));
    let mut python = place.command(&kit.python);
    python.env("HAFT_URL", format!("http://{address}")).env("HAFT_KEY", &secret);
    let said = worked("the client", &python.arg("calls.py").output().expect("it starts"));
    for line in [
        "read: hello",
        "recorded: Success",
        "plan: needs_approval",
        "asked: CONFIRMATION_REQUIRED",
        "problem: TOOL_NOT_FOUND",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
    assert!(!place.work().join("new.txt").exists(), "nothing was written without a yes");
    ended(server);
}

fn status(address: &str, path: &str) -> u16 {
    talk(TcpStream::connect(address).expect("it listens"), path, None, None).0
}

/// What routes show: ids of things that are there, so that more than their absence is tried.
fn things(address: &str, key: &str) -> [(&'static str, String); 4] {
    let ask = |path: &str, body: &str| {
        let (status, answer) =
            talk(TcpStream::connect(address).expect("it listens"), path, Some(key), Some(body));
        assert!((200..300).contains(&status), "{path}: {answer}");
        serde_json::from_str::<Value>(&answer).expect("JSON")
    };
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    // A model that can take next to nothing: what it is given is cut, and the whole is stored.
    let inspect = r#"{"name": "inspect_tool", "arguments": {"name": "read_file"}, "options": {"model":
        {"kind": "known", "limit": 100, "used": 0, "responseReserve": 0, "safetyMargin": 0}}}"#;
    let done = ask("/v1/invoke", inspect);
    let batch = ask("/v1/batch", r#"{"calls": [{"name": "get_metrics"}]}"#);
    let task = ask("/v1/invoke", r#"{"name": "get_metrics", "options": {"detached": true}}"#);
    [
        ("HAFT_EXECUTION", text(&done["metadata"]["executionId"])),
        ("HAFT_OUTPUT", text(&done["metadata"]["outputHandle"])),
        ("HAFT_BATCH", text(&batch["summary"]["batchId"])),
        ("HAFT_TASK", text(&task["taskId"])),
    ]
}

/// A model that asks for a file once, and then says what it was given. Speaks as two providers do.
fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}")
}

fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(count) = lower.strip_prefix("content-length:") {
                length = count.trim().parse().ok()?;
            } else if let Some(rest) = line.strip_prefix("POST ") {
                path = rest.split(' ').next()?.to_owned();
            } else if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let said = reply(&path, &serde_json::from_slice(&body).ok()?).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            said.len()
        );
        reader.get_mut().write_all(format!("{head}{said}").as_bytes()).ok()?;
    }
}

fn reply(path: &str, asked: &Value) -> Value {
    assert!(!asked["tools"].as_array().expect("tools").is_empty(), "{asked}");
    let messages = asked["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message");
    if path.ends_with("/chat/completions") {
        assert_eq!(asked["tools"][0]["function"]["name"], "read_file");
        let message = match last["role"] == "tool" {
            true => {
                json!({"role": "assistant", "content": format!("It says: {}", last["content"].as_str().unwrap())})
            }
            false => {
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
                "function": {"name": "read_file", "arguments": "{\"path\": \"README.md\"}"}}]})
            }
        };
        let reason = if last["role"] == "tool" { "stop" } else { "tool_calls" };
        return json!({"id": "c", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}]});
    }
    assert_eq!(asked["tools"][0]["name"], "read_file");
    let given = &last["content"][0];
    let (content, reason) = match given["type"] == "tool_result" {
        true => (
            json!([{"type": "text", "text": format!("It says: {}", given["content"].as_str().unwrap())}]),
            "end_turn",
        ),
        false => (
            json!([{"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "README.md"}}]),
            "tool_use",
        ),
    };
    json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
        "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
}

/// A place where the examples of the page can be run, with a server.
fn with_server() -> (Place, Running, Command) {
    let place = Place::new();
    place.write("README.md", "# Waves\n");
    let secret = key(&place, &["invoke"]);
    let (server, address) = serve(&place);
    let programs = Path::new(env!("CARGO_BIN_EXE_haft")).parent().expect("a folder");
    let mut command = place.command("/usr/bin/env");
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    command.env("HAFT_URL", format!("http://{address}")).env("HAFT_KEY", secret);
    (place, server, command)
}

fn ended(server: Running) {
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

#[test]
fn the_examples_with_curl_run_as_they_stand_on_the_page() {
    if Command::new("curl").arg("--version").output().is_err() {
        return haft_testkit::not_run(
            "the_examples_with_curl_run_as_they_stand_on_the_page",
            "curl is not installed",
        );
    }
    let (_place, server, mut shell) = with_server();
    let first = block("With the secret in `HAFT_KEY`").split_once("curl ").expect("a request").1;
    let first = first.replace("http://127.0.0.1:8484", "$HAFT_URL");
    let script = format!("curl --fail {first}\n{}", block("## With curl"));
    let said =
        worked("curl", &shell.args(["bash", "-euo", "pipefail", "-c", &script]).output().expect("it starts"));
    assert!(
        said.contains("# Waves") && said.contains("event: result") && said.contains("\"completed\""),
        "{said}"
    );
    ended(server);
}

#[test]
fn the_examples_with_sdks_run_as_they_stand_on_the_page() {
    let Some(kit) = haft_testkit::http_kit() else {
        return haft_testkit::not_run(
            "the_examples_with_sdks_run_as_they_stand_on_the_page",
            "the SDKs of OpenAI and Anthropic are not installed",
        );
    };
    let model = model();
    for (name, heading) in [("openai", "### OpenAI"), ("anthropic", "### Anthropic")] {
        let (place, server, mut python) = with_server();
        place.write("agent.py", block(heading));
        python.env("OPENAI_BASE_URL", format!("{model}/v1")).env("OPENAI_API_KEY", "none");
        python.env("ANTHROPIC_BASE_URL", &model).env("ANTHROPIC_API_KEY", "none");
        let said = python.arg(&kit.python).arg("agent.py").output().expect("it starts");
        let said = worked(name, &said);
        assert!(said.contains("It says: ") && said.contains("# Waves"), "{name}: {said}");
        let runs = place.haft(&["runs", "list", "--json"]);
        assert!(runs.stdout.contains("read_file"), "{name}: haft ran it: {}", runs.shown());
        ended(server);
    }
}
